/* Classes of arrays by name: labels that are texts, or whole numbers other than 0, 1, 2 and so on. */
#include "data/arrays.h"

#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CHARACTERS = 1000, TEXT_ROOM = 4 * MOST_CHARACTERS + 1, AT_ONCE = 4096 };

struct label {
    int64_t number; /* 0 for texts */
    char text[TEXT_ROOM];
};

void array_classes_free(struct array_classes *classes)
{
    for (size_t i = 0; i < classes->count; i++) free(classes->list[i].name);
    free(classes->list);
    free(classes->names);
    *classes = (struct array_classes) { 0 };
}

/* ------------------------------------------------------------------------------------------------- labels ---- */

/* Appends a character as UTF-8; false if there is no such character. */
static bool append_character(char *text, size_t *used, uint32_t character)
{
    if (character > 0x10ffff || (character >= 0xd800 && character < 0xe000)) return false;
    const int more = character < 0x80 ? 0 : character < 0x800 ? 1 : character < 0x10000 ? 2 : 3;
    static const unsigned char begins[] = { 0, 0xc0, 0xe0, 0xf0 };
    text[(*used)++] = (char)(begins[more] | character >> 6 * more);
    for (int i = more - 1; i >= 0; i--) text[(*used)++] = (char)(0x80 | (character >> 6 * i & 0x3f));
    return true;
}

/* A text of NumPy: `count` bytes or characters, the last of which may be zeros. */
static bool read_text(const struct npz_array *array, const char *element, char *text)
{
    size_t used = 0, count = (size_t)array->text;
    bool good = true;
    for (size_t i = 0; i < count && good; i++) {
        uint32_t character = (unsigned char)element[i];
        if (array->type == NPZ_U32) memcpy(&character, element + i * sizeof character, sizeof character);
        if (character == 0) break;
        if (array->type == NPZ_U32)
            good = append_character(text, &used, character);
        else
            text[used++] = (char)character;
    }
    text[used] = '\0';
    for (const char *at = text; *at && good; at += text_character(at)) good = text_character(at) > 0;
    return good && used > 0;
}

static int64_t read_number(enum npz_type type, const char *element)
{
    const size_t size = npz_type_size(type);
    const bool is_signed = type == NPZ_I8 || type == NPZ_I16 || type == NPZ_I32 || type == NPZ_I64;
    uint64_t value = 0; /* little endian, as npy.c checks */
    memcpy(&value, element, size);
    if (is_signed && size < sizeof value && value >> (8 * size - 1)) value |= ~(uint64_t)0 << 8 * size;
    return (int64_t)value;
}

/* Reads a label; false if it cannot be the name of a class. */
static bool read_label(const struct npz_array *array, const char *element, struct label *label)
{
    label->number = 0;
    if (array->text > 0) return read_text(array, element, label->text);
    label->number = read_number(array->type, element);
    snprintf(label->text, sizeof label->text, "%" PRId64, label->number);
    return array->type != NPZ_U64 || label->number >= 0;
}

/* ------------------------------------------------------------------------------------------------ classes ---- */

/* Returns the position of the label in the sorted list, or where it belongs. */
static size_t find(const struct array_classes *classes, const struct label *label, bool *found)
{
    size_t low = 0, high = classes->count;
    *found = false;
    while (low < high && !*found) {
        const size_t middle = (low + high) / 2;
        const struct array_class *other = &classes->list[middle];
        const int order = label->number != other->number ? (label->number < other->number ? -1 : 1)
                                                         : strcmp(label->text, other->name);
        *found = order == 0;
        if (order < 0)
            high = middle;
        else
            low = order == 0 ? middle : middle + 1;
    }
    return low;
}

static tutti_status insert(struct array_classes *classes, size_t at, const struct label *label)
{
    const tutti_status status =
        memory_grow((void **)&classes->list, &classes->room, classes->count + 1, sizeof *classes->list);
    char *name = status == TUTTI_OK ? memory_copy_text(label->text) : NULL;
    if (!name) return TUTTI_NO_MEMORY;
    memmove(classes->list + at + 1, classes->list + at, (classes->count - at) * sizeof *classes->list);
    classes->list[at] = (struct array_class) { label->number, name };
    classes->count++;
    return TUTTI_OK;
}

/* Collects the names of these rows, or, if `labels` is not NULL, sets their classes. */
static tutti_status read_rows(struct array_classes *classes, const struct array_rows *from, int64_t first,
    int64_t count, char *memory, struct label *label, int32_t *labels)
{
    const size_t row = from->array->bytes / (size_t)from->array->sizes[0];
    tutti_status status = array_rows_read(from, first, count, memory);
    for (int64_t i = 0; status == TUTTI_OK && i < count; i++) {
        bool found;
        if (!read_label(from->array, memory + (size_t)i * row, label))
            return fail(TUTTI_FORMAT,
                "'%s' has a label that cannot be a class in row %" PRId64 ": it is empty, not UTF-8, or too large",
                from->name, first + i);
        const size_t at = find(classes, label, &found);
        if (labels)
            labels[first + i] = (int32_t)at;
        else if (!found && classes->count == ARRAYS_CLASSES)
            return fail(TUTTI_FORMAT, "'%s' has more than %d different labels: save numbers to predict as floats",
                from->name, ARRAYS_CLASSES);
        else if (!found)
            status = insert(classes, at, label);
    }
    return status;
}

static tutti_status read_slot(struct array_classes *classes, const struct array_rows *from, int32_t *labels)
{
    const size_t row = from->array->bytes / (size_t)from->array->sizes[0];
    tutti_status status = TUTTI_OK;
    if (from->array->text > MOST_CHARACTERS)
        return fail(TUTTI_FORMAT, "'%s' has texts of %d characters: names of classes have at most %d", from->name,
            from->array->text, MOST_CHARACTERS);
    char *memory = memory_new(AT_ONCE, row);
    struct label *label = memory_new(1, sizeof *label);
    if (!memory || !label) status = TUTTI_NO_MEMORY;
    const int64_t samples = from->array->sizes[0];
    for (int64_t first = 0; first < samples && status == TUTTI_OK; first += AT_ONCE)
        status = read_rows(
            classes, from, first, samples - first < AT_ONCE ? samples - first : AT_ONCE, memory, label, labels);
    free(memory);
    free(label);
    return status;
}

tutti_status array_classes_read(
    struct array_classes *classes, const struct array_rows *from, const int64_t *begins, int32_t *labels)
{
    tutti_status status = TUTTI_OK;
    for (int pass = 0; pass < 2; pass++)
        for (int slot = 0; slot < ARRAYS_SLOTS && status == TUTTI_OK; slot++)
            if (from[slot].name) status = read_slot(classes, &from[slot], pass == 0 ? NULL : labels + begins[slot]);
    if (status != TUTTI_OK) return status;
    classes->names = memory_new(classes->count, sizeof *classes->names);
    if (!classes->names) return TUTTI_NO_MEMORY;
    for (size_t i = 0; i < classes->count; i++) classes->names[i] = classes->list[i].name;
    return TUTTI_OK;
}
