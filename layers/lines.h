/* Work along one axis of a tensor, element after element: argmax, topk, cumsum. A line is the elements along the
 * axis. Lines are independent; a line has a single work-item. Also elementwise work that depends on the element's
 * position. */
#ifndef LAYERS_LINES_H
#define LAYERS_LINES_H

#include "layers/operations.h"

/* argmax.c. y: the axis has size 1, or is dropped. hardmax has x's shape. */
struct argmax_attributes {
    int axis;
    bool keepdims, last; /* last: of equal elements the last one */
};
ATTRIBUTES(argmax)

/* topk.c: x -> values, indices (floats), best first */
struct topk_attributes {
    int axis;
    bool largest;
    int64_t k;
};
ATTRIBUTES(topk)

/* scan.c */
struct scan_attributes {
    int axis;
    bool exclusive, reverse; /* without the element itself; from the last one on */
};
ATTRIBUTES(scan)

/* one_hot.c: indices -> y, which has one axis more */
struct one_hot_attributes {
    int axis; /* of y, the batch's included */
    int64_t depth;
    float off, on;
};
ATTRIBUTES(one_hot)

/* trilu.c: of the matrices of the last two axes */
struct trilu_attributes {
    bool upper;
    int64_t k; /* the diagonal: 0 the main one, 1 the one above */
};
ATTRIBUTES(trilu)

/* reverse_sequence.c: x, lengths -> y. lengths: a number for each sample, or each place along another axis of samples,
 * or both; whole, int32 or float32. */
struct reverse_sequence_attributes {
    int axis, batch_axis; /* batch_axis -1: none */
};
ATTRIBUTES(reverse_sequence)

/* The lines of a value, and how many a work-item or task has. */
struct lines {
    int64_t lines, each, length, inner;
};
struct lines lines_of(const struct value *value, int axis, const struct capabilities *device);
/* Sets the arguments LINES_ARGUMENTS (clkernels/arguments/lines.h), after those set before, and the sizes. */
void lines_launch(struct launch *launch, const struct lines *lines, const struct capabilities *device);
/* Fails if positions along the axis are not exact as floats; the axis may be of any value. */
tutti_status lines_check(const char *operation, const struct value *x, int axis);

/* Elements of a work-item or task, of `elements` in all; and the sizes of the launch. */
int64_t elements_chunk(const struct capabilities *device, int64_t elements);
void elements_launch(struct launch *launch, const struct capabilities *device, int64_t elements);

#endif
