/* tutti inspect: what data are, and what a training would make of them. */
#include "tools/inspect.h"

#include "base/memory.h"
#include "base/status.h"
#include "tools/commands.h"
#include "tools/defaults.h"
#include "tools/files.h"
#include "tools/session.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_OPENED = 1000 };

struct inspection {
    const char *path, *page;
    struct user_data_options own;
    bool all, json;
    bool damaged; /* some rows */
    struct data data;
    json_t *notes, *facts;
    char *problem; /* why a training would refuse the data */
};

static const char *const details =
    "DATA is what tutti train --data takes: a folder of images or recordings for each class, images/ and masks/, tar\n"
    "shards, a table, arrays, the files of MNIST or CIFAR, digits or line. With the options of tutti train that the "
    "data\n"
    "are meant for, it says what that training would get.\n"
    "\n"
    "Of pictures and recordings, 1000 files are opened, evenly spaced; --all opens each of them.";

static enum parsed parse(struct inspection *i, int argc, char **argv)
{
    const struct option options[] = {
        { "all", OPTION(i->all), NULL, "list every column and class, and open every file" },
        { "report", OPTION(i->page), "FILE.html",
            "write a page with histograms of columns, bars of classes and samples", .file = OPTION_WRITES },
        { "json", OPTION(i->json), NULL, "print one JSON object" },
        OPTION_HEADING("As for tutti train"),
        OWN_OPTIONS(i->own),
        OWN_TRAINING_OPTIONS(i->own),
        { "seed", OPTION(i->own.data.seed), "N", "seed of the division into parts", 0, 9e15 },
    };
    const struct usage usage = { .command = "inspect",
        .summary = "Says what data are, and what a training would make of them",
        .argument = "DATA",
        .details = details,
        OPTION_ROWS(options) };
    return options_parse(&usage, argc, argv, &i->path);
}

static bool is_kind(const struct inspection *i, const char *kind)
{
    return !strcmp(i->data.info.kind, kind);
}

/* -------------------------------------------------------------------------------------------------- opening ---- */

/* A text for JSON, which is UTF-8: other bytes become question marks. */
static json_t *text_json(const char *text)
{
    if (text_is_utf8(text)) return json_string(text);
    char *copy = memory_copy_text(text);
    for (char *at = copy; at && *at; at++)
        if ((unsigned char)*at >= 0x80) *at = '?';
    json_t *made = copy ? json_string(copy) : NULL;
    free(copy);
    return made;
}

/* What was ignored, and columns that are left out, are among the facts. */
static void keep_note(void *user, const char *line)
{
    struct inspection *i = user;
    const bool ignored = !strncmp(line, "ignored: ", strlen("ignored: "));
    if (!ignored && !strstr(line, "' is left out: ") && !strstr(line, ": it is left out, as an index"))
        json_array_append_new(i->notes, text_json(line));
}

/* Opens the data again, without what is damaged. */
static tutti_status load_sound(struct inspection *i)
{
    struct user_data_options sound = i->own;
    sound.data.skip_damaged = true;
    json_array_clear(i->notes);
    data_free(&i->data);
    return data_load(&i->data, i->path, &sound);
}

/* Where damaged rows stop a training, what the others are can still be said. */
static tutti_status load(struct inspection *i)
{
    i->own.data.note = keep_note;
    i->own.data.user = i;
    i->own.data.codes_above = DEFAULTS_CODES_ABOVE; /* as for the model that is proposed */
    tutti_status status = data_load(&i->data, i->path, &i->own);
    if (i->own.data.skip_damaged) return status;
    if (status == TUTTI_OK && (!i->page || is_kind(i, "table"))) return status;
    if (status == TUTTI_OK) return load_sound(i); /* for the pictures of the page */
    i->problem = memory_copy_text(status_message());
    if (!i->problem) return TUTTI_NO_MEMORY;
    if (load_sound(i) != TUTTI_OK) return fail(status, "%s", i->problem);
    i->damaged = true;
    char *problem = memory_format("%s. --skip-damaged leaves such rows out", i->problem);
    free(i->problem);
    i->problem = problem;
    return problem ? TUTTI_OK : TUTTI_NO_MEMORY;
}

/* ---------------------------------------------------------------------------------------------- suggestions ---- */

static int64_t shorter_side(const struct inspection *i)
{
    const int64_t *sizes = i->data.info.shape.sizes;
    return sizes[1] < sizes[2] ? sizes[1] : sizes[2];
}

