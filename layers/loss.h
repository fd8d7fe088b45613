/* What the losses share: their outputs, their last launch, and their builder. */
#ifndef LAYERS_LOSS_H
#define LAYERS_LOSS_H

#include "graph/network.h"
#include "graph/operation.h"

/* Inputs. Class weights: a constant, or absent. */
enum { LOSS_X, LOSS_TARGETS, LOSS_CONSTANTS, LOSS_CLASS_WEIGHTS };
enum { LOSS_METRICS, LOSS_GRADIENT }; /* outputs */

/* For infer(): both outputs. */
void loss_outputs(const struct value *x, struct node *node, struct value *outputs);
/* Labels, or elements, of a sample: each loss is their mean. */
int64_t loss_positions(const struct problem *problem, int input);
/* The buffer of the gradient, or another one where nobody wants it: an argument must be something. */
cl_mem loss_gradient(const struct operands *operands);
/* The factor of the gradient: the weight, over the positions of a sample. */
double loss_factor(const struct problem *problem, int64_t positions);
/* The last launch: metrics are `factor` times the sums over `rows` results in the workspace. */
void loss_sum(const struct problem *problem, const struct operands *operands, struct launch_list *list, int64_t rows,
    double factor);

/* Appends a loss to the network. The tensor is the loss's metrics. */
tutti_tensor loss_build(tutti_network *network, const struct operation *operation, tutti_tensor x, tutti_tensor targets,
    const tutti_loss_options *options);

#endif
