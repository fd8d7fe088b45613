/* conv2d: its builder, shapes, gradient and the lists of implementations, best first. */
#include "layers/conv2d/conv2d.h"
#include "layers/interpreter/interpreter.h"

#include "base/options.h"
#include "graph/edit.h"
#include "graph/network.h"
#include "layers/conv2d/conv2d_cpu.h"
#include "layers/layers.h"
#include "layers/patterns.h"

ATTRIBUTES_DESCRIBE(conv2d, WINDOW_ATTRIBUTES(conv2d), ATTRIBUTE(conv2d, SHAPE, shape))

/* ---------------------------------------------------------------------------------------------------- shapes ---- */

static const char *const direction[2] = { "height", "width" };

/* The output's size in one direction. */
static tutti_status output_size(const struct window *a, int axis, int64_t size, int64_t *out)
{
    const char *what = direction[axis];
    int64_t kernel = a->kernel[axis], stride = a->stride[axis], padding = a->padding[axis],
            dilation = a->dilation[axis];
    if (kernel < 1 || kernel > INT32_MAX)
        return fail(TUTTI_INVALID, "conv2d: kernel is %lld (%s): it must be at least 1 and less than 2^31",
            (long long)kernel, what);
    if (stride < 1 || stride > INT32_MAX)
        return fail(TUTTI_INVALID, "conv2d: stride is %lld (%s): it must be at least 1 and less than 2^31",
            (long long)stride, what);
    if (dilation < 1 || dilation > INT32_MAX)
        return fail(TUTTI_INVALID, "conv2d: dilation is %lld (%s): it must be at least 1 and less than 2^31",
            (long long)dilation, what);
    if (padding < 0 || padding > INT32_MAX)
        return fail(TUTTI_INVALID, "conv2d: padding is %lld (%s): it must not be negative, and less than 2^31",
            (long long)padding, what);
    int64_t reach = dilation * (kernel - 1) + 1, padded = size + 2 * padding;
    if (reach > padded)
        return fail(TUTTI_SHAPE,
            "conv2d: kernel %lld with dilation %lld spans %lld pixels of %s, but the input with padding %lld has only "
            "%lld",
            (long long)kernel, (long long)dilation, (long long)reach, what, (long long)padding, (long long)padded);
    *out = (padded - reach) / stride + 1;
    return TUTTI_OK;
}

static tutti_status output_sizes(const struct window *a, const tutti_shape *x, tutti_shape *y)
{
    tutti_status status = TUTTI_OK;
    for (int i = SPACE_AXIS; i < IMAGE_RANK && status == TUTTI_OK; i++)
        status = output_size(a, i - SPACE_AXIS, x->sizes[i], &y->sizes[i]);
    return status;
}

static tutti_status infer_forward(const struct graph *graph, struct node *node, struct value *outputs)
{
    const struct value *x = graph_at(graph, node->inputs[0]), *w = graph_at(graph, node->inputs[1]);
    const struct window *a = &conv2d_attributes(node)->window;
    const tutti_status status = image_check("conv2d", x);
    if (status != TUTTI_OK) return status;
    if (w->shape.rank != IMAGE_RANK || a->groups < 1 || w->shape.sizes[1] * a->groups != x->shape.sizes[CHANNEL_AXIS] ||
        w->shape.sizes[0] % a->groups != 0)
        return fail(TUTTI_SHAPE, "conv2d: groups %lld must divide the input's %lld channels and the weights' %lld",
            (long long)a->groups, (long long)x->shape.sizes[CHANNEL_AXIS], (long long)w->shape.sizes[0]);
    outputs[0] = image_value(x->shape, x->batched);
    outputs[0].shape.sizes[CHANNEL_AXIS] = w->shape.sizes[0];
    return output_sizes(a, &x->shape, &outputs[0].shape);
}

