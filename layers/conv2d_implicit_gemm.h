/* What the implicit matrix products of GPU-class devices share, in either layout: their tiles and parts. */
#ifndef LAYERS_CONV2D_IMPLICIT_GEMM_H
#define LAYERS_CONV2D_IMPLICIT_GEMM_H

#include "layers/conv2d.h"
#include "runtime/tile.h"

/* Why products of this form cannot do the convolution; NULL: they can. */
const char *conv2d_gemm_refusal(const struct problem *problem, enum matrix_form form);
/* The largest tile that leaves no unit idle and wastes no more than half of its rows, of `others` such products. */
struct tile conv2d_gemm_tile(
    const struct problem *problem, enum matrix_form form, int64_t rows, int64_t columns, int64_t others);

/* The weight gradient: few results and a long sum, in `splits` parts. */
struct conv2d_gemm_weights {
    struct conv2d_sizes z;
    int64_t columns; /* channels of a group times taps */
    int64_t splits, pixels_of_split;
    struct tile tile;
};
struct conv2d_gemm_weights conv2d_gemm_weights_of(const struct problem *problem, enum matrix_form form);
/* Bytes of its parts; 0 where there is one. */
size_t conv2d_gemm_weights_workspace(const struct problem *problem, enum matrix_form form);

#endif
