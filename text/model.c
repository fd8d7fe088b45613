#include "text/model.h"

#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <xxhash.h>

/* Words of natural text repeat: short ones are kept with their ids, the last one of each slot. A slot is a cache line.
 */
enum { CACHE_SLOTS = 1 << 15, CACHED_BYTES = 22, CACHED_IDS = 10 };
struct cached_word {
    uint8_t size, count; /* size 0: empty */
    char text[CACHED_BYTES];
    int32_t ids[CACHED_IDS];
};

tutti_status model_read_vocabulary(struct model *model, const json_t *json)
{
    json_t *vocabulary = json_object_get(json, "vocab"), *id;
    const char *token;
    size_t size;
    if (!json_is_object(vocabulary)) return fail(TUTTI_FORMAT, "\"vocab\" of the tokenizer must be an object");
    json_object_keylen_foreach(vocabulary, token, size, id)
    {
        if (!json_is_integer(id))
            return fail(TUTTI_FORMAT, "token \"%s\" of the tokenizer has no id", text_printable(token).text);
        const tutti_status status = vocabulary_add(&model->vocabulary, token, size, json_integer_value(id));
        if (status != TUTTI_OK) return status;
    }
    return TUTTI_OK;
}

tutti_status model_read_unknown(struct model *model, const json_t *json, const char *fallback)
{
    const char *token;
    size_t size;
    const tutti_status status = field_text(json, "unk_token", &token, &size);
    if (status != TUTTI_OK) return status;
    if (!token && fallback) token = fallback, size = strlen(fallback);
    model->has_unknown = token != NULL;
    model->unknown = token ? vocabulary_find(&model->vocabulary, token, size) : -1;
    return TUTTI_OK;
}

tutti_status model_read_affix(const json_t *json, const char *name, const char *fallback, char **affix, size_t *size)
{
    const char *text;
    const tutti_status status = field_text(json, name, &text, size);
    if (status != TUTTI_OK) return status;
    if (!text && fallback) text = fallback, *size = strlen(fallback);
    if (!text || *size == 0) return TUTTI_OK;
    *affix = memory_new(*size + 1, 1);
    if (!*affix) return TUTTI_NO_MEMORY;
    memcpy(*affix, text, *size);
    return TUTTI_OK;
}

void model_find_byte_tokens(struct model *model)
{
    for (int byte = 0; byte < 256; byte++) {
        char name[8];
        snprintf(name, sizeof(name), "<0x%02X>", (unsigned)byte);
        model->byte_tokens[byte] = vocabulary_find(&model->vocabulary, name, 6);
    }
}

bool model_append_bytes(const struct model *model, const char *text, size_t size, struct id_list *ids)
{
    for (size_t i = 0; i < size; i++)
        if (model->byte_tokens[(unsigned char)text[i]] < 0) return false;
    for (size_t i = 0; i < size; i++) id_list_append(ids, model->byte_tokens[(unsigned char)text[i]]);
    return true;
}

tutti_status model_fail_unknown(void)
{
    return fail(TUTTI_FORMAT, "a text has what the tokenizer's vocabulary lacks, and it has no token for this");
}

tutti_status model_read(struct model *model, const json_t *json)
{
    static const struct model_kind *const kinds[] = { &model_bpe, &model_wordpiece, &model_wordlevel, &model_unigram };
    const char *type = json_string_value(json_object_get(json, "type"));
    if (!json_is_object(json)) return fail(TUTTI_FORMAT, "the tokenizer has no \"model\"");
    if (!type && json_object_get(json, "merges")) type = "BPE"; /* files of old versions have no type */
    if (!type && json_object_get(json, "continuing_subword_prefix")) type = "WordPiece";
    if (!type) type = json_object_get(json, "unk_id") ? "Unigram" : "WordLevel";
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (!strcmp(kinds[i]->name, type)) {
            model->kind = kinds[i];
            return model->kind->read(model, json);
        }
    return fail(TUTTI_UNSUPPORTED, "the model \"%s\" of the tokenizer is not supported", text_printable(type).text);
}

void model_free(struct model *model)
{
    vocabulary_free(&model->vocabulary);
    free(model->merges);
    free(model->prefix);
    free(model->suffix);
    free(model->scores);
    free(model->edges);
    *model = (struct model) { 0 };
}

void model_work_free(struct model_work *work)
{
    byte_list_free(&work->text);
    free(work->symbols);
    free(work->heap);
    free(work->path);
    free(work->cache);
    *work = (struct model_work) { 0 };
}

tutti_status model_encode(
    const struct model *model, struct model_work *work, const char *text, size_t size, struct id_list *ids)
{
    if (size == 0) return TUTTI_OK;
    if (size > CACHED_BYTES) return model->kind->encode(model, work, text, size, ids);
    if (!work->cache && !(work->cache = memory_new(CACHE_SLOTS, sizeof(*work->cache)))) return TUTTI_NO_MEMORY;
    struct cached_word *word = &work->cache[(size_t)XXH3_64bits(text, size) & (CACHE_SLOTS - 1)];
    if (word->size == size && !memcmp(word->text, text, size)) {
        if (ids->capacity - ids->size < word->count && !id_list_reserve(ids, word->count)) return TUTTI_NO_MEMORY;
        memcpy(ids->data + ids->size, word->ids, word->count * sizeof(*word->ids));
        ids->size += word->count;
        return TUTTI_OK;
    }
    const size_t before = ids->size;
    const tutti_status status = model->kind->encode(model, work, text, size, ids);
    if (status != TUTTI_OK || ids->failed || ids->size - before > CACHED_IDS) return status;
    word->size = (uint8_t)size;
    word->count = (uint8_t)(ids->size - before);
    memcpy(word->text, text, size);
    memcpy(word->ids, ids->data + before, word->count * sizeof(*word->ids));
    return TUTTI_OK;
}
