/* Shared by the implementations of batch normalisation. */
#ifndef LAYERS_BATCH_NORM_H
#define LAYERS_BATCH_NORM_H

#include "layers/layers.h"

struct batch_norm_attributes {
    float epsilon;
};
ATTRIBUTES(batch_norm)

/* Positions of inputs and outputs, see layers.h. */
enum { NORM_X, NORM_GAMMA, NORM_BETA, NORM_MEAN, NORM_VAR, NORM_CONSTANTS };
enum { NORM_Y, NORM_SAVED_MEAN, NORM_SAVED_RSTD, NORM_BATCH_MEAN, NORM_BATCH_VAR };
enum { GRADIENT_X, GRADIENT_DY, GRADIENT_GAMMA, GRADIENT_MEAN, GRADIENT_RSTD };
enum { GRADIENT_DX, GRADIENT_DGAMMA, GRADIENT_DBETA };

struct planes batch_norm_sizes_of(const struct problem *problem); /* of x; features have one pixel */

/* batch_norm_patterns.c: the node moves into the weights of the layer before it, or becomes a scale and a shift. */
tutti_status batch_norm_in_inference(struct graph *graph, size_t *n, int *same);

/* batch_norm_kernels.c */
extern const struct implementation *const norm_forward[], *const norm_gradient[], *const norm_inference[];

#endif
