/* What is in each column of a table, and what becomes of it. */
#include "data/inspect.h"
#include "data/table.h"

#include "base/memory.h"
#include "base/numbers.h"
#include "base/status.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BINS = 24, MOST_SORTED = 1 << 16, MOST_CATEGORIES = 100 };

/* The values of one column. */
struct values {
    const double *first;
    size_t stride;
    int64_t rows, missing, present;
    double least, largest, sum;
};

static double value_at(const struct values *values, int64_t row)
{
    return values->first[(size_t)row * values->stride];
}

static struct values values_of(const struct table *table, const struct column *column)
{
    const bool target = column->role == COLUMN_TARGET;
    struct values values = { .first = target ? table->rows.targets : table->rows.values + column->cell,
        .stride = target ? 1 : (size_t)table->cells,
        .rows = table->collection.samples,
        .least = INFINITY,
        .largest = -INFINITY };
    for (int64_t row = 0; row < values.rows; row++) {
        const double value = value_at(&values, row);
        if (isnan(value)) continue;
        values.least = fmin(values.least, value);
        values.largest = fmax(values.largest, value);
        values.sum += value;
        values.present++;
    }
    values.missing = values.rows - values.present;
    return values;
}

/* ------------------------------------------------------------------------------------------------- numbers ---- */

/* A date as a text, other values as numbers. */
static json_t *value_json(const struct column *column, double value)
{
    char text[64];
    if (column->kind != &column_date) return inspect_real(value);
    column_date_print(column, value, text, sizeof text);
    return json_string(text);
}

/* Sorts values, evenly spaced ones if there are many, for the quartiles. */
static int describe_quartiles(const struct column *column, const struct values *values, int64_t most, json_t *object)
{
    const int64_t step = inspect_step(values->present, most > 0 ? MOST_SORTED : 0);
    int64_t seen = 0;
    size_t used = 0;
    double *sorted = memory_new((size_t)(values->present / step) + 1, sizeof *sorted);
    if (!sorted) return -1;
    for (int64_t row = 0; row < values->rows; row++) {
        const double value = value_at(values, row);
        if (!isnan(value) && seen++ % step == 0) sorted[used++] = value;
    }
    qsort(sorted, used, sizeof *sorted, number_compare);
    json_t *list = json_array();
    for (size_t quarter = 1; quarter < 4; quarter++)
        json_array_append_new(list, value_json(column, sorted[(used - 1) * quarter / 4]));
    free(sorted);
    return json_object_set_new(object, "quartiles", list);
}

/* Counts in equal bins from the least value to the largest; few whole numbers have a bin each. */
static int describe_histogram(const struct values *values, json_t *object)
{
    const double range = values->largest - values->least;
    bool whole = range < BINS;
    for (int64_t row = 0; row < values->rows && whole; row++) {
        const double value = value_at(values, row);
        whole = isnan(value) || value == floor(value);
    }
    const int bins = whole ? (int)range + 1 : BINS;
    int64_t counts[BINS] = { 0 };
    for (int64_t row = 0; row < values->rows; row++) {
        const double value = value_at(values, row);
        if (isnan(value)) continue;
        const double place = range > 0 ? (value - values->least) / range * (whole ? bins - 1 : bins) : 0;
        counts[place < bins - 1 ? (int)place : bins - 1]++;
    }
    json_t *list = json_array();
    for (int i = 0; i < bins; i++) json_array_append_new(list, json_integer((json_int_t)counts[i]));
    return json_object_set_new(object, "histogram", list);
}

static int describe_numbers(const struct column *column, const struct values *values, int64_t most, json_t *object)
{
    if (values->present == 0) return 0;
    int failed = json_object_set_new(object, "least", value_json(column, values->least));
    failed |= describe_quartiles(column, values, most, object);
    failed |= json_object_set_new(object, "largest", value_json(column, values->largest));
    failed |= json_object_set_new(object, "mean", value_json(column, values->sum / (double)values->present));
    return failed | describe_histogram(values, object);
}

/* ---------------------------------------------------------------------------------------------- categories ---- */

struct category {
    const char *name;
    int64_t samples;
};

static int compare(const void *a, const void *b)
{
    const struct category *first = a, *second = b;
    if (first->samples != second->samples) return first->samples < second->samples ? 1 : -1;
    return strcmp(first->name, second->name);
}

/* Lists the categories that occur, the most frequent first. */
static int describe_list(struct category *list, size_t count, int64_t most, json_t *object)
{
    size_t used = 0;
    json_t *categories = json_array();
    qsort(list, count, sizeof *list, compare);
    while (used < count && list[used].samples > 0) used++;
    for (size_t i = 0; i < used && (most == 0 || i < MOST_CATEGORIES); i++)
        json_array_append_new(categories,
            json_pack("{s:o, s:I}", "name", inspect_text(list[i].name), "samples", (json_int_t)list[i].samples));
    const int failed = json_object_set_new(object, "categories", categories);
    return failed | json_object_set_new(object, "different", json_integer((json_int_t)used));
}

static int describe_categories(const struct column *column, const struct values *values, int64_t most, json_t *object)
{
    const size_t count = column->categories.count;
    struct category *list = memory_new(count + 1, sizeof *list);
    if (!list) return -1;
    for (size_t i = 0; i < count; i++) {
        const struct table_class *category = &column->categories.list[i];
        list[category->number].name = category->name;
    }
    for (int64_t row = 0; row < values->rows; row++) {
        const double value = value_at(values, row);
        if (value >= 0) list[(size_t)value].samples++;
    }
    const int failed = describe_list(list, count, most, object);
    free(list);
    return failed;
}

