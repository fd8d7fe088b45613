/* Gemm and MatMul. */
#include "onnx/operators.h"

#include <inttypes.h>

static tutti_tensor scaled(const struct onnx_node *node, tutti_tensor x, float factor)
{
    return factor == 1 ? x : node_op(node, "scale", &x, 1, "factor=%.9g", (double)factor);
}

/* y = A B + bias, as a dense layer, where only A depends on the samples. bias NULL: none. */
static tutti_status gemm_dense(
    struct onnx_node *node, const struct operand *a, struct operand *b, const struct operand *bias, tutti_tensor *y)
{
    if (node_integer(node, "transA", 0))
        return node_refuse("its first input is transposed, and depends on the samples");
    if (!node_integer(node, "transB", 0)) b->tensor = node_permuted(node, b->tensor, (int[]) { 1, 0 }, b->shape.rank);
    const tutti_tensor list[] = { a->tensor, b->tensor, bias ? bias->tensor : b->tensor };
    *y = node_plain(node, "dense", list, bias ? 3 : 2);
    return y->id < 0 ? tutti_network_status(node->import->network) : TUTTI_OK;
}

/* Brings C, and y = A B, to samples that broadcast as the file's matrices do. *batch_axis: that of y, and then of their
 * sum. */
static tutti_status match_c(
    const struct onnx_node *node, tutti_tensor *y, struct operand *c, struct batch_axis *batch_axis)
{
    const struct batch_axis moved = batch_axis_moved(c->batch, 2 - operand_rank(c));
    tutti_shape shape;
    if (operand_rank(c) > 2) return node_refuse("input 2 has %d axes", operand_rank(c));
    if (batch_has_axis(batch_axis)) return node_align(node, 2, 2, batch_axis, c);
    if (!batch_axis->batched) *batch_axis = moved;
    if (!operand_has_batch_axis(c)) return TUTTI_OK;
    const tutti_status status = tutti_shape_of(node->import->network, *y, &shape);
    if (status != TUTTI_OK) return status;
    if (shape.sizes[moved.axis] != 1)
        return node_refuse("only its input 2 depends on the samples, and the product of the others has size %" PRId64
                           " along axis %d, the batch",
            shape.sizes[moved.axis], moved.axis);
    *y = node_reshape(node, *y, &TUTTI_SHAPE(shape.sizes[!moved.axis]));
    return y->id < 0 ? tutti_network_status(node->import->network) : TUTTI_OK;
}

/* y = alpha A B + beta C */
tutti_status build_gemm(struct onnx_node *node)
{
    struct operand a, b, c = { .shape = { 0 } };
    const float alpha = node_number(node, "alpha", 1), beta = node_number(node, "beta", 1);
    const int transposed_a = node_integer(node, "transA", 0) != 0, transposed_b = node_integer(node, "transB", 0) != 0;
    const bool has_c = node_input(node, 2) != NULL;
    tutti_status status = node_operand(node, 0, &a);
    if (status == TUTTI_OK) status = node_operand(node, 1, &b);
    if (status == TUTTI_OK && has_c) status = node_operand(node, 2, &c);
    if (status != TUTTI_OK) return status;
    if (operand_rank(&a) != 2 || operand_rank(&b) != 2) return node_refuse("its inputs must be matrices");
    if (!transposed_a && !b.batch.batched) status = node_equal_parts_as_batch(node, 0, &a);
    if (status != TUTTI_OK) return status;
    struct batch_axis batch_axis = a.batch.batched ? a.batch : b.batch;
    tutti_tensor y;
    const bool rows = operand_has_batch_axis(&a);
    if (rows && (b.batch.batched || a.batch.axis != 0))
        return node_refuse("only its first input may depend on the samples, along its first axis");
    if (!rows && operand_has_batch_axis(&b)) return node_refuse("its second input must not depend on the samples");
    const bool direct = rows && has_c && alpha == 1 && beta == 1 && !c.batch.batched && c.shape.rank == 1 &&
        c.shape.sizes[0] == b.shape.sizes[!transposed_b];
    if (rows)
        status = gemm_dense(node, &a, &b, direct ? &c : NULL, &y);
    else
        y = node_op(node, "matmul", (tutti_tensor[]) { a.tensor, b.tensor }, 2, "transpose_a=%d transpose_b=%d",
            transposed_a, transposed_b);
    if (status != TUTTI_OK) return status;
    y = scaled(node, y, alpha);
    if (!has_c || direct) return node_set_output(node, y, batch_axis);
    if ((status = match_c(node, &y, &c, &batch_axis)) != TUTTI_OK) return status;
    y = node_plain(node, "add", (tutti_tensor[]) { y, scaled(node, c.tensor, beta) }, 2);
    return node_set_output(node, y, batch_axis);
}

/* The batch must be an axis before the matrices, and the same axis of both, counted from the last one. */
static tutti_status check_product(const struct operand *a, const struct operand *b)
{
    const bool whole = batch_is_whole(&a->batch) && batch_is_whole(&b->batch);
    if (a->batch.batched && b->batch.batched && !whole &&
        (!batch_axis_equal(&a->batch, &b->batch) || a->shape.rank != b->shape.rank))
        return node_refuse("its inputs have different numbers of axes, or the batch along different axes");
    if ((a->batch.batched && a->batch.axis == operand_rank(a) - 1) ||
        (operand_has_batch_axis(b) && b->batch.axis >= operand_rank(b) - 2) ||
        (operand_has_batch_axis(a) && a->batch.axis == operand_rank(a) - 2 && b->shape.rank > 2))
        return node_refuse("the batch is an axis of its matrices");
    return TUTTI_OK;
}

/* An operand without a batch may have an axis for it before its matrices. */
static tutti_status without_batch(
    const struct onnx_node *node, size_t position, const struct operand *batched, struct operand *x)
{
    const int more = x->shape.rank - operand_rank(batched), axis = batched->batch.axis + more; /* of x */
    if (x->batch.batched || !operand_has_batch_axis(batched) || axis < 0 || axis >= x->shape.rank - 2) return TUTTI_OK;
    if (more > 0) return node_refuse("input %zu has an axis before the batch", position);
    return node_align(node, position, operand_rank(batched), &batched->batch, x);
}

tutti_status node_matmul(const struct onnx_node *node, struct operand *a, struct operand *b, size_t second)
{
    tutti_status status = check_product(a, b);
    if (status == TUTTI_OK) status = without_batch(node, second, a, b);
    if (status == TUTTI_OK) status = without_batch(node, 0, b, a);
    if (status != TUTTI_OK) return status;
    const tutti_tensor y = node_plain(node, "matmul", (tutti_tensor[]) { a->tensor, b->tensor }, 2);
    return node_set_output(node, y, a->batch.batched ? a->batch : b->batch);
}

tutti_status build_matmul(struct onnx_node *node)
{
    struct operand a, b;
    tutti_status status = node_operand(node, 0, &a);
    if (status == TUTTI_OK) status = node_operand(node, 1, &b);
    return status == TUTTI_OK ? node_matmul(node, &a, &b, 1) : status;
}
