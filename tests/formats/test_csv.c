#include "formats.h"

#include "formats/csv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIELDS = 7, ROWS = 4000, LONGEST = 200 };

/* The field of a row: letters, as many as there are between two ends of any two blocks that the reader looks at. */
static size_t make_field(int row, int field, bool quoted, char separator, char *text)
{
    const size_t length = (size_t)(row * 13 + field * 29 + row / 7 * field) % LONGEST + (separator == ' ');
    for (size_t i = 0; i < length; i++) text[i] = (char)('a' + (row + field + (int)i) % 26);
    if (quoted && length > 0) text[length / 2] = separator; /* it does not separate */
    text[length] = '\0';
    return length;
}

static void write_rows(const char *path, char separator, const char *end)
{
    char text[LONGEST + 2];
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    fprintf(file, "a%cb%cc%cd%ce%cf%cg%s", separator, separator, separator, separator, separator, separator, end);
    for (int row = 0; row < ROWS; row++)
        for (int field = 0; field < FIELDS; field++) {
            const bool quoted = separator != ' ' && (row + field) % 11 == 0;
            (void)make_field(row, field, quoted, separator, text);
            fprintf(file, "%s%s%s", quoted ? "\"" : "", text, quoted ? "\"" : "");
            if (field + 1 < FIELDS)
                fputc(separator, file);
            else
                fputs(end, file);
        }
    ck_assert_int_eq(fclose(file), 0);
}

static void read_rows(const char *path, char separator)
{
    char text[LONGEST + 2];
    struct csv *csv = NULL;
    struct csv_row row;
    ck_assert_int_eq(csv_open(path, &csv), TUTTI_OK);
    ck_assert_int_eq(csv_separator(csv), separator);
    ck_assert_int_eq(csv_next(csv, &row), TUTTI_OK);
    for (int number = 0; number < ROWS; number++) {
        ck_assert_msg(csv_next(csv, &row) == TUTTI_OK, "row %d: %s", number, status_message());
        ck_assert_int_eq(row.count, FIELDS);
        ck_assert_int_eq(row.line, number + 2);
        for (int field = 0; field < FIELDS; field++) {
            const bool quoted = separator != ' ' && (number + field) % 11 == 0;
            (void)make_field(number, field, quoted, separator, text);
            ck_assert_msg(!strcmp(row.fields[field], text), "row %d, field %d: '%s', not '%s'", number, field,
                row.fields[field], text);
        }
    }
    ck_assert_int_eq(csv_next(csv, &row), TUTTI_OK);
    ck_assert_int_eq(row.count, 0);
    csv_close(csv);
}

START_TEST(fields_of_all_lengths)
{
    static const char separators[] = ",;\t| ";
    for (const char *at = separators; *at; at++) {
        write_rows(in_folder("rows.csv"), *at, at - separators == 1 ? "\r\n" : "\n");
        read_rows(in_folder("rows.csv"), *at);
    }
}
END_TEST

/* What the reader computes by itself is what strtod() makes of the same text. */
START_TEST(random_numbers_are_exact)
{
    char text[80];
    double number;
    for (int i = 0; i < 300000; i++) {
        const int before = (int)chance(12), after = (int)chance(14);
        size_t used = 0;
        if (chance(2)) text[used++] = '-';
        for (int k = 0; k <= before; k++) text[used++] = (char)('0' + chance(10));
        if (after > 0) text[used++] = '.';
        for (int k = 1; k < after; k++) text[used++] = (char)('0' + chance(10));
        text[used] = '\0';
        if (chance(8) == 0) snprintf(text + used, sizeof text - used, "e%d", (int)chance(60) - 30);
        ck_assert_msg(csv_number(text, &number), "%s", text);
        const double wanted = strtod(text, NULL);
        ck_assert_msg(!memcmp(&number, &wanted, sizeof number), "%s: %.17g", text, number);
        ck_assert_msg(csv_field_number(text, &number), "%s", text);
        ck_assert_msg(!memcmp(&number, &wanted, sizeof number), "as a field, %s: %.17g", text, number);
    }
}
END_TEST

/* All short texts of characters that are in numbers, and others: a field is the number that its text is, or none. */
START_TEST(fields_are_as_texts)
{
    static const char letters[] = "0159.-+e :/";
    enum { LETTERS = sizeof letters - 1, MOST = 6 };
    for (int length = 0; length <= MOST; length++) {
        int all = 1;
        for (int i = 0; i < length; i++) all *= LETTERS;
        for (int code = 0; code < all; code++) {
            char text[16] = "";
            double number = 0, field = 0;
            for (int i = 0, rest = code; i < length; i++, rest /= LETTERS) text[i] = letters[rest % LETTERS];
            memset(
                text + length + 1, '7', sizeof text - (size_t)length - 1); /* what follows a field is not part of it */
            const bool is_number = csv_number(text, &number);
            if (csv_field_number(text, &field) != is_number || (is_number && memcmp(&number, &field, sizeof field)))
                ck_abort_msg("'%s': %.17g and %.17g", text, number, field);
        }
    }
}
END_TEST

Suite *csv_suite(void)
{
    Suite *suite = suite_create("csv");
    TCase *group = tcase_create("csv");
    tcase_add_checked_fixture(group, folder_begin, folder_end);
    tcase_add_test(group, fields_of_all_lengths);
    tcase_add_test(group, random_numbers_are_exact);
    tcase_add_test(group, fields_are_as_texts);
    suite_add_tcase(suite, group);
    return suite;
}