static tutti_status infer_data_gradient(const struct graph *graph, struct node *node, struct value *outputs)
{
    const struct value *dy = graph_at(graph, node->inputs[0]);
    const tutti_shape *shape = &conv2d_attributes(node)->shape;
    if (dy->shape.rank != IMAGE_RANK || shape->rank != IMAGE_RANK)
        return fail(TUTTI_SHAPE, "conv2d_data_gradient: gradient and image must have 4 dimensions");
    outputs[0] = image_value(*shape, dy->batched);
    return TUTTI_OK;
}

static tutti_status infer_weight_gradient(const struct graph *graph, struct node *node, struct value *outputs)
{
    const struct value *x = graph_at(graph, node->inputs[0]), *dy = graph_at(graph, node->inputs[1]);
    const tutti_shape *shape = &conv2d_attributes(node)->shape;
    if (x->shape.rank != IMAGE_RANK || dy->shape.rank != IMAGE_RANK || shape->rank != IMAGE_RANK)
        return fail(TUTTI_SHAPE, "conv2d_weight_gradient: image, gradient and weights must have 4 dimensions");
    outputs[0] = (struct value) { .type = TYPE_F32, .shape = *shape };
    return TUTTI_OK;
}

/* -------------------------------------------------------------------------------------------------- gradient ---- */

/* The weights' gradient first: then the saved input is free while the data gradient is made. */
static tutti_status gradient(struct graph *graph, const struct node *node, const struct node_gradients *g)
{
    int dy = g->outputs[0];
    if (dy == NO_VALUE) return TUTTI_OK;
    const struct axis_attributes channels = { CHANNEL_AXIS };
    struct conv2d_attributes attributes = *conv2d_attributes(node);
    if (g->wanted[1]) {
        attributes.shape = graph_at(graph, node->inputs[1])->shape;
        g->inputs[1] = graph_append(
            graph, &operation_conv2d_weight_gradient, &attributes, (int[]) { node->inputs[0], dy }, 2, node->layer);
    }
    if (node->input_count > 2 && node->inputs[2] != NO_VALUE && g->wanted[2])
        g->inputs[2] = graph_append(graph, &operation_channel_sum, &channels, &dy, 1, node->layer);
    if (g->wanted[0]) {
        attributes.shape = graph_at(graph, node->inputs[0])->shape;
        g->inputs[0] = graph_append(
            graph, &operation_conv2d_data_gradient, &attributes, (int[]) { dy, node->inputs[1] }, 2, node->layer);
    }
    return graph->status;
}

/* The gradient of a transposed convolution, which is the data gradient of a convolution: its input is the output of
 * that convolution. */
static tutti_status gradient_of_data_gradient(
    struct graph *graph, const struct node *node, const struct node_gradients *g)
{
    const int dy = g->outputs[0];
    if (dy == NO_VALUE) return TUTTI_OK;
    struct conv2d_attributes attributes = *conv2d_attributes(node);
    attributes.shape = graph_at(graph, node->inputs[1])->shape;
    if (g->wanted[1])
        g->inputs[1] = graph_append(
            graph, &operation_conv2d_weight_gradient, &attributes, (int[]) { dy, node->inputs[0] }, 2, node->layer);
    attributes.shape = (tutti_shape) { 0 };
    if (g->wanted[0])
        g->inputs[0] =
            graph_append(graph, &operation_conv2d, &attributes, (int[]) { dy, node->inputs[1] }, 2, node->layer);
    return graph->status;
}

/* --------------------------------------------------------------------------------------------------- builder ---- */

static int64_t or_else(int64_t value, int64_t fallback)
{
    return value ? value : fallback;
}

static void window_from(int64_t kernel, const tutti_conv2d_options *o, struct window *a)
{
    a->kernel[0] = kernel;
    a->kernel[1] = or_else(o->kernel_w, kernel);
    a->stride[0] = or_else(o->stride, 1);
    a->stride[1] = or_else(o->stride_w, a->stride[0]);
    a->padding[0] = o->padding;
    a->padding[1] = o->padding_w == -1 ? 0 : or_else(o->padding_w, o->padding);
    a->dilation[0] = or_else(o->dilation, 1);
    a->dilation[1] = or_else(o->dilation_w, a->dilation[0]);
    a->groups = or_else(o->groups, 1);
}

