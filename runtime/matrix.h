/* The proof that a device has instructions that multiply matrices, or pairs of numbers. */
#ifndef RUNTIME_MATRIX_H
#define RUNTIME_MATRIX_H

#include "runtime/launch.h"

/* Fills in device->can.matrix: for each type, the first form whose product is right on this device. Forms are tried
 * where the device names the extension that goes with them. For devices of CPU class it fills in can.pairs instead,
 * whose instructions the processor tells. Verdicts are kept as check.h's are. TUTTI_BF16_DOTS=plain uses C in place of
 * these instructions, for tests; TUTTI_BF16_DOTS=off uses no pairs. */
void matrix_prove(struct device *device);
/* Appends launches of such products by the forms that the list's device has for the type, if any. They have no
 * buffers: only compilers use them. */
void matrix_emit_trial(enum compute_type compute, struct launch_list *list);
/* Returns NULL, or why can.pairs has no products of pairs for a type. */
const char *pairs_refusal(const struct capabilities *can, enum compute_type compute);
/* Number of bfloat16 numbers as which a number of the type is multiplied; 0 if the type cannot be made of them. */
int pairs_parts(enum compute_type compute);
/* Number of rows, which is also that of columns, of the sums that a form of products holds in registers. */
int64_t pairs_unit_lines(enum pairs_form form);
/* Number of tiles along the sum, of 32 steps each, whose products may be added in a chain where a sum is long. */
int64_t pairs_chain(enum compute_type compute, enum pairs_form form);

#endif
