/* Schemas of operations on images and their like: convolution, pooling, interpolation. */
#include "layers/grid_sample.h"
#include "layers/schema/schema.h"

#define X INPUTS({ "x", "[C, L...], with one to three axes after the channels" })

#define LISTED(name, member, text) ROW(INTEGERS, name, OPTION_OF(sliding, member), NULL, text)
#define SLIDING                                                                                                      \
    LISTED("strides", strides, "for each axis; default: 1"),                                                         \
        LISTED("dilations", dilations, "for each axis; default: 1"),                                                 \
        LISTED("pads", pads, "before each axis, then after each; default: 0"),                                       \
    {                                                                                                                \
        "auto_pad", TUTTI_ATTRIBUTE_CHOICE, OPTION_OF(sliding, auto_pad), "notset",                                  \
            "pads; no padding; or so much that the result has size / stride elements, rounded up (transposed: size " \
            "times stride), "                                                                                        \
            "one more after (same_upper) or before (same_lower) if the padding is odd",                              \
            "notset valid same_upper same_lower"                                                                     \
    }
#define CONVOLUTION                                                                            \
    LISTED("kernel_shape", kernel, "default: that of the weight"), SLIDING,                    \
    {                                                                                          \
        "group", TUTTI_ATTRIBUTE_INTEGER, OPTION_OF(sliding, group), "1", "groups of channels" \
    }
#define POOLING                                                                                          \
    { "kernel_shape", TUTTI_ATTRIBUTE_INTEGERS, OPTION_OF(sliding, kernel), NULL, "size for each axis",  \
        .required = true },                                                                              \
        SLIDING,                                                                                         \
    {                                                                                                    \
        "ceil_mode", TUTTI_ATTRIBUTE_FLAG, OPTION_OF(sliding, ceil_mode), "0", "1: sizes are rounded up" \
    }

#define RESIZE_CHOICE(name, member, value, text, choices) \
    ROW(CHOICE, name, OPTION_OF(resize, how.member), value, text, choices)
/* Choices are in the order of the enums of layers/resize.h. */
static const struct op_attribute resize[] = {
    { "scales", TUTTI_ATTRIBUTE_NUMBERS, OPTION_OF(resize, scales), NULL, "for each of `axes`; this or sizes" },
    { "sizes", TUTTI_ATTRIBUTE_INTEGERS, OPTION_OF(resize, sizes), NULL, "for each of `axes`; this or scales" },
    { "axes", TUTTI_ATTRIBUTE_INTEGERS, OPTION_OF(resize, axes), NULL, "default: all" },
    RESIZE_CHOICE("mode", mode, "nearest", "the interpolation", "nearest linear cubic"),
    RESIZE_CHOICE("coordinate_transformation_mode", coordinates, "half_pixel", "where elements of the result lie in x",
        "half_pixel half_pixel_symmetric pytorch_half_pixel align_corners asymmetric tf_crop_and_resize"),
    { "roi", TUTTI_ATTRIBUTE_NUMBERS, OPTION_OF(resize, roi), NULL,
        "of tf_crop_and_resize: where each axis begins, then where each ends, from 0 to 1" },
    RESIZE_CHOICE("nearest_mode", nearest, "round_prefer_floor", "the rounding of coordinates, of mode nearest",
        "round_prefer_floor round_prefer_ceil floor ceil"),
    RESIZE_CHOICE("keep_aspect_ratio_policy", policy, "stretch",
        "sizes as they are, or one scale for all axes by which none is larger, or smaller",
        "stretch not_larger not_smaller"),
    { "cubic_coeff_a", TUTTI_ATTRIBUTE_NUMBER, OPTION_OF(resize, how.cubic_coeff_a), "-0.75", "of mode cubic" },
    { "exclude_outside", TUTTI_ATTRIBUTE_FLAG, OPTION_OF(resize, how.exclude_outside), "0",
        "1: elements outside x have the weight 0, else they are those at its edge" },
    { "antialias", TUTTI_ATTRIBUTE_FLAG, OPTION_OF(resize, how.antialias), "0",
        "1: a smaller result averages more of x" },
    { "extrapolation_value", TUTTI_ATTRIBUTE_NUMBER, OPTION_OF(resize, how.extrapolation_value), "0",
        "outside x, of tf_crop_and_resize" },
    { 0 },
};

static const struct op_schema schemas[] = {
    { "conv", "PyTorch's conv1d, conv2d and conv3d",
        INPUTS({ "x", "[C, L...]" }, { "weight", "[K, C / group, kernel...]" }, { "bias", "[K]", true }),
        OP_ATTRIBUTES(CONVOLUTION), .build = op_conv },
    { "conv_transpose", "PyTorch's conv_transpose1d, conv_transpose2d and conv_transpose3d",
        INPUTS({ "x", "[C, L...]" }, { "weight", "[C, K / group, kernel...]" }, { "bias", "[K]", true }),
        OP_ATTRIBUTES(CONVOLUTION,
            LISTED("output_padding", output_padding, "elements more after each axis; default: 0"),
            LISTED("output_shape", output_shape, "sizes of the result, by which the pads are chosen")),
        .build = op_conv_transpose },
    { "max_pool", "the maximum of each window", X, OP_ATTRIBUTES(POOLING), .build = op_max_pool },
    { "average_pool", "the mean of each window", X,
        OP_ATTRIBUTES(POOLING,
            { "count_include_pad", TUTTI_ATTRIBUTE_FLAG, OPTION_OF(sliding, count_include_pad), "0",
                "1: padding counts among the elements" }),
        .build = op_average_pool },
    { "lp_pool", "(sum of |x|^p)^(1 / p) over each window", X,
        OP_ATTRIBUTES(POOLING, { "p", TUTTI_ATTRIBUTE_NUMBER, OPTION_OF(sliding, p), "2", "at least 1" }),
        .build = op_lp_pool },
    { "resize", "x with other sizes, by interpolation, as ONNX's Resize", INPUTS({ "x" }), resize, .build = op_resize },
    { "grid_sample", "PyTorch's grid_sample: x at the places that the grid tells, which count from -1 to 1",
        INPUTS({ "x", "[C, (D,) H, W]" }, { "grid", "[places..., 2 or 3]" }),
        OP_ATTRIBUTES({ "mode", TUTTI_ATTRIBUTE_CHOICE, ATTRIBUTE_OF(grid_sample, mode), "linear", "the interpolation",
                          GRID_MODES },
            { "padding_mode", TUTTI_ATTRIBUTE_CHOICE, ATTRIBUTE_OF(grid_sample, padding), "zeros",
                "outside x: 0, the edge, or x mirrored", GRID_PADDINGS },
            { "align_corners", TUTTI_ATTRIBUTE_FLAG, ATTRIBUTE_OF(grid_sample, align_corners), "0",
                "1: -1 and 1 are the centres of the outer elements, else their outer edges" }),
        &operation_grid_sample },
    { "affine_grid", "PyTorch's affine_grid: the places for grid_sample that theta gives each element of an image",
        INPUTS({ "theta", "[2, 3] or [3, 4]" }),
        OP_ATTRIBUTES({ "size", TUTTI_ATTRIBUTE_INTEGERS, OPTION_OF(affine_grid, size), NULL,
                          "of the image: height and width, or depth, height and width", .required = true },
            { "align_corners", TUTTI_ATTRIBUTE_FLAG, OPTION_OF(affine_grid, align_corners), "0",
                "as for grid_sample" }),
        .build = op_affine_grid },
    { 0 },
};

const struct op_group schema_windows = { "Convolution, pooling and interpolation", schemas };
