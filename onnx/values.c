/* The values that names of the file stand for: found by their names, with their numbers and shapes. */
#include "onnx/import.h"

#include <math.h>
#include <search.h>
#include <string.h>

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct onnx_value *)a)->name, ((const struct onnx_value *)b)->name);
}

struct onnx_value *import_find(const struct import *import, const char *name)
{
    const struct onnx_value key = { .name = name };
    void *found = tfind(&key, &import->names, compare_names);
    return found ? *(struct onnx_value **)found : NULL;
}

/* A name may stand for one value only. */
tutti_status import_add_name(struct import *import, const char *name, struct onnx_value **made)
{
    struct onnx_value *value = &import->values[import->value_count];
    *value = (struct onnx_value) {
        .name = name, .tensor = { -1 }, .statistic = { -1 }, .floats = { -1 }, .unbatched = { -1 }
    };
    value->batch = NO_BATCH;
    struct onnx_value **found = tsearch(value, &import->names, compare_names);
    if (!found) return fail(TUTTI_NO_MEMORY, "there is no memory for the file's %zu names", import->value_count);
    if (*found != value) return fail(TUTTI_FORMAT, "the name '%s' stands for two values", name);
    import->value_count++;
    *made = value;
    return TUTTI_OK;
}

tutti_status import_load(const struct import *import, struct onnx_value *value)
{
    if (value->array || !value->stored) return TUTTI_OK;
    return tensor_read(value->stored, import->folder, &value->array);
}

tutti_status value_shape(const struct import *import, const struct onnx_value *value, tutti_shape *shape)
{
    const size_t rank = value->stored ? value->stored->n_dims : value->array ? (size_t)value->array->rank : 0;
    if (value->tensor.id >= 0 && !value->stored && !value->array)
        return tutti_shape_of(import->network, value->tensor, shape);
    if (rank > TUTTI_MAX_RANK) return node_refuse("'%s' has more than %d axes", value->name, TUTTI_MAX_RANK);
    shape->rank = (int)rank;
    for (size_t i = 0; i < rank; i++) shape->sizes[i] = value->stored ? value->stored->dims[i] : value->array->sizes[i];
    return TUTTI_OK;
}

size_t stored_elements(const struct onnx_value *value)
{
    size_t count = 0;
    return value->stored && array_count((int)value->stored->n_dims, value->stored->dims, &count) ? count : 0;
}

bool value_is_integers(const struct onnx_value *value)
{
    return value->stored ? !onnx_type_is_float(value->stored->data_type) : value->array && value->array->integers;
}

bool value_is_finite(const struct import *import, struct onnx_value *value)
{
    const bool was_read = value->array != NULL;
    if (value->floats_are != NOT_EXAMINED) return value->floats_are == FINITE;
    if (import_load(import, value) != TUTTI_OK || !value->array || !value->array->floats) return true;
    bool finite = true;
    for (size_t i = 0; i < value->array->count && finite; i++) finite = isfinite(value->array->floats[i]);
    value->floats_are = finite ? FINITE : NOT_FINITE;
    if (!was_read) {
        array_free(value->array);
        value->array = NULL;
    }
    return finite;
}

bool value_trains(const struct import *import, struct onnx_value *value)
{
    struct onnx_value *of = value->view.of ? value->view.of : value;
    if (value->forced_parameter || value_is_integers(value)) return value->forced_parameter;
    return (value->initialiser || value->copied) && !of->constant && stored_elements(value) != 1 &&
        value_is_finite(import, of);
}

int64_t import_samples(const struct import *import)
{
    return import->fixed_batch ? import->fixed_batch : import->uses_placeholder_batch ? PLACEHOLDER_BATCH : 0;
}

tutti_status import_count_bytes(struct import *import, size_t bytes)
{
    enum { MOST = 1 << 30 };
    import->computed += bytes;
    if (import->computed <= MOST) return TUTTI_OK;
    return node_refuse("what is computed or copied when the file is read would take more than %d bytes", MOST);
}
