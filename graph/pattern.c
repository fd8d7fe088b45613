#include "graph/pattern.h"

#include "graph/edit.h"

static int first_producer(const struct graph *graph, int value)
{
    const struct value *v = graph_at(graph, value);
    return v && v->producer >= 0 && graph->nodes[v->producer].outputs[0] == value ? v->producer : -1;
}

int pattern_sole_producer(const struct graph *graph, int value)
{
    const int producer = first_producer(graph, value);
    return producer < 0 || edit_is_kept(graph, value) || edit_uses(graph, value) != 1 ? -1 : producer;
}

bool pattern_matches(const struct pattern *pattern, const struct graph *graph, size_t n, int *producer)
{
    const struct node *node = &graph->nodes[n];
    if (node->operation != pattern->operation) return false;
    const int input = node->inputs[pattern->input];
    *producer = pattern->sole ? pattern_sole_producer(graph, input) : first_producer(graph, input);
    if (*producer < 0) return !pattern->sole && !pattern->producer;
    return !pattern->producer || graph->nodes[*producer].operation == pattern->producer;
}

bool pattern_supports(const struct rewriting *rewriting, const struct node *node, enum fusion_kind kind)
{
    struct problem problem;
    const struct implementation *implementation = rewriting->choose(rewriting, node, &problem);
    return implementation && implementation->fusions >> kind & 1 &&
        !(implementation->cannot_fuse && implementation->cannot_fuse(&problem));
}

/* pattern_fuse() adds no further fusion, such as an addition or a function, to a node that has one of these. */
enum { LAST = FUSED(NORMALISED) | FUSED(MASK) | FUSED(GATE) | FUSED(STATISTICS) };

bool pattern_fuse(const struct rewriting *rewriting, int n, struct fusion fusion, const int *inputs, int output)
{
    struct node *node = &rewriting->graph->nodes[n];
    const struct node saved = *node;
    if (node_fusions(node) & LAST) return false;
    node_fuse(node, fusion, inputs, output);
    if (pattern_supports(rewriting, node, fusion.kind)) return true;
    *node = saved;
    return false;
}

void pattern_take_output(struct graph *graph, int producer, size_t n)
{
    const int value = graph->nodes[n].outputs[0];
    graph->nodes[producer].outputs[0] = value;
    graph_at(graph, value)->producer = producer;
    graph->nodes[n].operation = NULL;
}
