/* Places values in memory: maps lifetimes to offsets in an arena. Values that share memory (reshapes, elementwise
 * nodes in place, additions into what exists) form a class with one place. Places are assigned largest first, at the
 * lowest offset that no class alive at the same time occupies. In whole slabs (runtime/memory.h) only one class is
 * alive at a time. */
#include <stdlib.h>
#include <string.h>

#include "base/invariant.h"
#include "base/memory.h"
#include "graph/edit.h"
#include "plan/node.h"

/* A stretch of memory and when it is needed: from node `first` to node `last`, both included. */
struct interval {
    size_t bytes;
    int first, last;
    struct memory_slot *slot;
    int order;
};

struct allocation {
    struct plan *plan;
    struct memory_plan *memory;
    int *root;         /* per value: the representative of its class */
    int *first, *last; /* per value; of the class at its root */
    struct interval *intervals;
    size_t interval_count, interval_capacity;
    int end;
};

static int root_of(struct allocation *a, int value)
{
    while (a->root[value] != value) value = a->root[value] = a->root[a->root[value]];
    return value;
}

static void use(struct allocation *a, int value, int node)
{
    if (value == NO_VALUE) return;
    int root = root_of(a, value);
    if (node < a->first[root]) a->first[root] = node;
    if (node > a->last[root]) a->last[root] = node;
}

/* Merges the classes of both values; the root of `into` remains the root. */
static void join(struct allocation *a, int into, int value)
{
    int r = root_of(a, into), v = root_of(a, value);
    if (r == v) return;
    a->root[v] = r;
    if (a->first[v] < a->first[r]) a->first[r] = a->first[v];
    if (a->last[v] > a->last[r]) a->last[r] = a->last[v];
}

static void find_lifetimes(struct allocation *a)
{
    struct graph *graph = &a->plan->graph;
    for (size_t v = 0; v < graph->value_count; v++) {
        a->root[v] = (int)v;
        a->first[v] = a->end;
        a->last[v] = -1;
        if (graph->values[v].role != ROLE_TEMPORARY) a->first[v] = -1; /* uploaded before the first node */
        if (graph->values[v].output) a->last[v] = a->end;
    }
    for (size_t n = 0; n < graph->node_count; n++) {
        const struct node *node = &graph->nodes[n];
        for (int i = 0; i < node->input_count; i++) use(a, node->inputs[i], (int)n);
        use(a, node_added(node), (int)n);
        for (int i = 0; i < node->output_count; i++) {
            use(a, node->outputs[i], (int)n);
            if (node->outputs[i] == NO_VALUE || a->plan->options.mode == PLAN_TRAIN || !node_is_constant(graph, node))
                continue;
            use(a, node->outputs[i], -1);
            use(a, node->outputs[i], a->end);
        }
    }
}

/* With guards every class keeps its memory to itself, so that stray writes show. So do inputs in whole slabs, because
 * plan_redirect_feed() identifies them by their buffers. */
static void widen_lifetimes(struct allocation *a)
{
    const bool whole = arena_is_whole(a->plan->device);
    for (size_t v = 0; v < a->plan->graph.value_count; v++)
        if (a->plan->options.guards || (whole && a->last[v] >= 0 && a->plan->graph.values[v].role == ROLE_INPUT))
            a->first[v] = -1, a->last[v] = a->end;
}

/* Whether the class of `value` is the plan's own memory and dies with node n. Reshaped, an input still is the caller's,
 * and the gradient of a parameter still is sent to the host. */
static bool dies(struct allocation *a, int value, int n)
{
    const struct value *root = graph_at(&a->plan->graph, root_of(a, value));
    return root->role == ROLE_TEMPORARY && root->gradient_of < 0 && a->last[root_of(a, value)] == n;
}

/* Whether node n makes of its first input `in` what that is in the next inference, no node after it reads the input,
 * and the node may run again after a failure. */
static bool becomes(struct allocation *a, const struct problem *problem, int n, int in)
{
    const struct plan *plan = a->plan;
    const struct objective *objective = &plan->options.objective;
    const struct node *node = problem->node;
    const struct implementation *implementation = node->operation->implementations[node->implementation];
    const int out = node->outputs[0];
    if (plan->options.mode != PLAN_INFER || in != node->inputs[0] || a->last[root_of(a, in)] != n) return false;
    if (!implementation->repeatable || !implementation->repeatable(problem)) return false;
    for (int i = 0; i < objective->output_count; i++)
        if (objective->carried[i] > 0 && plan->outputs[i] == out && plan->feeds[objective->carried[i] - 1] == in)
            return true;
    return false;
}

static bool same_form(const struct plan *plan, int a, int b)
{
    const struct value *x = graph_at(&plan->graph, a), *y = graph_at(&plan->graph, b);
    int width = plan->device->can.vector_width;
    return x->layout == y->layout && x->type == y->type && value_bytes(x, width) == value_bytes(y, width);
}

