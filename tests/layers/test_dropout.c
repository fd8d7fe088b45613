/* dropout n c [p first fold]: probability p percent, on samples [c] of which `first` precede in the whole batch; with
 * `fold`, samples [fold, c] as rows. */
#include <stdio.h>

#include "tests/layers/cases.h"

static tutti_tensor build(tutti_network *network, const struct test_case *c)
{
    const int64_t rows = case_get(c, "fold", 0);
    char size[40];
    tutti_tensor x =
        tutti_input(network, "x", rows ? TUTTI_SHAPE(rows, case_get(c, "c", 1)) : TUTTI_SHAPE(case_get(c, "c", 1)));
    const float probability = (float)case_get_real(c, "p", 0.5);
    if (case_get(c, "twice", 0)) x = tutti_dropout(network, x, probability);
    if (rows) x = tutti_op(network, "fold", &x, 1, NULL);
    x = tutti_dropout(network, x, probability);
    snprintf(size, sizeof size, "size=%d", (int)rows);
    return rows ? tutti_op(network, "unfold", &x, 1, size) : x;
}

static const char *const cases[] = {
    "dropout n1 c1 p0.25",
    "dropout n2 c3 p0.25",
    "dropout n3 c64",
    "dropout n5 c37 p0.1",
    "dropout n4 c1000 p0.75",
    "dropout n2 c5000 p0.5 twice1",
    "dropout n7 c9 p0",
    "dropout n3 c9 p0.25 fold5",
    NULL,
};

static const struct operation_test test_dropout = {
    .name = "dropout",
    .build = build,
    .cases = cases,
    .reals = true,
    .tolerance = TOLERANCE_SUM,
    .inference = true,
};

OPERATION_TESTS(test_dropout, &test_dropout)
