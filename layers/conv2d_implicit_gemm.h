/* What the implicit matrix products of GPU-class devices share, in either layout: their tiles and parts. */
#ifndef LAYERS_CONV2D_IMPLICIT_GEMM_H
#define LAYERS_CONV2D_IMPLICIT_GEMM_H

#include "layers/conv2d.h"
#include "runtime/tile.h"

/* Why products of this form cannot do the convolution; NULL: they can. */
const char *conv2d_gemm_refusal(const struct problem *problem, enum matrix_form form);

/* The forward pass and the data gradient as one: from source to result. */
struct conv2d_gemm_image {
    struct conv2d_sizes z;
    int64_t cs, cr;          /* channels of a group */
    int64_t sh, sw, rh, rw;  /* source and result */
    int64_t classes, pixels; /* of a gradient's pixels; pixels of the largest class, whole batch */
    enum matrix_form form;
    struct tile tile;
    int64_t pixel_tiles, channel_tiles;
    bool flat;        /* the taps are part of the steps */
    int64_t csp, crp; /* steps of a tap (flat: of all) and channels of a group in the packed weights */
};
/* LAYOUT_PLAIN: a tile's rows are channels; LAYOUT_CHANNELS_LAST: they are pixels. */
struct conv2d_gemm_image conv2d_gemm_image_of(
    const struct problem *problem, enum matrix_form form, enum value_layout layout);
int64_t conv2d_gemm_packed_count(const struct conv2d_gemm_image *m);
/* Parts of statistics, one for each tile of pixels; 0: it gives none. */
int64_t conv2d_gemm_statistics_parts(const struct problem *problem, enum matrix_form form, enum value_layout layout);

/* The weight gradient: few results and a long sum, in `splits` parts. */
struct conv2d_gemm_weights {
    struct conv2d_sizes z;
    int64_t columns; /* channels of a group times taps */
    int64_t splits, pixels_of_split;
    enum matrix_form form;
    struct tile tile;
};
struct conv2d_gemm_weights conv2d_gemm_weights_of(const struct problem *problem, enum matrix_form form);
/* Bytes of its parts, 0 where there is one, by such a design. */
size_t conv2d_gemm_weights_workspace(const struct problem *problem);

#endif
