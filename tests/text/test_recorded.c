/* Tokenizers and ids that Hugging Face's tokenizers made (tests/text/differential.py --record). */
#include "tests/text/text.h"
#include "tutti_text.h"

#include <check.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = { "roberta", "llama3", "qwen2", "llama2", "clip", "bert", "bert_cased", "unigram",
    "words" };

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

START_TEST(ids_are_the_recorded_ones)
{
    char path[4096];
    const char *name = names[_i];
    snprintf(path, sizeof(path), "%s/tests/text/recorded/%s.json", getenv("TUTTI_SOURCE"), name);
    json_t *file = json_load_file(path, 0, NULL);
    ck_assert_msg(file != NULL, "%s cannot be read", path);
    char *json = json_dumps(json_object_get(file, "tokenizer"), 0);
    tutti_tokenizer *tokenizer = tutti_tokenizer_parse(json);
    ck_assert_msg(tokenizer != NULL, "%s: %s", name, tutti_message(NULL));
    const json_t *cases = json_object_get(file, "cases");
    ck_assert_uint_gt(json_array_size(cases), 10);
    for (int round = 0; round < 2; round++) /* the second time, words come from the cache */
        for (size_t i = 0; i < json_array_size(cases); i++) check_case(tokenizer, json_array_get(cases, i), name, i);
    tutti_tokenizer_close(tokenizer);
    free(json);
    json_decref(file);
}
END_TEST

TCase *recorded_tests(void)
{
    TCase *tests = tcase_create("recorded");
    tcase_add_loop_test(tests, ids_are_the_recorded_ones, 0, (int)(sizeof(names) / sizeof(names[0])));
    return tests;
}
