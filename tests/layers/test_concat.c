/* concat n c [h w] axis k [blocked]: x, a convolution (dense layer) of x and leaky relu of x, joined along the axis.
 *   k        the channels of the middle part where the axis is that of channels; else it has one row or column less
 *   blocked  poolings of kernel 1 before, which hand images over in the blocked layout on CPU-class devices */
#include "tests/layers/cases.h"

static const double slope = 0.25;

struct sizes {
    int64_t n, c, h, w, k, r, s; /* r, s: the convolution's kernel */
    int axis;
};

static struct sizes sizes_of(const struct test_case *c)
{
    struct sizes z = { .n = case_get(c, "n", 1), .c = case_get(c, "c", 1), .axis = (int)case_get(c, "axis", 0) };
    z.h = case_get(c, "h", 0);
    z.w = case_get(c, "w", z.h);
    z.k = z.axis ? z.c : case_get(c, "k", z.c);
    z.r = z.axis == 1 ? 2 : 1;
    z.s = z.axis == 2 ? 2 : 1;
    return z;
}

static tutti_tensor build(tutti_network *network, const struct test_case *c)
{
    struct sizes z = sizes_of(c);
    tutti_tensor x = tutti_input(network, "x", z.h ? TUTTI_SHAPE(z.c, z.h, z.w) : TUTTI_SHAPE(z.c));
    if (case_get(c, "blocked", 0)) x = tutti_max_pool(network, x, 1, NULL);
    tutti_tensor parts[3] = { x };
    parts[1] = z.h ? tutti_conv2d(network, x, z.k, z.r, &(tutti_conv2d_options) { .kernel_w = z.s, .no_bias = true })
                   : tutti_dense(network, x, z.k, &(tutti_dense_options) { .no_bias = true });
    parts[2] = tutti_leaky_relu(network, x, (float)slope);
    return tutti_concat(network, parts, 3, z.axis);
}

static int64_t length(const struct test_case *c)
{
    struct sizes z = sizes_of(c);
    return z.c * z.r * z.s + z.n * (z.h ? z.h * z.w : 1);
}

static const char *const cases[] = {
    "concat n1 c1 k1",
    "concat n3 c5 k7",
    "concat n2 c3 h5 w3 k4",
    "concat n2 c16 h5 w3 k32 blocked1",
    "concat n3 c16 h5 w3 k5 blocked1",
    "concat n2 c5 h6 w7 axis1",
    "concat n2 c17 h5 w3 axis2 blocked1",
    "concat n2 c32 h9 w11 k16 blocked1",
    NULL,
};

static const struct operation_test test_concat = {
    .name = "concat",
    .build = build,
    .cases = cases,
    .length = length,
};

OPERATION_TESTS(test_concat, &test_concat)
