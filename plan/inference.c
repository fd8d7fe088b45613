/* Inference: replaces nodes by the inference forms that their operations define; dropout disappears, for example. */
#include "graph/edit.h"
#include "plan/outputs.h"
#include "plan/passes.h"

/* Drops the nodes after the outputs. An output may be any tensor of the network, and nodes after it must not be
 * folded into the node that makes it. */
static tutti_status drop_after_outputs(struct plan *plan)
{
    const struct objective *objective = &plan->options.objective;
    const bool evaluates = plan->options.mode != PLAN_INFER;
    const int wanted = plan_wanted_outputs(&plan->options);
    plan_keep_outputs(plan, !evaluates || objective->loss ? objective->output_count : wanted);
    for (int i = 0; evaluates && i < objective->loss_count; i++)
        graph_at(&plan->graph, objective->losses[i])->output = true;
    const tutti_status status = pass_sweep(plan);
    plan_keep_outputs(plan, wanted);
    for (int i = 0; evaluates && i < objective->loss_count; i++)
        graph_at(&plan->graph, objective->losses[i])->output = false;
    return status;
}

tutti_status pass_inference(struct plan *plan)
{
    tutti_status status = TUTTI_OK;
    struct graph *graph = &plan->graph;
    if (plan->options.mode == PLAN_TRAIN) return TUTTI_OK;
    TRY(drop_after_outputs(plan));
    for (size_t n = 0; n < graph->node_count; n++) {
        const struct node node = graph->nodes[n];
        int same = NO_VALUE;
        if (!node.operation || !node.operation->inference) continue;
        TRY(node.operation->inference(graph, &n, &same));
        if (same == NO_VALUE) continue;
        for (int i = 0; i < plan->options.objective.output_count; i++)
            if (plan->outputs[i] == node.outputs[0]) plan->outputs[i] = same;
        edit_replace(graph, node.outputs[0], same, n + 1);
        graph->nodes[n].operation = NULL;
    }
    edit_compact(graph);
done:
    return status;
}
