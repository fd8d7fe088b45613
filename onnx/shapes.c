/* Shapes and constants: numbers that are known when the file is read. Sizes are multiples of the number of samples, or
 * numbers. */
#include "onnx/known.h"

#include "base/memory.h"

#include <string.h>

static struct array *new_integers(int rank, int64_t size)
{
    return array_new(rank, &size, false);
}

/* -------------------------------------------------------------------------------------------------- shapes ---- */

/* The sizes of a value as the file has them, with the batch. */
static tutti_status sizes_of(const struct onnx_node *node, struct symbolic_integer *sizes, int *rank)
{
    const struct onnx_value *value = node_input(node, 0);
    return value ? value_sizes(node->import, value, sizes, rank) : fail(TUTTI_FORMAT, "input 0 is missing");
}

/* Resolves an axis that may be counted from the last one, and clips it to the ends. */
static int64_t axis_within(int64_t axis, int rank)
{
    if (axis < 0) axis = axis < -rank ? 0 : axis + rank;
    return axis > rank ? rank : axis;
}

tutti_status build_shape(struct onnx_node *node)
{
    struct symbolic_integer sizes[TUTTI_MAX_RANK + 1];
    int rank = 0;
    const tutti_status status = sizes_of(node, sizes, &rank);
    node_set_type(node, 0, ONNX_INT64);
    if (status != TUTTI_OK) return status;
    int64_t start = node_integer(node, "start", 0), end = node_integer(node, "end", rank);
    start = axis_within(start, rank);
    end = axis_within(end, rank);
    struct array *array = new_integers(1, end > start ? end - start : 0);
    for (int64_t i = start; array && i < end; i++) array->integers[i - start] = sizes[i];
    return node_set_array(node, array);
}

static tutti_status product_of(
    const struct onnx_node *node, const struct symbolic_integer *list, size_t count, int rank, int64_t size)
{
    struct symbolic_integer product = { 1, 0 };
    for (size_t i = 0; i < count; i++)
        if (!symbolic_multiply(product, list[i], &product)) return node_refuse("the product of sizes is too large");
    struct array *array = new_integers(rank, size);
    if (array) array->integers[0] = product;
    return node_set_array(node, array);
}

tutti_status build_size(struct onnx_node *node)
{
    struct symbolic_integer sizes[TUTTI_MAX_RANK + 1];
    int rank = 0;
    const tutti_status status = sizes_of(node, sizes, &rank);
    return status == TUTTI_OK ? product_of(node, sizes, (size_t)rank, 0, 1) : status;
}

/* ----------------------------------------------------------------------------------------------- constants ---- */

static tutti_status known_floats(const struct onnx_node *node, int rank, const float *floats, size_t count)
{
    const int64_t size = (int64_t)count;
    struct array *y = array_new(rank, &size, true);
    if (y && count) memcpy(y->floats, floats, count * sizeof *floats);
    return node_set_array(node, y);
}

static tutti_status known_integers(const struct onnx_node *node, int rank, const int64_t *numbers, size_t count)
{
    struct array *y = new_integers(rank, (int64_t)count);
    node_set_type(node, 0, ONNX_INT64);
    for (size_t i = 0; y && i < count; i++) y->integers[i].number = numbers[i];
    return node_set_array(node, y);
}

tutti_status build_constant(struct onnx_node *node)
{
    const Onnx__AttributeProto *a = node->proto->n_attribute == 1 ? node->proto->attribute[0] : NULL;
    const char *name = a ? proto_text(a->name) : "";
    struct onnx_value *output = node_output(node, 0);
    if (!strcmp(name, "value_float")) return known_floats(node, 0, &a->f, 1);
    if (!strcmp(name, "value_floats")) return known_floats(node, 1, a->floats, a->n_floats);
    if (!strcmp(name, "value_int")) return known_integers(node, 0, &a->i, 1);
    if (!strcmp(name, "value_ints")) return known_integers(node, 1, a->ints, a->n_ints);
    if (strcmp(name, "value") || !a->t) return node_refuse("it needs one of value, value_int(s) and value_float(s)");
    const tutti_status status = tensor_check(a->t);
    if (status == TUTTI_OK && output) output->stored = a->t;
    node_set_type(node, 0, a->t->data_type);
    return status;
}

