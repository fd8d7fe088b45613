/* Elementwise operations. A line of the table below defines an operation, its gradient and its kernels. */
#ifndef LAYERS_POINTWISE_H
#define LAYERS_POINTWISE_H

#include "graph/operation.h"

/* X(name, inputs, y, derivatives by a, b and c)
 *
 * a, b and c are the inputs, y is the output and g its gradient; low and high are attributes. An empty derivative is 0.
 * The text is compiled twice: as OpenCL C, with scalars and vectors (layers/loop_source.c), and as C in double
 * precision (layers/pointwise.c), for tests. It may use arithmetic and functions that exist in both languages. Four
 * more are defined for it: where(condition, x, y), larger(x, y), smaller(x, y) and sigmoid(x). Constants have no
 * suffix. Shapes are broadcast by numpy's rules. */
/* clang-format off */
#define POINTWISE_TABLE(X)                                                                                             \
    X(add, 2, a + b, g, g, )                                                                                           \
    X(mul, 2, a * b, g * b, g * a, )                                                                                   \
    X(copy, 1, a, g, , )                                                                                               \
    X(scale, 1, low * a, low * g, , )                                                                                  \
    X(shift, 1, a + low, g, , )                                                                                        \
    X(power, 1, pow(a, where(a != a, a, low)), where(low == 0, 0, g * low * pow(a, where(a != a, a, low - 1))), , )    \
    X(sub, 2, a - b, g, -g, )                                                                                          \
    X(div, 2, a / b, g / b, -g * y / b, )                                                                              \
    X(max, 2, larger(a, b), where(a < b, 0, where(a == b, 0.5 * g, g)),                                                \
        where(a > b, 0, where(a == b, 0.5 * g, g)), )                                                                  \
    X(min, 2, smaller(a, b), where(a > b, 0, where(a == b, 0.5 * g, g)),                                               \
        where(a < b, 0, where(a == b, 0.5 * g, g)), )                                                                  \
    X(pow, 2, pow(a, b), where(b == 0, 0, g * b * pow(a, b - 1)), where(a == 0 && b >= 0, 0, g * y * log(a)), )        \
    X(mod, 2, where(fmod(a, b) != 0 && (fmod(a, b) < 0) != (b < 0), fmod(a, b) + b, fmod(a, b)), g,                    \
        -g * rint((a - y) / b), )                                                                                      \
    X(fmod, 2, fmod(a, b), g, -g * rint((a - y) / b), )                                                                \
    X(equal, 2, where(a == b, 1, 0), , , )                                                                             \
    X(greater, 2, where(a > b, 1, 0), , , )                                                                            \
    X(less, 2, where(a < b, 1, 0), , , )                                                                               \
    X(greater_or_equal, 2, where(a >= b, 1, 0), , , )                                                                  \
    X(less_or_equal, 2, where(a <= b, 1, 0), , , )                                                                     \
    X(and, 2, where(a != 0 && b != 0, 1, 0), , , )                                                                     \
    X(or, 2, where(a != 0 || b != 0, 1, 0), , , )                                                                      \
    X(xor, 2, where((a != 0) != (b != 0), 1, 0), , , )                                                                 \
    X(not, 1, where(a == 0, 1, 0), , , )                                                                               \
    X(is_nan, 1, where(a != a, 1, 0), , , )                                                                            \
    X(is_inf, 1, where(fabs(a) == INFINITY, 1, 0), , , )                                                               \
    X(where, 3, where(a != 0, b, c), , where(a != 0, g, 0), where(a != 0, 0, g))                                       \
    X(neg, 1, -a, -g, , )                                                                                              \
    X(abs, 1, fabs(a), where(a > 0, g, where(a < 0, -g, 0)), , )                                                       \
    X(sign, 1, where(a > 0, 1, where(a < 0, -1, a)), , , )                                                             \
    X(floor, 1, floor(a), , , )                                                                                        \
    X(ceil, 1, ceil(a), , , )                                                                                          \
    X(trunc, 1, where(a < 0, ceil(a), floor(a)), , , )                                                                 \
    X(round, 1, rint(a), , , )                                                                                         \
    X(square, 1, a * a, 2 * a * g, , )                                                                                 \
    X(sqrt, 1, sqrt(a), 0.5 * g / y, , )                                                                               \
    X(reciprocal, 1, 1 / a, -g * y * y, , )                                                                            \
    X(exp, 1, exp(a), g * y, , )                                                                                       \
    X(log, 1, log(a), g / a, , )                                                                                       \
    X(erf, 1, erf(a), g * 1.1283791670955126 * exp(-a * a), , )                                                        \
    X(sin, 1, sin(a), g * cos(a), , )                                                                                  \
    X(cos, 1, cos(a), -g * sin(a), , )                                                                                 \
    X(tan, 1, tan(a), g * (1 + y * y), , )                                                                             \
    X(asin, 1, asin(a), g / sqrt((1 - a) * (1 + a)), , )                                                               \
    X(acos, 1, acos(a), -g / sqrt((1 - a) * (1 + a)), , )                                                              \
    X(atan, 1, atan(a), g / (1 + a * a), , )                                                                           \
    X(sinh, 1, sinh(a), g * cosh(a), , )                                                                               \
    X(cosh, 1, cosh(a), g * sinh(a), , )                                                                               \
    X(asinh, 1, asinh(a), g / sqrt(1 + a * a), , )                                                                     \
    X(acosh, 1, acosh(a), g / sqrt((a - 1) * (a + 1)), , )                                                             \
    X(atanh, 1, atanh(a), g / ((1 - a) * (1 + a)), , )                                                                 \
    X(softplus, 1, larger(a, 0) + log1p(exp(-fabs(a))), g * sigmoid(a), , )                                            \
    X(silu, 1, a * sigmoid(a), g * sigmoid(a) * (1 + a * (1 - sigmoid(a))), , )                                        \
    X(swish, 1, a * sigmoid(low * a), g * sigmoid(low * a) * (1 + low * a * (1 - sigmoid(low * a))), , )               \
    X(swiglu, 2, a * sigmoid(low * a) * b, g * b * sigmoid(low * a) * (1 + low * a * (1 - sigmoid(low * a))),          \
        g * a * sigmoid(low * a), )                                                                                    \
    X(gelu, 1, a / 2 * (1 + erf(a * 0.70710678)), g / 2 * (1 + erf(a * 0.70710678) + 0.79788456 * a * exp(-a*a/2)), , )\
    X(gelu_tanh, 1, a * sigmoid(a * (1.5957691216 + 0.0713548163 * a * a)),                                            \
        g * (sigmoid(a * (1.5957691216 + 0.0713548163 * a * a)) +                                                      \
            y * sigmoid(-a * (1.5957691216 + 0.0713548163 * a * a)) * (1.5957691216 + 0.2140644488 * a * a)), , )      \
    X(mish, 1, a * tanh(larger(a, 0) + log1p(exp(-fabs(a)))), g * (tanh(larger(a, 0) + log1p(exp(-fabs(a)))) +         \
        sigmoid(a) * (a - y * tanh(larger(a, 0) + log1p(exp(-fabs(a)))))), , )                                         \
    X(softsign, 1, a / (1 + fabs(a)), g / ((1 + fabs(a)) * (1 + fabs(a))), , )                                         \
    X(elu, 1, where(a > 0, a, low * (exp(a) - 1)), where(a > 0, g, g * (y + low)), , )                                 \
    X(celu, 1, where(a > 0, a, low * (exp(a / low) - 1)), where(a > 0, g, g * exp(a / low)), , )                       \
    X(selu, 1, where(a > 0, 1.0507009874 * a, 1.7580993408 * (exp(a) - 1)),                                            \
        where(a > 0, 1.0507009874 * g, g * (y + 1.7580993408)), , )                                                    \
    X(prelu, 2, where(a > 0, a, b * a), where(a > 0, g, b * g), where(a > 0, 0, a * g), )                              \
    X(thresholded_relu, 1, where(a <= low, 0, a), where(a <= low, 0, g), , )                                           \
    X(hard_sigmoid, 1, larger(smaller(a / 6 + 0.5, 1), 0), where(fabs(a) < 3, g / 6, 0), , )                           \
    X(hard_swish, 1, a * larger(smaller(a / 6 + 0.5, 1), 0), where(a <= -3, 0, where(a >= 3, g, g * (a / 3 + 0.5))), , )

