/* batch_norm n c [h w] [conv depthwise nobias act low high residual two then offset]
 *   h absent  features instead of images
 *   conv      a convolution 1x1 (or a dense layer) with that many outputs comes before: inference folds
 *   depthwise a depthwise convolution 3x3 comes before
 *   then      1: a depthwise convolution 3x3 comes behind, else one 1x1 with that many outputs: the gradient of the
 *             output arrives through its data gradient
 *   residual  1: the input, 2: leaky relu of the input is added to the output. With 2 the addition and the activation
 * are fused forward, and backward the mask and the gradient of the addition's other branch two       a second
 * normalisation of the same input is added, so that gradients are added where they are made offset    added to every
 * input: statistics must not cancel fold_batch_norm: the same, forward only: the gradient of a bias before a
 * normalisation is zero but for rounding */
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "tests/layers/cases.h"

#define EPSILON 1e-3
static const double slope = 0.25;

struct sizes {
    int64_t n, in, c, pixels, h, w;
};

static struct sizes sizes_of(const struct test_case *c)
{
    struct sizes z = { .n = case_get(c, "n", 1), .in = case_get(c, "c", 1), .h = case_get(c, "h", 0) };
    z.w = case_get(c, "w", z.h);
    z.pixels = z.h ? z.h * z.w : 1;
    z.c = case_get(c, "conv", z.in);
    return z;
}

static tutti_tensor build(tutti_network *network, const struct test_case *c)
{
    struct sizes z = sizes_of(c);
    bool no_bias = case_get(c, "nobias", 0);
    tutti_tensor x = tutti_input(network, "x", z.h ? TUTTI_SHAPE(z.in, z.h, z.w) : TUTTI_SHAPE(z.in));
    if (case_get(c, "conv", 0) && z.h)
        x = tutti_conv2d(network, x, z.c, 1, &(tutti_conv2d_options) { .no_bias = no_bias });
    if (case_get(c, "conv", 0) && !z.h) x = tutti_dense(network, x, z.c, &(tutti_dense_options) { .no_bias = no_bias });
    if (case_get(c, "depthwise", 0))
        x = tutti_conv2d(
            network, x, z.c, 3, &(tutti_conv2d_options) { .padding = 1, .groups = z.c, .no_bias = no_bias });
    tutti_batch_norm_options options = { .epsilon = (float)EPSILON, .momentum = 0.25f };
    tutti_tensor other = case_get(c, "residual", 0) == 2 ? tutti_leaky_relu(network, x, (float)slope) : x;
    tutti_tensor y = tutti_batch_norm(network, x, &options);
    if (case_get(c, "residual", 0)) y = tutti_add(network, y, other);
    if (case_get(c, "two", 0)) y = tutti_add(network, y, tutti_batch_norm(network, x, &options));
    y = test_activation(network, c, y);
    int64_t then = case_get(c, "then", 0);
    if (then == 1)
        y = tutti_conv2d(network, y, z.c, 3, &(tutti_conv2d_options) { .padding = 1, .groups = z.c, .no_bias = true });
    if (then > 1) y = tutti_conv2d(network, y, then, 1, &(tutti_conv2d_options) { .no_bias = true });
    return y;
}

static double at(const struct sizes *z, const double *x, int64_t c, int64_t position)
{
    return x[(position / z->pixels * z->c + c) * z->pixels + position % z->pixels];
}

static void moments(const struct sizes *z, const double *x, int64_t c, double *mean, double *var)
{
    double s = 0, q = 0, count = (double)(z->n * z->pixels);
    for (int64_t p = 0; p < z->n * z->pixels; p++) s += at(z, x, c, p);
    *mean = s / count;
    for (int64_t p = 0; p < z->n * z->pixels; p++) q += (at(z, x, c, p) - *mean) * (at(z, x, c, p) - *mean);
    *var = q / count;
}

/* Pixel p of plane `plane` of a depthwise convolution 3x3 with padding 1. */
static double depthwise(const struct sizes *z, const double *x, const double *w, int64_t plane, int64_t p)
{
    double sum = 0;
    for (int64_t tap = 0; tap < 9; tap++) {
        int64_t row = p / z->w + tap / 3 - 1, column = p % z->w + tap % 3 - 1;
        if (row < 0 || row >= z->h || column < 0 || column >= z->w) continue;
        sum += w[plane % z->c * 9 + tap] * x[plane * z->pixels + row * z->w + column];
    }
    return sum;
}

