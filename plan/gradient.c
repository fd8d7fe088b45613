/* Appends the loss (pass_loss()), and later the gradient of everything that the parameters need (pass_gradient()), as
 * ordinary nodes: reverse mode, one visit per node from the last to the first. Several uses of a value make `add`
 * nodes, which the rewriting then fuses. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "layers/layers.h"
#include "layers/loss/loss.h"
#include "plan/outputs.h"
#include "plan/passes.h"
#include "plan/pipeline.h"

static struct node *loss_node(const struct plan *plan, int i)
{
    const struct graph *graph = &plan->graph;
    return &graph->nodes[graph_at(graph, plan->options.objective.losses[i])->producer];
}

/* Appends tutti_training.loss: the targets, and the loss of the first output. */
static tutti_status append_loss(struct plan *plan)
{
    struct graph *graph = &plan->graph;
    struct objective *objective = &plan->options.objective;
    const struct value wanted = loss_targets(objective->loss, graph_at(graph, plan->outputs[0]));
    const int targets = graph_value(graph, ROLE_INPUT, wanted.type, wanted.shape, wanted.batched, "targets");
    plan->feeds[plan->feed_count++] = targets;
    const int inputs[3] = { plan->outputs[0], targets, graph_constants(graph) };
    const int metrics = graph_append(graph, objective->loss, NULL, inputs, 3, -1);
    if (metrics == NO_VALUE) return graph->status;
    objective->losses[0] = metrics;
    objective->weights[0] = 1;
    objective->loss_count = 1;
    return TUTTI_OK;
}

/* Appends the node that gives the weighted sum of the losses and each of them. */
static tutti_status append_total(struct plan *plan)
{
    struct graph *graph = &plan->graph;
    const struct objective *objective = &plan->options.objective;
    struct loss_total_attributes attributes = { .counted = -1 };
    for (int i = 0; i < objective->loss_count; i++) {
        attributes.weights[i] = objective->weights[i];
        if (attributes.counted < 0 && loss_node(plan, i)->operation->counts_correct) attributes.counted = i;
    }
    plan->metrics = graph_append(graph, structural.total, &attributes, objective->losses, objective->loss_count, -1);
    return graph->status;
}

int objective_pairs(const struct objective *objective)
{
    const bool alone = objective->loss || (objective->loss_count == 1 && objective->weights[0] == 1);
    return alone || objective->loss_count == 0 ? 1 : 1 + objective->loss_count;
}

tutti_status pass_loss(struct plan *plan)
{
    tutti_status status = TUTTI_OK;
    struct objective *objective = &plan->options.objective;
    if (plan->options.mode == PLAN_INFER || plan->options.seeded) return TUTTI_OK;
    if (objective->loss && objective->loss_count == 0) TRY(append_loss(plan));
    for (int i = 0; i < objective->loss_count; i++) loss_set_weight(loss_node(plan, i), objective->weights[i]);
    if (objective_pairs(objective) > 1)
        TRY(append_total(plan));
    else if (objective->loss_count > 0)
        plan->metrics = objective->losses[0];
    if (plan->metrics != NO_VALUE) graph_at(&plan->graph, plan->metrics)->output = true;
done:
    return status;
}

/* Arrays with an entry for each value of the forward graph. */
struct gradients {
    const struct plan *plan;
    struct graph *graph;
    int *of;       /* its gradient so far, or NO_VALUE */
    int *uses;     /* of a statistic: how many nodes have contributed to its gradient so far */
    bool *needed;  /* it depends on a trained parameter (or, in tests, on the input) */
    bool *reached; /* a loss depends on it */
};

static tutti_status accumulate(struct gradients *g, int value, int gradient)
{
    if (gradient == NO_VALUE) return TUTTI_OK;
    if (g->of[value] == NO_VALUE) {
        g->of[value] = gradient;
        return TUTTI_OK;
    }
    int both[2] = { g->of[value], gradient };
    g->of[value] = graph_append(g->graph, structural.sum, NULL, both, 2, -1);
    return g->graph->status;
}

static int scaled(struct graph *graph, int value, double factor)
{
    const struct pointwise_attributes attributes = { .low = (float)factor };
    return graph_append(graph, structural.scale, &attributes, &value, 1, -1);
}

/* Combines the updates of a statistic. Each use updates it, in order: p = (1 - m) p + m g. Together they are one
 * update with the momentum of all uses, 1 - (1 - m)^uses, and a mean of their g in which each later one weighs more.
 * Uses are visited from the last. */
