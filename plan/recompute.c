/* Recomputation (tutti_training.recompute): divides the forward nodes into sections. Of each but the last, training
 * keeps only what later sections read. Before its backward nodes run, copies of its forward nodes compute the rest
 * again. Source: Chen et al. 2016, "Training Deep Nets with Sublinear Memory Cost". Where sections end is decided by
 * bytes, not by the number of nodes: a skip connection across an end is kept. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "graph/edit.h"
#include "plan/passes.h"

enum { MOST_SECTIONS = 64 };

struct forward_value {
    int root;      /* the value whose memory it is */
    int last_read; /* by this forward node; -1: by none */
    bool saved;    /* a backward node reads it */
    bool pinned;   /* training keeps it, wherever sections end */
    int copy;      /* what backward nodes read instead; NO_VALUE: the value itself */
};

struct recomputation {
    struct plan *plan;
    struct graph *graph;
    size_t forward; /* nodes; the others are backward nodes */
    size_t value_count;
    struct forward_value *values;
    size_t *live;   /* per forward node: bytes that it and the nodes before it leave to the forward nodes after it */
    int *ends;      /* of the sections so far: their last nodes */
    int *best_ends; /* of the division that needs the fewest bytes */
    size_t best_count, best_bytes;
};

static bool is_forward(const struct plan *plan, const struct node *node)
{
    for (int i = 0; i < node->output_count; i++)
        if (node->outputs[i] != NO_VALUE && (size_t)node->outputs[i] < plan->forward_values) return true;
    return false;
}

static size_t forward_nodes(const struct plan *plan)
{
    size_t count = 0;
    while (count < plan->graph.node_count && is_forward(plan, &plan->graph.nodes[count])) count++;
    return count;
}

static bool is_made_by(const struct recomputation *r, int value, size_t first, size_t last)
{
    const struct value *v = graph_at(r->graph, value);
    return v && v->producer >= (int)first && v->producer <= (int)last;
}

static void pin(struct recomputation *r, const struct node *node)
{
    for (int i = 0; i < node->output_count; i++)
        if (node->outputs[i] != NO_VALUE) r->values[node->outputs[i]].pinned = true;
}

/* Losses give the metrics, and statistics of the whole batch are exchanged between devices: both once a step. */
static bool can_repeat(const struct recomputation *r, const struct node *node)
{
    const struct operation *operation = node->operation;
    return !operation->is_loss && !(operation->whole_batch && r->plan->options.synchronised);
}

static void find_reads(struct recomputation *r)
{
    const struct graph *graph = r->graph;
    for (size_t v = 0; v < r->value_count; v++) {
        const struct value *value = &graph->values[v];
        r->values[v] = (struct forward_value) {
            .root = (int)v, .last_read = -1, .pinned = value->output || value->gradient_of >= 0, .copy = NO_VALUE
        };
    }
    for (size_t n = 0; n < graph->node_count; n++) {
        const struct node *node = &graph->nodes[n];
        for (int i = 0; i < edit_read_count(node); i++) {
            if (edit_read(node, i) == NO_VALUE) continue;
            struct forward_value *read = &r->values[edit_read(node, i)], *root = &r->values[read->root];
            if (n < r->forward)
                read->last_read = root->last_read = (int)n;
            else
                read->saved = root->saved = true;
        }
        if (n >= r->forward) continue;
        if (node->operation->alias) r->values[node->outputs[0]].root = r->values[node->inputs[0]].root;
        if (!can_repeat(r, node)) pin(r, node);
    }
}

/* The bytes of a node's output; 0 where it has none, or has that of another value. */
static size_t bytes_of(const struct recomputation *r, const struct node *node, int output)
{
    const int value = node->outputs[output];
    return value == NO_VALUE || r->values[value].root != value ? 0 : value_bytes(graph_at(r->graph, value), 1);
}

static void find_live(struct recomputation *r)
{
    for (size_t n = 0; n < r->forward; n++) {
        const struct node *node = &r->graph->nodes[n];
        for (int i = 0; i < node->output_count; i++) {
            const size_t bytes = bytes_of(r, node, i);
            for (int later = (int)n; bytes > 0 && later < r->values[node->outputs[i]].last_read; later++)
                r->live[later] += bytes;
        }
    }
}

/* Whether training keeps the value until its backward nodes have run. */
static bool is_kept(const struct recomputation *r, int value, size_t last_of_section)
{
    return r->values[value].pinned || r->values[value].last_read > (int)last_of_section;
}

