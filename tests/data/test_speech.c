/* Recordings with transcripts as steps and labels. */
#include "kinds.h"

#include <string.h>

START_TEST(reads_steps)
{
    enum { MOST_STEPS = 64 };
    static float shorter[MOST_STEPS * 161], longer[MOST_STEPS * 161];
    int32_t target[8];
    put_tone("a.wav", 8000, 440, 0.5);
    put_text("a.txt", "\xef\xbb\xbf Ab\r\n b ");
    put_tone("b.wav", 8000, 880, 0.9);
    put_text("b.lab", "b");
    put_tone("c.wav", 8000, 880, 0.9); /* no transcript */
    struct collection *speech = opened(speech_pairs_open, ".", &(tutti_data_options) { .note = hear });
    const tutti_data_info *info = &speech->info;
    ck_assert_str_eq(info->kind, "speech");
    ck_assert_int_eq(speech->samples, 2);
    ck_assert_int_eq(info->classes, 1 + 3); /* blank, ' ', 'a', 'b' */
    ck_assert_int_eq(info->target_shape.sizes[0], 4);
    ck_assert_int_eq(info->shape.sizes[1], 161);
    const int64_t steps = speech->length(speech, 0);
    ck_assert_int_eq(steps, 16); /* 4000 samples: 32 frames of 128 */
    ck_assert_int_eq(speech->length(speech, 1), info->length);
    ck_assert_int_eq(speech->read_steps(speech, 0, NULL, steps, shorter, target), TUTTI_OK);
    ck_assert_int_eq(memcmp(target, (int32_t[]) { 2, 3, 1, 3 }, 4 * sizeof *target), 0);
    memset(longer, 0xff, sizeof longer);
    ck_assert_int_eq(speech->read_steps(speech, 0, NULL, steps + 8, longer, NULL), TUTTI_OK);
    ck_assert_int_eq(memcmp(shorter, longer, (size_t)steps * 161 * sizeof *longer), 0);
    for (int64_t i = steps * 161; i < (steps + 8) * 161; i++) ck_assert(longer[i] == 0);
    for (int64_t t = 0; t < steps; t++) ck_assert(shorter[t * 161 + 160] == 1);
    ck_assert(shorter[161] == shorter[80]); /* the second step's first frame is the first one's third */
    ck_assert_int_eq(speech->read_steps(speech, 0, NULL, steps - 1, longer, NULL), TUTTI_INVALID);
    ck_assert_int_eq(speech->read_steps(speech, 1, NULL, info->length, longer, target), TUTTI_OK);
    ck_assert_int_eq(memcmp(target, (int32_t[]) { 3, -1, -1, -1 }, 4 * sizeof *target), 0);
    speech->free(speech);
}
END_TEST

/* Tables of other kinds are none of speech, and are not read beyond their first row; damaged ones are refused. */
START_TEST(tells_tables_apart)
{
    const tutti_data_options plain = { .note = hear }, named = { .note = hear, .text = "text" };
    static const char *const others[] = { "id,text\nx,a b\n", "text\tlabel\na b\tc\n", "a|b|c\n", "\"a",
        "1 2 3\n4 5 6\n", "" };
    struct collection *made;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        put_text("other/train.csv", others[i]);
        ck_assert_int_eq(speech_open(in_kinds("other/"), &plain, &made), TUTTI_OK);
        ck_assert_ptr_null(made);
        ck_assert_int_eq(speech_open(in_kinds("other/train.csv"), &named, &made), TUTTI_OK);
        ck_assert_ptr_null(made);
    }
    put_tone("t/a.wav", 8000, 440, 0.5);
    put_text("t/metadata.csv", "path|text\na|b\na|c\n");
    made = opened(speech_open, "t/metadata.csv", &plain);
    ck_assert_int_eq(made->samples, 2);
    made->free(made);
    const tutti_data_options foreign = { .note = hear, .description = "{\"kind\":\"recordings\"}" };
    ck_assert_int_eq(speech_open(in_kinds("t/metadata.csv"), &foreign, &made), TUTTI_OK);
    ck_assert_ptr_null(made); /* of a network that was trained before transcripts were read */
    put("t/metadata.csv", "path|text\na|b\na|c\0d\n", 20);
    expect_refused(speech_open, "t/metadata.csv", &plain, "metadata.csv", "a byte of row 2 is 0");
    put_text("t/metadata.csv", "path|text\na|b\nmissing|c\n");
    expect_refused(speech_open, "t/metadata.csv", &plain, "metadata.csv", "row 2 names the recording 'missing'");
    put_text("t/metadata.csv", "path|text\na|\na|\n");
    expect_refused(speech_open, "t/metadata.csv", &plain, "metadata.csv", "no recording with a transcript is left");
}
END_TEST

Suite *speech_suite(void)
{
    Suite *suite = suite_create("speech");
    TCase *test = tcase_create("speech");
    tcase_add_checked_fixture(test, kinds_begin, kinds_end);
    tcase_add_test(test, reads_steps);
    tcase_add_test(test, tells_tables_apart);
    suite_add_tcase(suite, test);
    return suite;
}
