#include "onnx/tensor.h"

#include "base/bf16.h"
#include "base/half.h"
#include "base/memory.h"
#include "onnx/external.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The list of a TensorProto that has the elements of a type, if they are not in raw_data. */
enum list { FLOATS, INT32S, INT64S, UINT64S, DOUBLES };

struct type {
    const char *name;
    int number;
    size_t bits; /* of an element in raw_data and external data; of 4 bits, two are in a byte, the first one below */
    bool is_float;
    enum list list;
};

static const struct type types[] = {
    { "FLOAT", ONNX_FLOAT, 32, true, FLOATS },
    { "DOUBLE", ONNX_DOUBLE, 64, true, DOUBLES },
    { "FLOAT16", ONNX_FLOAT16, 16, true, INT32S },
    { "BFLOAT16", ONNX_BFLOAT16, 16, true, INT32S },
    { "UINT8", ONNX_UINT8, 8, false, INT32S },
    { "INT8", ONNX_INT8, 8, false, INT32S },
    { "UINT16", ONNX_UINT16, 16, false, INT32S },
    { "INT16", ONNX_INT16, 16, false, INT32S },
    { "INT32", ONNX_INT32, 32, false, INT32S },
    { "BOOL", ONNX_BOOL, 8, false, INT32S },
    { "INT64", ONNX_INT64, 64, false, INT64S },
    { "UINT32", ONNX_UINT32, 32, false, UINT64S },
    { "UINT64", ONNX_UINT64, 64, false, UINT64S },
    { "UINT4", ONNX_UINT4, 4, false, INT32S },
    { "INT4", ONNX_INT4, 4, false, INT32S },
};

/* Types of the standard that Tutti does not read, for messages (TensorProto.DataType). */
static const struct {
    const char *name;
    int number;
} unread_types[] = {
    { "STRING", 8 },
    { "COMPLEX64", 14 },
    { "COMPLEX128", 15 },
    { "FLOAT8E4M3FN", 17 },
    { "FLOAT8E4M3FNUZ", 18 },
    { "FLOAT8E5M2", 19 },
    { "FLOAT8E5M2FNUZ", 20 },
    { "FLOAT4E2M1", 23 },
    { "FLOAT8E8M0", 24 },
    { "UINT2", 25 },
    { "INT2", 26 },
};

static const struct type *find_type(int number)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].number == number) return &types[i];
    return NULL;
}

bool onnx_type_is_known(int type)
{
    const struct type *found = find_type(type);
    return found && found->bits >= 8;
}

bool onnx_type_is_float(int type)
{
    const struct type *found = find_type(type);
    return found && found->is_float;
}

const char *onnx_type_name(int type)
{
    const struct type *found = find_type(type);
    if (found) return found->name;
    for (size_t i = 0; i < sizeof unread_types / sizeof *unread_types; i++)
        if (unread_types[i].number == type) return unread_types[i].name;
    return "that ONNX's standard does not have";
}

/* ------------------------------------------------------------------------------------------------------ arrays ---- */

bool array_count(int rank, const int64_t *sizes, size_t *count)
{
    *count = 1;
    for (int i = 0; i < rank; i++)
        if (sizes[i] < 0 || !size_multiply(*count, (size_t)sizes[i], count)) return false;
    return true;
}

struct array *array_new(int rank, const int64_t *sizes, bool floats)
{
    size_t count;
    if (rank < 0 || rank > ARRAY_MAX_RANK || !array_count(rank, sizes, &count)) {
        fail(TUTTI_SHAPE, "an array of %d axes does not fit into memory, or has more than %d axes", rank,
            ARRAY_MAX_RANK);
        return NULL;
    }
    struct array *array = memory_new(1, sizeof *array);
    if (!array) return NULL;
    array->rank = rank;
    array->count = count;
    for (int i = 0; i < rank; i++) array->sizes[i] = sizes[i];
    /* One element more: an array without elements has memory, too. */
    if (floats && count < SIZE_MAX) array->floats = memory_new(count + 1, sizeof *array->floats);
    if (!floats && count < SIZE_MAX) array->integers = memory_new(count + 1, sizeof *array->integers);
    if (array->floats || array->integers) return array;
    free(array);
    return NULL;
}

