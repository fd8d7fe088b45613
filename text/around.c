#include "text/around.h"

#include "base/text.h"

#include <stdlib.h>

static tutti_status add_item(struct around_template *list, int text, int64_t type, struct around_item **item)
{
    if (type < 0 || type > INT32_MAX)
        return fail(TUTTI_FORMAT, "\"type_id\" of the tokenizer is %lld", (long long)type);
    const tutti_status status =
        memory_grow((void **)&list->items, &list->capacity, list->count + 1, sizeof(*list->items));
    if (status != TUTTI_OK) return status;
    *item = &list->items[list->count++];
    **item = (struct around_item) { .text = text, .type = (int32_t)type };
    return TUTTI_OK;
}

static tutti_status add_text(struct around_template *list, int text, int64_t type)
{
    struct around_item *item = NULL;
    return add_item(list, text, type, &item);
}

static tutti_status add_ids(struct around_template *list, const json_t *ids, int64_t type, int64_t size)
{
    struct around_item *item = NULL;
    const tutti_status status = add_item(list, -1, type, &item);
    if (status != TUTTI_OK) return status;
    item->ids = memory_new(json_array_size(ids) + 1, sizeof(*item->ids));
    if (!item->ids) return TUTTI_NO_MEMORY;
    for (size_t i = 0; i < json_array_size(ids); i++) {
        const json_t *id = json_array_get(ids, i);
        if (!json_is_integer(id) || json_integer_value(id) < 0 || json_integer_value(id) >= size)
            return fail(TUTTI_FORMAT, "the tokenizer's post_processor has an id that is not in the vocabulary");
        item->ids[item->count++] = (int32_t)json_integer_value(id);
    }
    list->special += item->count;
    return TUTTI_OK;
}

static tutti_status read_template(
    struct around_template *list, const json_t *json, const json_t *special, int texts, int64_t size)
{
    if (!json_is_array(json)) return fail(TUTTI_FORMAT, "a template of the tokenizer must be a list");
    int seen[2] = { 0 };
    for (size_t i = 0; i < json_array_size(json); i++) {
        const json_t *item = json_array_get(json, i);
        const json_t *sequence = json_object_get(item, "Sequence"), *token = json_object_get(item, "SpecialToken");
        const char *id = json_string_value(json_object_get(sequence ? sequence : token, "id"));
        int64_t type;
        tutti_status status = field_integer(sequence ? sequence : token, "type_id", 0, &type);
        if (status != TUTTI_OK) return status;
        const json_t *ids = token && id ? json_object_get(json_object_get(special, id), "ids") : NULL;
        if (!id || (sequence ? strcmp(id, "A") && (strcmp(id, "B") || texts < 2) : !json_is_array(ids)))
            return fail(TUTTI_FORMAT, "a template of the tokenizer names \"%s\", which is not there",
                text_printable(id ? id : "").text);
        if (sequence) seen[*id - 'A']++;
        status = sequence ? add_text(list, *id - 'A', type) : add_ids(list, ids, type, size);
        if (status != TUTTI_OK) return status;
    }
    if (texts == 2 && json_array_size(json) == 0) return TUTTI_OK;
    if (seen[0] != 1 || seen[1] != texts - 1)
        return fail(TUTTI_UNSUPPORTED, "a template of the tokenizer must have each text once");
    return TUTTI_OK;
}

/* ["[SEP]", 102]: the token and its id, as a list of ids. */
static json_t *id_of(const json_t *json, const char *name)
{
    json_t *id = json_array_get(json_object_get(json, name), 1);
    return json_pack("[O]", id ? id : json_null());
}

/* BERT: [CLS] A [SEP] B [SEP]; RoBERTa: <s> A </s> </s> B </s>, all of type 0. */
static tutti_status read_fixed(struct around *around, const json_t *json, bool roberta, int64_t size)
{
    json_t *cls = id_of(json, "cls"), *sep = id_of(json, "sep");
    tutti_status status = cls && sep ? TUTTI_OK : TUTTI_NO_MEMORY;
    struct around_template *both[] = { &around->single, &around->pair };
    for (int i = 0; i < 2 && status == TUTTI_OK; i++) {
        TRY(add_ids(both[i], cls, 0, size));
        TRY(add_text(both[i], 0, 0));
        TRY(add_ids(both[i], sep, 0, size));
        if (i == 0) continue;
        if (roberta) TRY(add_ids(both[i], sep, 0, size));
        TRY(add_text(both[i], 1, !roberta));
        TRY(add_ids(both[i], sep, !roberta, size));
    }
    around->always = roberta;
done:
    json_decref(cls);
    json_decref(sep);
    return status;
}

tutti_status around_read(struct around *around, const json_t *json, int64_t size)
{
    const char *type;
    if (!json) return TUTTI_OK;
    tutti_status status = field_type(json, "post_processor", &type);
    if (status != TUTTI_OK) return status;
    if (!strcmp(type, "ByteLevel")) return TUTTI_OK; /* only where tokens begin and end */
    if (!strcmp(type, "Sequence")) {
        const json_t *all = json_object_get(json, "processors");
        if (!json_is_array(all)) return fail(TUTTI_FORMAT, "\"processors\" of the tokenizer must be a list");
        for (size_t i = 0; i < json_array_size(all) && status == TUTTI_OK; i++)
            status = around_read(around, json_array_get(all, i), size);
        return status;
    }
    if (around->given) return fail(TUTTI_UNSUPPORTED, "the tokenizer has two post_processors that add tokens");
    around->given = true;
    if (!strcmp(type, "BertProcessing")) return read_fixed(around, json, false, size);
    if (!strcmp(type, "RobertaProcessing")) return read_fixed(around, json, true, size);
    if (strcmp(type, "TemplateProcessing"))
        return fail(TUTTI_UNSUPPORTED, "the post_processor \"%s\" of the tokenizer is not supported",
            text_printable(type).text);
    const json_t *special = json_object_get(json, "special_tokens");
    around->always = true;
    status = read_template(&around->single, json_object_get(json, "single"), special, 1, size);
    if (status == TUTTI_OK) status = read_template(&around->pair, json_object_get(json, "pair"), special, 2, size);
    return status;
}

static void free_template(struct around_template *list)
{
    for (size_t i = 0; i < list->count; i++) free(list->items[i].ids);
    free(list->items);
}

void around_free(struct around *around)
{
    free_template(&around->single);
    free_template(&around->pair);
    *around = (struct around) { 0 };
}
