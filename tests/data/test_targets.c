/* Targets that are numbers: standardised by the training part, or by numbers that are known. */
#include "kinds.h"

#include "formats/npz.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Parts of three and two rows; mean and deviation are those of the first. */
static void write_houses(void)
{
    put_text("houses/train.csv", "area,price\n50,220000\n90,300000\n70,380000\n");
    put_text("houses/test.csv", "area,price\n40,460000\n60,-20000\n");
}

static void expect_target(struct collection *data, int64_t index, float expected)
{
    float sample[4], target;
    ck_assert_msg(read_floats(data, index, sample, &target) == TUTTI_OK, "%s", status_message());
    ck_assert_float_eq_tol(target, expected, 1e-6f);
}

START_TEST(standardises_columns)
{
    write_houses();
    struct collection *table = opened(table_open, "houses", &(tutti_data_options) { .size = 0 });
    const float std = 65319.7265f;
    ck_assert_double_eq(table->info.target_mean[0], 300000);
    ck_assert_double_eq_tol(table->info.target_std[0], std, 0.01f);
    for (int i = 0; i < 5; i++) expect_target(table, i, ((float[]) { -80000, 0, 80000, 160000, -320000 })[i] / std);
    table->free(table);
    put_text("same.csv", "a,b\n1,7\n2,7\n");
    table = opened(table_open, "same.csv", &(tutti_data_options) { .size = 0 });
    ck_assert_double_eq(table->info.target_std[0], 1);
    expect_target(table, 1, 0);
    table->free(table);
    put_text("classes.csv", "a,b\n1,x\n2,y\n");
    table = opened(table_open, "classes.csv", &(tutti_data_options) { .size = 0 });
    ck_assert_ptr_null(table->info.target_mean);
    table->free(table);
}
END_TEST

/* Columns and targets of times in milliseconds, whose floats are 131072 apart: both are standardised by their own mean,
 * here and by the text that a file of weights has. */
START_TEST(keeps_times)
{
    static const double middle = 1.6e12;
    put_text("ms.csv", "a,b\n1599999999000,1600000001000\n1600000001000,1599999999000\n");
    struct collection *table = opened(table_open, "ms.csv", &(tutti_data_options) { .size = 0 });
    for (int turn = 0; turn < 2; turn++) {
        for (int i = 0; i < 2; i++) {
            float sample, target;
            ck_assert_int_eq(read_floats(table, i, &sample, &target), TUTTI_OK);
            ck_assert_double_eq_tol((double)sample, i ? 1 : -1, 1e-6);
            ck_assert_double_eq_tol((double)target, i ? -1 : 1, 1e-6);
        }
        ck_assert_double_eq_tol(table->info.target_mean[0], middle, 1e-3);
        ck_assert_double_eq_tol(table->info.target_std[0], 1000, 1e-6);
        table->free(table);
        if (turn) break;
        table = opened(table_open, "ms.csv",
            &(tutti_data_options) { .normalise = "1600000000000/1000", .normalise_targets = "1600000000000/1000" });
    }
}
END_TEST

/* No digit is lost in between, although floats near 1.7e9 are 128 apart. */
START_TEST(keeps_digits)
{
    put_text("times.csv", "a,b\n1,1700000000\n2,1700000010\n");
    struct collection *table = opened(table_open, "times.csv", &(tutti_data_options) { .size = 0 });
    const double mean = (double)table->info.target_mean[0], std = (double)table->info.target_std[0];
    ck_assert_double_eq_tol(std, 5, 1e-5);
    for (int i = 0; i < 2; i++) {
        float sample, target;
        ck_assert_int_eq(read_floats(table, i, &sample, &target), TUTTI_OK);
        ck_assert_double_eq_tol((double)target * std + mean, 1700000000 + 10 * i, 1e-3);
    }
    table->free(table);
}
END_TEST

