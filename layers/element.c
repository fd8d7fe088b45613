#include "layers/element.h"

#include <stdio.h>

/* Appends " -DNAMEi_TYPE=bf16" for each bfloat16 among `values`. */
static size_t append(
    const char *name, const struct value *const *values, int count, char *buffer, size_t size, size_t used)
{
    for (int i = 0; i < count; i++)
        if (values[i] && values[i]->type == TYPE_BF16 && used < size)
            used += (size_t)snprintf(buffer + used, size - used, " -D%s%d_TYPE=bf16", name, i);
    return used;
}

const char *element_options(const struct problem *problem, char *buffer, size_t size)
{
    buffer[0] = '\0';
    size_t used = append("IN", problem->inputs, problem->node->input_count, buffer, size, 0);
    used = append("OUT", problem->outputs, problem->node->output_count, buffer, size, used);
    if (problem->add && problem->add->type == TYPE_BF16 && used < size)
        snprintf(buffer + used, size - used, " -DADD_TYPE=bf16");
    return buffer;
}
