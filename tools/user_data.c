#include "tools/user_data.h"

#include "base/mel_scale.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"
#include "formats/json_shape.h"
#include "tools/shape.h"
#include "tutti_onnx.h"
#include "tutti_text.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *const own_normalisations[] = { "imagenet", "measured", "none", NULL };
const char *const own_missing[] = { "fill", "refuse", NULL };
const char *const own_layouts[] = { "nchw", "nhwc", NULL };

static void print_note(void *user, const char *line)
{
    (void)user;
    fprintf(stderr, "%s\n", line);
}

/* Reads CxHxW of --input, else takes the given shape. */
static tutti_status read_size(const struct user_data_options *own, tutti_data_options *options)
{
    tutti_shape shape = own->shape;
    bool good = !own->input || (shape_from_text(own->input, &shape) && shape.rank == 3);
    for (int i = 0; own->input && i < shape.rank; i++) good = good && shape.sizes[i] == (int)shape.sizes[i];
    if (!good) return fail(TUTTI_INVALID, "--input needs CxHxW for images, such as 3x224x224, not \"%s\"", own->input);
    if (shape.rank == 3) {
        options->channels = (int)shape.sizes[0];
        options->height = (int)shape.sizes[1];
        options->width = (int)shape.sizes[2];
    }
    return TUTTI_OK;
}

tutti_status user_data_open(
    const char *where, const struct user_data_options *own, tutti_data **data, tutti_data_info *info)
{
    tutti_data_options options = own->data;
    if (!options.note && !own->quiet) options.note = print_note;
    options.fill_missing = !own->missing || !strcmp(own->missing, "fill");
    if (own->cache_given) options.cache = own->cache_mib ? own->cache_mib << 20 : -1;
    const tutti_status status = read_size(own, &options);
    if (status != TUTTI_OK) return status;
    *data = tutti_data_open(where, &options);
    if (!*data)
        return fail(TUTTI_FILE, "%s%s", tutti_message(NULL), own->defaulted ? "; name your data by --data" : "");
    *info = (tutti_data_info) { .size = sizeof *info };
    const tutti_status described = tutti_data_describe(*data, info);
    if (described != TUTTI_OK || !own->input || strcmp(info->kind, "table")) return described;
    return fail(
        TUTTI_INVALID, "--input %s is the size of images, but %s is a table: leave --input out", own->input, where);
}

/* --------------------------------------------------------------------------------------------------- saved ---- */

static bool read_classes(const json_t *list, struct user_data_saved *saved)
{
    const size_t count = json_array_size(list);
    saved->classes = memory_new(count + 1, sizeof(*saved->classes));
    if (!saved->classes || count > INT32_MAX) return false;
    for (size_t i = 0; i < count; i++) {
        const char *name = json_string_value(json_array_get(list, i));
        if (!name || !(saved->classes[i] = memory_copy_text(name))) return false;
        saved->class_count++;
    }
    return true;
}

static bool read_object(const json_t *object, struct user_data_saved *saved)
{
    const json_int_t rate = json_integer_value(json_object_get(object, "rate"));
    if (rate < 0 || rate > INT32_MAX) return false;
    saved->rate = (int)rate;
    saved->target_count = (int)json_array_size(json_object_get(object, "target_mean"));
    const char *kind = json_string_value(json_object_get(object, "kind"));
    if (kind && !(saved->kind = memory_copy_text(kind))) return false;
    return json_shape_read(json_object_get(object, "shape"), &saved->shape) &&
        read_classes(json_object_get(object, "classes"), saved);
}

char *user_data_saved_text(const char *weights)
{
    return text_ends_with(weights, ".onnx") ? tutti_onnx_metadata(weights, "tutti.data")
                                            : tutti_weights_metadata(weights, "data");
}

tutti_status user_data_saved_read(const char *weights, struct user_data_saved **made)
{
    char *text = user_data_saved_text(weights);
    *made = NULL;
    if (!text) return TUTTI_OK; /* a file that cannot be read fails when it is loaded */
    json_t *object = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    struct user_data_saved *saved = memory_new(1, sizeof(*saved));
    const bool good = saved && json_is_object(object) && read_object(object, saved);
    json_decref(object);
    if (saved)
        saved->text = text;
    else
        free(text);
    *made = saved;
    if (good) return TUTTI_OK;
    user_data_saved_free(saved);
    *made = NULL;
    return fail(TUTTI_FORMAT, "%s: what it says of its data is damaged", weights);
}

tutti_status user_data_saved_read_checkpoint(const char *name, struct user_data_saved **saved)
{
    char *weights = memory_format("%s.safetensors", name);
    const tutti_status status = weights ? user_data_saved_read(weights, saved) : TUTTI_NO_MEMORY;
    free(weights);
    return status;
}

void user_data_saved_free(struct user_data_saved *saved)
{
    if (!saved) return;
    for (int i = 0; i < saved->class_count; i++) free(saved->classes[i]);
    free(saved->classes);
    free(saved->text);
    free(saved->kind);
    free(saved);
}

void user_data_saved_apply(const struct user_data_saved *saved, struct user_data_options *options)
{
    if (!saved) return;
    if (saved->shape.rank == 3) options->shape = saved->shape;
    options->data.description = saved->text;
}

