/* Reductions that are chains of other operations. Plans make few kernels of these (plan/compose.c). */
#include "layers/composition.h"

static int sum(const struct composing *c, const void *attributes, int x)
{
    return graph_append(c->graph, &operation_reduce_sum, attributes, &x, 1, c->layer);
}

int compose_reduce_l1(const struct composing *c, const void *attributes, const int *inputs, int count)
{
    (void)count;
    return sum(c, attributes, compose_one(c, &operation_abs, inputs[0]));
}

int compose_reduce_sum_square(const struct composing *c, const void *attributes, const int *inputs, int count)
{
    (void)count;
    return sum(c, attributes, compose_one(c, &operation_square, inputs[0]));
}

/* Where all elements are 0, computes the root of 1, less 1: the gradient is 0, as PyTorch's, not 0 times infinity. */
int compose_reduce_l2(const struct composing *c, const void *attributes, const int *inputs, int count)
{
    (void)count;
    const int squares = compose_reduce_sum_square(c, attributes, inputs, 1);
    const int zero = compose_one(c, &operation_not, squares);
    const int root = compose_one(c, &operation_sqrt, compose_two(c, &operation_add, squares, zero));
    return compose_two(c, &operation_sub, root, zero);
}

int compose_reduce_log_sum(const struct composing *c, const void *attributes, const int *inputs, int count)
{
    (void)count;
    return compose_one(c, &operation_log, sum(c, attributes, inputs[0]));
}

/* log(sum of exp(x - m)) + m, where m is the largest element rounded up: the exponentials are at most 1, one of them is
 * at least 1 / e, and m has no gradient. It is 0 where the largest element is infinite. */
int compose_reduce_log_sum_exp(const struct composing *c, const void *attributes, const int *inputs, int count)
{
    (void)count;
    const struct reduce_attributes *a = attributes;
    const struct reduce_attributes axes = { .axes = a->axes };
    const struct reshape_attributes form = { a->shape, a->kinds };
    const int largest = graph_append(c->graph, &operation_reduce_max, &axes, inputs, 1, c->layer);
    const int whole = compose_one(c, &operation_ceil, largest);
    const int infinite = compose_one(c, &operation_is_inf, whole);
    const int finite = compose_one(c, &operation_not, infinite);
    int m = graph_append(c->graph, &operation_where, NULL, (int[]) { infinite, finite, whole }, 3, c->layer);
    const int powers = compose_one(c, &operation_exp, compose_two(c, &operation_sub, inputs[0], m));
    const int logarithm = compose_reduce_log_sum(c, attributes, &powers, 1);
    if (form.shape.rank) m = graph_append(c->graph, &operation_reshape, &form, &m, 1, c->layer);
    return compose_two(c, &operation_add, logarithm, m);
}
