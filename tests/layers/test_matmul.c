/* matmul n m k u [h ta tb left both one act]: y [m][u] = op(x) op(p), of a sample x [m][k] and a parameter p [k][u].
 *   h         samples have h matrices
 *   ta, tb    the first and the second input are stored transposed
 *   left      the parameter is the first input: y = op(p) op(x) of p [m][k] and x [k][u]
 *   both      the parameter's matrix is multiplied by the sum of each matrix of x before, so that both inputs have
 *             leading axes
 *   one       the parameter has an axis of size 1 before
 *   act       an activation follows (enum activation), which plans fuse */
#include <stdio.h>

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

static const struct operation_test test_matmul = {
    .name = "matmul",
    .build = build,
    .cases = cases,
    .length = length,
};

/* matmul_broadcast n m k u [a b ta tb both left va vb]: y = x p with numpy's broadcasting.
 *   a, b      sizes of the leading axes of x and of p, a digit each
 *   both      p is multiplied by the sum of the sample before, so that it has a batch
 *   left      y = p x
 *   va, vb    x or p is a vector */
static int digits(const struct test_case *c, const char *key, int64_t sizes[TUTTI_MAX_RANK])
{
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)case_get(c, key, 0));
    int count = 0;
    for (const char *at = text; *at && *text != '0'; at++) sizes[count++] = *at - '0';
    return count;
}

static tutti_shape with_leading(const struct test_case *c, const char *key, tutti_shape last, bool vector)
{
    tutti_shape shape = { 0 };
    shape.rank = digits(c, key, shape.sizes);
    for (int i = vector; i < 2; i++) shape.sizes[shape.rank++] = last.sizes[i];
    return shape;
}

static tutti_tensor build_broadcast(tutti_network *network, const struct test_case *c)
{
    const int64_t m = case_get(c, "m", 1), k = case_get(c, "k", 1), u = case_get(c, "u", 1);
    const bool ta = case_get(c, "ta", 0), tb = case_get(c, "tb", 0), left = case_get(c, "left", 0);
    const bool va = case_get(c, "va", 0), vb = case_get(c, "vb", 0);
    const tutti_shape of_x = with_leading(c, "a",
        left     ? matrix(k, u, tb)
            : va ? TUTTI_SHAPE(1, k)
                 : matrix(m, k, ta),
        va);
    const tutti_shape of_p = with_leading(c, "b",
        left     ? matrix(m, k, ta)
            : vb ? TUTTI_SHAPE(1, k)
                 : matrix(k, u, tb),
        vb);
    const tutti_tensor x = tutti_input(network, "x", of_x);
    tutti_tensor p = tutti_parameter(network, "p", of_p, NULL);
    if (case_get(c, "both", 0)) {
        const tutti_tensor sum = tutti_op(network, "reduce_sum", &x, 1, "keepdims=0");
        p = tutti_mul(network, sum, p);
    }
    return tutti_matmul(network, "product", left ? p : x, left ? x : p, ta, tb);
}

/* The position of matrix `index` of the result in an operand, whose leading axes are counted from the last one. */
static int64_t matrix_place(int64_t index, const int64_t *all, int count, const int64_t *own, int own_count)
{
    int64_t place = 0, stride = 1;
    for (int i = 0; i < count; i++) {
        const int64_t at = index % all[count - 1 - i];
        index /= all[count - 1 - i];
        if (i >= own_count) continue;
        const int64_t size = own[own_count - 1 - i];
        place += size == 1 ? 0 : at * stride;
        stride *= size;
    }
    return place;
}

static void reference_broadcast(
    const struct test_case *c, const double *const *inputs, const double *const *parameters, double *y)
{
    const int64_t k = case_get(c, "k", 1), m = case_get(c, "va", 0) ? 1 : case_get(c, "m", 1);
    const int64_t u = case_get(c, "vb", 0) ? 1 : case_get(c, "u", 1);
    const bool ta = case_get(c, "ta", 0), tb = case_get(c, "tb", 0), left = case_get(c, "left", 0);
    int64_t of_x[TUTTI_MAX_RANK], of_p[TUTTI_MAX_RANK], all[TUTTI_MAX_RANK], each = left ? k * u : m * k, count = 1;
    const int axes_x = digits(c, "a", of_x), axes_p = digits(c, "b", of_p), axes = axes_x > axes_p ? axes_x : axes_p;
    for (int i = 1; i <= axes; i++) {
        const int64_t one = i <= axes_x ? of_x[axes_x - i] : 1, other = i <= axes_p ? of_p[axes_p - i] : 1;
        count *= all[axes - i] = one > other ? one : other;
    }
    for (int i = 0; i < axes_x; i++) each *= of_x[i];
    for (int64_t n = 0; n < case_get(c, "n", 1); n++) {
        const double *x = inputs[0] + n * each;
        double factor = case_get(c, "both", 0) ? 0 : 1;
        for (int64_t i = 0; i < each && case_get(c, "both", 0); i++) factor += x[i];
        for (int64_t i = 0; i < count; i++) {
            const double *mine = x + matrix_place(i, all, axes, of_x, axes_x) * (left ? k * u : m * k);
            const double *other = parameters[0] + matrix_place(i, all, axes, of_p, axes_p) * (left ? m * k : k * u);
            const double *a = left ? other : mine, *b = left ? mine : other;
            for (int64_t e = 0; e < m * u; e++) {
                double sum = 0;
                for (int64_t j = 0; j < k; j++)
                    sum += a[ta ? j * m + e / u : e / u * k + j] * b[tb ? e % u * k + j : j * u + e % u];
                *y++ = sum * factor;
            }
        }
    }
}

static const char *const broadcast_cases[] = {
    "matmul_broadcast n2 m3 k5 u4 a3 b3",             /* a matrix of p for each one of a sample */
    "matmul_broadcast n3 m3 k5 u4 a23 b3",            /* numpy's missing axis */
    "matmul_broadcast n2 m3 k5 u4 a23 b13 tb1",       /* and one of size 1, */
    "matmul_broadcast n2 m3 k5 u7 a23 b21 both1",     /* whose products are one of more rows, */
    "matmul_broadcast n2 m3 k5 u4 a43 b11 both1 tb1", /* also with all axes, */
    "matmul_broadcast n2 m3 k5 u4 a23 b21 both1 ta1", /* but not if it is transposed */
    "matmul_broadcast n2 m3 k5 u4 a21 b13 left1 both1",
    "matmul_broadcast n1 m6 k17 u33 a3 b23 left1",
    "matmul_broadcast n1 m6 k17 u33 a3 b213",
    "matmul_broadcast n3 k5 u4 va1",
    "matmul_broadcast n3 k5 u4 va1 b2",
    "matmul_broadcast n3 m4 k5 vb1 a2",
    "matmul_broadcast n3 k5 va1 vb1",
    NULL,
};

static const struct operation_test test_matmul_broadcast = {
    .name = "matmul_broadcast",
    .build = build_broadcast,
    .reference = reference_broadcast,
    .cases = broadcast_cases,
};

OPERATION_TESTS(test_matmul, &test_matmul, &test_matmul_broadcast)
