/* heads n c h w heads: attention over the pixels of an image that a convolution makes, added to that image before a
 * second convolution. What is between has four dimensions, too, but is not an image: [N, heads, pixels, pixels]. */
#include "tests/layers/cases.h"

static tutti_tensor transpose(tutti_network *network, tutti_tensor x)
{
    return tutti_op(network, "transpose", &x, 1, "perm=0,2,1");
}

static tutti_tensor build(tutti_network *network, const struct test_case *c)
{
    const int64_t channels = case_get(c, "c", 1), h = case_get(c, "h", 1), w = case_get(c, "w", h);
    const int64_t heads = case_get(c, "heads", 1);
    const tutti_tensor x = tutti_input(network, "x", TUTTI_SHAPE(channels, h, w));
    const tutti_tensor image = tutti_conv2d(network, x, channels, 1, NULL);
    const tutti_tensor columns = tutti_reshape(network, image, TUTTI_SHAPE(heads, channels / heads, h * w));
    const tutti_tensor rows = transpose(network, columns);
    tutti_tensor scores = tutti_matmul(network, NULL, rows, columns, false, false);
    scores = tutti_softmax(network, tutti_op(network, "scale", &scores, 1, "factor=0.25"));
    const tutti_tensor y = transpose(network, tutti_matmul(network, NULL, scores, rows, false, false));
    const tutti_tensor back = tutti_reshape(network, y, TUTTI_SHAPE(channels, h, w));
    return tutti_conv2d(network, tutti_add(network, back, image), channels, 1, NULL);
}

static int64_t length(const struct test_case *c)
{
    return case_get(c, "n", 1) * case_get(c, "c", 1) * case_get(c, "h", 1) * case_get(c, "w", 1);
}

static const char *const cases[] = {
    "heads n2 c16 h4 w3 heads4",
    "heads n3 c6 h2 w5 heads2",
    NULL,
};

static const struct operation_test test_heads = {
    .name = "heads",
    .build = build,
    .cases = cases,
    .tolerance = TOLERANCE_NORMALISED,
    .length = length,
};

OPERATION_TESTS(test_heads, &test_heads)
