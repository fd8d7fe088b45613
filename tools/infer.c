/* tutti infer: what saved weights say of each sample. */
#include "base/memory.h"
#include "base/status.h"
#include "formats/json_lines.h"
#include "tools/arrays.h"
#include "tools/commands.h"
#include "tools/saved.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct settings {
    struct saved_options saved;
    int64_t first, count, classes;
    const char *inputs, *outputs, *input, *expect;
};

static enum parsed parse(struct settings *s, int argc, char **argv)
{
    const struct option options[] = {
        SAVED_OPTIONS(s->saved),
        { "first", OPTION_INTEGER, &s->first, "N", "index of the first sample, from 0", 0, 1e15 },
        { "count", OPTION_INTEGER, &s->count, "N", "number of samples (default all that follow)", 1, 1e15 },
        { "json", OPTION_FLAG, &s->saved.json, NULL, "print a JSON object per sample" },
        { "inputs", OPTION_TEXT, &s->inputs, "FILE", "compute the outputs of the arrays in this .npz or .npy file" },
        { "outputs", OPTION_TEXT, &s->outputs, "FILE", "write them to this .npz or .npy file" },
        { "input", OPTION_TEXT, &s->input, "CxHxW", "with --inputs: shape of a sample (default the model's)" },
        { "classes", OPTION_INTEGER, &s->classes, "N", "with --inputs: number of outputs (default the model's)", 1,
            1e6 },
        EXPECT_OPTION(s->expect),
    };
    const struct usage usage = { .command = "infer",
        .summary = "Predicts the class of each sample with saved weights, and prints its index, class and probability",
        .argument = "MODEL",
        .arguments = session_models(),
        .suffix = SESSION_FILES,
        .details = "--inputs and --outputs take any model: the file has an array [samples, ...] for each input, by its "
                   "name; a\n"
                   "model that is no file has \"input\" and \"output\".",
        .options = options,
        .count = sizeof(options) / sizeof(options[0]) };
    return options_parse(&usage, argc, argv, &s->saved.model);
}

/* The most probable class, and the probability that softmax gives it. */
static int64_t most_probable(const float *logits, int64_t classes, double *probability)
{
    int64_t best = 0;
    double sum = 0;
    for (int64_t i = 1; i < classes; i++) {
        if (logits[i] > logits[best]) best = i;
    }
    for (int64_t i = 0; i < classes; i++) sum += exp((double)logits[i] - (double)logits[best]);
    *probability = 1 / sum;
    return best;
}

static tutti_status print_sample(
    const struct settings *s, bool number, int64_t index, const float *outputs, int64_t classes, int32_t label)
{
    double probability = 0;
    int64_t class = number ? 0 : most_probable(outputs, classes, &probability);
    if (!s->saved.json) {
        if (number)
            printf("%lld %.6g\n", (long long)index, outputs[0]);
        else
            printf("%lld %lld %.4f\n", (long long)index, (long long)class, probability);
        return TUTTI_OK;
    }
    struct json_line line;
    json_line_begin(&line, stdout);
    json_line_integer(&line, "index", index);
    if (number) {
        json_line_number(&line, "value", outputs[0]);
    } else {
        json_line_integer(&line, "class", class);
        json_line_number(&line, "probability", probability);
        json_line_integer(&line, "label", label);
    }
    return json_line_end(&line);
}

struct buffers {
    float *inputs, *outputs;
    int64_t *indices;
    int32_t *targets;
};

static tutti_status infer_samples(
    const struct settings *s, struct session *session, struct samples *samples, struct buffers *b, int64_t classes)
{
    bool number = session->model->loss == TUTTI_MSE;
    int64_t end = s->count && s->count < samples->count - s->first ? s->first + s->count : samples->count;
    for (int64_t first = s->first; first < end; first += s->saved.batch) {
        int64_t count = end - first < s->saved.batch ? end - first : s->saved.batch;
        for (int64_t i = 0; i < count; i++) b->indices[i] = first + i;
        const struct session_arrays arrays = session_arrays(session, b->inputs, NULL, b->outputs);
        const tutti_buffer buffers[] = { { .data = b->inputs }, { .data = b->targets } };
        if (samples->source.read(samples->source.user, b->indices, count, buffers, 2))
            return fail(TUTTI_INTERNAL, "cannot read sample %lld and the %lld that follow", (long long)first,
                (long long)count - 1);
        tutti_status status = tutti_infer(session->trainer, arrays.feeds, 1, count, &arrays.fetch, 1);
        if (status != TUTTI_OK) return fail(status, "%s", tutti_message(session->runtime));
        for (int64_t i = 0; i < count && status == TUTTI_OK; i++)
            status = print_sample(s, number, first + i, b->outputs + i * classes, classes, b->targets[i]);
        if (status != TUTTI_OK) return status;
    }
    return TUTTI_OK;
}

static tutti_status allocate_and_infer(
    const struct settings *s, struct session *session, struct samples *samples, int64_t size, int64_t classes)
{
    tutti_status status = TUTTI_NO_MEMORY;
    size_t batch = (size_t)s->saved.batch, inputs, outputs;
    struct buffers b = { 0 };
    if (!size_multiply(batch, (size_t)size, &inputs) || !size_multiply(batch, (size_t)classes, &outputs))
        FAIL(
            TUTTI_INVALID, "--batch %lld does not fit the memory of this machine: lower it", (long long)s->saved.batch);
    b.inputs = memory_new(inputs, sizeof(float));
    b.outputs = memory_new(outputs, sizeof(float));
    b.indices = memory_new(batch, sizeof(int64_t));
    b.targets = memory_new(batch, sizeof(int32_t));
    if (b.inputs && b.outputs && b.indices && b.targets) status = infer_samples(s, session, samples, &b, classes);
done:
    free(b.inputs);
    free(b.outputs);
    free(b.indices);
    free(b.targets);
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
    int result = saved_build("infer", saved, s->input, s->classes, s->inputs, session);
    if (result == EXIT_DONE && s->expect) result = arrays_expect(session, s->expect);
    return result == EXIT_DONE ? arrays_infer(session, saved, s->inputs, s->outputs) : result;
}

static int infer(struct settings *s, struct session *session, struct data *data)
{
    struct samples *part = NULL;
    if (s->inputs || s->outputs) return infer_arrays(s, session);
    if (s->input || s->classes || s->expect)
        return wrong_use("infer", "--input, --classes and --expect can only be used with --inputs");
    int result = saved_open("infer", &s->saved, false, session, data, &part);
    if (result != EXIT_DONE) return result;
    if (s->first >= part->count)
        return wrong_use("infer", "--first %lld is past the last sample: %s has %lld samples, counted from 0",
            (long long)s->first, s->saved.data, (long long)part->count);
    tutti_shape shape = data_shape(data);
    int64_t classes = session->model->loss == TUTTI_MSE ? 1 : data->classes, size = 1;
    for (int i = 0; i < shape.rank; i++) size *= shape.sizes[i];
    tutti_status status = allocate_and_infer(s, session, part, size, classes);
    return status == TUTTI_OK ? EXIT_DONE : work_failed("infer", status, status_message());
}

int command_infer(int argc, char **argv)
{
    struct settings settings = { .saved = SAVED_DEFAULTS };
    struct session session = { 0 };
    struct data data = { 0 };
    enum parsed parsed = parse(&settings, argc, argv);
    if (parsed != PARSED_RUN) return parsed_exit(parsed);
    int result = infer(&settings, &session, &data);
    session_close(&session);
    data_free(&data);
    return result;
}
