/* Reads the rows of a table by the kinds of its columns. Errors are reported with row and column. */
#include "data/table.h"

#include "base/memory.h"
#include "base/status.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TOLD = 3 };

static tutti_status make_room(struct table *table)
{
    struct collection *collection = &table->collection;
    const size_t rows = (size_t)collection->samples + 1;
    size_t values;
    tutti_status status = TUTTI_OK;
    if (!size_multiply(rows, (size_t)table->cells, &values)) return fail(TUTTI_NO_MEMORY, "the table is too large");
    TRY(memory_grow((void **)&table->rows.values, &table->rows.values_room, values, sizeof *table->rows.values));
    TRY(memory_grow((void **)&table->rows.targets, &table->rows.targets_room, rows, sizeof *table->rows.targets));
    TRY(memory_grow((void **)&collection->labels, &table->rows.labels_room, rows, sizeof *collection->labels));
    TRY(memory_grow((void **)&collection->parts, &table->rows.parts_room, rows, sizeof *collection->parts));
    TRY(memory_grow((void **)&table->rows.numbers, &table->rows.numbers_room, rows, sizeof *table->rows.numbers));
    TRY(memory_grow((void **)&table->rows.name_at, &table->rows.names_room, rows, sizeof *table->rows.name_at));
done:
    return status;
}

static tutti_status refuse_missing(const struct table *table, const struct column *column)
{
    if (column->role == COLUMN_TARGET || table->reading.options->fill_missing)
        return fail(TUTTI_FORMAT, "column '%s': the value is missing", column->name);
    return fail(
        TUTTI_FORMAT, "column '%s': the value is missing: --missing fill takes another one for it", column->name);
}

/* Reports why a field is not of the column's kind. */
static tutti_status refuse(struct table *table, const struct column *column, const char *text)
{
    char shown[40];
    snprintf(shown, sizeof shown, "%.30s", text);
    for (char *c = shown; *c; c++)
        if (*c < ' ' || *c > '~') *c = '?';
    if (!table->described && !table->reading.chosen) table->reading.misfit = true;
    if (column->role == COLUMN_TARGET)
        return fail(TUTTI_FORMAT, "column '%s': '%s' is not %s; --target '%s:class' makes it a class", column->name,
            shown, column->kind->noun, column->name);
    return fail(TUTTI_FORMAT, "column '%s': '%s' is not %s that can be read, as %s: correct it%s", column->name, shown,
        column->kind->noun, table->described ? "those of the training were" : "most of the column are",
        table->described ? "" : ", or leave the column out by --drop");
}

static tutti_status read_target(struct table *table, const char *path, const char *text)
{
    struct collection *collection = &table->collection;
    struct column *column = &table->columns[table->target];
    const int64_t row = collection->samples;
    char name[TABLE_NUMBER_NAME];
    if (column->field < 0) { /* the number stays 0 */
        collection->labels[row] = -1;
        return TUTTI_OK;
    }
    if (column_is_missing(text)) return refuse_missing(table, column);
    if (!table->by_class)
        return column->kind->read(column, text, &table->rows.targets[row]) == TUTTI_OK ? TUTTI_OK
                                                                                       : refuse(table, column, text);
    const tutti_status status = table_check_text(path, text);
    if (status != TUTTI_OK) return status;
    return table_class_of(&table->classes, table_class_name(text, name), &collection->labels[row]);
}

static tutti_status read_input(struct table *table, struct column *column, const char *text, double *value)
{
    const bool plain = column->kind == &column_number && column->field >= 0;
    if (plain && csv_field_number(text, value) && fabs(*value) <= (double)FLT_MAX) return TUTTI_OK; /* most cells */
    if (column_is_missing(text)) {
        *value = NAN;
        return table->reading.options->fill_missing ? TUTTI_OK : refuse_missing(table, column);
    }
    const tutti_status status = column->kind->read(column, text, value);
    return status == TUTTI_FORMAT ? refuse(table, column, text) : status;
}

static const char *text_of(const struct csv_row *row, const struct column *column)
{
    return column->field >= 0 ? row->fields[column->field] : "";
}