static int describe_boolean(const struct values *values, int64_t most, json_t *object)
{
    const int64_t yes = llround(values->sum);
    struct category list[] = { { "true", yes }, { "false", values->present - yes } };
    return describe_list(list, 2, most, object);
}

/* ------------------------------------------------------------------------------------------------- columns ---- */

/* What the network gets of an input. */
static void append_input(const struct column *column, struct text *text)
{
    const int width = column->kind->width(column);
    const bool number = column->kind->is_number;
    if (column->code)
        text_append(text, "embedded, %lld codes", (long long)column_codes(column));
    else if (column->kind == &column_category)
        text_append(text, "one-hot, %d inputs", width);
    else if (column->kind == &column_date)
        text_append(text, "year, month, day, weekday, hour, days");
    else
        text_append(text, "%s%s", column->kind == &column_boolean ? "0 or 1, " : "",
            column->plain ? "by --normalise" : "standardised");
    if (column->indicator)
        text_append(
            text, number || column->kind == &column_date ? "; missing: median + an input" : ", one for missing");
}

static json_t *becomes(const struct table *table, const struct column *column)
{
    struct text text = { 0 };
    switch (column->role) {
    case COLUMN_INPUT: append_input(column, &text); break;
    case COLUMN_NAME: text_append(&text, "names the rows"); break;
    case COLUMN_LEFT_OUT: text_append(&text, "left out: %s", column->reason ? column->reason : "not wanted"); break;
    case COLUMN_TARGET:
        if (table->by_class)
            text_append(&text, "the target: %zu class%s", table->classes.count, table->classes.count == 1 ? "" : "es");
        else
            text_append(&text, "the target: a number");
    }
    json_t *string = text.failed ? NULL : json_string(text.data);
    text_free(&text);
    return string;
}

static json_t *kind_of(const struct table *table, const struct column *column)
{
    if (column->role == COLUMN_TARGET && table->by_class) return json_string("class");
    if (column->role == COLUMN_NAME || column->role == COLUMN_LEFT_OUT) return json_null();
    return json_string(column->kind == &column_category ? "text" : column->kind->name);
}

static int describe_classes(const struct table *table, int64_t most, json_t *object)
{
    const size_t count = table->classes.count;
    struct category *list = memory_new(count + 1, sizeof *list);
    if (!list) return -1;
    for (size_t i = 0; i < count; i++) list[i].name = table->class_names[i];
    for (int64_t row = 0; row < table->collection.samples; row++) {
        const int32_t label = table->collection.labels[row];
        if (label >= 0 && (size_t)label < count) list[label].samples++;
    }
    const int failed = describe_list(list, count, most, object);
    free(list);
    return failed;
}

static int describe_values(const struct table *table, const struct column *column, int64_t most, json_t *object)
{
    const bool target = column->role == COLUMN_TARGET;
    if (target && table->by_class) return table->class_names ? describe_classes(table, most, object) : 0;
    if (!target && column->role != COLUMN_INPUT) return 0;
    const struct values values = values_of(table, column);
    int failed = json_object_set_new(object, "missing", json_integer((json_int_t)values.missing));
    if (!target) failed |= json_object_set_new(object, "inputs", json_integer(column->kind->width(column)));
    if (column->kind == &column_category) return failed | describe_categories(column, &values, most, object);
    if (column->kind == &column_boolean) return failed | describe_boolean(&values, most, object);
    return failed | describe_numbers(column, &values, most, object);
}

static json_t *describe_column(const struct table *table, const struct column *column, int64_t most)
{
    static const char *const roles[] = { "input", "target", "name", "left out" };
    json_t *object = json_object();
    int failed = json_object_set_new(object, "name", inspect_text(column->name));
    failed |= json_object_set_new(object, "role", json_string(roles[column->role]));
    failed |= json_object_set_new(object, "kind", kind_of(table, column));
    failed |= json_object_set_new(object, "becomes", becomes(table, column));
    if (!failed) failed = describe_values(table, column, most, object);
    if (!failed) return object;
    json_decref(object);
    return NULL;
}

static json_t *list_files(const struct table *table)
{
    json_t *list = json_array();
    for (int i = 0; i < table->file_count; i++) {
        const struct table_file *file = &table->files[i];
        const char separator[] = { file->separator, '\0' };
        const int64_t end = i + 1 < table->file_count ? table->files[i + 1].begins : table->collection.samples;
        json_array_append_new(list,
            json_pack("{s:o, s:I, s:b, s:s}", "path", inspect_text(file->path), "rows",
                (json_int_t)(end - file->begins), "header", file->header, "separator", separator));
    }
    return list;
}

int table_inspect(const struct collection *collection, int64_t most, json_t *object)
{
    const struct table *table = (const struct table *)collection;
    json_t *columns = json_array();
    int failed = 0;
    for (int i = 0; i < table->column_count; i++)
        failed |= json_array_append_new(columns, describe_column(table, &table->columns[i], most));
    failed |= json_object_set_new(object, "files", list_files(table));
    failed |= json_object_set_new(object, "target", inspect_text(table->columns[table->target].name));
    return failed | json_object_set_new(object, "columns", columns);
}
