/* Joining along axes, the opposite, and other orders of axes.
 *
 * reduce_sum, reduce_mean, reduce_max; attributes.axes: those of x, as bits, that become one number
 *   x -> y of attributes.shape, whose sizes are those of x without these axes, or with 1 there, or with other axes of
 *        size 1. It has no batch if the batch's axis is one of these.
 *
 * expand; attributes.shape, attributes.low
 *   x -> low x, repeated along the axes where x has size 1 or none
 *
 * transpose; attributes.order: y's axis i is x's axis order[i]
 *   x -> y */
#ifndef LAYERS_REDUCE_H
#define LAYERS_REDUCE_H

#include "graph/operation.h"

extern const struct operation operation_reduce_sum, operation_reduce_mean, operation_reduce_max, operation_expand,
    operation_transpose;

#endif
