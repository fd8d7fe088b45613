/* The table of learning rates and weight decays by groups of parameters, see tutti_group(). */
#include "base/memory.h"
#include "replica/optimizer.h"
#include "tutti_finetune.h"

#include <stdlib.h>

static void set_group(const struct optimizer *optimizer, const struct parameter *p, float rate_factor,
    const float *weight_decay, struct optimizer_group *table)
{
    const struct optimizer_group group = { rate_factor != 0 ? rate_factor : 1,
        weight_decay ? *weight_decay : optimizer->weight_decay };
    for (int64_t at = 0; at < p->elements; at += PARAMETER_ALIGNMENT)
        table[(p->offset + at) / PARAMETER_ALIGNMENT] = group;
}

tutti_status optimizer_groups(
    const struct optimizer *optimizer, const tutti_network *network, struct optimizer_group **groups, size_t *count)
{
    bool any = false;
    *groups = NULL;
    *count = (size_t)divide_up(network->trained_floats, PARAMETER_ALIGNMENT);
    struct optimizer_group *table = memory_new(*count, sizeof(*table));
    if (!table) return TUTTI_NO_MEMORY;
    for (size_t i = 0; i < network->parameter_count; i++) {
        const struct parameter *p = &network->parameters[i];
        if (p->kind != PARAMETER_TRAINED) continue;
        set_group(optimizer, p, p->rate_factor, p->has_weight_decay ? &p->weight_decay : NULL, table);
        const struct optimizer_group *group = &table[p->offset / PARAMETER_ALIGNMENT];
        any |= group->rate_factor != 1 || group->weight_decay != optimizer->weight_decay;
    }
    if (any) {
        *groups = table;
    } else {
        free(table);
        *count = 0;
    }
    return TUTTI_OK;
}

tutti_status optimizer_set_group(
    struct optimizer *optimizer, const tutti_network *network, const char *pattern, const tutti_group_options *options)
{
    int found = 0;
    if (!optimizer->groups)
        return fail(
            TUTTI_INVALID, "no group had a rate or decay of its own: call tutti_group() before tutti_compile()");
    for (size_t i = 0; i < network->parameter_count; i++) {
        const struct parameter *p = &network->parameters[i];
        if (p->kind != PARAMETER_TRAINED || !parameter_matches(p, pattern)) continue;
        found++;
        set_group(optimizer, p, options->rate_factor, options->has_weight_decay ? &options->weight_decay : NULL,
            optimizer->groups);
    }
    if (found == 0) return fail(TUTTI_INVALID, "no parameter that trains matches '%s'", pattern);
    optimizer->group_changes++;
    return TUTTI_OK;
}
