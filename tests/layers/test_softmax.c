/* softmax n c [rows scale]: over the last dimension of samples [c] or [rows][c]; scale: how far apart the inputs lie.
 */
#include "tests/layers/cases.h"

static tutti_tensor build(tutti_network *network, const struct test_case *c)
{
    const int64_t width = case_get(c, "c", 1), rows = case_get(c, "rows", 0);
    return tutti_softmax(network, tutti_input(network, "x", rows ? TUTTI_SHAPE(rows, width) : TUTTI_SHAPE(width)));
}

static void fill(const struct test_case *c, float *input, int64_t count)
{
    const float scale = (float)case_get_real(c, "scale", 1);
    for (int64_t i = 0; i < count; i++) input[i] = scale * test_real(1, i);
}

static const char *const cases[] = {
    "softmax n3 c2",
    "softmax n1 c7",
    "softmax n5 c10 scale4",
    "softmax n2 c16",
    "softmax n3 c67 scale8",
    "softmax n2 c5 rows6",
    "softmax n2 c1000 scale3",
    "softmax n300 c3",
    NULL,
};

const struct operation_test test_softmax = {
    .name = "softmax",
    .build = build,
    .cases = cases,
    .tolerance = TOLERANCE_FUNCTION,
    .fill = fill,
};
