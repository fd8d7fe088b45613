/* batch_norm: its builder, shapes, gradient and lists of implementations; and folding it into the weights before it. */
#include "layers/batch_norm/batch_norm.h"
#include "layers/interpreter/interpreter.h"

#include "base/memory.h"
#include "base/options.h"
#include "graph/network.h"
#include "layers/batch_norm/arguments/batch_norm_plain.h"
#include "layers/elementwise.h"
#include "layers/image.h"
#include "layers/layers.h"
#include "runtime/arguments.h"

ATTRIBUTES_DESCRIBE(batch_norm, ATTRIBUTE(batch_norm, NUMBER, epsilon), ATTRIBUTE(batch_norm, FLAG, biased_variance))

/* ---------------------------------------------------------------------------------------------------- shapes ---- */

static tutti_status check_axes(const char *name, const struct value *x)
{
    if (x->shape.rank == IMAGE_RANK || x->shape.rank == SPACE_AXIS) return TUTTI_OK;
    return fail(TUTTI_SHAPE, "%s: the input must be [C, H, W] or [features], but it has %d dimensions", name,
        x->shape.rank - 1);
}

static tutti_status check(
    const struct graph *graph, const struct node *node, const struct value *x, int first, int last)
{
    const float epsilon = batch_norm_attributes(node)->epsilon;
    const char *name = node->operation->name;
    const tutti_status status = check_axes(name, x);
    if (status != TUTTI_OK) return status;
    if (!(epsilon > 0)) return fail(TUTTI_INVALID, "%s: epsilon is %g: it must be positive", name, (double)epsilon);
    for (int i = first; i <= last; i++) {
        const struct value *v = graph_at(graph, node->inputs[i]);
        if (v->shape.rank != 1 || v->shape.sizes[0] != x->shape.sizes[CHANNEL_AXIS])
            return fail(TUTTI_SHAPE, "%s: input %d must have one element for each of the %lld channels", name, i,
                (long long)x->shape.sizes[CHANNEL_AXIS]);
    }
    return TUTTI_OK;
}

static struct value channels(int64_t count)
{
    return (struct value) { .type = TYPE_F32, .shape = TUTTI_SHAPE(count) };
}

static tutti_status infer(const struct graph *graph, struct node *node, struct value *outputs)
{
    const struct value *x = graph_at(graph, node->inputs[NORM_X]);
    tutti_status status = check(graph, node, x, NORM_GAMMA, NORM_VAR);
    outputs[NORM_Y] = image_value(x->shape, x->batched);
    for (int i = NORM_SAVED_MEAN; i <= NORM_BATCH_VAR; i++) outputs[i] = channels(x->shape.sizes[CHANNEL_AXIS]);
    node->output_count = NORM_BATCH_VAR + 1;
    return status;
}

static tutti_status infer_gradient(const struct graph *graph, struct node *node, struct value *outputs)
{
    const struct value *x = graph_at(graph, node->inputs[GRADIENT_X]), *dy = graph_at(graph, node->inputs[GRADIENT_DY]);
    tutti_status status = check(graph, node, x, GRADIENT_GAMMA, GRADIENT_RSTD);
    if (status == TUTTI_OK && !shape_equal(x->shape, dy->shape))
        return fail(TUTTI_SHAPE, "batch_norm_gradient: the input and the output's gradient must have the same shape");
    outputs[GRADIENT_DX] = image_value(x->shape, x->batched);
    outputs[GRADIENT_DGAMMA] = outputs[GRADIENT_DBETA] = channels(x->shape.sizes[CHANNEL_AXIS]);
    node->output_count = GRADIENT_DBETA + 1;
    return status;
}

static tutti_status infer_inference(const struct graph *graph, struct node *node, struct value *outputs)
{
    const struct value *x = graph_at(graph, node->inputs[NORM_X]);
    outputs[NORM_Y] = image_value(x->shape, x->batched);
    return check(graph, node, x, NORM_GAMMA, NORM_VAR);
}

static tutti_status infer_fold(const struct graph *graph, struct node *node, struct value *outputs)
{
    const struct value *w = graph_at(graph, node->inputs[0]);
    for (int i = 1; i < 6; i++) {
        const struct value *v = graph_at(graph, node->inputs[i]);
        if (v && (v->shape.rank != 1 || v->shape.sizes[0] != w->shape.sizes[0]))
            return fail(TUTTI_SHAPE, "fold_batch_norm: input %d must have one element for each of the %lld outputs", i,
                (long long)w->shape.sizes[0]);
    }
    outputs[0] = (struct value) { .type = TYPE_F32, .shape = w->shape };
    outputs[1] = channels(w->shape.sizes[0]);
    node->output_count = 2;
    return TUTTI_OK;
}

