#include "tools/onnx_options.h"

#include "base/memory.h"
#include "base/numbers.h"
#include "base/status.h"
#include "formats/npz.h"
#include "tools/failure.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 256, MOST_NUMBERS = 64 };

struct onnx_read {
    const char *command;
    tutti_onnx_options options;
    char *texts[3 * MOST]; /* names and values, which the lists point to */
    void *values[TUTTI_ONNX_PORTS];
    int text_count;
    tutti_onnx_size sizes[MOST];
    tutti_onnx_axis axes[TUTTI_ONNX_PORTS];
    tutti_onnx_known known[TUTTI_ONNX_PORTS];
};

/* One NAME=VALUE of a text, up to the next name; `name` is NULL if it is missing. Both are stored in `read`. */
struct entry {
    const char *name, *value;
};

static tutti_status keep(struct onnx_read *read, const char *text, size_t length, const char **kept)
{
    if (read->text_count == sizeof read->texts / sizeof *read->texts)
        return fail(TUTTI_UNSUPPORTED, "there are more than %d sizes, axes and values", MOST);
    char *copy = memory_format("%.*s", (int)length, text);
    if (!copy) return TUTTI_NO_MEMORY;
    read->texts[read->text_count++] = copy;
    *kept = copy;
    return TUTTI_OK;
}

/* Pieces between commas without "=" belong to the value before them. */
static tutti_status next_entry(struct onnx_read *read, const char **rest, struct entry *entry)
{
    tutti_status status = TUTTI_OK;
    const char *text = *rest;
    size_t length = strcspn(text, ",");
    const char *equals = memchr(text, '=', length);
    *entry = (struct entry) { 0 };
    if (equals) TRY(keep(read, text, (size_t)(equals - text), &entry->name));
    const char *value = equals ? equals + 1 : text;
    length = strcspn(value, ",");
    while (equals && value[length] == ',') {
        const size_t more = strcspn(value + length + 1, ",");
        if (memchr(value + length + 1, '=', more)) break;
        length += 1 + more;
    }
    TRY(keep(read, value, length, &entry->value));
    *rest = value + length + (value[length] == ',');
done:
    return status;
}

/* Calls a function for each entry of the texts of an option. Returns an exit status. */
static int for_each(
    struct onnx_read *read, const struct texts *texts, int (*function)(struct onnx_read *, const struct entry *))
{
    for (int i = 0; i < texts->count; i++)
        for (const char *rest = texts->list[i]; *rest;) {
            struct entry entry;
            const tutti_status status = next_entry(read, &rest, &entry);
            if (status != TUTTI_OK) return work_failed(read->command, status, status_message());
            const int result = function(read, &entry);
            if (result != EXIT_DONE) return result;
        }
    return EXIT_DONE;
}

/* Returns whether the text is a whole number from `low` to `high`, and nothing else. */
static bool is_number(const char *text, long long low, long long high, long long *number)
{
    char *end = NULL;
    errno = 0;
    *number = strtoll(text, &end, 10);
    return end != text && !*end && !errno && *number >= low && *number <= high;
}

/* --------------------------------------------------------------------------------------------------- sizes ---- */

static tutti_status add_size(struct onnx_read *read, const char *name, int64_t size)
{
    if (read->options.size_count == MOST) return fail(TUTTI_UNSUPPORTED, "there are more than %d sizes", MOST);
    read->sizes[read->options.size_count++] = (tutti_onnx_size) { name, size };
    return TUTTI_OK;
}

static int read_size(struct onnx_read *read, const struct entry *entry)
{
    long long size;
    if (!entry->name || !*entry->name || !is_number(entry->value, 1, INT32_MAX, &size))
        return wrong_use(read->command, "--sizes needs NAME=N,NAME=N, such as sequence=128, not \"%s%s%s\"",
            entry->name ? entry->name : "", entry->name ? "=" : "", entry->value);
    const tutti_status status = add_size(read, entry->name, size);
    return status == TUTTI_OK ? EXIT_DONE : work_failed(read->command, status, status_message());
}

