/* tutti infer: what saved weights say of each sample. */
#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"
#include "formats/csv.h"
#include "formats/standard_input.h"
#include "tools/arrays.h"
#include "tools/commands.h"
#include "tools/files.h"
#include "tools/infer_samples.h"
#include "tools/inputs.h"
#include "tools/overwrite.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct settings {
    struct saved_options saved;
    struct infer_request request;
    int64_t classes;
    const char *inputs, *outputs, *expect, *text;
    bool prepare;
    bool skips; /* damaged samples are left out, as was asked for */
    int files;  /* arguments after MODEL */
};

static enum parsed parse(struct settings *s, int argc, char **argv)
{
    const struct option options[] = {
        SAVED_OPTIONS(s->saved),
        { "first", OPTION(s->request.first), "N", "index of the first sample, from 0", 0, 1e15 },
        { "count", OPTION(s->request.count), "N", "number of samples (default all that follow)", 1, 1e15 },
        { "text-of", OPTION(s->text), "TEXT", "predict this text, of a network that was trained on texts" },
        { "output", OPTION(s->request.predictions.path), "FILE",
            "write a table of predictions, .csv or .tsv: the columns of a table or names of files, and probabilities",
            .file = OPTION_WRITES },
        { "json", OPTION(s->saved.json), NULL, "print a JSON object per sample" },
        { "inputs", OPTION(s->inputs), "FILE", "compute the outputs of the arrays in this .npz or .npy file",
            .file = OPTION_READS },
        { "outputs", OPTION(s->outputs), "FILE", "write them to this .npz or .npy file", .file = OPTION_WRITES },
        { "classes", OPTION(s->classes), "N", "with --inputs: number of outputs (default the model's)", 1, 1e6 },
        { "prepare", OPTION(s->prepare), NULL,
            "with --inputs: prepare them as in training, and write numbers in the units of the data" },
        EXPECT_OPTION(s->expect),
        SAVED_MORE_OPTIONS(s->saved),
    };
    const struct usage usage = { .command = "infer",
        .summary = "Predicts the class of each file, row or sample with saved weights, or its numbers",
        MODEL_ARGUMENT,
        .from_options = { "weights" },
        .more = "FILE",
        .more_count = &s->files,
        .details =
            "FILE is a picture, a recording, a text or a table as the network was trained on, a folder with such "
            "files\n"
            "in it or below it, or -: names of files are read from standard input, one a line. All rows of a table\n"
            "are predicted; it needs no column for the target. Files and rows that cannot be read are named, the\n"
            "others predicted, and the exit status is 3. With --output, predictions are not printed, unless by\n"
            "--json. A network that gives words tags prints a word, a tab and its tag on each line.\n"
            "--inputs and --outputs take any model: the file has an array [samples, ...] for each input, by its "
            "name; a\n"
            "model that is not a file has \"input\" and \"output\".",
        OPTION_ROWS(options) };
    return options_parse(&usage, argc, argv, &s->saved.model);
}

static int infer_arrays(const struct settings *s, struct session *session)
{
    const struct saved_options *saved = &s->saved;
    if (!s->inputs || !s->outputs)
        return wrong_use(
            "infer", "--%s is missing: --inputs and --outputs go together", s->inputs ? "outputs" : "inputs");
    if (s->expect && session_model(saved->model)->build) return expects_a_file("infer");
    if (saved->data || s->request.first || s->request.count || saved->json || strcmp(saved->part, "test"))
        return wrong_use("infer", "--data, --part, --first, --count and --json cannot be used with --inputs");
    int result = files_check_output("infer", "outputs", s->outputs);
    if (result == EXIT_DONE) result = saved_build("infer", saved, saved->own.input, s->classes, s->inputs, session);
    if (result == EXIT_DONE && s->expect) result = arrays_expect(session, s->expect);
    return result == EXIT_DONE ? arrays_infer(session, saved, s->inputs, s->outputs, s->prepare) : result;
}

