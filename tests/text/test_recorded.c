/* Tokenizers and ids that Hugging Face's tokenizers made (tests/text/differential.py --record), and models and ids that
 * SentencePiece made (sentencepiece.py --record). */
#include "tests/text/text.h"
#include "tutti_text.h"

#include <check.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const names[] = { "roberta", "llama3", "qwen2", "llama2", "clip", "bert", "bert_cased", "unigram",
    "words", "sentencepiece_unigram", "sentencepiece_bpe_bytes" };

/* Bytes of hexadecimal digits; NULL: there are none. */
static char *bytes_of(const json_t *json, size_t *size)
{
    const char *digits = json_string_value(json);
    if (!digits) return NULL;
    *size = strlen(digits) / 2;
    char *bytes = malloc(*size + 1); /* of this size: reading beyond it is seen by sanitizers */
    ck_assert_ptr_nonnull(bytes);
    for (size_t i = 0; i < *size; i++) {
        unsigned byte;
        ck_assert_int_eq(sscanf(digits + 2 * i, "%2x", &byte), 1);
        bytes[i] = (char)byte;
    }
    return bytes;
}

static void check_case(const tutti_tokenizer *tokenizer, const json_t *recorded, const char *name, size_t number)
{
    size_t size = 0, pair_size = 0;
    char *text = bytes_of(json_object_get(recorded, "text"), &size);
    char *pair = bytes_of(json_object_get(recorded, "pair"), &pair_size);
    const tutti_encode_options options = { .pair = pair, .pair_bytes = (int64_t)pair_size };
    tutti_encoding encoding;
    ck_assert_msg(tutti_tokenizer_encode(tokenizer, text, (int64_t)size, &options, &encoding) == TUTTI_OK, "%s %zu: %s",
        name, number, tutti_message(NULL));
    const json_t *ids = json_object_get(recorded, "ids"), *types = json_object_get(recorded, "types");
    ck_assert_msg(encoding.count == (int64_t)json_array_size(ids), "%s %zu: %lld ids instead of %zu", name, number,
        (long long)encoding.count, json_array_size(ids));
    for (int64_t i = 0; i < encoding.count; i++) {
        const json_int_t id = json_integer_value(json_array_get(ids, (size_t)i));
        const json_int_t type = json_integer_value(json_array_get(types, (size_t)i));
        ck_assert_msg(encoding.ids[i] == id && encoding.types[i] == type, "%s %zu: token %lld is %d instead of %d",
            name, number, (long long)i, encoding.ids[i], (int)id);
    }
    char *decoded = tutti_tokenizer_decode(tokenizer, encoding.ids, encoding.count, false);
    ck_assert_str_eq(decoded, json_string_value(json_object_get(recorded, "decoded")));
    free(decoded);
    tutti_encoding_free(&encoding);
    free(text);
    free(pair);
}

static json_t *read_recorded(const char *name)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/tests/text/recorded/%s.json", getenv("TUTTI_SOURCE"), name);
    json_t *file = json_load_file(path, 0, NULL);
    ck_assert_msg(file != NULL, "%s cannot be read", path);
    return file;
}

/* Opens bytes as a model of SentencePiece. */
static tutti_tokenizer *open_model(const char *bytes, size_t size)
{
    char path[] = "/tmp/tutti-XXXXXX.model";
    const int descriptor = mkstemps(path, 6);
    ck_assert_int_ge(descriptor, 0);
    ck_assert_int_eq(write(descriptor, bytes, size), (ssize_t)size);
    ck_assert_int_eq(close(descriptor), 0);
    tutti_tokenizer *tokenizer = tutti_tokenizer_open(path);
    ck_assert_int_eq(unlink(path), 0);
    return tokenizer;
}

static tutti_tokenizer *open_recorded(const json_t *file)
{
    size_t size;
    char *model = bytes_of(json_object_get(file, "model"), &size);
    char *json = json_dumps(json_object_get(file, "tokenizer"), 0);
    tutti_tokenizer *tokenizer = model ? open_model(model, size) : tutti_tokenizer_parse(json);
    free(model);
    free(json);
    return tokenizer;
}

