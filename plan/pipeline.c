#include "plan/pipeline.h"

#include <stdlib.h>
#include <string.h>

#include "base/invariant.h"
#include "base/memory.h"
#include "base/text.h"
#include "layers/loss/loss.h"
#include "plan/node.h"
#include "plan/outputs.h"
#include "plan/passes.h"

struct pass {
    const char *name;
    tutti_status (*run)(struct plan *plan);
};

static const struct pass passes[] = {
    { "inference", pass_inference },
    { "loss", pass_loss },
    { "combine", pass_combine },
    { "gradient", pass_gradient },
    { "sweep", pass_sweep },
    { "rewrite", pass_rewrite },
    { "recompute", pass_recompute },
    { "stored", pass_stored },
    { "select", pass_select },
    { "compose", pass_compose },
    { "sweep", pass_sweep },
    { "storage", pass_storage },
};

tutti_status plan_find_inputs(const struct graph *graph, int *inputs, int *count)
{
    *count = 0;
    for (size_t v = 0; v < graph->value_count; v++)
        if (graph->values[v].role == ROLE_INPUT) inputs[(*count)++] = (int)v;
    return *count > 0 ? TUTTI_OK : fail(TUTTI_INVALID, "the network has no input: add one with tutti_input()");
}

struct objective objective_of(tutti_tensor output, tutti_loss loss)
{
    return (struct objective) { .outputs = { output.id }, .output_count = 1, .loss = loss_find(loss) };
}

static tutti_status check_objective(const struct plan *plan)
{
    const struct objective *objective = &plan->options.objective;
    for (int i = 0; i < objective->output_count; i++) {
        const struct value *output = graph_at(&plan->graph, objective->outputs[i]);
        if (!output)
            return fail(TUTTI_INVALID,
                "output %d is not a tensor of the network: pass one that the network's functions returned", i);
        if (!output->batched)
            return fail(TUTTI_INVALID, "output %d does not depend on the network's input: pass another tensor", i);
    }
    for (int i = 0; i < objective->loss_count; i++) {
        const struct value *loss = graph_at(&plan->graph, objective->losses[i]);
        if (!loss || loss->producer < 0 || !plan->graph.nodes[loss->producer].operation->is_loss)
            return fail(
                TUTTI_INVALID, "loss %d is not a loss of the network: pass a tensor that a loss function returned", i);
    }
    return TUTTI_OK;
}

/* Prints the graph after a pass. `before` is the graph as it was printed last. */
static void print_graph(const struct plan *plan, const char *pass, struct text *before, struct text *text)
{
    struct text graph = { 0 };
    graph_print(&plan->graph, &graph);
    const bool same = before->data && graph.data && !strcmp(before->data, graph.data);
    text_append(text, "-- after %s%s\n%s", pass, same ? ": unchanged" : "", same || !graph.data ? "" : graph.data);
    text->failed |= graph.failed;
    text_free(before);
    *before = graph;
}

static tutti_status run_passes(struct plan *plan)
{
    tutti_status status = TUTTI_OK;
    struct text text = { 0 }, before = { 0 };
    TRY(graph_bind(&plan->network->graph, plan->options.sizes, &plan->graph));
    if (plan->options.objective.loss) plan->options.objective.loss_count = 0; /* a second run appends it again */
    memcpy(plan->outputs, plan->options.objective.outputs, sizeof plan->outputs);
    TRY(plan_find_inputs(&plan->graph, plan->feeds, &plan->input_count));
    plan->feed_count = plan->input_count;
    TRY(check_objective(plan));
    const int wanted = plan_wanted_outputs(&plan->options);
    if (wanted > 0) plan_keep_outputs(plan, wanted);
    for (size_t i = 0; i < sizeof passes / sizeof *passes; i++) {
        TRY(passes[i].run(plan));
        if (plan->options.mode == PLAN_INFER || plan->options.mode == PLAN_SCORE) plan_keep_outputs(plan, wanted);
        if (plan->options.guards || TUTTI_IS_DEBUG) {
            status = graph_validate(&plan->graph);
            if (status != TUTTI_OK) {
                status_context(status, "after pass %s", passes[i].name);
                goto done;
            }
        }
        if (!plan->options.explain) continue;
        print_graph(plan, passes[i].name, &before, &text);
    }
    TRY(pass_design(plan));
    if (plan->options.explain) TRY(pass_remark(plan));
    plan->constants = plan->graph.constants;
    if (plan->options.explain) plan->explanation.passes = text_take(&text);
done:
    text_free(&text);
    text_free(&before);
    return status;
}

/* The kernels of a node decide its fusions. So the plan is made as a whole with channels last, and made again without
 * where that does not pay. */
tutti_status plan_run_passes(struct plan *plan)
{
    const tutti_precision precision = plan->options.precision;
    if (precision != TUTTI_FP32 && precision != TUTTI_BF16 && precision != TUTTI_TF32 && precision != TUTTI_FP16)
        return fail(TUTTI_INVALID, "precision %d does not exist: pass one of tutti_precision", (int)precision);
    plan->channels_last = plan->device->can.matrix[plan_compute(plan)].form != MATRIX_NONE;
    tutti_status status = run_passes(plan);
    if (status != TUTTI_OK || !plan->channels_last || channels_last_pays(plan)) return status;
    plan_restart(plan);
    plan->channels_last = false;
    return run_passes(plan);
}

void plan_restart(struct plan *plan)
{
    graph_free(&plan->graph);
    free(plan->explanation.choices);
    free(plan->explanation.passes);
    plan->explanation.choices = plan->explanation.passes = NULL;
    plan->explanation.count = 0;
    plan->constants = plan->metrics = plan->seed = plan->input_gradient = NO_VALUE;
    plan->feed_count = plan->input_count = 0;
}

struct plan *plan_start(struct device *device, const tutti_network *network, const struct plan_options *options)
{
    struct plan *plan = memory_new(1, sizeof *plan);
    if (!plan) return NULL;
    plan->device = device;
    plan->network = network;
    plan->options = *options;
    plan_restart(plan);
    return plan;
}

void plan_free(struct plan *plan)
{
    if (!plan) return;
    launch_list_free(&plan->prepare);
    launch_list_free(&plan->launches);
    for (size_t i = 0; i < plan->memory.buffer_count; i++)
        if (plan->memory.buffers) buffer_free(&plan->memory.buffers[i]);
    for (size_t i = 0; i < plan->memory.prepared_count; i++)
        if (plan->memory.prepared) buffer_free(&plan->memory.prepared[i]);
    buffer_free(&plan->memory.workspace);
    free(plan->memory.buffers);
    free(plan->memory.prepared);
    free(plan->commands);
    free(plan->explanation.choices);
    free(plan->explanation.passes);
    free(plan->explanation.places);
    arena_free(plan->memory.arena);
    graph_free(&plan->graph);
    plan_designs_free(plan);
    free(plan);
}