/* Returns the biased variance of the M values that a mean is of: (M - 1) / M times the unbiased one. */
static int biased_variance(struct graph *graph, const struct node *node)
{
    const struct planes x = value_planes(graph_at(graph, node->inputs[NORM_X]), CHANNEL_AXIS);
    const double count = (double)(x.n * x.pixels);
    const struct pointwise_attributes attributes = { .low = (float)((count - 1) / count) };
    return graph_append(graph, &operation_scale, &attributes, &node->outputs[NORM_BATCH_VAR], 1, node->layer);
}

/* The "gradients" of the running statistics are outputs of the forward node. */
static tutti_status gradient(struct graph *graph, const struct node *node, const struct node_gradients *g)
{
    if (g->wanted[NORM_MEAN]) g->inputs[NORM_MEAN] = node->outputs[NORM_BATCH_MEAN];
    const bool scaled = batch_norm_attributes(node)->biased_variance;
    if (g->wanted[NORM_VAR])
        g->inputs[NORM_VAR] = scaled ? biased_variance(graph, node) : node->outputs[NORM_BATCH_VAR];
    if (g->outputs[NORM_Y] == NO_VALUE) return TUTTI_OK;
    int inputs[] = { node->inputs[NORM_X], g->outputs[NORM_Y], node->inputs[NORM_GAMMA], node->outputs[NORM_SAVED_MEAN],
        node->outputs[NORM_SAVED_RSTD] };
    const struct batch_norm_attributes *attributes = batch_norm_attributes(node);
    if (graph_append(graph, &operation_batch_norm_gradient, attributes, inputs, 5, node->layer) == NO_VALUE)
        return graph->status;
    const struct node *made = graph_last(graph);
    if (g->wanted[NORM_X]) g->inputs[NORM_X] = made->outputs[GRADIENT_DX];
    if (g->wanted[NORM_GAMMA]) g->inputs[NORM_GAMMA] = made->outputs[GRADIENT_DGAMMA];
    if (g->wanted[NORM_BETA]) g->inputs[NORM_BETA] = made->outputs[GRADIENT_DBETA];
    return graph->status;
}

/* --------------------------------------------------------------------------------------------------- folding ---- */

ARGUMENTS(fold, FOLD_ARGUMENTS)

static void emit_fold(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct value *w = problem->inputs[0];
    int64_t floats = value_elements(w), inner = floats / w->shape.sizes[0];
    const bool is_long = floats > INT32_MAX;
    struct launch *launch =
        launch_add(list, "batch_norm_plain", "fold", "-DGROUP=1 -DWIDE=1 -DINDEX=%s", is_long ? "ulong" : "uint");
    const cl_mem *inputs = operands->inputs, *outputs = operands->outputs;
    ARGUMENTS_SET(launch, fold, .w = inputs[0], .bias = inputs[1], .gamma = inputs[2], .beta = inputs[3],
        .mean = inputs[4], .var = inputs[5], .folded = outputs[0], .folded_bias = outputs[1],
        .floats = index_argument(floats, is_long), .inner = inner,
        .epsilon = (double)batch_norm_attributes(problem->node)->epsilon);
    items_launch(launch, problem->device, 64, floats, 0);
    launch_work(launch, (double)floats, 8.0 * (double)floats);
}

static const struct implementation fold_plain = { .name = "plain", .emit = emit_fold };

/* ---------------------------------------------------------------------------------------------------- tables ---- */

static double flops_of(const struct problem *problem, double each)
{
    return each * (double)value_elements(problem->inputs[0]);
}

static double flops(const struct problem *problem)
{
    return flops_of(problem, 5);
}

static double flops_gradient(const struct problem *problem)
{
    return flops_of(problem, 8);
}

static double flops_inference(const struct problem *problem)
{
    return flops_of(problem, 2);
}