START_TEST(ids_are_the_recorded_ones)
{
    const char *name = names[_i];
    json_t *file = read_recorded(name);
    tutti_tokenizer *tokenizer = open_recorded(file);
    ck_assert_msg(tokenizer != NULL, "%s: %s", name, tutti_message(NULL));
    const json_t *cases = json_object_get(file, "cases");
    ck_assert_uint_gt(json_array_size(cases), 10);
    for (int round = 0; round < 2; round++) /* the second time, words come from the cache */
        for (size_t i = 0; i < json_array_size(cases); i++) check_case(tokenizer, json_array_get(cases, i), name, i);
    tutti_tokenizer_close(tokenizer);
    json_decref(file);
}
END_TEST

/* What a model of SentencePiece was saved as gives the same ids. */
START_TEST(models_are_saved_as_json)
{
    json_t *file = read_recorded("sentencepiece_unigram");
    tutti_tokenizer *model = open_recorded(file);
    char *json = tutti_tokenizer_json(model);
    tutti_tokenizer *saved = tutti_tokenizer_parse(json);
    ck_assert_msg(saved != NULL, "%s", tutti_message(NULL));
    free(json);
    const json_t *cases = json_object_get(file, "cases");
    for (size_t i = 0; i < json_array_size(cases); i++) check_case(saved, json_array_get(cases, i), "saved", i);
    tutti_tokenizer_close(saved);
    tutti_tokenizer_close(model);
    json_decref(file);
}
END_TEST

/* Sanitizers see what these read. */
START_TEST(damaged_models_are_survived)
{
    json_t *file = read_recorded("sentencepiece_bpe_bytes");
    size_t size;
    char *model = bytes_of(json_object_get(file, "model"), &size);
    for (size_t cut = 0; cut < size; cut += 97) tutti_tokenizer_close(open_model(model, cut));
    for (size_t at = 0; at < size; at += 41) {
        model[at] = (char)(model[at] ^ (1 << at % 8));
        tutti_tokenizer_close(open_model(model, size));
        model[at] = (char)(model[at] ^ (1 << at % 8));
    }
    free(model);
    json_decref(file);
}
END_TEST

/* Messages of protocol buffers: pieces of one letter, and what else is said. */
#define PIECE(letter) "\x0a\x03\x0a\x01" letter
#define UNKNOWN_PIECE "\x0a\x05\x0a\x01?\x18\x02"
#define TYPED(letter, type) "\x0a\x05\x0a\x01" letter "\x18" type
#define MODEL(bytes, word)             \
    {                                  \
        bytes, sizeof(bytes) - 1, word \
    }
static const struct {
    const char *bytes;
    size_t size;
    const char *word;
} refused[] = { MODEL("", "no pieces"), MODEL("\x0a\x7f", "no model"), MODEL(PIECE("a"), "unknown"),
    MODEL(UNKNOWN_PIECE PIECE("a") PIECE("a"), "twice"), MODEL(UNKNOWN_PIECE PIECE("\xff"), "UTF-8"),
    MODEL(UNKNOWN_PIECE TYPED("a", "\x02"), "are both"), MODEL(UNKNOWN_PIECE TYPED("a", "\x05"), "unused"),
    MODEL(UNKNOWN_PIECE TYPED("a", "\x09"), "type of pieces"), MODEL(UNKNOWN_PIECE TYPED("a", "\x04"), "user-defined"),
    MODEL(UNKNOWN_PIECE PIECE("a") "\x12\x02\x18\x04", "whole words"),
    MODEL(UNKNOWN_PIECE PIECE("a") "\x12\x03\xc0\x01\x01", "end of words"),
    MODEL(UNKNOWN_PIECE PIECE("a") "\x1a\x02\x28\x00", "replace blanks") };

START_TEST(models_that_are_not_understood_are_refused)
{
    tutti_tokenizer *tokenizer = open_model(refused[_i].bytes, refused[_i].size);
    ck_assert_msg(!tokenizer, "%s: accepted", refused[_i].word);
    ck_assert_msg(strstr(tutti_message(NULL), refused[_i].word), "%s: %s", refused[_i].word, tutti_message(NULL));
}
END_TEST

TCase *recorded_tests(void)
{
    TCase *tests = tcase_create("recorded");
    tcase_add_loop_test(tests, ids_are_the_recorded_ones, 0, (int)(sizeof(names) / sizeof(names[0])));
    tcase_add_test(tests, models_are_saved_as_json);
    tcase_add_test(tests, damaged_models_are_survived);
    tcase_add_loop_test(
        tests, models_that_are_not_understood_are_refused, 0, (int)(sizeof(refused) / sizeof(refused[0])));
    return tests;
}
