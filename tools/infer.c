/* tutti infer: what saved weights say of each sample. */
#include "base/memory.h"
#include "base/status.h"
#include "formats/json_lines.h"
#include "tools/arrays.h"
#include "tools/commands.h"
#include "tools/files.h"
#include "tools/likeliest.h"
#include "tools/saved.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct settings {
    struct saved_options saved;
    int64_t first, count, classes;
    const char *inputs, *outputs, *expect;
    bool prepare;
    int files; /* arguments after MODEL */
};

static enum parsed parse(struct settings *s, int argc, char **argv)
{
    const struct option options[] = {
        SAVED_OPTIONS(s->saved),
        { "first", OPTION(s->first), "N", "index of the first sample, from 0", 0, 1e15 },
        { "count", OPTION(s->count), "N", "number of samples (default all that follow)", 1, 1e15 },
        { "json", OPTION(s->saved.json), NULL, "print a JSON object per sample" },
        { "inputs", OPTION(s->inputs), "FILE", "compute the outputs of the arrays in this .npz or .npy file" },
        { "outputs", OPTION(s->outputs), "FILE", "write them to this .npz or .npy file" },
        { "classes", OPTION(s->classes), "N", "with --inputs: number of outputs (default the model's)", 1, 1e6 },
        { "prepare", OPTION(s->prepare), NULL,
            "with --inputs: prepare them as in training, and write numbers in the units of the data" },
        EXPECT_OPTION(s->expect),
        SAVED_MORE_OPTIONS(s->saved),
    };
    const struct usage usage = { .command = "infer",
        .summary = "Predicts the class of each sample with saved weights, and prints its index, class and probability",
        MODEL_ARGUMENT,
        .from_options = { "weights" },
        .more = "FILE",
        .more_count = &s->files,
        .details = "Prints the likeliest classes of each FILE: a picture, a recording or a folder of them.\n"
                   "--inputs and --outputs take any model: the file has an array [samples, ...] for each input, by its "
                   "name; a\n"
                   "model that is not a file has \"input\" and \"output\".",
        OPTION_ROWS(options) };
    return options_parse(&usage, argc, argv, &s->saved.model);
}

enum { SAMPLE_NAME = 1100 };

/* Inference of one part of the data: buffers for a batch, and the bytes of a sample. */
struct work {
    const struct settings *settings;
    struct session *session;
    const struct data *data;
    struct samples *samples;
    int64_t outputs; /* numbers for a sample */
    size_t input_bytes, target_bytes, output_bytes;
    void *inputs, *targets;
    float *results;
    int64_t *indices;
};

/* Prints a sample's numbers, in the units of the data. */
static tutti_status print_numbers(const struct work *w, int64_t index, const float *outputs)
{
    struct json_line line;
    char title[SAMPLE_NAME];
    const tutti_status status = tutti_data_name(w->data->opened, w->samples->part, index, title, sizeof(title));
    if (status != TUTTI_OK) return status;
    if (!w->settings->saved.json) {
        printf("%lld", (long long)index);
        for (int64_t i = 0; i < w->outputs; i++)
            printf(" %.*g", data_digits(w->data, i), data_in_units(w->data, i, (double)outputs[i]));
        printf("  %s\n", title);
        return TUTTI_OK;
    }
    json_line_begin(&line, stdout);
    json_line_integer(&line, "index", index);
    json_line_text(&line, "sample", title);
    if (w->outputs == 1) {
        json_line_digits(&line, "value", data_in_units(w->data, 0, (double)outputs[0]), data_digits(w->data, 0));
    } else {
        json_line_print(&line, "values [");
        for (int64_t i = 0; i < w->outputs; i++)
            json_line_digits(&line, NULL, data_in_units(w->data, i, (double)outputs[i]), data_digits(w->data, i));
    }
    return json_line_end(&line);
}

