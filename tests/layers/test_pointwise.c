/* Operations that are generated.
 *
 * pointwise OPERATION1 n c [h w low high positive center width] a [b c_is] is   (OPERATION with a digit: OPERATION=1)
 *   Every line of the tables of layers/pointwise.h. The inputs are x and the mean of x over its last axis [.., 1];
 * those of where are x > mean, x, and a parameter of that axis's size. x lies within `width` of `center`: 3 of 0, or
 * with `positive` 1 of 1.25. For the inputs a, b and c_is the result is `is`, by PyTorch's definitions in Python's
 * math: what kernels are compared with is compiled from the table's line as well.
 *
 * comparison: the same for those without a gradient.
 *
 * special OPERATION1 n c a [b] is [da db constant]
 *   All elements of the inputs are a and b: points where the function or its gradient could be undefined. The
 * derivatives by them are da and db, by PyTorch's definitions. With `constant`, b has no gradient, which would be NaN.
 *
 * step OPERATION1 n c a [b nan] is
 *   As `special`, for operations without a gradient. With `nan`, a is NaN.
 *
 * reduce KIND1 n c [h w axes keep zeros pairs]
 *   KIND is sum, mean, max, min or prod; axes are those of a sample, from 1 on, as digits. With `zeros`, the first
 * of each so many elements is 0, and in every other of these groups the next one, too. With `pairs`, each number stands
 * twice, so that there are two extremes.
 *
 * reduce_chain KIND1 n c [h w axes keep positive center width zeros masked]
 *   As `reduce`, for l1 (l1=1), l2, sum_square, log_sum and log_sum_exp. x is as in `pointwise`; with `zeros`,
 *   the first ones are 0, as many as the last axis has; with `masked`, every third one is -infinity.
 *
 * chain KIND1 n c h w: operations whose kernels become one.
 *   normal      (x - mean) / sqrt(softplus(mean of (x - mean)^2)), means over the last axis
 *   moved       x * transpose(tanh(2 transpose(x)))
 *   reshaped    mean over c of erf(reshape(x) - mean over h and w of x) */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "layers/layers.h"
#include "tests/layers/cases.h"

/* The table's line that a case names. */
static const struct pointwise *pointwise_of(const struct test_case *c)
{
#define POINTWISE_ENTRY(name, ...) operation_##name.pointwise,
    const struct pointwise *const all[] = { POINTWISE_TABLE(POINTWISE_ENTRY) & activations[ACTIVATION_RELU],
        &activations[ACTIVATION_CLIP], &activations[ACTIVATION_LEAKY_RELU], &activations[ACTIVATION_SIGMOID],
        &activations[ACTIVATION_TANH] };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (case_get(c, all[i]->name, 0)) return all[i];
    return NULL;
}

static double evaluate(const struct pointwise *pointwise, double a, double b, double c, const struct test_case *at)
{
    const double variables[POINTWISE_VARIABLES] = { [VARIABLE_A] = a, [VARIABLE_B] = b, [VARIABLE_C] = c };
    return pointwise->y.function(variables, case_get_real(at, "low", 0), case_get_real(at, "high", 0));
}

static double first_of(const struct test_case *c)
{
    return case_get(c, "nan", 0) ? NAN : case_get_real(c, "a", 0);
}

static double derivative(const struct pointwise *pointwise, int input, const struct test_case *at)
{
    const double a = first_of(at), b = case_get_real(at, "b", 0), y = evaluate(pointwise, a, b, 0, at);
    const double variables[POINTWISE_VARIABLES] = {
        [VARIABLE_A] = a, [VARIABLE_B] = b, [VARIABLE_Y] = y, [VARIABLE_G] = 1
    };
    return pointwise->derivatives[input].function(variables, case_get_real(at, "low", 0), case_get_real(at, "high", 0));
}

static int64_t width_of(const struct test_case *c)
{
    return case_get(c, "h", 0) ? case_get(c, "w", 1) : case_get(c, "c", 1);
}

static int64_t elements_of(const struct test_case *c)
{
    return case_get(c, "n", 1) * case_get(c, "c", 1) * case_get(c, "h", 1) * case_get(c, "w", 1);
}

