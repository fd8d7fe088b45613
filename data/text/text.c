/* Texts: samples are the tokens of each, targets a class, a number or the next tokens. */
#include "data/text/texts.h"

#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"
#include "formats/conll.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_LENGTH = 1 << 20 };

/* -------------------------------------------------------------------------------------------------- samples ---- */

static int64_t length_of(const struct collection *collection, int64_t index)
{
    const struct texts *texts = (const struct texts *)collection;
    return texts->stream ? texts->most : texts->samples[index].count;
}

static void write_target(const struct texts *texts, int64_t index, int64_t length, void *target)
{
    if (texts->stream) {
        token_store_read(&texts->tokens, text_stream_block(texts, index) + 1, texts->most, target);
    } else if (texts->targets.tags.on) {
        tags_read(texts, index, length, target);
    } else if (texts->collection.labels) {
        memcpy(target, &texts->collection.labels[index], sizeof(int32_t));
    } else {
        const float number = standards_apply(&texts->of_targets, 0, texts->targets.numbers[index]);
        memcpy(target, &number, sizeof number);
    }
}

static tutti_status read_tokens(
    struct collection *collection, int64_t index, int64_t length, int32_t *ids, int32_t *types, void *target)
{
    const struct texts *texts = (const struct texts *)collection;
    const int64_t count = length_of(collection, index);
    const int64_t begins = texts->stream ? text_stream_block(texts, index) : texts->samples[index].begins;
    token_store_read(&texts->tokens, begins, count, ids);
    for (int64_t i = count; i < length; i++) ids[i] = -1;
    for (int64_t i = 0; types && i < length; i++)
        types[i] = !texts->stream && i >= texts->samples[index].first && i < count;
    if (target) write_target(texts, index, length, target);
    return TUTTI_OK;
}

static tutti_status read_whole(
    struct collection *collection, int64_t index, const struct draw *draw, void *sample, void *target)
{
    (void)draw;
    return read_tokens(collection, index, collection->info.length, sample, NULL, target);
}

static const char *file_of(const struct collection *collection, int64_t index)
{
    return collection->rows ? texts_path((const struct texts *)collection, index) : NULL;
}

static tutti_status fit(struct collection *collection, const signed char *part)
{
    struct texts *texts = (struct texts *)collection;
    struct statistics measured = { 0 };
    if (texts->stream || texts->targets.tags.on || collection->labels || !texts->of_targets.measure) return TUTTI_OK;
    for (int64_t i = 0; i < collection->samples; i++)
        if (part[i] == TUTTI_DATA_TRAIN) statistics_add(&measured, texts->targets.numbers[i]);
    standards_end(&texts->of_targets, &measured);
    return TUTTI_OK;
}

/* -------------------------------------------------------------------------------------------------- opening ---- */

static void free_queue(struct text_queue *queue)
{
    thread_pool_free(queue->pool);
    free(queue->bytes);
    free(queue->items);
    *queue = (struct text_queue) { 0 };
}

static void free_texts(struct collection *collection)
{
    struct texts *texts = (struct texts *)collection;
    for (int i = 0; i < texts->file_count; i++) free(texts->files[i].path);
    free_queue(&texts->queue);
    tutti_tokenizer_close(texts->tokenizer);
    table_classes_free(&texts->targets.classes);
    tags_free(&texts->targets.tags);
    standards_free(&texts->of_targets);
    names_free(&texts->names);
    free(texts->tokenizer_json);
    free(texts->columns[0]);
    free(texts->columns[1]);
    free(texts->target);
    free(texts->tokens.ids);
    free(texts->samples);
    free(texts->targets.numbers);
    text_free(&texts->counts.listed);
    free(texts->class_names);
    free(texts->rows);
    free(texts->name_at);
    free(collection->parts);
    free(collection->labels);
    free(texts);
}

