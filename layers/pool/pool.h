/* Pooling, for its files and the interpreter.
 *
 * max_pool
 *     index is the position of the maximum in its window: u8, or i32 for windows of more than 255 pixels.
 * average_pool
 *     Global pooling is a kernel of the image's size. */
#ifndef LAYERS_POOL_H
#define LAYERS_POOL_H

#include "graph/operation.h"
#include "layers/image.h"

struct pool_attributes {
    struct window window; /* of adaptive pooling: the kernel is the output's size */
    bool ceil_mode, exclude_padding;
    tutti_shape shape; /* of gradients: of x */
};
ATTRIBUTES(pool)

/* x [n, c, h, w], y [n, c, oh, ow]; from forward and gradient nodes alike. */
struct pool_sizes {
    int64_t n, c, h, w, oh, ow;
};
struct pool_sizes pool_sizes_of(const struct problem *problem);
bool pool_is_gradient(const struct node *node);
bool pool_is_max(const struct node *node);
bool pool_is_adaptive(const struct node *node);
double pool_flops(const struct problem *problem);

/* pool_kernels.c: kernels for windows. In lists of means, those for the mean of the whole image come first. */
extern const struct implementation *const pool_max[],
    *const pool_max_gradient[], *const pool_mean[], *const pool_mean_gradient[], *const pool_adaptive[],
                                                                                     *const pool_adaptive_gradient[];

#endif
