/* A node's inputs, attributes and outputs. */
#include "onnx/operators.h"

#include "base/memory.h"
#include "base/numbers.h"
#include "tutti_inspect.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

tutti_status node_refuse(const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    number_print_list(text, sizeof text, format, arguments);
    va_end(arguments);
    return fail(TUTTI_UNSUPPORTED, "%s", text);
}

/* ------------------------------------------------------------------------------------------------- attributes ---- */

const Onnx__AttributeProto *node_attribute(const struct onnx_node *node, const char *name)
{
    for (size_t i = 0; i < node->proto->n_attribute; i++)
        if (!strcmp(proto_text(node->proto->attribute[i]->name), name)) return node->proto->attribute[i];
    return NULL;
}

int64_t node_integer(const struct onnx_node *node, const char *name, int64_t fallback)
{
    const Onnx__AttributeProto *attribute = node_attribute(node, name);
    return attribute ? attribute->i : fallback;
}

float node_number(const struct onnx_node *node, const char *name, float fallback)
{
    const Onnx__AttributeProto *attribute = node_attribute(node, name);
    return attribute ? attribute->f : fallback;
}

bool node_says(const struct onnx_node *node, const char *name, const char *text)
{
    const Onnx__AttributeProto *attribute = node_attribute(node, name);
    const size_t length = strlen(text);
    return attribute && attribute->s.len == length && !memcmp(attribute->s.data, text, length);
}

const int64_t *node_integers(const struct onnx_node *node, const char *name, size_t *count)
{
    const Onnx__AttributeProto *attribute = node_attribute(node, name);
    *count = attribute ? attribute->n_ints : 0;
    return attribute ? attribute->ints : NULL;
}

/* ----------------------------------------------------------------------------------------------------- values ---- */

struct value *node_input(const struct onnx_node *node, size_t position)
{
    const Onnx__NodeProto *proto = node->proto;
    return position < proto->n_input && *proto->input[position] ? import_find(node->import, proto->input[position])
                                                                : NULL;
}

struct value *node_output(const struct onnx_node *node, size_t position)
{
    const Onnx__NodeProto *proto = node->proto;
    return position < proto->n_output && *proto->output[position] ? import_find(node->import, proto->output[position])
                                                                  : NULL;
}

tutti_status import_load(const struct import *import, struct value *value)
{
    if (value->array || !value->stored) return TUTTI_OK;
    return tensor_read(value->stored, import->folder, &value->array);
}

static bool is_whole(const struct value *value)
{
    return value->stored ? !onnx_type_is_float(value->stored->data_type) : value->array && value->array->symbolic_sizes;
}

/* Floats of initialisers train, unless they are one number. */
static bool is_known(const struct value *value)
{
    size_t count = value->array ? value->array->count : 0;
    if (is_whole(value)) return true;
    if (value->trains || (!value->stored && !value->array)) return false;
    if (value->stored && !array_count((int)value->stored->n_dims, value->stored->dims, &count)) return false;
    return !(value->initialiser || value->copied) || count == 1;
}

bool node_is_known(const struct onnx_node *node)
{
    bool known = node->proto->n_input > 0;
    for (size_t i = 0; i < node->proto->n_input && known; i++) {
        const struct value *value = node_input(node, i);
        const bool type_only = i == 1 && !strcmp(node->proto->op_type, "CastLike");
        known = !value || type_only || is_known(value);
    }
    return known && node_input(node, 0);
}

tutti_status node_array(const struct onnx_node *node, size_t position, const struct array **array)
{
    struct value *value = node_input(node, position);
    if (!value) return fail(TUTTI_FORMAT, "input %zu is missing", position);
    const tutti_status status = import_load(node->import, value);
    if (status != TUTTI_OK) return status;
    *array = value->array;
    if (value->array) return TUTTI_OK;
    return node_refuse("input %zu, '%s', %s: it must be known when the file is read", position, value->name,
        value->tensor.id >= 0 && !value->batch.batched ? "is computed from parameters" : "depends on the samples");
}

tutti_status node_list(const struct onnx_node *node, size_t position, int64_t *list, int most, int *count)
{
    const struct array *array = NULL;
    *count = 0;
    if (!node_input(node, position)) return TUTTI_OK;
    const tutti_status status = node_array(node, position, &array);
    if (status != TUTTI_OK) return status;
    if (!array->symbolic_sizes || array->count > (size_t)most)
        return fail(TUTTI_FORMAT, "input %zu must be at most %d integers", position, most);
    for (size_t i = 0; i < array->count; i++) {
        if (array->symbolic_sizes[i].batches)
            return node_refuse("input %zu depends on the number of samples", position);
        list[i] = array->symbolic_sizes[i].number;
    }
    *count = (int)array->count;
    return TUTTI_OK;
}