/* Reads "a" or "a,b", and the target without ":class" or ":number". */
static tutti_status read_columns(struct texts *texts)
{
    const tutti_data_options *options = texts->options;
    const char *comma = options->text ? strchr(options->text, ',') : NULL;
    const char *colon = options->target ? strrchr(options->target, ':') : NULL;
    if (colon && strcmp(colon, ":class") != 0 && strcmp(colon, ":number") != 0) colon = NULL;
    if (comma && (comma == options->text || !comma[1] || strchr(comma + 1, ',')))
        return fail(TUTTI_INVALID, "--text takes one column, or two as \"a,b\", not \"%s\"", options->text);
    if (options->target)
        texts->target = memory_format(
            "%.*s", (int)(colon ? colon - options->target : (ptrdiff_t)strlen(options->target)), options->target);
    if (options->target && !texts->target) return TUTTI_NO_MEMORY;
    if (!options->text) return TUTTI_OK;
    texts->columns[0] =
        memory_format("%.*s", (int)(comma ? comma - options->text : (ptrdiff_t)strlen(options->text)), options->text);
    if (comma) texts->columns[1] = memory_copy_text(comma + 1);
    texts->pairs = comma != NULL;
    return texts->columns[0] && (!comma || texts->columns[1]) ? TUTTI_OK : TUTTI_NO_MEMORY;
}

static bool is_own_target(const struct texts *texts, const char *given)
{
    const char *own = texts->target ? texts->target : "";
    const size_t size = strlen(own);
    if (strncmp(given, own, size) != 0) return false;
    return !given[size] || !strcmp(given + size, texts->targets.by_class ? ":class" : ":number");
}

/* Files of words have columns that need no names; lists in JSON, which a network may get later, have keys. */
static tutti_status take_columns(struct texts *texts)
{
    const tutti_data_options *options = texts->options;
    char **columns[] = { &texts->columns[0], &texts->target };
    const char *const given[] = { options->text, options->target };
    for (int i = 0; i < 2; i++) {
        if (*columns[i] || !given[i]) continue;
        *columns[i] = memory_copy_text(given[i]);
        if (!*columns[i]) return TUTTI_NO_MEMORY;
    }
    return TUTTI_OK;
}

/* Options that are repeated, to continue a training, must say what the weights say. */
static tutti_status check_repeated(const struct texts *texts)
{
    const tutti_data_options *options = texts->options;
    tutti_status status = TUTTI_OK;
    const char *second = texts->columns[1];
    char *columns =
        memory_format("%s%s%s", texts->columns[0] ? texts->columns[0] : "", second ? "," : "", second ? second : "");
    const bool opens = options->tokenizer && !texts_is_learned(options->tokenizer); /* what was learned is described */
    tutti_tokenizer *given = opens ? texts_tokenizer(options->tokenizer) : NULL;
    char *json = given ? tutti_tokenizer_json(given) : NULL;
    if (!columns || (given && !json)) FAIL(TUTTI_NO_MEMORY, "no memory for a tokenizer");
    if (opens && !given) FAIL(status_last(), "%s", tutti_message(NULL));
    if (json && strcmp(json, texts->tokenizer_json) != 0)
        FAIL(TUTTI_MISMATCH, "--tokenizer %s is not the one that the network was trained with: leave it out",
            options->tokenizer);
    if (options->text && strcmp(options->text, columns) != 0)
        FAIL(TUTTI_MISMATCH, "--text %s: the network was trained on '%s': leave it out", options->text, columns);
    if (options->target && !is_own_target(texts, options->target))
        FAIL(TUTTI_MISMATCH, "--target %s: the network was trained on %s%s: leave it out", options->target,
            texts->target ? texts->target : "texts without a column of targets",
            !texts->target                ? ""
                : texts->targets.by_class ? ":class"
                                          : ":number");
    if (options->length && options->length != texts->most)
        FAIL(TUTTI_INVALID, "--length %lld: the network was trained with %lld: leave --length out",
            (long long)options->length, (long long)texts->most);
done:
    tutti_tokenizer_close(given);
    free(columns);
    free(json);
    return status;
}