/* The layer before, if there is one: its result, which the caller frees; *parameters moves to those of the
 * normalisation. */
static double *layer_before(
    const struct test_case *c, const struct sizes *z, const double *x, const double *const **parameters)
{
    double *y = memory_new((size_t)(z->n * z->c * z->pixels), sizeof *y);
    const double *w = (*parameters)[0], *bias = case_get(c, "nobias", 0) ? NULL : (*parameters)[1];
    bool apart = case_get(c, "depthwise", 0);
    if (!apart && !case_get(c, "conv", 0)) {
        for (int64_t i = 0; i < z->n * z->c * z->pixels; i++) y[i] = x[i];
        return y;
    }
    for (int64_t i = 0; i < z->n * z->c * z->pixels; i++) {
        int64_t n = i / (z->c * z->pixels), k = i / z->pixels % z->c, p = i % z->pixels;
        y[i] = bias ? bias[k] : 0;
        if (apart) y[i] += depthwise(z, x, w, n * z->c + k, p);
        for (int64_t j = 0; !apart && j < z->in; j++) y[i] += w[k * z->in + j] * x[(n * z->in + j) * z->pixels + p];
    }
    *parameters += bias ? 2 : 1;
    return y;
}

/* Adds the normalised x to y. parameters: weight, bias, running mean and variance. */
static void add_normalised(
    const struct test_case *c, const struct sizes *z, const double *x, const double *const *parameters, double *y)
{
    for (int64_t k = 0; k < z->c; k++) {
        double mean = parameters[2][k], var = parameters[3][k];
        if (c->training) moments(z, x, k, &mean, &var);
        double a = parameters[0][k] / sqrt(var + EPSILON);
        for (int64_t n = 0; n < z->n; n++)
            for (int64_t p = 0; p < z->pixels; p++) {
                int64_t i = (n * z->c + k) * z->pixels + p;
                y[i] += (x[i] - mean) * a + parameters[1][k];
            }
    }
}

/* y = the convolution behind of x. */
static void convolve(const struct test_case *c, const struct sizes *z, const double *x, const double *w, double *y)
{
    int64_t then = case_get(c, "then", 0), outputs = then == 1 ? z->c : then;
    for (int64_t i = 0; i < z->n * outputs * z->pixels; i++) {
        int64_t plane = i / z->pixels, n = plane / outputs, k = plane % outputs, p = i % z->pixels;
        y[i] = then == 1 ? depthwise(z, x, w, plane, p) : 0;
        for (int64_t j = 0; then > 1 && j < z->c; j++) y[i] += w[k * z->c + j] * x[(n * z->c + j) * z->pixels + p];
    }
}

static void reference(
    const struct test_case *c, const double *const *inputs, const double *const *parameters, double *y)
{
    struct sizes z = sizes_of(c);
    double *x = layer_before(c, &z, inputs[0], &parameters), *output = y;
    bool then = case_get(c, "then", 0);
    if (then) y = memory_new((size_t)(z.n * z.c * z.pixels), sizeof *y);
    int64_t residual = case_get(c, "residual", 0);
    for (int64_t i = 0; i < z.n * z.c * z.pixels; i++)
        y[i] = residual == 0 ? 0 : residual == 2 && x[i] < 0 ? slope * x[i] : x[i];
    add_normalised(c, &z, x, parameters, y);
    if (case_get(c, "two", 0)) add_normalised(c, &z, x, parameters + 4, y);
    for (int64_t i = 0; i < z.n * z.c * z.pixels; i++) y[i] = test_activate(c, y[i]);
    if (then) {
        convolve(c, &z, y, parameters[4], output);
        free(y);
    }
    free(x);
}

/* The batch's mean and unbiased variance, weighted by its part of the whole batch. */
static void statistic(
    const struct test_case *c, const double *const *inputs, const double *const *parameters, int p, double *expected)
{
    struct sizes z = sizes_of(c);
    const double *const *own = parameters;
    double *x = layer_before(c, &z, inputs[0], &own);
    bool variance = (p - (int)(own - parameters)) % 4 == 3;
    double count = (double)(z.n * z.pixels), weight = (double)z.n * (double)c->constants.loss_scale;
    for (int64_t k = 0; k < z.c; k++) {
        double mean, var;
        moments(&z, x, k, &mean, &var);
        expected[k] = weight * (variance ? var * count / (count > 1 ? count - 1 : 1) : mean);
    }
    free(x);
}

