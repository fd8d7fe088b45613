/* Facts of data as a page: histograms of columns, bars of classes, samples as pictures. */
#include "tools/inspect.h"

#include "base/status.h"
#include "tools/report/page.h"
#include "tools/report/report.h"

#include <stdlib.h>
#include <string.h>

enum {
    SHOWN_COLUMNS = 200,
    SHOWN_CLASSES = 40,
    ROW = 18,
    PLOT_WIDTH = 160,
    PLOT_HEIGHT = 36,
    BAR_WIDTH = 176,
    VALUES = 64
};

static int set_text(json_t *object, const char *key, struct text *text)
{
    const int failed = text->failed ? -1 : json_object_set_new(object, key, json_string(text->data ? text->data : ""));
    text_free(text);
    return failed;
}

static json_int_t count_at(const json_t *list, size_t at, const char *key)
{
    const json_t *one = json_array_get(list, at);
    return json_integer_value(key ? json_object_get(one, key) : one);
}

static json_int_t largest_of(const json_t *list, const char *key)
{
    json_int_t largest = 1;
    for (size_t i = 0; i < json_array_size(list); i++)
        if (count_at(list, i, key) > largest) largest = count_at(list, i, key);
    return largest;
}

/* Bars from the bottom, as places of rectangles. */
static json_t *plot(const json_t *counts, const char *key, size_t most)
{
    const size_t count = json_array_size(counts) < most ? json_array_size(counts) : most;
    const double largest = (double)largest_of(counts, key),
                 pitch = (double)PLOT_WIDTH / (double)(count > 4 ? count : 4);
    json_t *bars = json_array();
    for (size_t i = 0; i < count; i++) {
        const double samples = (double)count_at(counts, i, key), height = samples * PLOT_HEIGHT / largest;
        const double shown = samples > 0 && height < 1 ? 1 : height;
        json_array_append_new(bars,
            json_pack("{s:f, s:f, s:f, s:f}", "x", (double)i * pitch, "y", PLOT_HEIGHT - shown, "width", pitch * 0.9,
                "height", shown));
    }
    return bars;
}

/* ------------------------------------------------------------------------------------------------- columns ---- */

static json_t *column_row(const json_t *column)
{
    enum { SHOWN_CATEGORIES = 16 };
    struct text values = { 0 };
    const json_t *histogram = json_object_get(column, "histogram"), *categories = json_object_get(column, "categories");
    json_t *row = json_object();
    int failed = json_object_set(row, "name", json_object_get(column, "name"));
    failed |= json_object_set(row, "kind", json_object_get(column, "kind"));
    failed |= json_object_set(row, "becomes", json_object_get(column, "becomes"));
    if (json_integer_value(json_object_get(column, "missing")) > 0)
        failed |= json_object_set(row, "missing", json_object_get(column, "missing"));
    inspect_append_values(&values, column, VALUES);
    failed |= set_text(row, "values", &values);
    if (histogram)
        failed |= json_object_set_new(row, "plot", json_pack("{s:o}", "bars", plot(histogram, NULL, SIZE_MAX)));
    if (json_array_size(categories) > 0)
        failed |=
            json_object_set_new(row, "plot", json_pack("{s:o}", "bars", plot(categories, "samples", SHOWN_CATEGORIES)));
    if (!failed) return row;
    json_decref(row);
    return NULL;
}

static int add_columns(json_t *page, const json_t *columns, bool all)
{
    const size_t count = json_array_size(columns), shown = all || count <= SHOWN_COLUMNS ? count : SHOWN_COLUMNS;
    json_t *list = json_array();
    int failed = 0;
    for (size_t i = 0; i < shown; i++) failed |= json_array_append_new(list, column_row(json_array_get(columns, i)));
    json_t *object = json_pack("{s:o}", "list", list);
    if (count > shown) failed |= json_object_set_new(object, "more", json_integer((json_int_t)(count - shown)));
    return failed | json_object_set_new(page, "columns", object);
}

/* ------------------------------------------------------------------------------------------------- classes ---- */