static tutti_status accumulate_statistic(struct gradients *g, int value, int statistic)
{
    struct graph *graph = g->graph;
    if (statistic == NO_VALUE) return TUTTI_OK;
    const int later = g->uses[value]++, so_far = g->of[value];
    if (later == 0) return accumulate(g, value, statistic);
    const float each = g->plan->network->parameters[graph_at(graph, value)->parameter].momentum;
    const double part = (double)parameter_momentum(each, later) / (double)parameter_momentum(each, later + 1);
    int both[2] = { scaled(graph, so_far, part), NO_VALUE };
    if (both[0] != NO_VALUE) both[1] = scaled(graph, statistic, 1 - part);
    if (both[1] != NO_VALUE) g->of[value] = graph_append(graph, structural.sum, NULL, both, 2, -1);
    return graph->status;
}

static bool is_kind(const struct plan *plan, int value, enum parameter_kind kind)
{
    const struct value *v = graph_at(&plan->graph, value);
    return v->role == ROLE_PARAMETER && plan->network->parameters[v->parameter].kind == kind;
}

/* Appends node n's gradient. Statistics are updated from forward results, even without an output gradient. */
static tutti_status visit(struct gradients *g, size_t n)
{
    struct node node = g->graph->nodes[n]; /* a copy: appending moves the array */
    if (!node.operation->gradient) return TUTTI_OK;
    int output_gradients[GRAPH_MAX_OUTPUTS], input_gradients[GRAPH_MAX_INPUTS];
    bool wanted[GRAPH_MAX_INPUTS], statistics[GRAPH_MAX_INPUTS];
    bool any_output = false, any_input = false, any_statistic = false;
    const bool reached = node_is_reached(&node, g->reached);
    for (int i = 0; i < GRAPH_MAX_OUTPUTS; i++) {
        output_gradients[i] = i < node.output_count && node.outputs[i] != NO_VALUE ? g->of[node.outputs[i]] : NO_VALUE;
        any_output |= output_gradients[i] != NO_VALUE;
    }
    for (int i = 0; i < GRAPH_MAX_INPUTS; i++) {
        const int input = i < node.input_count ? node.inputs[i] : NO_VALUE;
        statistics[i] = input != NO_VALUE && reached && is_kind(g->plan, input, PARAMETER_STATISTIC);
        input_gradients[i] = NO_VALUE;
        wanted[i] = statistics[i] || (input != NO_VALUE && g->needed[input]);
        any_input |= wanted[i];
        any_statistic |= statistics[i];
    }
    if (!any_input || !(any_output || any_statistic)) return TUTTI_OK;
    size_t before = g->graph->node_count;
    tutti_status status = node.operation->gradient(
        g->graph, &node, &(struct node_gradients) { output_gradients, wanted, input_gradients });
    if (status == TUTTI_OK) status = g->graph->status;
    for (size_t i = before; status == TUTTI_OK && i < g->graph->node_count; i++) g->graph->nodes[i].layer = node.layer;
    for (int i = 0; status == TUTTI_OK && i < node.input_count; i++) {
        if (!wanted[i]) continue;
        status = (statistics[i] ? accumulate_statistic : accumulate)(g, node.inputs[i], input_gradients[i]);
    }
    return status;
}

/* Begins with the gradients of the predictions, which the losses compute themselves. */
static tutti_status begin_at_losses(const struct plan *plan, struct gradients *g)
{
    tutti_status status = TUTTI_OK;
    for (int i = 0; i < plan->options.objective.loss_count; i++) {
        if (plan->options.objective.weights[i] == 0) continue;
        const struct node loss = *loss_node(plan, i); /* a copy: appending moves the array */
        TRY(accumulate(g, loss.inputs[0], loss.outputs[1]));
    }
done:
    return status;
}

/* Marks the gradient of every parameter, each in memory of its own: a value that has another role, too, is copied. */
static tutti_status bind_parameters(struct gradients *g, size_t forward_values)
{
    for (size_t i = 0; i < forward_values; i++) {
        int parameter = g->graph->values[i].parameter, gradient = g->of[i];
        if (parameter < 0 || gradient == NO_VALUE) continue;
        const struct value *value = graph_at(g->graph, gradient);
        if (!shape_equal(value->shape, g->graph->values[i].shape))
            return fail(TUTTI_INTERNAL,
                "the gradient of parameter '%s', computed by %s, differs in shape from the parameter",
                g->graph->values[i].name, g->graph->nodes[value->producer].operation->name);
        bool shared = value->gradient_of >= 0 || value->role != ROLE_TEMPORARY || value->output ||
            g->graph->nodes[value->producer].operation->alias;
        if (shared) gradient = graph_append(g->graph, structural.copy, NULL, &gradient, 1, -1);
        if (gradient == NO_VALUE) return g->graph->status;
        graph_at(g->graph, gradient)->gradient_of = parameter;
    }
    return TUTTI_OK;
}

