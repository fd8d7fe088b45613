/* log_softmax n c rows axis [scale]: along an axis of samples [rows][c].
 * softmax n c [rows scale]: over the last dimension of samples [c] or [rows][c]; scale: how far apart the inputs lie.
 */
#include <math.h>

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

static const struct operation_test test_softmax = {
    .name = "softmax",
    .build = build,
    .cases = cases,
    .tolerance = TOLERANCE_FUNCTION,
    .fill = fill,
};

static tutti_tensor build_log(tutti_network *network, const struct test_case *c)
{
    const tutti_tensor x = tutti_input(network, "x", TUTTI_SHAPE(case_get(c, "rows", 1), case_get(c, "c", 1)));
    return tutti_log_softmax(network, x, (int)case_get(c, "axis", 0));
}

static void log_reference(
    const struct test_case *c, const double *const *inputs, const double *const *parameters, double *y)
{
    const int64_t width = case_get(c, "c", 1), rows = case_get(c, "rows", 1), last = case_get(c, "axis", 0) == 1;
    const int64_t length = last ? width : rows, step = last ? 1 : width;
    (void)parameters;
    for (int64_t i = 0; i < case_get(c, "n", 1) * rows * width; i++) {
        const double *line = inputs[0] + (last ? i / width * width : i / (rows * width) * rows * width + i % width);
        double sum = 0;
        for (int64_t k = 0; k < length; k++) sum += exp(line[k * step] - inputs[0][i]);
        y[i] = -log(sum);
    }
}

static const char *const log_cases[] = {
    "log_softmax n3 c5 rows7 axis0",
    "log_softmax n2 c13 rows3 axis1 scale4",
    "log_softmax n1 c67 rows1 axis1",
    NULL,
};
static const struct operation_test test_log_softmax = {
    .name = "log_softmax",
    .build = build_log,
    .reference = log_reference,
    .cases = log_cases,
    .tolerance = TOLERANCE_FUNCTION,
    .fill = fill,
};

/* constants n c rows: 0.5, 2.5, ... along the last axis times x, plus -1.25, x [rows][c]. */
static tutti_tensor build_constants(tutti_network *network, const struct test_case *c)
{
    const int64_t width = case_get(c, "c", 1), rows = case_get(c, "rows", 1);
    const tutti_tensor x = tutti_input(network, "x", TUTTI_SHAPE(rows, width));
    const tutti_tensor steps = tutti_arange(network, 0.5, 2 * (double)width, 2);
    const tutti_tensor y = tutti_op(network, "mul", (tutti_tensor[]) { x, steps }, 2, NULL);
    return tutti_add(network, y, tutti_full(network, (int64_t[]) { rows, width }, 2, -1.25f));
}

static void constants_reference(
    const struct test_case *c, const double *const *inputs, const double *const *parameters, double *y)
{
    const int64_t width = case_get(c, "c", 1), count = case_get(c, "n", 1) * case_get(c, "rows", 1) * width;
    (void)parameters;
    for (int64_t i = 0; i < count; i++) y[i] = inputs[0][i] * (0.5 + 2 * (double)(i % width)) - 1.25;
}

static const char *const constant_cases[] = { "constants n3 c7 rows5", "constants n1 c1 rows3", NULL };
static const struct operation_test test_constants = {
    .name = "constants",
    .build = build_constants,
    .reference = constants_reference,
    .cases = constant_cases,
    .tolerance = TOLERANCE_SUM,
};

OPERATION_TESTS(test_softmax, &test_softmax, &test_log_softmax, &test_constants)
