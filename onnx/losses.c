/* NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss, as nodes of indices and reductions: a file's own losses are
 * outputs as others. tutti_cross_entropy() is the loss to train with. */
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

static tutti_status read_loss(struct step *step, struct loss *loss)
{
    *loss = (struct loss) { .weighted = step_input(step, 2) != NULL };
    loss->ignores = step_attribute(step, "ignore_index") != NULL;
    tutti_status status = step_batched(step, 0, &loss->x);
    if (status == TUTTI_OK) status = step_batched(step, 1, &loss->target);
    if (status == TUTTI_OK && loss->weighted) status = step_fixed(step, 2, &loss->weight);
    if (status == TUTTI_OK) status = operand_axis(&loss->x, 1, &loss->classes);
    if (status != TUTTI_OK) return status;
    if (!place_equal(&loss->x.place, &loss->target.place) || loss->x.shape.rank != loss->target.shape.rank + 1)
        return step_refuse("its targets must have the axes of its input, without that of classes");
    return TUTTI_OK;
}

/* -x[target], weighted; 0 where the target is ignored. */
static void pick(const struct step *step, struct loss *loss)
{
    tutti_shape with = loss->target.shape;
    tutti_tensor target = loss->target.tensor, kept = { -1 };
    if (loss->ignores) {
        const float ignored = (float)step_integer(step, "ignore_index", 0);
        kept = step_binary(step, "equal", target, step_constant(step, ignored));
        kept = step_plain(step, "not", &kept, 1);
        target = step_binary(step, "mul", target, kept); /* any class that exists */
    }
    with.rank = loss->x.shape.rank;
    for (int i = with.rank - 1; i > loss->classes; i--) with.sizes[i] = with.sizes[i - 1];
    with.sizes[loss->classes] = 1;
    const tutti_tensor indices = step_reshape(step, target, &with), elements[] = { loss->x.tensor, indices };
    tutti_tensor y = step_op(step, "gather_elements", elements, 2, "axis=%d", loss->classes);
    y = step_reshape(step, step_plain(step, "neg", &y, 1), &loss->target.shape);
    loss->weights = step_binary(step, "equal", target, target); /* 1 */
    if (loss->weighted)
        loss->weights = step_op(step, "gather", (tutti_tensor[]) { loss->weight.tensor, target }, 2, "axis=0");
    if (loss->ignores) loss->weights = step_binary(step, "mul", loss->weights, kept);
    loss->losses = step_binary(step, "mul", y, loss->weights);
}

static tutti_tensor sum_all(const struct step *step, tutti_tensor x, int rank)
{
    return rank ? step_op(step, "reduce_sum", &x, 1, "keepdims=0") : x;
}

static tutti_status finish(struct step *step, const struct loss *loss)
{
    const int rank = loss->target.shape.rank;
    if (step_says(step, "reduction", "none")) return step_done(step, loss->losses, loss->target.place);
    if (loss->target.place.axis != HIDDEN)
        return step_refuse("reduction is over the samples: only 'none' is read; train with a loss of Tutti");
    tutti_tensor y = sum_all(step, loss->losses, rank);
    if (!step_says(step, "reduction", "sum")) y = step_binary(step, "div", y, sum_all(step, loss->weights, rank));
    return step_done(step, y, loss->target.place);
}

tutti_status build_nll_loss(struct step *step)
{
    struct loss loss;
    const tutti_status status = read_loss(step, &loss);
    if (status != TUTTI_OK) return status;
    pick(step, &loss);
    return finish(step, &loss);
}

tutti_status build_softmax_cross_entropy(struct step *step)
{
    struct loss loss;
    tutti_status status = read_loss(step, &loss);
    if (status != TUTTI_OK) return status;
    loss.x.tensor = step_log_softmax(step, loss.x.tensor, loss.classes);
    pick(step, &loss);
    status = finish(step, &loss);
    return status == TUTTI_OK ? step_made(step, 1, loss.x.tensor, loss.x.place) : status;
}
