/* What must be known of a table's columns to prepare a new row, as JSON and back. */
#include "data/table.h"

#include "base/memory.h"
#include "base/status.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const roles[] = { "input", "target", "name", "left out" };
static const char class_suffix[] = ":class";

static json_t *describe_column(const struct column *column)
{
    json_t *object = json_object();
    int failed = json_object_set_new(object, "name", json_string(column->name));
    failed |= json_object_set_new(object, "role", json_string(roles[column->role]));
    if (column->role == COLUMN_INPUT || column->role == COLUMN_TARGET) {
        failed |= json_object_set_new(object, "kind", json_string(column->kind->name));
        failed |= json_object_set_new(object, "format", json_integer((json_int_t)column->format));
    }
    if (column->role == COLUMN_INPUT) failed |= column->kind->describe(column, object);
    if (!failed) return object;
    json_decref(object);
    return NULL;
}

/* Lists of means and deviations, as versions before this one read them: of columns that are plain numbers. */
static int describe_plain(const struct table *table, json_t *object)
{
    json_t *mean = json_array(), *std = json_array();
    int failed = 0;
    bool plain = true;
    for (int i = 0; i < table->column_count && plain; i++) {
        const struct column *column = &table->columns[i];
        if (column->role != COLUMN_INPUT) continue;
        plain = column->kind == &column_number && !column->indicator;
        failed |= json_array_append_new(mean, json_real(column->mean[0]));
        failed |= json_array_append_new(std, json_real(column->std[0]));
    }
    if (plain) {
        failed |= json_object_set(object, "mean", mean);
        failed |= json_object_set(object, "std", std);
    }
    json_decref(mean);
    json_decref(std);
    return failed;
}

int table_describe(const struct collection *collection, json_t *object)
{
    const struct table *table = (const struct table *)collection;
    json_t *names = json_array(), *columns = json_array();
    int failed = 0;
    for (int i = 0; i < table->column_count; i++) {
        if (table->columns[i].role == COLUMN_INPUT)
            failed |= json_array_append_new(names, json_string(table->columns[i].name));
        failed |= json_array_append_new(columns, describe_column(&table->columns[i]));
    }
    failed |= json_object_set_new(object, "columns", names);
    failed |= json_object_set_new(object, "prepared", columns);
    failed |= describe_plain(table, object);
    const char *target = table->columns[table->target].name;
    json_t *text = table->by_class ? json_sprintf("%s%s", target, class_suffix) : json_string(target);
    return failed | json_object_set_new(object, "target", text);
}

/* ------------------------------------------------------------------------------------------------- restore ---- */

static tutti_status damaged(void)
{
    return fail(TUTTI_FORMAT, "the description of the table that the network was trained on is damaged");
}

static tutti_status add_column(struct table *table, const char *name, enum column_role role)
{
    struct column *column = &table->columns[table->column_count];
    if (!name || table_check_text("", name) != TUTTI_OK) return damaged();
    column->name = memory_copy_text(name);
    if (!column->name) return TUTTI_NO_MEMORY;
    column->role = role;
    column->kind = &column_number;
    column->format = 1;
    column->known = true;
    if (role == COLUMN_TARGET) table->target = table->column_count;
    if (role == COLUMN_INPUT) column->cell = table->cells++;
    table->column_count++;
    return TUTTI_OK;
}

static tutti_status restore_column(struct table *table, const json_t *object)
{
    const char *role = json_string_value(json_object_get(object, "role"));
    const char *kind = json_string_value(json_object_get(object, "kind"));
    int number = 0;
    while (role && number < (int)(sizeof roles / sizeof *roles) && strcmp(role, roles[number])) number++;
    if (!role || number == (int)(sizeof roles / sizeof *roles)) return damaged();
    const tutti_status status =
        add_column(table, json_string_value(json_object_get(object, "name")), (enum column_role)number);
    if (status != TUTTI_OK || number == COLUMN_NAME || number == COLUMN_LEFT_OUT) return status;
    struct column *column = &table->columns[table->column_count - 1];
    const json_int_t format = json_integer_value(json_object_get(object, "format"));
    column->kind = kind ? column_kind_named(kind) : NULL;
    column->format = (unsigned)format;
    if (!column->kind || format < 1 || format > UINT8_MAX) return damaged();
    return number == COLUMN_TARGET || column->kind->restore(column, object) ? TUTTI_OK : damaged();
}

/* Reads the record of an older version: inputs in the order of the training, which are numbers, then the target. */
static tutti_status restore_names(struct table *table, const json_t *object)
{
    const json_t *columns = json_object_get(object, "columns");
    const json_t *mean = json_object_get(object, "mean"), *std = json_object_get(object, "std");
    const size_t inputs = json_array_size(columns);
    const char *target = json_string_value(json_object_get(object, "target"));
    if (!target || json_array_size(mean) != inputs || json_array_size(std) != inputs) return damaged();
    for (size_t i = 0; i < inputs; i++) {
        const tutti_status status = add_column(table, json_string_value(json_array_get(columns, i)), COLUMN_INPUT);
        if (status != TUTTI_OK) return status;
        struct column *column = &table->columns[i];
        column->mean[0] = column->median = json_number_value(json_array_get(mean, i));
        column->std[0] = json_number_value(json_array_get(std, i));
        if (!isfinite(column->mean[0]) || !isfinite(column->std[0]) || !(column->std[0] > 0)) return damaged();
    }
    /* The name of a column of classes is followed by ":class". */
    const size_t all = strlen(target), end = sizeof class_suffix - 1;
    const bool suffixed = table->by_class && all > end && !strcmp(target + all - end, class_suffix);
    char *name = memory_format("%.*s", (int)(suffixed ? all - end : all), target);
    if (!name) return TUTTI_NO_MEMORY;
    const tutti_status status = add_column(table, name, COLUMN_TARGET);
    free(name);
    return status;
}