static tutti_status begin(struct texts *texts, const tutti_data_options *options)
{
    tutti_status status = TUTTI_OK;
    texts->options = options;
    if (options->length < 0 || options->length > MOST_LENGTH)
        return fail(
            TUTTI_INVALID, "--length %lld: a sample has from 1 to %d tokens", (long long)options->length, MOST_LENGTH);
    if (!texts->described) TRY(read_columns(texts));
    if (!texts->described) texts->most = options->length ? options->length : TEXTS_TOKENS;
    if (texts->described && texts->targets.tags.on) TRY(take_columns(texts));
    if (texts->described) TRY(check_repeated(texts));
    TRY(thread_pool_new(&texts->queue.pool, options->threads));
    TRY(texts_choose_tokenizer(texts));
done:
    return status;
}

static tutti_status read_texts(struct texts *texts, const char *path, bool *found)
{
    tutti_status status = TUTTI_OK;
    *found = true;
    if (!path) return text_files_read_given(texts);
    TRY(text_conll_find(texts, path));
    if (text_conll_is(texts) && texts->described && !texts->targets.tags.on)
        FAIL(TUTTI_MISMATCH, "%s has words with tags, but the network was trained on texts with one target", path);
    if (text_conll_is(texts)) return text_conll_read(texts);
    if (texts->targets.tags.on && !texts->columns[0] && !(texts->columns[0] = memory_copy_text("tokens")))
        return TUTTI_NO_MEMORY;
    if (texts->columns[0]) TRY(text_table_find(texts, path));
    if (texts->file_count > 0) return text_table_read(texts);
    if (texts->columns[0] && !texts->described)
        FAIL(TUTTI_INVALID, "%s: --text names a column, but this is not a table in CSV, TSV or lines of JSON", path);
    if (texts->described && texts->stream) return text_stream_read(texts, path, found);
    *found = false;
    if (!texts->pairs) TRY(text_files_read(texts, path, found));
    if (*found || texts->described) return TUTTI_OK;
    texts->targets.words = false;
    TRY(texts_choose_for_stream(texts));
    return text_stream_read(texts, path, found);
done:
    return status;
}

/* Says what was left out or changed. */
static void report(const struct texts *texts)
{
    const struct text_counts *counts = &texts->counts;
    const long long samples = (long long)texts->collection.samples;
    if (counts->cut > 0)
        texts_note(texts,
            memory_format("%lld of %lld texts have more than %lld tokens and are cut: %s", (long long)counts->cut,
                samples, (long long)texts->most,
                texts->described ? "the network was trained with so many" : "--length takes more"));
    if (counts->left_out > 0)
        texts_note(texts,
            memory_format("left out: %lld text%s without a token: %s%s", (long long)counts->left_out,
                counts->left_out == 1 ? "" : "s", counts->listed.data ? counts->listed.data : "",
                counts->left_out > 3 ? ", ..." : ""));
    if (counts->broken > 0)
        texts_note(texts,
            memory_format("%lld %s%s not UTF-8 throughout: the tokenizer reads what is damaged as it can",
                (long long)counts->broken, texts->stream ? "line" : "text", counts->broken == 1 ? " is" : "s are"));
}

/* Without a length of the caller's, samples have the length of the longest one, rounded up to a multiple of 8. */
static void set_length(struct texts *texts)
{
    enum { UNIT = 8 };
    int64_t longest = 1;
    if (texts->stream || texts->described || texts->options->length) return;
    for (int64_t i = 0; i < texts->collection.samples; i++)
        if (texts->samples[i].count > longest) longest = texts->samples[i].count;
    longest = (longest + UNIT - 1) / UNIT * UNIT;
    if (longest < texts->most) texts->most = longest;
}

static void set_tag_targets(struct texts *texts)
{
    struct collection *collection = &texts->collection;
    tutti_data_info *info = &collection->info;
    info->target_shape = (tutti_shape) { .rank = 1, .sizes = { texts->most } };
    info->tags = true;
    collection->renumber = tags_renumber;
    collection->word = tags_word;
}

