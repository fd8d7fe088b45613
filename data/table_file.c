/* The rows of a file, and whether the first one has the names of columns. */
#include "data/table.h"

#include "base/memory.h"
#include "base/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOOKED_AT = 100, LEAST_ROWS = 5 };

static bool is_number(const char *text)
{
    double number;
    return csv_number(text, &number);
}

/* ----------------------------------------------------------------------------------------------- first row ---- */

/* What the first row is taken for, and by what. */
struct header {
    bool names;
    bool alone;         /* none of its texts is below */
    bool again;         /* data, although it could be names: one of its texts is below */
    bool above_missing; /* nothing but texts above missing values says so */
    bool pivot; /* numbers after an empty text, which is above a value: names, as those of a pivot table, or data */
};

/* A number in any way to write it. */
static bool is_written_number(const char *text)
{
    return column_number.recognise(text) || column_percent.recognise(text) || column_thousands.recognise(text) ||
        column_comma.recognise(text);
}

static bool is_value(const char *text)
{
    return is_written_number(text) || column_date.recognise(text);
}

/* Whether texts are 0, 1, 2 ..., as pandas names columns without names. */
static bool counts_up(char *const *texts, int count)
{
    char number[20];
    for (int i = 0; i < count; i++) {
        snprintf(number, sizeof number, "%d", i);
        if (strcmp(texts[i], number)) return false;
    }
    return true;
}

/* Returns whether the texts are 0, 1, 2 ... and, last, a text that is not a value. */
static bool counts_to_text(char *const *texts, int count)
{
    const char *last = texts[count - 1];
    return count > 2 && counts_up(texts, count - 1) && !column_is_missing(last) && !is_value(last);
}

/* No text in a first column that others have, as R and pandas write it. */
static bool has_index(const struct csv_row *next, char **texts, int count)
{
    bool numbers = false, missing = false;
    for (int i = 0; i < count; i++) numbers |= is_number(texts[i]);
    for (int i = 1; i < count; i++) missing |= !*texts[i];
    if (count < 2 || *texts[0] || missing || !*next->fields[0]) return false;
    return !numbers || (counts_up(texts + 1, count - 1) && (count > 2 || !strcmp(next->fields[0], "0")));
}

/* Whether a text is above a number, a date or nothing. */
static bool is_above_values(const struct csv_row *next, char **texts, int count)
{
    for (int i = 0; i < count && i < next->count; i++) {
        const char *below = next->fields[i];
        if (column_is_missing(texts[i]) || is_number(texts[i])) continue;
        if (is_number(below) || (!is_value(texts[i]) && (column_is_missing(below) || is_value(below)))) return true;
    }
    return false;
}

/* A row of names has a text where the row after it has a number, a date or nothing, or it has an index. */
static bool is_header(const struct csv_row *next, char **texts, int count)
{
    bool numbers = false;
    for (int i = 0; i < count; i++) numbers |= is_number(texts[i]);
    if (next->count == 0) return !numbers;
    return has_index(next, texts, count) || is_above_values(next, texts, count);
}

static tutti_status copy_row(const struct csv_row *row, char ***texts)
{
    *texts = memory_new((size_t)row->count, sizeof **texts);
    for (int i = 0; *texts && i < row->count; i++)
        if (!((*texts)[i] = memory_copy_text(row->fields[i]))) return TUTTI_NO_MEMORY;
    return *texts ? TUTTI_OK : TUTTI_NO_MEMORY;
}

static bool has_equal(const struct csv_row *row, char **texts, int count)
{
    for (int i = 0; i < count && i < row->count; i++)
        if (*texts[i] && !is_number(texts[i]) && !strcmp(texts[i], row->fields[i])) return true;
    return false;
}

/* Whether one of the texts is in its column again. `next` is the second row. */
static tutti_status is_again(struct csv *csv, const struct csv_row *next, char **texts, int count, bool *again)
{
    struct csv_row row = *next;
    *again = false;
    for (int rows = 0; rows < LOOKED_AT && row.count > 0 && !*again; rows++) {
        *again = has_equal(&row, texts, count);
        const tutti_status status = csv_next(csv, &row);
        if (status != TUTTI_OK) return status;
    }
    return TUTTI_OK;
}

/* Texts without a number below are names if no row below has them in their columns, while values are there again.
 * `next` is the second row. */
