/* Tables: headers, separators, targets, standardised inputs; what is refused, with row and column. */
#include "kinds.h"

#include "formats/csv.h"

#include <jansson.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static const tutti_data_options none = { .note = hear };

START_TEST(standardises_inputs)
{
    static const float expected[] = { -1.2247449f, 0, 1.2247449f };
    float row[2], target;
    char name[40];
    put_text(
        "houses.csv", "\xef\xbb\xbfrooms,price,\"area, m2\"\r\n1,100,5\r\n\r\n 2 ,-2.5e2,\"5\"\r\n,,\r\n3,.5,5\r\n");
    struct collection *table =
        opened(table_open, "houses.csv", &(tutti_data_options) { .target = "price", .normalise_targets = "none" });
    ck_assert_int_eq(table->samples, 3);
    ck_assert_int_eq(table->info.classes, 0);
    ck_assert_int_eq(table->info.shape.sizes[0], 2);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(read_floats(table, i, row, &target), TUTTI_OK);
        ck_assert_float_eq_tol(row[0], expected[i], 1e-6f);
        ck_assert_float_eq(row[1], 0); /* equal everywhere */
        ck_assert_float_eq(target, ((float[]) { 100, -250, .5f })[i]);
    }
    table->name(table, 2, name, sizeof name);
    ck_assert_str_eq(name, "row 4");
    json_t *object = json_object();
    ck_assert_int_eq(table->describe(table, object), 0);
    ck_assert_str_eq(json_string_value(json_object_get(object, "target")), "price");
    ck_assert_str_eq(json_string_value(json_array_get(json_object_get(object, "columns"), 1)), "area, m2");
    ck_assert_double_eq(json_number_value(json_array_get(json_object_get(object, "mean"), 0)), 2);
    json_decref(object);
    table->free(table);
    table = opened(table_open, "houses.csv", &(tutti_data_options) { .target = "price", .normalise = "1,0/2,10" });
    ck_assert_int_eq(read_floats(table, 2, row, &target), TUTTI_OK);
    ck_assert_float_eq(row[0], 1);
    ck_assert_float_eq(row[1], 0.5f);
    table->free(table);
}
END_TEST

START_TEST(reads_classes)
{
    float row[2];
    int32_t label;
    put_text("irises.tsv", "1.5\t2\tversicolor\n1\t3\tsetosa\n0\t0\tversicolor");
    struct collection *table = opened(table_open, "irises.tsv", &none);
    ck_assert_int_eq(table->info.classes, 2);
    ck_assert_str_eq(table->info.class_names[0], "setosa");
    ck_assert_int_eq(read_floats(table, 2, row, &label), TUTTI_OK);
    ck_assert_int_eq(label, 1);
    table->free(table);
    put_text("digits.csv", "7;class;8\n1;10;2\n3;9;4\n5;10;6\n");
    table = opened(table_open, "digits.csv", &(tutti_data_options) { .target = "class:class" });
    ck_assert_int_eq(table->info.classes, 2);
    ck_assert_str_eq(table->info.class_names[0], "9"); /* by size, not by letters */
    ck_assert_int_eq(table->labels[0], 1);
    table->free(table);
    table = opened(table_open, "digits.csv", &(tutti_data_options) { .target = "2" });
    ck_assert_int_eq(table->info.classes, 0);
    ck_assert_ptr_null(table->labels);
    table->free(table);
    put_text("one.csv", "a,b\r1,x y\r");
    table = opened(table_open, "one.csv", &none);
    ck_assert_str_eq(table->info.class_names[0], "x y");
    table->free(table);
}
END_TEST

