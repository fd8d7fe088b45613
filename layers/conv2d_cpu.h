/* Convolution on CPU-class devices: implementations that conv2d.c lists. Activations are blocked (first layers with few
 * channels read the plain image), parameters and their gradients are plain.
 *
 *   winograd    3x3, stride 1, dilation 1: F(4x4, 3x3)                      conv2d_winograd.c
 *   pointwise   1x1, stride 1 or 2, no padding                              conv2d_pointwise.c
 *   depthwise   groups = input channels = output channels                   conv2d_depthwise.c
 *   direct      any kernel, stride, padding and dilation, one group         conv2d_direct.c
 *
 * The order in a list: winograd, pointwise, depthwise, direct; each refuses what is not its own. */
#ifndef LAYERS_CONV2D_CPU_H
#define LAYERS_CONV2D_CPU_H

#include "graph/operation.h"

extern const struct implementation conv2d_winograd_forward, conv2d_winograd_data_gradient, conv2d_winograd_weight_gradient;
extern const struct implementation conv2d_pointwise_forward, conv2d_pointwise_data_gradient, conv2d_pointwise_weight_gradient;
extern const struct implementation conv2d_depthwise_forward, conv2d_depthwise_data_gradient, conv2d_depthwise_weight_gradient;
extern const struct implementation conv2d_direct_forward, conv2d_direct_data_gradient, conv2d_direct_weight_gradient;

#endif
