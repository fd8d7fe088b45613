/* Reductions that are chains of other operations. Plans make few kernels of these (plan/compose.c). */
#include "layers/layers.h"

static int apply(struct graph *graph, int layer, const struct operation *operation, int a)
{
    return graph_append(graph, operation, NULL, &a, 1, layer);
}

static int combine(struct graph *graph, int layer, const struct operation *operation, int a, int b)
{
    return graph_append(graph, operation, NULL, (int[]) { a, b }, 2, layer);
}

static int sum(struct graph *graph, int layer, const struct reduce_attributes *attributes, int x)
{
    return graph_append(graph, &operation_reduce_sum, attributes, &x, 1, layer);
}

int reduce_l1(struct graph *graph, int layer, const struct reduce_attributes *attributes, int x)
{
    return sum(graph, layer, attributes, apply(graph, layer, &operation_abs, x));
}

int reduce_sum_square(struct graph *graph, int layer, const struct reduce_attributes *attributes, int x)
{
    return sum(graph, layer, attributes, apply(graph, layer, &operation_square, x));
}

/* The root of 1, less 1, where all elements are 0: the gradient is 0 there, as PyTorch's, and not 0 times infinity. */
int reduce_l2(struct graph *graph, int layer, const struct reduce_attributes *attributes, int x)
{
    const int squares = reduce_sum_square(graph, layer, attributes, x);
    const int zero = apply(graph, layer, &operation_not, squares);
    const int root = apply(graph, layer, &operation_sqrt, combine(graph, layer, &operation_add, squares, zero));
    return combine(graph, layer, &operation_sub, root, zero);
}

int reduce_log_sum(struct graph *graph, int layer, const struct reduce_attributes *attributes, int x)
{
    return apply(graph, layer, &operation_log, sum(graph, layer, attributes, x));
}

/* log(sum of exp(x - m)) + m, where m is the largest element rounded up: the exponentials are at most 1, one of them is
 * at least 1 / e, and m has no gradient. It is 0 where the largest element is infinite. */
int reduce_log_sum_exp(struct graph *graph, int layer, const struct reduce_attributes *attributes, int x)
{
    const struct reduce_attributes axes = { .axes = attributes->axes };
    const struct reshape_attributes form = { attributes->shape, attributes->kinds };
    const int largest = graph_append(graph, &operation_reduce_max, &axes, &x, 1, layer);
    const int whole = apply(graph, layer, &operation_ceil, largest);
    const int infinite = apply(graph, layer, &operation_is_inf, whole);
    const int finite = apply(graph, layer, &operation_not, infinite);
    int m = graph_append(graph, &operation_where, NULL, (int[]) { infinite, finite, whole }, 3, layer);
    const int powers = apply(graph, layer, &operation_exp, combine(graph, layer, &operation_sub, x, m));
    const int logarithm = reduce_log_sum(graph, layer, attributes, powers);
    if (form.shape.rank) m = graph_append(graph, &operation_reshape, &form, &m, 1, layer);
    return combine(graph, layer, &operation_add, logarithm, m);
}