static tutti_tensor input(tutti_network *network, const struct test_case *c)
{
    const int64_t channels = case_get(c, "c", 1), h = case_get(c, "h", 0), w = case_get(c, "w", 1);
    return tutti_input(network, "x", h ? TUTTI_SHAPE(channels, h, w) : TUTTI_SHAPE(channels));
}

static bool has_alpha(const struct pointwise *pointwise)
{
    return pointwise == operation_elu.pointwise || pointwise == operation_celu.pointwise ||
        pointwise == operation_thresholded_relu.pointwise || pointwise == operation_swish.pointwise ||
        pointwise == operation_swiglu.pointwise || pointwise == &activations[ACTIVATION_LEAKY_RELU];
}

static tutti_tensor build(tutti_network *network, const struct test_case *c)
{
    const struct pointwise *pointwise = pointwise_of(c);
    char attributes[64] = "";
    if (has_alpha(pointwise)) snprintf(attributes, sizeof attributes, "alpha=%g", case_get_real(c, "low", 0));
    if (pointwise == operation_scale.pointwise)
        snprintf(attributes, sizeof attributes, "factor=%g", case_get_real(c, "low", 0));
    if (pointwise == operation_shift.pointwise)
        snprintf(attributes, sizeof attributes, "by=%g", case_get_real(c, "low", 0));
    if (pointwise == operation_power.pointwise)
        snprintf(attributes, sizeof attributes, "exponent=%g", case_get_real(c, "low", 0));
    if (pointwise == &activations[ACTIVATION_CLIP])
        snprintf(
            attributes, sizeof attributes, "min=%g max=%g", case_get_real(c, "low", 0), case_get_real(c, "high", 0));
    const tutti_tensor x = input(network, c);
    tutti_tensor inputs[POINTWISE_INPUTS] = { x };
    if (pointwise->inputs > 1) inputs[1] = tutti_op(network, "reduce_mean", &x, 1, "axes=-1");
    if (pointwise->inputs > 2) { /* where */
        inputs[0] = tutti_op(network, "greater", inputs, 2, NULL);
        inputs[1] = x;
        inputs[2] = tutti_parameter(network, "weight", TUTTI_SHAPE(width_of(c)), NULL);
    }
    return tutti_op(network, pointwise->name, inputs, pointwise->inputs, attributes);
}

static void check(const struct test_case *c, struct text *problems)
{
    const double is = case_get_real(c, "is", NAN),
                 got = evaluate(pointwise_of(c), first_of(c), case_get_real(c, "b", 0), case_get_real(c, "c_is", 0), c);
    if (!(fabs(got - is) < 1e-8)) text_append(problems, "  the table's line gives %.9g, not %.9g\n", got, is);
    for (int i = 0; i < 2; i++) {
        const double of = derivative(pointwise_of(c), i, c), must = case_get_real(c, i ? "db" : "da", NAN);
        if (!isnan(must) && !(fabs(of - must) < 1e-8))
            text_append(problems, "  the derivative %d is %.9g, not %.9g\n", i, of, must);
    }
}

static void reference(
    const struct test_case *c, const double *const *inputs, const double *const *parameters, double *y)
{
    const struct pointwise *pointwise = pointwise_of(c);
    const int64_t width = width_of(c);
    for (int64_t i = 0; i < elements_of(c); i++) {
        double mean = 0;
        for (int64_t k = 0; k < width; k++) mean += inputs[0][i / width * width + k] / (double)width;
        const double x = inputs[0][i], first = pointwise->inputs > 2 ? x > mean : x;
        const double third = pointwise->inputs > 2 ? parameters[0][i % width] : 0;
        y[i] = evaluate(pointwise, first, pointwise->inputs > 2 ? x : mean, third, c);
    }
}

static void fill(const struct test_case *c, float *input, int64_t count)
{
    const bool positive = case_get(c, "positive", 0);
    const float center = (float)case_get_real(c, "center", positive ? 1.25 : 0);
    const float width = (float)case_get_real(c, "width", positive ? 1 : 3);
    for (int64_t i = 0; i < count; i++) input[i] = center + width * test_real(1, i);
}