/* `inputs` has the file; NULL: there are no others. */
static int infer_part(
    struct settings *s, struct session *session, const struct data *data, struct samples *part, struct inputs *inputs)
{
    struct infer_request *r = &s->request;
    if (r->first >= part->count)
        return wrong_use("infer", "--first %lld is past the last sample: %s has %lld samples, counted from 0",
            (long long)r->first, s->saved.data, (long long)part->count);
    r->saved = &s->saved;
    r->alone = s->text || (s->files && strcmp(data->info.kind, "table") != 0 && !inputs_is_text_table(s->saved.data));
    r->file = r->predictions.several ? r->table : NULL;
    const tutti_status status = infer_samples(r, session, data, part);
    r->before += part->count;
    if (inputs && status == TUTTI_MISMATCH) { /* other columns than those of the table before */
        inputs_leave_out(inputs);
        return EXIT_DONE;
    }
    return status == TUTTI_OK ? EXIT_DONE : work_failed("infer", status, status_message());
}

/* What the network was trained on. */
static enum inputs_kind kind_of(const struct settings *s)
{
    const struct user_data_saved *known = s->saved.known;
    if (!known || !known->kind) return INPUTS_ANY;
    if (!strcmp(known->kind, "table")) return INPUTS_TABLES;
    if (!strcmp(known->kind, "text")) return INPUTS_TEXTS;
    if (!strcmp(known->kind, "speech")) return INPUTS_RECORDINGS;
    return !strcmp(known->kind, "recordings") ? INPUTS_RECORDINGS : INPUTS_PICTURES;
}

/* ---------------------------------------------------------------------------------------------------- files ---- */

/* Refuses arrays, and tables where the network was not trained on one: they are data sets. */
static int check_files(const struct settings *s, char **files)
{
    static const char *const ends[] = { ".npy", ".npz", ".csv", ".tsv", ".csv.gz", ".tsv.gz" };
    const int count =
        kind_of(s) == INPUTS_TABLES || kind_of(s) == INPUTS_TEXTS ? 2 : (int)(sizeof(ends) / sizeof(*ends));
    for (int i = 0; i < s->files; i++)
        for (int k = 0; k < count; k++)
            if (text_has_extension(files[i], ends[k]))
                return wrong_use("infer",
                    "\"%s\" is not a picture, recording or folder of them: use --data for a table or a data set, and "
                    "--inputs with --outputs for arrays",
                    files[i]);
    return EXIT_DONE;
}

static tutti_status list_files(const struct settings *s, char **files, struct inputs *inputs)
{
    const struct user_data_saved *known = s->saved.known;
    tutti_status status = TUTTI_OK;
    const bool together = known && (known->shape.rank == 3 || (known->kind && !strcmp(known->kind, "speech")));
    *inputs = (struct inputs) { .command = "infer", .kind = kind_of(s), .each = !together };
    for (int i = 0; i < s->files && status == TUTTI_OK; i++) status = inputs_add(inputs, files[i]);
    return status;
}

/* Loads the files from `first` on that can be opened together. Returns how many these are. Each recording is by itself
 * without weights that record their data: its length gives the size of its spectrogram. */
static size_t load_files(struct settings *s, const struct inputs *inputs, size_t first, const char **paths,
    struct data *data, struct samples **part, tutti_status *status)
{
    tutti_data_options *own = &s->saved.own.data;
    const char *path = inputs->list[first].path;
    const bool table = inputs->kind == INPUTS_TABLES || (inputs->kind == INPUTS_TEXTS && inputs_is_text_table(path));
    size_t count = 0;
    while (first + count < inputs->count && inputs->list[first + count].sample) {
        paths[count] = inputs->list[first + count].path;
        count++;
    }
    own->files = count ? paths : NULL;
    own->file_count = (int64_t)count;
    own->ignore_targets = own->skip_damaged = table; /* all rows are predicted but those that cannot be read */
    s->saved.own.cache_given = true;                 /* with 0: nothing is read twice */
    s->saved.own.cache_mib = 0;
    if (count < 2 && !table) own->threads = 1;
    s->saved.data = s->request.table = path;
    if (!table || !csv_has_name(path)) s->request.table = NULL;
    data_free(data);
    *status = saved_load_data(&s->saved, data, part);
    return count ? count : 1;
}

/* Checks that data fit the network, which was compiled for others. */
static tutti_status check_size(const struct settings *s, const struct session *session, const struct data *data)
{
    const tutti_shape *shape = &session->shape, *found = &data->info.shape;
    bool same = shape->rank == found->rank && !session->pixels == !data_pixels(data);
    for (int i = 0; same && i < shape->rank; i++) same = shape->sizes[i] == found->sizes[i];
    if (same || !session->trainer) return TUTTI_OK;
    return fail(
        TUTTI_MISMATCH, "%s has samples of another size than the file before: infer it by itself", s->saved.data);
}

