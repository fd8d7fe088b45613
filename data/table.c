/* Tables: each row is a sample, one column the target. */
#include "data/table.h"

#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void free_table(struct collection *collection)
{
    struct table *table = (struct table *)collection;
    for (int i = 0; i < table->column_count; i++) column_free(&table->columns[i]);
    for (int i = 0; i < table->file_count; i++) free(table->files[i].path);
    table_classes_free(&table->classes);
    names_free(&table->rows.names);
    text_free(&table->reading.left_out);
    free(table->columns);
    free(table->class_names);
    free(table->rows.values);
    free(table->rows.targets);
    free(table->rows.numbers);
    free(table->rows.name_at);
    standards_free(&table->of_targets);
    free(collection->parts);
    free(collection->labels);
    free(table);
}

static tutti_status read_row(
    struct collection *collection, int64_t index, const struct draw *draw, void *sample, void *target)
{
    const struct table *table = (const struct table *)collection;
    const double *values = table->rows.values + (size_t)index * (size_t)table->cells;
    float *features = sample;
    for (int i = 0; i < table->column_count; i++) {
        const struct column *column = &table->columns[i];
        if (column->role == COLUMN_INPUT) column->kind->write(column, values[column->cell], features + column->at);
    }
    const float number = table->by_class ? 0 : standards_apply(&table->of_targets, 0, table->rows.targets[index]);
    memcpy(
        target, table->by_class ? (const void *)&collection->labels[index] : &number, sizeof number); /* of 4 bytes */
    return draw->training ? augment_noise(&table->augment, draw, (size_t)table->width, features) : TUTTI_OK;
}

static const char *file_of_row(const struct collection *collection, int64_t index)
{
    const struct table *table = (const struct table *)collection;
    int file = table->file_count - 1;
    while (file > 0 && index < table->files[file].begins) file--;
    return table->files[file].path;
}

static void name_row(const struct collection *collection, int64_t index, char *text, size_t size)
{
    const struct table *table = (const struct table *)collection;
    const char *path = file_of_row(collection, index), *slash = strrchr(path, '/');
    const bool several = table->file_count > 1, named = table->rows.names.used > 0;
    snprintf(text, size, "%s%srow %" PRId64 "%s%s", several ? (slash ? slash + 1 : path) : "", several ? " " : "",
        table->rows.numbers[index], named ? " " : "",
        named ? text_printable(names_at(&table->rows.names, table->rows.name_at[index])).text : "");
}

/* ----------------------------------------------------------------------------------------------------- fit ---- */

/* Places the features of the inputs that are codes, or are not, one after the other. */
static tutti_status place_inputs(struct table *table, bool codes)
{
    tutti_data_info *info = &table->collection.info;
    for (int i = 0; i < table->column_count; i++) {
        struct column *column = &table->columns[i];
        if (column->role != COLUMN_INPUT || column->code != codes) continue;
        if (codes && info->code_count == COLUMN_CODES)
            return fail(TUTTI_FORMAT, "more than %d columns are codes: the description is damaged", COLUMN_CODES);
        if (codes) table->codes[info->code_count++] = column_codes(column);
        column->at = table->width;
        table->width += column->kind->width(column);
        if (table->width > CSV_MAX_COLUMNS)
            return fail(TUTTI_FORMAT,
                "the columns make more than %d inputs, '%s' among them: leave columns of many "
                "different texts out by --drop",
                CSV_MAX_COLUMNS, column->name);
    }
    return TUTTI_OK;
}

static tutti_status place_features(struct table *table)
{
    tutti_data_info *info = &table->collection.info;
    table->width = info->code_count = 0;
    info->codes = table->codes;
    tutti_status status = place_inputs(table, false);
    if (status == TUTTI_OK) status = place_inputs(table, true);
    info->shape = (tutti_shape) { .rank = 1, .sizes = { table->width } };
    return status;
}

static void measure_targets(struct table *table, const signed char *part)
{
    struct statistics measured = { 0 };
    for (int64_t row = 0; row < table->collection.samples; row++)
        if (part[row] == TUTTI_DATA_TRAIN) statistics_add(&measured, table->rows.targets[row]);
    standards_end(&table->of_targets, &measured);
}

/* Cells of some columns in the rows that train, one column after the other. */
enum { AT_ONCE = 8 };
struct columns {
    double *cells[AT_ONCE];
    signed char *part; /* TUTTI_DATA_TRAIN for each row */
    int64_t rows;
};