tutti_status user_data_saved_check(
    const struct user_data_saved *saved, const char *weights, const tutti_data_info *info)
{
    if (!saved || !info->missing_class) return TUTTI_OK;
    return fail(TUTTI_MISMATCH, "class '%s' of %s is missing in these data: continue with the data that it trained on",
        text_printable(info->missing_class).text, weights);
}

/* The name of an input column, or NULL. */
static const char *column_at(const json_t *object, size_t at)
{
    return json_string_value(json_array_get(json_object_get(object, "columns"), at));
}

void user_data_warn_columns(const char *weights, const tutti_data *data)
{
    char *before = tutti_weights_metadata(weights, "data"), *now = before ? tutti_data_json(data) : NULL;
    json_t *saved = now ? json_loads(before, 0, NULL) : NULL, *present = now ? json_loads(now, 0, NULL) : NULL;
    size_t at = 0;
    const char *first, *second;
    do {
        first = column_at(saved, at);
        second = column_at(present, at);
        at++;
    } while (first && second && !strcmp(first, second));
    if (at > 1 ? first || second : first && second)
        fprintf(stderr, "warning: input column %zu is %s%s%s, but in the training of %s it was %s%s%s\n", at,
            second ? "'" : "", second ? second : "none", second ? "'" : "", weights, first ? "'" : "",
            first ? first : "none", first ? "'" : "");
    json_decref(saved);
    json_decref(present);
    free(before);
    free(now);
}

/* A tokenizer that is learned now has other ids than the one that weights were trained with. */
static tutti_status refuse_learned(const char *weights, const char *given)
{
    static const char *const kinds[] = { "words", "wordpiece", "bpe", "characters" };
    for (size_t i = 0; given && i < sizeof(kinds) / sizeof(*kinds); i++)
        if (!strcmp(given, kinds[i]))
            return fail(TUTTI_MISMATCH,
                "--tokenizer %s learns a new one, but %s needs the one that it was trained with: name its file, or "
                "leave "
                "the option out",
                given, weights);
    return TUTTI_OK;
}

/* Whether --tokenizer opens the same one as the JSON describes. */
static tutti_status check_tokenizer(const char *weights, const char *given, const char *json)
{
    tutti_tokenizer *tokenizer = tutti_tokenizer_open(given);
    char *own = tokenizer ? tutti_tokenizer_json(tokenizer) : NULL;
    tutti_status status = TUTTI_OK;
    if (!own)
        status = fail(tutti_last_status(), "%s", tutti_message(NULL));
    else if (strcmp(own, json) != 0)
        status = fail(
            TUTTI_MISMATCH, "--tokenizer %s is not the one that %s was trained with: leave it out", given, weights);
    free(own);
    tutti_tokenizer_close(tokenizer);
    return status;
}

tutti_status user_data_take_tokenizer(const char *weights, struct user_data_options *options, char **json)
{
    char *text = user_data_saved_text(weights);
    json_t *object = text ? json_loads(text, 0, NULL) : NULL;
    const char *saved = json_string_value(json_object_get(json_object_get(object, "text"), "tokenizer"));
    const char *given = options->data.tokenizer;
    tutti_status status = TUTTI_OK;
    *json = saved ? memory_copy_text(saved) : NULL;
    json_decref(object);
    free(text);
    if (saved && !*json) return fail(TUTTI_NO_MEMORY, "no memory for a tokenizer");
    if (!*json && !given && access(weights, R_OK) == 0) /* another file fails when it is loaded */
        status = fail(TUTTI_MISMATCH,
            "%s does not say which tokenizer its network was trained with: name it by --tokenizer", weights);
    if (status == TUTTI_OK) status = refuse_learned(weights, given);
    if (status == TUTTI_OK && *json && given) status = check_tokenizer(weights, given, *json);
    if (*json) options->data.tokenizer = *json;
    return status;
}

void user_data_keep_tokenizer(struct user_data_options *options)
{
    if (!options->data.tokenizer && !options->data.description) options->data.tokenizer = "bytes";
}

void user_data_warn_texts(const struct user_data_saved *saved)
{
    json_t *object = saved ? json_loads(saved->text, 0, NULL) : NULL, *column;
    size_t i;
    json_array_foreach(json_object_get(object, "prepared"), i, column)
    {
        const char *name = json_string_value(json_object_get(column, "name"));
        if (name && json_is_true(json_object_get(column, "controls")))
            fprintf(stderr,
                "warning: texts of column '%s' had tabs or ends of lines: the file knows them with blanks instead, so "
                "give it blanks\n",
                text_printable(name).text);
    }
    json_decref(object);
}

void user_data_report_waveform(const struct user_data_saved *saved, const tutti_shape *shape)
{
    if (!saved || !saved->kind || strcmp(saved->kind, "recordings") != 0 || shape->rank != 3) return;
    const int hop = mel_window_length(saved->rate) / MEL_WINDOW_HOPS;
    fprintf(stderr,
        "the file takes %lld samples of one channel, %d a second, from -1 to 1: decode, resample and cut recordings "
        "before (docs/deploy.md)\n",
        (long long)(shape->sizes[2] - 1) * hop, saved->rate);
}