/* The activations, of operation_activation: derivatives are functions of y, so that a fused activation needs no memory
 * of its input. They are in the order of enum activation, from ACTIVATION_RELU on. */
#define ACTIVATION_TABLE(X)                                                                                            \
    X(relu, 1, where(a < 0, 0, a), where(y <= 0, 0, g), , )                                                            \
    X(clip, 1, where(a < low, low, where(a > high, high, a)), where(y <= low, 0, where(y >= high, 0, g)), , )          \
    X(leaky_relu, 1, where(a < 0, low * a, a), where(y <= 0, low * g, g), , )                                          \
    X(sigmoid, 1, sigmoid(a), g * y * (1 - y), , )                                                                     \
    X(tanh, 1, tanh(a), g * (1 - y * y), , )

/* clang-format on */

enum { POINTWISE_INPUTS = 3, POINTWISE_VARIABLES = 5 };
/* The variables of an expression: the gradient of the output, the inputs, the output. */
enum pointwise_variable { VARIABLE_G, VARIABLE_A, VARIABLE_B, VARIABLE_C, VARIABLE_Y };

/* `variables` is indexed by enum pointwise_variable. */
typedef double pointwise_function(const double *variables, double low, double high);
/* An expression as text, and as a C function. The text of a derivative that is 0 is "". */
struct expression {
    const char *text;
    pointwise_function *function;
};
struct pointwise {
    const char *name;
    int inputs;
    struct expression y, derivatives[POINTWISE_INPUTS];
};
extern const struct pointwise activations[]; /* indexed by enum activation; the first entry is empty */

#define POINTWISE_DECLARE(name, ...) extern const struct operation operation_##name;
POINTWISE_TABLE(POINTWISE_DECLARE)
struct pointwise_attributes { /* of each */
    float low, high;
};
ATTRIBUTES(pointwise)
/* The gradient of one input, in the shape of the output. Inputs that the expression does not use are absent. */
struct pointwise_gradient_attributes {
    const struct expression *derivative;
    float low, high;
};
ATTRIBUTES(pointwise_gradient)
extern const struct operation operation_pointwise_gradient;
/* struct operation.loop, also of operation_activation and its gradient. */
void pointwise_loop(const struct problem *problem, struct loop *loop);

#endif
