/* The rows of a file. Errors are reported with row and column. */
#include "data/table.h"

#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"

#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* How others write that a value is missing. */
static bool is_missing(const char *text)
{
    static const char *const words[] = { "", "na", "n/a", "nan", "null", "none", "?", "-" };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcasecmp(text, words[i])) return true;
    return false;
}

/* ----------------------------------------------------------------------------------------------- first row ---- */

/* A row of names has a text where the row after it has a number, or nothing. */
static bool is_header(const struct csv_row *row, const struct csv_row *next, char **texts)
{
    double number;
    if (next->count == 0) {
        for (int i = 0; i < row->count; i++)
            if (csv_number(texts[i], &number)) return false;
        return true;
    }
    for (int i = 0; i < row->count && i < next->count; i++)
        if (!is_missing(texts[i]) && !csv_number(texts[i], &number) &&
            (is_missing(next->fields[i]) || csv_number(next->fields[i], &number)))
            return true;
    return false;
}

static bool is_number(const char *text)
{
    double number;
    return csv_number(text, &number);
}

/* Tells what was decided on the first row of a file where it may be wrong: names that are numbers, or data that have
 * none. */
static void report_header(const char *path, const tutti_data_options *options, char **texts, int count, bool header)
{
    int numbers = 0, filled = 0;
    char line[1200];
    for (int i = 0; i < count; i++) {
        numbers += is_number(texts[i]);
        filled += !is_missing(texts[i]);
    }
    if (!options->note || filled == 0 || (header ? numbers == 0 : numbers > 0)) return;
    if (header)
        snprintf(line, sizeof line,
            "%.900s: the first row is taken as names of columns, although some are numbers: one is a text above a "
            "number",
            path);
    else
        snprintf(line, sizeof line,
            "%.900s: the first row is taken as data, and columns are called 1, 2, ...: no name in it is above a number",
            path);
    options->note(options->user, line);
}

/* The fields of the first row, or NULL and *count 0 in an empty file; whether they are names. */
static tutti_status read_first(const char *path, char ***texts, int *count, bool *header)
{
    struct csv *csv = NULL;
    struct csv_row row, next;
    tutti_status status = csv_open(path, &csv);
    if (status != TUTTI_OK) return status;
    *texts = NULL;
    *count = 0;
    TRY(csv_next(csv, &row));
    const struct csv_row first = row;
    if (row.count == 0) FAIL(TUTTI_FORMAT, "%s: the file is empty", path);
    *texts = memory_new((size_t)row.count, sizeof **texts);
    if (!*texts) FAIL(TUTTI_NO_MEMORY, "no memory for the columns of %s", path);
    for (*count = 0; *count < first.count; ++*count)
        if (!((*texts)[*count] = memory_copy_text(row.fields[*count])))
            FAIL(TUTTI_NO_MEMORY, "no memory for the columns of %s", path);
    TRY(csv_next(csv, &next));
    *header = is_header(&first, &next, *texts);
done:
    csv_close(csv);
    if (status != TUTTI_OK) table_free_texts(*texts, *count);
    return status;
}

/* ---------------------------------------------------------------------------------------------------- rows ---- */

static tutti_status make_room(struct table *table)
{
    struct collection *collection = &table->collection;
    const size_t rows = (size_t)collection->samples + 1;
    size_t values;
    tutti_status status = TUTTI_OK;
    if (!size_multiply(rows, (size_t)table->inputs, &values)) return fail(TUTTI_NO_MEMORY, "the table is too large");
    TRY(memory_grow((void **)&table->values, &table->room.values, values, sizeof *table->values));
    TRY(memory_grow((void **)&table->targets, &table->room.targets, rows, sizeof *table->targets));
    TRY(memory_grow((void **)&collection->labels, &table->room.labels, rows, sizeof *collection->labels));
    TRY(memory_grow((void **)&collection->parts, &table->room.parts, rows, sizeof *collection->parts));
    TRY(memory_grow((void **)&table->numbers, &table->room.numbers, rows, sizeof *table->numbers));
done:
    return status;
}