const struct operation operation_batch_norm = {
    .name = "batch_norm",
    .inputs = { [NORM_X] = { "x" },
        [NORM_GAMMA] = { "gamma" },
        [NORM_BETA] = { "beta" },
        [NORM_MEAN] = { "running_mean" },
        [NORM_VAR] = { "running_var" },
        [NORM_CONSTANTS] = { "constants" } },
    .outputs = { [NORM_Y] = { "y" },
        [NORM_SAVED_MEAN] = { "mean", PORT_OWN },
        [NORM_SAVED_RSTD] = { "rstd", PORT_OWN },
        [NORM_BATCH_MEAN] = { "batch_mean" },
        [NORM_BATCH_VAR] = { "batch_var" } },
    .whole_batch = true,
    .attributes = &batch_norm_attributes_type,
    .infer = infer,
    .gradient = gradient,
    .inference = batch_norm_in_inference,
    .reference = interpret_batch_norm,
    .implementations = norm_forward,
    .flops = flops,
};
const struct operation operation_batch_norm_gradient = {
    .name = "batch_norm_gradient",
    .inputs = { [GRADIENT_X] = { "x" },
        [GRADIENT_DY] = { "dy" },
        [GRADIENT_GAMMA] = { "gamma" },
        [GRADIENT_MEAN] = { "mean" },
        [GRADIENT_RSTD] = { "rstd" } },
    .outputs = { [GRADIENT_DX] = { "dx" }, [GRADIENT_DGAMMA] = { "dgamma" }, [GRADIENT_DBETA] = { "dbeta" } },
    .attributes = &batch_norm_attributes_type,
    .infer = infer_gradient,
    .reference = interpret_batch_norm_gradient,
    .implementations = norm_gradient,
    .flops = flops_gradient,
};
const struct operation operation_batch_norm_inference = {
    .name = "batch_norm_inference",
    .inputs = { { "x" }, { "gamma" }, { "beta" }, { "running_mean" }, { "running_var" } },
    .outputs = { { "y" } },
    .attributes = &batch_norm_attributes_type,
    .infer = infer_inference,
    .reference = interpret_batch_norm,
    .implementations = norm_inference,
    .flops = flops_inference,
};
const struct operation operation_fold_batch_norm = {
    .name = "fold_batch_norm",
    .inputs = { { "w" }, { "bias", PORT_OPTIONAL }, { "gamma" }, { "beta" }, { "running_mean" }, { "running_var" } },
    .outputs = { { "w" }, { "bias" } },
    .attributes = &batch_norm_attributes_type,
    .infer = infer_fold,
    .reference = interpret_fold_batch_norm,
    .implementations = ONE(fold_plain),
};

/* --------------------------------------------------------------------------------------------------- builder ---- */

static tutti_status check_momentum(float momentum)
{
    if (!(momentum > 0 && momentum <= 1))
        return fail(TUTTI_INVALID, "batch_norm: momentum is %g: it must be above 0 and at most 1", (double)momentum);
    return TUTTI_OK;
}

tutti_tensor batch_norm_build(
    tutti_network *network, tutti_tensor tensor, const tutti_batch_norm_options *options, bool biased)
{
    tutti_batch_norm_options read;
    const tutti_batch_norm_options *o = &read;
    const tutti_status readable = OPTIONS_READ(&read, options, tutti_batch_norm_options);
    if (readable != TUTTI_OK) return network_fail(network, readable);
    const struct value *x = network_value(network, tensor);
    if (!x) return (tutti_tensor) { NO_VALUE };
    const struct batch_norm_attributes attributes = { .epsilon = o->epsilon != 0 ? o->epsilon : 1e-5f,
        .biased_variance = biased };
    const float momentum = o->momentum != 0 ? o->momentum : 0.1f;
    tutti_status status = check_axes("batch_norm", x);
    if (status == TUTTI_OK) status = check_momentum(momentum);
    if (status != TUTTI_OK) return network_fail(network, status);

    tutti_shape shape = TUTTI_SHAPE(x->shape.sizes[CHANNEL_AXIS]);
    struct parameter weight = { .init = TUTTI_INIT_ZEROS, .init_constant = 1 };
    struct parameter bias = { .init = TUTTI_INIT_ZEROS };
    struct parameter mean = { .kind = PARAMETER_STATISTIC, .momentum = momentum, .init = TUTTI_INIT_ZEROS };
    struct parameter var = {
        .kind = PARAMETER_STATISTIC, .momentum = momentum, .init = TUTTI_INIT_ZEROS, .init_constant = 1
    };
    int layer = network_layer_begin(network, o->name, "batch_norm");
    int inputs[6] = { tensor.id };
    inputs[NORM_GAMMA] = network_weight(network, layer, o->weight, "weight", shape, &weight);
    inputs[NORM_BETA] = network_weight(network, layer, o->bias, "bias", shape, &bias);
    inputs[NORM_MEAN] = network_weight(network, layer, o->running_mean, "running_mean", shape, &mean);
    inputs[NORM_VAR] = network_weight(network, layer, o->running_var, "running_var", shape, &var);
    inputs[NORM_CONSTANTS] = network_ok(network) ? graph_constants(&network->graph) : NO_VALUE;
    return network_append(network, layer, &operation_batch_norm, &attributes, inputs, 6);
}

tutti_tensor tutti_batch_norm(tutti_network *network, tutti_tensor x, const tutti_batch_norm_options *options)
{
    return batch_norm_build(network, x, options, false);
}