struct array *array_new_typed(int rank, const int64_t *sizes, int type)
{
    struct array *array = array_new(rank, sizes, onnx_type_is_float(type));
    if (!array || type != ONNX_DOUBLE) return array;
    if (array->count < SIZE_MAX) array->doubles = memory_new(array->count + 1, sizeof *array->doubles);
    if (array->doubles) return array;
    array_free(array);
    return NULL;
}

void array_free(struct array *array)
{
    if (!array) return;
    free(array->doubles);
    free(array->floats);
    free(array->integers);
    free(array);
}

bool array_is_linear(const struct array *array, int axis, int64_t *factor)
{
    size_t inner = 1;
    for (int i = axis + 1; i < array->rank; i++) inner *= (size_t)array->sizes[i];
    const size_t line = inner * (size_t)array->sizes[axis];
    *factor = 0;
    if (array->integers && array->sizes[axis] > 1 &&
        __builtin_sub_overflow(array->integers[inner].number, array->integers[0].number, factor))
        return false;
    for (size_t i = 0; i < array->count; i++) {
        const size_t first = i / line * line + i % inner, part = i % line / inner;
        int64_t wanted = 0;
        if (array->floats && array->floats[i] != array->floats[first]) return false;
        if (array->floats) continue;
        if (__builtin_mul_overflow(*factor, (int64_t)part, &wanted) ||
            __builtin_add_overflow(wanted, array->integers[first].number, &wanted) ||
            wanted != array->integers[i].number || array->integers[i].batches != array->integers[first].batches)
            return false;
    }
    return true;
}

bool symbolic_multiply(struct symbolic_integer a, struct symbolic_integer b, struct symbolic_integer *product)
{
    const struct symbolic_integer swapped = a;
    if (b.batches) {
        a = b;
        b = swapped;
    }
    if (b.batches) return false;
    return !__builtin_mul_overflow(a.number, b.number, &product->number) &&
        !__builtin_mul_overflow(a.batches, b.number, &product->batches);
}

/* ----------------------------------------------------------------------------------------------------- reading ---- */

static float float_of_bits(const struct type *type, uint16_t bits)
{
    return type->number == ONNX_BFLOAT16 ? bf16_to_float(bits) : half_to_float(bits);
}

/* *exact: of DOUBLE. */
static float read_float(const struct type *type, const unsigned char *from, double *exact)
{
    float single;
    uint16_t half;
    switch (type->number) {
    case ONNX_FLOAT: memcpy(&single, from, sizeof single); return single;
    case ONNX_DOUBLE: memcpy(exact, from, sizeof *exact); return (float)*exact;
    default: memcpy(&half, from, sizeof half); return float_of_bits(type, half);
    }
}

static int64_t read_integer(const struct type *type, const unsigned char *from)
{
    int16_t two;
    int32_t four;
    int64_t eight;
    switch (type->number) {
    case ONNX_UINT8: return *from;
    case ONNX_BOOL: return *from != 0;
    case ONNX_INT8: return (int8_t)*from;
    case ONNX_INT16: memcpy(&two, from, sizeof two); return two;
    case ONNX_UINT16: memcpy(&two, from, sizeof two); return (uint16_t)two;
    case ONNX_INT32: memcpy(&four, from, sizeof four); return four;
    case ONNX_UINT32: memcpy(&four, from, sizeof four); return (uint32_t)four;
    default: memcpy(&eight, from, sizeof eight); return eight;
    }
}

/* A number of 4 bits, of a byte that has two. */
static int64_t half_of(const struct type *type, unsigned byte, size_t element)
{
    const int number = (int)(element % 2 ? byte >> 4 & 15 : byte & 15);
    return type->number == ONNX_INT4 && number > 7 ? number - 16 : number;
}

/* Bytes of so many elements in raw_data. False: the number does not fit size_t. */
static bool bytes_of(const struct type *type, size_t count, size_t *bytes)
{
    if (type->bits < 8) *bytes = count / 2 + count % 2;
    return type->bits < 8 || size_multiply(count, type->bits / 8, bytes);
}

static void fill_from_bytes(const struct type *type, const unsigned char *bytes, struct array *array)
{
    for (size_t i = 0; i < array->count; i++) {
        const unsigned char *from = bytes + (type->bits < 8 ? i / 2 : i * (type->bits / 8));
        if (type->bits < 8)
            array->integers[i].number = half_of(type, *from, i);
        else if (type->is_float)
            array->floats[i] = read_float(type, from, array->doubles ? &array->doubles[i] : NULL);
        else
            array->integers[i].number = read_integer(type, from);
    }
}