static tutti_status is_alone(struct csv *csv, const struct csv_row *next, char **texts, int count, bool *alone)
{
    struct csv_row row = *next;
    char **second = NULL;
    int rows = 1;
    bool again = false;
    const int second_count = next->count;
    tutti_status status = copy_row(next, &second);
    *alone = status == TUTTI_OK && !has_equal(next, texts, count);
    while (status == TUTTI_OK && *alone && rows < LOOKED_AT) {
        status = csv_next(csv, &row);
        if (status != TUTTI_OK || row.count == 0) break;
        rows++;
        *alone = !has_equal(&row, texts, count);
        again |= has_equal(&row, second, second_count);
    }
    if (rows < LEAST_ROWS || !again) *alone = false;
    table_free_texts(second, second_count);
    return status;
}

/* Numbers that all rise, or all fall. */
struct sequence {
    double last;
    int direction, count;
};

static bool goes_on(struct sequence *sequence, const char *text)
{
    double number;
    if (!csv_number(text, &number)) return false;
    const int direction = (number > sequence->last) - (number < sequence->last);
    if (sequence->count > 0 && direction == 0) return false;
    if (sequence->count > 1 && direction != sequence->direction) return false;
    sequence->last = number;
    sequence->direction = direction;
    sequence->count++;
    return true;
}

/* Whether a text may be the next one of an index: a number in order, or a text that was not there before. */
static tutti_status is_of_index(struct sequence *numbers, struct table_classes *seen, const char *text, bool *good)
{
    int32_t ignored;
    const size_t before = seen->count;
    *good = *text && (!is_number(text) || goes_on(numbers, text));
    if (!*good || is_number(text)) return TUTTI_OK;
    const tutti_status status = table_class_of(seen, text, &ignored);
    *good = seen->count > before;
    return status;
}

static bool may_be_pivot(const struct csv_row *next, char **texts, int count)
{
    for (int i = 1; i < count; i++)
        if (!is_number(texts[i])) return false;
    return count > 2 && !*texts[0] && next->count == count && *next->fields[0];
}

/* Numbers after an empty text are names if they are in order, above an index. `next` is the second row. */
static tutti_status is_pivot(struct csv *csv, const struct csv_row *next, char **texts, int count, bool *names)
{
    struct sequence of_names = { 0 }, of_index = { 0 };
    struct table_classes seen = { 0 };
    struct csv_row row = *next;
    tutti_status status = TUTTI_OK;
    *names = true;
    for (int i = 1; i < count && *names; i++) *names = goes_on(&of_names, texts[i]);
    for (int rows = 0; rows < LOOKED_AT && *names && row.count > 0; rows++) {
        TRY(is_of_index(&of_index, &seen, row.fields[0], names));
        TRY(csv_next(csv, &row));
    }
done:
    table_classes_free(&seen);
    return status;
}

/* Whether texts above missing values are all that tells names from data. */
static bool is_above_missing(const struct csv_row *next, char **texts, int count)
{
    int missing = 0;
    if (next->count == 0 || has_index(next, texts, count)) return false;
    for (int i = 0; i < count && i < next->count; i++) {
        const char *below = next->fields[i];
        if (column_is_missing(texts[i]) || is_number(texts[i])) continue;
        if (is_number(below)) return false;
        if (is_value(texts[i])) continue;
        if (is_value(below)) return false;
        missing += column_is_missing(below);
    }
    return missing > 0;
}

