/* spectral n c o h w: spectral_product of spectra [c][h][w][2] and weights [c][o][h][w][2]. */
#include "tests/layers/cases.h"

static tutti_tensor build_spectral(tutti_network *network, const struct test_case *c)
{
    const int64_t ins = case_get(c, "c", 1), outs = case_get(c, "o", 1), h = case_get(c, "h", 1),
                  w = case_get(c, "w", 1);
    const tutti_tensor both[] = { tutti_input(network, "x", TUTTI_SHAPE(ins, h, w, 2)),
        tutti_parameter(network, "weights", TUTTI_SHAPE(ins, outs, h, w, 2), NULL) };
    return tutti_op(network, "spectral_product", both, 2, NULL);
}

static void reference(
    const struct test_case *c, const double *const *inputs, const double *const *parameters, double *y)
{
    const int64_t ins = case_get(c, "c", 1), outs = case_get(c, "o", 1);
    const int64_t frequencies = case_get(c, "h", 1) * case_get(c, "w", 1);
    for (int64_t n = 0; n < case_get(c, "n", 1); n++)
        for (int64_t o = 0; o < outs; o++)
            for (int64_t f = 0; f < frequencies; f++, y += 2) {
                y[0] = y[1] = 0;
                for (int64_t i = 0; i < ins; i++) {
                    const double *x = inputs[0] + ((n * ins + i) * frequencies + f) * 2;
                    const double *w = parameters[0] + ((i * outs + o) * frequencies + f) * 2;
                    y[0] += x[0] * w[0] - x[1] * w[1];
                    y[1] += x[0] * w[1] + x[1] * w[0];
                }
            }
}

static int64_t length(const struct test_case *c)
{
    const int64_t sizes[] = { case_get(c, "n", 1), case_get(c, "c", 1), case_get(c, "o", 1) };
    int64_t most = 1;
    for (int i = 0; i < 3; i++) most = sizes[i] > most ? sizes[i] : most;
    return 2 * most;
}

/* Fewer frequencies than a vector has, whole vectors, and some left; channels around the tile of 4. */
static const char *const cases[] = {
    "spectral n1 c1 o1",
    "spectral n2 c3 o2 h3 w1",
    "spectral n3 c2 o4 h2 w4",
    "spectral n2 c5 o3 h5 w5",
    "spectral n3 c4 o9 h8 w8",
    "spectral n5 c7 o5 h3 w23",
    NULL,
};
static const struct operation_test test_spectral = {
    .name = "spectral",
    .build = build_spectral,
    .reference = reference,
    .cases = cases,
    .tolerance = TOLERANCE_SUM,
    .length = length,
    .reals = true,
};

OPERATION_TESTS(test_spectral, &test_spectral)