tutti_status node_list_or_attribute(
    const struct onnx_node *node, const char *name, size_t position, int64_t *list, int most, int *count)
{
    size_t given;
    const int64_t *attribute = node_integers(node, name, &given);
    if (!attribute) return node_list(node, position, list, most, count);
    if (given > (size_t)most) return fail(TUTTI_FORMAT, "%s must be at most %d integers", name, most);
    for (size_t i = 0; i < given; i++) list[i] = attribute[i];
    *count = (int)given;
    return TUTTI_OK;
}

tutti_status node_scalar(const struct onnx_node *node, size_t position, float fallback, float *scalar)
{
    const struct array *array = NULL;
    *scalar = fallback;
    if (!node_input(node, position)) return TUTTI_OK;
    const tutti_status status = node_array(node, position, &array);
    if (status != TUTTI_OK) return status;
    if (array->count != 1 || (array->symbolic_sizes && array->symbolic_sizes[0].batches))
        return fail(TUTTI_FORMAT, "input %zu must be one number", position);
    *scalar = array->floats ? array->floats[0] : (float)array->symbolic_sizes[0].number;
    return TUTTI_OK;
}

tutti_status value_shape(const struct import *import, const struct value *value, tutti_shape *shape)
{
    const size_t rank = value->stored ? value->stored->n_dims : value->array ? (size_t)value->array->rank : 0;
    if (value->tensor.id >= 0 && !value->stored && !value->array)
        return tutti_shape_of(import->network, value->tensor, shape);
    if (rank > TUTTI_MAX_RANK) return node_refuse("'%s' has more than %d axes", value->name, TUTTI_MAX_RANK);
    shape->rank = (int)rank;
    for (size_t i = 0; i < rank; i++) shape->sizes[i] = value->stored ? value->stored->dims[i] : value->array->sizes[i];
    return TUTTI_OK;
}

/* ---------------------------------------------------------------------------------------------------- tensors ---- */

static bool is_finite(const struct array *array)
{
    for (size_t i = 0; i < array->count; i++)
        if (!isfinite(array->floats[i])) return false;
    return true;
}

/* Booleans become floats, as the results of comparisons are. */
static tutti_status add_truths(struct import *import, struct value *value, tutti_shape shape)
{
    const struct array *array = value->array;
    float *floats = memory_new(array->count, sizeof *floats);
    if (!floats) return TUTTI_NO_MEMORY;
    for (size_t i = 0; i < array->count; i++) floats[i] = (float)(array->symbolic_sizes[i].number != 0);
    value->tensor = tutti_constant(import->network, value->name, shape, floats);
    free(floats);
    return TUTTI_OK;
}

static tutti_status add_integers(struct import *import, struct value *value, tutti_shape shape)
{
    const struct array *array = value->array;
    int32_t *numbers = memory_new(array->count, sizeof *numbers);
    tutti_status status = numbers ? TUTTI_OK : TUTTI_NO_MEMORY;
    for (size_t i = 0; i < array->count && status == TUTTI_OK; i++) {
        const struct symbolic_size symbolic_size = array->symbolic_sizes[i];
        if (symbolic_size.batches || symbolic_size.number < INT32_MIN || symbolic_size.number > INT32_MAX)
            status = node_refuse(
                "'%s' has a number that depends on the number of samples, or does not fit int32", value->name);
        else
            numbers[i] = (int32_t)symbolic_size.number;
    }
    if (status == TUTTI_OK)
        value->tensor =
            tutti_constant_typed(import->network, value->name, TUTTI_DTYPE_I32, shape.sizes, shape.rank, numbers);
    free(numbers);
    value->converts = true;
    return status;
}

/* Counts memory that the file has no bytes for, so that many nodes of a small file cannot take the host's memory. */
static tutti_status count_bytes(const struct onnx_node *node, size_t bytes)
{
    enum { MOST = 1 << 30 };
    node->import->computed += bytes;
    if (node->import->computed <= MOST) return TUTTI_OK;
    return node_refuse("what is computed or copied when the file is read would take more than %d bytes", MOST);
}

