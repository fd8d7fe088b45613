/* Columns of texts: a slot for each of them, one for those that the training has not seen, and one for missing ones if
 * the training had some. Each slot is an input, or the number of the slot is the only one: a code. */
#include "data/column.h"

#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static unsigned recognise_category(const char *text)
{
    return strlen(text) <= COLUMN_TEXT;
}

/* The text as UTF-8 without control characters: if it is not, its bytes are taken as Latin-1. Whole numbers have one
 * name. */
static const char *printable(const char *text, char buffer[2 * COLUMN_TEXT + 1], bool *controls)
{
    bool good = text_is_utf8(text);
    for (const char *at = text; *at && good; at++) good = (unsigned char)*at >= ' ' && *at != 0x7f;
    if (good) return table_class_name(text, buffer);
    const bool utf8 = text_is_utf8(text);
    size_t used = 0;
    for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
        if (*at >= 0x80 && !utf8) {
            buffer[used++] = (char)(0xc0 | *at >> 6);
            buffer[used++] = (char)(0x80 | (*at & 0x3f));
        } else {
            const bool control = *at < ' ' || *at == 0x7f;
            buffer[used++] = control ? ' ' : (char)*at;
            *controls |= control;
        }
    }
    buffer[used] = '\0';
    return buffer;
}

/* The value is the number of the category; -1: the training has not seen it. */
static tutti_status read_category(struct column *column, const char *text, double *value)
{
    char buffer[2 * COLUMN_TEXT + 1];
    bool controls = false;
    int32_t number = -1;
    if (strlen(text) > COLUMN_TEXT) {
        *value = -1;
        return column->known || column->bounded ? TUTTI_OK : TUTTI_FORMAT;
    }
    text = printable(text, buffer, &controls);
    column->controls |= controls && !column->known;
    tutti_status status = TUTTI_OK;
    if (column->known)
        number = table_class_find(&column->categories, text);
    else if (column->categories.count < COLUMN_CATEGORIES)
        status = table_class_of(&column->categories, text, &number);
    else if ((number = table_class_find(&column->categories, text)) < 0 && !column->bounded)
        return TUTTI_FORMAT;
    *value = number;
    return status;
}

/* Categories of the training part get inputs, in the order in which they are sorted: that of their names. */
static tutti_status fit_category(struct column *column, const struct column_cells *cells)
{
    const size_t count = column->categories.count;
    column->slots = memory_new(count + 1, sizeof *column->slots);
    if (!column->slots) return TUTTI_NO_MEMORY;
    for (int64_t row = 0; row < cells->rows; row++) {
        const double value = cells->first[(size_t)row * cells->stride];
        if (cells->part[row] != TUTTI_DATA_TRAIN) continue;
        if (isnan(value))
            column->indicator = true;
        else if (value >= 0)
            column->slots[(int32_t)value] = 1;
    }
    column->slot_count = 1;
    for (size_t i = 0; i < count; i++) {
        int32_t *slot = &column->slots[column->categories.list[i].number];
        if (*slot) *slot = column->slot_count++;
    }
    column->code = column->codes_above > 0 && column->slot_count - 1 > column->codes_above;
    return TUTTI_OK;
}

int64_t column_codes(const struct column *column)
{
    return column->slot_count + column->indicator;
}

static int width_category(const struct column *column)
{
    return column->code ? 1 : column->slot_count + column->indicator;
}

static void write_category(const struct column *column, double value, float *features)
{
    int slot = column->indicator ? column->slot_count : 0;
    if (!isnan(value)) slot = value < 0 ? 0 : column->slots[(int32_t)value];
    if (column->code) {
        *features = (float)slot;
        return;
    }
    memset(features, 0, (size_t)width_category(column) * sizeof *features);
    features[slot] = 1;
}

static int describe_category(const struct column *column, json_t *object)
{
    json_t *list = json_array();
    int failed = 0;
    for (size_t i = 0; i < column->categories.count; i++) /* sorted by name, as the slots are */
        if (column->slots[column->categories.list[i].number])
            failed |= json_array_append_new(list, json_string(column->categories.list[i].name));
    failed |= json_object_set_new(object, "categories", list);
    if (column->controls) failed |= json_object_set_new(object, "controls", json_true());
    if (column->code) failed |= json_object_set_new(object, "code", json_true());
    return failed | json_object_set_new(object, "indicator", json_boolean(column->indicator));
}

static bool restore_category(struct column *column, const json_t *object)
{
    const json_t *list = json_object_get(object, "categories");
    const size_t count = json_array_size(list);
    if (!json_is_array(list) || count > COLUMN_CATEGORIES) return false;
    column->slots = memory_new(count + 1, sizeof *column->slots);
    if (!column->slots) return false;
    for (size_t i = 0; i < count; i++) {
        const char *name = json_string_value(json_array_get(list, i));
        int32_t number;
        if (!name || (i > 0 && strcmp(name, json_string_value(json_array_get(list, i - 1))) <= 0)) return false;
        if (table_class_of(&column->categories, name, &number) != TUTTI_OK) return false;
        column->slots[i] = (int32_t)i + 1;
    }
    column->slot_count = (int)count + 1;
    column->indicator = json_is_true(json_object_get(object, "indicator"));
    column->controls = json_is_true(json_object_get(object, "controls"));
    column->code = json_is_true(json_object_get(object, "code"));
    return true;
}

const struct column_kind column_category = { .name = "category",
    .noun = "a short text",
    .recognise = recognise_category,
    .read = read_category,
    .fit = fit_category,
    .width = width_category,
    .write = write_category,
    .describe = describe_category,
    .restore = restore_category };
