/* Tables of `resample`: for each element along an axis of the output, positions and weights of elements along the same
 * axis of the input. Made when the network is built. */
#ifndef LAYERS_RESAMPLE_H
#define LAYERS_RESAMPLE_H

#include "layers/append.h"

/* Rows are outputs: the taps of output j are those from starts[j] to starts[j + 1] - 1. */
struct taps {
    int64_t from, to;    /* sizes of the axis in the input and in the output */
    int64_t rows, count; /* so far: outputs that are done, and taps */
    int64_t capacity;
    int32_t *starts, *positions;
    float *weights;
};

/* A table without rows, freed by taps_free(), also after a failure. */
tutti_status taps_new(struct taps *taps, int64_t from, int64_t to);
void taps_free(struct taps *taps);
/* Adds a tap to the row at hand; weights of 0 are left out. taps_end_row() ends the row. */
tutti_status taps_add(struct taps *taps, int64_t position, double weight);
void taps_end_row(struct taps *taps);
/* The table of the gradient. Positions of a row are in ascending order. */
tutti_status taps_transpose(const struct taps *taps, struct taps *made);

/* Appends x resampled along an axis (the batch's counted) by a complete table, which is copied. Outputs without taps
 * are `outside`. NO_VALUE after a failure, which the network keeps. */
int resample(const struct append_context *c, int x, int axis, const struct taps *taps, float outside);

#endif
