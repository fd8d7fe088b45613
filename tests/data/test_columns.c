/* Columns of tables as inputs: numbers in all the ways they are written, texts, dates, missing values. */
#include "kinds.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 16 };

static const tutti_data_options fills = { .fill_missing = true, .note = hear, .normalise_targets = "none" };

static void expect_row(struct collection *table, int64_t row, int count, const float *features)
{
    float sample[WIDTH], target[1];
    ck_assert_int_eq(table->info.shape.sizes[0], count);
    ck_assert_int_eq(read_floats(table, row, sample, target), TUTTI_OK);
    for (int i = 0; i < count; i++)
        ck_assert_msg(fabsf(sample[i] - features[i]) < 1e-5f, "row %d, feature %d: %g, not %g", (int)row, i,
            (double)sample[i], (double)features[i]);
}
#define EXPECT_ROW(table, row, ...) \
    expect_row(table, row, (int)(sizeof((float[]) { __VA_ARGS__ }) / sizeof(float)), (float[]) { __VA_ARGS__ })

/* Two values that lie one deviation from their mean, however they are written. */
START_TEST(ways_to_write_numbers)
{
    static const char *const texts[] = {
        "a,y\n10,1\n30,2\n",
        "a,y\n1e1,1\n+30.0,2\n",
        "a,y\n\" 10\",1\n\"30\t \",\" 2\"\n",
        "a,y\n10%,1\n30 %,2\n",
        "a,y\n\"1,000\",1\n\"1,002,000\",2\n",
        "a,y\n1'000,1\n3'000,2\n",
        "a;y\n-1,5;1\n2,25;2\n",
        "a;y\n1.000,5;1\n2.000,5;2\n",
        "a;y\n1,234;1\n5,678;2\n",
        "a,y\nno,1\nYes,2\n",
        "a,y\nFALSE,1\nTRUE,2\n",
        "a,y\nf,1\nt,2\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        put_text("data.csv", texts[i]);
        struct collection *table = opened(table_open, "data.csv", &fills);
        EXPECT_ROW(table, 0, -1);
        EXPECT_ROW(table, 1, 1);
        table->free(table);
    }
}
END_TEST

START_TEST(text_columns)
{
    put_text("data.csv", "c,y\nred,1\nblue,2\nred,3\n");
    struct collection *table = opened(table_open, "data.csv", &fills);
    EXPECT_ROW(table, 0, 0, 0, 1); /* others, blue, red */
    EXPECT_ROW(table, 1, 0, 1, 0);
    table->free(table);
    put_text("data.csv", "c,y\nred,1\nNA,2\nred,3\n,4\n");
    table = opened(table_open, "data.csv", &fills);
    EXPECT_ROW(table, 0, 0, 1, 0); /* others, red, missing */
    EXPECT_ROW(table, 3, 0, 0, 1);
    table->free(table);
    put_text("data.csv", "c,y\nr\xf6t,1\nr\xf6t,2\n\"a\nb\",3\n");
    table = opened(table_open, "data.csv", &fills);
    EXPECT_ROW(table, 0, 0, 0, 1);
    table->free(table);
    expect_refused(table_open, "data.csv", &(tutti_data_options) { .target = "c" }, "row 1", "UTF-8");
}
END_TEST

/* Columns of more texts than asked for are one number each, after all others. */
START_TEST(codes_of_texts)
{
    tutti_data_options options = fills;
    options.codes_above = 2;
    put_text("data.csv", "c,a,k,y\nred,1,u,1\nblue,3,v,2\n,1,u,3\ngreen,3,v,4\nred,1,u,5\nred,3,v,6\n");
    struct collection *table = opened(table_open, "data.csv", &options);
    EXPECT_ROW(table, 0, -1, 0, 1, 0, 3); /* a; others, u, v; others, blue, green, red, missing */
    EXPECT_ROW(table, 1, 1, 0, 0, 1, 1);
    EXPECT_ROW(table, 2, -1, 0, 1, 0, 4);
    ck_assert_int_eq(table->info.code_count, 1);
    ck_assert_int_eq(table->info.codes[0], 5);
    json_t *object = json_object();
    ck_assert_int_eq(table->describe(table, object), 0);
    json_object_set_new(object, "kind", json_string("table"));
    char *description = json_dumps(object, JSON_COMPACT);
    table->free(table);
    options.codes_above = 0;
    options.description = description;
    put_text("new.csv", "k,c,a,y\nv,pink,3,1\nu,red,1,1\n");
    table = opened(table_open, "new.csv", &options);
    EXPECT_ROW(table, 0, 1, 0, 0, 1, 0);
    EXPECT_ROW(table, 1, -1, 0, 1, 0, 3);
    ck_assert_int_eq(table->info.codes[0], 5);
    table->free(table);
    options.augment = "noise=0.1";
    expect_refused(table_open, "new.csv", &options, "--augment noise=0.1", "'c'");
    options.codes_above = 2;
    options.description = NULL;
    table = opened(table_open, "data.csv", &options);
    ck_assert_int_eq(table->info.code_count, 0);
    ck_assert_int_eq(table->info.shape.sizes[0], 1 + 3 + 5);
    table->free(table);
    free(description);
    json_decref(object);
}
END_TEST

