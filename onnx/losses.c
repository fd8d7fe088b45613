/* NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss, as nodes of indices and reductions. A loss in a file is an
 * ordinary output; to train, use tutti_cross_entropy(). */
#include "onnx/operators.h"

#include <stdio.h>
#include <string.h>

/* The operands, and what is made of them: for each class number, its logarithm and its weight. */
struct loss {
    struct operand x, target, weight;
    bool weighted, ignores;
    int classes; /* axis of the sample with the classes */
    tutti_tensor losses, weights;
};

static tutti_status read_loss(struct onnx_node *node, struct loss *loss)
{
    *loss = (struct loss) { .weighted = node_input(node, 2) != NULL };
    loss->ignores = node_attribute(node, "ignore_index") != NULL;
    tutti_status status = node_batched(node, 0, &loss->x);
    if (status == TUTTI_OK) status = node_batched(node, 1, &loss->target);
    if (status == TUTTI_OK && loss->weighted) status = node_fixed(node, 2, &loss->weight);
    if (status == TUTTI_OK) status = operand_axis(&loss->x, 1, &loss->classes);
    if (status != TUTTI_OK) return status;
    if (!batch_axis_equal(&loss->x.batch, &loss->target.batch) || loss->x.shape.rank != loss->target.shape.rank + 1)
        return node_refuse("its targets must have the axes of its input, without that of classes");
    return TUTTI_OK;
}

/* -x[target], weighted; 0 where the target is ignored. */
static void pick(const struct onnx_node *node, struct loss *loss)
{
    tutti_shape with = loss->target.shape;
    tutti_tensor target = loss->target.tensor, kept = { -1 };
    if (loss->ignores) {
        const float ignored = (float)node_integer(node, "ignore_index", 0);
        kept = node_binary(node, "equal", target, node_constant(node, ignored));
        kept = node_plain(node, "not", &kept, 1);
        target = node_binary(node, "mul", target, kept); /* any class that exists */
    }
    with.rank = loss->x.shape.rank;
    for (int i = with.rank - 1; i > loss->classes; i--) with.sizes[i] = with.sizes[i - 1];
    with.sizes[loss->classes] = 1;
    const tutti_tensor indices = node_reshape(node, target, &with), elements[] = { loss->x.tensor, indices };
    tutti_tensor y = node_op(node, "gather_elements", elements, 2, "axis=%d", loss->classes);
    y = node_reshape(node, node_plain(node, "neg", &y, 1), &loss->target.shape);
    loss->weights = node_binary(node, "equal", target, target); /* 1 */
    if (loss->weighted)
        loss->weights = node_op(node, "gather", (tutti_tensor[]) { loss->weight.tensor, target }, 2, "axis=0");
    if (loss->ignores) loss->weights = node_binary(node, "mul", loss->weights, kept);
    loss->losses = node_binary(node, "mul", y, loss->weights);
}

static tutti_tensor sum_all(const struct onnx_node *node, tutti_tensor x, int rank)
{
    return rank ? node_op(node, "reduce_sum", &x, 1, "keepdims=0") : x;
}

static tutti_status finish(struct onnx_node *node, const struct loss *loss)
{
    const int rank = loss->target.shape.rank;
    if (node_attribute_is(node, "reduction", "none")) return node_set_output(node, loss->losses, loss->target.batch);
    if (operand_has_batch_axis(&loss->target))
        return node_refuse("reduction is over the samples: only 'none' is read; train with a loss of Tutti");
    tutti_tensor y = sum_all(node, loss->losses, rank);
    if (!node_attribute_is(node, "reduction", "sum"))
        y = node_binary(node, "div", y, sum_all(node, loss->weights, rank));
    return node_set_output(node, y, loss->target.batch);
}

tutti_status build_nll_loss(struct onnx_node *node)
{
    struct loss loss;
    const tutti_status status = read_loss(node, &loss);
    if (status != TUTTI_OK) return status;
    pick(node, &loss);
    return finish(node, &loss);
}

tutti_status build_softmax_cross_entropy(struct onnx_node *node)
{
    struct loss loss;
    tutti_status status = read_loss(node, &loss);
    if (status != TUTTI_OK) return status;
    loss.x.tensor = node_log_softmax(node, loss.x.tensor, loss.classes);
    pick(node, &loss);
    status = finish(node, &loss);
    return status == TUTTI_OK ? node_set_output_at(node, 1, loss.x.tensor, loss.x.batch) : status;
}
