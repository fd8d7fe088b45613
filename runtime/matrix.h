/* The proof that a device has instructions that multiply matrices, or pairs of numbers. */
#ifndef RUNTIME_MATRIX_H
#define RUNTIME_MATRIX_H

#include "runtime/launch.h"

/* Of each type the first form whose product is right on this device; the verdicts are kept as check.h's are. Forms are
 * tried where the device names the extension that goes with them. Fills in device->can.matrix; of a CPU's class,
 * can.pairs, whose instructions the processor tells. TUTTI_PAIRS=plain: by C instead, for tests; off: by none. */
void matrix_prove(struct device *device);
/* The launch of such a product by what the list's device has for the type, if any, without buffers: for
 * compilers alone. */
void matrix_emit_trial(enum compute_type compute, struct launch_list *list);
/* NULL, or why no products of pairs are made for a type: by can.pairs, in words. */
const char *pairs_refusal(const struct capabilities *can, enum compute_type compute);
/* bfloat16 numbers that a number is multiplied as, of a type: 0 for one that cannot be made of them. */
int pairs_parts(enum compute_type compute);
/* Rows, and columns, of the sums that a form of products has in registers. */
int64_t pairs_unit_lines(enum pairs_form form);

#endif
