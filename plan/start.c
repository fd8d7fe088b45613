#include "plan/start.h"

#include <stdlib.h>

#include "base/invariant.h"
#include "base/memory.h"
#include "base/text.h"
#include "plan/node.h"
#include "plan/passes.h"

struct pass {
    const char *name;
    tutti_status (*run)(struct plan *plan);
};

static const struct pass passes[] = {
    { "inference", pass_inference },
    { "loss", pass_loss },
    { "gradient", pass_gradient },
    { "sweep", pass_sweep },
    { "rewrite", pass_rewrite },
    { "layout", pass_choose },
    { "storage", pass_storage },
};

tutti_status plan_find_inputs(const struct graph *graph, int *inputs, int *count)
{
    const int most = PLAN_MAX_FEEDS - 1; /* one is for targets */
    *count = 0;
    for (size_t v = 0; v < graph->value_count; v++) {
        if (graph->values[v].role != ROLE_INPUT) continue;
        if (*count == most)
            return fail(TUTTI_INVALID, "the network has more than %d inputs: make one input that holds several", most);
        inputs[(*count)++] = (int)v;
    }
    return *count > 0 ? TUTTI_OK : fail(TUTTI_INVALID, "the network has no input: add one with tutti_input()");
}

static tutti_status check_options(const struct plan *plan)
{
    const struct value *output = graph_at(&plan->graph, plan->output);
    if (!output)
        return fail(
            TUTTI_INVALID, "the output is not a tensor of the network: pass one that the network's functions returned");
    if (!output->batched)
        return fail(TUTTI_INVALID, "the output does not depend on the network's input: pass another tensor");
    return TUTTI_OK;
}

static tutti_status run_passes(struct plan *plan)
{
    tutti_status status = TUTTI_OK;
    struct text text = { 0 };
    TRY(graph_bind(&plan->network->graph, plan->options.samples, &plan->graph));
    plan->output = plan->options.output.id;
    TRY(plan_find_inputs(&plan->graph, plan->feeds, &plan->input_count));
    plan->feed_count = plan->input_count;
    TRY(check_options(plan));
    if (plan->options.mode == PLAN_INFER || plan->options.seeded) plan->graph.values[plan->output].output = true;
    for (size_t i = 0; i < sizeof passes / sizeof *passes; i++) {
        TRY(passes[i].run(plan));
        if (plan->options.mode == PLAN_INFER) plan->graph.values[plan->output].output = true;
        if (plan->options.guards || TUTTI_IS_DEBUG) {
            status = graph_validate(&plan->graph);
            if (status != TUTTI_OK) {
                status_context(status, "after pass %s", passes[i].name);
                goto done;
            }
        }
        if (!plan->options.explain) continue;
        text_append(&text, "-- after %s\n", passes[i].name);
        graph_print(&plan->graph, &text);
    }
    plan->constants = plan->graph.constants;
    if (plan->options.explain) plan->passes = text_take(&text);
done:
    text_free(&text);
    return status;
}

/* Which kernels a node gets decides fusions, so that a plan with channels last is made as a whole, and once more
 * without where that one does not pay. */
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
    free(plan->explanation);
    free(plan->passes);
    plan->explanation = plan->passes = NULL;
    plan->constants = plan->output = plan->metrics = plan->seed = plan->input_gradient = NO_VALUE;
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
    launch_list_free(&plan->step);
    for (size_t i = 0; i < plan->buffer_count; i++)
        if (plan->buffers) buffer_free(&plan->buffers[i]);
    for (size_t i = 0; i < plan->prepared_count; i++)
        if (plan->prepared) buffer_free(&plan->prepared[i]);
    buffer_free(&plan->workspace);
    free(plan->buffers);
    free(plan->prepared);
    free(plan->buckets);
    free(plan->needs);
    free(plan->explanation);
    free(plan->passes);
    arena_free(plan->arena);
    graph_free(&plan->graph);
    free(plan);
}
