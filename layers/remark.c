#include "layers/remark.h"

#include "base/text.h"

void remark_bf16(enum bf16_form form, int parts, struct text *text)
{
    static const char *const names[BF16_FORMS] = {
        [BF16_NONE] = "none", [BF16_TILES] = "tiles", [BF16_DOTS] = "dot products", [BF16_PLAIN] = "plain code"
    };
    text_append(text, "multiplies bfloat16 numbers by %s", names[form]);
    if (parts > 1) text_append(text, ", each operand as the sum of %d numbers", parts);
}

void remark_floats(const struct problem *problem, const char *refusal, struct text *text)
{
    if (problem->compute == COMPUTE_FP32) return;
    text_append(text, "multiplies floats, not bfloat16 numbers: %s", refusal);
}