/* Files that cannot be opened keep their place in --output; a table that cannot has no rows. */
static tutti_status keep_place(struct settings *s, const struct inputs *inputs, size_t first, size_t count)
{
    tutti_status status = TUTTI_OK;
    if (inputs->kind == INPUTS_TABLES) return TUTTI_OK;
    s->request.before += (int64_t)count;
    for (size_t i = first; i < first + count && status == TUTTI_OK; i++)
        status = predictions_add_bad(&s->request.predictions, inputs->list[i].path);
    return status;
}

/* Infers the files from `first` on that can be opened together; *count is how many these are. */
static int infer_some(struct settings *s, struct session *session, struct data *data, struct inputs *inputs,
    size_t first, const char **paths, size_t *count)
{
    struct samples *part = NULL;
    tutti_status status = TUTTI_OK;
    int result = EXIT_DONE;
    bool bad = inputs->list[first].bad;
    *count = 1;
    if (!bad) {
        *count = load_files(s, inputs, first, paths, data, &part, &status);
        if (status == TUTTI_OK) status = check_size(s, session, data);
        bad = status != TUTTI_OK && status != TUTTI_NO_MEMORY;
        if (bad) inputs_leave_out(inputs);
    }
    if (bad) status = keep_place(s, inputs, first, *count);
    if (status != TUTTI_OK) return work_failed("infer", status, status_message());
    if (bad) return EXIT_DONE;
    if (!session->trainer)
        result =
            saved_compile("infer", &s->saved, false, session, data, *count == inputs->count ? part->count : INT64_MAX);
    if (result == EXIT_DONE) result = infer_part(s, session, data, part, inputs);
    if (s->saved.own.data.ignore_targets || inputs->kind == INPUTS_TEXTS) inputs->bad += data->info.damaged;
    return result;
}

static int infer_list(struct settings *s, struct session *session, struct data *data, struct inputs *inputs)
{
    int result = EXIT_DONE;
    const char **paths = memory_new(inputs->count + 1, sizeof *paths);
    if (!paths) return work_failed("infer", TUTTI_NO_MEMORY, status_message());
    s->request.predictions.several = inputs->kind == INPUTS_TABLES && inputs->count > 1;
    for (size_t first = 0, count; first < inputs->count && result == EXIT_DONE; first += count)
        result = infer_some(s, session, data, inputs, first, paths, &count);
    free(paths);
    return result;
}

/* Infers all files, and tells how many are bad. */
static int infer_files(struct settings *s, struct session *session, struct data *data, char **files)
{
    struct inputs inputs = { 0 };
    int result = saved_begin("infer", &s->saved, false);
    if (result == EXIT_DONE) result = check_files(s, files);
    if (result != EXIT_DONE) return result;
    const tutti_status status = list_files(s, files, &inputs);
    if (status != TUTTI_OK) result = work_failed("infer", status, status_message());
    for (size_t i = 0; i < inputs.count && result == EXIT_DONE; i++)
        result = overwrite_check_input("infer", inputs.list[i].path);
    if (result == EXIT_DONE && inputs.count == 0 && inputs.bad == 0)
        result = work_failed("infer", TUTTI_INVALID, "there is nothing to predict: the list of files is empty");
    if (result == EXIT_DONE) result = infer_list(s, session, data, &inputs);
    s->request.bad += inputs.bad;
    inputs_free(&inputs);
    return result;
}

/* ------------------------------------------------------------------------------------------------------ all ---- */

/* Returns the table that all samples of a part are rows of, or NULL. Rows of a table follow each other. */
static const char *only_table(const struct data *data, const struct samples *part)
{
    const char *first = tutti_data_file(data->opened, part->part, 0);
    const char *last = tutti_data_file(data->opened, part->part, part->count - 1);
    return first == last ? first : NULL;
}

/* The tables that a part has rows of: their columns are those of --output. */
static tutti_status add_tables(struct predictions *predictions, const struct data *data, const struct samples *part)
{
    tutti_status status = TUTTI_OK;
    const char *last = NULL;
    for (int64_t i = 0; i < part->count && status == TUTTI_OK; i++) {
        const char *table = tutti_data_file(data->opened, part->part, i);
        if (table != last) status = predictions_add_columns(predictions, table, data->info.column_names);
        last = table;
    }
    return status;
}