START_TEST(missing_numbers)
{
    put_text("data.csv", "a,y\n1,1\n,2\n3,3\nNA,\n");
    struct collection *table = opened(table_open, "data.csv", &fills);
    ck_assert_int_eq(table->samples, 3);
    ck_assert_int_eq(table->info.damaged, 1);
    ck_assert_ptr_nonnull(strstr(heard, "left out 1 row: "));
    ck_assert_ptr_nonnull(strstr(heard, "row 4 (line 5): column 'y': the value is missing"));
    EXPECT_ROW(table, 0, -1, 0);
    EXPECT_ROW(table, 1, 0, 1);
    table->free(table);
    expect_refused(table_open, "data.csv", &(tutti_data_options) { .size = 0 }, "row 2", "--missing fill");
}
END_TEST

/* Year, month, day, weekday, hour, days: each by itself, as it varies. */
START_TEST(dates)
{
    static const char *const texts[] = {
        "a;y\n2001-01-01;1\n2001-01-03;2\n",
        "a;y\n2001/1/1;1\n2001/1/3;2\n",
        "a;y\n01.01.2001;1\n03.01.2001;2\n",
        "a,y\n01/01/2001,1\n01/03/2001,2\n",
        "a;y\n1 Jan 2001;1\n3 January 2001;2\n",
        "a;y\nJan. 1, 2001;1\nJan 3, 2001;2\n",
        "a;y\n2001-01-01T12:00:00Z;1\n2001-01-03 14:00+02:00;2\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        put_text("data.csv", texts[i]);
        struct collection *table = opened(table_open, "data.csv", &fills);
        EXPECT_ROW(table, 0, 0, 0, -1, -1, 0, -1); /* Monday and Wednesday */
        EXPECT_ROW(table, 1, 0, 0, 1, 1, 0, 1);
        table->free(table);
    }
    put_text("data.csv", "a,y\n1:30 am,1\n1:30 pm,2\n");
    struct collection *table = opened(table_open, "data.csv", &fills);
    EXPECT_ROW(table, 1, 0, 0, 0, 0, 1, 1);
    table->free(table);
    put_text("data.csv", "a,y\n13/01/2001,1\n01/02/2001,2\n29/02/2000,3\n"); /* then the day stands first */
    table = opened(table_open, "data.csv", &fills);
    ck_assert_int_eq(table->info.shape.sizes[0], 6);
    table->free(table);
    put_text("data.csv", "a,y\n2001-02-29,1\n2001-02-29,2\n"); /* no date */
    table = opened(table_open, "data.csv", &fills);
    EXPECT_ROW(table, 0, 0, 1); /* others, and this text */
    table->free(table);
}
END_TEST

/* One text of 30 that is not a date is damaged, also after the first rows, unless dates recur; where a tenth is, all
 * are texts. */
