/* dense: y = x W^T + b over the last dimension, and its gradients. */
#include "base/options.h"
#include "graph/edit.h"
#include "graph/network.h"
#include "layers/interpreter/interpreter.h"
#include "layers/layers.h"
#include "layers/patterns.h"
#include "layers/product.h"

/* ---------------------------------------------------------------------------------------------------- shapes ---- */

/* Returns a value with as many rows as x and `features` features. */
static struct value rows_of(const struct value *x, int64_t features)
{
    struct value rows = { .type = TYPE_F32, .batched = x->batched, .shape = x->shape };
    rows.axes = axes_with_features(x, x->shape.rank);
    rows.shape.sizes[x->shape.rank - 1] = features;
    return rows;
}

static tutti_status infer_forward(const struct graph *graph, struct node *node, struct value *outputs)
{
    const struct value *x = graph_at(graph, node->inputs[0]), *w = graph_at(graph, node->inputs[1]);
    if (x->shape.rank < 2 || w->shape.rank != 2)
        return fail(TUTTI_SHAPE,
            "dense: a sample has %d dimensions and the weights have %d: at least 1 and exactly 2 are needed",
            x->shape.rank - 1, w->shape.rank);
    if (w->shape.sizes[1] != value_size(x, 0))
        return fail(TUTTI_SHAPE, "dense: the weights are for %lld features, but the input's last dimension has %s",
            (long long)w->shape.sizes[1], size_print(value_size(x, 0), (char[SIZE_TEXT]) { 0 }));
    outputs[0] = rows_of(x, w->shape.sizes[0]);
    return TUTTI_OK;
}

static tutti_status infer_data_gradient(const struct graph *graph, struct node *node, struct value *outputs)
{
    const struct value *dy = graph_at(graph, node->inputs[0]), *w = graph_at(graph, node->inputs[1]);
    if (dy->shape.rank < 2 || w->shape.rank != 2 || w->shape.sizes[0] != value_size(dy, 0))
        return fail(TUTTI_SHAPE, "dense_data_gradient: the gradient, of %d dimensions, does not match the weights",
            dy->shape.rank);
    outputs[0] = rows_of(dy, w->shape.sizes[1]);
    return TUTTI_OK;
}

static tutti_status infer_weight_gradient(const struct graph *graph, struct node *node, struct value *outputs)
{
    const struct value *x = graph_at(graph, node->inputs[0]), *dy = graph_at(graph, node->inputs[1]);
    bool same = x->shape.rank == dy->shape.rank && x->shape.rank >= 2;
    for (int i = 0; same && i < x->shape.rank - 1; i++) same = x->shape.sizes[i] == dy->shape.sizes[i];
    if (!same)
        return fail(
            TUTTI_SHAPE, "dense_weight_gradient: the input and the gradient differ in a dimension other than the last");
    outputs[0] = (struct value) { .type = TYPE_F32, .shape = TUTTI_SHAPE(value_size(dy, 0), value_size(x, 0)) };
    return TUTTI_OK;
}

/* -------------------------------------------------------------------------------------------------- gradient ---- */

/* Removes the kinds of a gradient's axes. It can be the gradient of an image to which the output was added, and
 * without kinds of axes it gets no image layout. */
static int as_rows(struct graph *graph, int dy, int layer)
{
    const struct reshape_attributes rows = { .shape = graph_at(graph, dy)->shape };
    return value_has_layouts(graph_at(graph, dy)) ? graph_append(graph, &operation_reshape, &rows, &dy, 1, layer) : dy;
}

/* The weights' gradient first: then the saved input is free while the data gradient is made. */
static tutti_status gradient(struct graph *graph, const struct node *node, const struct node_gradients *g)
{
    const int dy = g->outputs[0], x = node->inputs[0], w = node->inputs[1], layer = node->layer;
    if (dy == NO_VALUE) return TUTTI_OK;
    const int rows[] = { x, as_rows(graph, dy, layer) };
    const struct axis_attributes features = { .axis = graph_at(graph, dy)->shape.rank - 1 };
    if (g->wanted[1]) g->inputs[1] = graph_append(graph, &operation_dense_weight_gradient, NULL, rows, 2, layer);
    if (node->input_count > 2 && node->inputs[2] != NO_VALUE && g->wanted[2])
        g->inputs[2] = graph_append(graph, &operation_channel_sum, &features, &rows[1], 1, layer);
    if (g->wanted[0])
        g->inputs[0] = graph_append(graph, &operation_dense_data_gradient, NULL, (int[]) { dy, w }, 2, layer);
    return graph->status;
}