static tutti_status read_fields(struct table *table, const char *path, const struct csv_row *row)
{
    double *values = table->rows.values + (size_t)table->collection.samples * (size_t)table->cells;
    tutti_status status = TUTTI_OK;
    if (row->count != table->reading.field_count)
        return fail(TUTTI_FORMAT,
            "%d field%s, but there are %d columns: correct the row, or leave such rows out by --skip-damaged",
            row->count, row->count == 1 ? "" : "s", table->reading.field_count);
    for (int i = 0; i < table->column_count && status == TUTTI_OK; i++) {
        struct column *column = &table->columns[i];
        if (column->role == COLUMN_INPUT)
            status = read_input(table, column, text_of(row, column), &values[column->cell]);
        else if (column->role == COLUMN_NAME)
            status = names_add(
                &table->rows.names, text_of(row, column), NULL, &table->rows.name_at[table->collection.samples]);
    }
    /* After the inputs: a row that is left out adds no class. */
    return status == TUTTI_OK ? read_target(table, path, text_of(row, &table->columns[table->target])) : status;
}

/* Counts a row that is left out, and keeps why if it is one of the first. */
static void leave_out(struct table *table)
{
    if (table->damaged++ < MOST_TOLD)
        text_append(&table->reading.left_out, "%s%s", table->damaged > 1 ? "; " : "", status_message());
}

static tutti_status read_row(struct table *table, int file, const struct csv_row *row, int64_t number)
{
    const char *path = table->files[file].path;
    const tutti_data_options *options = table->reading.options;
    tutti_status status = make_room(table);
    if (status != TUTTI_OK) return status;
    status = read_fields(table, path, row);
    if (status == TUTTI_OK) {
        table->collection.parts[table->collection.samples] =
            (signed char)(table->unlabelled ? TUTTI_DATA_TEST : table->files[file].part);
        table->rows.numbers[table->collection.samples++] = number;
        return TUTTI_OK;
    }
    if (status != TUTTI_FORMAT || table->reading.misfit) return status;
    status_context(status, "%s: row %" PRId64 " (line %" PRId64 ")", path, number, row->line);
    const bool no_target = row->count == table->reading.field_count && options->fill_missing && !table->unlabelled &&
        column_is_missing(row->fields[table->columns[table->target].field]);
    if (!options->skip_damaged && !no_target) return status;
    leave_out(table);
    return TUTTI_OK;
}

static void forget_rows(struct table *table)
{
    table->collection.samples = 0;
    table->damaged = 0;
    table->rows.names.used = 0;
    text_free(&table->reading.left_out);
    table_classes_free(&table->classes);
    for (int i = 0; i < table->column_count && !table->described; i++)
        table_classes_free(&table->columns[i].categories);
}

static void report_left_out(struct table *table)
{
    struct text line = { 0 };
    if (table->damaged == 0) return;
    text_append(&line, "left out %" PRId64 " row%s: %s%s", table->damaged, table->damaged == 1 ? "" : "s",
        table->reading.left_out.data ? table->reading.left_out.data : "", table->damaged > MOST_TOLD ? "; ..." : "");
    table->reading.quiet = false;
    table_note(table, NULL, &line);
    text_free(&line);
    text_free(&table->reading.left_out);
}

tutti_status table_read(struct table *table)
{
    forget_rows(table);
    for (int file = 0; file < table->file_count; file++) {
        const int64_t before = table->files[file].begins = table->collection.samples;
        const tutti_status status = table_walk(table, file, INT64_MAX, read_row);
        if (status != TUTTI_OK) return status;
        if (table->collection.samples == before)
            return fail(TUTTI_FORMAT, "%s has no rows that can be used%s%s", table->files[file].path,
                table->reading.left_out.data ? ": " : "",
                table->reading.left_out.data ? table->reading.left_out.data : "");
    }
    report_left_out(table);
    return TUTTI_OK;
}

static tutti_status look_at_target(struct table *table, int file, const struct csv_row *row, int64_t number)
{
    const int field = table->columns[table->target].field;
    (void)file;
    (void)number;
    table->reading.enough |=
        row->count == table->reading.field_count && (field < 0 || !column_is_missing(row->fields[field]));
    return TUTTI_OK;
}

tutti_status table_look_for_targets(struct table *table)
{
    tutti_status status = TUTTI_OK;
    table->reading.quiet = true;
    for (int file = 0; file < table->file_count && status == TUTTI_OK && !table->reading.enough; file++)
        status = table_walk(table, file, INT64_MAX, look_at_target);
    table->reading.quiet = false;
    table->reading.no_targets = !table->reading.enough;
    table->reading.enough = false;
    return status;
}
