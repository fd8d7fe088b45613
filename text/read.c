/* From a tokenizer.json to a tokenizer. */
#include "base/text.h"
#include "text/tokenizer.h"

#include <stdlib.h>

/* The last special token after a single text, if there is one, else one of the usual names. */
static int32_t find_end(const tutti_tokenizer *tokenizer)
{
    static const char *const names[] = { "<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>", "<|im_end|>", "[SEP]" };
    const struct around_template *single = &tokenizer->around.single;
    const struct around_item *last = single->count ? &single->items[single->count - 1] : NULL;
    if (last && last->text < 0 && last->count > 0) return last->ids[last->count - 1];
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const int32_t id = tutti_tokenizer_id(tokenizer, names[i]);
        if (id >= 0) return id;
    }
    return -1;
}

static tutti_status read_parts(tutti_tokenizer *tokenizer, const json_t *json)
{
    struct workspace *work = NULL;
    tutti_status status = workspace_take(tokenizer, &work);
    if (status == TUTTI_OK) status = normalise_read(&tokenizer->normalisers, field_get(json, "normalizer"));
    if (status == TUTTI_OK) status = divide_read(&tokenizer->dividers, field_get(json, "pre_tokenizer"));
    if (status == TUTTI_OK) status = model_read(&tokenizer->model, json_object_get(json, "model"));
    if (status == TUTTI_OK)
        status = added_read(&tokenizer->added, field_get(json, "added_tokens"), &tokenizer->model.vocabulary,
            &tokenizer->normalisers, work->matcher);
    if (work) workspace_give(tokenizer, work);
    if (status != TUTTI_OK) return status;
    tokenizer->size = (int64_t)tokenizer->model.vocabulary.size;
    if ((int64_t)tokenizer->added.id_count > tokenizer->size) tokenizer->size = (int64_t)tokenizer->added.id_count;
    status = around_read(&tokenizer->around, field_get(json, "post_processor"), tokenizer->size);
    if (status == TUTTI_OK) status = undo_read(&tokenizer->undoers, field_get(json, "decoder"));
    return status;
}

/* BPE over ByteLevel needs no characters for bytes where its vocabulary has them all. */
static void choose_raw_bytes(tutti_tokenizer *tokenizer)
{
    struct model *model = &tokenizer->model;
    if (model->kind != &model_bpe || !divide_ends_in_bytes(&tokenizer->dividers)) return;
    if (model->prefix_size || model->suffix_size) return;
    for (int byte = 0; byte < 256; byte++)
        if (model->byte_characters[byte] < 0) return;
    model->raw_bytes = tokenizer->dividers.raw_bytes = true;
}

tutti_status tokenizer_from_json(tutti_tokenizer **result, const json_t *json)
{
    const char *version;
    size_t size;
    *result = NULL;
    if (!json_is_object(json)) return fail(TUTTI_FORMAT, "a tokenizer.json must be an object");
    tutti_status status = field_text(json, "version", &version, &size);
    if (status != TUTTI_OK) return status;
    if (version && strcmp(version, "1.0"))
        return fail(TUTTI_UNSUPPORTED, "version \"%s\" of tokenizers is not supported", text_printable(version).text);
    tutti_tokenizer *tokenizer = memory_new(1, sizeof(*tokenizer));
    if (!tokenizer) return TUTTI_NO_MEMORY;
    pthread_mutex_init(&tokenizer->lock, NULL);
    tokenizer->json = json_dumps(json, JSON_COMPACT);
    status =
        tokenizer->json ? read_parts(tokenizer, json) : fail(TUTTI_NO_MEMORY, "no memory on the host for a tokenizer");
    if (status != TUTTI_OK) {
        tutti_tokenizer_close(tokenizer);
        return status;
    }
    choose_raw_bytes(tokenizer);
    tokenizer->end = find_end(tokenizer);
    *result = tokenizer;
    return TUTTI_OK;
}