/* Checks everything but the weights, before there are any. */
static tutti_status check_channels(const struct value *x, int64_t channels, const struct window *a)
{
    const tutti_status status = image_check("conv2d", x);
    if (status != TUTTI_OK) return status;
    if (channels < 1 || channels > INT32_MAX)
        return fail(
            TUTTI_INVALID, "conv2d: channels is %lld: it must be at least 1 and less than 2^31", (long long)channels);
    if (a->groups < 1 || x->shape.sizes[CHANNEL_AXIS] % a->groups != 0 || channels % a->groups != 0)
        return fail(TUTTI_SHAPE, "conv2d: groups %lld must divide the input's %lld channels and the output's %lld",
            (long long)a->groups, (long long)x->shape.sizes[CHANNEL_AXIS], (long long)channels);
    tutti_shape out;
    return output_sizes(a, &x->shape, &out);
}

tutti_tensor tutti_conv2d(
    tutti_network *network, tutti_tensor tensor, int64_t channels, int64_t kernel, const tutti_conv2d_options *options)
{
    tutti_conv2d_options read;
    const tutti_conv2d_options *o = &read;
    const tutti_status readable = OPTIONS_READ(&read, options, tutti_conv2d_options);
    if (readable != TUTTI_OK) return network_fail(network, readable);
    const struct value *x = network_value(network, tensor);
    if (!x) return (tutti_tensor) { NO_VALUE };
    int layer = network_layer_begin(network, o->name, "conv2d");
    struct conv2d_attributes attributes = { 0 };
    const struct window *window = &attributes.window;
    window_from(kernel, o, &attributes.window);
    tutti_status status = check_channels(x, channels, window);
    if (status != TUTTI_OK) return network_fail(network, status);

    int64_t c_group = x->shape.sizes[CHANNEL_AXIS] / window->groups;
    int64_t taps = window->kernel[0] * window->kernel[1];
    tutti_shape shape = { IMAGE_RANK, { channels, c_group, window->kernel[0], window->kernel[1] } };
    struct parameter how = {
        .init = o->init, .init_scale = o->init_scale, .fan_in = c_group * taps, .fan_out = channels * taps
    };
    int inputs[3] = { tensor.id, network_weight(network, layer, o->weight, "weight", shape, &how), NO_VALUE };
    if (!o->no_bias) {
        how.init = o->bias_init;
        if (o->bias_init == TUTTI_INIT_DEFAULT && o->init != TUTTI_INIT_DEFAULT) how.init = TUTTI_INIT_ZEROS;
        inputs[2] = network_weight(network, layer, o->bias, "bias", TUTTI_SHAPE(channels), &how);
    }
    return network_append(network, layer, &operation_conv2d, &attributes, inputs, o->no_bias ? 2 : 3);
}

/* ---------------------------------------------------------------------------------------------------- tables ---- */

/* conv2d_cpu.h describes those of FIRST, the lists' own ones and conv2d_direct; conv2d_grouped takes the groups that
 * these refuse. After that are those of GPUs, and conv2d_plain for all. */
#define FIRST(pass) &conv2d_bf16[pass], &conv2d_winograd[pass], &conv2d_pointwise[pass], &conv2d_depthwise[pass]
#define OTHERS(pass)                                                                                                 \
    &conv2d_direct[pass], &conv2d_grouped[pass], &conv2d_depthwise_channels_last[pass], &conv2d_depthwise_gpu[pass], \
        &conv2d_channels_last[pass], &conv2d_implicit_gemm_matrix[pass], &conv2d_winograd_4x4[pass],                 \
        &conv2d_winograd_2x2[pass], &conv2d_implicit_gemm[pass], &conv2d_plain[pass], NULL

static const struct implementation *const forward_implementations[] = { &conv2d_bf16_image, FIRST(CONV2D_FORWARD),
    &conv2d_winograd_rows[CONV2D_FORWARD], OTHERS(CONV2D_FORWARD) };
static const struct implementation *const data_gradient_implementations[] = { FIRST(CONV2D_DATA_GRADIENT),
    OTHERS(CONV2D_DATA_GRADIENT) };
