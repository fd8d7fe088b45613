#include "onnx/known.h"

#include "base/bf16.h"
#include "base/half.h"
#include "base/memory.h"

#include <math.h>

tutti_status known_input(const struct onnx_node *node, size_t position, struct known *x)
{
    *x = (struct known) { .array = NULL };
    const tutti_status status = node_array(node, position, &x->array);
    if (status == TUTTI_OK) x->type = node_input(node, position)->type;
    return status;
}

/* ---------------------------------------------------------------------------------------------------- elements ---- */

struct number known_at(const struct known *x, size_t i)
{
    struct number number = { 0 };
    if (x->array->floats) {
        number.real = x->array->doubles ? x->array->doubles[i] : (double)x->array->floats[i];
        return number;
    }
    number.integer = x->array->integers[i];
    number.real = x->type == ONNX_UINT64 ? (double)(uint64_t)number.integer.number : (double)number.integer.number;
    return number;
}

/* Wraps a number to an integer of so many bits. */
static int64_t wrapped(int64_t number, int bits, bool has_sign)
{
    const uint64_t all = UINT64_C(1) << bits, rest = (uint64_t)number & (all - 1);
    return has_sign && rest >= all / 2 ? (int64_t)rest - (int64_t)all : (int64_t)rest;
}

static int64_t integer_of_type(int64_t number, int type)
{
    switch (type) {
    case ONNX_BOOL: return number != 0;
    case ONNX_UINT4: return wrapped(number, 4, false);
    case ONNX_INT4: return wrapped(number, 4, true);
    case ONNX_UINT8: return wrapped(number, 8, false);
    case ONNX_INT8: return wrapped(number, 8, true);
    case ONNX_UINT16: return wrapped(number, 16, false);
    case ONNX_INT16: return wrapped(number, 16, true);
    case ONNX_UINT32: return wrapped(number, 32, false);
    case ONNX_INT32: return wrapped(number, 32, true);
    default: return number;
    }
}

static float float_of_type(double real, int type)
{
    const float rounded = (float)real;
    if (type == ONNX_FLOAT16) return half_to_float(half_from_float(rounded));
    if (type == ONNX_BFLOAT16) return bf16_to_float(bf16_from_float(rounded));
    return rounded;
}

void known_put(struct array *y, int type, size_t i, struct number number)
{
    if (y->doubles) y->doubles[i] = number.real;
    if (y->floats) y->floats[i] = float_of_type(number.real, type);
    if (!y->integers) return;
    if (number.integer.batches == 0) number.integer.number = integer_of_type(number.integer.number, type);
    y->integers[i] = number.integer;
}

/* Truncates a number. ONNX does not define the result for numbers out of the type's range: this is the result of x86
 * processors and onnxruntime. */
static int64_t integer_of(double real, int type)
{
    const bool wide = type == ONNX_INT64 || type == ONNX_UINT64 || type == ONNX_UINT32;
    const double limit = wide ? 0x1p63 : 0x1p31;
    if (type == ONNX_UINT64 && real >= 0x1p63 && real < 0x1p64) return (int64_t)(uint64_t)real;
    if (real > -limit - (wide ? 0 : 1) && real < limit) return (int64_t)real;
    return wide ? INT64_MIN : INT32_MIN;
}

bool known_cast(struct number x, int from, int to, struct number *y)
{
    *y = x;
    if (to == ONNX_BOOL) {
        y->integer = (struct symbolic_integer) { onnx_type_is_float(from) ? x.real != 0
                                                                          : x.integer.number || x.integer.batches };
    } else if (onnx_type_is_float(to)) {
        if (x.integer.batches) return false;
        /* Not through a double, which would round twice. */
        if (to != ONNX_DOUBLE && !onnx_type_is_float(from) && from != ONNX_UINT64)
            y->real = (double)(float)x.integer.number;
        if (to != ONNX_DOUBLE && from == ONNX_UINT64) y->real = (double)(float)(uint64_t)x.integer.number;
    } else if (onnx_type_is_float(from)) {
        y->integer = (struct symbolic_integer) { integer_of(x.real, to) };
    }
    return true;
}

/* ------------------------------------------------------------------------------------------------------ arrays ---- */

static bool fits(int rank, const int64_t *sizes)
{
    size_t count;
    if (rank <= ARRAY_MAX_RANK && array_count(rank, sizes, &count) && count <= KNOWN_MOST) return true;
    (void)node_refuse("its result would have more than %d numbers or %d axes", KNOWN_MOST, ARRAY_MAX_RANK);
    return false;
}

struct array *known_new(int rank, const int64_t *sizes, int type)
{
    return fits(rank, sizes) ? array_new_typed(rank, sizes, type) : NULL;
}

struct array *known_like(int rank, const int64_t *sizes, const struct array *x)
{
    return known_new(rank, sizes, x->doubles ? ONNX_DOUBLE : x->floats ? ONNX_FLOAT : ONNX_INT64);
}

tutti_status known_finish(const struct onnx_node *node, struct array *y)
{
    return y ? node_set_array(node, y) : TUTTI_UNSUPPORTED;
}

void known_strides(const struct array *x, int64_t *strides)
{
    int64_t stride = 1;
    for (int i = x->rank - 1; i >= 0; i--) {
        strides[i] = stride;
        stride *= x->sizes[i];
    }
}

bool known_next(int rank, const int64_t *sizes, int64_t *at)
{
    for (int i = rank - 1; i >= 0; i--) {
        if (++at[i] < sizes[i]) return true;
        at[i] = 0;
    }
    return false;
}

size_t reading_at(const struct reading *reading, int rank, const int64_t *at)
{
    int64_t offset = reading->first;
    for (int i = 0; i < rank; i++) offset += at[i] * reading->strides[i];
    return (size_t)offset;
}

bool known_broadcast(const struct array *const *x, int count, int *rank, int64_t *sizes)
{
    *rank = 0;
    for (int i = 0; i < count; i++)
        if (x[i]->rank > *rank) *rank = x[i]->rank;
    for (int k = 0; k < *rank; k++) sizes[k] = 1;
    for (int i = 0; i < count; i++)
        for (int k = 0; k < x[i]->rank; k++) {
            int64_t *size = &sizes[*rank - x[i]->rank + k];
            if (x[i]->sizes[k] != 1 && *size != 1 && x[i]->sizes[k] != *size) return false;
            if (x[i]->sizes[k] != 1) *size = x[i]->sizes[k];
        }
    return true;
}

struct reading known_broadcast_reading(const struct array *x, int rank)
{
    struct reading reading = { .first = 0 };
    int64_t strides[ARRAY_MAX_RANK];
    known_strides(x, strides);
    for (int k = 0; k < x->rank; k++) reading.strides[rank - x->rank + k] = x->sizes[k] == 1 ? 0 : strides[k];
    return reading;
}