static void fill(const struct test_case *c, float *input, int64_t count)
{
    for (int64_t i = 0; i < count; i++) input[i] = test_real(1, i) + (float)case_get_real(c, "offset", 0);
}

static int64_t length(const struct test_case *c)
{
    struct sizes z = sizes_of(c);
    return z.n * z.pixels + z.in;
}

static const char *const cases[] = {
    "batch_norm n4 c3 h5 w7",
    "batch_norm n2 c1 h3",
    "batch_norm n1 c16 h9 w5 act1",
    "batch_norm n3 c17 h6 w4 act1",
    "batch_norm n2 c32 h7 act2 low-0.5 high0.75",
    "batch_norm n2 c5 h6 act2 low0.25 high1.5",
    "batch_norm n2 c5 h6 act2 low-inf high0.75",
    "batch_norm n2 c20 h5 w6 residual1 act1",
    "batch_norm n3 c16 h8 w7 residual1 act1",
    "batch_norm n2 c6 h4 w5 residual1 act2 low-0.5 high0.75",
    "batch_norm n2 c18 h5 residual1",
    "batch_norm n2 c20 h5 w6 residual2 act1",
    "batch_norm n3 c16 h8 w7 residual2 act1",
    "batch_norm n2 c6 h4 w5 residual2 act2 low-0.5 high0.75",
    "batch_norm n1 c5 h30 w27 residual2 act1",
    "batch_norm n6 c32 residual2 act1",
    "batch_norm n2 c12 h5 w4 two1",
    "batch_norm n2 c33 h4 w5 two1 act3 low0.25",
    "batch_norm n2 c7 h5 act4",
    "batch_norm n2 c19 h5 act5",
    "batch_norm n16 c3 h1",
    "batch_norm n9 c40 h1 act1",
    "batch_norm n3 c4 h33 w31 act1",
    "batch_norm n1 c3 h67 w61",
    "batch_norm n4 c8 h20 w19 residual1 act1",
    "batch_norm n2 c10 h8 w9 offset100",
    "batch_norm n8 c3",
    "batch_norm n7 c32 act1",
    "batch_norm n19 c50 act2 low-0.4 high0.65",
    "batch_norm n64 c16",
    "batch_norm n5 c48 residual1 act1",
    "batch_norm n2 c5 h6 conv7 nobias1",
    "batch_norm n3 c3 h5 w4 conv18 nobias1 act1",
    "batch_norm n3 c5 h23 w19 conv35 nobias1",
    "batch_norm n2 c5 h9 w6 conv17 nobias1 residual2 act1",
    "batch_norm n2 c8 h5 conv16 nobias1 two1",
    "batch_norm n3 c18 h7 w5 depthwise1 nobias1 act2 low0 high6",
    "batch_norm n2 c5 h31 w33 depthwise1 nobias1",
    "batch_norm n3 c18 h7 w5 act2 low-0.5 high0.75 then1",
    "batch_norm n2 c5 h13 w9 act1 then20",
    "batch_norm n3 c35 h9 w14 then7",
    "batch_norm n2 c20 h5 w6 act1 residual2 then1",
    "batch_norm n6 c9 conv20 nobias1",
    "batch_norm n6 c9 conv13 nobias1 act1",
    NULL,
};

const struct operation_test test_batch_norm = {
    .name = "batch_norm",
    .build = build,
    .reference = reference,
    .cases = cases,
    .tolerance = TOLERANCE_NORMALISED,
    .length = length,
    .inference = true,
    .fill = fill,
    .statistic = statistic,
};

static const char *const fold_cases[] = {
    "fold_batch_norm n2 c5 h6 conv7",
    "fold_batch_norm n2 c4 h6 conv16 act2 low0 high6",
    "fold_batch_norm n1 c17 h3 w5 conv33 act1",
    "fold_batch_norm n6 c9 conv20",
    "fold_batch_norm n2 c7 h16 w15 conv20 offset50",
    "fold_batch_norm n2 c20 h16 w15 depthwise1 offset50 act2 low0 high6",
    "fold_batch_norm n6 c9 conv16 act1",
    NULL,
};

const struct operation_test test_fold_batch_norm = {
    .name = "fold_batch_norm",
    .build = build,
    .reference = reference,
    .cases = fold_cases,
    .tolerance = TOLERANCE_NORMALISED,
    .length = length,
    .inference = true,
    .no_gradient = true,
};
