/* Other data for a network, prepared as those of its training were: columns and classes are found by their names. */
#include "kinds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The description of a training's data. Free it with free(). */
static char *described(const char *name, const tutti_data_options *options)
{
    tutti_data *data = tutti_data_open(in_kinds(name), options);
    ck_assert_msg(data, "%s", tutti_message(NULL));
    char *text = tutti_data_json(data);
    ck_assert_ptr_nonnull(text);
    tutti_data_free(data);
    return text;
}

static tutti_data *open_by(const char *name, const char *description)
{
    *heard = '\0';
    tutti_data *data =
        tutti_data_open(in_kinds(name), &(tutti_data_options) { .description = description, .note = hear });
    ck_assert_msg(data, "%s", tutti_message(NULL));
    return data;
}

static void refused_by(const char *name, const char *description, const char *target, const char *const *words)
{
    const tutti_data_options options = { .description = description, .target = target, .note = hear };
    ck_assert_ptr_null(tutti_data_open(in_kinds(name), &options));
    for (; *words; words++)
        ck_assert_msg(strstr(tutti_message(NULL), *words), "does not say '%s': %s", *words, tutti_message(NULL));
}
#define REFUSED(name, description, target, ...) \
    refused_by(name, description, target, (const char *const[]) { __VA_ARGS__, NULL })

/* Reads a sample of one or two columns; targets are floats or classes. */
static void read_test(const tutti_data *data, int64_t index, int columns, float row[2], void *target)
{
    const tutti_source *test = tutti_data_source(data, TUTTI_DATA_TEST);
    tutti_data_info info = { .size = sizeof info };
    ck_assert_int_eq(tutti_data_describe(data, &info), TUTTI_OK);
    ck_assert_ptr_nonnull(test);
    const tutti_buffer buffers[] = { { "input", TUTTI_DTYPE_F32, row, (size_t)columns * sizeof *row },
        { "targets", info.target_dtype, target, 4 } };
    ck_assert_msg(test->read(test->user, &index, 1, buffers, 2) == 0, "%s", status_message());
}

static char *describe_numbers(void)
{
    put_text("t/train.csv", "a,b,y\n1,10,100\n3,30,300\n");
    put_text("t/test.csv", "a,b,y\n5,20,500\n");
    return described("t", NULL);
}

/* a: 2 +- 1, b: 20 +- 10, y: 200 +- 100 */
static void check_numbers(const char *name, const char *description)
{
    float row[2], target;
    tutti_data *data = open_by(name, description);
    read_test(data, 0, 2, row, &target);
    ck_assert_float_eq(row[0], 3);
    ck_assert_float_eq(row[1], 0);
    ck_assert_float_eq(target, 3);
    tutti_data_free(data);
}

START_TEST(columns_by_name)
{
    char *description = describe_numbers();
    put_text("o/train.csv", "y,b,a\n1,2,3\n");
    put_text("o/test.csv", "y,b,a\n500,20,5\n");
    check_numbers("o", description);
    ck_assert_str_eq(heard, "");
    put_text("o/test.csv", "b;c;y;\"d e\";a\n20;x;500;;5\n"); /* the others may be anything */
    check_numbers("o", description);
    ck_assert_ptr_nonnull(strstr(heard, "'c', 'd e' are left out"));
    put_text("o/train.csv", ",a,b,z,y\nx,1,2,0,3\n");
    check_numbers("o", description);
    put_text("o/test.csv", "y,b,c\n500,20,5\n");
    REFUSED("o", description, NULL, "test.csv", "lacks the column 'a'", "'c'");
    put_text("o/test.csv", "y\n500\n");
    REFUSED("o", description, NULL, "columns 'a', 'b'");
    put_text("o/test.csv", "500,20,5\n");
    REFUSED("o", description, NULL, "no names of columns", "'a'");
    free(description);
}
END_TEST

