/* The arrays of node tests, of any type. */
#include "tests/onnx/conform.h"

#include "base/bf16.h"
#include "base/half.h"
#include "base/memory.h"

#include <math.h>
#include <string.h>

/* Tolerances of the onnx package for all its node tests. */
#define RELATIVE 1e-3
#define ABSOLUTE 1e-7

int64_t array_elements(const struct safetensors_tensor *array)
{
    return (int64_t)(array->bytes / safetensors_type_size(array->type));
}

bool array_is_float(const struct safetensors_tensor *array)
{
    switch (array->type) {
    case SAFETENSORS_F16:
    case SAFETENSORS_BF16:
    case SAFETENSORS_F32:
    case SAFETENSORS_F64: return true;
    default: return false;
    }
}

#define READ(type, convert)          \
    {                                \
        type number;                 \
        memcpy(&number, from, size); \
        return (double)convert;      \
    }

double array_at(const struct safetensors_tensor *array, int64_t element)
{
    const size_t size = safetensors_type_size(array->type);
    const char *from = (const char *)array->data + (size_t)element * size;
    switch (array->type) {
    case SAFETENSORS_BOOL: READ(uint8_t, (number != 0))
    case SAFETENSORS_U8: READ(uint8_t, number)
    case SAFETENSORS_I8: READ(int8_t, number)
    case SAFETENSORS_U16: READ(uint16_t, number)
    case SAFETENSORS_I16: READ(int16_t, number)
    case SAFETENSORS_F16: READ(uint16_t, half_to_float(number))
    case SAFETENSORS_BF16: READ(uint16_t, bf16_to_float(number))
    case SAFETENSORS_U32: READ(uint32_t, number)
    case SAFETENSORS_I32: READ(int32_t, number)
    case SAFETENSORS_F32: READ(float, number)
    case SAFETENSORS_U64: READ(uint64_t, number)
    case SAFETENSORS_I64: READ(int64_t, number)
    case SAFETENSORS_F64: READ(double, number)
    case SAFETENSORS_OTHER: break;
    }
    return NAN;
}

static void write_number(double number, tutti_dtype dtype, void *to)
{
    switch (dtype) {
    case TUTTI_DTYPE_I32: *(int32_t *)to = (int32_t)number; break;
    case TUTTI_DTYPE_I64: *(int64_t *)to = (int64_t)number; break;
    case TUTTI_DTYPE_U8: *(uint8_t *)to = (uint8_t)number; break;
    case TUTTI_DTYPE_BOOL: *(uint8_t *)to = number != 0; break;
    default: *(float *)to = (float)number;
    }
}

void *array_as(const struct safetensors_tensor *array, tutti_dtype dtype, double scale)
{
    const double factor = array_is_float(array) ? scale : 1;
    const int64_t count = array_elements(array);
    const size_t bytes = tutti_dtype_bytes(dtype);
    char *made = memory_new((size_t)count + 1, bytes);
    for (int64_t i = 0; made && i < count; i++)
        write_number(factor * array_at(array, i), dtype, made + (size_t)i * bytes);
    return made;
}

/* A float as the type of the file: halves are rounded, truths are not 0. */
static double as_type(float number, enum safetensors_type type)
{
    if (type == SAFETENSORS_F16) return (double)half_to_float(half_from_float(number));
    if (type == SAFETENSORS_BF16) return (double)bf16_to_float(bf16_from_float(number));
    if (type == SAFETENSORS_BOOL) return number != 0;
    return (double)number;
}

bool array_equals(const struct safetensors_tensor *wanted, const float *got, double *difference)
{
    bool equal = true;
    for (int64_t i = 0; i < array_elements(wanted); i++) {
        const double a = as_type(got[i], wanted->type), b = array_at(wanted, i);
        if (a == b || (isnan(a) && isnan(b))) continue;
        const double apart = fabs(a - b), limit = wanted->type == SAFETENSORS_BOOL ? 0 : ABSOLUTE + RELATIVE * fabs(b);
        if (!(apart <= limit)) equal = false;
        *difference = apart <= *difference ? *difference : isnan(apart) ? INFINITY : apart;
    }
    return equal;
}
