#include "data/arrays.h"

#include "base/half.h"

#include <math.h>
#include <string.h>

/* Elements may be unaligned. */
#define CONVERT(number, type, expression)                                        \
    for (size_t i = 0; i < count; i++) {                                         \
        type value;                                                              \
        memcpy(&value, (const char *)elements + i * sizeof value, sizeof value); \
        numbers[i] = (number)(expression);                                       \
    }                                                                            \
    break
#define CONVERT_ALL(number)                                                \
    switch (type) {                                                        \
    case NPZ_BOOL: CONVERT(number, uint8_t, value != 0);                   \
    case NPZ_U8: CONVERT(number, uint8_t, (number)value / 255);            \
    case NPZ_I8: CONVERT(number, int8_t, value);                           \
    case NPZ_I16: CONVERT(number, int16_t, value);                         \
    case NPZ_U16: CONVERT(number, uint16_t, value);                        \
    case NPZ_F16: CONVERT(number, uint16_t, (number)half_to_float(value)); \
    case NPZ_I32: CONVERT(number, int32_t, value);                         \
    case NPZ_U32: CONVERT(number, uint32_t, value);                        \
    case NPZ_F32: CONVERT(number, float, value);                           \
    case NPZ_I64: CONVERT(number, int64_t, value);                         \
    case NPZ_U64: CONVERT(number, uint64_t, value);                        \
    case NPZ_F64: CONVERT(number, double, value);                          \
    }

bool array_to_floats(enum npz_type type, const void *elements, size_t count, float *numbers)
{
    bool finite = true;
    CONVERT_ALL(float)
    for (size_t i = 0; i < count; i++) finite = finite && isfinite(numbers[i]);
    return finite;
}

bool array_to_doubles(enum npz_type type, const void *elements, size_t count, double *numbers)
{
    bool finite = true;
    CONVERT_ALL(double)
    for (size_t i = 0; i < count; i++) finite = finite && isfinite(numbers[i]);
    return finite;
}

bool array_to_labels(enum npz_type type, const void *elements, size_t count, int32_t most, int32_t *labels)
{
    const size_t size = npz_type_size(type);
    const bool is_signed = type == NPZ_I8 || type == NPZ_I16 || type == NPZ_I32 || type == NPZ_I64;
    for (size_t i = 0; i < count; i++) {
        uint64_t value = 0; /* little endian, as npy.c checks */
        memcpy(&value, (const char *)elements + i * size, size);
        if (is_signed && value >> (8 * size - 1)) return false;
        if (value > (uint64_t)most) return false;
        labels[i] = (int32_t)value;
    }
    return true;
}