static const char *const cases[] = {
    /* One for each line of the tables with a gradient ... */
    "pointwise add1 n3 c7 a1.5 b-0.25 is1.25",
    "pointwise mul1 n3 c7 a1.5 b-0.25 is-0.375",
    "pointwise copy1 n3 c7 a1.5 is1.5",
    "pointwise scale1 n3 c7 low-1.5 a2 is-3",
    "pointwise swish1 n3 c37 low0.5 a2 is1.462117157 da0.927670512",
    "pointwise swiglu1 n3 c37 low0.5 a2 b3 is4.386351472 da2.783011536 db1.462117157",
    "pointwise shift1 n3 c7 low-1.5 a2 is0.5 da1",
    "pointwise power1 n3 c37 low-0.5 positive1 a4 is0.5 da-0.0625",
    "pointwise sub1 n3 c7 a1.5 b-0.25 is1.75",
    "pointwise div1 n3 c7 positive1 a1.5 b-0.25 is-6",
    "pointwise max1 n3 c7 a1.5 b-0.25 is1.5",
    "pointwise min1 n3 c7 a1.5 b-0.25 is-0.25",
    "pointwise pow1 n3 c37 positive1 a1.5 b-0.25 is0.903602004",
    "pointwise mod1 n3 c7 a-7.5 b2 is0.5",
    "pointwise fmod1 n3 c7 a-7.5 b2 is-1.5",
    "pointwise where1 n3 c7 a1 b-0.25 is-0.25",
    "pointwise neg1 n3 c7 a1.5 is-1.5",
    "pointwise abs1 n3 c7 a-1.5 is1.5",
    "pointwise square1 n3 c7 a-1.5 is2.25",
    "pointwise sqrt1 n3 c7 positive1 a2.25 is1.5",
    "pointwise reciprocal1 n3 c7 positive1 a-0.8 is-1.25",
    "pointwise exp1 n3 c37 a-0.7 is0.496585304",
    "pointwise log1 n3 c7 positive1 a0.7 is-0.356674944",
    "pointwise erf1 n3 c37 a0.7 is0.677801194",
    "pointwise sin1 n3 c37 width40 a-0.7 is-0.644217687",
    "pointwise cos1 n3 c37 width40 a-0.7 is0.764842187",
    "pointwise tan1 n3 c37 width1.25 a-0.7 is-0.84228838",
    "pointwise asin1 n3 c37 width0.9375 a-0.7 is-0.775397497",
    "pointwise acos1 n3 c37 width0.9375 a-0.7 is2.34619382",
    "pointwise atan1 n3 c37 a-0.7 is-0.610725964",
    "pointwise sinh1 n3 c37 a-0.7 is-0.758583702",
    "pointwise cosh1 n3 c37 a-0.7 is1.25516901",
    "pointwise asinh1 n3 c37 a-0.7 is-0.652666566",
    "pointwise acosh1 n3 c37 center2.5 width1.25 a1.7 is1.12323098",
    "pointwise atanh1 n3 c37 width0.9375 a-0.7 is-0.867300528",
    "pointwise softplus1 n3 c37 a-0.7 is0.403186049",
    "pointwise silu1 n3 c37 a-0.7 is-0.232268559",
    "pointwise gelu1 n3 c37 a-0.7 is-0.169374556",
    "pointwise gelu_tanh1 n3 c37 width9 a-0.7 is-0.169429865",
    "pointwise mish1 n3 c37 width9 a-0.7 is-0.267870235",
    "pointwise softsign1 n3 c37 a-0.7 is-0.411764706",
    "pointwise elu1 n3 c37 low0.75 a-0.7 is-0.377561022",
    "pointwise celu1 n3 c37 low0.75 a-0.7 is-0.455069459",
    "pointwise selu1 n3 c37 a-0.7 is-0.885053046",
    "pointwise prelu1 n3 c7 a-0.7 b0.25 is-0.175",
    "pointwise prelu1 n2 c5 h3 w19 a0.7 b0.25 is0.7",
    "pointwise thresholded_relu1 n3 c37 low0.75 a0.7 is0",
    "pointwise hard_sigmoid1 n3 c37 a-0.7 is0.383333333",
    "pointwise hard_swish1 n3 c37 a-0.7 is-0.268333333",
    "pointwise relu1 n3 c7 a-0.7 is0",
    "pointwise clip1 n3 c37 low-0.5 high2 a-0.7 is-0.5",
    "pointwise leaky_relu1 n3 c7 low0.25 a-0.7 is-0.175",
    "pointwise sigmoid1 n3 c37 a-0.7 is0.331812228",
    "pointwise tanh1 n3 c37 a-0.7 is-0.604367777",
    /* ... and shapes that are broadcast along every axis. */
    "pointwise mul1 n2 c5 h3 w19 a2 b3 is6",
    "pointwise div1 n2 c16 h5 w33 positive1 a6 b3 is2",
    "pointwise where1 n2 c3 h4 w17 a0 b3 c_is4 is4",
    "pointwise sub1 n70 c130 a3 b2 is1",
    "pointwise mul1 n1 c1 a2 b3 is6",
    "pointwise silu1 n2 c16 h5 w33 a0 is0",
    NULL,
};

