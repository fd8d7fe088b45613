/* Operators that go along an axis, element after element. */
#include "onnx/operators.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Reads an input and the attribute `axis`: as an axis of the file, and as one of the tensor. */
static tutti_status read_axis(
    const struct onnx_node *node, int64_t fallback, struct operand *x, int *file_axis, int *axis)
{
    tutti_status status = node_operand(node, 0, x);
    if (status != TUTTI_OK) return status;
    const int64_t asked = node_integer(node, "axis", fallback);
    *file_axis = (int)(asked < 0 ? asked + operand_rank(x) : asked);
    return operand_axis(x, asked, axis);
}

tutti_status build_hardmax(struct onnx_node *node)
{
    struct operand x;
    tutti_shape shape;
    int axis = 0;
    const tutti_status status = node_softmax_axis(node, &x, &shape, &axis);
    if (status != TUTTI_OK) return status;
    return node_set_softmax_output(node, node_op(node, "hardmax", &x.tensor, 1, "axis=%d", axis), &x, &shape);
}

tutti_status build_top_k(struct onnx_node *node)
{
    struct operand x;
    int file_axis = 0, axis = 0, count = 0;
    int64_t k[1] = { 0 };
    tutti_tensor indices;
    tutti_status status = read_axis(node, -1, &x, &file_axis, &axis);
    if (status == TUTTI_OK) status = node_list(node, 1, k, 1, &count);
    if (status != TUTTI_OK) return status;
    if (count == 0) k[0] = node_integer(node, "k", 0); /* before opset 10 */
    const bool largest = node_integer(node, "largest", 1) != 0;
    const tutti_tensor values = tutti_topk(node->import->network, x.tensor, k[0], axis, largest, &indices);
    status = node_set_output_at(node, 0, values, x.batch);
    if (status == TUTTI_OK) status = node_set_output_at(node, 1, indices, x.batch);
    node_set_type(node, 1, ONNX_INT64);
    return status;
}

/* The axis is an input. */
tutti_status build_scan(struct onnx_node *node)
{
    struct operand x;
    int axis = 0, count = 0;
    int64_t asked[1] = { 0 };
    tutti_status status = node_operand(node, 0, &x);
    if (status == TUTTI_OK) status = node_list(node, 1, asked, 1, &count);
    if (status == TUTTI_OK) status = operand_axis(&x, asked[0], &axis);
    if (status != TUTTI_OK) return status;
    return node_set_output(node,
        node_op(node, node->operation, &x.tensor, 1, "axis=%d exclusive=%d reverse=%d", axis,
            node_integer(node, "exclusive", 0) != 0, node_integer(node, "reverse", 0) != 0),
        x.batch);
}

/* off + hot (on - off), of two values that are not known. */
static tutti_status mix(const struct onnx_node *node, tutti_tensor hot, const struct batch_axis *batch_axis)
{
    struct operand values;
    const tutti_status status = node_operand(node, 2, &values);
    if (status != TUTTI_OK) return status;
    if (values.shape.rank != 1 || values.shape.sizes[0] != 2) return fail(TUTTI_FORMAT, "its values are not two");
    const tutti_tensor off = node_op(node, "slice", &values.tensor, 1, "starts=0 ends=1"),
                       on = node_op(node, "slice", &values.tensor, 1, "starts=1 ends=2"),
                       more = node_plain(node, "sub", (tutti_tensor[]) { on, off }, 2),
                       scaled = node_plain(node, "mul", (tutti_tensor[]) { hot, more }, 2);
    return node_set_output(node, node_plain(node, "add", (tutti_tensor[]) { scaled, off }, 2), *batch_axis);
}

/* The new axis is before the batch axis, or after it. */
tutti_status build_one_hot(struct onnx_node *node)
{
    struct operand x;
    float depth = 0;
    const struct onnx_value *values = node_input(node, 2);
    tutti_status status = values ? node_operand_as_is(node, 0, &x) : fail(TUTTI_FORMAT, "input 2 is missing");
    if (status == TUTTI_OK) status = node_scalar(node, 1, 0, &depth);
    if (status != TUTTI_OK) return status;
    const int rank = operand_rank(&x) + 1;
    const int64_t asked = node_integer(node, "axis", -1), file_axis = asked < 0 ? asked + rank : asked;
    if (file_axis < 0 || file_axis >= rank) return fail(TUTTI_FORMAT, "axis %" PRId64 " does not exist", asked);
    if (x.batch.batched && x.batch.outer != 1) return node_refuse("the batch is part of an axis");
    const bool own = operand_has_batch_axis(&x);
    const int axis = (int)file_axis - (own && file_axis > x.batch.axis);
    const struct batch_axis batch_axis = batch_axis_moved(x.batch, file_axis <= x.batch.axis ? 1 : 0);
    if (x.shape.rank == 0 && !x.batch.batched) return node_refuse("its indices are one number for all samples");
    node_set_type(node, 0, values->type);
    const tutti_tensor hot = node_op(node, "one_hot", &x.tensor, 1, "axis=%d depth=%.9g", axis, (double)depth);
    return mix(node, hot, &batch_axis);
}

tutti_status build_trilu(struct onnx_node *node)
{
    struct operand x;
    int64_t k[1] = { 0 };
    int count = 0, row = 0, column = 0;
    tutti_status status = node_operand(node, 0, &x);
    if (status == TUTTI_OK) status = node_list(node, 1, k, 1, &count);
    if (status == TUTTI_OK) status = operand_axis(&x, -1, &column);
    if (status == TUTTI_OK) status = operand_axis(&x, -2, &row);
    if (status != TUTTI_OK) return status;
    return node_set_output(node,
        node_op(node, "trilu", &x.tensor, 1, "upper=%d k=%" PRId64, node_integer(node, "upper", 1) != 0, k[0]),
        x.batch);
}

/* The batch of the operator is Tutti's, or another axis. */
tutti_status build_reverse_sequence(struct onnx_node *node)
{
    struct operand x, lengths;
    int time = 0, batch = -1;
    const int64_t file_axis = node_integer(node, "batch_axis", 1);
    tutti_status status = node_operand(node, 0, &x);
    if (status == TUTTI_OK) status = node_operand_as_is(node, 1, &lengths);
    if (status == TUTTI_OK) status = operand_axis(&x, node_integer(node, "time_axis", 0), &time);
    const bool own = x.batch.batched && file_axis == x.batch.axis && x.batch.outer == 1;
    if (status == TUTTI_OK && !own) status = operand_axis(&x, file_axis, &batch);
    if (status != TUTTI_OK) return status;
    if (own != (lengths.batch.batched && lengths.batch.axis == 0))
        return node_refuse("its lengths must have the batch of its data");
    const tutti_tensor pair[] = { x.tensor, lengths.tensor };
    return node_set_output(
        node, node_op(node, "reverse_sequence", pair, 2, "time_axis=%d batch_axis=%d", time, batch), x.batch);
}