/* Reads the elements from float_data, int32_data and so on. */
static void fill_from_list(const Onnx__TensorProto *tensor, const struct type *type, struct array *array)
{
    for (size_t i = 0; i < array->count; i++) {
        if (type->bits < 8)
            array->integers[i].number = half_of(type, (unsigned)tensor->int32_data[i / 2], i);
        else if (type->list == FLOATS)
            array->floats[i] = tensor->float_data[i];
        else if (type->list == DOUBLES)
            array->floats[i] = (float)(array->doubles[i] = tensor->double_data[i]);
        else if (type->list == INT64S)
            array->integers[i].number = tensor->int64_data[i];
        else if (type->list == UINT64S)
            array->integers[i].number = (int64_t)tensor->uint64_data[i];
        else if (type->is_float) /* their bits, in an integer */
            array->floats[i] = float_of_bits(type, (uint16_t)tensor->int32_data[i]);
        else
            array->integers[i].number = type->number == ONNX_BOOL ? tensor->int32_data[i] != 0 : tensor->int32_data[i];
    }
}

static size_t list_count(const Onnx__TensorProto *tensor, enum list list)
{
    return list == FLOATS ? tensor->n_float_data
        : list == DOUBLES ? tensor->n_double_data
        : list == INT64S  ? tensor->n_int64_data
        : list == UINT64S ? tensor->n_uint64_data
                          : tensor->n_int32_data;
}

enum { EXTERNAL = 1 }; /* TensorProto.DataLocation */

tutti_status tensor_check(const Onnx__TensorProto *tensor)
{
    const struct type *type = find_type(tensor->data_type);
    size_t count, bytes;
    if (!type)
        return fail(TUTTI_UNSUPPORTED, "tensor %s: its elements are of type %s (%d), which Tutti does not read",
            proto_text(tensor->name), onnx_type_name(tensor->data_type), (int)tensor->data_type);
    if (tensor->n_dims > ARRAY_MAX_RANK)
        return fail(TUTTI_UNSUPPORTED, "tensor %s: it has %zu axes: at most %d are read", proto_text(tensor->name),
            tensor->n_dims, ARRAY_MAX_RANK);
    if (!array_count((int)tensor->n_dims, tensor->dims, &count) || !bytes_of(type, count, &bytes) ||
        bytes > INT64_MAX / 8)
        return fail(TUTTI_FORMAT, "tensor %s: its shape has a negative size, or more elements than any memory holds",
            proto_text(tensor->name));
    if (tensor->data_location == EXTERNAL) return TUTTI_OK;
    const size_t listed = type->bits < 8 ? bytes : count;
    if (tensor->has_raw_data ? tensor->raw_data.len == bytes : list_count(tensor, type->list) == listed)
        return TUTTI_OK;
    return fail(TUTTI_FORMAT, "tensor %s: its shape needs %zu elements of %s, but the file has %zu %s of it",
        proto_text(tensor->name), count, type->name,
        tensor->has_raw_data ? tensor->raw_data.len : list_count(tensor, type->list),
        tensor->has_raw_data ? "bytes" : "elements");
}

tutti_status tensor_read(const Onnx__TensorProto *tensor, const char *folder, struct array **array)
{
    tutti_status status = TUTTI_OK;
    unsigned char *bytes = NULL;
    *array = NULL;
    TRY(tensor_check(tensor));
    const struct type *type = find_type(tensor->data_type);
    if (tensor->data_location == EXTERNAL) {
        size_t count = 1, size = 0;
        (void)(array_count((int)tensor->n_dims, tensor->dims, &count) && bytes_of(type, count, &size)); /* checked */
        TRY(external_read(tensor, folder, size, &bytes));
    }
    *array = array_new_typed((int)tensor->n_dims, tensor->dims, type->number);
    if (!*array)
        status = TUTTI_NO_MEMORY;
    else if (bytes || tensor->has_raw_data)
        fill_from_bytes(type, bytes ? bytes : tensor->raw_data.data, *array);
    else
        fill_from_list(tensor, type, *array);
done:
    free(bytes);
    return status;
}