/* The mean is stored so. Where it is a factor, the means of all rows are alike: limits are those of the whole tensor.
 */
static const char *const bf16_cases[] = {
    "pointwise sub1 n2 c5 h3 w19 a3 b2 is1",
    "pointwise mul1 n70 c130 positive1 a2 b3 is6",
    NULL,
};

static const struct operation_test test_pointwise = {
    .name = "pointwise",
    .bf16_cases = bf16_cases,
    .build = build,
    .check = check,
    .reference = reference,
    .cases = cases,
    .tolerance = TOLERANCE_FUNCTION,
    .fill = fill,
};

static const char *const comparisons[] = {
    "comparison equal1 n200 c2 a1.5 b1.5 is1",
    "comparison greater1 n2 c3 h2 w16 a1.5 b1.5 is0",
    "comparison less1 n3 c8 a1.5 b2 is1",
    "comparison greater_or_equal1 n200 c2 a1.5 b1.5 is1",
    "comparison less_or_equal1 n200 c2 a1.5 b1.5 is1",
    NULL,
};
static const struct operation_test test_comparison = {
    .name = "comparison",
    .build = build,
    .check = check,
    .reference = reference,
    .cases = comparisons,
    .no_gradient = true,
};

/* ------------------------------------------------------------------------------------------- special points ---- */

/* Whether b is in the input, after a. */
static bool has_b(const struct test_case *c)
{
    return pointwise_of(c)->inputs > 1 && !case_get(c, "constant", 0);
}

static tutti_tensor build_special(tutti_network *network, const struct test_case *c)
{
    const struct pointwise *pointwise = pointwise_of(c);
    const int64_t channels = case_get(c, "c", 1);
    const float b = (float)case_get_real(c, "b", 0);
    const tutti_tensor x = tutti_input(network, "x", TUTTI_SHAPE(has_b(c) ? 2 * channels : channels));
    tutti_tensor inputs[2] = { x };
    char text[64];
    if (has_b(c)) {
        snprintf(text, sizeof text, "starts=0 ends=%d", (int)channels);
        inputs[0] = tutti_op(network, "slice", &x, 1, text);
        snprintf(text, sizeof text, "starts=%d ends=%d", (int)channels, 2 * (int)channels);
        inputs[1] = tutti_op(network, "slice", &x, 1, text);
    } else if (pointwise->inputs > 1) {
        inputs[1] = tutti_constant(network, "b", TUTTI_SHAPE(1), &b);
    }
    snprintf(text, sizeof text, "exponent=%g", case_get_real(c, "low", 0));
    const bool power = pointwise == operation_power.pointwise;
    return tutti_op(network, pointwise->name, inputs, pointwise->inputs, power ? text : NULL);
}