/* Whether the node may write its first output over the value that is added to it. */
static bool may_add_to(struct allocation *a, const struct node *node, int n)
{
    const int add = node_added(node);
    if (add == NO_VALUE || !dies(a, add, n) || !same_form(a->plan, add, node->outputs[0])) return false;
    for (int i = 0; i < node->input_count; i++)
        if (node->inputs[i] != NO_VALUE && root_of(a, node->inputs[i]) == root_of(a, add)) return false;
    return true;
}

/* Whether the node may write its first output over this input. Other inputs may be reshapes of the same memory. */
static bool may_overwrite(struct allocation *a, const struct problem *problem, int n, int input)
{
    const struct node *node = problem->node;
    const struct implementation *implementation = node->operation->implementations[node->implementation];
    const int in = node->inputs[input], add = node_added(node);
    if (in == NO_VALUE || !same_form(a->plan, in, node->outputs[0])) return false;
    if (!dies(a, in, n) && !becomes(a, problem, n, in)) return false;
    if (add != NO_VALUE && root_of(a, add) == root_of(a, in)) return false;
    for (int i = 0; i < node->input_count; i++)
        if (node->inputs[i] != NO_VALUE && root_of(a, node->inputs[i]) == root_of(a, in) &&
            !implementation->in_place(problem, i))
            return false;
    return true;
}

static void share_memory(struct allocation *a)
{
    struct plan *plan = a->plan;
    for (size_t n = 0; n < plan->graph.node_count; n++) {
        const struct node *node = &plan->graph.nodes[n];
        const int out = node->outputs[0];
        if (node->operation->alias) {
            join(a, node->inputs[0], out);
            continue;
        }
        if (out == NO_VALUE) continue;
        /* The gradient of a parameter stays where it is sent from: what it is added to is computed there. */
        const bool sent = graph_at(&plan->graph, out)->gradient_of >= 0;
        if (may_add_to(a, node, (int)n)) {
            join(a, sent ? out : node_added(node), sent ? node_added(node) : out);
            continue;
        }
        if (sent) continue;
        if (!node->operation->implementations[node->implementation]->in_place || plan->options.guards) continue;
        struct problem problem;
        problem_of(plan, node, &problem);
        for (int i = 0; i < node->input_count; i++) {
            if (!may_overwrite(a, &problem, (int)n, i)) continue;
            join(a, node->inputs[i], out);
            break;
        }
    }
}

static tutti_status add_interval(struct allocation *a, size_t bytes, int first, int last, struct memory_slot *slot)
{
    if (!bytes) return TUTTI_OK;
    tutti_status status =
        memory_grow((void **)&a->intervals, &a->interval_capacity, a->interval_count + 1, sizeof *a->intervals);
    if (status != TUTTI_OK) return status;
    slot->kind = SLOT_ARENA;
    slot->bytes = bytes;
    if (a->plan->options.guards) bytes += PLAN_GUARD_BYTES;
    a->intervals[a->interval_count] = (struct interval) { bytes, first, last, slot, (int)a->interval_count };
    a->interval_count++;
    return TUTTI_OK;
}

/* Gives every value its slot, and each value in the arena an interval. */
static tutti_status place_values(struct allocation *a)
{
    struct graph *graph = &a->plan->graph;
    int width = a->plan->device->can.vector_width;
    for (size_t v = 0; v < graph->value_count; v++) {
        const struct value *value = &graph->values[v];
        struct memory_slot *slot = &a->memory->slots[v];
        int root = root_of(a, (int)v);
        slot->bytes = value_bytes(value, width);
        if (root != (int)v) {
            slot->kind = SLOT_ALIAS;
            slot->alias = root;
        } else if (value->role == ROLE_PARAMETER) {
            slot->kind = SLOT_PARAMETER;
        } else if (value->gradient_of >= 0) {
            slot->kind = SLOT_GRADIENT;
        } else if (a->last[v] >= 0) {
            tutti_status status = add_interval(a, slot->bytes, a->first[v], a->last[v], slot);
            if (status != TUTTI_OK) return status;
        }
    }
    return TUTTI_OK;
}

static tutti_status place_scratch(struct allocation *a)
{
    struct plan *plan = a->plan;
    size_t workspace = 0;
    for (size_t n = 0; n < plan->graph.node_count; n++) {
        const struct node *node = &plan->graph.nodes[n];
        if (node->operation->alias) continue;
        const struct implementation *implementation = node->operation->implementations[node->implementation];
        struct problem problem;
        problem_of(plan, node, &problem);
        const size_t bytes = workspace_bytes(implementation, &problem);
        if (bytes > workspace) workspace = bytes;
        if (!implementation->prepared) continue;
        bool kept = plan->options.mode != PLAN_TRAIN || plan->options.guards;
        tutti_status status = add_interval(
            a, implementation->prepared(&problem), kept ? -1 : (int)n, kept ? a->end : (int)n, &a->memory->prepared[n]);
        if (status != TUTTI_OK) return status;
    }
    return add_interval(a, workspace, -1, a->end, &a->memory->workspace);
}

