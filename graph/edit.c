#include "graph/edit.h"

#include <string.h>

#include "base/memory.h"

int edit_read_count(const struct node *node)
{
    return node->input_count + 1;
}

int edit_read(const struct node *node, int i)
{
    return i < node->input_count ? node->inputs[i] : node_added(node);
}

bool edit_reads(const struct node *node, int value)
{
    for (int i = 0; i < edit_read_count(node); i++)
        if (edit_read(node, i) == value) return true;
    return false;
}

int edit_uses(const struct graph *graph, int value)
{
    int uses = 0;
    for (size_t n = 0; n < graph->node_count; n++) {
        const struct node *node = &graph->nodes[n];
        if (!node->operation) continue;
        for (int i = 0; i < edit_read_count(node); i++) uses += edit_read(node, i) == value;
    }
    return uses;
}

bool edit_is_kept(const struct graph *graph, int value)
{
    const struct value *v = graph_at(graph, value);
    return v->output || v->gradient_of >= 0;
}

void edit_replace(struct graph *graph, int from, int to, size_t first)
{
    for (size_t n = first; n < graph->node_count; n++) {
        struct node *node = &graph->nodes[n];
        for (int i = 0; i < node->input_count; i++)
            if (node->inputs[i] == from) node->inputs[i] = to;
        if (node_added(node) == from) node_set_added(node, to);
    }
}

static void tie_outputs(struct graph *graph)
{
    for (size_t n = 0; n < graph->node_count; n++) {
        const struct node *node = &graph->nodes[n];
        if (!node->operation) continue;
        for (int i = 0; i < node->output_count; i++)
            if (node->outputs[i] != NO_VALUE) graph->values[node->outputs[i]].producer = (int)n;
    }
}

bool edit_append_copy(struct graph *graph, size_t n)
{
    if (graph->status == TUTTI_OK)
        graph->status =
            memory_grow((void **)&graph->nodes, &graph->node_capacity, graph->node_count + 1, sizeof *graph->nodes);
    if (graph->status != TUTTI_OK) return false;
    struct node copy = graph->nodes[n];
    for (int i = 0; i < copy.output_count; i++) {
        if (copy.outputs[i] == NO_VALUE) continue;
        const struct value from = *graph_at(graph, copy.outputs[i]); /* a copy: appending moves the array */
        copy.outputs[i] = graph_value(graph, ROLE_TEMPORARY, from.type, from.shape, from.batched, NULL);
        if (copy.outputs[i] == NO_VALUE) return false;
        struct value *value = graph_at(graph, copy.outputs[i]);
        value->rows = from.rows;
        value->axes = from.axes;
        value->layout = from.layout;
        value->producer = (int)graph->node_count;
    }
    graph->nodes[graph->node_count++] = copy;
    return true;
}

void edit_move_last(struct graph *graph, size_t place)
{
    struct node last = graph->nodes[graph->node_count - 1];
    memmove(graph->nodes + place + 1, graph->nodes + place, (graph->node_count - 1 - place) * sizeof *graph->nodes);
    graph->nodes[place] = last;
    tie_outputs(graph);
}

void edit_compact(struct graph *graph)
{
    size_t kept = 0;
    for (size_t n = 0; n < graph->node_count; n++)
        if (graph->nodes[n].operation) graph->nodes[kept++] = graph->nodes[n];
    graph->node_count = kept;
    tie_outputs(graph);
}