static tutti_status print_sample(const struct work *w, int64_t index, int64_t position)
{
    char title[SAMPLE_NAME];
    const float *outputs = w->results + position * w->outputs;
    const struct settings *s = w->settings;
    const struct user_data_saved *known = s->saved.known;
    const char *const *names = w->data->info.class_names;
    int32_t label = -1;
    if (w->data->numbers) return print_numbers(w, index, outputs);
    if (w->target_bytes == sizeof(label))
        memcpy(&label, (const char *)w->targets + (size_t)position * sizeof(label), sizeof(label));
    if (!names && known && known->class_count > 0) names = (const char *const *)known->classes;
    const tutti_status status = tutti_data_name(w->data->opened, w->samples->part, index, title, sizeof(title));
    if (status != TUTTI_OK) return status;
    return likeliest_print(&(struct likeliest) { .title = title,
                               .index = s->files ? -1 : index,
                               .names = names,
                               .outputs = outputs,
                               .classes = w->outputs / w->session->labels,
                               .labels = w->session->labels,
                               .label = label },
        s->saved.json);
}

static tutti_status infer_samples(struct work *w)
{
    const struct settings *s = w->settings;
    const tutti_buffer buffers[] = { { "input", w->session->pixels ? TUTTI_DTYPE_U8 : TUTTI_DTYPE_F32, w->inputs,
                                         w->input_bytes },
        { "targets", w->data->info.target_dtype, w->targets, w->target_bytes } };
    const struct session_arrays arrays = session_arrays(w->session, w->inputs, NULL, w->results);
    int64_t end = s->count && s->count < w->samples->count - s->first ? s->first + s->count : w->samples->count;
    const int64_t batch = w->session->training.batch;
    for (int64_t first = s->first; first < end; first += batch) {
        int64_t count = end - first < batch ? end - first : batch;
        for (int64_t i = 0; i < count; i++) w->indices[i] = first + i;
        if (w->samples->source.read(w->samples->source.user, w->indices, count, buffers, 2))
            return fail(TUTTI_FILE, "%s", tutti_message(NULL));
        tutti_status status = tutti_infer(w->session->trainer, arrays.feeds, 1, count, &arrays.fetch, 1);
        if (status != TUTTI_OK) return fail(status, "%s", tutti_message(w->session->runtime));
        for (int64_t i = 0; i < count && status == TUTTI_OK; i++) status = print_sample(w, first + i, i);
        if (status != TUTTI_OK) return status;
    }
    return TUTTI_OK;
}

static size_t elements_of(const tutti_shape *shape)
{
    size_t elements = 1;
    for (int i = 0; i < shape->rank; i++) elements *= (size_t)shape->sizes[i];
    return elements;
}

static tutti_status allocate_and_infer(struct work *w)
{
    tutti_status status = TUTTI_NO_MEMORY;
    const size_t batch = (size_t)w->session->training.batch;
    const tutti_data_info *info = &w->data->info;
    tutti_shape output = { 0 };
    size_t inputs, outputs;
    (void)tutti_shape_of(w->session->network, w->session->output, &output);
    w->outputs = (int64_t)elements_of(&output);
    w->input_bytes = elements_of(&info->shape) * (w->session->pixels ? 1 : sizeof(float));
    w->target_bytes = elements_of(&info->target_shape) * sizeof(float);
    if (!size_multiply(batch, w->input_bytes, &inputs) || !size_multiply(batch, (size_t)w->outputs, &outputs))
        FAIL(TUTTI_INVALID, "--batch %lld does not fit the memory of this machine: lower it", (long long)batch);
    w->inputs = memory_new(inputs, 1);
    w->results = memory_new(outputs, sizeof(float));
    w->indices = memory_new(batch, sizeof(int64_t));
    w->targets = memory_new(batch, w->target_bytes);
    if (w->inputs && w->results && w->indices && w->targets) status = infer_samples(w);
done:
    free(w->inputs);
    free(w->results);
    free(w->indices);
    free(w->targets);
    return status;
}

static int infer_arrays(const struct settings *s, struct session *session)
{
    const struct saved_options *saved = &s->saved;
    if (!s->inputs || !s->outputs)
        return wrong_use(
            "infer", "--%s is missing: --inputs and --outputs go together", s->inputs ? "outputs" : "inputs");
    if (s->expect && session_model(saved->model)->build) return expects_a_file("infer");
    if (saved->data || s->first || s->count || saved->json || strcmp(saved->part, "test"))
        return wrong_use("infer", "--data, --part, --first, --count and --json cannot be used with --inputs");
    int result = files_check_output("infer", "outputs", s->outputs);
    if (result == EXIT_DONE) result = saved_build("infer", saved, saved->own.input, s->classes, s->inputs, session);
    if (result == EXIT_DONE && s->expect) result = arrays_expect(session, s->expect);
    return result == EXIT_DONE ? arrays_infer(session, saved, s->inputs, s->outputs, s->prepare) : result;
}