/* Tells what was decided on the first row where it may be wrong: names that are numbers, or texts above texts. */
static void report_header(
    const struct table *table, const char *path, char **texts, int count, const struct header *header)
{
    struct text line = { 0 };
    int numbers = 0, written = 0, filled = 0;
    for (int i = 0; i < count; i++) {
        numbers += is_number(texts[i]);
        written += is_written_number(texts[i]);
        filled += !column_is_missing(texts[i]);
    }
    if (header->alone)
        text_append(&line, "the first row is taken as names of columns: none of its texts is in the rows below");
    else if (header->again)
        text_append(&line,
            "the first row is taken as data, and columns are called 1, 2, ...: one of its texts is in the rows below");
    else if (header->names && count > 1 && !*texts[0] && counts_up(texts + 1, count - 1))
        text_append(&line, "the first row is taken as names of columns: they are 0, 1, ... after an empty one");
    else if (header->pivot && header->names)
        text_append(&line,
            "the first row is taken as names of columns: they are numbers in order after an empty one, above an index");
    else if (header->pivot)
        text_append(&line,
            "the first row is taken as data, and columns are called 1, 2, ...: numbers after an empty text are not "
            "names, since they or the first column are in no order");
    else if (header->above_missing)
        text_append(&line,
            "the first row is taken as names of columns: there are texts above missing values, and none above a "
            "number");
    else if (header->names && numbers > 0)
        text_append(&line,
            "the first row is taken as names of columns, although some are numbers: there is a text above "
            "a number");
    else if (!header->names && counts_to_text(texts, count))
        text_append(&line,
            "the first row is taken as data, and columns are called 1, 2, ...: it looks like names, but too few "
            "rows show that its text is not among the texts below");
    else if (!header->names && written == 0 && filled > 0)
        text_append(&line,
            "the first row is taken as data, and columns are called 1, 2, ...: none of its texts is above "
            "a number");
    if (line.data) table_note(table, path, &line);
    text_free(&line);
}

/* Copies the fields of the first row, and tells whether they are names. */
static tutti_status read_first(const struct table *table, const char *path, char ***texts, int *count, bool *names)
{
    struct csv *csv = NULL;
    struct csv_row row;
    struct header header = { 0 };
    tutti_status status = csv_open(path, &csv);
    *texts = NULL;
    *count = 0;
    *names = false;
    if (status != TUTTI_OK) return status;
    TRY(csv_next(csv, &row));
    if (row.count == 0) FAIL(TUTTI_FORMAT, "%s: the file is empty: name one that has rows", path);
    *count = row.count;
    TRY(copy_row(&row, texts));
    TRY(csv_next(csv, &row));
    header.names = is_header(&row, *texts, *count);
    header.above_missing = header.names && is_above_missing(&row, *texts, *count);
    const bool unclear = header.above_missing || !is_above_values(&row, *texts, *count);
    if (header.names && unclear && row.count > 0) TRY(is_again(csv, &row, *texts, *count, &header.again));
    if (header.again) header.names = header.above_missing = false;
    bool written = false;
    for (int i = 0; i < *count; i++) written |= is_written_number((*texts)[i]);
    if (!header.names && !header.again && (!written || counts_to_text(*texts, *count)) && row.count > 0)
        TRY(is_alone(csv, &row, *texts, *count, &header.alone));
    header.pivot = !header.names && !header.again && !table->columns && may_be_pivot(&row, *texts, *count);
    if (header.pivot) TRY(is_pivot(csv, &row, *texts, *count, &header.names));
    *names = header.names || header.alone;
    header.names = *names;
    if (!table->columns) report_header(table, path, *texts, *count, &header);
done:
    csv_close(csv);
    if (status == TUTTI_OK) return status;
    table_free_texts(*texts, *count);
    *texts = NULL;
    return status;
}

/* ---------------------------------------------------------------------------------------------------- rows ---- */

/* Returns whether the row is empty. If rows have no target, a row of empty fields is one whose inputs are missing. */
static bool is_blank(const struct table *table, const struct csv_row *row)
{
    if (table->unlabelled && row->count == table->reading.field_count) return false;
    for (int i = 0; i < row->count; i++)
        if (row->fields[i][0]) return false;
    return true;
}

tutti_status table_walk(struct table *table, int file, int64_t most,
    tutti_status (*row)(struct table *table, int file, const struct csv_row *row, int64_t number))
{
    const char *path = table->files[file].path;
    struct csv *csv = NULL;
    struct csv_row fields;
    char **texts;
    int count;
    bool header = false;
    tutti_status status = read_first(table, path, &texts, &count, &header);
    if (status == TUTTI_OK) status = table_set_columns(table, path, texts, count, &header);
    if (status == TUTTI_OK) status = csv_open(path, &csv);
    if (status != TUTTI_OK) return status;
    table->files[file].header = header;
    table->files[file].separator = csv_separator(csv);
    if (file == 0) table->reading.comma = csv_separator(csv) == ';';
    if (header) TRY(csv_next(csv, &fields));
    for (int64_t number = 1; number <= most && !table->reading.enough; number++) {
        TRY(csv_next(csv, &fields));
        if (fields.count == 0) break;
        if (!is_blank(table, &fields)) TRY(row(table, file, &fields, number));
    }
done:
    csv_close(csv);
    return status;
}
