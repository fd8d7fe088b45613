/* Runs nodes on the host, in double precision and by straight loops: the reference that kernels are compared with. It
 * takes nodes of a graph before or after any pass of plan/. */
#ifndef LAYERS_INTERPRETER_H
#define LAYERS_INTERPRETER_H

#include "graph/operation.h"

/* The arrays of a node, in the order of struct problem. Each holds the value's elements in the order of its shape,
 * whatever the layout and the type; NULL: it is absent. */
struct node_arrays {
    double *inputs[GRAPH_MAX_INPUTS], *outputs[GRAPH_MAX_OUTPUTS], *add;
    const struct step_constants *constants;
    bool inference;              /* dropout copies, batch_norm uses the running statistics */
    struct thread_pool *threads; /* for convolutions and products; NULL: the caller's thread alone */
};

/* An element of an array that may be absent. */
static inline void write_if(double *to, int64_t at, double number)
{
    if (to) to[at] = number;
}

/* Number of elements from one index of an axis to the next. */
static inline int64_t interpreter_stride(const struct value *value, int axis)
{
    int64_t stride = 1;
    for (int i = axis + 1; i < value->shape.rank; i++) stride *= value->shape.sizes[i];
    return stride;
}

bool interpreter_knows(const struct operation *operation);
/* Computes the outputs of one node. problem->device may be NULL. Statistics are stored and read as one part; the
 * others are 0. TUTTI_UNSUPPORTED: the interpreter does not know the operation. */
tutti_status interpret_node(const struct problem *problem, const struct node_arrays *arrays);

/* The references of operations (struct operation); attention/, dft/ and recurrent/ have their own. interpreter.c: */
operation_reference interpret_channel_sum, interpret_embedding, interpret_embedding_gradient, interpret_resample,
    interpret_batch_norm, interpret_batch_norm_gradient, interpret_fold_batch_norm, interpret_layer_norm,
    interpret_layer_norm_gradient, interpret_softmax, interpret_softmax_gradient, interpret_dropout, interpret_random,
    interpret_copy, interpret_concat, interpret_convert;
/* interpreter_indices.c: */
operation_reference interpret_gather, interpret_gather_gradient, interpret_scatter, interpret_scatter_gradient;
/* interpreter_grid.c: */
operation_reference interpret_grid_sample, interpret_grid_data_gradient, interpret_grid_grid_gradient;
/* interpreter_products.c: */
operation_reference interpret_conv2d, interpret_conv2d_data_gradient, interpret_dense, interpret_dense_data_gradient,
    interpret_dense_weight_gradient, interpret_matmul;
/* Computes the gradient of a convolution's weights from other arrays than the problem's. */
void interpret_conv2d_weights(
    const struct problem *problem, const struct node_arrays *arrays, double *x, double *dw, double *dy);
/* interpreter_pool.c, interpreter_losses.c, interpreter_ctc.c: */
operation_reference interpret_max_pool, interpret_max_pool_gradient, interpret_average_pool;
operation_reference interpret_loss_of_classes, interpret_soft_cross_entropy, interpret_loss_of_elements, interpret_ctc,
    interpret_mean_loss, interpret_loss_total;
/* interpreter_lines.c: */
operation_reference interpret_argmax, interpret_topk, interpret_scan, interpret_cumprod_gradient, interpret_one_hot,
    interpret_trilu, interpret_reverse_sequence;

#endif
