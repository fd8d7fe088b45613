/* WordPiece: the longest token that begins a word, then the longest of the rest, which has a prefix. WordLevel: whole
 * words. */
#include "text/model.h"
#include "text/utf8.h"

static tutti_status read(struct model *model, const json_t *json)
{
    tutti_status status = model_read_vocabulary(model, json);
    if (status == TUTTI_OK) status = model_read_unknown(model, json, "[UNK]");
    if (status == TUTTI_OK)
        status = model_read_affix(json, "continuing_subword_prefix", "##", &model->prefix, &model->prefix_size);
    if (status == TUTTI_OK) status = field_integer(json, "max_input_chars_per_word", 100, &model->longest_word);
    return status;
}

static tutti_status append_unknown(const struct model *model, struct id_list *ids)
{
    if (model->unknown < 0) return model_fail_unknown();
    id_list_append(ids, model->unknown);
    return TUTTI_OK;
}

static tutti_status encode(
    const struct model *model, struct model_work *work, const char *text, size_t size, struct id_list *ids)
{
    int64_t characters = 0;
    for (size_t at = 0; at < size; at += utf8_size(text[at])) characters++;
    if (characters > model->longest_word) return append_unknown(model, ids);
    work->text.size = 0;
    byte_list_append(&work->text, model->prefix, model->prefix_size);
    byte_list_append(&work->text, text, size);
    if (work->text.failed) return TUTTI_NO_MEMORY;
    const size_t before = ids->size;
    for (size_t begin = 0; begin < size;) {
        size_t end = size;
        int32_t id = -1;
        /* What precedes the rest of the word is overwritten by the prefix: it has been encoded. */
        char *rest = work->text.data + begin;
        if (begin > 0 && model->prefix_size) memcpy(rest, model->prefix, model->prefix_size);
        const char *from = begin > 0 ? rest : rest + model->prefix_size;
        const size_t extra = begin > 0 ? model->prefix_size : 0;
        while (end > begin && (id = vocabulary_find(&model->vocabulary, from, extra + end - begin)) < 0)
            end = utf8_before(text, end);
        if (id < 0) {
            ids->size = before;
            return append_unknown(model, ids);
        }
        id_list_append(ids, id);
        begin = end;
    }
    return TUTTI_OK;
}

static tutti_status read_words(struct model *model, const json_t *json)
{
    const tutti_status status = model_read_vocabulary(model, json);
    return status == TUTTI_OK ? model_read_unknown(model, json, "<unk>") : status;
}

static tutti_status encode_word(
    const struct model *model, struct model_work *work, const char *text, size_t size, struct id_list *ids)
{
    (void)work;
    const int32_t id = vocabulary_find(&model->vocabulary, text, size);
    if (id < 0) return append_unknown(model, ids);
    id_list_append(ids, id);
    return TUTTI_OK;
}

const struct model_kind model_wordpiece = { "WordPiece", read, encode };
const struct model_kind model_wordlevel = { "WordLevel", read_words, encode_word };