/* Makes the gradients of inputs outputs of the plan. */
static tutti_status bind_inputs(struct plan *plan, const struct gradients *g)
{
    const struct objective *objective = &plan->options.objective;
    for (int i = 0; i < plan_input_gradients(&plan->options); i++) {
        const int input = objective->gradient_inputs[i], gradient = g->of[input];
        if (gradient == NO_VALUE)
            return fail(TUTTI_INVALID, "input '%s' has no gradient: no trained loss depends on it",
                graph_at(&plan->graph, input)->name);
        plan->outputs[objective->output_count + i] = gradient;
        graph_at(&plan->graph, gradient)->output = true;
    }
    return TUTTI_OK;
}

/* Returns, for each value of the forward graph, whether a trained loss depends on it. NULL without memory. */
static bool *reached_values(const struct plan *plan)
{
    const struct objective *objective = &plan->options.objective;
    int from[PLAN_MAX_LOSSES] = { plan->outputs[0] }, count = plan->options.seeded;
    for (int i = 0; !plan->options.seeded && i < objective->loss_count; i++)
        if (objective->weights[i] != 0) from[count++] = loss_node(plan, i)->inputs[0];
    return graph_reaches(&plan->graph, from, count);
}

void gradient_mark(const struct plan *plan, bool *needed, size_t count)
{
    const struct graph *graph = &plan->graph;
    for (size_t i = 0; i < count; i++) needed[i] = is_kind(plan, (int)i, PARAMETER_TRAINED);
    if (plan->options.seeded) needed[plan->feeds[0]] = true;
    for (int i = 0; i < plan_input_gradients(&plan->options); i++)
        needed[plan->options.objective.gradient_inputs[i]] = true;
    for (size_t n = 0; n < graph->node_count; n++) {
        const struct node *node = &graph->nodes[n];
        bool any = false;
        for (int i = 0; i < node->input_count; i++) any |= node->inputs[i] != NO_VALUE && needed[node->inputs[i]];
        for (int i = 0; i < node->output_count; i++)
            if (node->outputs[i] != NO_VALUE) needed[node->outputs[i]] |= any;
    }
}

static tutti_status append_seed(struct plan *plan)
{
    struct graph *graph = &plan->graph;
    const struct value output = *graph_at(graph, plan->outputs[0]); /* a copy: appending moves the array */
    plan->seed = graph_value(graph, ROLE_INPUT, TYPE_F32, output.shape, true, "seed");
    if (plan->seed == NO_VALUE) return graph->status;
    graph_at(graph, plan->seed)->axes = output.axes;
    return TUTTI_OK;
}

tutti_status pass_gradient(struct plan *plan)
{
    tutti_status status = TUTTI_OK;
    struct graph *graph = &plan->graph;
    struct gradients g = { 0 };
    if (plan->options.mode != PLAN_TRAIN) return TUTTI_OK;
    if (plan->options.seeded) TRY(append_seed(plan));
    const size_t values = graph->value_count, nodes = graph->node_count;
    plan->forward_values = values;
    g = (struct gradients) { plan, graph, memory_new(values, sizeof *g.of), memory_new(values, sizeof *g.uses),
        memory_new(values, sizeof *g.needed), reached_values(plan) };
    if (!g.of || !g.uses || !g.needed || !g.reached) {
        status = TUTTI_NO_MEMORY;
        goto done;
    }
    for (size_t i = 0; i < values; i++) g.of[i] = NO_VALUE;
    gradient_mark(plan, g.needed, values);
    if (plan->options.seeded) {
        g.of[plan->outputs[0]] = plan->seed;
    } else if (plan->metrics != NO_VALUE) {
        TRY(begin_at_losses(plan, &g));
    } else {
        FAIL(TUTTI_INVALID, "tutti_training.loss is TUTTI_LOSS_NONE: training needs another loss");
    }
    for (size_t n = nodes; n-- > 0;) TRY(visit(&g, n));
    TRY(bind_inputs(plan, &g)); /* first: a value that is an output, too, is not the gradient of a parameter */
    TRY(bind_parameters(&g, values));
    if (plan->options.seeded && g.of[plan->feeds[0]] != NO_VALUE) {
        plan->input_gradient = g.of[plan->feeds[0]];
        graph_at(graph, plan->input_gradient)->output = true;
    }
done:
    free(g.of);
    free(g.uses);
    free(g.needed);
    free(g.reached);
    return status;
}
