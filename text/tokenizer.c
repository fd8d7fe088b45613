/* The functions of include/tutti_text.h. */
#include "tutti_text.h"

#include "base/options.h"
#include "base/text.h"
#include "text/utf8.h"
#include "text/vocabulary.h"

#include <jansson.h>
#include <stdlib.h>

struct tutti_tokenizer {
    char *json;
    struct vocabulary vocabulary;
};

/* The character that stands for a byte in vocabularies of byte-level BPE. */
static uint32_t character_of(int byte)
{
    const bool printable = (byte > ' ' && byte < 0x7F) || (byte > 0xA0 && byte != 0xAD);
    if (printable) return (uint32_t)byte;
    return (uint32_t)(byte <= ' ' ? 256 + byte : byte <= 0xA0 ? 256 + 33 + byte - 0x7F : 256 + 67);
}

static json_t *bytes_json(void)
{
    json_t *vocabulary = json_object();
    for (int byte = 0; byte < 256; byte++) {
        char text[5] = { 0 };
        utf8_write(character_of(byte), text);
        json_object_set_new(vocabulary, text, json_integer(byte));
    }
    return json_pack("{s:s, s:n, s:n, s:[], s:n, s:{s:s, s:b, s:b, s:b}, s:n, s:{s:s, s:b, s:b, s:b},"
                     " s:{s:s, s:n, s:n, s:n, s:n, s:b, s:b, s:b, s:o, s:[]}}",
        "version", "1.0", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer", "type", "ByteLevel",
        "add_prefix_space", 0, "trim_offsets", 1, "use_regex", 0, "post_processor", "decoder", "type", "ByteLevel",
        "add_prefix_space", 0, "trim_offsets", 1, "use_regex", 0, "model", "type", "BPE", "dropout", "unk_token",
        "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk", 0, "byte_fallback", 0, "ignore_merges", 0,
        "vocab", vocabulary, "merges");
}

static tutti_status read_bytes(struct tutti_tokenizer *tokenizer, const json_t *json)
{
    tutti_status status = TUTTI_OK;
    const char *token;
    json_t *id;
    json_object_foreach(json_object_get(json_object_get(json, "model"), "vocab"), token, id) if (status == TUTTI_OK)
        status = vocabulary_add(&tokenizer->vocabulary, token, strlen(token), json_integer_value(id));
    if (status != TUTTI_OK) return status;
    tokenizer->json = json_dumps(json, JSON_COMPACT);
    return tokenizer->json ? TUTTI_OK : fail(TUTTI_NO_MEMORY, "no memory on the host for a tokenizer");
}

tutti_tokenizer *tutti_tokenizer_parse(const char *text)
{
    json_error_t error;
    json_t *json = text ? json_loads(text, JSON_REJECT_DUPLICATES, &error) : NULL, *bytes = bytes_json();
    struct tutti_tokenizer *tokenizer = NULL;
    if (!json)
        fail(TUTTI_FORMAT, "the tokenizer is no JSON: %s", text ? error.text : "it is NULL");
    else if (!bytes)
        fail(TUTTI_NO_MEMORY, "no memory on the host for a tokenizer");
    else if (!json_equal(json, bytes))
        fail(TUTTI_UNSUPPORTED, "only the tokenizer \"bytes\" is supported");
    else if ((tokenizer = memory_new(1, sizeof(*tokenizer))) && read_bytes(tokenizer, json) != TUTTI_OK) {
        tutti_tokenizer_close(tokenizer);
        tokenizer = NULL;
    }
    json_decref(json);
    json_decref(bytes);
    return tokenizer;
}

tutti_tokenizer *tutti_tokenizer_open(const char *path)
{
    if (!path || strcmp(path, "bytes")) {
        fail(TUTTI_UNSUPPORTED, "only the tokenizer \"bytes\" is supported");
        return NULL;
    }
    json_t *json = bytes_json();
    char *text = json ? json_dumps(json, 0) : NULL;
    json_decref(json);
    tutti_tokenizer *tokenizer = text ? tutti_tokenizer_parse(text) : NULL;
    if (!text) fail(TUTTI_NO_MEMORY, "no memory on the host for a tokenizer");
    free(text);
    return tokenizer;
}

