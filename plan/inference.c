/* Inference: dropout does nothing, and batch normalisation becomes part of the weights before it, or a scale and shift.
 */
#include "layers/layers.h"
#include "plan/edit.h"
#include "plan/passes.h"
#include "plan/start.h"

/* Whether the batch normalisation at n can move into the weights of the node that makes its input. */
static int foldable(const struct graph *graph, const struct node *norm)
{
    const struct value *x = graph_at(graph, norm->inputs[0]);
    if (x->producer < 0 || edit_is_kept(graph, norm->inputs[0]) || edit_uses(graph, norm->inputs[0]) != 1) return -1;
    const struct node *before = &graph->nodes[x->producer];
    bool weights = before->operation == &operation_conv2d || before->operation == &operation_dense;
    if (!weights || before->epilogue.activation || before->epilogue.add != NO_VALUE) return -1;
    if (before->operation == &operation_dense && x->shape.rank != 2) return -1;
    return graph_at(graph, before->inputs[1])->role == ROLE_PARAMETER ? x->producer : -1;
}

/* w' = w gamma / sqrt(var + epsilon), b' = beta + (b - mean) gamma / sqrt(var + epsilon), made once. */
static tutti_status fold(struct graph *graph, size_t norm, int before)
{
    struct node node = graph->nodes[norm], target = graph->nodes[before];
    int bias = target.input_count > 2 ? target.inputs[2] : NO_VALUE;
    int inputs[6] = { target.inputs[1], bias, node.inputs[1], node.inputs[2], node.inputs[3], node.inputs[4] };
    if (graph_append(graph, &operation_fold_batch_norm, &node.attributes, inputs, 6, target.layer) == NO_VALUE)
        return graph->status;
    struct node folded = *graph_last(graph);
    target.inputs[1] = folded.outputs[0];
    target.inputs[2] = folded.outputs[1];
    target.input_count = 3;
    target.outputs[0] = node.outputs[0];
    graph->nodes[before] = target;
    graph->nodes[norm].operation = NULL;
    edit_move_last(graph, (size_t)before);
    return TUTTI_OK;
}

static tutti_status scale_and_shift(struct graph *graph, size_t norm)
{
    struct node node = graph->nodes[norm];
    if (graph_append(graph, &operation_batch_norm_inference, &node.attributes, node.inputs, 5, node.layer) == NO_VALUE)
        return graph->status;
    struct node made = *graph_last(graph);
    graph->node_count--;
    made.outputs[0] = node.outputs[0]; /* the value that it appended stays behind, unused */
    graph->nodes[norm] = made;
    return TUTTI_OK;
}

/* An output may be any tensor of the network. Nodes behind it must not be folded into the node that makes it. */
static tutti_status drop_behind_outputs(struct plan *plan)
{
    const struct objective *objective = &plan->options.objective;
    const bool evaluates = plan->options.mode == PLAN_EVALUATE;
    if (!evaluates || objective->loss) plan_keep_outputs(plan, true);
    for (int i = 0; evaluates && i < objective->loss_count; i++)
        graph_at(&plan->graph, objective->losses[i])->output = true;
    const tutti_status status = pass_sweep(plan);
    plan_keep_outputs(plan, plan->options.mode == PLAN_INFER || plan->options.seeded);
    for (int i = 0; evaluates && i < objective->loss_count; i++)
        graph_at(&plan->graph, objective->losses[i])->output = false;
    return status;
}

static void rename_outputs(struct plan *plan, int from, int to)
{
    for (int i = 0; i < plan->options.objective.output_count; i++)
        if (plan->outputs[i] == from) plan->outputs[i] = to;
}

tutti_status pass_inference(struct plan *plan)
{
    tutti_status status = TUTTI_OK;
    struct graph *graph = &plan->graph;
    if (plan->options.mode == PLAN_TRAIN) return TUTTI_OK;
    TRY(drop_behind_outputs(plan));
    for (size_t n = 0; n < graph->node_count; n++) {
        struct node *node = &graph->nodes[n];
        if (node->operation == &operation_dropout) {
            rename_outputs(plan, node->outputs[0], node->inputs[0]);
            edit_replace(graph, node->outputs[0], node->inputs[0], n + 1);
            node->operation = NULL;
        } else if (node->operation == &operation_batch_norm) {
            int before = foldable(graph, node);
            if (before >= 0) {
                TRY(fold(graph, n, before));
                n++; /* the folding node was put in front */
            } else {
                TRY(scale_and_shift(graph, n));
            }
        }
    }
    edit_compact(graph);
done:
    return status;
}
