/* cross_entropy n c [k]: logits are a dense layer's of k features; every fourth label is negative.
 * mean_squared_error n c [k] */
#include "tests/layers/cases.h"

static tutti_tensor build(tutti_network *network, const struct test_case *c)
{
    tutti_tensor x = tutti_input(network, "x", TUTTI_SHAPE(case_get(c, "k", 4)));
    return tutti_dense(network, x, case_get(c, "c", 1), NULL);
}

static int32_t label_of(const struct test_case *c, int64_t n)
{
    const int64_t classes = case_get(c, "c", 1);
    return n % 4 == 3 ? -1 - (int32_t)(n % 100) : (int32_t)((n * 7 + 3) % classes);
}

static void labels(const struct test_case *c, void *targets, int64_t count)
{
    (void)count;
    for (int64_t n = 0; n < case_get(c, "n", 1); n++) ((int32_t *)targets)[n] = label_of(c, n);
}

static double target_of(int64_t i)
{
    return (double)test_real(77, i);
}

static void floats(const struct test_case *c, void *targets, int64_t count)
{
    (void)c;
    for (int64_t i = 0; i < count; i++) ((float *)targets)[i] = (float)target_of(i);
}

static const char *const class_cases[] = {
    "cross_entropy n3 c2",
    "cross_entropy n1 c5",
    "cross_entropy n9 c10",
    "cross_entropy n4 c16 k3",
    "cross_entropy n5 c33",
    "cross_entropy n6 c1000 k2",
    "cross_entropy n3 c1001 k2",
    "cross_entropy n500 c3 k2",
    NULL,
};

static const struct operation_test test_cross_entropy = {
    .name = "cross_entropy",
    .build = build,
    .cases = class_cases,
    .tolerance = TOLERANCE_FUNCTION,
    .loss_plus_1 = TUTTI_CROSS_ENTROPY + 1,
    .targets = labels,
};

static const char *const square_cases[] = {
    "mean_squared_error n1 c1 k1",
    "mean_squared_error n33 c1",
    "mean_squared_error n5 c7",
    "mean_squared_error n4 c100 k3",
    "mean_squared_error n700 c2 k2",
    NULL,
};

static const struct operation_test test_mean_squared_error = {
    .name = "mean_squared_error",
    .build = build,
    .cases = square_cases,
    .tolerance = TOLERANCE_SUM,
    .loss_plus_1 = TUTTI_MSE + 1,
    .targets = floats,
};

OPERATION_TESTS(test_loss, &test_cross_entropy, &test_mean_squared_error)
