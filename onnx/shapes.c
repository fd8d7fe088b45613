/* Shapes: sizes are multiples of the number of samples, or numbers, and known when the file is read. */
#include "onnx/known.h"

static struct array *new_integers(int rank, int64_t size)
{
    return array_new(rank, &size, false);
}

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