/* However numbers are written, they are the same classes; codes with zeros before them are not numbers. */
START_TEST(names_classes)
{
    put_text("data.csv", "x,y\n1,1.0\n2,0\n3,1\n4,0.0\n5,-0\n6,1e0\n");
    struct collection *table = opened(table_open, "data.csv", &(tutti_data_options) { .target = "y:class" });
    ck_assert_int_eq(table->info.classes, 2);
    ck_assert_str_eq(table->info.class_names[1], "1");
    ck_assert(table->labels[0] == 1 && table->labels[2] == 1 && table->labels[4] == 0);
    table->free(table);
    put_text("data.csv", "x,y\n1,007\n2,7\n3,7.5\n4,7.50\n");
    table = opened(table_open, "data.csv", &(tutti_data_options) { .target = "y:class" });
    ck_assert_int_eq(table->info.classes, 4);
    table->free(table);
}
END_TEST

/* What may be meant otherwise is told in one line. */
START_TEST(tells_decisions)
{
    static const struct {
        const char *text, *target, *note; /* NULL: nothing is told */
    } cases[] = {
        { "x,y\n1,0\n2,1\n3,0\n4,1\n", NULL,
            "column 'y' has 2 different whole numbers, which are predicted as numbers: "
            "--target 'y:class' makes them classes\n" },
        { "x,y\n1,0\n2,1\n3,0\n4,1\n", "y:class", NULL }, { "x,y\n1,0\n2,1\n3,0\n4,0.5\n", NULL, NULL },
        { "x,y\n1,0\n2,1\n3,2\n4,3\n", NULL, NULL }, /* each has its own */
        { "1,2\n3,4.5\n", NULL, NULL },
        { "x,2\n3,4.5\n", NULL, "the first row is taken as names of columns, although some are numbers" },
        { "a,b,c\nred,,x\nblue,u,y\nred,u,x\nblue,u,y\n", NULL,
            "the first row is taken as names of columns: there are texts above missing values, and none above a "
            "number" },
        { ",red,x\n3,blue,y\n4,red,y\n5,red,x\n", NULL, /* no value, not an index */
            "the first row is taken as data, and columns are called 1, 2, ...: one of its texts is in the rows below" },
        { "red,5,x\n,6,y\nblue,7,y\nred,8,x\n", NULL,
            "the first row is taken as data, and columns are called 1, 2, ...: one of its texts is in the rows below" },
        { ",name,x\nr1,a,y\nr2,a,y\nr3,b,z\n", NULL, "column 1 has no name: it is left out, as an index" },
        { "a,b,c\nred,,1\nblue,u,2\nred,u,3\nblue,u,4\n", NULL, NULL }, /* a text above a number is enough */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        *heard = '\0';
        put_text("data.csv", cases[i].text);
        struct collection *table = opened(table_open, "data.csv",
            &(tutti_data_options) { .target = cases[i].target, .note = hear, .fill_missing = true });
        if (cases[i].note)
            ck_assert_msg(strstr(heard, cases[i].note), "%zu: %s", i, heard);
        else
            ck_assert_str_eq(heard, "");
        table->free(table);
    }
}
END_TEST

