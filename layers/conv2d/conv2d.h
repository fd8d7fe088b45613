/* The sizes of a convolution, from any of its three nodes, and the implementations that are not blocked: of every
 * device, of GPUs, and conv2d_grouped of CPUs. */
#ifndef LAYERS_CONV2D_H
#define LAYERS_CONV2D_H

#include "layers/image.h"
#include "layers/layers.h"
#include "runtime/arguments.h"

struct conv2d_attributes {
    struct window window;
    tutti_shape shape; /* of a gradient's result: that of w or x */
};
ATTRIBUTES(conv2d)

/* y[n, k, oh, ow] = sum over c, r, s of w[k, c, r, s] x[n, group(k) * C/groups + c, oh * stride - padding + r *
 * dilation, ...] */
struct conv2d_sizes {
    int64_t n, c, h, w;               /* x */
    int64_t k, oh, ow;                /* y */
    int64_t r, s;                     /* kernel */
    int64_t groups, c_group, k_group; /* C and K of one group */
    int64_t stride_h, stride_w, padding_h, padding_w, dilation_h, dilation_w;
};

/* Arguments of kernels: the sizes of x and y, and the window. */
#define PLANE_VALUES(z) .H = (z)->h, .W = (z)->w, .OH = (z)->oh, .OW = (z)->ow
#define WINDOW_VALUES(z)                                                                                            \
    .stride_h = (z)->stride_h, .stride_w = (z)->stride_w, .padding_h = (z)->padding_h, .padding_w = (z)->padding_w, \
    .dilation_h = (z)->dilation_h, .dilation_w = (z)->dilation_w

/* For operation_conv2d, operation_conv2d_data_gradient and operation_conv2d_weight_gradient alike. */
struct conv2d_sizes conv2d_sizes_of(const struct problem *problem);
double conv2d_flops(const struct problem *problem);
double conv2d_bytes(const struct problem *problem);
/* Fusions of kernels that write each result once; gradients take FUSED(ADD) alone. */
enum { CONV2D_FORWARD_FUSIONS = FUSED(ADD) | FUSED(ACTIVATION) };

/* A family of implementations: one for each pass, by these numbers. In their files, `product` is the forward pass and
 * the data gradient, which are one kernel. */
enum conv2d_pass { CONV2D_FORWARD, CONV2D_DATA_GRADIENT, CONV2D_WEIGHT_GRADIENT, CONV2D_PASSES };
enum conv2d_pass conv2d_pass_of(const struct problem *problem);
bool conv2d_is_data_gradient(const struct problem *problem);
bool conv2d_is_weight_gradient(const struct problem *problem);
extern const struct implementation conv2d_plain[CONV2D_PASSES], conv2d_grouped[CONV2D_PASSES],
    conv2d_implicit_gemm[CONV2D_PASSES], conv2d_implicit_gemm_matrix[CONV2D_PASSES],
    conv2d_channels_last[CONV2D_PASSES], conv2d_winograd_4x4[CONV2D_PASSES], conv2d_winograd_2x2[CONV2D_PASSES],
    conv2d_depthwise_channels_last[CONV2D_PASSES], conv2d_depthwise_gpu[CONV2D_PASSES];

/* Why Winograd's algorithm cannot or should not be used, on any device. NULL: it can, for some kernel sizes. */
const char *conv2d_winograd_refusal(const struct problem *problem);

/* Sums `splits` arrays of dw's size in the workspace (+ add) to dw, in their order. For conv2d_implicit_gemm.c and
 * conv2d_depthwise_gpu.c. */
void conv2d_sum_parts(
    const struct problem *problem, const struct operands *operands, int64_t splits, struct launch_list *list);

#endif