/* Networks for large images leave nothing of small ones. */
static bool fits(const struct inspection *i, const struct model *model)
{
    enum { SMALL = 32 };
    const bool segments = !strcmp(model->name, "unet");
    if (i->data.info.tokens_are_classes && !model_is_causal(model)) return false;
    if (i->data.info.tags && !model_gives_tags(model)) return false;
    if (is_kind(i, "speech") || model->takes == MODEL_TAKES_SPEECH)
        return is_kind(i, "speech") && model->takes == MODEL_TAKES_SPEECH;
    if (data_masks(&i->data)) return segments;
    if (segments) return false;
    const bool images = i->data.info.shape.rank == 3, texts = is_kind(i, "text");
    if (texts || model->takes == MODEL_TAKES_TEXT) return texts && model->takes == MODEL_TAKES_TEXT;
    if (model->loss == TUTTI_MSE) return i->data.numbers;
    if (model->takes == MODEL_TAKES_NUMBERS) return !images || strcmp(model->name, "tabular") != 0;
    if (!images) return false;
    const bool resized = is_kind(i, "images");
    return resized || shorter_side(i) >= SMALL || !strcmp(model->name, "lenet") || !strcmp(model->name, "resnet18");
}

static const char *choose_model(const struct inspection *i)
{
    enum { SMALL = 32 };
    const tutti_shape *shape = &i->data.info.shape;
    if (data_masks(&i->data)) return "unet";
    if (is_kind(i, "line")) return "linear";
    if (is_kind(i, "table")) return "tabular";
    if (i->data.info.tokens_are_classes) return "gpt";
    if (is_kind(i, "text")) return "lstm";
    if (is_kind(i, "speech")) return "speech";
    if (shape->rank != 3) return "mlp";
    return is_kind(i, "images") || shape->sizes[0] != 1 || shorter_side(i) > SMALL ? "resnet18" : "lenet";
}

/* A size of images that is near that of the files; "": the model's. */
static void suggest_input(const struct inspection *i, char *text, size_t size)
{
    static const int sides[] = { 32, 64, 128 };
    const json_t *colours = json_object_get(i->facts, "colours"), *first = json_array_get(colours, 0);
    const json_int_t median = json_integer_value(json_object_get(json_object_get(i->facts, "shorter_side"), "median"));
    const bool grey =
        json_array_size(colours) == 1 && !strcmp(json_string_value(json_object_get(first, "name")), "grey");
    text[0] = '\0';
    if (i->own.input || median < 1) return;
    for (size_t k = 0; k < sizeof(sides) / sizeof(*sides) && !text[0]; k++)
        if (median <= sides[k] + sides[k] / 4) snprintf(text, size, "%dx%dx%d", grey ? 1 : 3, sides[k], sides[k]);
    if (!text[0] && grey) snprintf(text, size, "1x224x224");
}

/* Quotes a word for the shell, where it needs it. */
static void append_word(struct text *text, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%";
    if (*word && word[strspn(word, plain)] == '\0') {
        text_append(text, " %s", word);
        return;
    }
    text_append(text, " '");
    for (const char *at = word; *at; at++) {
        if (*at == '\'')
            text_append(text, "'\\''");
        else
            text_append(text, "%c", *at);
    }
    text_append(text, "'");
}

static void append_option(struct text *text, const char *option, const char *value)
{
    if (!value || !*value) return;
    text_append(text, " --%s", option);
    append_word(text, value);
}

/* Rows or files are damaged, and the rest can train. */
static bool needs_skipping(const struct inspection *i)
{
    return i->damaged || json_integer_value(json_object_get(json_object_get(i->facts, "opened"), "damaged")) > 0;
}

/* Finds out whether a training that leaves out the damaged files has some of each class. */
static tutti_status check_sound(struct inspection *i)
{
    if (i->problem || i->damaged || data_is_unlabelled(&i->data) || !needs_skipping(i)) return TUTTI_OK;
    if (!i->own.data.skip_damaged && !i->page) { /* else it is open so */
        const tutti_status status = load_sound(i);
        if (status != TUTTI_OK) return status;
    }
    if (data_check_first(&i->data, &i->data.train) == TUTTI_OK) return TUTTI_OK;
    i->problem = memory_copy_text(status_message());
    return i->problem ? TUTTI_OK : TUTTI_NO_MEMORY;
}