START_TEST(reads_parts)
{
    char name[60];
    put_text("parts/train.csv", "a,b\n1,2\n3,4\n");
    put_text("parts/test.csv", "1,2\n5,6\n");
    struct collection *table = opened(table_open, "parts", &none);
    ck_assert_int_eq(table->samples, 4);
    ck_assert(table->parts[1] == TUTTI_DATA_TRAIN && table->parts[2] == TUTTI_DATA_TEST);
    table->name(table, 3, name, sizeof name);
    ck_assert_str_eq(name, "test.csv row 2");
    table->free(table);
    put_text("parts/val.csv", "a,c\n1,2\n");
    expect_refused(table_open, "parts", &none, "val.csv", "'c'");
    put_text("parts/val.csv", "1,2,3\n");
    expect_refused(table_open, "parts", &none, "val.csv", "3 columns");
    put_text("commas/train.csv", "a;b\n1,234;2\n5,678;4\n"); /* it says what a comma is, not the last file */
    put_text("commas/test.csv", "a,b\n\"3,456\",6\n");
    float row, target;
    table = opened(table_open, "commas", &none);
    ck_assert_int_eq(read_floats(table, 2, &row, &target), TUTTI_OK);
    ck_assert(row == 0);
    table->free(table);
    put_text("named/train.csv", "a,b\n1,2\n3,4\n");
    put_text("named/validation.csv", "a,b\n5,6\n");
    table = opened(table_open, "named", &none);
    ck_assert(table->samples == 3 && table->parts[2] == TUTTI_DATA_VAL);
    table->free(table);
    put_text("named/valid.csv", "a,b\n5,6\n7,8\n"); /* neither is left out without a word */
    expect_refused(table_open, "named", &none, "valid.csv", "both tables of one part");
    put_text("index.csv", ",b\n0,6\n1,8\n"); /* then the index is all there is */
    table = opened(table_open, "index.csv", &none);
    ck_assert_int_eq(table->info.shape.sizes[0], 1);
    table->free(table);
    put_text("index.csv", ",a,b\n0,5,6\n1,7,8\n");
    table = opened(table_open, "index.csv", &none);
    ck_assert_int_eq(table->info.shape.sizes[0], 1);
    ck_assert_ptr_nonnull(strstr(heard, "left out, as an index"));
    table->free(table);
    ck_assert_int_eq(table_open(in_kinds("no.txt"), &none, &table), TUTTI_OK);
    ck_assert_ptr_null(table);
}
END_TEST

START_TEST(refuses_rows)
{
    static const struct {
        const char *text, *place, *reason;
    } cases[] = {
        { "a,b\n1,2\n,3\n", "row 2 (line 3): column 'a'", "missing" },
        { "a,b\n1,2\nNA,3\n", "row 2", "missing" },
        { "a,b\n1,2\n1,\n", "column 'b'", "missing" },
        { "a,b\n1,2\nnan,3\n", "column 'a'", "missing" },
        { "a,b\n1,2\ninf,3\n", "column 'a'", "'inf' is not a number" },
        { "a,b\n1,2\n1e999,3\n", "column 'a'", "1e999" },
        { "a,b\n1,2\n1e39,3\n", "column 'a'", "1e39" },
        { "a,b\n1,2\n0x10,3\n", "column 'a'", "0x10" },
        { "a,b\n1,2\n1,x\n", "column 'b'", "b:class" },
        { "a;b\n1;2\n1,5;3\n", "column 'a'", "1,5" },
        { "a,b\n1,2\n1,2,3\n", "row 2", "3 fields" },
        { "a,b\n1,2\n1\n", "row 2", "1 field, but" },
        { "a,b\n1,\"2\n", "line 2", "within quotes" },
        { "a,b\n1,\"2\"3\n", "line 2", "after the quotes" },
        { "a\n1\n", "1 column", "others to predict" },
        { "a,b\n", "data.csv", "no rows" },
        { "\n\n", "data.csv", "empty" },
        { "", "data.csv", "empty" },
        { "a,b\n1,x\xff\n", "row 1", "UTF-8" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_text("data.csv", cases[i].text);
        expect_refused(table_open, "data.csv", &none, cases[i].place, cases[i].reason);
    }
    put("data.csv", "a\0,\0b\0", 6);
    expect_refused(table_open, "data.csv", &none, "line 1", "zero byte");
    put_text("data.csv", "a,b\n1,2\n");
    expect_refused(table_open, "data.csv", &(tutti_data_options) { .target = "c" }, "'c'", "it has a, b");
    expect_refused(table_open, "data.csv", &(tutti_data_options) { .target = "3:class" }, "'3:class'", "it has a, b");
    expect_refused(table_open, "data.csv", &(tutti_data_options) { .normalise = "1,2/3" }, "measured", "1,2/3");
}
END_TEST

START_TEST(skips_rows)
{
    put_text("data.csv", "a,b\n1,2\n?,3\n4,5\n");
    struct collection *table =
        opened(table_open, "data.csv", &(tutti_data_options) { .skip_damaged = true, .note = hear });
    ck_assert_int_eq(table->samples, 2);
    ck_assert_int_eq(table->info.damaged, 1);
    ck_assert_ptr_nonnull(strstr(heard, "row 2 (line 3)"));
    table->free(table);
}
END_TEST

START_TEST(separators)
{
    static const char *const texts[] = { "a b\n1 2\n3 4\n", "a   b\n  1\t2 \n3    4\n", "a|b\n1|2\n3|4\n",
        "a; b\n1; 2\n3; 4\n", "\"a\" b\n\"1\"   2\n3 \"4\"" };
    float row, target;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        put_text("data.csv", texts[i]);
        struct collection *table =
            opened(table_open, "data.csv", &(tutti_data_options) { .normalise = "none", .normalise_targets = "none" });
        ck_assert_int_eq(table->samples, 2);
        ck_assert_int_eq(read_floats(table, 1, &row, &target), TUTTI_OK);
        ck_assert(row == 3 && target == 4);
        table->free(table);
    }
}
END_TEST

