/* Files of tokenizers that are damaged or ask for what is not there: refused with a message that names it. */
#include "tests/text/text.h"
#include "tutti_text.h"

#include <stdlib.h>
#include <string.h>

#define MODEL(more) "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":[\"a b\"]" more "}"
static const struct {
    const char *json, *word;
} refused[] = {
    { "", "no JSON" },
    { "{", "no JSON" },
    { "[1]", "object" },
    { "{}", "model" },
    { "{\"version\":\"2.0\"," MODEL("") "}", "2.0" },
    { "{\"model\":{\"type\":\"Magic\",\"vocab\":{}}}", "Magic" },
    { "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"a b\"]}}", "\"b\"" },
    { "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"a\"]}}", "merge 1" },
    { "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[[\"a\",1]]}}", "merge 1" },
    { "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":-1},\"merges\":[]}}", "-1" },
    { "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":2147483648},\"merges\":[]}}", "2147483648" },
    { "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":99999999999999999999},\"merges\":[]}}", "JSON" },
    { "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":0},\"merges\":[]}}", "two tokens" },
    { "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0.5},\"merges\":[]}}", "no id" },
    { "{\"model\":{\"type\":\"BPE\",\"dropout\":0.1,\"vocab\":{\"a\":0},\"merges\":[]}}", "dropout" },
    { "{\"model\":{\"type\":\"Unigram\",\"unk_id\":7,\"vocab\":[[\"a\",0]]}}", "unk_id" },
    { "{\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[]}}", "vocab" },
    { "{\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"a\"]]}}", "token 0" },
    { "{\"normalizer\":{\"type\":\"Magic\"}," MODEL("") "}", "Magic" },
    { "{\"normalizer\":{\"type\":\"Sequence\"}," MODEL("") "}", "normalizers" },
    { "{\"normalizer\":{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"////\"}," MODEL("") "}", "damaged" },
    { "{\"normalizer\":{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"*\"}," MODEL("") "}", "base64" },
    { "{\"pre_tokenizer\":{\"type\":\"Magic\"}," MODEL("") "}", "Magic" },
    { "{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"(\"},\"behavior\":\"Isolated\"}," MODEL("") "}",
        "pattern" },
    { "{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"[a&&b]\"},\"behavior\":\"Isolated\"}," MODEL(
          "") "}",
        "&&" },
    { "{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"a{1,2}+\"},\"behavior\":\"Isolated\"}," MODEL(
          "") "}",
        "}+" },
    { "{\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"ab\"}," MODEL("") "}", "replacement" },
    { "{\"added_tokens\":[{\"id\":9,\"content\":\"x\"}]," MODEL("") "}", "where 3 follows" },
    { "{\"added_tokens\":[{\"id\":3,\"content\":\"\"}]," MODEL("") "}", "content" },
    { "{\"post_processor\":{\"type\":\"Magic\"}," MODEL("") "}", "Magic" },
    { "{\"post_processor\":{\"type\":\"BertProcessing\",\"sep\":[\"a\",3],\"cls\":[\"b\",1]}," MODEL("") "}",
        "vocabulary" },
    { "{\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"Sequence\":{\"id\":\"C\"}}],\"pair\":[]}"
      "," MODEL("") "}",
        "\"C\"" },
    { "{\"decoder\":{\"type\":\"Magic\"}," MODEL("") "}", "Magic" },
};

START_TEST(damaged_files_are_refused)
{
    tutti_tokenizer *tokenizer = tutti_tokenizer_parse(refused[_i].json);
    ck_assert_msg(!tokenizer, "%s is accepted", refused[_i].json);
    ck_assert_msg(strstr(tutti_message(NULL), refused[_i].word), "%s: %s", refused[_i].json, tutti_message(NULL));
}
END_TEST

START_TEST(deep_files_are_refused)
{
    enum { DEPTH = 100000 };
    static const char *const open[] = { "{\"normalizer\":", "[" };
    for (int kind = 0; kind < 2; kind++) {
        const size_t each = strlen(open[kind]);
        char *json = malloc(DEPTH * each + 1);
        ck_assert_ptr_nonnull(json);
        for (size_t i = 0; i < DEPTH; i++) memcpy(json + i * each, open[kind], each);
        json[DEPTH * each] = 0;
        ck_assert_ptr_null(tutti_tokenizer_parse(json));
        free(json);
    }
    ck_assert_ptr_null(tutti_tokenizer_parse(NULL));
    ck_assert_ptr_null(tutti_tokenizer_open("/nowhere/tokenizer.json"));
}
END_TEST

/* What no token stands for is a failure where the file names no token for it. */
START_TEST(ids_out_of_range_are_skipped)
{
    tutti_tokenizer *tokenizer = tutti_tokenizer_parse("{" MODEL("") "}");
    ck_assert_ptr_nonnull(tokenizer);
    char *text = tutti_tokenizer_decode(tokenizer, (const int32_t[]) { -1, 2, 3, INT32_MAX, INT32_MIN, 0 }, 6, true);
    ck_assert_str_eq(text, "ab a");
    free(text);
    tutti_encoding encoding;
    ck_assert_int_eq(tutti_tokenizer_encode(tokenizer, "ab", -1, NULL, &encoding), TUTTI_INVALID);
    ck_assert_int_eq(tutti_tokenizer_encode(tokenizer, "abz", 3, NULL, &encoding), TUTTI_OK);
    ck_assert_int_eq(encoding.count, 1); /* as the peer, which leaves out what is not there */
    tutti_encoding_free(&encoding);
    tutti_tokenizer_close(tokenizer);
}
END_TEST

TCase *hostile_tests(void)
{
    TCase *tests = tcase_create("hostile");
    tcase_add_loop_test(tests, damaged_files_are_refused, 0, (int)(sizeof(refused) / sizeof(refused[0])));
    tcase_add_test(tests, deep_files_are_refused);
    tcase_add_test(tests, ids_out_of_range_are_skipped);
    return tests;
}
