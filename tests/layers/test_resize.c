/* Tables of resize and their transposition, compared with ONNX's reference implementation (make_resize.py). */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#undef fail /* base/status.h has its own */

#include "layers/resize.h"

enum { LINE = 4000, SIZE = 64 };

static int number_of(const char *name, const char *const *names)
{
    int i = 0;
    while (names[i] && strcmp(names[i], name) != 0) i++;
    ck_assert_msg(names[i], "there is no '%s'", name);
    return i;
}

/* The elements and weights of an output, as "0:0.5,1:0.5"; false: "-", none. */
static bool read_row(const char *text, double row[SIZE])
{
    memset(row, 0, SIZE * sizeof *row);
    for (char *end; *text && *text != '-'; text = *end == ',' ? end + 1 : end) {
        const long element = strtol(text, &end, 10);
        ck_assert(*end == ':' && element >= 0 && element < SIZE);
        row[element] = strtod(end + 1, &end);
    }
    return *text != '-';
}

static void check_row(const struct taps *taps, int64_t j, const char *text, const char *line)
{
    double row[SIZE];
    const bool any = read_row(text, row);
    ck_assert_msg(any == (taps->starts[j + 1] > taps->starts[j]), "output %d: %s", (int)j, line);
    for (int32_t t = taps->starts[j]; t < taps->starts[j + 1]; t++) {
        ck_assert_msg(t == taps->starts[j] || taps->positions[t] > taps->positions[t - 1], "order: %s", line);
        row[taps->positions[t]] -= (double)taps->weights[t];
    }
    for (int i = 0; i < SIZE; i++)
        ck_assert_msg(fabs(row[i]) < 2e-7, "output %d, element %d: off by %g in %s", (int)j, i, row[i], line);
}

/* Twice transposed, a table with its positions in order is what it was. */
static void check_transposed(const struct taps *taps)
{
    struct taps back = { 0 }, again = { 0 };
    ck_assert(taps_transpose(taps, &back) == TUTTI_OK && taps_transpose(&back, &again) == TUTTI_OK);
    ck_assert(back.from == taps->to && back.to == taps->from && again.count == taps->count);
    ck_assert_mem_eq(again.starts, taps->starts, (size_t)(taps->to + 1) * sizeof *taps->starts);
    ck_assert_mem_eq(again.positions, taps->positions, (size_t)taps->count * sizeof *taps->positions);
    ck_assert_mem_eq(again.weights, taps->weights, (size_t)taps->count * sizeof *taps->weights);
    taps_free(&back);
    taps_free(&again);
}

static void check_line(char *line)
{
    static const char *const modes[] = { "nearest", "linear", "cubic", NULL },
                             *const coordinates[] = { "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel",
                                 "align_corners", "asymmetric", "tf_crop_and_resize", NULL },
                             *const nearest[] = { "round_prefer_floor", "round_prefer_ceil", "floor", "ceil", NULL };
    char mode[32], from[32], round[32];
    int antialias, exclude, size, to, used = 0;
    double a;
    struct resize_axis axis = { 0 };
    struct taps taps;
    ck_assert_int_eq(sscanf(line, "%31s %31s %31s %d %d %lf %d %d %lf %lf %lf %n", mode, from, round, &antialias,
                         &exclude, &a, &size, &to, &axis.scale, &axis.begin, &axis.end, &used),
        11);
    const struct resize how = { .mode = number_of(mode, modes),
        .coordinates = number_of(from, coordinates),
        .nearest = number_of(round, nearest),
        .cubic_coeff_a = (float)a,
        .antialias = antialias != 0,
        .exclude_outside = exclude != 0 };
    axis.from = size;
    axis.to = to;
    ck_assert_msg(resize_taps(&how, &axis, &taps) == TUTTI_OK, "%s: %s", line, tutti_message(NULL));
    char *text = line + used, *next = NULL;
    int64_t j = 0;
    for (char *row = strtok_r(text, " \n", &next); row; row = strtok_r(NULL, " \n", &next))
        check_row(&taps, j++, row, line);
    ck_assert_int_eq(j, to);
    check_transposed(&taps);
    taps_free(&taps);
}

START_TEST(test_tables)
{
    char path[1024], line[LINE];
    int lines = 0;
    snprintf(path, sizeof path, "%s/tests/layers/resize.txt", getenv("TUTTI_SOURCE"));
    FILE *file = fopen(path, "r");
    ck_assert_msg(file != NULL, "cannot read %s", path);
    for (; fgets(line, sizeof line, file); lines++) check_line(line);
    fclose(file);
    ck_assert_int_gt(lines, 50);
}
END_TEST

START_TEST(test_refusals)
{
    static const struct resize_axis axes[] = { { 5, 5, 0, 0, 1 }, { 5, 5, -1, 0, 1 }, { 5, 5, NAN, 0, 1 },
        { 5, 5, 1e-9, 0, 1 }, { 0, 5, 1, 0, 1 }, { 5, 0, 1, 0, 1 }, { 5, 5, 1, 0, 1e300 }, { 5, 5, 1, NAN, 1 } };
    const struct resize how = { .mode = RESIZE_LINEAR, .coordinates = RESIZE_TF_CROP_AND_RESIZE };
    struct taps taps;
    ck_assert_int_ne(resize_taps(&how, &axes[_i], &taps), TUTTI_OK);
    taps_free(&taps);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("resize");
    TCase *tcase = tcase_create("resize");
    tcase_add_test(tcase, test_tables);
    tcase_add_loop_test(tcase, test_refusals, 0, 8);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