static const struct implementation *const weight_gradient_implementations[] = { &conv2d_bf16_image_weight_gradient,
    FIRST(CONV2D_WEIGHT_GRADIENT), &conv2d_winograd_rows[CONV2D_WEIGHT_GRADIENT], OTHERS(CONV2D_WEIGHT_GRADIENT) };

const struct operation operation_conv2d = {
    .name = "conv2d",
    .inputs = { { "x" }, { "w" }, { "bias", PORT_OPTIONAL } },
    .outputs = { { "y" } },
    .attributes = &conv2d_attributes_type,
    .infer = infer_forward,
    .gradient = gradient,
    .reference = interpret_conv2d,
    .implementations = forward_implementations,
    .flops = conv2d_flops,
    .bytes = conv2d_bytes,
};
const struct operation operation_conv2d_data_gradient = {
    .name = "conv2d_data_gradient",
    .inputs = { { "dy" }, { "w" } },
    .outputs = { { "dx" } },
    .attributes = &conv2d_attributes_type,
    .infer = infer_data_gradient,
    .gradient = gradient_of_data_gradient,
    .reference = interpret_conv2d_data_gradient,
    .implementations = data_gradient_implementations,
    .flops = conv2d_flops,
    .bytes = conv2d_bytes,
};
const struct operation operation_conv2d_weight_gradient = {
    .name = "conv2d_weight_gradient",
    .inputs = { { "x" }, { "dy" } },
    .outputs = { { "dw" } },
    .attributes = &conv2d_attributes_type,
    .infer = infer_weight_gradient,
    .reference = interpret_conv2d,
    .implementations = weight_gradient_implementations,
    .flops = conv2d_flops,
    .bytes = conv2d_bytes,
};

/* -------------------------------------------------------------------------------------------------- patterns ---- */

/* Whether node `weights` is the weight gradient of the convolution whose data gradient is `data`, for the tensor that
 * the gate of `data` normalises. */
static bool is_of_gate(const struct node *weights, const struct node *data)
{
    const struct fusion *normalised = node_fusion(weights, FUSION_NORMALISED), *gate = node_fusion(data, FUSION_GATE);
    if (weights->operation != &operation_conv2d_weight_gradient || weights->fusion_count != 1 || !normalised)
        return false;
    const int *x = data->inputs + gate->input, *coefficients = weights->inputs + normalised->input;
    if (weights->inputs[0] != x[GATE_X] || weights->inputs[1] != data->inputs[0] || x[GATE_Y] != NO_VALUE) return false;
    for (int i = 0; i < NORMALISED_INPUTS; i++)
        if (coefficients[i] != x[GATE_GAMMA + i]) return false;
    const struct nonlinearity *a = &normalised->function, *b = &gate->function;
    return a->activation == b->activation && a->low == b->low && a->high == b->high;
}

/* Data gradient with a gate, and weight gradient of the tensor that the gate normalises: both read the same two
 * tensors, so the former makes both. */
static bool fuse_weights(const struct rewriting *rewriting, size_t n, int producer)
{
    struct graph *graph = rewriting->graph;
    struct node *data = &graph->nodes[n];
    (void)producer;
    if ((node_fusions(data) & (FUSED(GATE) | FUSED(WEIGHTS))) != FUSED(GATE)) return false;
    if (!pattern_supports(rewriting, data, FUSION_WEIGHTS)) return false;
    for (size_t i = 0; i < n; i++) {
        struct node *weights = &graph->nodes[i];
        if (!weights->operation || !is_of_gate(weights, data)) continue;
        if (edit_uses(graph, weights->outputs[0]) > 0)
            return false; /* it might be read before the data gradient is made */
        node_fuse(data, (struct fusion) { FUSION_WEIGHTS }, NULL, weights->outputs[0]);
        graph_at(graph, weights->outputs[0])->producer = (int)n;
        weights->operation = NULL;
        return true;
    }
    return false;
}

const struct pattern pattern_weights_in_data_gradient = {
    .operation = &operation_conv2d_data_gradient,
    .apply = fuse_weights,
};
