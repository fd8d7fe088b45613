/* matmul n m k u [h ta tb left both one act]: y [m][u] = op(x) op(p), of a sample x [m][k] and a parameter p [k][u].
 *   h         samples have h matrices
 *   ta, tb    the first and the second input are stored transposed
 *   left      the parameter is the first input: y = op(p) op(x) of p [m][k] and x [k][u]
 *   both      the parameter's matrix is multiplied by the sum of each matrix of x before, so that both inputs have
 *             leading axes
 *   one       the parameter has an axis of size 1 in front
 *   act       an activation follows (enum activation), which plans fuse */
#include "tests/layers/cases.h"

static tutti_shape matrix(int64_t rows, int64_t columns, bool transposed)
{
    return transposed ? TUTTI_SHAPE(columns, rows) : TUTTI_SHAPE(rows, columns);
}

static tutti_tensor build(tutti_network *network, const struct test_case *c)
{
    const int64_t m = case_get(c, "m", 1), k = case_get(c, "k", 1), u = case_get(c, "u", 1), h = case_get(c, "h", 0);
    const bool ta = case_get(c, "ta", 0), tb = case_get(c, "tb", 0), left = case_get(c, "left", 0);
    const tutti_shape a = matrix(m, k, ta), b = matrix(k, u, tb);
    tutti_shape sample = left ? b : a;
    if (h) sample = TUTTI_SHAPE(h, sample.sizes[0], sample.sizes[1]);
    const tutti_tensor x = tutti_input(network, "x", sample);
    tutti_shape of_p = left ? a : b;
    if (case_get(c, "one", 0)) of_p = TUTTI_SHAPE(1, of_p.sizes[0], of_p.sizes[1]);
    tutti_tensor p = tutti_parameter(network, "p", of_p, NULL);
    if (case_get(c, "both", 0)) p = tutti_mul(network, tutti_op(network, "reduce_sum", &x, 1, "axes=-1,-2"), p);
    return test_activation(network, c, tutti_matmul(network, "product", left ? p : x, left ? x : p, ta, tb));
}

static int64_t length(const struct test_case *c)
{
    const int64_t rows = case_get(c, "n", 1) * case_get(c, "h", 1);
    const int64_t sums[] = { rows * case_get(c, "m", 1), rows * case_get(c, "u", 1), case_get(c, "k", 1),
        case_get(c, "k", 1) * case_get(c, "u", 1) };
    int64_t most = 0;
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) most = sums[i] > most ? sums[i] : most;
    return most;
}

/* Both stored both ways, sizes around the vectors and tiles, one matrix and many. */
static const char *const cases[] = {
    "matmul n1 m1 k1 u1",
    "matmul n3 m5 k7 u4",
    "matmul n3 m5 k7 u4 ta1",
    "matmul n3 m5 k7 u4 tb1",
    "matmul n2 m17 k9 u35 ta1 tb1",
    "matmul n2 h3 m6 k19 u33",
    "matmul n2 h3 m6 k19 u33 ta1 tb1",
    "matmul n2 h3 m6 k19 u33 tb1 act5",
    "matmul n2 h3 m4 k6 u5 one1",
    "matmul n2 m4 k6 u5 left1 one1",
    "matmul n3 m5 k7 u4 left1",
    "matmul n3 h2 m21 k6 u17 left1 ta1",
    "matmul n3 h2 m21 k6 u17 left1 tb1",
    "matmul n2 m9 k11 u3 left1 ta1 tb1 act4",
    "matmul n3 m5 k7 u4 both1",
    "matmul n2 h3 m5 k17 u31 both1 ta1",
    "matmul n2 h3 m33 k5 u18 both1 tb1",
    "matmul n2 h2 m13 k33 u9 both1 ta1 tb1",
    "matmul n2 h3 m7 k9 u20 both1 left1",
    "matmul n2 h4 m32 k16 u32 both1 tb1", /* attention: scores, */
    "matmul n2 h4 m32 k32 u16 both1",     /* and what they weight */
    "matmul n1 h2 m128 k64 u128 tb1",
    "matmul n70 h3 m8 k4 u8 both1 tb1",
    "matmul n1 h1 m64 k40 u24 both1",
    NULL,
};

const struct operation_test test_matmul = {
    .name = "matmul",
    .build = build,
    .cases = cases,
    .length = length,
};