tutti_status build_constant_of_shape(struct onnx_node *node)
{
    int64_t sizes[ARRAY_MAX_RANK];
    int rank;
    struct array *value = NULL, *y = NULL;
    const Onnx__AttributeProto *a = node_attribute(node, "value");
    tutti_status status = node_list(node, 0, sizes, ARRAY_MAX_RANK, &rank);
    if (status != TUTTI_OK) return status;
    if (a && a->t && (status = tensor_read(a->t, node->import->folder, &value)) != TUTTI_OK) return status;
    if (value && value->count != 1) {
        array_free(value);
        return fail(TUTTI_FORMAT, "its value is not one number");
    }
    const int type = a && a->t ? a->t->data_type : ONNX_FLOAT;
    y = known_new(rank, sizes, type);
    for (size_t i = 0; y && value && i < y->count; i++)
        known_put(y, type, i, known_at(&(struct known) { value, type }, 0));
    array_free(value);
    node_set_type(node, 0, type);
    return known_finish(node, y);
}

/* Reads the number that all elements are; 0 if the node does not state it. */
static tutti_status constant_number(const struct onnx_node *node, float *number, int *type)
{
    const Onnx__AttributeProto *a = node_attribute(node, "value");
    struct array *value = NULL;
    *number = 0;
    *type = a && a->t ? a->t->data_type : ONNX_FLOAT;
    if (!a || !a->t) return TUTTI_OK;
    const tutti_status status = tensor_read(a->t, node->import->folder, &value);
    if (status != TUTTI_OK) return status;
    const bool one = value->count == 1;
    if (one) *number = value->floats ? value->floats[0] : (float)value->integers[0].number;
    array_free(value);
    return one ? TUTTI_OK : fail(TUTTI_FORMAT, "its value is not one number");
}

tutti_status node_filled(const struct onnx_node *node, const struct symbolic_integer *sizes, size_t rank, float number,
    struct operand *filled)
{
    tutti_status status = TUTTI_OK;
    tutti_shape shape = { 0 };
    struct batch_axis batch_axis = { .rows_per_sample = 1, .outer = 1 };
    if (rank >= TUTTI_MAX_RANK) return node_refuse("its shape has too many axes");
    for (int i = 0; i < (int)rank; i++) {
        const struct symbolic_integer size = sizes[i];
        if (size.batches ? size.number || size.batches < 0 || batch_axis.batched : size.number < 1)
            return node_refuse("axis %d is not a multiple of the number of samples, or the second one", i);
        if (size.batches)
            batch_axis =
                (struct batch_axis) { .batched = true, .axis = i, .rows_per_sample = size.batches, .outer = 1 };
        shape.sizes[shape.rank++] = size.batches + size.number;
    }
    struct operand y = { .tensor = node_constant(node, number), .shape = shape, .batch = batch_axis };
    if (shape.rank)
        y.tensor = node_op(node, "expand", &y.tensor, 1, "shape=%s", list_print(shape.sizes, shape.rank).text);
    if (y.tensor.id >= 0 && batch_axis.batched) status = node_spread_operand(node, &y);
    if (status == TUTTI_OK && batch_axis.batched) y.tensor = node_without_rows(node, y.tensor, batch_axis.axis);
    *filled = y;
    if (status != TUTTI_OK || y.tensor.id >= 0) return status;
    return tutti_network_status(node->import->network);
}

/* Adds a layer that gives each sample the same number. */
tutti_status build_constants_of_samples(struct onnx_node *node)
{
    const struct array *asked = NULL;
    struct operand y = { .tensor = { -1 } };
    float number = 0;
    int type = 0;
    tutti_status status = node_array(node, 0, &asked);
    if (status == TUTTI_OK) status = constant_number(node, &number, &type);
    if (status != TUTTI_OK) return status;
    if (!asked->integers) return node_refuse("its shape is not of integers");
    status = node_filled(node, asked->integers, asked->count, number, &y);
    node_set_type(node, 0, type);
    return status == TUTTI_OK ? node_set_output(node, y.tensor, y.batch) : status;
}