static int larger_first(const void *a, const void *b)
{
    const struct interval *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
    return x->order - y->order;
}

static int lower_first(const void *a, const void *b)
{
    const struct interval *x = *(struct interval *const *)a, *y = *(struct interval *const *)b;
    if (x->slot->position.offset != y->slot->position.offset)
        return x->slot->position.offset < y->slot->position.offset ? -1 : 1;
    return x->order - y->order;
}

/* Places the interval at the lowest offset in this slab where it fits between those already placed. False past the
 * limit, or in a whole slab where another interval is alive. */
static bool find_gap(struct interval **placed, size_t count, struct interval *interval, int slab, size_t alignment,
    size_t limit, bool whole)
{
    size_t offset = 0;
    for (size_t i = 0; i < count; i++) {
        const struct interval *other = placed[i];
        if (other->slot->position.slab != slab || other->last < interval->first || interval->last < other->first)
            continue;
        if (whole) return false;
        if (other->slot->position.offset >= offset + interval->bytes) break;
        size_t end = size_round_up(other->slot->position.offset + other->bytes, alignment);
        if (end > offset) offset = end;
    }
    if (interval->bytes > limit || offset > limit - interval->bytes) return false;
    interval->slot->position = (struct arena_position) { slab, offset };
    return true;
}

/* Whether intervals that are alive at the same time do not overlap. */
static bool intervals_are_apart(const struct allocation *a)
{
    for (size_t i = 0; i < a->interval_count; i++)
        for (size_t j = 0; j < i; j++) {
            const struct interval *x = &a->intervals[i], *y = &a->intervals[j];
            const struct arena_position *p = &x->slot->position, *q = &y->slot->position;
            const bool together = x->first <= y->last && y->first <= x->last && p->slab == q->slab;
            if (together && p->offset < q->offset + y->bytes && q->offset < p->offset + x->bytes) return false;
        }
    return true;
}

static tutti_status pack(struct allocation *a)
{
    tutti_status status = TUTTI_OK;
    const struct capabilities *can = &a->plan->device->can;
    const bool whole = arena_is_whole(a->plan->device);
    struct interval **placed = memory_new(a->interval_count + 1, sizeof *placed);
    a->memory->slabs = memory_new(a->interval_count + 1, sizeof *a->memory->slabs);
    if (!placed || !a->memory->slabs) {
        status = TUTTI_NO_MEMORY;
        goto done;
    }
    qsort(a->intervals, a->interval_count, sizeof *a->intervals, larger_first);
    for (size_t i = 0; i < a->interval_count; i++) {
        struct interval *interval = &a->intervals[i];
        size_t page = interval->bytes >= 65536 ? 4096 : 64;
        size_t alignment = page > can->alignment ? page : can->alignment;
        if (interval->bytes > can->allocation_max)
            FAIL(TUTTI_DEVICE_MEMORY,
                "one tensor needs %zu MiB, but %s allocates at most %zu MiB at once: lower the batch",
                interval->bytes >> 20, can->name, can->allocation_max >> 20);
        int slab = 0;
        while (!find_gap(placed, i, interval, slab, alignment, can->allocation_max, whole)) slab++;
        if (slab >= a->memory->slab_count) a->memory->slab_count = slab + 1;
        size_t end = size_round_up(interval->slot->position.offset + interval->bytes, 4096);
        if (end > a->memory->slabs[slab]) a->memory->slabs[slab] = end;
        placed[i] = interval;
        qsort(placed, i + 1, sizeof *placed, lower_first);
    }
    INVARIANT(intervals_are_apart(a));
done:
    free(placed);
    return status;
}

tutti_status pass_memory(struct plan *plan, struct memory_plan *memory)
{
    tutti_status status = TUTTI_OK;
    size_t values = plan->graph.value_count;
    memset(memory, 0, sizeof *memory);
    struct allocation a = { .plan = plan, .memory = memory, .end = (int)plan->graph.node_count };
    a.root = memory_new(values, sizeof *a.root);
    a.first = memory_new(values, sizeof *a.first);
    a.last = memory_new(values, sizeof *a.last);
    memory->slots = memory_new(values, sizeof *memory->slots);
    memory->prepared = memory_new(plan->graph.node_count + 1, sizeof *memory->prepared);
    if (!a.root || !a.first || !a.last || !memory->slots || !memory->prepared) {
        status = TUTTI_NO_MEMORY;
        goto done;
    }
    find_lifetimes(&a);
    share_memory(&a);
    widen_lifetimes(&a);
    TRY(place_values(&a));
    TRY(place_scratch(&a));
    TRY(pack(&a));
done:
    free(a.root);
    free(a.first);
    free(a.last);
    free(a.intervals);
    if (status != TUTTI_OK) memory_plan_free(memory);
    return status;
}

void memory_plan_free(struct memory_plan *memory)
{
    free(memory->slots);
    free(memory->prepared);
    free(memory->slabs);
    memset(memory, 0, sizeof *memory);
}
