/* Tables of numbers: each row is a sample, one column the target. */
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
#include <sys/stat.h>

static void free_table(struct collection *collection)
{
    struct table *table = (struct table *)collection;
    for (int i = 0; i < table->column_count; i++) free(table->columns[i]);
    for (size_t i = 0; i < table->classes.count; i++) free(table->classes.list[i].name);
    for (int i = 0; i < table->files.count; i++) free(table->files.names[i]);
    free(table->columns);
    free(table->fields);
    free(table->classes.list);
    free(table->class_names);
    free(table->values);
    free(table->ready);
    free(table->targets);
    free(table->numbers);
    free(table->ready_targets);
    standards_free(&table->of_inputs);
    standards_free(&table->of_targets);
    free(collection->parts);
    free(collection->labels);
    free(table);
}

static tutti_status read_row(
    struct collection *collection, int64_t index, const struct draw *draw, void *sample, void *target)
{
    const struct table *table = (const struct table *)collection;
    const size_t inputs = (size_t)table->inputs;
    memcpy(sample, table->ready + (size_t)index * inputs, inputs * sizeof *table->ready);
    memcpy(target, table->by_class ? (const void *)&collection->labels[index] : &table->ready_targets[index], 4);
    return draw->training ? augment_noise(&table->augment, draw, inputs, sample) : TUTTI_OK;
}

static void name_row(const struct collection *collection, int64_t index, char *text, size_t size)
{
    const struct table *table = (const struct table *)collection;
    int file = table->files.count - 1;
    while (file > 0 && index < table->files.begins[file]) file--;
    if (table->files.count > 1)
        snprintf(text, size, "%s row %" PRId64, table->files.names[file], table->numbers[index]);
    else
        snprintf(text, size, "row %" PRId64, table->numbers[index]);
}

/* ------------------------------------------------------------------------------------------------ standards ---- */

static tutti_status measure(
    const struct table *table, const signed char *part, const double *values, struct standards *standards)
{
    const size_t count = (size_t)standards->count;
    struct statistics *columns = memory_new(count, sizeof *columns);
    if (!columns) return TUTTI_NO_MEMORY;
    for (int64_t row = 0; row < table->collection.samples; row++)
        for (size_t i = 0; part[row] == TUTTI_DATA_TRAIN && i < count; i++)
            statistics_add(&columns[i], values[(size_t)row * count + i]);
    standards_end(standards, columns);
    free(columns);
    return TUTTI_OK;
}

/* Standardises the numbers in place: no float is written over a number that was not read yet. The numbers become
 * NULL. */
static tutti_status standardise(
    const struct table *table, const signed char *part, struct standards *standards, double **values, float **ready)
{
    const size_t columns = (size_t)standards->count, count = (size_t)table->collection.samples * columns;
    char *memory = (char *)*values;
    const tutti_status status = standards->measure ? measure(table, part, *values, standards) : TUTTI_OK;
    if (status != TUTTI_OK) return status;
    for (size_t i = 0; i < count; i++) {
        double value;
        memcpy(&value, memory + i * sizeof value, sizeof value);
        const float number = standards_apply(standards, (int)(i % columns), value);
        memcpy(memory + i * sizeof number, &number, sizeof number);
    }
    *values = NULL;
    void *smaller = realloc(memory, count * sizeof(float));
    *ready = smaller ? smaller : (void *)memory;
    return TUTTI_OK;
}

static tutti_status fit(struct collection *collection, const signed char *part)
{
    struct table *table = (struct table *)collection;
    const tutti_status status = standardise(table, part, &table->of_inputs, &table->values, &table->ready);
    if (status != TUTTI_OK || table->by_class) return status;
    return standardise(table, part, &table->of_targets, &table->targets, &table->ready_targets);
}

