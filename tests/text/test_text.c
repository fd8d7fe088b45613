/* Tokenizers: include/tutti_text.h. */
#include "tutti_text.h"

#include "tests/text/text.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static const char text[] = "Gr\xC3\xBC\xC3\x9F"
                           "e \xF0\x9F\x99\x82\n";

START_TEST(bytes_are_ids)
{
    tutti_tokenizer *tokenizer = tutti_tokenizer_open("bytes");
    ck_assert_ptr_nonnull(tokenizer);
    ck_assert_int_eq(tutti_tokenizer_size(tokenizer), 256);
    ck_assert_int_eq(tutti_tokenizer_id(tokenizer, "A"), 'A');
    ck_assert_str_eq(tutti_tokenizer_token(tokenizer, ' '), "\xC4\xA0"); /* as GPT-2 writes a space */
    ck_assert_ptr_null(tutti_tokenizer_token(tokenizer, 256));
    ck_assert_int_eq(tutti_tokenizer_end(tokenizer), -1);
    tutti_encoding encoding;
    ck_assert_int_eq(tutti_tokenizer_encode(tokenizer, text, (int64_t)strlen(text), NULL, &encoding), TUTTI_OK);
    ck_assert_int_eq(encoding.count, strlen(text));
    for (int64_t i = 0; i < encoding.count; i++) {
        ck_assert_int_eq(encoding.ids[i], (unsigned char)text[i]);
        ck_assert_int_eq(encoding.types[i], 0);
    }
    char *back = tutti_tokenizer_decode(tokenizer, encoding.ids, encoding.count, false);
    ck_assert_str_eq(back, text);
    free(back);
    tutti_encoding_free(&encoding);
    tutti_tokenizer_close(tokenizer);
}
END_TEST

START_TEST(saved_and_read_again)
{
    tutti_tokenizer *tokenizer = tutti_tokenizer_open("bytes");
    char *json = tutti_tokenizer_json(tokenizer);
    tutti_tokenizer *again = tutti_tokenizer_parse(json);
    ck_assert_ptr_nonnull(again);
    char *same = tutti_tokenizer_json(again);
    ck_assert_str_eq(json, same);
    const tutti_encode_options pair = { .pair = "cd", .pair_bytes = 2, .most = 3 };
    tutti_encoding encoding;
    ck_assert_int_eq(tutti_tokenizer_encode(again, "ab", 2, &pair, &encoding), TUTTI_OK);
    ck_assert_int_eq(encoding.count, 3);
    ck_assert_int_eq(encoding.ids[1], 'c'); /* both texts are cut: half of three and what is left */
    ck_assert_int_eq(encoding.ids[2], 'd');
    ck_assert_int_eq(encoding.types[0], 0);
    ck_assert_int_eq(encoding.types[1], 1);
    tutti_encoding_free(&encoding);
    free(json);
    free(same);
    tutti_tokenizer_close(again);
    tutti_tokenizer_close(tokenizer);
}
END_TEST

/* What is not UTF-8 counts as U+FFFD for each longest beginning of a character. */
START_TEST(broken_utf8_is_replaced)
{
    static const struct {
        const char *text;
        int replaced, kept;
    } cases[] = { { "a\xFF"
                    "b",
                      1, 2 },
        { "\xE2\x82", 1, 0 },
        { "\xE2\x82"
          "b",
            1, 1 },
        { "\xF0\x9F\x99", 1, 0 }, { "\xED\xA0\x80", 3, 0 }, { "\xC0\xAF", 2, 0 }, { "\xF4\x90\x80\x80", 4, 0 },
        { "\xE2\x28\xA1", 2, 1 } };
    tutti_tokenizer *tokenizer = tutti_tokenizer_open("bytes");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        tutti_encoding encoding;
        ck_assert_int_eq(
            tutti_tokenizer_encode(tokenizer, cases[i].text, (int64_t)strlen(cases[i].text), NULL, &encoding),
            TUTTI_OK);
        ck_assert_int_eq(encoding.count, cases[i].replaced * 3 + cases[i].kept);
        tutti_encoding_free(&encoding);
    }
    tutti_tokenizer_close(tokenizer);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("text");
    TCase *tokenizers = tcase_create("tokenizers");
    tcase_add_test(tokenizers, bytes_are_ids);
    tcase_add_test(tokenizers, saved_and_read_again);
    tcase_add_test(tokenizers, broken_utf8_is_replaced);
    suite_add_tcase(suite, tokenizers);
    suite_add_tcase(suite, recorded_tests());
    suite_add_tcase(suite, hostile_tests());
    suite_add_tcase(suite, train_tests());
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
