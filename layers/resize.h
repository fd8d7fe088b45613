/* Resizing along an axis, as ONNX's Resize does it. */
#ifndef LAYERS_RESIZE_H
#define LAYERS_RESIZE_H

#include "layers/resample.h"

enum resize_mode { RESIZE_NEAREST, RESIZE_LINEAR, RESIZE_CUBIC };
enum resize_coordinates {
    RESIZE_HALF_PIXEL,
    RESIZE_HALF_PIXEL_SYMMETRIC,
    RESIZE_PYTORCH_HALF_PIXEL,
    RESIZE_ALIGN_CORNERS,
    RESIZE_ASYMMETRIC,
    RESIZE_TF_CROP_AND_RESIZE
};
enum resize_nearest { RESIZE_ROUND_PREFER_FLOOR, RESIZE_ROUND_PREFER_CEIL, RESIZE_FLOOR, RESIZE_CEIL };
enum resize_policy { RESIZE_STRETCH, RESIZE_NOT_LARGER, RESIZE_NOT_SMALLER };

/* ONNX's attributes. */
struct resize {
    int mode, coordinates, nearest, policy; /* of the enums above */
    float cubic_coeff_a, extrapolation_value;
    bool exclude_outside, antialias;
};
/* An axis. `begin` and `end`: the part of it that is resized, of RESIZE_TF_CROP_AND_RESIZE; 0 and 1: all. */
struct resize_axis {
    int64_t from, to;
    double scale, begin, end;
};

/* Makes the table, which taps_free() frees, also after a failure. Outputs without taps are extrapolation_value. */
tutti_status resize_taps(const struct resize *how, const struct resize_axis *axis, struct taps *taps);

#endif
