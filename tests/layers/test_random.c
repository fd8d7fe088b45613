/* random n c [normal first fold offset scale]: uniform or normal numbers of samples [c] of which `first` precede in the
 * whole batch, added to them; with `fold`, samples [fold, c] as rows. */
#include <stdio.h>

#include "tests/layers/cases.h"

static tutti_tensor build(tutti_network *network, const struct test_case *c)
{
    const int64_t rows = case_get(c, "fold", 0), width = case_get(c, "c", 1);
    char size[40], numbers[80];
    tutti_tensor x = tutti_input(network, "x", rows ? TUTTI_SHAPE(rows, width) : TUTTI_SHAPE(width));
    if (rows) x = tutti_op(network, "fold", &x, 1, NULL);
    snprintf(
        numbers, sizeof numbers, "offset=%g scale=%g", case_get_real(c, "offset", 0), case_get_real(c, "scale", 1));
    const tutti_tensor drawn =
        tutti_op(network, case_get(c, "normal", 0) ? "random_normal" : "random_uniform", &x, 1, numbers);
    x = tutti_add(network, x, drawn);
    snprintf(size, sizeof size, "size=%d", (int)rows);
    return rows ? tutti_op(network, "unfold", &x, 1, size) : x;
}

static const char *const cases[] = {
    "random n1 c1",
    "random n3 c5 offset-1 scale2",
    "random n5 c37 normal1",
    "random n4 c1000 normal1 offset3 scale0.5",
    "random n3 c9 normal1 fold5",
    NULL,
};

static const struct operation_test test_random = {
    .name = "random",
    .build = build,
    .cases = cases,
    .reals = true,
    .tolerance = TOLERANCE_SUM,
};

OPERATION_TESTS(test_random, &test_random)
