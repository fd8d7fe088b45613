/* The kind, the sizes and the cost of a node, for implementations and the reference. */
#include "layers/pool/pool.h"

#include "layers/layers.h"

bool pool_is_gradient(const struct node *node)
{
    return node->operation == &operation_max_pool_gradient || node->operation == &operation_average_pool_gradient ||
        node->operation == &operation_adaptive_average_pool_gradient;
}

bool pool_is_max(const struct node *node)
{
    return node->operation == &operation_max_pool || node->operation == &operation_max_pool_gradient;
}

bool pool_is_adaptive(const struct node *node)
{
    return node->operation == &operation_adaptive_average_pool ||
        node->operation == &operation_adaptive_average_pool_gradient;
}

struct pool_sizes pool_sizes_of(const struct problem *problem)
{
    const bool gradient = pool_is_gradient(problem->node);
    const int64_t *x = (gradient ? problem->outputs : problem->inputs)[0]->shape.sizes;
    const int64_t *y = (gradient ? problem->inputs : problem->outputs)[0]->shape.sizes;
    return (struct pool_sizes) { x[0], x[CHANNEL_AXIS], x[SPACE_AXIS], x[SPACE_AXIS + 1], y[SPACE_AXIS],
        y[SPACE_AXIS + 1] };
}

/* An addition or comparison for each pixel of each window. */
double pool_flops(const struct problem *problem)
{
    const struct pool_sizes z = pool_sizes_of(problem);
    const int64_t *kernel = pool_attributes(problem->node)->window.kernel;
    const double planes = (double)(z.n * z.c);
    if (pool_is_adaptive(problem->node)) return planes * (double)(z.h * z.w);
    return planes * (double)(z.oh * z.ow) * (double)(kernel[0] * kernel[1]);
}