/* The command that trains on these data with these options. */
static char *suggest(const struct inspection *i)
{
    char input[32];
    const tutti_data_options *data = &i->own.data;
    struct text text = { 0 };
    if (data_is_unlabelled(&i->data)) {
        text_append(&text, "tutti infer MODEL --weights FILE.safetensors");
        append_word(&text, i->path);
        return text_take(&text);
    }
    suggest_input(i, input, sizeof(input));
    text_append(&text, "tutti train %s --data", choose_model(i));
    append_word(&text, i->path);
    append_option(&text, "text", data->text);
    append_option(&text, "target", data->target);
    append_option(&text, "tokenizer", data->tokenizer);
    if (data->length > 0) text_append(&text, " --length %lld", (long long)data->length);
    append_option(&text, "drop", data->drop);
    append_option(&text, "only", data->only);
    append_option(&text, "id", data->row_names);
    append_option(&text, "missing", i->own.missing);
    append_option(&text, "normalise", data->normalise);
    append_option(&text, "input", i->own.input ? i->own.input : input);
    append_option(&text, "augment", data->augment);
    if (data->split > 0) text_append(&text, " --split %g", data->split);
    if (data->seed > 0) text_append(&text, " --seed %llu", (unsigned long long)data->seed);
    if (data->skip_damaged || needs_skipping(i)) text_append(&text, " --skip-damaged");
    if (data->oversample) text_append(&text, " --oversample");
    return text_take(&text);
}

/* The models that take the data, the suggested one first. */
static json_t *list_models(const struct inspection *i)
{
    const char *first = choose_model(i);
    json_t *models = json_array();
    if (data_is_unlabelled(&i->data)) return models;
    json_array_append_new(models, json_string(first));
    for (int m = 0; model_at(m); m++)
        if (fits(i, model_at(m)) && strcmp(model_at(m)->name, first))
            json_array_append_new(models, json_string(model_at(m)->name));
    return models;
}

/* Says, too, where a training would refuse data that can be read. */
static tutti_status gather(struct inspection *i)
{
    char *text = tutti_data_inspect(i->data.opened, i->all ? 0 : MOST_OPENED), *next = NULL;
    if (!text) return fail(TUTTI_INTERNAL, "%s", tutti_message(NULL));
    i->facts = json_loads(text, 0, NULL);
    free(text);
    if (!i->problem && !data_is_unlabelled(&i->data) && data_check_training(&i->data, i->path) != TUTTI_OK)
        i->problem = memory_copy_text(status_message());
    const tutti_status status = check_sound(i);
    if (status != TUTTI_OK) return status;
    int failed = json_object_set_new(i->facts, "path", text_json(i->path));
    failed |= json_object_set(i->facts, "notes", i->notes);
    if (i->problem) failed |= json_object_set_new(i->facts, "problem", text_json(i->problem));
    if (i->facts && (!i->problem || i->damaged)) next = suggest(i);
    if (next) failed |= json_object_set_new(i->facts, "next", text_json(next));
    failed |= json_object_set_new(i->facts, "models", list_models(i));
    free(next);
    return failed ? fail(TUTTI_NO_MEMORY, "there is no memory for what is to be said") : TUTTI_OK;
}

static tutti_status inspect(struct inspection *i)
{
    tutti_status status = load(i);
    if (status == TUTTI_OK) status = gather(i);
    if (status == TUTTI_OK && i->page) status = inspect_page(i->facts, &i->data, i->page, i->all);
    if (status != TUTTI_OK) return status;
    if (!i->json) inspect_print(i->facts, i->all);
    if (i->json && (json_dumpf(i->facts, stdout, JSON_REAL_PRECISION(12)) != 0 || putchar('\n') == EOF))
        return fail(TUTTI_FILE, "the object cannot be written");
    if (i->page) fprintf(stderr, "wrote %s\n", i->page);
    return TUTTI_OK;
}

int command_inspect(int argc, char **argv)
{
    struct inspection i = { .notes = NULL };
    const enum parsed parsed = parse(&i, argc, argv);
    if (parsed != PARSED_RUN) return parsed_exit(parsed);
    const int checked = files_check_output("inspect", "report", i.page);
    if (checked != EXIT_DONE) return checked;
    i.notes = json_array();
    const tutti_status status = inspect(&i);
    json_decref(i.notes);
    json_decref(i.facts);
    free(i.problem);
    data_free(&i.data);
    return status == TUTTI_OK ? EXIT_DONE : work_failed("inspect", status, status_message());
}