tutti_tokenizer *tutti_tokenizer_train(
    const char *const *texts, const int64_t *bytes, int64_t count, const tutti_tokenizer_options *options)
{
    (void)texts, (void)bytes, (void)count, (void)options;
    fail(TUTTI_UNSUPPORTED, "this version trains no tokenizers");
    return NULL;
}

void tutti_tokenizer_close(tutti_tokenizer *tokenizer)
{
    if (!tokenizer) return;
    free(tokenizer->json);
    vocabulary_free(&tokenizer->vocabulary);
    free(tokenizer);
}

static void encode_text(const char *text, size_t bytes, struct byte_list *repaired, struct id_list *ids)
{
    utf8_repair(text, bytes, repaired);
    for (size_t i = 0; i < repaired->size; i++) id_list_append(ids, (unsigned char)repaired->data[i]);
}

tutti_status tutti_tokenizer_encode(const tutti_tokenizer *tokenizer, const char *text, int64_t bytes,
    const tutti_encode_options *given, tutti_encoding *encoding)
{
    tutti_encode_options options;
    tutti_status status = OPTIONS_READ(&options, given, tutti_encode_options);
    if (status != TUTTI_OK) return status;
    if (!tokenizer || !encoding || (!text && bytes) || bytes < 0 || options.pair_bytes < 0 || options.most < 0)
        return fail(TUTTI_INVALID, "a tokenizer needs a text, its size and an encoding");
    struct byte_list repaired = { 0 };
    struct id_list ids = { 0 };
    encode_text(text, (size_t)bytes, &repaired, &ids);
    const size_t first = ids.size;
    repaired.size = 0;
    if (options.pair) encode_text(options.pair, (size_t)options.pair_bytes, &repaired, &ids);
    int32_t *types = memory_new(ids.size + 1, sizeof(*types));
    if (repaired.failed || ids.failed || !types) {
        status = TUTTI_NO_MEMORY;
        id_list_free(&ids);
        free(types);
    } else {
        for (size_t i = first; i < ids.size; i++) types[i] = 1;
        *encoding = (tutti_encoding) { .count = (int64_t)ids.size, .ids = ids.data, .types = types };
        if (options.most > 0 && options.most < encoding->count) encoding->count = options.most;
    }
    byte_list_free(&repaired);
    return status;
}

void tutti_encoding_free(tutti_encoding *encoding)
{
    if (!encoding) return;
    free(encoding->ids);
    free(encoding->types);
    *encoding = (tutti_encoding) { 0 };
}

char *tutti_tokenizer_decode(const tutti_tokenizer *tokenizer, const int32_t *ids, int64_t count, bool keep_special)
{
    (void)keep_special;
    struct byte_list raw = { 0 }, text = { 0 };
    for (int64_t i = 0; tokenizer && i < count; i++) {
        const char byte = (char)ids[i];
        if (ids[i] >= 0 && ids[i] < 256) byte_list_append(&raw, &byte, 1);
    }
    utf8_repair(raw.data, raw.size, &text);
    byte_list_append(&text, "", 1);
    const bool failed = raw.failed || text.failed;
    byte_list_free(&raw);
    if (!failed) return text.data;
    byte_list_free(&text);
    return NULL;
}

int64_t tutti_tokenizer_size(const tutti_tokenizer *tokenizer)
{
    return tokenizer ? (int64_t)tokenizer->vocabulary.size : 0;
}

int32_t tutti_tokenizer_id(const tutti_tokenizer *tokenizer, const char *token)
{
    return tokenizer && token ? vocabulary_find(&tokenizer->vocabulary, token, strlen(token)) : -1;
}

const char *tutti_tokenizer_token(const tutti_tokenizer *tokenizer, int32_t id)
{
    return tokenizer ? vocabulary_text(&tokenizer->vocabulary, id, NULL) : NULL;
}

int32_t tutti_tokenizer_end(const tutti_tokenizer *tokenizer)
{
    (void)tokenizer;
    return -1;
}

char *tutti_tokenizer_json(const tutti_tokenizer *tokenizer)
{
    return tokenizer ? memory_copy_text(tokenizer->json) : NULL;
}
