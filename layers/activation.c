/* relu, clip, leaky relu, sigmoid, tanh. Every gradient is a function of the output, so that a fused activation needs
 * no memory of its input. */
#include <math.h>

#include "graph/network.h"
#include "layers/layers.h"
#include "layers/loop/loop.h"
#include "layers/patterns.h"
#include "layers/pointwise.h"

ATTRIBUTES_DESCRIBE(activation, ATTRIBUTE_NAMED(activation, ACTIVATION, function.activation, "activation"),
    ATTRIBUTE_NAMED(activation, NUMBER, function.low, "low"),
    ATTRIBUTE_NAMED(activation, NUMBER, function.high, "high"))

static tutti_status infer(const struct graph *graph, struct node *node, struct value *outputs)
{
    const struct value *x = graph_at(graph, node->inputs[0]);
    const struct nonlinearity *a = &activation_attributes(node)->function;
    if (a->activation == ACTIVATION_CLIP && !(a->low < a->high))
        return fail(
            TUTTI_INVALID, "clip: min is %g and max is %g: min must be below max", (double)a->low, (double)a->high);
    if (a->activation == ACTIVATION_LEAKY_RELU && !(a->low > 0 && isfinite(a->low)))
        return fail(TUTTI_INVALID, "leaky_relu: alpha is %g: it must be positive and finite", (double)a->low);
    outputs[0] = *x;
    outputs[0].type = TYPE_F32;
    return TUTTI_OK;
}

/* y, dy -> dx */
static tutti_status infer_gradient(const struct graph *graph, struct node *node, struct value *outputs)
{
    const struct value *y = graph_at(graph, node->inputs[0]), *dy = graph_at(graph, node->inputs[1]);
    if (!shape_equal(y->shape, dy->shape))
        return fail(TUTTI_SHAPE, "activation_gradient: the output and its gradient must have the same shape");
    outputs[0] = *dy;
    outputs[0].type = TYPE_F32;
    infer_axes(graph, node, &outputs[0]);
    return TUTTI_OK;
}

static tutti_status gradient(struct graph *graph, const struct node *node, const struct node_gradients *g)
{
    if (g->outputs[0] == NO_VALUE || !g->wanted[0]) return TUTTI_OK;
    const int inputs[] = { node->outputs[0], g->outputs[0] };
    g->inputs[0] =
        graph_append(graph, &operation_activation_gradient, activation_attributes(node), inputs, 2, node->layer);
    return graph->status;
}

const struct operation operation_activation = {
    .name = "activation",
    .inputs = { { "x" } },
    .outputs = { { "y" } },
    .attributes = &activation_attributes_type,
    .infer = infer,
    .gradient = gradient,
    .loop = pointwise_loop,
    .implementations = loop_implementations,
    .flops = loop_flops,
};
const struct operation operation_activation_gradient = {
    .name = "activation_gradient",
    .inputs = { { "y" }, { "dy" } },
    .outputs = { { "dx" } },
    .attributes = &activation_attributes_type,
    .infer = infer_gradient,
    .loop = pointwise_loop,
    .implementations = loop_implementations,
    .flops = loop_flops,
};

/* -------------------------------------------------------------------------------------------------- patterns ---- */

/* result -> activation: the activation moves into the node before. Its gradient reads its output only. */
static bool fuse_activation(const struct rewriting *rewriting, size_t n, int producer)
{
    struct graph *graph = rewriting->graph;
    struct node *node = &graph->nodes[n];
    const struct fusion function = { FUSION_ACTIVATION, activation_attributes(node)->function };
    if (node->fusion_count || node_fusion(&graph->nodes[producer], FUSION_ACTIVATION)) return false;
    if (!pattern_fuse(rewriting, producer, function, NULL, NO_VALUE)) return false;
    pattern_take_output(graph, producer, n);
    return true;
}

const struct pattern pattern_activation = {
    .operation = &operation_activation,
    .sole = true,
    .apply = fuse_activation,
};

/* data gradient -> gradient of an activation: the data gradient multiplies its result by the derivative. */
static bool fuse_mask(const struct rewriting *rewriting, size_t n, int producer)
{
    struct graph *graph = rewriting->graph;
    const struct node *factor = &graph->nodes[n];
    struct node *target = &graph->nodes[producer];
    if (node_added(factor) != NO_VALUE || graph_at(graph, factor->inputs[0])->producer >= producer) return false;
    if (target->fusion_count || target->output_count > 1 || !pattern_supports(rewriting, target, FUSION_MASK))
        return false;
    node_fuse(
        target, (struct fusion) { FUSION_MASK, activation_attributes(factor)->function }, factor->inputs, NO_VALUE);
    pattern_take_output(graph, producer, n);
    return true;
}

const struct pattern pattern_mask = {
    .operation = &operation_activation_gradient,
    .input = 1,
    .sole = true,
    .apply = fuse_mask,
};

/* -------------------------------------------------------------------------------------------------- builders ---- */

static tutti_tensor append(
    tutti_network *network, tutti_tensor x, const char *name, enum activation activation, float low, float high)
{
    if (!network_value(network, x)) return (tutti_tensor) { NO_VALUE };
    const struct activation_attributes attributes = { { activation, low, high } };
    int layer = network_layer_begin(network, NULL, name);
    return network_append(network, layer, &operation_activation, &attributes, &x.id, 1);
}

tutti_tensor tutti_relu(tutti_network *network, tutti_tensor x)
{
    return append(network, x, "relu", ACTIVATION_RELU, 0, 0);
}

tutti_tensor tutti_relu6(tutti_network *network, tutti_tensor x)
{
    return append(network, x, "relu6", ACTIVATION_CLIP, 0, 6);
}

tutti_tensor tutti_clip(tutti_network *network, tutti_tensor x, float low, float high)
{
    return append(network, x, "clip", ACTIVATION_CLIP, low, high);
}

tutti_tensor tutti_leaky_relu(tutti_network *network, tutti_tensor x, float slope)
{
    return append(network, x, "leaky_relu", ACTIVATION_LEAKY_RELU, slope, 0);
}

tutti_tensor tutti_sigmoid(tutti_network *network, tutti_tensor x)
{
    return append(network, x, "sigmoid", ACTIVATION_SIGMOID, 0, 0);
}

tutti_tensor tutti_tanh(tutti_network *network, tutti_tensor x)
{
    return append(network, x, "tanh", ACTIVATION_TANH, 0, 0);
}