static int describe(const struct collection *collection, json_t *object)
{
    const struct table *table = (const struct table *)collection;
    json_t *columns = json_array(), *mean = json_array(), *std = json_array();
    int failed = 0;
    for (int i = 0; i < table->column_count; i++)
        if (i != table->target && i != table->skipped)
            failed |= json_array_append_new(columns, json_string(table->columns[i]));
    for (int i = 0; i < table->inputs; i++) {
        failed |= json_array_append_new(mean, json_real(table->of_inputs.mean[i]));
        failed |= json_array_append_new(std, json_real(table->of_inputs.std[i]));
    }
    failed |= json_object_set_new(object, "columns", columns);
    failed |= json_object_set_new(object, "mean", mean);
    failed |= json_object_set_new(object, "std", std);
    const char *target = table->columns[table->target];
    json_t *text = table->by_class ? json_sprintf("%s:class", target) : json_string(target);
    return failed | json_object_set_new(object, "target", text);
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
        const double value = table->targets[row];
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
    const char *name = table->columns[table->target];
    text_append(&line,
        "column '%s' has %d different whole number%s, which are predicted as numbers: --target '%s:class' "
        "makes them classes",
        name, count, count == 1 ? "" : "s", name);
    if (line.data) options->note(options->user, line.data);
    text_free(&line);
}

/* Called after the last file. */
static tutti_status finish(struct table *table, const tutti_data_options *options)
{
    struct collection *collection = &table->collection;
    tutti_data_info *info = &collection->info;
    tutti_status status = TUTTI_OK;
    TRY(standards_read(&table->of_inputs, options->normalise, table->inputs));
    if (table->by_class) {
        TRY(name_classes(table));
    } else {
        free(collection->labels);
        collection->labels = NULL;
        TRY(standards_read_targets(&table->of_targets, options, 1, info));
        report_target(table, options);
    }
    TRY(augment_parse(options->augment, AUGMENT_TABLES, &table->augment));
    collection->augments = AUGMENT_TABLES;
    info->kind = "table";
    info->dtype = TUTTI_DTYPE_F32;
    info->target_dtype = table->by_class ? TUTTI_DTYPE_I32 : TUTTI_DTYPE_F32;
    info->shape = (tutti_shape) { .rank = 1, .sizes = { table->inputs } };
    if (!table->by_class) info->target_shape = (tutti_shape) { .rank = 1, .sizes = { 1 } };
    info->damaged = table->damaged;
    collection->read = read_row;
    collection->name = name_row;
    collection->fit = fit;
    collection->describe = describe;
done:
    return status;
}

/* A folder may have train.csv, and val.csv and test.csv next to it. */
static tutti_status read_folder(struct table *table, const char *folder, const tutti_data_options *options)
{
    static const char *const names[] = { "train", "val", "test" };
    static const char *const ends[] = { "csv", "tsv" };
    char *paths[3] = { NULL };
    tutti_status status = TUTTI_OK;
    for (size_t i = 0; i < 6; i++) {
        struct stat found;
        char *path = memory_format("%s/%s.%s", folder, names[i / 2], ends[i % 2]);
        if (!path) FAIL(TUTTI_NO_MEMORY, "no memory for a path");
        if (!paths[i / 2] && stat(path, &found) == 0 && S_ISREG(found.st_mode))
            paths[i / 2] = path;
        else
            free(path);
    }
    if (paths[0]) TRY(table_read_description(table, options->description));
    for (int i = 0; i < 3 && paths[0]; i++)
        if (paths[i]) TRY(table_read(table, paths[i], paths[1] || paths[2] ? i : PART_OPEN, options));
done:
    for (int i = 0; i < 3; i++) free(paths[i]);
    return status;
}

tutti_status table_open(const char *path, const tutti_data_options *options, struct collection **made)
{
    struct stat found;
    tutti_status status = TUTTI_OK;
    *made = NULL;
    if (stat(path, &found) != 0 || !(S_ISDIR(found.st_mode) || csv_has_name(path))) return TUTTI_OK;
    struct table *table = memory_new(1, sizeof *table);
    if (!table) return TUTTI_NO_MEMORY;
    table->collection.free = free_table;
    if (!S_ISDIR(found.st_mode)) TRY(table_read_description(table, options->description));
    if (S_ISDIR(found.st_mode))
        TRY(read_folder(table, path, options));
    else
        TRY(table_read(table, path, PART_OPEN, options));
    if (table->files.count == 0) goto done;
    TRY(finish(table, options));
    *made = &table->collection;
    return TUTTI_OK;
done:
    free_table(&table->collection);
    return status;
}
