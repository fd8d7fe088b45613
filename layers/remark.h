/* Sentences of implementations about what they do with a problem (`remark` in graph/operation.h). */
#ifndef LAYERS_REMARK_H
#define LAYERS_REMARK_H

#include "graph/operation.h"

/* "multiplies pairs of bfloat16 numbers: dot products". Of `parts` such numbers each operand is the sum. */
void remark_pairs(enum pairs_form form, int parts, struct text *text);
/* "multiplies floats, not pairs of bfloat16 numbers: REFUSAL"; nothing where products may not be rounded (fp32). */
void remark_floats(const struct problem *problem, const char *refusal, struct text *text);

#endif
