#include "plan/buckets.h"

#include <stdlib.h>

#include "base/memory.h"

/* A range is closed at this size: large enough that a transfer is not all latency, small enough to overlap computing.
 * The first bucket (of the last layers) and the statistics are smaller and leave early. */
#define RANGE_FLOATS (1 << 20)

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

tutti_status buckets_find(struct plan *plan)
{
    tutti_status status = TUTTI_OK;
    const tutti_network *network = plan->network;
    size_t *last = NULL, *after = memory_new(network->parameter_count + 1, sizeof *after);
    plan->buckets = memory_new(network->parameter_count + 1, sizeof *plan->buckets);
    if (!after || !plan->buckets) {
        status = TUTTI_NO_MEMORY;
        goto done;
    }
    TRY(last_launches(plan, &last));
    completions(plan, last, after);
    /* Backward makes the last parameters first: from the end of each half of the arena down. */
    for (int trained = 0; trained < 2; trained++) {
        int64_t end = trained ? network->trained_floats : network->total_floats;
        struct plan_bucket *open = NULL;
        for (size_t i = network->parameter_count; i-- > 0;) {
            const struct parameter *p = &network->parameters[i];
            if (p->trained != (bool)trained) continue;
            if (!open || open->count >= RANGE_FLOATS) open = &plan->buckets[plan->bucket_count++];
            open->first = p->offset;
            open->count += end - p->offset;
            end = p->offset;
            if (after[i] > open->after) open->after = after[i];
        }
    }
    qsort(plan->buckets, plan->bucket_count, sizeof *plan->buckets, in_order);
done:
    free(last);
    free(after);
    return status;
}

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

/* The first launch that reads each parameter; the end of the list where none does. */
static void first_uses(const struct plan *plan, const int *parameter, size_t *use)
{
    for (size_t i = 0; i < plan->network->parameter_count; i++) use[i] = plan->step.count;
    for (size_t l = plan->step.count; l-- > 0;) {
        if (plan->step.launches[l].node < 0) continue;
        const struct node *node = &plan->graph.nodes[plan->step.launches[l].node];
        for (int i = 0; i < node->input_count; i++)
            if (node->inputs[i] != NO_VALUE && parameter[node->inputs[i]] >= 0) use[parameter[node->inputs[i]]] = l;
        if (node->epilogue.add != NO_VALUE && parameter[node->epilogue.add] >= 0)
            use[parameter[node->epilogue.add]] = l;
    }
}

tutti_status needs_find(struct plan *plan)
{
    tutti_status status = TUTTI_OK;
    const tutti_network *network = plan->network;
    int *parameter = NULL;
    size_t *use = memory_new(network->parameter_count + 1, sizeof *use);
    plan->needs = memory_new(network->parameter_count + 1, sizeof *plan->needs);
    if (!use || !plan->needs) {
        status = TUTTI_NO_MEMORY;
        goto done;
    }
    TRY(parameters_of_values(plan, &parameter));
    first_uses(plan, parameter, use);
    for (int trained = 1; trained >= 0; trained--) {
        const int64_t end = trained ? network->trained_floats : network->total_floats;
        struct plan_need *open = NULL;
        size_t latest = 0; /* use of the range at hand: what the same node reads as well travels with it */
        for (size_t i = 0; i < network->parameter_count; i++) {
            const struct parameter *p = &network->parameters[i];
            if (p->trained != (bool)trained) continue;
            if (!open || (p->offset - open->first >= RANGE_FLOATS && use[i] > latest)) {
                if (open) open->count = p->offset - open->first;
                open = &plan->needs[plan->need_count++];
                *open = (struct plan_need) { .first = p->offset, .before = use[i] };
            }
            open->count = end - open->first;
            if (use[i] < open->before) open->before = use[i];
            if (use[i] > latest) latest = use[i];
        }
    }
    for (size_t i = plan->need_count; i-- > 1;) /* they travel in this order: none waits for a later one */
        if (plan->needs[i].before < plan->needs[i - 1].before) plan->needs[i - 1].before = plan->needs[i].before;
done:
    free(parameter);
    free(use);
    return status;
}
