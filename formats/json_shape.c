#include "formats/json_shape.h"

#include <jansson.h>

bool json_shape_read(const json_t *list, tutti_shape *shape)
{
    const size_t rank = json_array_size(list);
    if (rank > TUTTI_MAX_RANK) return false;
    for (size_t i = 0; i < rank; i++) {
        const json_int_t size = json_integer_value(json_array_get(list, i));
        if (size < 1 || size > INT32_MAX) return false;
        shape->sizes[i] = size;
    }
    shape->rank = (int)rank;
    return true;
}