static void fill_special(const struct test_case *c, float *input, int64_t count)
{
    const int64_t channels = case_get(c, "c", 1), size = has_b(c) ? 2 * channels : channels;
    for (int64_t i = 0; i < count; i++)
        input[i] = (float)(i % size < channels ? first_of(c) : case_get_real(c, "b", 0));
}

static const char *const specials[] = {
    "special max1 n2 c19 a1.5 b1.5 is1.5 da0.5 db0.5",
    "special max1 n2 c19 a1.5 b-2 is1.5 da1 db0",
    "special min1 n2 c19 a-1 b-1 is-1 da0.5 db0.5",
    "special power1 n2 c19 low0 a0 is1 da0", /* not 0 times infinity */
    "special power1 n2 c19 low1 a0 is0 da1",
    "special power1 n2 c19 low2 a0 is0 da0",
    "special pow1 n2 c19 a0 b0 is1 da0 db0",
    "special pow1 n2 c19 a0 b1 is0 da1 db0",
    "special pow1 n2 c19 a0 b2 is0 da0 db0",
    "special pow1 n2 c19 a-1.5 b3 is-3.375 da6.75 constant1",
    "special pow1 n2 c19 a-1.5 b-2 is0.444444444 da0.592592593 constant1",
    "special pow1 n2 c19 a-1.5 b0 is1 da0 constant1",
    "special mod1 n2 c19 a7.5 b-2 is-0.5 da1 db4",
    "special mod1 n2 c19 a-7.5 b-2 is-1.5 da1 db-3",
    "special mod1 n2 c19 a6 b3 is0 da1 db-2",
    "special fmod1 n2 c19 a7.5 b-2 is1.5 da1 db3",
    "special fmod1 n2 c19 a-6 b3 is0 da1 db2",
    "special prelu1 n2 c19 a0 b0.25 is0 da0.25 db0",
    "special gelu_tanh1 n2 c19 a-80 is0 da0",
    "special gelu_tanh1 n2 c19 a80 is80 da1",
    "special mish1 n2 c19 a-800 is0 da0",
    "special mish1 n2 c19 a200 is200 da1",
    "special selu1 n2 c19 a0 is0 da1.7580993408",
    "special softsign1 n2 c19 a0 is0 da1",
    NULL,
};
static const struct operation_test test_special = {
    .name = "special",
    .build = build_special,
    .check = check,
    .cases = specials,
    .tolerance = TOLERANCE_FUNCTION,
    .fill = fill_special,
    .kinks = true,
};

static const char *const steps[] = {
    "step sign1 n2 c19 a-0.25 is-1",
    "step sign1 n2 c19 a0.25 is1",
    "step sign1 n2 c19 a0 is0",
    "step floor1 n2 c19 a-2.5 is-3",
    "step ceil1 n2 c19 a-2.5 is-2",
    "step trunc1 n2 c19 a-2.5 is-2",
    "step round1 n2 c19 a-2.5 is-2",
    "step round1 n2 c19 a0.5 is0",
    "step round1 n2 c19 a3.5 is4",
    "step round1 n2 c19 a-3.25 is-3",
    "step and1 n2 c19 a1 b0 is0",
    "step and1 n2 c19 a2 b-1 is1",
    "step or1 n2 c19 a0 b0 is0",
    "step or1 n2 c19 a0 b1 is1",
    "step xor1 n2 c19 a1 b-1 is0",
    "step xor1 n2 c19 a0 b1 is1",
    "step not1 n2 c19 a0 is1",
    "step not1 n2 c19 a-0.5 is0",
    "step is_nan1 n2 c19 nan1 is1",
    "step is_nan1 n2 c19 a1e999 is0",
    "step is_inf1 n2 c19 a-1e999 is1",
    "step is_inf1 n2 c19 nan1 is0",
    "step less_or_equal1 n2 c19 nan1 b0 is0",
    NULL,
};
static const struct operation_test test_step = {
    .name = "step",
    .build = build_special,
    .check = check,
    .cases = steps,
    .fill = fill_special,
    .no_gradient = true,
    .kinks = true,
};

/* ---------------------------------------------------------------------------------------------------- reduce ---- */