START_TEST(first_rows)
{
    /* The names are those of the training, whatever is below them. */
    char *description = describe_numbers();
    put_text("o/train.csv", "y,b,a\n1,2,3\n");
    put_text("o/test.csv", "y,b,a\n");
    REFUSED("o", description, NULL, "no rows");
    put_text("o/test.csv", "y,b,a\nu,v,w\n");
    REFUSED("o", description, NULL, "row 1 (line 2)");
    free(description);
    put_text("n/train.csv", "1,10,100\n3,30,300\n");
    put_text("n/test.csv", "5,20,500\n");
    description = described("n", NULL);
    check_numbers("n", description);
    put_text("n/test.csv", "5,20\n");
    REFUSED("n", description, NULL, "'3'");
    free(description);
}
END_TEST

/* Rows to predict, by the option without_targets; what they are is expected in `rows`. */
static void predicted(const char *name, const char *description, const char *target, int count, const float (*rows)[2])
{
    *heard = '\0';
    const tutti_data_options options = {
        .description = description, .target = target, .note = hear, .without_targets = true, .fill_missing = true
    };
    tutti_data *data = tutti_data_open(in_kinds(name), &options);
    ck_assert_msg(data, "%s", tutti_message(NULL));
    const tutti_source *test = tutti_data_source(data, TUTTI_DATA_TEST);
    ck_assert_ptr_nonnull(test);
    ck_assert_int_eq(test->samples, count);
    for (int i = 0; i < count; i++) {
        float row[2], number;
        read_test(data, i, 2, row, &number);
        ck_assert_msg(
            row[0] == rows[i][0] && row[1] == rows[i][1], "row %d: %g, %g", i, (double)row[0], (double)row[1]);
    }
    tutti_data_free(data);
}

/* Columns without names are those of the training in its order, with or without the target. */
START_TEST(columns_without_names)
{
    put_text("n/train.csv", "1,100,10\n3,300,30\n");
    put_text("n/test.csv", "5,500,20\n");
    char *description = described("n", &(tutti_data_options) { .target = "2" });
    put_text("m.csv", "5,20\n3,10\n");
    predicted("m.csv", description, NULL, 2, (const float[][2]) { { 3, 0 }, { 1, -1 } });
    predicted("n", description, NULL, 1, (const float[][2]) { { 3, 0 } });
    put_text("m.csv", "5,,20\n3,NA,10\n,,\n");
    predicted("m.csv", description, NULL, 3, (const float[][2]) { { 3, 0 }, { 1, -1 }, { 0, 0 } });
    put_text("m.csv", "5,500,20,1\n");
    REFUSED("m.csv", description, NULL, "has 4 columns", "had 3");
    put_text("m.csv", "5\n");
    const tutti_data_options options = { .description = description, .without_targets = true };
    ck_assert_ptr_null(tutti_data_open(in_kinds("m.csv"), &options));
    ck_assert_ptr_nonnull(strstr(tutti_message(NULL), "has 1 columns"));
    free(description);
}
END_TEST

/* Rows to predict are all kept: with an empty column for the target, and where nothing is known. */
START_TEST(empty_rows)
{
    char *description = describe_numbers();
    put_text("m.csv", "a,b\n,\n3,30\n");
    predicted("m.csv", description, NULL, 2, (const float[][2]) { { 0, 0 }, { 1, 1 } });
    put_text("m.csv", "a,y,b\n,,\n3,,30\n");
    predicted("m.csv", description, NULL, 2, (const float[][2]) { { 0, 0 }, { 1, 1 } });
    put_text("o/train.csv", "a,y,b\n3,,30\n3,1,10\n"); /* some have it */
    put_text("o/test.csv", "a,y,b\n,,\n3,,30\n3,1,10\n");
    predicted("o", description, NULL, 1, (const float[][2]) { { 1, -1 } });
    ck_assert_ptr_nonnull(strstr(heard, "left out 2 rows"));
    free(description);
}
END_TEST

