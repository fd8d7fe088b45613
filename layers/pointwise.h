/* Elementwise operations. A line of the table below defines an operation, its gradient and its kernels. */
#ifndef LAYERS_POINTWISE_H
#define LAYERS_POINTWISE_H

#include "graph/operation.h"

/* X(name, onnx, inputs, text, attributes, y, derivatives by a, b and c)
 *
 * `onnx` is ONNX's operator: NONE if there is none that does the same with the same attributes, else ONNX() or one of
 * the other kinds of layers/schema/schema_elementwise.c. `text` is a line for readers. `attributes` are the names that
 * tutti_op() has for low and high, with defaults: NONE, LOW() or LOW_HIGH() (layers/schema/schema_elementwise.c). a, b
 * and c are the inputs, y is the output and g its gradient. An empty derivative is 0. The text is compiled twice: as
 * OpenCL C, with scalars and vectors (layers/loop/loop_source.c), and as C in double precision (layers/pointwise.c),
 * for the interpreter. It may use arithmetic and functions that exist in both languages. Four more are defined for it:
 * where(condition, x, y), larger(x, y), smaller(x, y) and sigmoid(x). Constants have no suffix. Shapes are broadcast by
 * numpy's rules. */
/* clang-format off */
#define POINTWISE_TABLE(X)                                                                                             \
    X(add, ONNX(Add), 2, "a + b", NONE, a + b, g, g, )                                                                 \
    X(mul, ONNX(Mul), 2, "a b", NONE, a * b, g * b, g * a, )                                                           \
    X(copy, ONNX(Identity), 1, "a", NONE, a, g, , )                                                                    \
    X(scale, NONE, 1, "factor a", LOW(factor, "1", "the factor"), low * a, low * g, , )                                \
    X(shift, NONE, 1, "a + by", LOW(by, "0", "the number to add"), a + low, g, , )                                     \
    X(power, NONE, 1, "a to the power of exponent", LOW(exponent, "1", "the exponent"),                                \
        pow(a, where(a != a, a, low)), where(low == 0, 0, g * low * pow(a, where(a != a, a, low - 1))), , )            \
    X(sub, ONNX(Sub), 2, "a - b", NONE, a - b, g, -g, )                                                                \
    X(div, ONNX(Div), 2, "a / b", NONE, a / b, g / b, -g * y / b, )                                                    \
    X(max, ONNX(Max), 2, "the larger of a and b; NaN if one is NaN; equal ones get half of the gradient each", NONE,   \
        larger(a, b), where(a < b, 0, where(a == b, 0.5 * g, g)),                                                      \
        where(a > b, 0, where(a == b, 0.5 * g, g)), )                                                                  \
    X(min, ONNX(Min), 2, "the smaller of a and b; NaN if one is NaN; equal ones get half of the gradient each", NONE,  \
        smaller(a, b), where(a > b, 0, where(a == b, 0.5 * g, g)),                                                     \
        where(a < b, 0, where(a == b, 0.5 * g, g)), )                                                                  \
    X(pow, ONNX(Pow), 2, "a to the power of b; of a < 0 where b is whole", NONE,                                       \
        pow(a, b), where(b == 0, 0, g * b * pow(a, b - 1)), where(a == 0 && b >= 0, 0, g * y * log(a)), )              \
    X(mod, NONE, 2, "the remainder of a / b with the sign of b", NONE,                                                 \
        where(fmod(a, b) != 0 && (fmod(a, b) < 0) != (b < 0), fmod(a, b) + b, fmod(a, b)), g,                          \
        -g * rint((a - y) / b), )                                                                                      \
    X(fmod, NONE, 2, "the remainder of a / b with the sign of a", NONE, fmod(a, b), g, -g * rint((a - y) / b), )       \
    X(equal, COMPARISON(Equal), 2, "1 where a = b, else 0; no gradient", NONE, where(a == b, 1, 0), , , )              \
    X(greater, COMPARISON(Greater), 2, "1 where a > b, else 0; no gradient", NONE, where(a > b, 1, 0), , , )           \
    X(less, COMPARISON(Less), 2, "1 where a < b, else 0; no gradient", NONE, where(a < b, 1, 0), , , )                 \
    X(greater_or_equal, COMPARISON(GreaterOrEqual), 2, "1 where a >= b, else 0; no gradient", NONE, where(a >= b, 1,   \
        0), , , )                                                                                                      \
    X(less_or_equal, COMPARISON(LessOrEqual), 2, "1 where a <= b, else 0; no gradient", NONE, where(a <= b, 1, 0), ,   \
        , )                                                                                                            \
    X(and, LOGIC(And), 2, "1 where neither a nor b is 0, else 0; no gradient", NONE, where(a != 0 && b != 0, 1, 0),    \
        , , )                                                                                                          \
    X(or, LOGIC(Or), 2, "1 where a or b is not 0, else 0; no gradient", NONE, where(a != 0 || b != 0, 1, 0), , , )     \
    X(xor, LOGIC(Xor), 2, "1 where exactly one of a and b is not 0, else 0; no gradient", NONE,                        \
        where((a != 0) != (b != 0), 1, 0), , , )                                                                       \
    X(not, LOGIC(Not), 1, "1 where a is 0, else 0; no gradient", NONE, where(a == 0, 1, 0), , , )                      \
    X(is_nan, COMPARISON(IsNaN), 1, "1 where a is NaN, else 0; no gradient", NONE, where(a != a, 1, 0), , , )          \
    X(is_inf, COMPARISON(IsInf), 1, "1 where a is infinite, else 0; no gradient", NONE, where(fabs(a) == INFINITY,     \
        1, 0), , , )                                                                                                   \
    X(where, NONE, 3, "b where a is not 0, else c", NONE, where(a != 0, b, c), , where(a != 0, g, 0), where(a != 0,    \
        0, g))                                                                                                         \
    X(neg, OVERFLOWING(Neg), 1, "-a", NONE, -a, -g, , )                                                                    \
    X(abs, OVERFLOWING(Abs), 1, "the absolute value of a", NONE, fabs(a), where(a > 0, g, where(a < 0, -g, 0)), , )        \
    X(sign, ONNX(Sign), 1, "-1, 0 or 1; no gradient", NONE, where(a > 0, 1, where(a < 0, -1, a)), , , )                \
    X(floor, ONNX(Floor), 1, "a rounded down; no gradient", NONE, floor(a), , , )                                      \
    X(ceil, ONNX(Ceil), 1, "a rounded up; no gradient", NONE, ceil(a), , , )                                           \
    X(trunc, NONE, 1, "a rounded towards 0; no gradient", NONE, where(a < 0, ceil(a), floor(a)), , , )                 \
    X(round, ONNX(Round), 1, "a rounded to the nearest whole number, the even one of two; no gradient", NONE,          \
        rint(a), , , )                                                                                                 \
    X(square, NONE, 1, "a a", NONE, a * a, 2 * a * g, , )                                                              \
    X(sqrt, ONNX(Sqrt), 1, "the square root of a", NONE, sqrt(a), 0.5 * g / y, , )                                     \
    X(reciprocal, ONNX(Reciprocal), 1, "1 / a", NONE, 1 / a, -g * y * y, , )                                           \
    X(exp, ONNX(Exp), 1, "e to the power of a", NONE, exp(a), g * y, , )                                               \
    X(log, ONNX(Log), 1, "the natural logarithm of a", NONE, log(a), g / a, , )                                        \
    X(erf, ONNX(Erf), 1, "the error function of a", NONE, erf(a), g * 1.1283791670955126 * exp(-a * a), , )            \
    X(sin, ONNX(Sin), 1, "the sine of a, in radians", NONE, sin(a), g * cos(a), , )                                    \
    X(cos, ONNX(Cos), 1, "the cosine of a, in radians", NONE, cos(a), -g * sin(a), , )                                 \
    X(tan, ONNX(Tan), 1, "the tangent of a, in radians", NONE, tan(a), g * (1 + y * y), , )                            \
    X(asin, ONNX(Asin), 1, "the angle in radians whose sine is a", NONE, asin(a), g / sqrt((1 - a) * (1 + a)), , )     \
    X(acos, ONNX(Acos), 1, "the angle in radians whose cosine is a", NONE, acos(a), -g / sqrt((1 - a) * (1 + a)), , )  \
    X(atan, ONNX(Atan), 1, "the angle in radians whose tangent is a", NONE, atan(a), g / (1 + a * a), , )              \
    X(sinh, ONNX(Sinh), 1, "the hyperbolic sine of a", NONE, sinh(a), g * cosh(a), , )                                 \
    X(cosh, ONNX(Cosh), 1, "the hyperbolic cosine of a", NONE, cosh(a), g * sinh(a), , )                               \
    X(asinh, ONNX(Asinh), 1, "the inverse of sinh", NONE, asinh(a), g / sqrt(1 + a * a), , )                           \
    X(acosh, ONNX(Acosh), 1, "the inverse of cosh", NONE, acosh(a), g / sqrt((a - 1) * (a + 1)), , )                   \
    X(atanh, ONNX(Atanh), 1, "the inverse of tanh", NONE, atanh(a), g / ((1 - a) * (1 + a)), , )                       \
    X(softplus, ONNX(Softplus), 1, "log(1 + exp(a))", NONE, larger(a, 0) + log1p(exp(-fabs(a))), g * sigmoid(a), , )   \
    X(silu, NONE, 1, "a sigmoid(a)", NONE, a * sigmoid(a), g * sigmoid(a) * (1 + a * (1 - sigmoid(a))), , )            \
    X(swish, SINCE(Swish, 24), 1, "a sigmoid(alpha a)", LOW(alpha, "1", "factor in the sigmoid"),                      \
        a * sigmoid(low * a), g * sigmoid(low * a) * (1 + low * a * (1 - sigmoid(low * a))), , )                       \
    X(swiglu, NONE, 2, "a sigmoid(alpha a) b", LOW(alpha, "1", "factor in the sigmoid"),                               \
        a * sigmoid(low * a) * b, g * b * sigmoid(low * a) * (1 + low * a * (1 - sigmoid(low * a))),                   \
        g * a * sigmoid(low * a), )                                                                                    \
    X(gelu, SINCE(Gelu, 20), 1, "a (1 + erf(a / sqrt(2))) / 2", NONE,                                                  \
        a / 2 * (1 + erf(a * 0.70710678)), g / 2 * (1 + erf(a * 0.70710678) + 0.79788456 * a * exp(-a*a/2)), , )       \
    X(gelu_tanh, NONE, 1, "the approximation of gelu by tanh", NONE,                                                   \
        a * sigmoid(a * (1.5957691216 + 0.0713548163 * a * a)),                                                        \
        g * (sigmoid(a * (1.5957691216 + 0.0713548163 * a * a)) +                                                      \
            y * sigmoid(-a * (1.5957691216 + 0.0713548163 * a * a)) * (1.5957691216 + 0.2140644488 * a * a)), , )      \
    X(mish, SINCE(Mish, 18), 1, "a tanh(softplus(a))", NONE,                                                           \
        a * tanh(larger(a, 0) + log1p(exp(-fabs(a)))), g * (tanh(larger(a, 0) + log1p(exp(-fabs(a)))) +                \
        sigmoid(a) * (a - y * tanh(larger(a, 0) + log1p(exp(-fabs(a)))))), , )                                         \
    X(softsign, ONNX(Softsign), 1, "a / (1 + |a|)", NONE, a / (1 + fabs(a)), g / ((1 + fabs(a)) * (1 + fabs(a))), , )  \
    X(elu, ONNX(Elu), 1, "a where a > 0, else alpha (exp(a) - 1)", LOW(alpha, "1", "minus the limit for a -> -inf"),   \
        where(a > 0, a, low * (exp(a) - 1)), where(a > 0, g, g * (y + low)), , )                                       \
    X(celu, ONNX(Celu), 1, "a where a > 0, else alpha (exp(a / alpha) - 1)", LOW(alpha, "1",                           \
        "minus the limit for a -> -inf; not 0"),                                                                       \
        where(a > 0, a, low * (exp(a / low) - 1)), where(a > 0, g, g * exp(a / low)), , )                              \
    X(selu, ONNX(Selu), 1, "1.0507 a where a > 0, else 1.7581 (exp(a) - 1)", NONE,                                     \
        where(a > 0, 1.0507009874 * a, 1.7580993408 * (exp(a) - 1)),                                                   \
        where(a > 0, 1.0507009874 * g, g * (y + 1.7580993408)), , )                                                    \
    X(prelu, ONNX(PRelu), 2, "a where a > 0, else b a", NONE,                                                          \
        where(a > 0, a, b * a), where(a > 0, g, b * g), where(a > 0, 0, a * g), )                                      \
    X(thresholded_relu, ONNX(ThresholdedRelu), 1, "a where a > alpha, else 0", LOW(alpha, "1", "the threshold"),       \
        where(a <= low, 0, a), where(a <= low, 0, g), , )                                                              \
    X(hard_sigmoid, NONE, 1, "min(max(a / 6 + 1/2, 0), 1)", NONE,                                                      \
        larger(smaller(a / 6 + 0.5, 1), 0), where(fabs(a) < 3, g / 6, 0), , )                                          \
    X(hard_swish, ONNX(HardSwish), 1, "a hard_sigmoid(a)", NONE,                                                       \
        a * larger(smaller(a / 6 + 0.5, 1), 0), where(a <= -3, 0, where(a >= 3, g, g * (a / 3 + 0.5))), , )