static void copy_columns(const struct table *table, const signed char *part, int first, struct columns *columns)
{
    const int count = table->cells - first < AT_ONCE ? table->cells - first : AT_ONCE;
    const double *row = table->rows.values + first;
    int64_t used = 0;
    for (int64_t i = 0; i < table->collection.samples; i++, row += table->cells) {
        if (part[i] != TUTTI_DATA_TRAIN) continue;
        for (int k = 0; k < count; k++) columns->cells[k][used] = row[k];
        used++;
    }
    columns->rows = used;
}

/* Cells are numbered in the order of columns. To read rows once for some columns at a time is faster than once for each
 * of them, which lie far apart in memory. */
static tutti_status fit_columns(struct table *table, const signed char *part, struct columns *columns)
{
    int at = 0;
    for (int first = 0; first < table->cells; first += AT_ONCE) {
        copy_columns(table, part, first, columns);
        for (; at < table->column_count; at++) {
            struct column *column = &table->columns[at];
            if (column->role != COLUMN_INPUT || column->known) continue;
            if (column->cell >= first + AT_ONCE) break;
            const struct column_cells cells = { columns->cells[column->cell - first], 1, columns->rows, columns->part };
            const tutti_status status = column->kind->fit(column, &cells);
            if (status != TUTTI_OK) return status;
        }
    }
    return TUTTI_OK;
}

static tutti_status fit(struct collection *collection, const signed char *part)
{
    enum { BETWEEN = 24 }; /* columns a power of two apart would share lines of the cache */
    struct table *table = (struct table *)collection;
    const size_t rows = (size_t)collection->samples + BETWEEN;
    struct columns columns = { .part = memory_new(rows, sizeof *columns.part) };
    double *cells = memory_new(rows, AT_ONCE * sizeof *cells);
    tutti_status status = columns.part && cells ? TUTTI_OK : TUTTI_NO_MEMORY;
    for (size_t i = 0; status == TUTTI_OK && i < AT_ONCE; i++) columns.cells[i] = cells + i * rows;
    if (status == TUTTI_OK) status = fit_columns(table, part, &columns);
    free(columns.part);
    free(cells);
    if (status != TUTTI_OK) return status;
    if (!table->by_class && table->of_targets.measure) measure_targets(table, part);
    return place_features(table);
}

/* -------------------------------------------------------------------------------------------------- opening ---- */

static tutti_status name_classes(struct table *table)
{
    struct collection *collection = &table->collection;
    const tutti_status status = table_rank_classes(&table->classes, collection->labels, (size_t)collection->samples);
    if (status != TUTTI_OK) return status;
    table->class_names = memory_new(table->classes.count, sizeof *table->class_names);
    if (!table->class_names) return TUTTI_NO_MEMORY;
    for (size_t i = 0; i < table->classes.count; i++) table->class_names[i] = table->classes.list[i].name;
    collection->info.classes = (int)table->classes.count;
    collection->info.class_names = table->class_names;
    return TUTTI_OK;
}

enum { FEW = 20 };

/* Finds the different values of the targets; -1: they are many, or not whole numbers. */
static int count_values(const struct table *table, double values[FEW])
{
    int count = 0, at;
    for (int64_t row = 0; row < table->collection.samples; row++) {
        const double value = table->rows.targets[row];
        for (at = 0; at < count && values[at] != value; at++) continue;
        if (at < count) continue;
        if (count == FEW || value != floor(value)) return -1;
        values[count++] = value;
    }
    return count;
}

/* Few whole numbers may be meant as classes: tells that they are not taken so. */
static void report_target(const struct table *table, const tutti_data_options *options)
{
    double values[FEW];
    const int count = count_values(table, values);
    if (count < 0 || table->described || !options->note || 2 * (int64_t)count > table->collection.samples) return;
    struct text line = { 0 };
    const char *name = table->columns[table->target].name;
    text_append(&line,
        "column '%s' has %d different whole number%s, which are predicted as numbers: --target '%s:class' "
        "makes them classes",
        name, count, count == 1 ? "" : "s", name);
    if (line.data) options->note(options->user, line.data);
    text_free(&line);
}

