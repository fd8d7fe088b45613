#include "layers/element.h"

#include "base/numbers.h"

/* Appends " -DNAMEi_TYPE=bf16" for each bfloat16 among `values`. */
static void append(const char *name, const struct value *const *values, int count, char *buffer, size_t size)
{
    for (int i = 0; i < count; i++)
        if (values[i] && values[i]->type == TYPE_BF16) number_append(buffer, size, " -D%s%d_TYPE=bf16", name, i);
}

const char *element_options(const struct problem *problem, char *buffer, size_t size)
{
    buffer[0] = '\0';
    append("IN", problem->inputs, problem->node->input_count, buffer, size);
    append("OUT", problem->outputs, problem->node->output_count, buffer, size);
    if (problem->add && problem->add->type == TYPE_BF16) number_append(buffer, size, " -DADD_TYPE=bf16");
    return buffer;
}
