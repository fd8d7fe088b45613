/* Numbers in a program whose locale has a decimal comma. */
#include <check.h>
#undef fail /* Check's name for something else */

#include "base/numbers.h"
#include "base/status.h"
#include "base/text.h"
#include "formats/safetensors.h"
#include "layers/epilogue.h"
#include "train/checkpoint.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char folder[] = "/tmp/tutti-numbers-XXXXXX";

/* Compiles the German locale, which a bare Debian has only as source text (package `locales`), and sets it. */
static void comma_begin(void)
{
    char command[256], text[16];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(command, sizeof(command), "localedef -i de_DE -f UTF-8 '%s/de_DE.UTF-8'", folder);
    ck_assert_msg(system(command) == 0, "localedef failed: install Debian's package `locales`");
    ck_assert_int_eq(setenv("LOCPATH", folder, 1), 0);
    ck_assert_ptr_nonnull(setlocale(LC_ALL, "de_DE.UTF-8"));
    snprintf(text, sizeof(text), "%.2f", 0.25);
    ck_assert_str_eq(text, "0,25"); /* the locale is what this test needs */
}

static void comma_end(void)
{
    char command[64];
    setlocale(LC_ALL, "C");
    snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    ck_assert_int_eq(system(command), 0);
}

static const char *in_folder(const char *name)
{
    static char path[128];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

START_TEST(text_has_points)
{
    char buffer[64], *end;
    struct text text = { 0 };
    number_print(buffer, sizeof(buffer), "%.2f %a %g", 0.25, 0.75, 1e-3);
    ck_assert_str_eq(buffer, "0.25 0x1.8p-1 0.001");
    number_append(buffer, sizeof(buffer), " and %.1f", 0.5);
    ck_assert_str_eq(buffer + strlen(buffer) - 8, " and 0.5");
    text_append(&text, "%.1f %s", 1.5, "x");
    ck_assert_str_eq(text.data, "1.5 x");
    text_free(&text);
    fail(TUTTI_INVALID, "%g", 2.5);
    ck_assert_str_eq(status_message(), "2.5");
    ck_assert(number_read("0.25,1", &end) == 0.25 && *end == ',');
    ck_assert(number_read("0x1.8p-1", &end) == 0.75 && !*end);
    snprintf(buffer, sizeof(buffer), "%.2f", 0.25);
    ck_assert_str_eq(buffer, "0,25"); /* the program's own locale stays as it is */
}
END_TEST

START_TEST(build_options_have_points)
{
    const struct nonlinearity function = { .activation = ACTIVATION_LEAKY_RELU, .low = 0.25f };
    char options[EPILOGUE_OPTIONS];
    activation_options(function, options, sizeof(options));
    ck_assert_msg(strstr(options, "-DLOW=2.500000000e-01f"), "%s", options);
}
END_TEST

START_TEST(checkpoints_have_points)
{
    static const struct optimizer sgd = { .kind = TUTTI_SGD, .learning_rate = 0.125f };
    struct parameter parameter = { .name = "w", .shape = { 1, { 2 } }, .elements = 2, .offset = 0 };
    float weights[64] = { 1, 2 };
    struct checkpoint checkpoint = { .parameters = &parameter,
        .count = 1,
        .weights = { weights, NULL },
        .optimizer = &sgd,
        .position = { .steps = 3, .epoch_samples = 9, .samples = 6, .loss = 0.1, .correct = 1.5 } };
    struct safetensors *state;
    char pair[128];
    snprintf(pair, sizeof(pair), "%s", in_folder("a"));
    ck_assert_msg(checkpoint_save(&checkpoint, pair) == TUTTI_OK, "%s", status_message());
    ck_assert_int_eq(safetensors_open(in_folder("a.state.safetensors"), &state), TUTTI_OK);
    ck_assert_str_eq(safetensors_metadata(state, "epoch_correct"), "0x1.8p+0");
    ck_assert_str_eq(safetensors_metadata(state, "learning_rate"), "0.125");
    safetensors_close(state);
    setlocale(LC_ALL, "C"); /* another program, without a locale, goes on; and back */
    checkpoint.position = (struct position) { 0 };
    ck_assert_msg(checkpoint_load(&checkpoint, pair) == TUTTI_OK, "%s", status_message());
    ck_assert(checkpoint.position.loss == 0.1 && checkpoint.position.correct == 1.5);
    ck_assert_int_eq(checkpoint_save(&checkpoint, pair), TUTTI_OK);
    ck_assert_ptr_nonnull(setlocale(LC_ALL, "de_DE.UTF-8"));
    checkpoint.position = (struct position) { 0 };
    ck_assert_msg(checkpoint_load(&checkpoint, pair) == TUTTI_OK, "%s", status_message());
    ck_assert(checkpoint.position.loss == 0.1 && checkpoint.position.correct == 1.5);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("numbers");
    TCase *tests = tcase_create("comma");
    tcase_add_checked_fixture(tests, comma_begin, comma_end);
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, text_has_points);
    tcase_add_test(tests, build_options_have_points);
    tcase_add_test(tests, checkpoints_have_points);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