/* Adds up the bytes of the values of a section that training keeps, and of those that backward nodes read besides. */
static void add_bytes(const struct recomputation *r, size_t first, size_t last, size_t *kept, size_t *again)
{
    for (size_t n = first; n <= last; n++) {
        const struct node *node = &r->graph->nodes[n];
        for (int i = 0; i < node->output_count; i++) {
            const size_t bytes = bytes_of(r, node, i);
            if (bytes == 0) continue;
            if (is_kept(r, node->outputs[i], last))
                *kept += bytes;
            else if (r->values[node->outputs[i]].saved)
                *again += bytes;
        }
    }
}

/* The end of a section that begins at `first` and should save at most `limit` bytes: of the nodes up to where it saves
 * more, the last of those that leave the fewest bytes to later ones. */
static size_t section_end(const struct recomputation *r, size_t first, size_t limit)
{
    size_t bytes = 0, end = first;
    for (size_t n = first; n < r->forward; n++) {
        const struct node *node = &r->graph->nodes[n];
        for (int i = 0; i < node->output_count; i++)
            if (node->outputs[i] != NO_VALUE && r->values[node->outputs[i]].saved) bytes += bytes_of(r, node, i);
        if (bytes > limit && n > first) return end;
        if (r->live[n] <= r->live[end]) end = n;
    }
    return r->forward - 1;
}

/* Divides into sections that save at most `limit` bytes, and keeps the division if it is the best. */
static void divide(struct recomputation *r, size_t limit)
{
    size_t count = 0, kept = 0, largest = 0;
    for (size_t first = 0; first < r->forward; first = (size_t)r->ends[count++] + 1) {
        size_t again = 0;
        r->ends[count] = (int)section_end(r, first, limit);
        add_bytes(r, first, (size_t)r->ends[count], &kept, &again);
        if (again > largest) largest = again;
    }
    if (r->best_count > 0 && kept + largest >= r->best_bytes) return;
    memcpy(r->best_ends, r->ends, count * sizeof *r->ends);
    r->best_count = count;
    r->best_bytes = kept + largest;
}

static tutti_status find_sections(struct recomputation *r)
{
    size_t kept = 0, again = 0;
    r->values = memory_new(r->value_count + 1, sizeof *r->values);
    r->live = memory_new(r->forward, sizeof *r->live);
    r->ends = memory_new(r->forward, sizeof *r->ends);
    r->best_ends = memory_new(r->forward, sizeof *r->best_ends);
    if (!r->values || !r->live || !r->ends || !r->best_ends) return TUTTI_NO_MEMORY;
    find_reads(r);
    find_live(r);
    add_bytes(r, 0, r->forward - 1, &kept, &again);
    for (size_t parts = 1; parts <= MOST_SECTIONS; parts++) divide(r, again / parts);
    return TUTTI_OK;
}

/* The state of a node has bit i if copies or backward nodes read its output i and training does not keep it, and
 * COPIED if it is copied. */
enum { FIRST_READ = 1 << 0, COPIED = 1 << GRAPH_MAX_OUTPUTS };

static void mark_read(struct recomputation *r, int value, unsigned char *state)
{
    const int producer = graph_at(r->graph, value)->producer;
    for (int i = 0; i < GRAPH_MAX_OUTPUTS; i++)
        if (r->graph->nodes[producer].outputs[i] == value) state[producer] |= (unsigned char)(1 << i);
}

/* Finds the nodes of a section to copy: those that compute what backward nodes read and training does not keep, and
 * what these nodes read. No node goes without its first output: if nobody would read it, the others are kept. */
static void find_copied(struct recomputation *r, size_t first, size_t last, unsigned char *state)
{
    for (size_t n = last + 1; n-- > first;) {
        const struct node *node = &r->graph->nodes[n];
        for (int i = 0; i < node->output_count; i++) {
            const int value = node->outputs[i];
            if (value != NO_VALUE && r->values[value].saved && !is_kept(r, value, last)) mark_read(r, value, state);
        }
        if (state[n] == 0) continue;
        if (node->outputs[0] != NO_VALUE && !(state[n] & FIRST_READ)) {
            pin(r, node);
            continue;
        }
        state[n] |= COPIED;
        for (int i = 0; i < edit_read_count(node); i++) {
            const int read = edit_read(node, i);
            if (is_made_by(r, read, first, last) && !is_kept(r, read, last)) mark_read(r, read, state);
        }
    }
}

