/* Windows that slide along one to three axes, of convolutions and pooling in tutti_op(). */
#ifndef LAYERS_SLIDING_H
#define LAYERS_SLIDING_H

#include "layers/schema/op_builders.h"

enum { SLIDING_AXES = 3 };

/* Window `o` of an axis begins at element o stride - before of the input's `in`, and has `kernel` elements, `dilation`
 * apart; they span `reach` elements. */
struct sliding_axis {
    int64_t in, out, kernel, stride, dilation, before, after, reach;
};
/* All axes of x after the channels. */
struct sliding {
    int axes;
    struct sliding_axis axis[SLIDING_AXES];
    int64_t groups; /* of convolutions: as it was given */
};

/* Reads the attributes for x [N, C, ...] and checks them. kernel: sizes of the axes; NULL: the attribute. */
tutti_status sliding_resolve(
    const char *name, const struct value *x, const struct sliding_options *o, const int64_t *kernel, struct sliding *s);
/* Like sliding_resolve(), for a transposed convolution: x is the output of a convolution and the result is its input,
 * so `in` and `out` are exchanged. */
tutti_status sliding_resolve_transposed(
    const char *name, const struct value *x, const struct sliding_options *o, const int64_t *kernel, struct sliding *s);
/* Pads x with `outside` where windows read beyond its ends, and removes what no window reads; returns x where nothing
 * changes. The axes then have no padding. */
int sliding_pad(const struct append_context *c, int x, struct sliding *s, float outside);
/* Makes the table of im2col along an axis: all its windows in a row. taps_free() frees it, also after a failure. */
tutti_status sliding_taps(const struct sliding_axis *a, struct taps *taps);
/* Applies sliding_taps() along an axis of *y. Elements that windows read beyond the ends are `outside`. */
tutti_status sliding_im2col(
    const struct append_context *c, const struct sliding_axis *a, int axis, float outside, int *y);

#endif