static tutti_status add_parameter(const struct onnx_node *node, struct value *value, tutti_shape shape)
{
    const float *floats = value->array->floats;
    const tutti_status status = value->apart ? count_bytes(node, value->array->count * sizeof *floats) : TUTTI_OK;
    if (status != TUTTI_OK) return status;
    value->tensor = tutti_parameter(node->import->network, value->origin.label ? value->origin.label : value->name,
        shape, &(tutti_parameter_options) { .values = floats });
    return TUTTI_OK;
}

/* Sizes without those that are 1. */
static tutti_shape squeezed(tutti_shape shape)
{
    tutti_shape sizes = { 0 };
    for (int i = 0; i < shape.rank; i++)
        if (shape.sizes[i] != 1) sizes.sizes[sizes.rank++] = shape.sizes[i];
    if (sizes.rank == 0) sizes = TUTTI_SHAPE(1);
    return sizes;
}

static bool shape_is_equal(const tutti_shape *a, const tutti_shape *b)
{
    return a->rank == b->rank && !memcmp(a->sizes, b->sizes, (size_t)a->rank * sizeof *a->sizes);
}

/* Brings the tensor `from` of this shape to the value's shape. */
static tutti_tensor as_view(const struct onnx_node *node, const struct value *value, tutti_tensor from,
    tutti_shape from_shape, tutti_shape shape)
{
    const tutti_shape flat = squeezed(from_shape), to = squeezed(shape);
    bool moved = false;
    for (int i = 0; i < to.rank; i++) moved |= value->view.order[i] != i;
    if (moved && !shape_is_equal(&from_shape, &flat)) from = node_reshape(node, from, &flat);
    if (moved) from = node_permuted(node, from, value->view.order, to.rank);
    const tutti_shape *now = moved ? &to : &from_shape;
    return shape_is_equal(now, &shape) ? from : node_reshape(node, from, &shape);
}

/* Adds a parameter with the name and form that it has in the state dict; the file has it in another form. */
static tutti_status add_renamed(const struct onnx_node *node, struct value *value, tutti_shape shape)
{
    const tutti_shape flat = squeezed(shape);
    tutti_shape own = flat;
    int64_t strides[TUTTI_MAX_RANK], at[TUTTI_MAX_RANK] = { 0 }, stride = 1;
    float *floats = memory_new(value->array->count, sizeof *floats);
    if (!floats) return TUTTI_NO_MEMORY;
    for (int i = 0; i < flat.rank; i++) own.sizes[value->view.order[i]] = flat.sizes[i];
    for (int i = own.rank - 1; i >= 0; stride *= own.sizes[i--]) strides[i] = stride;
    for (size_t i = 0; i < value->array->count; i++) {
        int64_t offset = 0;
        for (int k = 0; k < flat.rank; k++) offset += at[k] * strides[value->view.order[k]];
        floats[offset] = value->array->floats[i];
        for (int k = flat.rank - 1; k >= 0 && ++at[k] == flat.sizes[k]; k--) at[k] = 0;
    }
    const tutti_tensor weight = tutti_parameter(
        node->import->network, value->origin.renamed, own, &(tutti_parameter_options) { .values = floats });
    free(floats);
    value->tensor = as_view(node, value, weight, own, shape);
    return TUTTI_OK;
}

static tutti_status add_tensor(const struct onnx_node *node, struct value *value);

static tutti_status add_view(const struct onnx_node *node, struct value *value, tutti_shape shape)
{
    struct value *of = value->view.of;
    tutti_shape from;
    tutti_status status = of->tensor.id < 0 ? add_tensor(node, of) : TUTTI_OK;
    if (status == TUTTI_OK) status = value_shape(node->import, of, &from);
    if (status != TUTTI_OK) return status;
    tutti_tensor rows = of->tensor;
    if (value->view.rows) {
        rows = node_cut(node, rows, 0, value->view.first, value->view.first + value->view.rows);
        from.sizes[0] = value->view.rows;
    }
    value->tensor = as_view(node, value, rows, from, shape);
    return value->tensor.id < 0 ? tutti_network_status(node->import->network) : TUTTI_OK;
}