/* --------------------------------------------------------------------------------------------------- builder ---- */

tutti_tensor tutti_dense(tutti_network *network, tutti_tensor tensor, int64_t units, const tutti_dense_options *options)
{
    tutti_dense_options read;
    const tutti_dense_options *o = &read;
    const tutti_status readable = OPTIONS_READ(&read, options, tutti_dense_options);
    if (readable != TUTTI_OK) return network_fail(network, readable);
    const struct value *x = network_value(network, tensor);
    if (!x) return (tutti_tensor) { NO_VALUE };
    if (units < 1 || units > INT32_MAX)
        return network_fail(network,
            fail(TUTTI_INVALID, "dense: units is %lld: it must be at least 1 and less than 2^31", (long long)units));
    if (x->shape.rank < 2)
        return network_fail(network, fail(TUTTI_SHAPE, "dense: the input has no dimensions: it needs [..., features]"));

    const int64_t features = value_size(x, 0);
    struct parameter how = { .init = o->init, .init_scale = o->init_scale, .fan_in = features, .fan_out = units };
    const int layer = network_layer_begin(network, o->name, "dense");
    int inputs[3] = { tensor.id,
        network_weight(network, layer, o->weight, "weight", TUTTI_SHAPE(units, features), &how), NO_VALUE };
    if (!o->no_bias) {
        how.init = o->bias_init;
        if (o->bias_init == TUTTI_INIT_DEFAULT && o->init != TUTTI_INIT_DEFAULT) how.init = TUTTI_INIT_ZEROS;
        inputs[2] = network_weight(network, layer, o->bias, "bias", TUTTI_SHAPE(units), &how);
    }
    return network_append(network, layer, &operation_dense, NULL, inputs, o->no_bias ? 2 : 3);
}

/* ------------------------------------------------------------------------------------------------ operations ---- */

const struct operation operation_dense = {
    .name = "dense",
    .inputs = { { "x" }, { "w" }, { "bias", PORT_OPTIONAL } },
    .outputs = { { "y" } },
    .infer = infer_forward,
    .gradient = gradient,
    .reference = interpret_dense,
    .implementations = product_forward,
    .stored_inputs = 1 << 1,
    .flops = product_flops,
    .bytes = product_bytes,
};
const struct operation operation_dense_data_gradient = {
    .name = "dense_data_gradient",
    .inputs = { { "dy" }, { "w" } },
    .outputs = { { "dx" } },
    .infer = infer_data_gradient,
    .reference = interpret_dense_data_gradient,
    .implementations = product_data_gradient,
    .stored_inputs = 1 << 1,
    .flops = product_flops,
    .bytes = product_bytes,
};
const struct operation operation_dense_weight_gradient = {
    .name = "dense_weight_gradient",
    .inputs = { { "x" }, { "dy" } },
    .outputs = { { "dw" } },
    .infer = infer_weight_gradient,
    .reference = interpret_dense_weight_gradient,
    .implementations = product_weight_gradient,
    .flops = product_flops,
    .bytes = product_bytes,
};

/* -------------------------------------------------------------------------------------------------- patterns ---- */

/* weight gradient, and the sum of the same gradient over each channel (a bias's gradient): the former makes both. */
static bool fuse_sum(const struct rewriting *rewriting, size_t n, int producer)
{
    struct graph *graph = rewriting->graph;
    const struct node *sum = &graph->nodes[n];
    (void)producer;
    if (sum->fusion_count) return false;
    if (edit_uses(graph, sum->outputs[0]) > 0) return false; /* it might be read before the weight gradient is made */
    for (size_t i = 0; i < graph->node_count; i++) {
        struct node *target = &graph->nodes[i];
        if (target->operation != &operation_dense_weight_gradient || target->inputs[1] != sum->inputs[0]) continue;
        if (node_fusion(target, FUSION_BIAS) || !pattern_supports(rewriting, target, FUSION_BIAS)) continue;
        node_fuse(target, (struct fusion) { FUSION_BIAS }, NULL, sum->outputs[0]);
        graph_at(graph, sum->outputs[0])->producer = (int)i;
        graph->nodes[n].operation = NULL;
        return true;
    }
    return false;
}

const struct pattern pattern_bias_gradient = {
    .operation = &operation_channel_sum,
    .apply = fuse_sum,
};
