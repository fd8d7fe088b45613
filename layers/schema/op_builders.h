/* Builders of tutti_op() for operations that expand to several nodes, and what they read. */
#ifndef LAYERS_OP_BUILDERS_H
#define LAYERS_OP_BUILDERS_H

#include "layers/append.h"
#include "layers/resize.h"

/* Doubles are exact up to it, and sums of such numbers do not overflow. */
#define OP_MAX_INTEGER INT64_C(1000000000000000)

/* Whole numbers of an attribute, such as starts=0,1; and real ones. */
struct integers {
    int count;
    int64_t numbers[TUTTI_MAX_RANK];
};
enum { REALS = 16, OP_TEXT = 256 };
struct reals {
    int count;
    double numbers[REALS];
};

/* Options of each builder below: what the text can set that is not a member of the node's attributes. Choices are in
 * the order of the schema's words (layers/schema/schema.h). */
struct slice_options {
    struct integers starts, ends, axes, steps;
};
/* Modes of pad, and of depth_to_space and back: in the depth, the block precedes (DCR) or follows the channels. */
enum pad_mode { PAD_CONSTANT, PAD_REFLECT, PAD_EDGE, PAD_WRAP };
struct pad_options {
    struct integers before, after;
    int mode;
};
struct tile_options {
    struct integers repeats;
};
enum block_mode { BLOCK_DCR, BLOCK_CRD };
struct block_options {
    int64_t size;
    int mode;
};
struct resize_options {
    struct integers axes, sizes;
    struct reals scales, roi;
    struct resize how;
};
struct dft_options {
    int axis;
    bool inverse, onesided;
    int64_t length; /* 0: the axis's */
};
/* Convolutions and pooling, with ONNX's names. Empty lists are the defaults. */
enum auto_pad { AUTO_PAD_NOTSET, AUTO_PAD_VALID, AUTO_PAD_SAME_UPPER, AUTO_PAD_SAME_LOWER };
struct sliding_options {
    struct integers kernel, strides, dilations;
    struct integers pads; /* before each axis, then after each */
    struct integers output_padding, output_shape;
    int auto_pad;
    int64_t group;
    bool ceil_mode, count_include_pad;
    float p;
};
/* theta [2, 3] or [3, 4] of each sample -> the grid for grid_sample. */
struct affine_grid_options {
    struct integers size; /* of the image's axes of space */
    bool align_corners;
};

/* What tutti_op() read. */
struct op_call {
    const int *inputs;
    int count;
    const void *attributes; /* of the schema's operation, if it has one */
    const void *options;    /* the schema's struct NAME_options */
};
/* Appends the nodes and writes the result's value; NO_VALUE where the graph has failed. */
typedef tutti_status op_builder(const struct append_context *c, const struct op_call *call, int *y);
op_builder op_slice, op_pad, op_tile, op_depth_to_space, op_space_to_depth; /* rearrange.c */
op_builder op_conv, op_conv_transpose;                                      /* convolve.c */
op_builder op_max_pool, op_average_pool, op_lp_pool;                        /* pool/pool_axes.c */
op_builder op_resize;                                                       /* resize.c */
op_builder op_dft;                                                          /* dft/dft.c */
op_builder op_affine_grid;                                                  /* grid_sample.c */

/* rearrange.c: returns the axis of a value for an axis of a sample, which may be negative; -1: it does not exist. */
int op_axis(const struct value *x, int64_t number);

#endif