/* Takes means and deviations of the inputs that are numbers, where the caller gives them; "none": 0 and 1 for all. */
static tutti_status read_normalise(struct table *table, const char *text)
{
    struct standards given = { 0 };
    int count = 0;
    for (int i = 0; i < table->column_count; i++)
        count += table->columns[i].role == COLUMN_INPUT && table->columns[i].kind->is_number;
    if (count == 0 && text && !strcmp(text, "none")) return TUTTI_OK;
    const tutti_status status = standards_read(&given, text, count);
    for (int i = 0, used = 0; i < table->column_count && status == TUTTI_OK && !given.measure; i++) {
        struct column *column = &table->columns[i];
        if (column->role != COLUMN_INPUT || !column->kind->is_number) continue;
        column->plain = true;
        column->mean[0] = given.mean[used];
        column->std[0] = given.std[used++];
    }
    standards_free(&given);
    return status;
}

/* Noise and mixed samples would make other codes of codes. */
static tutti_status choose_codes(struct table *table, const tutti_data_options *options)
{
    int left = options->augment ? 0 : COLUMN_CODES;
    for (int i = 0; i < table->column_count; i++) {
        struct column *column = &table->columns[i];
        if (column->role != COLUMN_INPUT || column->kind != &column_category) continue;
        if (column->code && options->augment)
            return fail(TUTTI_INVALID,
                "--augment %s: the training has the texts of column '%s' as codes, which cannot be changed or mixed: "
                "leave --augment out",
                options->augment, column->name);
        if (!table->described && left > 0 && options->codes_above > 0) {
            column->codes_above = options->codes_above;
            left--;
        }
    }
    return TUTTI_OK;
}

/* Called after the last file. */
static tutti_status finish(struct table *table, const tutti_data_options *options)
{
    struct collection *collection = &table->collection;
    tutti_data_info *info = &collection->info;
    tutti_status status = TUTTI_OK;
    if (!table->described) TRY(read_normalise(table, options->normalise));
    if (table->by_class && !table->unlabelled) {
        TRY(name_classes(table));
    } else if (!table->by_class) {
        free(collection->labels);
        collection->labels = NULL;
        TRY(standards_read_targets(&table->of_targets, options, 1, info));
        report_target(table, options);
    }
    TRY(augment_parse(options->augment, AUGMENT_TABLES, &table->augment));
    collection->augments = AUGMENT_TABLES;
    TRY(choose_codes(table, options));
    info->kind = "table";
    info->dtype = TUTTI_DTYPE_F32;
    info->target_dtype = table->by_class ? TUTTI_DTYPE_I32 : TUTTI_DTYPE_F32;
    if (!table->by_class) info->target_shape = (tutti_shape) { .rank = 1, .sizes = { 1 } };
    info->damaged = table->damaged;
    info->column_names = table->files[table->file_count - 1].header;
    collection->rows = table->rows.numbers;
    collection->read = read_row;
    collection->name = name_row;
    collection->file = file_of_row;
    collection->fit = fit;
    collection->describe = table_describe;
    collection->inspect = table_inspect;
    if (table->described) TRY(place_features(table));
done:
    return status;
}

/* Kinds are chosen by the first rows; by all of them if one is found that does not fit. */
static tutti_status read_table(struct table *table)
{
    tutti_status status = TUTTI_OK;
    table->reading.no_targets = table->described && table->reading.options->ignore_targets;
    if (table->described && table->reading.options->without_targets && !table->reading.no_targets)
        TRY(table_look_for_targets(table));
    if (table->described) return table_read(table);
    TRY(table_choose_kinds(table, false));
    status = table_read(table);
    if (table->reading.misfit) {
        table->reading.misfit = false;
        TRY(table_choose_kinds(table, true));
        status = table_read(table);
    }
    if (status == TUTTI_OK) status = table_check_inputs(table);
done:
    return status;
}

tutti_status table_open(const char *path, const tutti_data_options *options, struct collection **made)
{
    tutti_status status = TUTTI_OK;
    *made = NULL;
    struct table *table = memory_new(1, sizeof *table);
    if (!table) return TUTTI_NO_MEMORY;
    table->collection.free = free_table;
    table->reading.options = options;
    TRY(table_find_files(table, path));
    if (table->file_count == 0) goto done;
    TRY(table_restore(table, options->description));
    TRY(read_table(table));
    TRY(finish(table, options));
    table->reading.options = NULL; /* the caller's, until here */
    *made = &table->collection;
    return TUTTI_OK;
done:
    free_table(&table->collection);
    return status;
}