START_TEST(damaged_dates)
{
    static const struct {
        const char *bad;
        int rows, each, first_bad; /* rows; after how many dates come again; the first bad row, then each 30th */
        const char *reason, *note; /* of a refusal; what is told otherwise */
    } cases[] = {
        { "2001-02-30", 30, 9999, 5, "row 5 (line 6): column 'a': '2001-02-30' is not a date or time", NULL },
        { "never", 1200, 9999, 1190, "row 1190 (line 1191): column 'a': 'never'", NULL },
        { "12/25/2001", 30, 9999, 1, "row 1 (line 2): column 'a'", NULL },
        { "never", 60, 6, 5, NULL, "'a' has dates and texts: all are taken as texts" },
        { "never", 8, 9999, 5, NULL, "'a' is left out: each row has another text" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[1200 * 20], *at = text;
        at += sprintf(at, "a,b,y\n");
        for (int row = 1; row <= cases[i].rows; row++) {
            const int day = row % cases[i].each;
            if (row >= cases[i].first_bad && (row - cases[i].first_bad) % 30 == 0)
                at += sprintf(at, "%s,%d,%d\n", cases[i].bad, row % 3, row);
            else
                at += sprintf(
                    at, "%d-%02d-%02d,%d,%d\n", 2001 + day / 336, 1 + day / 28 % 12, 1 + day % 28, row % 3, row);
        }
        put_text("data.csv", text);
        *heard = '\0';
        if (cases[i].reason) expect_refused(table_open, "data.csv", &fills, "data.csv", cases[i].reason);
        tutti_data_options options = fills;
        options.skip_damaged = true;
        struct collection *table = opened(table_open, "data.csv", &options);
        ck_assert_msg(table->samples == cases[i].rows - (cases[i].reason ? 1 : 0), "%zu: %d", i, (int)table->samples);
        ck_assert_msg(!cases[i].note || strstr(heard, cases[i].note), "%zu: %s", i, heard);
        if (cases[i].reason) ck_assert_int_ge(table->info.shape.sizes[0], 7);
        table->free(table);
    }
}
END_TEST

/* Where no day is above 12, a line says which order was taken; that of tables with decimal commas is another one. */
START_TEST(orders_of_dates)
{
    static const struct {
        const char *text, *note; /* NULL: nothing is told */
        float month;             /* of the second row: 0 where all have the same */
    } cases[] = {
        { "a,y\n01/02/2001,1\n01/03/2001,2\n", "'a': dates such as 01/02/2001 are read with the month first", 0 },
        { "a;y\n01/02/2001;1\n01/03/2001;2\n", "'a': dates such as 01/02/2001 are read with the day first", 1 },
        { "a;y\n01/13/2001;1\n01/03/2001;2\n", NULL, 0 },
        { "a,y\n01.02.2001,1\n01.03.2001,2\n", NULL, 1 },
        { "a,y\n2001-02-01,1\n2001-03-01,2\n", NULL, 1 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        float row[WIDTH], target;
        put_text("data.csv", cases[i].text);
        *heard = '\0';
        struct collection *table = opened(table_open, "data.csv", &fills);
        ck_assert_msg(cases[i].note ? strstr(heard, cases[i].note) != NULL : !*heard, "%zu: %s", i, heard);
        ck_assert_int_eq(read_floats(table, 1, row, &target), TUTTI_OK);
        ck_assert_msg(fabsf(row[1] - cases[i].month) < 1e-5f, "%zu: %g", i, (double)row[1]);
        table->free(table);
    }
}
END_TEST

/* 1.234 is a thousand where other columns have decimal commas. */
START_TEST(points_before_thousands)
{
    put_text("data.csv", "a;b;y\n1.234;1,5;1\n999;2,5;2\n1.469;1,5;1\n");
    struct collection *table = opened(table_open, "data.csv", &fills);
    EXPECT_ROW(table, 0, 0, -0.70710678f); /* the mean of a is 1234 */
    ck_assert_ptr_nonnull(strstr(heard, "column 'a': a point before three digits"));
    table->free(table);
    *heard = '\0';
    put_text("data.csv", "a;b;y\n1.234;1,5;1\n1.25;2,5;2\n");
    table = opened(table_open, "data.csv", &fills);
    EXPECT_ROW(table, 0, -1, -1);
    ck_assert_str_eq(heard, "");
    table->free(table);
    put_text("data.csv", "a;b;y\n1.234;1.5;1\n999;2.5;2\n1.469;1.5;1\n");
    table = opened(table_open, "data.csv", &fills);
    ck_assert_str_eq(heard, "");
    table->free(table);
}
END_TEST

/* Rows of "NUMBER,EXTRA,NUMBER", where EXTRA is text(i). */
static void put_rows(int count, void (*text)(int row, char *to))
{
    char *all = malloc((size_t)count * 60 + 20), *at = all, extra[40];
    ck_assert_ptr_nonnull(all);
    at += sprintf(at, "a,b,y\n");
    for (int i = 1; i <= count; i++) {
        text(i, extra);
        at += sprintf(at, "%d,%s,%d\n", i % 7, extra, i);
    }
    put_text("data.csv", all);
    free(all);
}

static void one_text(int row, char *to)
{
    sprintf(to, row == 1200 ? "x" : "%d", row);
}

static void late_texts(int row, char *to)
{
    sprintf(to, "%s", row <= 1100 ? "" : row % 2 ? "odd" : "even");
}

static void many_texts(int row, char *to)
{
    sprintf(to, "t%d", row < 1400 ? row : 5);
}

static void other_texts(int row, char *to)
{
    sprintf(to, "t%d", row);
}

/* Kinds are chosen by the first rows: a later one that does not fit has them chosen again. */
START_TEST(late_rows)
{
    put_rows(1500, one_text);
    expect_refused(table_open, "data.csv", &fills, "row 1200 (line 1201): column 'b'", "'x' is not a number");
    tutti_data_options options = fills;
    options.skip_damaged = true;
    struct collection *table = opened(table_open, "data.csv", &options);
    ck_assert_int_eq(table->samples, 1499);
    ck_assert_ptr_nonnull(strstr(heard, "left out 1 row: "));
    table->free(table);
    put_rows(1500, late_texts);
    table = opened(table_open, "data.csv", &fills);
    ck_assert_int_eq(table->info.shape.sizes[0], 1 + 4); /* others, even, odd, missing */
    table->free(table);
}
END_TEST

/* A row that is left out adds no class. */
START_TEST(classes_of_rows)
{
    put_text("data.csv", "kind,a\nx,1\ny,2\nz,?\ny,3\n");
    struct collection *table =
        opened(table_open, "data.csv", &(tutti_data_options) { .target = "kind", .skip_damaged = true, .note = hear });
    ck_assert_int_eq(table->samples, 3);
    ck_assert_int_eq(table->info.classes, 2);
    table->free(table);
}
END_TEST

START_TEST(useless_columns)
{
    put_rows(1500, many_texts);
    struct collection *table = opened(table_open, "data.csv", &fills);
    ck_assert_int_eq(table->info.shape.sizes[0], 1);
    ck_assert_ptr_nonnull(strstr(heard, "'b' is left out: it has more than 1000 different texts"));
    table->free(table);
    *heard = '\0';
    put_rows(50, other_texts);
    table = opened(table_open, "data.csv", &fills);
    ck_assert_int_eq(table->info.shape.sizes[0], 1);
    ck_assert_ptr_nonnull(strstr(heard, "'b' is left out: each row has another text"));
    table->free(table);
    *heard = '\0';
    put_text("data.csv", "a,b,y\n1,,1\n2,NA,2\n");
    table = opened(table_open, "data.csv", &fills);
    ck_assert_int_eq(table->info.shape.sizes[0], 1);
    ck_assert_ptr_nonnull(strstr(heard, "'b' is left out: all values are missing"));
    table->free(table);
    put_text("data.csv", "b,y\nx,1\ny,2\nz,3\n");
    expect_refused(table_open, "data.csv", &fills, "data.csv", "no column is left");
}
END_TEST

/* Whole numbers that recur are names, too, where there are texts among them. */
START_TEST(numbers_and_texts)
{
    put_text("data.csv", "c,y\n4,1\n6,2\n4,3\n6,4\n4,5\n6,6\n4,7\n6,8\n4,9\n6,10\n4,11\nx,12\n");
    struct collection *table = opened(table_open, "data.csv", &fills);
    EXPECT_ROW(table, 1, 0, 0, 1, 0); /* others, 4, 6, x */
    ck_assert_ptr_nonnull(strstr(heard, "'c' has numbers and texts"));
    table->free(table);
    put_text("data.csv", "c,y\n4.5,1\n6,2\n4.5,3\n6,4\n4.5,5\n6,6\n4.5,7\n6,8\n4.5,9\n6,10\n4.5,11\nx,12\n");
    expect_refused(table_open, "data.csv", &fills, "row 12", "'x' is not a number");
}
END_TEST

START_TEST(chosen_columns)
{
    char name[60];
    put_text("data.csv", "a,\"b,c\",d,y\n1,2,ann,1\n3,4,bob,2\n");
    tutti_data_options options = fills;
    options.drop = "b,c";
    options.row_names = "d";
    struct collection *table = opened(table_open, "data.csv", &options);
    EXPECT_ROW(table, 0, -1);
    table->name(table, 1, name, sizeof name);
    ck_assert_str_eq(name, "row 2 bob");
    table->free(table);
    options = fills;
    options.only = "1,b,c";
    expect_refused(table_open, "data.csv", &options, "data.csv", "'b'");
    options.only = "1,2";
    table = opened(table_open, "data.csv", &options);
    EXPECT_ROW(table, 1, 1, 1);
    table->free(table);
    options.only = NULL;
    options.drop = "1,2,3";
    expect_refused(table_open, "data.csv", &options, "data.csv", "no column is left to predict");
    options.drop = "y";
    expect_refused(table_open, "data.csv", &options, "'y' is the target", "--target");
    options.drop = NULL;
    options.only = "a,y";
    expect_refused(table_open, "data.csv", &options, "'y' is the target", "--only");
    options.only = NULL;
    options.row_names = "4";
    expect_refused(table_open, "data.csv", &options, "'y' is the target", "--id");
}
END_TEST

/* Text above text: names are not found again below. */
START_TEST(headers_of_texts)
{
    put_text("data.csv", "colour,kind\nred,a\nblue,b\nred,a\nblue,b\nred,a\n");
    struct collection *table = opened(table_open, "data.csv", &fills);
    ck_assert_int_eq(table->samples, 5);
    ck_assert_ptr_nonnull(strstr(heard, "taken as names"));
    table->free(table);
    *heard = '\0';
    put_text("data.csv", "red,a\nblue,b\nred,a\nblue,b\nred,a\n");
    table = opened(table_open, "data.csv", &fills);
    ck_assert_int_eq(table->samples, 5);
    ck_assert_ptr_nonnull(strstr(heard, "taken as data"));
    table->free(table);
    put_text("data.csv", "\"\",colour,kind\n1x,red,a\n2x,blue,b\n3x,red,a\n");
    table = opened(table_open, "data.csv", &fills);
    ck_assert_int_eq(table->samples, 3);
    table->free(table);
}
END_TEST

/* Names that are numbers, as pandas writes those of tables without names, and names above other values than numbers. */
START_TEST(headers_above_values)
{
    static const struct {
        const char *text, *note; /* NULL: nothing is told */
        int samples;
        const char *first; /* name of the first input, where there is a header */
    } cases[] = {
        { ",0,1,2\n0,5.2,107.2,0\n1,5.5,9,1\n", "they are 0, 1, ...", 2, "0" },
        { ",0\n0,5\n1,6\n", "they are 0, 1, ...", 2, NULL },
        { ",0,1\n,5,6\n3,4,5\n", NULL, 3, NULL }, /* values that are missing */
        { ",2001,2002\n0,5,6\n1,7,8\n2,9,7\n", "numbers in order", 3, "2001" },
        { "\"\",\"16.5\",\"16.75\"\n\"71\",0,1\n\"70\",1,2\n", "numbers in order", 2, "16.5" },
        { "\"\",\"1940\",\"1945\"\n\"Food\",2.2,4\n\"Care, 2\",1,2\n", "numbers in order", 2, "1940" },
        { ",2001,2002\n0,5,6\n2,7,8\n1,9,7\n", "are not names", 4, NULL },
        { ",2001,2002\n0,5,6\n0,7,8\n", "are not names", 3, NULL },
        { ",2001,2002\nx,5,6\ny,7,8\nx,4,3\n", "are not names", 4, NULL },
        { ",2001,2002\n1,5,6\n,7,8\n", "are not names", 3, NULL },
        { ",7,5,6\n0,5,6,1\n1,7,8,2\n", "are not names", 3, NULL },
        { "0,1,species\n5.2,107.2,a\n0,1,b\n1,3,a\n2,2,a\n3,7,b\n", "taken as names", 5, "0" },
        { "0,1,species\n5.2,107.2,a\n1,3,b\n", "looks like names", 3, NULL },
        { "0,1,a\n5.2,107.2,a\n0,1,b\n1,3,a\n2,2,a\n3,7,b\n", "looks like names", 6, NULL },
        { "when;rate;kind\n2001-01-01;12 %;x\n2001-01-02;13 %;y\n", NULL, 2, "when" },
        { "size;kind\n1,5;x\n2,5;y\n", NULL, 2, "size" },
        { "a,b,c\n\"1,234\",x,y\n\"1,235\",y,x\n", NULL, 2, "a" },
        { "2001-01-01,x\n2001-01-02,y\n", NULL, 2, NULL },
        { "yes,x\nno,y\n", "taken as data", 2, NULL },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_text("data.csv", cases[i].text);
        *heard = '\0';
        struct collection *table = opened(table_open, "data.csv", &fills);
        ck_assert_msg(table->samples == cases[i].samples, "%zu: %d samples", i, (int)table->samples);
        ck_assert_msg(!cases[i].note || strstr(heard, cases[i].note), "%zu: %s", i, heard);
        ck_assert_msg(cases[i].note || !strstr(heard, "first row is taken as names"), "%zu: %s", i, heard);
        json_t *object = json_object();
        ck_assert_int_eq(table->describe(table, object), 0);
        const char *first = json_string_value(json_array_get(json_object_get(object, "columns"), 0));
        ck_assert_msg(!strcmp(first, cases[i].first ? cases[i].first : "1"), "%zu: %s", i, first);
        json_decref(object);
        table->free(table);
    }
}
END_TEST

/* Another table, by what is kept with the weights: each column becomes what it was. */
START_TEST(described_columns)
{
    put_text("t/train.csv",
        "n,p,c,d,b,i,y\n1,10%,red,2001-01-01,yes,k1,1\n,30%,blue,2001-01-03,no,k2,2\n"
        "3,20%,red,2001-01-02,no,k3,3\n");
    put_text("t/test.csv", "n,p,c,d,b,i,y\n2,20%,red,2001-01-02,yes,k4,2\n");
    tutti_data_options options = fills;
    options.drop = "i";
    tutti_data *data = tutti_data_open(in_kinds("t"), &options);
    ck_assert_msg(data, "%s", tutti_message(NULL));
    char *description = tutti_data_json(data), *again;
    tutti_data_free(data);
    put_text("u/train.csv", "b,c,d,n,p,y\nno,red,2001-01-02,5,50%,7\n");
    put_text("u/test.csv", "b,c,d,n,p,y\nno,green,2001-01-05,,20%,2\n");
    options = fills;
    options.description = description;
    *heard = '\0';
    data = tutti_data_open(in_kinds("u"), &options);
    ck_assert_msg(data, "%s", tutti_message(NULL));
    ck_assert_str_eq(heard, "");
    float row[WIDTH], target;
    const int64_t first = 0;
    const tutti_source *test = tutti_data_source(data, TUTTI_DATA_TEST);
    tutti_data_info info = { .size = sizeof info };
    ck_assert_int_eq(tutti_data_describe(data, &info), TUTTI_OK);
    ck_assert_int_eq(info.shape.sizes[0], 2 + 1 + 3 + 6 + 1);
    const tutti_buffer buffers[] = { { "input", TUTTI_DTYPE_F32, row, 13 * sizeof *row },
        { "targets", TUTTI_DTYPE_F32, &target, sizeof target } };
    ck_assert_int_eq(test->read(test->user, &first, 1, buffers, 2), 0);
    ck_assert(fabsf(row[0]) < 1e-6f && row[1] == 1);      /* the median, and that it is missing */
    ck_assert(fabsf(row[2]) < 1e-6f);                     /* 20 % was the mean */
    ck_assert(row[3] == 1 && row[4] == 0 && row[5] == 0); /* green was not seen */
    ck_assert(fabsf(row[8] - 3 / sqrtf(2.0f / 3)) < 1e-4f);
    again = tutti_data_json(data);
    ck_assert_str_eq(again, description);
    free(again);
    tutti_data_free(data);
    free(description);
}
END_TEST

Suite *columns_suite(void)
{
    Suite *suite = suite_create("columns");
    TCase *tests = tcase_create("columns");
    tcase_add_checked_fixture(tests, kinds_begin, kinds_end);
    tcase_add_test(tests, ways_to_write_numbers);
    tcase_add_test(tests, text_columns);
    tcase_add_test(tests, codes_of_texts);
    tcase_add_test(tests, missing_numbers);
    tcase_add_test(tests, dates);
    tcase_add_test(tests, damaged_dates);
    tcase_add_test(tests, orders_of_dates);
    tcase_add_test(tests, points_before_thousands);
    tcase_add_test(tests, late_rows);
    tcase_add_test(tests, classes_of_rows);
    tcase_add_test(tests, useless_columns);
    tcase_add_test(tests, numbers_and_texts);
    tcase_add_test(tests, chosen_columns);
    tcase_add_test(tests, headers_of_texts);
    tcase_add_test(tests, headers_above_values);
    tcase_add_test(tests, described_columns);
    suite_add_tcase(suite, tests);
    return suite;
}