/* Leaves out the statistics of a copy whose reader is not copied. */
static void drop_statistics(struct node *copy, unsigned char state)
{
    const struct fusion *statistics = node_fusion(copy, FUSION_STATISTICS);
    if (statistics && !(state & 1 << statistics->output)) node_separate(copy, node_fusions(copy) & ~FUSED(STATISTICS));
}

/* Makes a node read copies; returns whether it reads any of this section's. */
static bool read_copies(const struct recomputation *r, struct node *node, size_t first, size_t last)
{
    bool any = false;
    for (int i = 0; i < edit_read_count(node); i++) {
        const int read = edit_read(node, i);
        if (!is_made_by(r, read, first, last) || r->values[read].copy == NO_VALUE) continue;
        any = true;
        if (i < node->input_count)
            node->inputs[i] = r->values[read].copy;
        else
            node_set_added(node, r->values[read].copy);
    }
    return any;
}

static tutti_status append_copies(struct recomputation *r, size_t first, size_t last)
{
    unsigned char *state = memory_new(r->forward, sizeof *state);
    if (!state) return TUTTI_NO_MEMORY;
    find_copied(r, first, last, state);
    for (size_t n = first; n <= last; n++) {
        if (!(state[n] & COPIED)) continue;
        if (!edit_append_copy(r->graph, n)) break;
        struct node *copy = graph_last(r->graph), *node = &r->graph->nodes[n];
        (void)read_copies(r, copy, first, last);
        drop_statistics(copy, state[n]);
        for (int i = 0; i < node->output_count; i++)
            if (node->outputs[i] != NO_VALUE && !is_kept(r, node->outputs[i], last))
                r->values[node->outputs[i]].copy = copy->outputs[i];
    }
    free(state);
    return r->graph->status;
}

struct copies {
    size_t begin, end; /* of these nodes */
    size_t before;     /* they run before this backward node, the first that reads one of their values */
};

/* Brings the nodes in the order in which they run. */
static tutti_status place_copies(struct recomputation *r, const struct copies *copies, size_t count, size_t originals)
{
    struct graph *graph = r->graph;
    struct node *nodes = memory_new(graph->node_count, sizeof *nodes);
    if (!nodes) return TUTTI_NO_MEMORY;
    size_t placed = 0;
    for (size_t n = 0; n < originals; n++) {
        for (size_t s = 0; s < count; s++)
            for (size_t c = copies[s].begin; copies[s].before == n && c < copies[s].end; c++)
                nodes[placed++] = graph->nodes[c];
        nodes[placed++] = graph->nodes[n];
    }
    memcpy(graph->nodes, nodes, placed * sizeof *nodes);
    graph->node_count = placed;
    free(nodes);
    edit_compact(graph); /* finds the producers */
    return TUTTI_OK;
}

static tutti_status copy_sections(struct recomputation *r)
{
    tutti_status status = TUTTI_OK;
    const size_t originals = r->graph->node_count, count = r->best_count - 1; /* all but the last section */
    struct copies *copies = memory_new(count + 1, sizeof *copies);
    if (!copies) return TUTTI_NO_MEMORY;
    for (size_t s = 0; s < count; s++) {
        const size_t first = s == 0 ? 0 : (size_t)r->best_ends[s - 1] + 1, last = (size_t)r->best_ends[s];
        copies[s].begin = copies[s].before = r->graph->node_count;
        TRY(append_copies(r, first, last));
        copies[s].end = r->graph->node_count;
        for (size_t n = originals; n-- > r->forward;)
            if (read_copies(r, &r->graph->nodes[n], first, last)) copies[s].before = n;
    }
    TRY(place_copies(r, copies, count, originals));
done:
    free(copies);
    return status;
}

tutti_status pass_recompute(struct plan *plan)
{
    tutti_status status = TUTTI_OK;
    if (plan->options.mode != PLAN_TRAIN || !plan->options.recompute) return TUTTI_OK;
    struct recomputation r = {
        .plan = plan, .graph = &plan->graph, .forward = forward_nodes(plan), .value_count = plan->graph.value_count
    };
    if (r.forward == 0) return TUTTI_OK;
    TRY(find_sections(&r));
    TRY(copy_sections(&r));
done:
    free(r.values);
    free(r.live);
    free(r.ends);
    free(r.best_ends);
    return status;
}
