/* Losses: their operations, outputs, last launch, and builder.
 *
 * loss_classes.c: cross_entropy, nll
 *     x are logits [N, ..., classes, ...], or for nll logarithms of probabilities. targets are labels, i32 of x's shape
 *     without the classes; those below 0 are excluded.
 * loss_soft.c: soft_cross_entropy
 * loss_ctc.c: ctc
 *     x are logits [N, frames, classes], targets lists of labels, i32 [N, labels], each up to its first number below 0
 * loss_elements.c: mean_squared_error, l1, huber, bce_with_logits
 *     targets have x's shape.
 * loss_mean.c: mean_loss
 *     has no targets; its inputs are x and the constants
 *
 * metrics, f32 [2], are sums over the samples, without gradient_weight and weight: of the losses, each the mean over a
 * sample's labels or elements, and of the shares that are correct (0 where the operation does not count them). dx is
 * multiplied by constants.gradient_weight and the attribute `weight`.
 *
 * loss_total.c
 *     y [2 + 2 * inputs]: the weighted sum of the losses and the correct ones of input `counted`, then each input. An
 *     input whose weight is 0 is not in the sum, whatever it is. */
#ifndef LAYERS_LOSS_H
#define LAYERS_LOSS_H

#include "graph/network.h"
#include "graph/operation.h"

/* Zero is the default of each. */
struct loss_attributes {
    int axis;          /* of the classes; 0: the last one */
    float weight;      /* of the gradient; 0: 1 */
    float smoothing;   /* of labels, 0 to 1 */
    float delta;       /* huber */
    float mean_weight; /* of the class weights, where it has some */
    bool ignores;      /* the label `ignored` is excluded, as negative ones are */
    int32_t ignored;
    int32_t blank;            /* ctc: the class between labels */
    bool zero_infinity;       /* ctc: the loss and the gradient of samples without a path are 0 */
    bool summed;              /* ctc: a sample's loss is not divided by the number of its labels */
    int64_t labels, excluded; /* of a constant with the class numbers; labels 0: they are none */
};
ATTRIBUTES(loss)
struct loss_total_attributes {
    float weights[8]; /* of its inputs */
    int counted;      /* the input that counts what is correct; -1: none */
};
ATTRIBUTES(loss_total)

/* Inputs. Class weights: a constant, or absent. Lengths: of ctc, frames of each sample as floats, or absent. */
enum { LOSS_X, LOSS_TARGETS, LOSS_CONSTANTS, LOSS_CLASS_WEIGHTS, LOSS_LENGTHS = LOSS_CLASS_WEIGHTS };
enum { LOSS_METRICS, LOSS_GRADIENT }; /* outputs */

int loss_class_axis(const struct node *loss, const struct value *x);
void loss_set_weight(struct node *loss, float weight);
/* Sets both outputs, for infer(). */
void loss_outputs(const struct value *x, struct node *node, struct value *outputs);
/* Number of labels, or elements, of a sample: each loss is their mean. */
int64_t loss_positions(const struct problem *problem, int input);
/* Returns the buffer of the gradient. If nobody wants it, returns another one: a buffer argument must not be NULL. */
cl_mem loss_gradient(const struct operands *operands);
/* The factor of the gradient: the weight, over the positions of a sample. */
double loss_factor(const struct problem *problem, int64_t positions);
/* Appends the last launch: metrics are `factor` times the sums over `rows` results in the workspace. */
void loss_sum(const struct problem *problem, const struct operands *operands, struct launch_list *list, int64_t rows,
    double factor);

/* The operation of tutti_training.loss; NULL for TUTTI_LOSS_NONE and for numbers that are not a loss. */
const struct operation *loss_find(tutti_loss loss);
/* Returns the type, shape and `batched` of the targets of these predictions, which are batched. */
struct value loss_targets(const struct operation *loss, const struct value *predictions);

/* Appends a loss to the network. The tensor is the loss's metrics. */
tutti_tensor loss_build(tutti_network *network, const struct operation *operation, tutti_tensor x, tutti_tensor targets,
    const tutti_loss_options *options);

#endif
