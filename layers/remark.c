#include "layers/remark.h"

#include "base/text.h"

void remark_pairs(enum pairs_form form, int parts, struct text *text)
{
    static const char *const names[PAIRS_FORMS] = {
        [PAIRS_NONE] = "none", [PAIRS_TILES] = "tiles", [PAIRS_DOTS] = "dot products", [PAIRS_PLAIN] = "plain"
    };
    text_append(text, "multiplies pairs of bfloat16 numbers: %s", names[form]);
    if (parts > 1) text_append(text, ", each operand as the sum of %d numbers", parts);
}

void remark_floats(const struct problem *problem, const char *refusal, struct text *text)
{
    if (problem->compute == COMPUTE_FP32) return;
    text_append(text, "multiplies floats, not pairs of bfloat16 numbers: %s", refusal);
}
