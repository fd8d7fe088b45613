/* Stochastic depth (Huang et al. 2016): dropout of a branch for whole samples, as torchvision's StochasticDepth. */
#ifndef MODELS_STOCHASTIC_DEPTH_H
#define MODELS_STOCHASTIC_DEPTH_H

#include "tutti.h"

/* A 1 for each sample of x [C, H, W]. */
static inline tutti_tensor one_per_sample(tutti_network *network, tutti_tensor x)
{
    const tutti_tensor one = tutti_op(network, "slice", &x, 1, "starts=0,0,0 ends=1,1,1");
    return tutti_op(network, "equal", (tutti_tensor[]) { one, one }, 2, NULL);
}

/* one: of one_per_sample(). */
static inline tutti_tensor drop_samples(tutti_network *network, tutti_tensor x, tutti_tensor one, float probability)
{
    return probability > 0 ? tutti_mul(network, x, tutti_dropout(network, one, probability)) : x;
}

#endif