/* Reports why a field is not a number. */
static tutti_status refuse(const struct table *table, int column, const char *text)
{
    char shown[40];
    snprintf(shown, sizeof shown, "%.30s", text);
    for (char *c = shown; *c; c++)
        if (*c < ' ' || *c > '~') *c = '?';
    if (is_missing(text)) return fail(TUTTI_FORMAT, "column '%s': the value is missing", table->columns[column]);
    if (column == table->target)
        return fail(TUTTI_FORMAT, "column '%s': '%s' is not a number; --target '%s:class' makes it a class",
            table->columns[column], shown, table->columns[column]);
    return fail(TUTTI_FORMAT,
        "column '%s': '%s' is not a number that can be read: write texts as numbers, or remove the "
        "column",
        table->columns[column], shown);
}

static tutti_status read_target(struct table *table, const char *path, const char *text)
{
    struct collection *collection = &table->collection;
    const int64_t row = collection->samples;
    double number = 0;
    const bool is_number = csv_number(text, &number) && fabs(number) <= (double)FLT_MAX;
    if (is_missing(text)) return refuse(table, table->target, text);
    if (row == 0 && !is_number && !table->described) table->by_class = true;
    table->targets[row] = number;
    if (!table->by_class) return is_number ? TUTTI_OK : refuse(table, table->target, text);
    const tutti_status status = table_check_text(path, text);
    if (status != TUTTI_OK) return status;
    char name[TABLE_NUMBER_NAME];
    return table_class_of(&table->classes, table_class_name(text, name), &collection->labels[row]);
}

static tutti_status read_fields(struct table *table, const char *path, const struct csv_row *row)
{
    double *values = table->values + (size_t)table->collection.samples * (size_t)table->inputs;
    if (row->count != table->field_count)
        return fail(TUTTI_FORMAT, "%d fields, but there are %d columns", row->count, table->field_count);
    for (int i = 0; i < table->column_count; i++) {
        if (i == table->skipped || i == table->target) continue;
        const char *text = row->fields[table->fields[i]];
        if (!csv_number(text, values) || fabs(*values) > (double)FLT_MAX) return refuse(table, i, text);
        values++;
    }
    return read_target(table, path, row->fields[table->fields[table->target]]);
}

static bool is_blank(const struct csv_row *row)
{
    for (int i = 0; i < row->count; i++)
        if (row->fields[i][0]) return false;
    return true;
}

static tutti_status add_row(struct table *table, const char *path, int part, const struct csv_row *row, int64_t number,
    const tutti_data_options *options)
{
    tutti_status status = make_room(table);
    if (status != TUTTI_OK) return status;
    status = read_fields(table, path, row);
    if (status == TUTTI_OK) {
        table->collection.parts[table->collection.samples] = (signed char)part;
        table->numbers[table->collection.samples++] = number;
        return TUTTI_OK;
    }
    if (status != TUTTI_FORMAT) return status;
    status_context(status, "%s: row %" PRId64 " (line %" PRId64 ")", path, number, row->line);
    if (!options->skip_damaged) return status;
    char line[1200];
    snprintf(line, sizeof line, "left out: %.1100s", status_message());
    if (options->note) options->note(options->user, line);
    table->damaged++;
    return TUTTI_OK;
}

static tutti_status read_rows(
    struct table *table, const char *path, int part, bool header, const tutti_data_options *options)
{
    struct csv *csv = NULL;
    struct csv_row row;
    tutti_status status = csv_open(path, &csv);
    if (status != TUTTI_OK) return status;
    if (header) TRY(csv_next(csv, &row));
    for (int64_t number = 1;; number++) {
        TRY(csv_next(csv, &row));
        if (row.count == 0) break;
        if (!is_blank(&row)) TRY(add_row(table, path, part, &row, number, options));
    }
done:
    csv_close(csv);
    return status;
}

tutti_status table_read(struct table *table, const char *path, int part, const tutti_data_options *options)
{
    char **texts;
    int count;
    bool header = false;
    const int64_t before = table->collection.samples;
    tutti_status status = read_first(path, &texts, &count, &header);
    if (status != TUTTI_OK) return status;
    if (!table->columns) report_header(path, options, texts, count, header);
    status = table_set_columns(table, path, options, texts, count, &header);
    if (status != TUTTI_OK) return status;
    const char *slash = strrchr(path, '/');
    table->files.begins[table->files.count] = before;
    table->files.names[table->files.count] = memory_copy_text(slash ? slash + 1 : path);
    if (!table->files.names[table->files.count++]) return TUTTI_NO_MEMORY;
    status = read_rows(table, path, part, header, options);
    if (status == TUTTI_OK && table->collection.samples == before)
        return fail(TUTTI_FORMAT, "%s has no rows that can be used", path);
    return status;
}