/* A parameter, or a constant: see tutti_import_onnx(). */
static tutti_status add_tensor(const struct onnx_node *node, struct value *value)
{
    struct import *import = node->import;
    tutti_shape shape = { 0 };
    tutti_status status = value_shape(import, value, &shape);
    if (status == TUTTI_OK && value->view.of) return add_view(node, value, shape);
    if (status == TUTTI_OK) status = import_load(import, value);
    if (status != TUTTI_OK) return status;
    if (!value->array || value->array->count == 0)
        return node_refuse("'%s' has no elements, or is an output that is not available", value->name);
    if (shape.rank == 0) shape = TUTTI_SHAPE(1);
    if (value->array->symbolic_sizes)
        status = value->type == ONNX_BOOL ? add_truths(import, value, shape) : add_integers(import, value, shape);
    else if (!value->trains &&
        (!value->initialiser || value->constant || value->array->count == 1 || !is_finite(value->array)))
        value->tensor = tutti_constant(import->network, value->name, shape, value->array->floats);
    else
        status = value->origin.renamed ? add_renamed(node, value, shape) : add_parameter(node, value, shape);
    if (status == TUTTI_OK && value->tensor.id < 0) status = tutti_network_status(import->network);
    if (value->stored && value->array->count > 1) { /* the network has its copy */
        array_free(value->array);
        value->array = NULL;
    }
    return status;
}

static tutti_status add_once(const struct onnx_node *node, struct value *value)
{
    return value->tensor.id < 0 ? add_tensor(node, value) : TUTTI_OK;
}

static tutti_status operand_of(const struct onnx_node *node, const struct value *value, struct operand *operand)
{
    operand->tensor = value->tensor;
    operand->batch = value->batch;
    if (value->batch.batched) return tutti_shape_of(node->import->network, value->tensor, &operand->shape);
    return value_shape(node->import, value, &operand->shape);
}

tutti_status node_indices(const struct onnx_node *node, size_t position, struct operand *operand)
{
    struct value *value = node_input(node, position);
    *operand = (struct operand) { .tensor = { -1 } };
    const tutti_status status = value ? add_once(node, value) : fail(TUTTI_FORMAT, "input %zu is missing", position);
    return status == TUTTI_OK ? operand_of(node, value, operand) : status;
}

tutti_status node_operand(const struct onnx_node *node, size_t position, struct operand *operand)
{
    struct value *value = NULL;
    tutti_status status = node_indices(node, position, operand);
    if (status != TUTTI_OK || !(value = node_input(node, position))->converts) return status;
    if (value->floats.id < 0) value->floats = tutti_cast(node->import->network, value->tensor, TUTTI_DTYPE_F32);
    operand->tensor = value->floats;
    return value->floats.id < 0 ? tutti_network_status(node->import->network) : TUTTI_OK;
}

/* -------------------------------------------------------------------------------------------------- operations ---- */

tutti_tensor node_plain(const struct onnx_node *node, const char *operation, const tutti_tensor *inputs, int count)
{
    return node_op(node, operation, inputs, count, " ");
}

tutti_tensor node_constant(const struct onnx_node *node, float number)
{
    return tutti_constant(node->import->network, NULL, TUTTI_SHAPE(1), &number);
}

tutti_tensor node_binary(const struct onnx_node *node, const char *operation, tutti_tensor a, tutti_tensor b)
{
    return node_elements(node, operation, (tutti_tensor[]) { a, b }, 2);
}

/* node_constant() has an axis. It is removed from a result that is one number of each sample. */
tutti_tensor node_elements(const struct onnx_node *node, const char *operation, const tutti_tensor *inputs, int count)
{
    const tutti_network *network = node->import->network;
    const tutti_tensor y = node_plain(node, operation, inputs, count);
    tutti_tensor_info info = { .size = sizeof info };
    bool is_number = false;
    if (y.id < 0 || tutti_network_tensor(network, y, &info) != TUTTI_OK || !info.for_each_sample) return y;
    if (info.shape.rank != 1 || info.shape.sizes[0] != 1) return y;
    for (int i = 0; i < count; i++)
        is_number |= tutti_network_tensor(network, inputs[i], &info) == TUTTI_OK && info.shape.rank == 0;
    return is_number ? node_op(node, "reshape", &y, 1, "shape=") : y;
}

tutti_tensor node_wrapped(const struct onnx_node *node, tutti_tensor x, int type)
{
    const float bits = type == ONNX_UINT8 || type == ONNX_INT8 ? 8
        : type == ONNX_UINT16 || type == ONNX_INT16            ? 16
        : type == ONNX_UINT32                                  ? 32
        : type == ONNX_UINT64                                  ? 64
                                                               : 0;
    const bool has_sign = type == ONNX_INT8 || type == ONNX_INT16;
    if (bits == 0) return x;
    const tutti_tensor all = node_constant(node, exp2f(bits));
    if (!has_sign) return node_binary(node, "mod", x, all);
    const tutti_tensor half = node_constant(node, exp2f(bits - 1));
    x = node_binary(node, "mod", node_binary(node, "add", x, half), all);
    return node_binary(node, "sub", x, half);
}

