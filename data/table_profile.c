/* The kinds of a table's columns: chosen by the first rows, and by all of them if a later row does not fit. */
#include "data/table.h"

#include "base/memory.h"
#include "base/status.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_ROWS = 1000, MOST_NAMED = 20, MOST_FEATURES = CSV_MAX_COLUMNS };

static bool is_wanted(const struct column *column)
{
    return column->role == COLUMN_INPUT || column->role == COLUMN_TARGET;
}

static tutti_status profile_row(struct table *table, int file, const struct csv_row *row, int64_t number)
{
    tutti_status status = TUTTI_OK;
    (void)file;
    (void)number;
    if (row->count != table->reading.field_count) return TUTTI_OK; /* told when it is read */
    for (int i = 0; i < table->column_count && status == TUTTI_OK; i++)
        if (is_wanted(&table->columns[i]))
            status = column_profile(&table->columns[i], row->fields[table->columns[i].field]);
    return status;
}

/* Texts of a target are classes; numbers are, where the caller says so. */
static void choose_target(struct table *table, struct column *target)
{
    target->kind = column_choose(target, table->reading.comma);
    table->by_class =
        table->reading.class_asked || !target->kind || !target->kind->is_number || target->kind == &column_boolean;
    if (table->by_class) target->kind = &column_category;
}

/* Leaves a column out, with the reason. */
static void leave_out(const struct table *table, struct column *column, const char *reason)
{
    struct text line = { 0 };
    column->role = COLUMN_LEFT_OUT;
    column->reason = reason;
    text_append(&line, "column '%s' is left out: %s", column->name, reason);
    table_note(table, NULL, &line);
    text_free(&line);
}

static void report_mixed(const struct table *table, const struct column *column)
{
    struct text line = { 0 };
    text_append(&line, "column '%s' has %s and texts: all are taken as texts", column->name,
        column_is_mostly_dates(column) ? "dates" : "numbers");
    table_note(table, NULL, &line);
    text_free(&line);
}

static void choose_input(const struct table *table, struct column *column, bool all)
{
    const struct column_profile *profile = &column->profile;
    const struct column_kind *before = column->kind; /* by the first rows */
    column->kind = column_choose(column, table->reading.comma);
    if (table->reading.comma) column_date_take_day_first(column);
    column->bounded = all;
    const bool mixed = profile->numbers > 0 || column_is_mostly_dates(column);
    if (column->kind == &column_category && before != column->kind && mixed) report_mixed(table, column);
    if (column->kind) return;
    column->kind = &column_number;
    if (profile->filled > 0)
        leave_out(table, column, profile->many ? "it has more than 1000 different texts" : "it has long texts");
    else if (all)
        leave_out(table, column, "all values are missing");
}

/* Numbers the inputs of a row. */
static tutti_status number_cells(struct table *table)
{
    table->cells = 0;
    for (int i = 0; i < table->column_count; i++)
        if (table->columns[i].role == COLUMN_INPUT) table->columns[i].cell = table->cells++;
    if (table->cells > 0) return TUTTI_OK;
    return fail(TUTTI_FORMAT, "%s: no column is left to predict '%s' from", table->files[0].path,
        table->columns[table->target].name);
}

static bool is_grouped(const struct column *column)
{
    return column->kind == &column_comma && column_may_be_comma(column);
}

/* Where other columns have decimal commas, points before three digits stand before thousands. */
static void group_thousands(struct table *table)
{
    bool commas = false;
    for (int i = 0; i < table->column_count; i++)
        commas |= is_wanted(&table->columns[i]) && table->columns[i].kind == &column_comma;
    for (int i = 0; i < table->column_count && commas; i++) {
        struct column *column = &table->columns[i];
        if (is_wanted(column) && column->kind == &column_number && column_may_be_comma(column))
            column->kind = &column_comma;
    }
}

tutti_status table_choose_kinds(struct table *table, bool all)
{
    const int64_t most = all ? INT64_MAX : FIRST_ROWS;
    tutti_status status = TUTTI_OK;
    for (int i = 0; i < table->column_count; i++) {
        table_classes_free(&table->columns[i].categories);
        table->columns[i].profile = (struct column_profile) { 0 };
    }
    for (int file = 0; file < table->file_count; file++) TRY(table_walk(table, file, most, profile_row));
    table->reading.chosen = all;
    table->reading.quiet = false;
    for (int i = 0; i < table->column_count; i++) {
        struct column *column = &table->columns[i];
        if (column->role == COLUMN_TARGET) choose_target(table, column);
        if (column->role == COLUMN_INPUT) choose_input(table, column, all);
        table_classes_free(&column->categories); /* they are counted again when rows are read */
    }
    table->reading.quiet = true;
    group_thousands(table);
    TRY(number_cells(table));
done:
    return status;
    return status;
}

/* ------------------------------------------------------------------------------------------- after all rows ---- */

static double value_at(const struct table *table, const struct column *column, int64_t row)
{
    return table->rows.values[(size_t)row * (size_t)table->cells + (size_t)column->cell];
}

static bool is_empty(const struct table *table, const struct column *column)
{
    for (int64_t row = 0; row < table->collection.samples; row++)
        if (!isnan(value_at(table, column, row))) return false;
    return true;
}

/* Whether no text is there twice. */
static bool is_unique(const struct table *table, const struct column *column)
{
    enum { LEAST = 3 }; /* texts of which that can be said */
    bool seen[COLUMN_CATEGORIES] = { false };
    int texts = 0;
    for (int64_t row = 0; row < table->collection.samples; row++) {
        const double value = value_at(table, column, row);
        if (isnan(value)) continue;
        if (value < 0 || seen[(int32_t)value]) return false;
        seen[(int32_t)value] = true;
        texts++;
    }
    return texts >= LEAST;
}

static void report_kind(const struct table *table, const struct column *column)
{
    struct text line = { 0 };
    if (is_grouped(column))
        text_append(&line,
            "column '%s': a point before three digits stands before thousands, since other columns have decimal "
            "commas",
            column->name);
    if (column->role == COLUMN_INPUT && column_date_is_open(column)) {
        for (int64_t row = 0; row < table->collection.samples; row++)
            if (column_date_has_late_day(value_at(table, column, row))) return;
        text_append(&line, "column '%s': dates such as 01/02/2001 are read with the %s first: no day is above 12",
            column->name, column_date_is_day_first(column) ? "day" : "month");
    }
    table_note(table, NULL, &line);
    text_free(&line);
}

tutti_status table_check_inputs(struct table *table)
{
    int inputs = 0;
    table->reading.quiet = false;
    for (int i = 0; i < table->column_count; i++)
        if (is_wanted(&table->columns[i])) report_kind(table, &table->columns[i]);
    for (int i = 0; i < table->column_count; i++) {
        struct column *column = &table->columns[i];
        if (column->role != COLUMN_INPUT) continue;
        if (is_empty(table, column))
            leave_out(table, column, "all values are missing");
        else if (column->kind == &column_category && is_unique(table, column))
            leave_out(table, column, "each row has another text");
        else
            inputs++;
    }
    if (inputs > 0) return TUTTI_OK;
    return fail(TUTTI_FORMAT, "%s: no column is left to predict '%s' from", table->files[0].path,
        table->columns[table->target].name);
}
