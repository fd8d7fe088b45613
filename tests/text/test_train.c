/* Tokenizers learned from texts. */
#include "tests/text/text.h"
#include "tutti_text.h"

#include <stdlib.h>
#include <string.h>

/* What the peer's trainer learns of the same text, with min_frequency 2. */
START_TEST(merges_are_the_peers)
{
    static const char *const texts[] = { "low lower lowest low\n", "new newer newest\n", "aaaa aaaaa wide wider\n" };
    static const char *const learned[] = { "aa", "lo", "we", "ne",
        "\xC4\xA0"
        "lo",
        "de", "ide", "st", "wide",
        "\xC4\xA0"
        "ne",
        "\xC4\xA0"
        "wide",
        "aaaa", "wer", "west" };
    const tutti_tokenizer_options options = { .tokens = 256 + sizeof(learned) / sizeof(learned[0]) };
    tutti_tokenizer *tokenizer = tutti_tokenizer_train(texts, NULL, 3, &options);
    ck_assert_msg(tokenizer != NULL, "%s", tutti_message(NULL));
    for (size_t i = 0; i < sizeof(learned) / sizeof(learned[0]); i++)
        ck_assert_str_eq(tutti_tokenizer_token(tokenizer, 256 + (int32_t)i), learned[i]);
    tutti_tokenizer_close(tokenizer);
}
END_TEST

START_TEST(characters_are_sorted)
{
    static const char *const special[] = { "<unk>" };
    const char *const texts[] = { "hello", "\xC3\xA4" };
    const tutti_tokenizer_options options = { .kind = "characters", .special = special, .special_count = 1 };
    tutti_tokenizer *tokenizer = tutti_tokenizer_train(texts, (const int64_t[]) { 5, 2 }, 2, &options);
    ck_assert_msg(tokenizer != NULL, "%s", tutti_message(NULL));
    ck_assert_int_eq(tutti_tokenizer_size(tokenizer), 6);
    tutti_encoding encoding;
    ck_assert_int_eq(tutti_tokenizer_encode(tokenizer, "oz\xC3\xA4h", 5, NULL, &encoding), TUTTI_OK);
    static const int32_t ids[] = { 4, 0, 5, 2 };
    ck_assert_int_eq(encoding.count, 4);
    for (int i = 0; i < 4; i++) ck_assert_int_eq(encoding.ids[i], ids[i]);
    char *text = tutti_tokenizer_decode(tokenizer, encoding.ids, encoding.count, false);
    ck_assert_str_eq(text, "o\xC3\xA4h");
    free(text);
    tutti_encoding_free(&encoding);
    tutti_tokenizer_close(tokenizer);
}
END_TEST

START_TEST(wrong_options_are_refused)
{
    const char *const texts[] = { "a" };
    ck_assert_ptr_null(tutti_tokenizer_train(texts, NULL, 1, &(tutti_tokenizer_options) { .kind = "magic" }));
    ck_assert_ptr_null(tutti_tokenizer_train(texts, NULL, 1, &(tutti_tokenizer_options) { .tokens = -1 }));
    ck_assert_ptr_null(tutti_tokenizer_train(texts, NULL, 1, &(tutti_tokenizer_options) { .special_count = 1 }));
    ck_assert_ptr_null(tutti_tokenizer_train(NULL, NULL, 1, NULL));
    ck_assert_ptr_null(tutti_tokenizer_train(texts, (const int64_t[]) { -1 }, 1, NULL));
}
END_TEST

TCase *train_tests(void)
{
    TCase *tests = tcase_create("train");
    tcase_add_test(tests, merges_are_the_peers);
    tcase_add_test(tests, characters_are_sorted);
    tcase_add_test(tests, wrong_options_are_refused);
    return tests;
}