/* Decimal commas in a first row without names are not separators. */
START_TEST(decimal_commas)
{
    static const struct {
        const char *text;
        int inputs;
    } cases[] = { { "5,3;107,2;aaa\n1,5;2,5;bbb\n1;2;aaa\n", 2 }, { "5,3;7\n1;2\n", 1 }, { "5,3\t7,5\n1,2\t3\n", 1 },
        { "1,2,3;4\n1,2,3;5\n", 2 }, { "1,2,a;b\n1,2,c;d\n", 2 }, { "a,b;c\n1,2\n", 1 }, { "1,2,3\n4,5,6\n", 2 } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_text("data.csv", cases[i].text);
        struct collection *table = opened(table_open, "data.csv", &none);
        ck_assert_msg(
            table->info.shape.sizes[0] == cases[i].inputs, "%zu: %d inputs", i, (int)table->info.shape.sizes[0]);
        table->free(table);
    }
}
END_TEST

START_TEST(packed_files)
{
    char packed[4000];
    gzFile gz = gzopen(in_kinds("data.csv.gz"), "wb");
    ck_assert_ptr_nonnull(gz);
    gzprintf(gz, "a,b\n");
    for (int i = 0; i < 1000; i++) gzprintf(gz, "%d,%d\n", i, i * i % 997);
    ck_assert_int_eq(gzclose(gz), Z_OK);
    struct collection *table = opened(table_open, "data.csv.gz", &none);
    ck_assert_int_eq(table->samples, 1000);
    table->free(table);
    FILE *file = fopen(in_kinds("data.csv.gz"), "rb");
    const size_t size = fread(packed, 1, sizeof packed, file);
    fclose(file);
    put("data.csv.gz", packed, size / 2);
    expect_refused(table_open, "data.csv.gz", &none, "data.csv.gz", "gzip data: the file is truncated");
}
END_TEST

/* The only table of a folder, unless there are other data in it. */
START_TEST(one_table)
{
    struct collection *table = NULL;
    put_text("folder/houses.csv", "a,b\n1,2\n3,4\n");
    put_text("folder/README.txt", "houses");
    table = opened(table_open, "folder", &none);
    ck_assert_int_eq(table->samples, 2);
    table->free(table);
    put_text("folder/a.png", "a picture");
    ck_assert_int_eq(table_open(in_kinds("folder"), &none, &table), TUTTI_OK);
    ck_assert_ptr_null(table);
}
END_TEST

/* What the reader computes by itself is what strtod() makes of the same text. */
START_TEST(exact_numbers)
{
    static const char *const texts[] = { "0.1", "-0", "123456789012345678", "9007199254740993", "0.30000000000000004",
        "1e22", "1e23", "1.7976931348623157e308", "4.9e-324", "00000000000000000001.50", "5e-5", ".5", "5.",
        "0.000000000000000000000000000001", "8.5e+1", "3.14159265358979323846" };
    static const char *const others[] = { "", "-", ".", "e5", "1e", "1e+", "1.2.3", "0x1", "inf", "nan", "1 ", "--1",
        "1e400" };
    double number;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        ck_assert_msg(csv_number(texts[i], &number), "%s", texts[i]);
        ck_assert_msg(number == strtod(texts[i], NULL), "%s: %.17g", texts[i], number);
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        ck_assert_msg(!csv_number(others[i], &number), "%s", others[i]);
}
END_TEST

