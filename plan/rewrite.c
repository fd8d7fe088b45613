/* Rewrites the patterns of nodes that layers/ declares: forward patterns once, before there are gradients
 * (pass_combine()), and fusions until none matches (pass_rewrite()). */
#include <stdlib.h>

#include "base/memory.h"
#include "graph/edit.h"
#include "graph/pattern.h"
#include "plan/node.h"

static const struct implementation *choose(
    const struct rewriting *rewriting, const struct node *node, struct problem *problem)
{
    problem_of(rewriting->plan, node, problem);
    return choose_implementation(rewriting->plan, node);
}

static bool design(
    const struct rewriting *rewriting, const struct implementation *implementation, struct problem *problem)
{
    if (!implementation->design) return true;
    problem->design = plan_design(rewriting->plan, problem, implementation);
    if (!problem->design) rewriting->graph->status = TUTTI_NO_MEMORY;
    return problem->design != NULL;
}

static bool needs_gradient(const struct rewriting *rewriting, int value)
{
    const struct plan *plan = rewriting->plan;
    if (plan->options.mode != PLAN_TRAIN) return false;
    bool *needed = memory_new(rewriting->graph->value_count, sizeof *needed);
    if (!needed) rewriting->graph->status = TUTTI_NO_MEMORY;
    if (needed) gradient_mark(plan, needed, rewriting->graph->value_count);
    const bool is_needed = needed && needed[value];
    free(needed);
    return is_needed;
}

bool rewrite_by(struct plan *plan, const struct pattern *pattern)
{
    const struct rewriting rewriting = {
        .graph = &plan->graph, .plan = plan, .choose = choose, .design = design, .needs_gradient = needs_gradient
    };
    bool changed = false;
    for (size_t n = 0; n < plan->graph.node_count; n++) {
        int producer = -1;
        if (pattern_matches(pattern, &plan->graph, n, &producer)) changed |= pattern->apply(&rewriting, n, producer);
    }
    return changed;
}

tutti_status pass_combine(struct plan *plan)
{
    for (const struct pattern *const *pattern = forward_patterns; *pattern; pattern++) {
        rewrite_by(plan, *pattern);
        edit_compact(&plan->graph);
    }
    return plan->graph.status;
}

tutti_status pass_rewrite(struct plan *plan)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (const struct pattern *const *pattern = patterns; *pattern; pattern++)
            changed |= rewrite_by(plan, *pattern);
        edit_compact(&plan->graph);
    }
    return plan->graph.status;
}

tutti_status pass_sweep(struct plan *plan)
{
    struct graph *graph = &plan->graph;
    for (size_t n = graph->node_count; n-- > 0;) {
        struct node *node = &graph->nodes[n];
        bool wanted = false;
        for (int i = 0; i < node->output_count; i++) {
            if (node->outputs[i] == NO_VALUE) continue;
            const bool used = edit_is_kept(graph, node->outputs[i]) || edit_uses(graph, node->outputs[i]) > 0;
            if (!used && !(node_output_port(node, i)->flags & PORT_OWN)) node->outputs[i] = NO_VALUE;
            wanted |= used;
        }
        if (!wanted) node->operation = NULL;
    }
    edit_compact(graph);
    return TUTTI_OK;
}