tutti_tensor node_truncated(const struct onnx_node *node, tutti_tensor x)
{
    const tutti_tensor whole = node_plain(node, "round", &x, 1), apart = node_binary(node, "sub", x, whole);
    const tutti_tensor size = node_plain(node, "abs", &x, 1);
    const tutti_tensor limit = node_op(node, "scale", &size, 1, "factor=%.9g", (double)(FLT_EPSILON * 16));
    const tutti_tensor is_whole = node_binary(node, "less_or_equal", node_plain(node, "abs", &apart, 1), limit);
    return node_elements(node, "where", (tutti_tensor[]) { is_whole, whole, node_plain(node, "trunc", &x, 1) }, 3);
}

tutti_tensor node_op(const struct onnx_node *node, const char *operation, const tutti_tensor *inputs, int count,
    const char *attributes, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, attributes);
    const int length = number_print_list(text, sizeof text, attributes, arguments);
    va_end(arguments);
    if (length < 0 || (size_t)length >= sizeof text)
        return tutti_op(node->import->network, operation, inputs, count, "attributes-longer-than-1023-bytes");
    /* A name with a space would be two words. */
    const char *name = proto_text(node->proto->name);
    if (*name && !strpbrk(name, " ") && strlen(name) + 7 < sizeof text - (size_t)length)
        number_print(text + length, sizeof text - (size_t)length, " name=%s", name);
    return tutti_op(node->import->network, operation, inputs, count, text);
}

tutti_status node_made(const struct onnx_node *node, size_t output, tutti_tensor tensor, struct batch_axis batch_axis)
{
    struct value *value = node_output(node, output);
    if (tensor.id < 0) return tutti_network_status(node->import->network);
    if (value) value->tensor = tensor;
    if (value) value->batch = batch_axis;
    return TUTTI_OK;
}

tutti_status node_done(const struct onnx_node *node, tutti_tensor tensor, struct batch_axis batch_axis)
{
    return node_made(node, 0, tensor, batch_axis);
}

void node_type(const struct onnx_node *node, size_t output, int type)
{
    struct value *value = node_output(node, output);
    if (value) value->type = type;
}

tutti_status node_known(const struct onnx_node *node, struct array *array)
{
    return node_known_at(node, 0, array);
}

tutti_status node_known_at(const struct onnx_node *node, size_t output, struct array *array)
{
    struct value *value = node_output(node, output);
    if (!array) return TUTTI_NO_MEMORY;
    const tutti_status status =
        count_bytes(node, array->count * (array->floats ? sizeof *array->floats : sizeof *array->symbolic_sizes));
    if (status == TUTTI_OK && value)
        value->array = array;
    else
        array_free(array);
    return status;
}

static tutti_status copy_array(const struct onnx_node *node, const struct array *from)
{
    struct array *copy = array_new_typed(from->rank, from->sizes,
        from->doubles      ? ONNX_DOUBLE
            : from->floats ? ONNX_FLOAT
                           : ONNX_INT64);
    if (copy && from->floats) memcpy(copy->floats, from->floats, from->count * sizeof *from->floats);
    if (copy && from->doubles) memcpy(copy->doubles, from->doubles, from->count * sizeof *from->doubles);
    if (copy && from->symbolic_sizes)
        memcpy(copy->symbolic_sizes, from->symbolic_sizes, from->count * sizeof *from->symbolic_sizes);
    return node_known(node, copy);
}

/* Makes the value's tensor, which is added if there is none yet, the node's output. */
static tutti_status copy_tensor(const struct onnx_node *node, struct value *value)
{
    struct operand x;
    tutti_status status = add_once(node, value);
    if (status == TUTTI_OK) status = operand_of(node, value, &x);
    return status == TUTTI_OK ? node_done(node, x.tensor, x.batch) : status;
}

tutti_status node_copy(const struct onnx_node *node, struct value *value)
{
    struct value *output = node_output(node, 0);
    if (output && output->type == 0) output->type = value->type;
    if (value->array && !value->stored && !value->trains) return copy_array(node, value->array);
    if (output) output->stored = value->stored;
    if (output) output->copied = value->initialiser || value->copied;
    if (value->stored && is_whole(value)) return TUTTI_OK;
    const tutti_status status = copy_tensor(node, value);
    if (status == TUTTI_OK && output) output->converts = value->converts;
    return status;
}

tutti_status node_same(const struct onnx_node *node)
{
    struct value *value = node_input(node, 0);
    return value ? node_copy(node, value) : fail(TUTTI_FORMAT, "input 0 is missing");
}