static void set_stream_targets(struct texts *texts)
{
    tutti_data_info *info = &texts->collection.info;
    info->target_dtype = TUTTI_DTYPE_I32;
    info->target_shape = (tutti_shape) { .rank = 1, .sizes = { texts->most } };
    info->classes = (int)info->vocabulary;
    info->tokens_are_classes = true;
}

/* Options of other kinds of data. */
static tutti_status check_options(const tutti_data_options *options)
{
    if (options->augment && *options->augment && strcmp(options->augment, "none") != 0)
        return fail(TUTTI_INVALID, "--augment: texts are not changed at random: leave it out");
    if (options->normalise && *options->normalise && strcmp(options->normalise, "none") != 0)
        return fail(TUTTI_INVALID, "--normalise: tokens are not numbers to standardise: leave it out");
    if (!options->row_names && !options->drop && !options->only) return TUTTI_OK;
    return fail(TUTTI_INVALID,
        "--%s is an option of tables of numbers: of texts, other columns are left out: leave it out",
        options->row_names  ? "id"
            : options->drop ? "drop"
                            : "only");
}

static tutti_status finish(struct texts *texts, const char *path)
{
    struct collection *collection = &texts->collection;
    tutti_data_info *info = &collection->info;
    tutti_status status = TUTTI_OK;
    TRY(check_options(texts->options));
    TRY(texts_flush(texts));
    free_queue(&texts->queue);
    if (!texts->stream) texts_drop_empty(texts);
    if (collection->samples == 0) FAIL(TUTTI_FORMAT, "%s: all texts are empty", path ? path : "these texts");
    if (texts->stream)
        set_stream_targets(texts);
    else
        TRY(texts->targets.tags.on ? tags_end(texts) : texts_end_targets(texts));
    if (texts->options->oversample && (texts->stream || !collection->labels))
        FAIL(TUTTI_INVALID, "--oversample needs classes of samples, but the targets are %s: leave it out",
            texts->stream                ? "next tokens"
                : texts->targets.tags.on ? "tags of words"
                                         : "numbers");
    report(texts);
    set_length(texts);
    if (texts->targets.tags.on) set_tag_targets(texts);
    info->kind = "text";
    info->dtype = TUTTI_DTYPE_I32;
    info->shape = (tutti_shape) { .rank = 1, .sizes = { texts->most } };
    info->length = texts->most;
    info->pairs = texts->pairs;
    info->tokenizer = texts->tokenizer_json;
    collection->rows = text_table_has_rows(texts) ? texts->rows : NULL;
    collection->augments = AUGMENT_NUMBERS;
    collection->read = read_whole;
    collection->read_tokens = read_tokens;
    collection->length = length_of;
    collection->name = texts_name_sample;
    collection->file = file_of;
    collection->fit = fit;
    collection->describe = texts_describe;
    collection->inspect = texts_inspect;
    texts->options = NULL; /* the caller's, until here */
done:
    return status;
}

/* Whether data at this path may be texts: names say it, or options, or what a network was trained on. */
static bool may_be_texts(const struct texts *texts, const char *path, const tutti_data_options *options)
{
    struct stat found;
    if (texts->described || options->text || options->tokenizer || !path || conll_has_name(path)) return true;
    return text_file_has_name(path) || (stat(path, &found) == 0 && S_ISDIR(found.st_mode));
}

/* A tokenizer that is named is opened before texts are looked for, as these are encoded while they are read: *made
 * stays NULL where there are none, since folders may have anything in them. */
tutti_status text_open(const char *path, const tutti_data_options *options, struct collection **made)
{
    tutti_status status = TUTTI_OK;
    bool found = false;
    *made = NULL;
    struct texts *texts = memory_new(1, sizeof *texts);
    if (!texts) return TUTTI_NO_MEMORY;
    texts->collection.free = free_texts;
    TRY(texts_restore(texts, options->description));
    if (!may_be_texts(texts, path, options)) goto done;
    TRY(begin(texts, options));
    TRY(read_texts(texts, path, &found));
    if (!found) goto done;
    TRY(finish(texts, path));
    *made = &texts->collection;
    return TUTTI_OK;
done:
    free_texts(&texts->collection);
    return status;
}
