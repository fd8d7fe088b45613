/* Sentences of implementations about what they do with a problem (`remark` in graph/operation.h). */
#ifndef LAYERS_REMARK_H
#define LAYERS_REMARK_H

#include "graph/operation.h"

/* Appends "multiplies bfloat16 numbers by dot products". Each operand is the sum of `parts` such numbers. */
void remark_bf16(enum bf16_form form, int parts, struct text *text);
/* Appends "multiplies floats, not bfloat16 numbers: REFUSAL"; nothing where rounding is excluded (fp32). */
void remark_floats(const struct problem *problem, const char *refusal, struct text *text);

#endif