static int add_classes(json_t *page, const json_t *classes, bool all)
{
    const size_t count = json_array_size(classes), shown = all || count <= SHOWN_CLASSES ? count : SHOWN_CLASSES;
    const double largest = (double)largest_of(classes, "samples");
    json_t *bars = json_array();
    int failed = 0;
    if (!json_object_get(json_array_get(classes, 0), "samples")) {
        json_decref(bars);
        return 0;
    }
    for (size_t i = 0; i < shown; i++) {
        json_t *bar = json_copy(json_array_get(classes, i));
        failed |= json_object_set_new(bar, "top", json_integer((json_int_t)i * ROW));
        failed |=
            json_object_set_new(bar, "width", json_real((double)count_at(classes, i, "samples") * BAR_WIDTH / largest));
        failed |= json_array_append_new(bars, bar);
    }
    json_t *object = json_pack("{s:o, s:I}", "bars", bars, "height", (json_int_t)shown * ROW);
    if (count > shown) failed |= json_object_set_new(object, "more", json_integer((json_int_t)(count - shown)));
    return failed | json_object_set_new(page, "class_bars", object);
}

/* ------------------------------------------------------------------------------------------------- summary ---- */

static int add_lines(json_t *page, const json_t *facts, bool all)
{
    json_t *lines = json_array();
    const json_t *notes = json_object_get(facts, "notes");
    const char *name = "";
    int failed = 0;
    for (int i = 0; name; i++) {
        struct text text = { 0 };
        name = inspect_line(i, facts, all, &text);
        if (!name || !text.data) continue;
        json_t *line = json_pack("{s:s}", "label", name);
        failed |= set_text(line, "text", &text);
        failed |= json_array_append_new(lines, line);
    }
    for (size_t i = 0; i < json_array_size(notes); i++)
        failed |=
            json_array_append_new(lines, json_pack("{s:s, s:O}", "label", "note", "text", json_array_get(notes, i)));
    return failed | json_object_set_new(page, "lines", lines);
}

/* Samples as the network gets them, as on the page of a training. */
static tutti_status add_samples(json_t *page, const struct data *data)
{
    const tutti_data_info *info = &data->info;
    size_t bytes = sizeof(float);
    json_t *samples = NULL;
    for (int i = 0; i < info->target_shape.rank; i++) bytes *= (size_t)info->target_shape.sizes[i];
    if (data->train.count == 0) return TUTTI_OK;
    const struct report report = { .facts = { .classes = info->classes,
                                       .class_names = info->class_names,
                                       .train = &data->train.source,
                                       .shape = info->shape,
                                       .dtype = info->dtype,
                                       .target_dtype = info->target_dtype,
                                       .target_bytes = bytes,
                                       .opened = data->opened,
                                       .part = TUTTI_DATA_TRAIN } };
    const tutti_status status = report_samples(&report, &samples);
    if (samples) json_object_update(page, samples);
    json_decref(samples);
    return status;
}

tutti_status inspect_page(const json_t *facts, const struct data *data, const char *path, bool all)
{
    const json_t *columns = json_object_get(facts, "columns"), *classes = json_object_get(facts, "classes");
    json_t *page = json_object(), *inspected = json_object();
    struct text title = { 0 };
    inspect_append_title(&title, facts);
    int failed = json_object_set(page, "title", json_object_get(facts, "path"));
    failed |= set_text(inspected, "what", &title);
    failed |= add_lines(inspected, facts, all);
    if (json_object_get(facts, "next")) failed |= json_object_set(inspected, "next", json_object_get(facts, "next"));
    if (columns) failed |= add_columns(inspected, columns, all);
    if (json_array_size(classes) > 0) failed |= add_classes(inspected, classes, all);
    failed |= json_object_set_new(page, "inspected", inspected);
    const tutti_status status =
        failed ? fail(TUTTI_NO_MEMORY, "there is no memory for the page") : add_samples(page, data);
    if (status == TUTTI_OK) return page_write(page, path);
    json_decref(page);
    return status;
}