/* Adds a size "x.1" for each axis of each array; the library does not read those of the batch. */
static tutti_status read_arrays(struct onnx_read *read, const char *path)
{
    struct npz *file = NULL;
    tutti_status status = npz_open(path, &file);
    for (int i = 0; status == TUTTI_OK && i < npz_count(file) && i < TUTTI_ONNX_PORTS; i++) {
        const struct npz_array *array = npz_at(file, i);
        for (int k = 0; k < array->rank && status == TUTTI_OK && *array->name; k++) {
            char axis[16];
            const char *name = NULL;
            snprintf(axis, sizeof axis, ".%d", k);
            char *text = memory_format("%s%s", array->name, axis);
            status = text ? keep(read, text, strlen(text), &name) : TUTTI_NO_MEMORY;
            free(text);
            if (status == TUTTI_OK) status = add_size(read, name, array->sizes[k]);
        }
    }
    npz_close(file);
    return status;
}

/* --------------------------------------------------------------------------------------------------- axes ---- */

static int read_axis(struct onnx_read *read, const struct entry *entry)
{
    long long axis;
    if ((entry->name && !*entry->name) || !is_number(entry->value, 0, TUTTI_MAX_RANK - 1, &axis))
        return wrong_use(read->command,
            "--batch-axis needs N or NAME=N, from 0 to %d, such as 1 or mask=0, not \"%s%s%s\"", TUTTI_MAX_RANK - 1,
            entry->name ? entry->name : "", entry->name ? "=" : "", entry->value);
    if (!entry->name) {
        read->options.batch_axis = (int)axis;
        return EXIT_DONE;
    }
    if (read->options.batch_axis_count == TUTTI_ONNX_PORTS)
        return wrong_use(read->command, "--batch-axis has more than %d inputs", TUTTI_ONNX_PORTS);
    read->axes[read->options.batch_axis_count++] = (tutti_onnx_axis) { entry->name, (int)axis };
    return EXIT_DONE;
}

/* -------------------------------------------------------------------------------------------- known values ---- */

/* Reads numbers between commas, as integers if all are. Returns false if it is something else. */
static bool read_numbers(const char *text, tutti_onnx_known *known, void **values)
{
    int64_t integers[MOST_NUMBERS];
    float floats[MOST_NUMBERS];
    bool whole = true;
    int count = 0;
    for (const char *rest = text;; rest++) {
        char *end = NULL, *of_float = NULL;
        if (count == MOST_NUMBERS) return false;
        errno = 0;
        integers[count] = strtoll(rest, &end, 10);
        floats[count] = (float)number_read(rest, &of_float);
        whole &= end == of_float && !errno;
        if (of_float == rest || (*of_float && *of_float != ',')) return false;
        count++;
        rest = of_float;
        if (!*rest) break;
    }
    const size_t size = whole ? sizeof *integers : sizeof *floats;
    *values = memory_new((size_t)count, size);
    if (!*values) return false;
    memcpy(*values, whole ? (void *)integers : (void *)floats, (size_t)count * size);
    known->dtype = whole ? TUTTI_DTYPE_I64 : TUTTI_DTYPE_F32;
    known->shape = (tutti_shape) { .rank = count > 1, .sizes = { count } };
    return true;
}

/* Elements as int64 or float32. */
static tutti_status convert(const char *path, const struct npz_array *array, tutti_onnx_known *known, void **values)
{
    if (!array) return fail(TUTTI_FORMAT, "%s has no array", path);
    if (array->rank > TUTTI_MAX_RANK) return fail(TUTTI_UNSUPPORTED, "%s: the array has %d axes", path, array->rank);
    const size_t count = array->bytes / npz_type_size(array->type);
    const bool floats = array->type == NPZ_F16 || array->type == NPZ_F32 || array->type == NPZ_F64;
    *values = memory_new(count + 1, floats ? sizeof(float) : sizeof(int64_t));
    if (!*values) return TUTTI_NO_MEMORY;
    for (size_t i = 0; i < count; i++) {
        if (floats)
            ((float *)*values)[i] = (float)npz_number(array, i);
        else
            ((int64_t *)*values)[i] = npz_integer(array, i);
    }
    known->dtype = floats ? TUTTI_DTYPE_F32 : TUTTI_DTYPE_I64;
    known->shape.rank = array->rank;
    memcpy(known->shape.sizes, array->sizes, (size_t)array->rank * sizeof *array->sizes);
    return TUTTI_OK;
}

