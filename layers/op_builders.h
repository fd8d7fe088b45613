/* Attributes parsed by tutti_op(), and builders of operations that expand to several nodes. */
#ifndef LAYERS_OP_BUILDERS_H
#define LAYERS_OP_BUILDERS_H

#include "graph/network.h"
#include "layers/resize.h"

/* The numbers of an attribute such as starts=0,1. */
struct list {
    int count;
    int64_t numbers[TUTTI_MAX_RANK];
};
struct reals {
    int count;
    double numbers[2 * TUTTI_MAX_RANK];
};

/* Modes of pad, and of depth_to_space and back: in the depth, the block precedes (DCR) or follows the channels. */
enum pad_mode { PAD_CONSTANT, PAD_REFLECT, PAD_EDGE, PAD_WRAP };
enum block_mode { BLOCK_DCR, BLOCK_CRD };

/* Attributes of convolutions and pooling, with ONNX's names. */
enum auto_pad { AUTO_PAD_NOTSET, AUTO_PAD_VALID, AUTO_PAD_SAME_UPPER, AUTO_PAD_SAME_LOWER };
struct sliding_words {
    struct list kernel, strides, dilations, group;
    struct list pads; /* in front of each axis, then behind each */
    struct list output_padding, output_shape;
    struct list auto_pad;
    bool ceil_mode, count_include_pad;
    float p;
};

/* Attributes in the text that are not those of the operation. */
struct said {
    bool keepdims, inverse, onesided;
    int axis;
    unsigned axes;
    struct list picked, starts, ends, steps, sizes;
    struct reals scales, roi;
    struct list mode; /* choices are lists of one number, or of none: the first one */
    struct list resize_mode, resize_coordinates, resize_nearest, resize_policy;
    struct resize resize;
    struct sliding_words sliding;
    const void *attributes; /* of the recipe's operation, if it has one */
};

/* Appends the nodes and writes the result's value; NO_VALUE where the graph has failed. */
typedef tutti_status op_builder(
    struct tutti_network *network, int layer, const int *inputs, int count, const struct said *said, int *y);
op_builder op_slice, op_pad, op_tile, op_depth_to_space, op_space_to_depth, op_resize;
op_builder op_conv, op_conv_transpose, op_max_pool, op_average_pool, op_lp_pool, op_dft;

/* Append nodes of a composition; NO_VALUE after a failure, which the graph keeps. The axis counts the batch's. */
struct window_attributes;
int op_window(struct graph *graph, int layer, int x, const struct window_attributes *attributes);
int op_reshape(struct graph *graph, int layer, int x, tutti_shape shape);
int op_transpose(struct graph *graph, int layer, int x, const int *order, int rank);
/* op_split() divides an axis in two, the first of size `front`; op_join() makes two axes one. */
int op_split(struct graph *graph, int layer, int x, int axis, int64_t front);
int op_join(struct graph *graph, int layer, int x, int axis);
/* Returns the axis of a value for an axis of a sample, which may be negative; -1: it does not exist. */
int op_axis(const struct value *x, int64_t number);

#endif