/* Targets that are not read may be anything; rows are counted as in the file, and all parts are in its order. */
START_TEST(all_rows)
{
    char *description = describe_numbers();
    tutti_data_options options = {
        .description = description, .ignore_targets = true, .skip_damaged = true, .note = hear
    };
    tutti_data_info info = { .size = sizeof info };
    put_text("m.csv", "a,y,b\n5,what,20\n3,,30\nx,1,1\n3,7,30\n");
    tutti_data *data = tutti_data_open(in_kinds("m.csv"), &options);
    ck_assert_msg(data, "%s", tutti_message(NULL));
    ck_assert_int_eq(tutti_data_describe(data, &info), TUTTI_OK);
    ck_assert_int_eq(info.damaged, 1);
    ck_assert(info.column_names);
    ck_assert_int_eq(tutti_data_source(data, TUTTI_DATA_TEST)->samples, 3);
    const int64_t rows[] = { 1, 2, 4 };
    for (int i = 0; i < 3; i++) ck_assert_int_eq(tutti_data_row(data, TUTTI_DATA_ALL, i), rows[i]);
    ck_assert_int_eq(tutti_data_row(data, TUTTI_DATA_ALL, 3), 0);
    tutti_data_free(data);
    put_text("m.csv", "a,y,b\n5,1,20\n3,2,30\n4,3,1\n3,7,30\n");
    options.ignore_targets = false;
    data = tutti_data_open(in_kinds("m.csv"), &options);
    ck_assert_msg(data, "%s", tutti_message(NULL));
    ck_assert_int_eq(tutti_data_source(data, TUTTI_DATA_ALL)->samples, 4);
    for (int i = 0; i < 4; i++) ck_assert_int_eq(tutti_data_row(data, TUTTI_DATA_ALL, i), i + 1);
    tutti_data_free(data);
    free(description);
}
END_TEST

START_TEST(options_of_the_training)
{
    char *description = describe_numbers();
    const tutti_data_options options[] = { { .drop = "a" }, { .only = "a" }, { .row_names = "a" },
        { .normalise = "none" } };
    static const char *const names[] = { "--drop", "--only", "--id", "--normalise" };
    for (int i = 0; i < 4; i++) {
        tutti_data_options given = options[i];
        given.description = description;
        ck_assert_ptr_null(tutti_data_open(in_kinds("t"), &given));
        ck_assert_msg(strstr(tutti_message(NULL), names[i]), "%s", tutti_message(NULL));
    }
    free(description);
}
END_TEST

START_TEST(other_targets)
{
    char *description = describe_numbers();
    put_text("o/train.csv", "price,b,a\n1,2,3\n");
    put_text("o/test.csv", "price,b,a\n500,20,5\n");
    REFUSED("o", description, NULL, "lacks the column 'y'");
    tutti_data *data =
        tutti_data_open(in_kinds("o"), &(tutti_data_options) { .description = description, .target = "price" });
    ck_assert_msg(data, "%s", tutti_message(NULL));
    tutti_data_free(data);
    REFUSED("t", description, "b", "'y', not 'b'");
    free(description);
}
END_TEST

/* The first of equal names is the first one again. */
START_TEST(equal_names)
{
    float row[2], target;
    put_text("e/train.csv", "a,a,y\n1,10,100\n3,30,300\n");
    put_text("e/test.csv", "y,a,a\n500,5,20\n");
    char *description = described("e", &(tutti_data_options) { .target = "y" });
    tutti_data *data = open_by("e", description);
    read_test(data, 0, 2, row, &target);
    ck_assert(row[0] == 3 && row[1] == 0 && target == 3);
    tutti_data_free(data);
    free(description);
}
END_TEST

START_TEST(classes_by_name)
{
    float row[2];
    int32_t label;
    tutti_data_info info = { .size = sizeof info };
    put_text("c/train.csv", "x,kind\n1,cat\n2,dog\n3,eel\n4,cat\n5,dog\n6,eel\n");
    put_text("c/test.csv", "x,kind\n1,dog\n");
    char *description = described("c", NULL);
    put_text("d/train.csv", "kind,x\neel,2\n");
    put_text("d/test.csv", "kind,x\ndog,1\neel,2\n");
    tutti_data *data = open_by("d", description);
    ck_assert_int_eq(tutti_data_describe(data, &info), TUTTI_OK);
    ck_assert_int_eq(info.classes, 3);
    ck_assert_str_eq(info.class_names[2], "eel");
    ck_assert_str_eq(info.missing_class, "cat");
    read_test(data, 1, 1, row, &label);
    ck_assert_int_eq(label, 2);
    char *again = tutti_data_json(data);
    ck_assert_ptr_nonnull(strstr(again, "[\"cat\",\"dog\",\"eel\"]"));
    free(again);
    tutti_data_free(data);
    put_text("d/test.csv", "kind,x\nhorse,1\nant,2\n");
    REFUSED("d", description, NULL, "'ant', 'horse'", "'cat', 'dog', 'eel'");
    free(description);
}
END_TEST

