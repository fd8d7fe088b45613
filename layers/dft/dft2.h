/* The transform of real images along both axes, in one node: what layers/dft/dft2_pattern.c makes of two nodes of dft
 * where the device's kernels profit.
 *
 *   forward: X[r, l] = scale w(l) sum over h, v of x[h, v] e^(-i t), with t = 2 pi (k h / height + l v / width)
 *   inverse: x[h, v] = scale Re sum over r, l of w(l) X[r, l] e^(i t)
 *
 * x has `height` rows of `width` pixels. The kernels compute or read a part of the spectrum: the
 * frequencies l = 0 ... columns - 1 of the width and k = (first + r) modulo the height, r = 0 ... rows - 1. Others are
 * 0. w(l) is 2 if `doubled` is set and frequency l has another one that is its mirror image, else 1. Each is the other
 * one's gradient. */
#ifndef LAYERS_DFT2_H
#define LAYERS_DFT2_H

#include "layers/operations.h"

struct dft2_attributes {
    int64_t height, width, rows, columns, first;
    bool inverse, doubled;
    float scale;
};
ATTRIBUTES(dft2)

/* The images: values have [images][height][width] and [images][rows][columns][2] elements. */
int64_t dft2_images(const struct problem *problem);
/* Frequencies of the height without their signs: 0 to this less 1. */
int64_t dft2_half_rows(const struct dft2_attributes *a);

struct node_arrays;
tutti_status dft2_interpret(const struct problem *problem, const struct node_arrays *arrays);
extern const struct implementation dft2_products, dft2_passes;

#endif