/* The activations, of operation_activation: derivatives are functions of y, so that a fused activation needs no memory
 * of its input. They are in the order of enum activation, from ACTIVATION_RELU on. */
#define ACTIVATION_TABLE(X)                                                                                            \
    X(relu, ONNX(Relu), 1, "a where a > 0, else 0", NONE, where(a < 0, 0, a), where(y <= 0, 0, g), , )                 \
    X(clip, NONE, 1, "min(max(a, min), max)", LOW_HIGH(min, "-inf", max, "inf"),                                       \
        where(a < low, low, where(a > high, high, a)), where(y <= low, 0, where(y >= high, 0, g)), , )                 \
    X(leaky_relu, ONNX(LeakyRelu), 1, "a where a > 0, else alpha a", LOW(alpha, "0.01", "the slope below 0"),          \
        where(a < 0, low * a, a), where(y <= 0, low * g, g), , )                                                       \
    X(sigmoid, ONNX(Sigmoid), 1, "1 / (1 + exp(-a))", NONE, sigmoid(a), g * y * (1 - y), , )                           \
    X(tanh, ONNX(Tanh), 1, "the hyperbolic tangent of a", NONE, tanh(a), g * (1 - y * y), , )

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
/* struct operation.loop, also of operation_activation and its gradient. */
void pointwise_loop(const struct problem *problem, struct loop *loop);

#endif
