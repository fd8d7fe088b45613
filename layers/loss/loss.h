/* Shared by the losses: their outputs, their last launch, and their builder. */
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
};
ATTRIBUTES(loss)
struct loss_total_attributes {
    float weights[8]; /* of its inputs */
    int counted;      /* the input that counts what is correct; -1: none */
};
ATTRIBUTES(loss_total)

/* Inputs. Class weights: a constant, or absent. */
enum { LOSS_X, LOSS_TARGETS, LOSS_CONSTANTS, LOSS_CLASS_WEIGHTS };
enum { LOSS_METRICS, LOSS_GRADIENT }; /* outputs */

int loss_class_axis(const struct node *loss, const struct value *x);
void loss_set_weight(struct node *loss, float weight);
/* Sets both outputs, for infer(). */
void loss_outputs(const struct value *x, struct node *node, struct value *outputs);
/* Number of labels, or elements, of a sample: each loss is their mean. */
int64_t loss_positions(const struct problem *problem, int input);
/* Returns the gradient's buffer, or another one where nobody wants it, because an argument must be something. */
cl_mem loss_gradient(const struct operands *operands);
/* The factor of the gradient: the weight, over the positions of a sample. */
double loss_factor(const struct problem *problem, int64_t positions);
/* Appends the last launch: metrics are `factor` times the sums over `rows` results in the workspace. */
void loss_sum(const struct problem *problem, const struct operands *operands, struct launch_list *list, int64_t rows,
    double factor);

/* Appends a loss to the network. The tensor is the loss's metrics. */
tutti_tensor loss_build(tutti_network *network, const struct operation *operation, tutti_tensor x, tutti_tensor targets,
    const tutti_loss_options *options);

#endif
