/* Reductions that are chains of other operations. Plans make few kernels of these (plan/compose.c). */
#include "layers/decompose.h"

static int sum(const struct append_context *c, const void *attributes, int x)
{
    return graph_append(c->graph, &operation_reduce_sum, attributes, &x, 1, c->layer);
}

int decompose_reduce_l1(const struct append_context *c, const void *attributes, const int *inputs, int count)
{
    (void)count;
    return sum(c, attributes, append_one(c, &operation_abs, inputs[0]));
}

int decompose_reduce_sum_square(const struct append_context *c, const void *attributes, const int *inputs, int count)
{
    (void)count;
    return sum(c, attributes, append_one(c, &operation_square, inputs[0]));
}

/* Where all elements are 0, computes the root of 1, less 1: the gradient is 0, as PyTorch's, not 0 times infinity. */
int decompose_reduce_l2(const struct append_context *c, const void *attributes, const int *inputs, int count)
{
    (void)count;
    const int squares = decompose_reduce_sum_square(c, attributes, inputs, 1);
    const int zero = append_one(c, &operation_not, squares);
    const int root = append_one(c, &operation_sqrt, append_two(c, &operation_add, squares, zero));
    return append_two(c, &operation_sub, root, zero);
}

int decompose_reduce_log_sum(const struct append_context *c, const void *attributes, const int *inputs, int count)
{
    (void)count;
    return append_one(c, &operation_log, sum(c, attributes, inputs[0]));
}

/* log(sum of exp(x - m)) + m, where m is the largest element rounded up: the exponentials are at most 1, one of them is
 * at least 1 / e, and m has no gradient. It is 0 where the largest element is infinite. */
int decompose_reduce_log_sum_exp(const struct append_context *c, const void *attributes, const int *inputs, int count)
{
    (void)count;
    const struct reduce_attributes *a = attributes;
    const struct reduce_attributes axes = { .axes = a->axes };
    const struct reshape_attributes form = { a->shape, a->kinds };
    const int largest = graph_append(c->graph, &operation_reduce_max, &axes, inputs, 1, c->layer);
    const int whole = append_one(c, &operation_ceil, largest);
    const int infinite = append_one(c, &operation_is_inf, whole);
    const int finite = append_one(c, &operation_not, infinite);
    int m = graph_append(c->graph, &operation_where, NULL, (int[]) { infinite, finite, whole }, 3, c->layer);
    const int powers = append_one(c, &operation_exp, append_two(c, &operation_sub, inputs[0], m));
    const int logarithm = decompose_reduce_log_sum(c, attributes, &powers, 1);
    if (form.shape.rank) m = graph_append(c->graph, &operation_reshape, &form, &m, 1, c->layer);
    return append_two(c, &operation_add, logarithm, m);
}
