/* Schemas of normalisations. */
#include "layers/schema/schema.h"

#define NUMBER(name, member, value, text) ROW(NUMBER, name, ATTRIBUTE_OF(norm, member), value, text)
#define COUNT(name, value, text) ROW(INTEGER, name, ATTRIBUTE_OF(norm, count), value, text)
#define AXIS(text) ROW(AXIS, "axis", ATTRIBUTE_OF(norm, axis), "-1", text, .onnx = "axis")
#define EPSILON NUMBER("epsilon", epsilon, "1e-5", "added to the variance")
#define SCALE(text)         \
    {                       \
        "scale", text, true \
    }
#define BIAS                     \
    {                            \
        "bias", "as scale", true \
    }

#define NORM(name_, text_, inputs_, attributes_, ...)                                                                \
    {                                                                                                                \
        .name = #name_, .text = text_, .inputs = inputs_, .attributes = attributes_, .decompose = decompose_##name_, \
        .decomposed = &norm_attributes_type, __VA_ARGS__                                                             \
    }

static const struct op_schema schemas[] = {
    NORM(layer_norm, "(x - mean) / sqrt(variance + epsilon) scale + bias, over the last axes",
        INPUTS({ "x" }, SCALE("of these axes, or broadcast to them"), BIAS),
        OP_ATTRIBUTES(AXIS("the first one of the last axes"), EPSILON)),
    NORM(rms_norm, "x / sqrt(mean of x^2 + epsilon) scale, over the last axes",
        INPUTS({ "x" }, SCALE("of these axes, or broadcast to them")),
        OP_ATTRIBUTES(AXIS("the first one of the last axes"),
            NUMBER("epsilon", epsilon, "1e-5", "added to the mean of squares"))),
    NORM(group_norm, "as layer_norm, over each group of channels",
        INPUTS({ "x", "[C, ...]" }, SCALE("of channels, or of groups"), BIAS),
        OP_ATTRIBUTES(COUNT("groups", "1", "number of groups"), EPSILON)),
    NORM(instance_norm, "as layer_norm, over each channel", INPUTS({ "x", "[C, ...]" }, SCALE("[C]"), BIAS),
        OP_ATTRIBUTES(EPSILON)),
    NORM(mean_variance_norm, "(x - mean) / deviation over axes", INPUTS({ "x" }),
        OP_ATTRIBUTES({ "axes", TUTTI_ATTRIBUTE_AXES, ATTRIBUTE_OF(norm, axes), NULL, "default: all but 0" })),
    NORM(lp_norm, "x / norm along an axis, 0 where the norm is 0", INPUTS({ "x" }),
        OP_ATTRIBUTES(AXIS("along it"),
            { "p", TUTTI_ATTRIBUTE_INTEGER, ATTRIBUTE_OF(norm, count), "2",
                "1: the sum of absolute values; 2: the root of the sum of squares", .onnx = "p" }),
        .onnx = &(const struct op_onnx) { "LpNormalization", .form = TUTTI_ONNX_TENSOR }),
    NORM(lrn, "x / (bias + alpha / size s)^beta, where s is the sum of squares of channels around each one",
        INPUTS({ "x", "[C, ...]" }),
        OP_ATTRIBUTES(COUNT("size", "5", "number of channels around each one, with itself"),
            NUMBER("alpha", alpha, "1e-4", "factor of the sum"), NUMBER("beta", beta, "0.75", "the exponent"),
            NUMBER("bias", bias, "1", "added to the sum"))),
    { 0 },
};

const struct op_group schema_norms = { "Normalisation", schemas };
