/* What weights must know of texts: the tokenizer and where texts and targets are; and what people want to know. */
#include "data/text/texts.h"

#include "base/memory.h"
#include "base/numbers.h"
#include "base/status.h"
#include "base/text.h"
#include "data/inspect.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LENGTH = 1 << 20 };

/* The tokenizer is a text, so that it comes back as it was. */
int texts_describe(const struct collection *collection, json_t *object)
{
    const struct texts *texts = (const struct texts *)collection;
    const bool by_class = texts->stream || texts->targets.tags.on || collection->labels != NULL;
    json_t *text = json_pack("{s:I, s:b, s:b, s:b}", "length", (json_int_t)texts->most, "pairs", texts->pairs,
        "next_tokens", texts->stream, "by_class", by_class);
    if (texts->targets.tags.on) (void)json_object_set_new(text, "tags", json_true());
    json_t *columns = json_array();
    int failed = 0;
    for (int i = 0; i < 2 && texts->columns[i]; i++)
        failed |= json_array_append_new(columns, json_string(texts->columns[i]));
    if (json_array_size(columns) > 0) failed |= json_object_set(text, "columns", columns);
    failed |= json_object_set_new(text, "tokenizer", json_string(texts->tokenizer_json));
    if (texts->target) failed |= json_object_set_new(object, "target", json_string(texts->target));
    json_decref(columns);
    return failed | json_object_set_new(object, "text", text);
}

static bool copy_text(const json_t *value, char **copy)
{
    const char *text = json_string_value(value);
    *copy = text ? memory_copy_text(text) : NULL;
    return *copy != NULL;
}

static bool restore(struct texts *texts, const json_t *object)
{
    const json_t *text = json_object_get(object, "text"), *columns = json_object_get(text, "columns");
    const json_t *target = json_object_get(object, "target");
    const size_t count = json_array_size(columns);
    texts->described = true;
    texts->most = json_integer_value(json_object_get(text, "length"));
    texts->pairs = json_is_true(json_object_get(text, "pairs"));
    texts->stream = json_is_true(json_object_get(text, "next_tokens"));
    texts->targets.by_class = json_is_true(json_object_get(text, "by_class"));
    texts->targets.tags.on = json_is_true(json_object_get(text, "tags"));
    if (texts->most < 1 || texts->most > MOST_LENGTH || count > 2 || texts->pairs != (count == 2)) return false;
    for (size_t i = 0; i < count; i++)
        if (!copy_text(json_array_get(columns, i), &texts->columns[i])) return false;
    if (target && !copy_text(target, &texts->target)) return false;
    return copy_text(json_object_get(text, "tokenizer"), &texts->tokenizer_json);
}

tutti_status texts_restore(struct texts *texts, const char *description)
{
    if (!description) return TUTTI_OK;
    json_t *object = json_loads(description, 0, NULL);
    const char *kind = json_string_value(json_object_get(object, "kind"));
    tutti_status status = TUTTI_OK;
    if (kind && !strcmp(kind, "text") && !restore(texts, object))
        status = fail(TUTTI_FORMAT, "the description of the texts that the network was trained on is damaged");
    json_decref(object);
    return status;
}

/* ------------------------------------------------------------------------------------------------- inspect ---- */

static json_t *list_lengths(const struct texts *texts)
{
    static const struct {
        const char *name;
        double share;
    } quantiles[] = { { "least", 0 }, { "quarter", 0.25 }, { "median", 0.5 }, { "three_quarters", 0.75 },
        { "nine_tenths", 0.9 }, { "99_percent", 0.99 }, { "largest", 1 } };
    const size_t samples = (size_t)texts->collection.samples;
    double *lengths = memory_new(samples, sizeof *lengths);
    json_t *object = lengths ? json_object() : NULL;
    for (size_t i = 0; lengths && i < samples; i++) lengths[i] = (double)texts->samples[i].whole;
    if (lengths) qsort(lengths, samples, sizeof *lengths, number_compare);
    for (size_t i = 0; lengths && i < sizeof quantiles / sizeof *quantiles; i++) {
        const size_t at = (size_t)(quantiles[i].share * (double)(samples - 1) + 0.5);
        json_object_set_new(object, quantiles[i].name, json_integer((json_int_t)lengths[at]));
    }
    free(lengths);
    return object;
}

/* Tokens of the text that are in no block of a stream are counted, too. */
int texts_inspect(const struct collection *collection, int64_t most, json_t *object)
{
    const struct texts *texts = (const struct texts *)collection;
    const struct text_counts *counts = &texts->counts;
    (void)most;
    json_t *text = json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:b, s:b}", "tokens",
        (json_int_t)texts->tokens.count, "bytes", (json_int_t)counts->bytes, "vocabulary",
        (json_int_t)collection->info.vocabulary, "length", (json_int_t)texts->most, "cut", (json_int_t)counts->cut,
        "empty", (json_int_t)counts->empty, "not_utf8", (json_int_t)counts->broken, "without_target",
        (json_int_t)counts->no_target, "pairs", texts->pairs, "next_tokens", texts->stream);
    int failed = text == NULL;
    if (texts->tokens.unknown >= 0)
        failed |= json_object_set_new(text, "unknown",
            json_real(texts->tokens.count ? (double)texts->tokens.unknown_count / (double)texts->tokens.count : 0));
    if (!texts->stream) failed |= json_object_set_new(text, "lengths", list_lengths(texts));
    if (texts->targets.tags.on)
        failed |= json_object_set_new(text, "words", json_integer((json_int_t)texts->targets.tags.count));
    if (texts->target) failed |= json_object_set_new(object, "target", inspect_text(texts->target));
    return failed | json_object_set_new(object, "text", text);
}