static tutti_status restore(struct table *table, const json_t *object)
{
    const json_t *prepared = json_object_get(object, "prepared");
    const size_t count = prepared ? json_array_size(prepared) : json_array_size(json_object_get(object, "columns")) + 1;
    tutti_status status = TUTTI_OK;
    if (count < 2 || count > CSV_MAX_COLUMNS) return damaged();
    table->columns = memory_new(count, sizeof *table->columns);
    if (!table->columns) return TUTTI_NO_MEMORY;
    table->described = true;
    table->whole = prepared != NULL;
    table->target = -1;
    table->by_class = json_array_size(json_object_get(object, "classes")) > 0;
    for (size_t i = 0; prepared && i < count && status == TUTTI_OK; i++)
        status = restore_column(table, json_array_get(prepared, i));
    if (!prepared) status = restore_names(table, object);
    int targets = 0;
    for (int i = 0; i < table->column_count; i++) targets += table->columns[i].role == COLUMN_TARGET;
    if (status != TUTTI_OK) return status;
    if (targets != 1 || table->cells < 1) return damaged();
    return table->by_class || table->columns[table->target].kind->is_number ? TUTTI_OK : damaged();
}

/* Whether a list of an option says again what a column was in the training. */
static bool agrees(const struct column *column, enum column_role role, bool listed)
{
    if (role == COLUMN_INPUT) /* --only: some of its columns may have turned out to say nothing */
        return listed ? column->role == COLUMN_INPUT || column->role == COLUMN_LEFT_OUT : column->role != COLUMN_INPUT;
    return !listed || column->role == role;
}

/* A list of columns may be given again, as when the command of the training is repeated, but not another one. `role`:
 * what the option makes of columns. */
static tutti_status check_list(const struct table *table, const char *option, const char *list, enum column_role role)
{
    const int count = table->column_count;
    tutti_status status = TUTTI_NO_MEMORY;
    if (!list) return TUTTI_OK;
    char **names = memory_new((size_t)count, sizeof *names);
    bool *listed = memory_new((size_t)count, sizeof *listed);
    if (!names || !listed) goto done;
    for (int i = 0; i < count; i++) names[i] = table->columns[i].name;
    status = table_find_listed("the training", names, count, list, listed);
    if (status == TUTTI_INVALID && !table->whole && role != COLUMN_INPUT) status = TUTTI_OK; /* it knows inputs only */
    if (status != TUTTI_OK) goto done;
    for (int i = 0; i < count; i++)
        if (!agrees(&table->columns[i], role, listed[i]))
            FAIL(TUTTI_INVALID,
                "--%s %s: columns are those of the training, where '%s' was %s: leave --%s out, or give it as then",
                option, list, names[i],
                table->columns[i].role == COLUMN_INPUT        ? "an input"
                    : table->columns[i].role == COLUMN_TARGET ? "the target"
                    : table->columns[i].role == COLUMN_NAME   ? "the name of rows"
                                                              : "left out",
                option);
done:
    free(names);
    free(listed);
    return status;
}

/* Whether inputs that are numbers stayed as they are. */
static bool was_none(const struct table *table)
{
    for (int i = 0; i < table->column_count; i++) {
        const struct column *column = &table->columns[i];
        if (column->role != COLUMN_INPUT || !column->kind->is_number) continue;
        if (column->mean[0] != 0 || column->std[0] != 1) return false;
    }
    return true;
}

/* What the columns become is known: options may say it again. */
static tutti_status check_options(const struct table *table)
{
    const tutti_data_options *options = table->reading.options;
    tutti_status status = TUTTI_OK;
    TRY(check_list(table, "drop", options->drop, COLUMN_LEFT_OUT));
    TRY(check_list(table, "only", options->only, COLUMN_INPUT));
    TRY(check_list(table, "id", options->row_names, COLUMN_NAME));
    if (options->normalise && strcmp(options->normalise, was_none(table) ? "none" : "measured"))
        FAIL(TUTTI_INVALID,
            "--normalise %s: columns are normalised as in the training, where it was %s: leave --normalise out",
            options->normalise, was_none(table) ? "none" : "measured");
done:
    return status;
}

tutti_status table_restore(struct table *table, const char *description)
{
    if (!description) return TUTTI_OK;
    json_t *object = json_loads(description, 0, NULL);
    const char *kind = json_string_value(json_object_get(object, "kind"));
    tutti_status status = TUTTI_OK;
    if (kind && !strcmp(kind, "table")) {
        status = restore(table, object);
        if (status == TUTTI_OK) status = check_options(table);
    } else if (kind)
        status = fail(TUTTI_MISMATCH, "%s: the network was trained on %s, but these data are a table: it takes %s only",
            table->files[0].path, text_printable(kind).text, text_printable(kind).text);
    json_decref(object);
    return status;
}
