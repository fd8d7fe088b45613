/* elementwise n c [h w] [kind act low high blocked]
 *   kind     0 the activation alone, 1 act(x + f(x)), 2 act(x f(x)), 3 act((x + f(x)) f(x)), where f is leaky relu
 *   blocked  a pooling of kernel 1 comes before, which hands the image over in the blocked layout on CPU-class devices
 * reshape n c h w rows: [c, h, w] -> leaky relu -> [rows, the rest] -> leaky relu */
#include "tests/layers/cases.h"

static const double slope = 0.25;

static tutti_tensor input(tutti_network *network, const struct test_case *c)
{
    int64_t channels = case_get(c, "c", 1), h = case_get(c, "h", 0), w = case_get(c, "w", h);
    tutti_tensor x = tutti_input(network, "x", h ? TUTTI_SHAPE(channels, h, w) : TUTTI_SHAPE(channels));
    return case_get(c, "blocked", 0) ? tutti_max_pool(network, x, 1, NULL) : x;
}

static tutti_tensor build(tutti_network *network, const struct test_case *c)
{
    tutti_tensor x = input(network, c), y = x;
    int64_t kind = case_get(c, "kind", 0);
    if (kind) {
        tutti_tensor f = tutti_leaky_relu(network, x, (float)slope);
        y = kind == 2 ? tutti_mul(network, x, f) : tutti_add(network, x, f);
        if (kind == 3) y = tutti_mul(network, y, f);
    }
    return test_activation(network, c, y);
}

static int64_t length(const struct test_case *c)
{
    (void)c;
    return 1;
}

static const char *const cases[] = {
    "elementwise n1 c1 act1",
    "elementwise n3 c7 act1",
    "elementwise n2 c5 h3 w7 act2 low-1.5 high2.5",
    "elementwise n2 c64 h16 act3 low0.25",
    "elementwise n2 c5 h3 w5 act4",
    "elementwise n2 c5 h5 w3 act4 blocked1",
    "elementwise n2 c5 h5 w3 act2 low0.25 high1.5 blocked1",
    "elementwise n2 c5 h5 w3 act2 low-inf high1.5 blocked1",
    "elementwise n3 c16 h5 w3 act5 blocked1",
    "elementwise n2 c33 h5 w3 act1 blocked1",
    "elementwise n2 c9 kind1",
    "elementwise n2 c5 h7 kind1 act1",
    "elementwise n2 c18 h5 w3 kind1 act2 low-1.5 high2.5 blocked1",
    "elementwise n2 c3 h5 w3 kind1 act4 blocked1",
    "elementwise n4 c11 kind2",
    "elementwise n2 c20 h5 w3 kind2 act1 blocked1",
    "elementwise n2 c6 h5 w3 kind3 blocked1",
    "elementwise n5 c130 h9 w10 kind3",
    NULL,
};

static const char *const bf16_cases[] = {
    "elementwise n2 c33 h5 w3 kind3 act4 blocked1",
    "elementwise n2 c20 h5 w3 kind2 act1 blocked1",
    "elementwise n3 c11 kind3 act5",
    NULL,
};

static const struct operation_test test_elementwise = {
    .name = "elementwise",
    .bf16_cases = bf16_cases,
    .build = build,
    .cases = cases,
    .length = length,
};

static tutti_tensor build_reshape(tutti_network *network, const struct test_case *c)
{
    tutti_tensor x = tutti_leaky_relu(network, input(network, c), (float)slope);
    int64_t rows = case_get(c, "rows", 0);
    x = rows ? tutti_reshape(network, x, TUTTI_SHAPE(rows, -1)) : tutti_flatten(network, x);
    return tutti_leaky_relu(network, x, (float)slope);
}

static const char *const reshape_cases[] = {
    "reshape n2 c3 h4 w5",
    "reshape n3 c18 h5 w3 blocked1",
    "reshape n2 c6 h4 w5 rows10",
    "reshape n2 c16 h5 w3 rows15 blocked1",
    NULL,
};

static const struct operation_test test_reshape = {
    .name = "reshape",
    .build = build_reshape,
    .cases = reshape_cases,
    .length = length,
};

OPERATION_TESTS(test_elementwise, &test_elementwise, &test_reshape)
