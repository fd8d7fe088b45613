/* What an export must know of the training's data. */
#include "onnx/export/export.h"

#include "base/text.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static tutti_status damaged(void)
{
    return fail(TUTTI_FORMAT, "what is said of the data that the network was trained on is damaged");
}

const double *export_data_numbers(
    struct export *export, const json_t *object, const char *name, size_t count, bool deviations)
{
    const json_t *list = json_object_get(object, name);
    double *numbers = export_new(export, count, sizeof *numbers);
    bool good = json_array_size(list) == count;
    for (size_t i = 0; i < count && good && numbers; i++) {
        numbers[i] = json_number_value(json_array_get(list, i));
        good = isfinite(numbers[i]) && (!deviations || numbers[i] > 0);
    }
    if (!good) export_fail(export, damaged());
    return good ? numbers : NULL;
}

/* ------------------------------------------------------------------------------------------------- columns ---- */

static tutti_status refuse_column(const struct export_column *column, const char *kind)
{
    const char *what = !strcmp(kind, "date") ? "has dates or times, which nodes cannot read from texts exactly"
                                             : "is of a kind that nodes cannot prepare";
    return fail(TUTTI_UNSUPPORTED,
        "column '%s' %s: train without it (--drop), or export without preparation and give the network its inputs",
        text_printable(column->name).text, what);
}

/* The texts of categories; *bad becomes true where one is missing. */
static size_t count_categories(const json_t *object, bool *bad)
{
    const json_t *list = json_object_get(object, "categories");
    *bad |= !json_is_array(list);
    for (size_t i = 0; i < json_array_size(list); i++) *bad |= !json_is_string(json_array_get(list, i));
    return json_array_size(list);
}

static tutti_status read_column(const json_t *object, struct export_column *column)
{
    static const char *const numbers[] = { "number", "percent", "thousands", "comma" };
    const char *kind = json_string_value(json_object_get(object, "kind"));
    bool bad = false, number = false;
    *column = (struct export_column) { .object = object,
        .name = json_string_value(json_object_get(object, "name")),
        .indicator = json_is_true(json_object_get(object, "indicator")) };
    if (!kind || !column->name) return damaged();
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) number |= !strcmp(kind, numbers[i]);
    if (!strcmp(kind, "category")) {
        column->is = COLUMN_CATEGORY;
        column->code = json_is_true(json_object_get(object, "code"));
        column->categories = count_categories(object, &bad);
    } else if (!strcmp(kind, "boolean")) {
        column->is = COLUMN_TRUTH;
    } else if (!number) {
        return refuse_column(column, kind);
    }
    return bad ? damaged() : TUTTI_OK;
}

/* Weights of older versions have lists for columns that are numbers: makes the newer form of them. */
static json_t *from_lists(const json_t *object)
{
    const json_t *names = json_object_get(object, "columns"), *mean = json_object_get(object, "mean"),
                 *std = json_object_get(object, "std");
    json_t *columns = json_array();
    int failed = 0;
    for (size_t i = 0; i < json_array_size(names); i++) {
        json_t *middle = json_array_get(mean, i);
        failed |= json_array_append_new(columns,
            json_pack("{sO?s[O?]s[O?]sO?ssss}", "name", json_array_get(names, i), "mean", middle, "std",
                json_array_get(std, i), "median", middle, "role", "input", "kind", "number"));
    }
    if (!failed) return columns;
    json_decref(columns);
    return NULL;
}

static tutti_status read_columns(struct export *export)
{
    struct export_data *data = &export->data;
    json_t *columns = json_object_get(data->object, "prepared");
    if (!columns && json_object_set_new(data->object, "prepared", columns = from_lists(data->object)) != 0)
        return damaged();
    const size_t count = json_array_size(columns);
    data->columns = export_new(export, count, sizeof *data->columns);
    data->numbers = true;
    for (size_t i = 0; i < count && data->columns; i++) {
        const json_t *object = json_array_get(columns, i);
        const char *role = json_string_value(json_object_get(object, "role"));
        struct export_column *column = &data->columns[data->column_count];
        if (!role || strcmp(role, "input") != 0) continue;
        const tutti_status status = read_column(object, column);
        if (status != TUTTI_OK) return status;
        data->numbers = data->numbers && column->is == COLUMN_NUMBER;
        data->column_count++;
    }
    return export->status != TUTTI_OK ? export->status : data->column_count ? TUTTI_OK : damaged();
}

/* ------------------------------------------------------------------------------------------------- the text ---- */

tutti_status export_data_open(struct export *export, const char *text, bool prepares)
{
    if (!text && prepares)
        return fail(TUTTI_INVALID,
            "it is not known what the network was trained on, so that nothing can prepare its inputs: weights of "
            "`tutti train --save` record it");
    if (!text) return TUTTI_OK;
    export->data.text = text;
    export->data.prepares = prepares;
    export->data.object = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    export->data.kind = json_string_value(json_object_get(export->data.object, "kind"));
    if (!export->data.kind) return damaged();
    if (!prepares) return TUTTI_OK;
    return strcmp(export->data.kind, "table") ? TUTTI_OK : read_columns(export);
}

void export_data_close(struct export *export)
{
    json_decref(export->data.object);
}