/* Rows that end where the reader's buffer does, with quotes and both ends of lines. */
START_TEST(long_files)
{
    enum { ROWS = 60000 };
    char *text = malloc(ROWS * 40 + 20), *at = text;
    float row, target;
    ck_assert_ptr_nonnull(text);
    at += sprintf(at, "a,b\r\n");
    for (int i = 0; i < ROWS; i++) at += sprintf(at, i % 3 ? "%d,\"%d\"\r\n" : "\"%d\" , %d\n\r\n", i, 2 * i);
    put("data.csv", text, (size_t)(at - text));
    free(text);
    struct collection *table =
        opened(table_open, "data.csv", &(tutti_data_options) { .normalise = "none", .normalise_targets = "none" });
    ck_assert_int_eq(table->samples, ROWS);
    for (int i = 0; i < ROWS; i++) {
        ck_assert_int_eq(read_floats(table, i, &row, &target), TUTTI_OK);
        ck_assert(row == (float)i && target == 2 * (float)i);
    }
    table->free(table);
}
END_TEST

/* A row of as many columns as there may be, and one more; a row that is too long. */
START_TEST(limits_rows)
{
    enum { COLUMNS = 1 << 16 };
    char *text = malloc(4 * COLUMNS + (1 << 24) + 100), *at = text;
    ck_assert_ptr_nonnull(text);
    for (int i = 0; i < 2 * COLUMNS; i++) at += sprintf(at, "1%c", i % COLUMNS == COLUMNS - 1 ? '\n' : ',');
    put("wide.csv", text, (size_t)(at - text));
    struct collection *table = opened(table_open, "wide.csv", &none);
    ck_assert_int_eq(table->info.shape.sizes[0], COLUMNS - 1);
    table->free(table);
    at[-1] = ',';
    put("wide.csv", text, (size_t)(at - text));
    expect_refused(table_open, "wide.csv", &none, "line 2", "more than 65536");
    memset(text, 'x', (1 << 24) + 50);
    put("wide.csv", text, (1 << 24) + 50);
    expect_refused(table_open, "wide.csv", &none, "line 1", "longer than 16 MiB");
    free(text);
}
END_TEST

/* Numbers have a point in every locale. */
START_TEST(ignores_locales)
{
    float row, target;
    if (!setlocale(LC_ALL, "de_DE.UTF-8")) return;
    put_text("data.csv", "a,b\n1.5,2.5\n3,4\n");
    struct collection *table = opened(table_open, "data.csv", &(tutti_data_options) { .normalise_targets = "none" });
    ck_assert_int_eq(read_floats(table, 0, &row, &target), TUTTI_OK);
    ck_assert_float_eq(target, 2.5f);
    table->free(table);
    setlocale(LC_ALL, "C");
}
END_TEST

Suite *table_suite(void)
{
    Suite *suite = suite_create("tables");
    TCase *tests = tcase_create("tables");
    tcase_add_checked_fixture(tests, kinds_begin, kinds_end);
    tcase_add_test(tests, standardises_inputs);
    tcase_add_test(tests, reads_classes);
    tcase_add_test(tests, names_classes);
    tcase_add_test(tests, tells_decisions);
    tcase_add_test(tests, reads_parts);
    tcase_add_test(tests, refuses_rows);
    tcase_add_test(tests, skips_rows);
    tcase_add_test(tests, separators);
    tcase_add_test(tests, decimal_commas);
    tcase_add_test(tests, packed_files);
    tcase_add_test(tests, one_table);
    tcase_add_test(tests, exact_numbers);
    tcase_add_test(tests, long_files);
    tcase_add_test(tests, limits_rows);
    tcase_add_test(tests, ignores_locales);
    suite_add_tcase(suite, tests);
    return suite;
}
