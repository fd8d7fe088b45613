/* The proof that a device has instructions that multiply matrices, or bf16 dot products. */
#ifndef RUNTIME_MATRIX_H
#define RUNTIME_MATRIX_H

#include "runtime/launch.h"

/* Fills in device->can.matrix: for each type, the first form whose product is right on this device. Forms are tried
 * where the device names the extension that goes with them. For devices of CPU class it fills in can.bf16 instead,
 * whose instructions the processor tells. Verdicts are kept as check.h's are. TUTTI_BF16_DOTS=plain uses C in place of
 * these instructions, for tests; TUTTI_BF16_DOTS=off uses none. */
void matrix_prove(struct device *device);
/* Appends launches of such products by the forms that the list's device has for the type, if any. They have no
 * buffers: only compilers use them. */
void matrix_emit_trial(enum compute_type compute, struct launch_list *list);
/* Returns NULL, or why can.bf16 has no bf16 dot products for a type. */
const char *bf16_refusal(const struct capabilities *can, enum compute_type compute);
/* Number of bfloat16 numbers as which a number of the type is multiplied; 0 if the type cannot be made of them. */
int bf16_terms(enum compute_type compute);
/* Number of rows, which is also that of columns, of the sums that a form of products holds in registers. */
int64_t bf16_unit_lines(enum bf16_form form);
/* Number of tiles along the sum, of 32 steps each, whose products may be added in a chain where a sum is long. */
int64_t bf16_chain(enum compute_type compute, enum bf16_form form);

#endif
