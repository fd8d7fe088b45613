/* Random numbers: new ones in each step, also in inference. The attribute `seed` is not read: they follow the trainer's
 * seed. */
#include "onnx/operators.h"

#include <string.h>

/* Type of the node's elements; `fallback` if it does not say one. */
static tutti_status read_type(const struct onnx_node *node, int fallback)
{
    const int type = (int)node_integer(node, "dtype", fallback);
    if (!onnx_type_is_known(type)) return node_refuse("dtype %d, which is not read", type);
    node_set_type(node, 0, type);
    return TUTTI_OK;
}

/* The node's distribution, in the shape of x. */
static tutti_tensor draw(const struct onnx_node *node, tutti_tensor x)
{
    const bool normal = !strcmp(node->operation, "random_normal");
    const float first = node_number(node, normal ? "mean" : "low", 0);
    const float second = node_number(node, normal ? "scale" : "high", 1);
    return node_op(node, node->operation, &x, 1, "offset=%.9g scale=%.9g", (double)first,
        normal ? (double)second : (double)second - (double)first);
}

/* Draws numbers of these sizes. In a file for one number of samples, values of each sample have this number as their
 * first size. If it is 1, values that all samples share have this size, too, and samples get numbers of their own. */
static tutti_status draw_sizes(struct onnx_node *node, struct symbolic_integer *sizes, int rank)
{
    const int64_t batch = node->import->options->whole ? 0 : node->import->fixed_batch;
    bool guessed = batch > 0 && rank > 0 && sizes[0].number == batch && (batch > 1 || rank > 1);
    struct operand x;
    struct onnx_value *y = node_output(node, 0);
    for (int i = 0; i < rank; i++) guessed &= !sizes[i].batches;
    if (guessed && y) {
        const tutti_status status = node_filled(node, sizes, (size_t)rank, 0, &x);
        if (status != TUTTI_OK) return status;
        y->unbatched = draw(node, x.tensor);
        sizes[0] = (struct symbolic_integer) { 0, 1 };
    }
    const tutti_status status = node_filled(node, sizes, (size_t)rank, 0, &x);
    return status == TUTTI_OK ? node_set_output(node, draw(node, x.tensor), x.batch) : status;
}

tutti_status build_random(struct onnx_node *node)
{
    struct symbolic_integer sizes[TUTTI_MAX_RANK + 1];
    size_t rank = 0;
    const int64_t *shape = node_integers(node, "shape", &rank);
    if (rank > TUTTI_MAX_RANK) return node_refuse("its shape has too many axes");
    for (size_t i = 0; i < rank; i++) {
        if (shape[i] < 1) return node_refuse("axis %zu has no element", i);
        sizes[i] = (struct symbolic_integer) { shape[i], 0 };
    }
    const tutti_status status = read_type(node, ONNX_FLOAT);
    return status == TUTTI_OK ? draw_sizes(node, sizes, (int)rank) : status;
}

tutti_status build_random_like(struct onnx_node *node)
{
    struct operand x;
    struct symbolic_integer sizes[TUTTI_MAX_RANK + 1];
    int rank = 0;
    const struct onnx_value *like = node_input(node, 0);
    if (!like) return fail(TUTTI_FORMAT, "input 0 is missing");
    tutti_status status = read_type(node, onnx_type_is_float(like->type) ? like->type : ONNX_FLOAT);
    if (status != TUTTI_OK) return status;
    if (like->tensor.id >= 0) {
        status = node_operand(node, 0, &x);
        if (status == TUTTI_OK && x.batch.batched) return node_set_output(node, draw(node, x.tensor), x.batch);
    }
    if (status == TUTTI_OK) status = value_sizes(node->import, like, sizes, &rank);
    return status == TUTTI_OK ? draw_sizes(node, sizes, rank) : status;
}

/* 1 with the probability that is the input's element. */
tutti_status build_bernoulli(struct onnx_node *node)
{
    struct operand p;
    const struct onnx_value *input = node_input(node, 0);
    tutti_status status = node_operand(node, 0, &p);
    if (status == TUTTI_OK) status = read_type(node, input->type);
    if (status != TUTTI_OK) return status;
    const tutti_tensor drawn = node_plain(node, "random_uniform", &p.tensor, 1);
    return node_set_output(node, node_binary(node, "less", drawn, p.tensor), p.batch);
}