static bool is_joined(const struct test_case *c, int axis)
{
    for (int64_t axes = case_get(c, "axes", 0); axes; axes /= 10)
        if (axes % 10 == axis + 1) return true;
    return case_get(c, "axes", 0) == 0;
}

static const char *kind_of(const struct test_case *c)
{
    static const char *const names[] = { "reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_prod",
        "reduce_l1", "reduce_l2", "reduce_log_sum", "reduce_log_sum_exp", "reduce_sum_square" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (case_get(c, names[i] + strlen("reduce_"), 0)) return names[i];
    return NULL;
}

static tutti_tensor build_reduce(tutti_network *network, const struct test_case *c)
{
    const tutti_tensor x = input(network, c);
    char text[64] = "";
    const int rank = case_get(c, "h", 0) ? 3 : 1;
    for (int i = 0; i < rank; i++)
        if (is_joined(c, i) && case_get(c, "axes", 0))
            snprintf(text + strlen(text), sizeof text - strlen(text), "%s%d", *text ? "," : "axes=", i - rank);
    snprintf(text + strlen(text), sizeof text - strlen(text), " keepdims=%d", (int)case_get(c, "keep", 1));
    return tutti_op(network, kind_of(c), &x, 1, text);
}

/* element_of(): the number that a reduction joins for an element; result_of(): its result for the joined number. */
static double element_of(const struct test_case *c, double x)
{
    if (case_get(c, "l1", 0)) return fabs(x);
    if (case_get(c, "l2", 0) || case_get(c, "sum_square", 0)) return x * x;
    return case_get(c, "log_sum_exp", 0) ? exp(x) : x;
}

static double result_of(const struct test_case *c, double y, double share)
{
    if (case_get(c, "l2", 0)) return sqrt(y);
    if (case_get(c, "log_sum", 0) || case_get(c, "log_sum_exp", 0)) return log(y);
    return case_get(c, "mean", 0) ? y * share : y;
}

static void reference_reduce(
    const struct test_case *c, const double *const *inputs, const double *const *parameters, double *y)
{
    (void)parameters;
    const int64_t sizes[] = { case_get(c, "n", 1), case_get(c, "c", 1), case_get(c, "h", 1), case_get(c, "w", 1) };
    const bool max = case_get(c, "max", 0), min = case_get(c, "min", 0), prod = case_get(c, "prod", 0);
    int64_t strides[4] = { 0 }, kept = 1;
    for (int i = 3; i >= 0; i--) {
        if (i > 0 && is_joined(c, i - 1)) continue;
        strides[i] = kept;
        kept *= sizes[i];
    }
    for (int64_t i = 0; i < kept; i++) y[i] = max ? -INFINITY : min ? INFINITY : prod;
    for (int64_t i = 0; i < elements_of(c); i++) {
        int64_t at = 0, rest = i;
        for (int k = 3; k >= 0; k--) at += rest % sizes[k] * strides[k], rest /= sizes[k];
        const double x = element_of(c, inputs[0][i]);
        y[at] = max ? fmax(y[at], x) : min ? fmin(y[at], x) : prod ? y[at] * x : y[at] + x;
    }
    for (int64_t i = 0; i < kept; i++) y[i] = result_of(c, y[i], (double)kept / (double)elements_of(c));
}

/* Factors are near 1 and -1. */
static void fill_reduce(const struct test_case *c, float *input, int64_t count)
{
    const int64_t zeros = case_get(c, "zeros", 0), each = case_get(c, "pairs", 0) ? 2 : 1;
    for (int64_t i = 0; i < count; i++) {
        const float real = test_real(1, i / each);
        const bool zero = zeros && (i % zeros == 0 || i % (2 * zeros) == 1);
        input[i] = zero ? 0 : case_get(c, "prod", 0) ? real / 4 + (i % 3 ? 1 : -1) : real;
    }
}

static const char *const reductions[] = {
    "reduce sum1 n3 c7",
    "reduce mean1 n2 c5 h3 w19 axes3 keep0",
    "reduce max1 n2 c5 h3 w19 axes3",
    "reduce sum1 n2 c5 h3 w19 axes1",
    "reduce mean1 n2 c5 h6 w40 axes2 keep0",
    "reduce sum1 n2 c5 h3 w19 axes13",
    "reduce max1 n2 c5 h3 w2 axes23 keep0",
    "reduce mean1 n2 c6 h70 w90",
    "reduce sum1 n1 c3 h700 w20 axes2",
    "reduce max1 n2 c3 h2 w70 axes1",
    "reduce sum1 n1 c1",
    "reduce min1 n2 c5 h3 w19 axes3",
    "reduce min1 n2 c3 h2 w70 axes1 keep0",
    "reduce min1 n3 c18 pairs1",
    "reduce max1 n3 c18 pairs1",
    "reduce min1 n1 c3 h20 w20 axes2",
    "reduce prod1 n2 c5 h3 w19 axes3",
    "reduce prod1 n2 c5 h3 w19 axes1 keep0",
    "reduce prod1 n2 c5 h3 w19 axes3 zeros60",
    "reduce prod1 n1 c2 h300 w20 axes2",
    NULL,
};
static const struct operation_test test_reduce = {
    .name = "reduce",
    .build = build_reduce,
    .reference = reference_reduce,
    .cases = reductions,
    .tolerance = TOLERANCE_SUM,
    .fill = fill_reduce,
};

static void fill_reduce_chain(const struct test_case *c, float *input, int64_t count)
{
    fill(c, input, count);
    if (case_get(c, "zeros", 0)) memset(input, 0, (size_t)width_of(c) * sizeof *input);
    for (int64_t i = 0; i < count && case_get(c, "masked", 0); i += 3) input[i] = -INFINITY;
}

static const char *const reduction_chains[] = {
    "reduce_chain l1=1 n2 c5 h3 w19 axes3",
    "reduce_chain l1=1 n3 c37 zeros1",
    "reduce_chain l2=1 n2 c5 h3 w19 axes3 keep0 zeros1",
    "reduce_chain l2=1 n2 c5 h3 w19 axes1",
    "reduce_chain sum_square1 n2 c5 h3 w19 axes2 keep0",
    "reduce_chain log_sum1 n2 c5 h3 w19 axes3 positive1",
    "reduce_chain log_sum_exp1 n2 c5 h3 w19 axes3 keep0",
    "reduce_chain log_sum_exp1 n2 c5 h3 w19 axes1 center200 width8",
    "reduce_chain log_sum_exp1 n3 c37 center-200 width8",
    "reduce_chain log_sum_exp1 n3 c37 masked1",
    NULL,
};
static const struct operation_test test_reduce_chain = {
    .name = "reduce_chain",
    .build = build_reduce,
    .reference = reference_reduce,
    .cases = reduction_chains,
    .tolerance = TOLERANCE_FUNCTION,
    .fill = fill_reduce_chain,
};

/* ----------------------------------------------------------------------------------------------------- chain ---- */

static tutti_tensor build_normal(tutti_network *network, tutti_tensor x)
{
    const tutti_tensor mean = tutti_op(network, "reduce_mean", &x, 1, "axes=-1");
    const tutti_tensor difference = tutti_op(network, "sub", (tutti_tensor[]) { x, mean }, 2, NULL);
    const tutti_tensor square = tutti_op(network, "square", &difference, 1, NULL);
    tutti_tensor deviation = tutti_op(network, "reduce_mean", &square, 1, "axes=-1");
    deviation = tutti_op(network, "softplus", &deviation, 1, NULL);
    deviation = tutti_op(network, "sqrt", &deviation, 1, NULL);
    return tutti_op(network, "div", (tutti_tensor[]) { difference, deviation }, 2, NULL);
}

static tutti_tensor build_moved(tutti_network *network, tutti_tensor x)
{
    tutti_tensor y = tutti_op(network, "transpose", &x, 1, "perm=2,0,1");
    y = tutti_op(network, "scale", &y, 1, "factor=2");
    y = tutti_op(network, "tanh", &y, 1, NULL);
    y = tutti_op(network, "transpose", &y, 1, "perm=1,2,0");
    return tutti_op(network, "mul", (tutti_tensor[]) { x, y }, 2, NULL);
}

static tutti_tensor build_reshaped(tutti_network *network, tutti_tensor x, const struct test_case *c)
{
    const int channels = (int)case_get(c, "c", 1), pixels = (int)(case_get(c, "h", 1) * case_get(c, "w", 1));
    char shape[64];
    snprintf(shape, sizeof shape, "shape=%d,%d", channels, pixels);
    const tutti_tensor rows = tutti_op(network, "reshape", &x, 1, shape);
    tutti_tensor mean = tutti_op(network, "reduce_mean", &x, 1, "axes=1,2 keepdims=0");
    snprintf(shape, sizeof shape, "shape=%d,1", channels);
    mean = tutti_op(network, "reshape", &mean, 1, shape);
    tutti_tensor y = tutti_op(network, "sub", (tutti_tensor[]) { rows, mean }, 2, NULL);
    y = tutti_op(network, "erf", &y, 1, NULL);
    return tutti_op(network, "reduce_mean", &y, 1, "axes=0");
}

static tutti_tensor build_chain(tutti_network *network, const struct test_case *c)
{
    const tutti_tensor x = input(network, c);
    if (case_get(c, "normal", 0)) return build_normal(network, x);
    return case_get(c, "moved", 0) ? build_moved(network, x) : build_reshaped(network, x, c);
}

static double mean_of(const double *x, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += x[i];
    return sum / (double)count;
}

static void reference_normal(const struct test_case *c, const double *x, double *y)
{
    const int64_t width = width_of(c);
    for (int64_t row = 0; row < elements_of(c) / width; row++, x += width, y += width) {
        const double mean = mean_of(x, width);
        double squares = 0;
        for (int64_t i = 0; i < width; i++) squares += (x[i] - mean) * (x[i] - mean);
        for (int64_t i = 0; i < width; i++) y[i] = (x[i] - mean) / sqrt(log1p(exp(squares / (double)width)));
    }
}

static void reference_reshaped(const struct test_case *c, const double *x, double *y)
{
    const int64_t channels = case_get(c, "c", 1), pixels = case_get(c, "h", 1) * case_get(c, "w", 1);
    memset(y, 0, (size_t)(case_get(c, "n", 1) * pixels) * sizeof *y);
    for (int64_t n = 0; n < case_get(c, "n", 1); n++, y += pixels)
        for (int64_t k = 0; k < channels; k++, x += pixels) {
            const double mean = mean_of(x, pixels);
            for (int64_t i = 0; i < pixels; i++) y[i] += erf(x[i] - mean) / (double)channels;
        }
}

static void reference_chain(
    const struct test_case *c, const double *const *inputs, const double *const *parameters, double *y)
{
    (void)parameters;
    const double *x = inputs[0];
    if (case_get(c, "normal", 0)) {
        reference_normal(c, x, y);
    } else if (case_get(c, "moved", 0)) {
        for (int64_t i = 0; i < elements_of(c); i++) y[i] = x[i] * tanh(2 * x[i]);
    } else {
        reference_reshaped(c, x, y);
    }
}

static const char *const chains[] = {
    "chain normal1 n3 c5 h3 w37",
    "chain normal1 n70 c130",
    "chain moved1 n2 c3 h5 w19",
    "chain moved1 n2 c16 h4 w4",
    "chain reshaped1 n3 c5 h3 w13",
    "chain reshaped1 n2 c33 h1 w70",
    NULL,
};
/* Not `moved`: where tanh is stored so, 1 - tanh^2 has hardly a digit. */
static const char *const bf16_chains[] = { "chain normal1 n3 c5 h3 w37", "chain reshaped1 n3 c5 h3 w13", NULL };
static const struct operation_test test_chain = {
    .name = "chain",
    .bf16_cases = bf16_chains,
    .build = build_chain,
    .reference = reference_chain,
    .cases = chains,
    .tolerance = TOLERANCE_FUNCTION,
    .fill = fill,
};

OPERATION_TESTS(test_pointwise, &test_pointwise, &test_comparison, &test_special, &test_step, &test_reduce,
    &test_reduce_chain, &test_chain)