/* pandas writes 1.0 where a column has a missing value. */
START_TEST(numbers_as_classes)
{
    float row[2];
    int32_t label;
    put_text("c/train.csv", "x,y\n1,0\n2,1\n3,0\n");
    put_text("c/test.csv", "x,y\n1,1\n");
    char *description = described("c", &(tutti_data_options) { .target = "y:class" });
    put_text("d/train.csv", "x,y\n1,0.0\n2,1.0\n");
    put_text("d/test.csv", "x,y\n1,1.0\n");
    tutti_data *data = open_by("d", description);
    read_test(data, 0, 1, row, &label);
    ck_assert_int_eq(label, 1);
    tutti_data_free(data);
    data = open_by("c",
        "{\"kind\":\"table\",\"columns\":[\"x\"],\"mean\":[0],\"std\":[1],\"target\":\"y:class\","
        "\"classes\":[\"0.0\",\"1.0\"]}");
    read_test(data, 0, 1, row, &label);
    ck_assert_int_eq(label, 1);
    tutti_data_free(data);
    free(description);
}
END_TEST

START_TEST(recordings_by_name)
{
    tutti_data_info info = { .size = sizeof info };
    for (int i = 0; i < 6; i++) {
        char name[40];
        snprintf(name, sizeof name, "s/%c/%d.wav", "abc"[i % 3], i);
        put_tone(name, 8000, 440, 0.3);
    }
    char *description = described("s", NULL);
    put_tone("r/c/1.wav", 8000, 440, 0.3);
    put_tone("r/c/2.wav", 16000, 440, 0.3);
    tutti_data *data = open_by("r", description);
    ck_assert_int_eq(tutti_data_describe(data, &info), TUTTI_OK);
    ck_assert_int_eq(info.classes, 3);
    ck_assert_int_eq(tutti_data_label(data, TUTTI_DATA_TRAIN, 0), 2);
    tutti_data_free(data);
    char *table = describe_numbers();
    REFUSED("t", description, NULL, "trained on recordings", "a table");
    REFUSED("r", table, NULL, "trained on a table", "recordings");
    free(table);
    free(description);
}
END_TEST

START_TEST(damaged_descriptions)
{
    static const char *const texts[] = { "", "[]", "{", "{\"kind\":\"table\"}",
        "{\"kind\":\"table\",\"columns\":[],\"target\":\"y\"}", "{\"kind\":\"table\",\"columns\":[1],\"target\":\"y\"}",
        "{\"kind\":\"table\",\"columns\":[\"a\"]}",
        "{\"kind\":\"table\",\"columns\":[\"a\"],\"mean\":[1],\"std\":[],\"target\":\"y\"}", "{\"split\":2}",
        "{\"folds\":2,\"fold\":2}", "{\"classes\":[1]}", "{\"shape\":[0]}" };
    free(describe_numbers());
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) REFUSED("t", texts[i], NULL, "damaged");
    REFUSED(
        "t", "{\"kind\":\"table\",\"columns\":[\"a\"],\"mean\":[1,2],\"std\":[1,2],\"target\":\"y\"}", NULL, "damaged");
}
END_TEST

Suite *description_suite(void)
{
    Suite *suite = suite_create("descriptions");
    TCase *tests = tcase_create("descriptions");
    tcase_add_checked_fixture(tests, kinds_begin, kinds_end);
    tcase_add_test(tests, columns_by_name);
    tcase_add_test(tests, first_rows);
    tcase_add_test(tests, columns_without_names);
    tcase_add_test(tests, empty_rows);
    tcase_add_test(tests, all_rows);
    tcase_add_test(tests, options_of_the_training);
    tcase_add_test(tests, other_targets);
    tcase_add_test(tests, equal_names);
    tcase_add_test(tests, classes_by_name);
    tcase_add_test(tests, numbers_as_classes);
    tcase_add_test(tests, recordings_by_name);
    tcase_add_test(tests, damaged_descriptions);
    suite_add_tcase(suite, tests);
    return suite;
}