static int infer_part(const struct settings *s, struct session *session, const struct data *data, struct samples *part)
{
    if (s->first >= part->count)
        return wrong_use("infer", "--first %lld is past the last sample: %s has %lld samples, counted from 0",
            (long long)s->first, s->saved.data, (long long)part->count);
    const tutti_status status =
        allocate_and_infer(&(struct work) { .settings = s, .session = session, .data = data, .samples = part });
    return status == TUTTI_OK ? EXIT_DONE : work_failed("infer", status, status_message());
}

/* Refuses tables and arrays, which have many samples and what is to be predicted. */
static int check_files(const struct settings *s, char **files)
{
    static const char *const ends[] = { ".csv", ".tsv", ".npy", ".npz" };
    for (int i = 0; i < s->files; i++)
        for (size_t k = 0; k < sizeof(ends) / sizeof(*ends); k++) {
            const size_t length = strlen(files[i]), end = strlen(ends[k]);
            if (length >= end && !strcasecmp(files[i] + length - end, ends[k]))
                return wrong_use("infer",
                    "\"%s\" is not a picture, recording or folder of them: use --data for a table or a data set, and "
                    "--inputs with --outputs for arrays",
                    files[i]);
        }
    return EXIT_DONE;
}

/* Loads the next file. Without weights that record their data, a recording's length gives the size of its
 * spectrogram, which may differ from the first. */
static tutti_status load_next(
    struct settings *s, const struct session *session, struct data *data, struct samples **part)
{
    const tutti_shape *shape = &session->shape, *found = &data->info.shape;
    const tutti_status status = saved_load_data(&s->saved, data, part);
    if (status != TUTTI_OK) return status;
    bool same = shape->rank == found->rank && !session->pixels == !data_pixels(data);
    for (int i = 0; same && i < shape->rank; i++) same = shape->sizes[i] == found->sizes[i];
    if (same) return TUTTI_OK;
    return fail(
        TUTTI_MISMATCH, "%s has samples of another size than the file before: infer it by itself", s->saved.data);
}

/* Infers each file by itself; the network is built for the first one. */
static int infer_files(struct settings *s, struct session *session, struct data *data, char **files)
{
    struct samples *part = NULL;
    int result = check_files(s, files);
    s->saved.own.data.threads = 1;
    s->saved.own.cache_given = true; /* with 0: nothing is read twice */
    s->saved.own.cache_mib = 0;
    for (int i = 0; i < s->files && result == EXIT_DONE; i++) {
        s->saved.data = files[i];
        if (i == 0) {
            result = saved_open("infer", &s->saved, false, session, data, &part);
        } else {
            data_free(data);
            const tutti_status status = load_next(s, session, data, &part);
            if (status != TUTTI_OK) result = work_failed("infer", status, status_message());
        }
        if (result == EXIT_DONE) result = infer_part(s, session, data, part);
    }
    return result;
}

static int infer(struct settings *s, struct session *session, struct data *data, char **files)
{
    struct samples *part = NULL;
    if (s->files && (s->saved.data || s->inputs || s->outputs))
        return wrong_use("infer", "\"%s\" cannot be used with --data, --inputs and --outputs", files[0]);
    if (s->inputs || s->outputs) return infer_arrays(s, session);
    if (s->classes || s->expect || s->prepare)
        return wrong_use("infer", "--classes, --prepare and --expect can only be used with --inputs");
    if (s->files) return infer_files(s, session, data, files);
    int result = saved_open("infer", &s->saved, false, session, data, &part);
    return result == EXIT_DONE ? infer_part(s, session, data, part) : result;
}

int command_infer(int argc, char **argv)
{
    struct settings settings = { .saved = SAVED_DEFAULTS };
    struct session session = { 0 };
    struct data data = { 0 };
    enum parsed parsed = parse(&settings, argc, argv);
    if (parsed != PARSED_RUN) return parsed_exit(parsed);
    int result = saved_choose("infer", &settings.saved);
    if (result == EXIT_DONE) result = infer(&settings, &session, &data, argv + 1);
    session_close(&session);
    data_free(&data);
    saved_free(&settings.saved);
    return result;
}
