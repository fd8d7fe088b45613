#include "plan/buckets.h"

#include <stdlib.h>

#include "base/invariant.h"
#include "base/memory.h"

/* A range is closed at this size: large enough that a transfer is not all latency, small enough to overlap computing.
 * The first bucket (of the last layers) and the statistics are smaller and leave early. */
#define RANGE_FLOATS (1 << 20)

/* The parameter that each value is, under another shape perhaps; -1: none. */
static tutti_status parameters_of_values(const struct plan *plan, int **parameter)
{
    *parameter = memory_new(plan->graph.value_count + 1, sizeof **parameter);
    if (!*parameter) return TUTTI_NO_MEMORY;
    for (size_t v = 0; v < plan->graph.value_count; v++)
        (*parameter)[v] = plan->graph.values[v].role == ROLE_PARAMETER ? plan->graph.values[v].parameter : -1;
    for (size_t n = 0; n < plan->graph.node_count; n++) {
        const struct node *node = &plan->graph.nodes[n];
        if (node->operation->alias) (*parameter)[node->outputs[0]] = (*parameter)[node->inputs[0]];
    }
    return TUTTI_OK;
}

/* The launches that read a parameter: the first, the end of the list where none does; and the last. */
struct use {
    size_t first, last;
};

static void note_use(struct use *uses, int parameter, size_t launch)
{
    if (parameter < 0) return;
    if (launch < uses[parameter].first) uses[parameter].first = launch;
    if (launch > uses[parameter].last) uses[parameter].last = launch;
}

static tutti_status find_uses(const struct plan *plan, struct use **uses)
{
    int *parameter = NULL;
    const tutti_status status = parameters_of_values(plan, &parameter);
    *uses = memory_new(plan->network->parameter_count + 1, sizeof **uses);
    for (size_t i = 0; *uses && i < plan->network->parameter_count; i++) (*uses)[i].first = plan->step.count;
    for (size_t l = 0; status == TUTTI_OK && *uses && l < plan->step.count; l++) {
        if (plan->step.launches[l].node < 0) continue;
        const struct node *node = &plan->graph.nodes[plan->step.launches[l].node];
        for (int i = 0; i < node->input_count; i++)
            if (node->inputs[i] != NO_VALUE) note_use(*uses, parameter[node->inputs[i]], l);
        if (node->epilogue.add != NO_VALUE) note_use(*uses, parameter[node->epilogue.add], l);
    }
    free(parameter);
    return status != TUTTI_OK ? status : *uses ? TUTTI_OK : TUTTI_NO_MEMORY;
}

/* The last launch of each node. */
static tutti_status last_launches(const struct plan *plan, size_t **last)
{
    *last = memory_new(plan->graph.node_count + 1, sizeof **last);
    if (!*last) return TUTTI_NO_MEMORY;
    for (size_t i = 0; i < plan->step.count; i++)
        if (plan->step.launches[i].node >= 0) (*last)[plan->step.launches[i].node] = i;
    return TUTTI_OK;
}

/* After which launch each parameter's gradient is complete; 0 for one that the loss does not depend on: it stays zero.
 */
static void completions(const struct plan *plan, const size_t *last, size_t *after)
{
    for (size_t v = 0; v < plan->graph.value_count; v++) {
        const struct value *value = &plan->graph.values[v];
        if (value->gradient_of >= 0 && value->producer >= 0) after[value->gradient_of] = last[value->producer];
    }
}

static int in_order(const void *a, const void *b)
{
    const struct plan_bucket *x = a, *y = b;
    if (x->after != y->after) return x->after < y->after ? -1 : 1;
    return x->first < y->first ? -1 : 1;
}

/* Together the buckets are the whole arena, each complete after a launch that exists. */
static bool buckets_are_whole(const struct plan *plan)
{
    int64_t floats = 0;
    for (size_t i = 0; i < plan->bucket_count; i++) {
        floats += plan->buckets[i].count;
        if (plan->buckets[i].after >= plan->step.count) return false;
    }
    return floats == plan->network->total_floats;
}

tutti_status buckets_find(struct plan *plan)
{
    tutti_status status = TUTTI_OK;
    const tutti_network *network = plan->network;
    struct use *uses = NULL;
    size_t *last = NULL, *after = memory_new(network->parameter_count + 1, sizeof *after);
    plan->buckets = memory_new(network->parameter_count + 1, sizeof *plan->buckets);
    if (!after || !plan->buckets) {
        status = TUTTI_NO_MEMORY;
        goto done;
    }
    TRY(last_launches(plan, &last));
    completions(plan, last, after);
    TRY(find_uses(plan, &uses));
    /* Backward makes the last parameters first: from the end of each half of the arena down. */
    for (int trained = 0; trained < 2; trained++) {
        int64_t end = trained ? network->trained_floats : network->total_floats;
        struct plan_bucket *open = NULL;
        for (size_t i = network->parameter_count; i-- > 0;) {
            const struct parameter *p = &network->parameters[i];
            if (p->kind != (trained ? PARAMETER_TRAINED : PARAMETER_STATISTIC)) continue;
            if (!open || open->count >= RANGE_FLOATS) open = &plan->buckets[plan->bucket_count++];
            open->first = p->offset;
            open->count += end - p->offset;
            end = p->offset;
            if (after[i] > open->after) open->after = after[i];
            if (uses[i].last > open->after) open->after = uses[i].last;
        }
    }
    qsort(plan->buckets, plan->bucket_count, sizeof *plan->buckets, in_order);
    INVARIANT(buckets_are_whole(plan));
done:
    free(uses);
    free(last);
    free(after);
    return status;
}

tutti_status needs_find(struct plan *plan)
{
    tutti_status status = TUTTI_OK;
    const tutti_network *network = plan->network;
    struct use *uses = NULL;
    plan->needs = memory_new(network->parameter_count + 1, sizeof *plan->needs);
    if (!plan->needs) return TUTTI_NO_MEMORY;
    TRY(find_uses(plan, &uses));
    for (int trained = 1; trained >= 0; trained--) {
        const int64_t end = trained ? network->trained_floats : network->total_floats;
        struct plan_need *open = NULL;
        size_t latest = 0; /* use of the range at hand: what the same node reads as well travels with it */
        for (size_t i = 0; i < network->parameter_count; i++) {
            const struct parameter *p = &network->parameters[i];
            if (p->kind != (trained ? PARAMETER_TRAINED : PARAMETER_STATISTIC)) continue;
            const size_t use = uses[i].first;
            if (!open || (p->offset - open->first >= RANGE_FLOATS && use > latest)) {
                if (open) open->count = p->offset - open->first;
                open = &plan->needs[plan->need_count++];
                *open = (struct plan_need) { .first = p->offset, .before = use };
            }
            open->count = end - open->first;
            if (use < open->before) open->before = use;
            if (use > latest) latest = use;
        }
    }
    for (size_t i = plan->need_count; i-- > 1;) /* they travel in this order: none waits for a later one */
        if (plan->needs[i].before < plan->needs[i - 1].before) plan->needs[i - 1].before = plan->needs[i].before;
done:
    free(uses);
    return status;
}
