/* Opening tokenizers, their tokens by id, and ids to text. Encoding is in encode.c, closing and ids by token in
 * workspace.c. */
#include "text/tokenizer.h"

#include "base/text.h"

#include <stdlib.h>

tutti_tokenizer *tutti_tokenizer_parse(const char *text)
{
    json_error_t error;
    tutti_tokenizer *tokenizer = NULL;
    if (!text) {
        fail(TUTTI_INVALID, "the text of a tokenizer is NULL");
        return NULL;
    }
    json_t *json = json_loads(text, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    if (!json) {
        fail(TUTTI_FORMAT, "the tokenizer is no JSON: %s in line %d", text_printable(error.text).text, error.line);
        return NULL;
    }
    tokenizer_from_json(&tokenizer, json);
    json_decref(json);
    return tokenizer;
}

tutti_tokenizer *tutti_tokenizer_open(const char *path)
{
    json_t *json = NULL;
    tutti_tokenizer *tokenizer = NULL;
    if (!path) {
        fail(TUTTI_INVALID, "the path of a tokenizer is NULL");
        return NULL;
    }
    tutti_status status = tokenizer_file(path, &json);
    if (status == TUTTI_OK) {
        status = tokenizer_from_json(&tokenizer, json);
        if (status != TUTTI_OK) status_context(status, "%s", path);
    }
    json_decref(json);
    return tokenizer;
}

/* An added token that is normalised stands in texts as its pattern, from which decoders lead back. */
static void list_tokens(
    const tutti_tokenizer *tokenizer, const int32_t *ids, int64_t count, bool keep_special, struct text_list *tokens)
{
    for (int64_t i = 0; i < count; i++) {
        const struct added_token *added = added_find(&tokenizer->added, ids[i]);
        size_t size = added ? added->pattern_size : 0;
        const char *text = added ? added->pattern : vocabulary_text(&tokenizer->model.vocabulary, ids[i], &size);
        const int32_t same = !text || keep_special ? -1 : vocabulary_find(&tokenizer->added.ids, text, size);
        if (!text || (same >= 0 && tokenizer->added.tokens[same].special)) continue;
        byte_list_append(&tokens->bytes, text, size);
        text_list_end(tokens);
    }
}

char *tutti_tokenizer_decode(const tutti_tokenizer *tokenizer, const int32_t *ids, int64_t count, bool keep_special)
{
    if (!tokenizer || count < 0 || (count && !ids)) {
        fail(TUTTI_INVALID, "a tokenizer needs ids to decode");
        return NULL;
    }
    tutti_tokenizer *shared = (tutti_tokenizer *)tokenizer; /* its lock guards what changes */
    struct workspace *work;
    if (workspace_take(shared, &work) != TUTTI_OK) return NULL;
    struct text_list tokens = { 0 };
    struct byte_list text = { 0 };
    list_tokens(tokenizer, ids, count, keep_special, &tokens);
    tutti_status status = tokens.failed || tokens.bytes.failed ? TUTTI_NO_MEMORY : TUTTI_OK;
    if (status == TUTTI_OK) status = undo(&tokenizer->undoers, work->matcher, &tokens, &text);
    byte_list_append(&text, "", 1);
    if (text.failed) status = TUTTI_NO_MEMORY;
    text_list_free(&tokens);
    workspace_give(shared, work);
    if (status == TUTTI_OK) return text.data;
    byte_list_free(&text);
    return NULL;
}

int64_t tutti_tokenizer_size(const tutti_tokenizer *tokenizer)
{
    return tokenizer ? tokenizer->size : 0;
}

const char *tutti_tokenizer_token(const tutti_tokenizer *tokenizer, int32_t id)
{
    if (!tokenizer) return NULL;
    const struct added_token *added = added_find(&tokenizer->added, id);
    return added ? added->content : vocabulary_text(&tokenizer->model.vocabulary, id, NULL);
}

int32_t tutti_tokenizer_end(const tutti_tokenizer *tokenizer)
{
    return tokenizer ? tokenizer->end : -1;
}

char *tutti_tokenizer_json(const tutti_tokenizer *tokenizer)
{
    return tokenizer ? memory_copy_text(tokenizer->json) : NULL;
}