static int read_known(struct onnx_read *read, const struct entry *entry)
{
    static const char end[] = ".npy";
    if (read->options.known_count == TUTTI_ONNX_PORTS)
        return wrong_use(read->command, "--known has more than %d inputs", TUTTI_ONNX_PORTS);
    tutti_onnx_known *known = &read->known[read->options.known_count];
    void **values = &read->values[read->options.known_count++];
    const char *value = entry->value;
    const size_t length = strlen(value);
    known->name = entry->name;
    if (entry->name && length >= sizeof end && !strcmp(value + length + 1 - sizeof end, end)) {
        struct npz *file = NULL;
        tutti_status status = npz_open(value, &file);
        if (status == TUTTI_OK) status = convert(value, npz_at(file, 0), known, values);
        npz_close(file);
        if (status != TUTTI_OK) return work_failed(read->command, status, status_message());
    } else if (!entry->name || !*entry->name || !read_numbers(value, known, values)) {
        return wrong_use(read->command,
            "--known needs NAME=VALUE, a number, at most %d numbers as 2,3, or a .npy file, not \"%s%s%s\"",
            MOST_NUMBERS, entry->name ? entry->name : "", entry->name ? "=" : "", value);
    }
    known->values = *values;
    return EXIT_DONE;
}

/* ----------------------------------------------------------------------------------------------------- all ---- */

bool onnx_options_knows(const struct onnx_options *options, const char *name)
{
    const size_t length = strlen(name);
    for (int i = 0; i < options->known.count; i++)
        for (const char *at = options->known.list[i]; at; at = strchr(at, ',')) {
            at += *at == ',';
            if (!strncmp(at, name, length) && at[length] == '=') return true;
        }
    return false;
}

const char *onnx_options_given(const struct onnx_options *options)
{
    if (options->import.head) return "head";
    if (options->sizes.count) return "sizes";
    if (options->batch_axes.count) return "batch-axis";
    if (options->import.whole) return "whole";
    if (options->known.count) return "known";
    return options->import.train_constants ? "train-constants" : NULL;
}

static int read_all(struct onnx_read *read, const struct onnx_options *options, const char *arrays)
{
    if (options->import.whole && options->batch_axes.count)
        return wrong_use(
            read->command, "--whole and --batch-axis do not go together: with --whole no axis is the batch");
    int result = for_each(read, &options->sizes, read_size);
    if (result == EXIT_DONE) result = for_each(read, &options->batch_axes, read_axis);
    if (result == EXIT_DONE) result = for_each(read, &options->known, read_known);
    if (result != EXIT_DONE || !arrays) return result;
    const tutti_status status = read_arrays(read, arrays);
    return status == TUTTI_OK ? EXIT_DONE : work_failed(read->command, status, status_message());
}

int onnx_options_read(
    const char *command, const struct onnx_options *options, const char *arrays, struct onnx_read **read)
{
    struct onnx_read *made = *read = memory_new(1, sizeof *made);
    if (!made) return work_failed(command, TUTTI_NO_MEMORY, status_message());
    made->command = command;
    made->options = options->import;
    made->options.sizes = made->sizes;
    made->options.batch_axes = made->axes;
    made->options.known = made->known;
    const int result = read_all(made, options, arrays);
    if (result == EXIT_DONE) return EXIT_DONE;
    onnx_options_free(made);
    *read = NULL;
    return result;
}

const tutti_onnx_options *onnx_options_of(const struct onnx_read *read)
{
    return &read->options;
}

void onnx_options_free(struct onnx_read *read)
{
    if (!read) return;
    for (int i = 0; i < read->text_count; i++) free(read->texts[i]);
    for (int i = 0; i < TUTTI_ONNX_PORTS; i++) free(read->values[i]);
    free(read);
}