START_TEST(takes_numbers)
{
    write_houses();
    struct collection *table =
        opened(table_open, "houses", &(tutti_data_options) { .normalise_targets = "200000/50000" });
    ck_assert_double_eq(table->info.target_mean[0], 200000);
    ck_assert_double_eq(table->info.target_std[0], 50000);
    expect_target(table, 4, -4.4f);
    table->free(table);
    table = opened(table_open, "houses", &(tutti_data_options) { .normalise_targets = "none" });
    expect_target(table, 4, -20000);
    table->free(table);
    static const char *const bad[] = { "1,2/3,4", "1/0", "1/nan", "inf/1", "1", "" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        expect_refused(
            table_open, "houses", &(tutti_data_options) { .normalise_targets = bad[i] }, "the targets", "measured");
}
END_TEST

static struct npz_array array(const char *name, enum npz_type type, int64_t rows, int64_t columns, void *data)
{
    return (struct npz_array) { .name = name, .type = type, .rank = 2, .sizes = { rows, columns }, .data = data };
}

/* Each number of a target by itself, from the training part; a target that is not finite is left out. */
START_TEST(standardises_arrays)
{
    float x[4] = { 1, 2, 3, 4 }, sample, target[2];
    double y[4][2] = { { 1e6, 5 }, { 1e6 + 200, 5 }, { NAN, 9 }, { 1e6 + 300, 6 } };
    const struct npz_array arrays[] = { array("train_x", NPZ_F32, 3, 1, x), array("train_y", NPZ_F64, 3, 2, y),
        array("test_x", NPZ_F32, 1, 1, x + 3), array("test_y", NPZ_F64, 1, 2, y[3]) };
    ck_assert_msg(npz_save(in_kinds("a.npz"), arrays, 4) == TUTTI_OK, "%s", status_message());
    struct collection *data = opened(arrays_open, "a.npz", &(tutti_data_options) { .size = 0 });
    ck_assert_int_eq(data->info.target_shape.sizes[0], 2);
    ck_assert_double_eq(data->info.target_mean[0], 1000100);
    ck_assert_double_eq(data->info.target_std[0], 100);
    ck_assert_double_eq(data->info.target_mean[1], 5);
    ck_assert_double_eq(data->info.target_std[1], 1);
    ck_assert_int_eq(read_floats(data, 3, &sample, target), TUTTI_OK);
    ck_assert_float_eq(target[0], 2);
    ck_assert_float_eq(target[1], 1);
    ck_assert_int_eq(read_floats(data, 2, &sample, target), TUTTI_FORMAT);
    ck_assert_ptr_nonnull(strstr(status_message(), "train_y[2] has numbers that are not finite"));
    data->free(data);
    data = opened(arrays_open, "a.npz", &(tutti_data_options) { .normalise_targets = "1000000,4/200,2" });
    ck_assert_int_eq(read_floats(data, 3, &sample, target), TUTTI_OK);
    ck_assert_float_eq(target[0], 1.5f);
    ck_assert_float_eq(target[1], 1);
    data->free(data);
    expect_refused(
        arrays_open, "a.npz", &(tutti_data_options) { .normalise_targets = "1/2" }, "the targets", "2 means");
}
END_TEST

/* More numbers than are standardised: they stay as they are. */
START_TEST(leaves_large_targets)
{
    enum { NUMBERS = (1 << 16) + 1 };
    float x[2] = { 1, 2 }, sample, *y = calloc(2 * NUMBERS, sizeof *y), *target = calloc(NUMBERS, sizeof *target);
    ck_assert(y && target);
    y[2 * NUMBERS - 1] = 300;
    const struct npz_array arrays[] = { array("x", NPZ_F32, 2, 1, x), array("y", NPZ_F32, 2, NUMBERS, y) };
    ck_assert_msg(npz_save(in_kinds("a.npz"), arrays, 2) == TUTTI_OK, "%s", status_message());
    struct collection *data = opened(arrays_open, "a.npz", &(tutti_data_options) { .size = 0 });
    ck_assert_ptr_null(data->info.target_mean);
    ck_assert_int_eq(read_floats(data, 1, &sample, target), TUTTI_OK);
    ck_assert_float_eq(target[NUMBERS - 1], 300);
    data->free(data);
    free(y);
    free(target);
}
END_TEST

/* The public way: what a program needs to turn outputs back, and what weights keep. */
START_TEST(tells_numbers)
{
    tutti_data_info info = { .size = sizeof info };
    write_houses();
    tutti_data *data = tutti_data_open(in_kinds("houses"), NULL);
    ck_assert_msg(data, "%s", tutti_message(NULL));
    ck_assert_int_eq(tutti_data_describe(data, &info), TUTTI_OK);
    float row, target;
    const int64_t first = 0;
    const tutti_buffer buffers[] = { { "input", TUTTI_DTYPE_F32, &row, sizeof row },
        { "targets", TUTTI_DTYPE_F32, &target, sizeof target } };
    const tutti_source *test = tutti_data_source(data, TUTTI_DATA_TEST);
    ck_assert_int_eq(test->read(test->user, &first, 1, buffers, 2), 0);
    ck_assert_double_eq_tol(target * info.target_std[0] + info.target_mean[0], 460000, 0.1f);
    char *text = tutti_data_json(data);
    json_t *object = json_loads(text, 0, NULL);
    const json_t *mean = json_object_get(object, "target_mean"), *std = json_object_get(object, "target_std");
    ck_assert_uint_eq(json_array_size(mean), 1);
    ck_assert_double_eq(json_number_value(json_array_get(mean, 0)), 300000);
    ck_assert_float_eq((float)json_number_value(json_array_get(std, 0)), info.target_std[0]);
    json_decref(object);
    free(text);
    tutti_data_free(data);
}
END_TEST

Suite *targets_suite(void)
{
    Suite *suite = suite_create("targets");
    TCase *tests = tcase_create("targets");
    tcase_add_checked_fixture(tests, kinds_begin, kinds_end);
    tcase_add_test(tests, standardises_columns);
    tcase_add_test(tests, keeps_times);
    tcase_add_test(tests, keeps_digits);
    tcase_add_test(tests, takes_numbers);
    tcase_add_test(tests, standardises_arrays);
    tcase_add_test(tests, leaves_large_targets);
    tcase_add_test(tests, tells_numbers);
    suite_add_tcase(suite, tests);
    return suite;
}
