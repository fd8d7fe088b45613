/* layer_norm n c [rows cols eps twice]: over the last dimension of samples [c], [rows][c] or [rows][cols][c].
 *   eps      epsilon; default 1e-5
 *   twice    a second normalisation comes after it, with the same parameters by tutti_op() */
#include "tests/layers/cases.h"

static tutti_tensor build(tutti_network *network, const struct test_case *c)
{
    const int64_t width = case_get(c, "c", 1), rows = case_get(c, "rows", 0), cols = case_get(c, "cols", 0);
    const tutti_tensor x = tutti_input(network, "x",
        cols       ? TUTTI_SHAPE(rows, cols, width)
            : rows ? TUTTI_SHAPE(rows, width)
                   : TUTTI_SHAPE(width));
    const tutti_tensor y = tutti_layer_norm(network, "norm", x, (float)case_get_real(c, "eps", 0));
    if (!case_get(c, "twice", 0)) return y;
    const tutti_tensor inputs[] = { y, tutti_find_parameter(network, "norm.weight"),
        tutti_find_parameter(network, "norm.bias") };
    return tutti_op(network, "layer_norm", inputs, 3, "axis=-1 epsilon=0.5");
}

static const char *const cases[] = {
    "layer_norm n3 c2 eps0.5",
    "layer_norm n2 c3",
    "layer_norm n1 c7 rows5",
    "layer_norm n3 c16 rows2",
    "layer_norm n2 c33 rows3 cols5",
    "layer_norm n70 c5 eps0.01",
    "layer_norm n2 c130 rows9",
    "layer_norm n2 c64 rows40",
    "layer_norm n1 c1000",
    "layer_norm n4 c19 rows3 twice1",
    NULL,
};

static const struct operation_test test_layer_norm = {
    .name = "layer_norm",
    .build = build,
    .cases = cases,
    .tolerance = TOLERANCE_NORMALISED,
};

OPERATION_TESTS(test_layer_norm, &test_layer_norm)