/* The library reads standard input for the rows, and --output for their fields: it becomes a file that both read. */
static tutti_status keep_input(const struct settings *s)
{
    int kept;
    if (!s->request.predictions.path || !s->saved.data || strcmp(s->saved.data, "-") != 0) return TUTTI_OK;
    const tutti_status status = standard_input_open(&kept);
    if (status != TUTTI_OK) return status;
    const bool set = dup2(kept, STDIN_FILENO) >= 0;
    (void)close(kept);
    return set ? TUTTI_OK : fail(TUTTI_FILE, "standard input cannot be kept: %s", strerror(errno));
}

static int infer_data(struct settings *s, struct session *session, struct data *data)
{
    struct samples *part = NULL;
    tutti_status status = keep_input(s);
    if (status != TUTTI_OK) return work_failed("infer", status, status_message());
    if (s->text) {
        s->saved.own.data.texts = &s->text;
        s->saved.own.data.text_count = 1;
        s->saved.data = "--text-of";
    }
    const int result = saved_open("infer", &s->saved, false, session, data, &part);
    if (result != EXIT_DONE) return result;
    s->request.table = only_table(data, part);
    if (!s->request.table) status = add_tables(&s->request.predictions, data, part);
    if (status != TUTTI_OK) return work_failed("infer", status, status_message());
    return infer_part(s, session, data, part, NULL);
}

/* Says how it ended: all predicted, some, or nothing. */
static int finish(struct settings *s, int result)
{
    struct infer_request *r = &s->request;
    if (result != EXIT_DONE) return result;
    const tutti_status status = r->done > 0 ? predictions_commit(&r->predictions) : TUTTI_OK;
    if (status != TUTTI_OK) return work_failed("infer", status, status_message());
    if (r->predictions.path && r->done > 0)
        fprintf(stderr, "%s: %lld prediction%s\n", r->predictions.path, (long long)r->done, r->done == 1 ? "" : "s");
    if (r->bad == 0 || (s->skips && r->done > 0)) return EXIT_DONE;
    if (r->bad > 1)
        fprintf(
            stderr, "tutti infer: %lld could not be predicted, and %lld were\n", (long long)r->bad, (long long)r->done);
    return r->done == 0 ? EXIT_WORK_FAILED : EXIT_PARTLY_DONE;
}

static int infer(struct settings *s, struct session *session, struct data *data, char **files)
{
    const struct predictions *predictions = &s->request.predictions;
    if (s->files && (s->saved.data || s->inputs || s->outputs || s->saved.part_given))
        return wrong_use("infer", "\"%s\" cannot be used with --data, --part, --inputs and --outputs", files[0]);
    if (s->text && (s->files || s->saved.data || s->inputs || s->outputs || predictions->path))
        return wrong_use("infer", "--text-of is one text: leave out FILE, --data, --inputs, --outputs and --output");
    if ((s->inputs || s->outputs) && predictions->path)
        return wrong_use("infer", "--output is for samples of data: --inputs writes to --outputs");
    if (s->inputs || s->outputs) return infer_arrays(s, session);
    if (s->classes || s->expect || s->prepare)
        return wrong_use("infer", "--classes, --prepare and --expect can only be used with --inputs");
    if (s->saved.network.facts.tags && predictions->path)
        return wrong_use("infer",
            "--output is a table of samples, but %s gives each word a tag: print them to a file by > FILE",
            s->saved.model);
    if (predictions->path && session_model(s->saved.model)->takes == MODEL_TAKES_SPEECH)
        return wrong_use("infer",
            "--output is a table of classes or numbers, but %s gives transcripts: print them to "
            "a file by > FILE, or with --json",
            s->saved.model);
    if (s->saved.network.facts.tokens_are_classes)
        return wrong_use("infer",
            "%s is a language model, which predicts next tokens: tutti generate writes texts with it, "
            "and tutti eval measures it",
            s->saved.model);
    s->skips = s->saved.own.data.skip_damaged;
    const int result = predictions_check(predictions, "infer");
    if (result != EXIT_DONE) return result;
    return finish(s, s->files ? infer_files(s, session, data, files) : infer_data(s, session, data));
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
    predictions_free(&settings.request.predictions);
    session_close(&session);
    data_free(&data);
    saved_free(&settings.saved);
    return result;
}
