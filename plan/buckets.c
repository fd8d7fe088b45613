#include "plan/buckets.h"

#include <stdlib.h>

#include "base/memory.h"

/* A bucket is closed at this size: large enough that a transfer is not all latency, small enough to overlap backward.
 * The first one (of the last layers) and the statistics are smaller and leave early. */
#define BUCKET_FLOATS (1 << 20)

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
            if (!open || open->count >= BUCKET_FLOATS) open = &plan->buckets[plan->bucket_count++];
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
