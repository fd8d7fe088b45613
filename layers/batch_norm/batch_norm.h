/* Batch normalisation. The ports of its operations have the names of layers.h.
 *
 * batch_norm
 *     batch_mean and batch_var are the "gradients" of the running statistics: mean and unbiased variance of the
 *     batch, times samples * gradient_weight. With biased_variance, a node after it scales the latter. y is absent if
 * all its readers have FUSION_NORMALISED. batch_norm_gradient With FUSION_MASKED, the derivative comes from y if the
 * forward node added another tensor before its function, else from x, gamma and beta. dadd is the product, for the
 * gradient of that other tensor. fold_batch_norm Computes weights and bias of the preceding layer, once after loading,
 * for inference. */
#ifndef LAYERS_BATCH_NORM_H
#define LAYERS_BATCH_NORM_H

#include "layers/layers.h"

struct batch_norm_attributes {
    float epsilon;
    bool biased_variance; /* in the running statistics */
};
ATTRIBUTES(batch_norm)

/* Positions of inputs and outputs. */
enum { NORM_X, NORM_GAMMA, NORM_BETA, NORM_MEAN, NORM_VAR, NORM_CONSTANTS };
enum { NORM_Y, NORM_SAVED_MEAN, NORM_SAVED_RSTD, NORM_BATCH_MEAN, NORM_BATCH_VAR };
enum { GRADIENT_X, GRADIENT_DY, GRADIENT_GAMMA, GRADIENT_MEAN, GRADIENT_RSTD };
enum { GRADIENT_DX, GRADIENT_DGAMMA, GRADIENT_DBETA };

/* batch_norm_patterns.c: the node moves into the weights of the layer before it, or becomes a scale and a shift. */
tutti_status batch_norm_in_inference(struct graph *graph, size_t *n, int *same);

/* batch_norm.c: tutti_batch_norm(), for tutti_op(). biased: the running variance is of the biased variance of the
 * batch, as in Keras. Plans whose statistics are of several devices together refuse it. */
tutti_tensor batch_norm_build(
    tutti_network *network, tutti_tensor x, const tutti_batch_norm_options *options, bool biased);

/* batch_norm_kernels.c */
extern const struct implementation *const norm_forward[], *const norm_gradient[], *const norm_inference[];

#endif
