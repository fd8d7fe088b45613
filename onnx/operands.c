/* Inputs of a node as tensors of the network: parameters and constants are added at their first use. */
#include "onnx/operators.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

/* Booleans become floats, as the results of comparisons are. */
static tutti_status add_truths(struct import *import, struct onnx_value *value, tutti_shape shape)
{
    const struct array *array = value->array;
    float *floats = memory_new(array->count, sizeof *floats);
    if (!floats) return TUTTI_NO_MEMORY;
    for (size_t i = 0; i < array->count; i++) floats[i] = (float)(array->integers[i].number != 0);
    value->tensor = tutti_constant(import->network, value->name, shape, floats);
    free(floats);
    return TUTTI_OK;
}

static tutti_status add_integers(struct import *import, struct onnx_value *value, tutti_shape shape)
{
    const struct array *array = value->array;
    int32_t *numbers = memory_new(array->count, sizeof *numbers);
    tutti_status status = numbers ? TUTTI_OK : TUTTI_NO_MEMORY;
    for (size_t i = 0; i < array->count && status == TUTTI_OK; i++) {
        const struct symbolic_integer integer = array->integers[i];
        if (integer.batches || integer.number < INT32_MIN || integer.number > INT32_MAX)
            status = node_refuse(
                "'%s' has a number that depends on the number of samples, or does not fit int32", value->name);
        else
            numbers[i] = (int32_t)integer.number;
    }
    if (status == TUTTI_OK)
        value->tensor =
            tutti_constant_typed(import->network, value->name, TUTTI_DTYPE_I32, shape.sizes, shape.rank, numbers);
    free(numbers);
    value->converts = true;
    return status;
}

static tutti_status add_parameter(const struct onnx_node *node, struct onnx_value *value, tutti_shape shape)
{
    const float *floats = value->array->floats;
    const tutti_status status =
        value->apart ? import_count_bytes(node->import, value->array->count * sizeof *floats) : TUTTI_OK;
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
static tutti_tensor as_view(const struct onnx_node *node, const struct onnx_value *value, tutti_tensor from,
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
static tutti_status add_renamed(const struct onnx_node *node, struct onnx_value *value, tutti_shape shape)
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

static tutti_status add_tensor(const struct onnx_node *node, struct onnx_value *value);

static tutti_status add_view(const struct onnx_node *node, struct onnx_value *value, tutti_shape shape)
{
    struct onnx_value *of = value->view.of;
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
static tutti_status add_tensor(const struct onnx_node *node, struct onnx_value *value)
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
    if (value->array->integers)
        status = value->type == ONNX_BOOL ? add_truths(import, value, shape) : add_integers(import, value, shape);
    else if (!value_trains(import, value))
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

static tutti_status add_once(const struct onnx_node *node, struct onnx_value *value)
{
    return value->tensor.id < 0 ? add_tensor(node, value) : TUTTI_OK;
}

static tutti_status operand_of(const struct onnx_node *node, const struct onnx_value *value, struct operand *operand)
{
    operand->tensor = value->tensor;
    operand->batch = value->batch;
    if (value->batch.batched) return tutti_shape_of(node->import->network, value->tensor, &operand->shape);
    return value_shape(node->import, value, &operand->shape);
}

tutti_status node_operand_as_is(const struct onnx_node *node, size_t position, struct operand *operand)
{
    struct onnx_value *value = node_input(node, position);
    *operand = (struct operand) { .tensor = { -1 } };
    const tutti_status status = value ? add_once(node, value) : fail(TUTTI_FORMAT, "input %zu is missing", position);
    return status == TUTTI_OK ? operand_of(node, value, operand) : status;
}

tutti_status node_operand(const struct onnx_node *node, size_t position, struct operand *operand)
{
    struct onnx_value *value = NULL;
    tutti_status status = node_operand_as_is(node, position, operand);
    if (status != TUTTI_OK || !(value = node_input(node, position))->converts) return status;
    if (value->floats.id < 0) value->floats = tutti_cast(node->import->network, value->tensor, TUTTI_DTYPE_F32);
    operand->tensor = value->floats;
    return value->floats.id < 0 ? tutti_network_status(node->import->network) : TUTTI_OK;
}

static tutti_status copy_array(const struct onnx_node *node, const struct array *from)
{
    struct array *copy = array_new_typed(from->rank, from->sizes,
        from->doubles      ? ONNX_DOUBLE
            : from->floats ? ONNX_FLOAT
                           : ONNX_INT64);
    if (copy && from->floats) memcpy(copy->floats, from->floats, from->count * sizeof *from->floats);
    if (copy && from->doubles) memcpy(copy->doubles, from->doubles, from->count * sizeof *from->doubles);
    if (copy && from->integers) memcpy(copy->integers, from->integers, from->count * sizeof *from->integers);
    return node_set_array(node, copy);
}

/* Makes the value's tensor, which is added if there is none yet, the node's output. */
static tutti_status copy_tensor(const struct onnx_node *node, struct onnx_value *value)
{
    struct operand x;
    tutti_status status = add_once(node, value);
    if (status == TUTTI_OK) status = operand_of(node, value, &x);
    return status == TUTTI_OK ? node_set_output(node, x.tensor, x.batch) : status;
}

tutti_status node_copy(const struct onnx_node *node, struct onnx_value *value)
{
    struct onnx_value *output = node_output(node, 0);
    if (output && output->type == 0) output->type = value->type;
    if (value->array && !value->stored && !value->forced_parameter) return copy_array(node, value->array);
    if (output) output->stored = value->stored;
    if (output) output->copied = value->initialiser || value->copied;
    if (output) output->constant = (value->view.of ? value->view.of : value)->constant;
    if (output) output->forced_parameter = value->forced_parameter;
    if (value->stored && value_is_integers(value)) return TUTTI_OK;
    const tutti_status status = copy_tensor(node, value);
    if (status == TUTTI_OK && output) output->converts = value->converts;
    return status;
}

tutti_status node_same(const struct onnx_node *node)
{
    struct onnx_value *value = node_input(node, 0);
    return value ? node_copy(node, value) : fail(TUTTI_FORMAT, "input 0 is missing");
}
