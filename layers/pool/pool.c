/* max_pool, average_pool, adaptive_average_pool and their gradients: builders, shapes, gradients and patterns. The
 * forward pass of max_pool notes where in the window each maximum was, so that its gradient reads neither x nor y. */
#include "layers/pool/pool.h"
#include "layers/interpreter/interpreter.h"

#include "base/options.h"
#include "graph/network.h"
#include "layers/layers.h"
#include "layers/patterns.h"

ATTRIBUTES_DESCRIBE(pool, WINDOW_ATTRIBUTES(pool), ATTRIBUTE(pool, FLAG, ceil_mode),
    ATTRIBUTE(pool, FLAG, exclude_padding), ATTRIBUTE(pool, SHAPE, shape))

/* ---------------------------------------------------------------------------------------------------- shapes ---- */

static const char *const direction[2] = { "height", "width" };

/* As PyTorch: in ceil mode a window must begin inside the image or the padding before it. */
static tutti_status output_size(const char *name, const struct pool_attributes *a, int axis, int64_t size, int64_t *out)
{
    int64_t kernel = a->window.kernel[axis], stride = a->window.stride[axis], padding = a->window.padding[axis];
    const char *what = direction[axis];
    if (kernel < 1 || kernel > INT32_MAX)
        return fail(TUTTI_INVALID, "%s: kernel is %lld (%s): it must be at least 1 and less than 2^31", name,
            (long long)kernel, what);
    if (stride < 1 || stride > INT32_MAX)
        return fail(TUTTI_INVALID, "%s: stride is %lld (%s): it must be at least 1 and less than 2^31", name,
            (long long)stride, what);
    if (padding < 0 || padding > kernel / 2)
        return fail(TUTTI_INVALID, "%s: padding is %lld (%s): it must be from 0 to half the kernel, %lld", name,
            (long long)padding, what, (long long)(kernel / 2));
    int64_t room = size + 2 * padding - kernel;
    if (room < 0)
        return fail(TUTTI_SHAPE, "%s: kernel is %lld: it must not exceed the input's %s with padding, %lld", name,
            (long long)kernel, what, (long long)(size + 2 * padding));
    *out = (room + (a->ceil_mode ? stride - 1 : 0)) / stride + 1;
    if (a->ceil_mode && (*out - 1) * stride >= size + padding) --*out;
    return TUTTI_OK;
}

/* max_pool's second output is where each maximum was. */
static tutti_status infer(const struct graph *graph, struct node *node, struct value *outputs)
{
    const struct value *x = graph_at(graph, node->inputs[0]);
    const struct pool_attributes *a = pool_attributes(node);
    const int64_t *kernel = a->window.kernel;
    tutti_shape shape = x->shape;
    tutti_status status = image_check(node->operation->name, x);
    for (int i = 0; i < IMAGE_SPACE && status == TUTTI_OK; i++)
        if (pool_is_adaptive(node))
            shape.sizes[SPACE_AXIS + i] = kernel[i];
        else
            status =
                output_size(node->operation->name, a, i, x->shape.sizes[SPACE_AXIS + i], &shape.sizes[SPACE_AXIS + i]);
    outputs[0] = outputs[1] = image_value(shape, x->batched);
    outputs[1].type = kernel[0] * kernel[1] <= UINT8_MAX ? TYPE_U8 : TYPE_I32;
    node->output_count = pool_is_max(node) ? 2 : 1;
    return status;
}

static tutti_status infer_gradient(const struct graph *graph, struct node *node, struct value *outputs)
{
    const struct value *dy = graph_at(graph, node->inputs[0]);
    const tutti_shape *shape = &pool_attributes(node)->shape;
    if (dy->shape.rank != IMAGE_RANK || shape->rank != IMAGE_RANK)
        return fail(TUTTI_SHAPE, "%s: the gradient and the image must have 4 dimensions", node->operation->name);
    outputs[0] = image_value(*shape, dy->batched);
    return TUTTI_OK;
}

static tutti_status gradient(struct graph *graph, const struct node *node, const struct node_gradients *g)
{
    if (g->outputs[0] == NO_VALUE || !g->wanted[0]) return TUTTI_OK;
    const bool max = pool_is_max(node);
    const struct operation *operation = max ? &operation_max_pool_gradient
        : pool_is_adaptive(node)            ? &operation_adaptive_average_pool_gradient
                                            : &operation_average_pool_gradient;
    const int inputs[] = { g->outputs[0], max ? node->outputs[1] : NO_VALUE };
    struct pool_attributes attributes = *pool_attributes(node);
    attributes.shape = graph_at(graph, node->inputs[0])->shape;
    g->inputs[0] = graph_append(graph, operation, &attributes, inputs, max ? 2 : 1, node->layer);
    return graph->status;
}

/* ------------------------------------------------------------------------------------------------ operations ---- */

#define FORWARD(name_, reference_, list, ...)    \
    const struct operation operation_##name_ = { \
        .name = #name_,                          \
        .inputs = { { "x" } },                   \
        .outputs = { { "y" }, __VA_ARGS__ },     \
        .attributes = &pool_attributes_type,     \
        .infer = infer,                          \
        .gradient = gradient,                    \
        .reference = reference_,                 \
        .implementations = list,                 \
        .flops = pool_flops,                     \
    };
#define GRADIENT(name_, reference_, list, ...)   \
    const struct operation operation_##name_ = { \
        .name = #name_,                          \
        .inputs = { { "dy" }, __VA_ARGS__ },     \
        .outputs = { { "dx" } },                 \
        .attributes = &pool_attributes_type,     \
        .infer = infer_gradient,                 \
        .reference = reference_,                 \
        .implementations = list,                 \
        .flops = pool_flops,                     \
    };
FORWARD(max_pool, interpret_max_pool, pool_max, { "index" })
FORWARD(average_pool, interpret_average_pool, pool_mean, { 0 })
FORWARD(adaptive_average_pool, interpret_average_pool, pool_adaptive, { 0 })
GRADIENT(max_pool_gradient, interpret_max_pool_gradient, pool_max_gradient, { "index", PORT_ANY_TYPE })
GRADIENT(average_pool_gradient, interpret_average_pool, pool_mean_gradient, { 0 })
GRADIENT(adaptive_average_pool_gradient, interpret_average_pool, pool_adaptive_gradient, { 0 })

/* -------------------------------------------------------------------------------------------------- patterns ---- */

/* gradient of max pooling -> gradient of the activation that was pooled: they change places. An activation's gradient
 * is a factor that depends on its output, and where pooling puts a gradient that output is the window's maximum. So the
 * factor is applied to the smaller tensor, and the activation's output is not read again. */
static bool swap_pool_gradient(const struct rewriting *rewriting, size_t n, int producer)
{
    struct graph *graph = rewriting->graph;
    struct node factor = graph->nodes[n], pool = graph->nodes[producer];
    if (factor.fusion_count || pool.fusion_count) return false;
    const struct node *forward = &graph->nodes[graph_at(graph, pool.inputs[1])->producer];
    if (forward->inputs[0] != factor.inputs[0] || forward->outputs[0] == NO_VALUE) return false;
    if (forward->fusion_count) return false;
    int between = factor.inputs[1];
    factor.inputs[0] = forward->outputs[0];
    factor.inputs[1] = pool.inputs[0];
    pool.inputs[0] = between;
    pool.outputs[0] = factor.outputs[0];
    factor.outputs[0] = between;
    graph_at(graph, between)->shape = graph_at(graph, factor.inputs[1])->shape;
    graph_at(graph, pool.outputs[0])->producer = (int)n;
    graph->nodes[producer] = factor;
    graph->nodes[n] = pool;
    return true;
}

const struct pattern pattern_pool_gradient = {
    .operation = &operation_activation_gradient,
    .input = 1,
    .producer = &operation_max_pool_gradient,
    .sole = true,
    .apply = swap_pool_gradient,
};

/* gradient of max pooling -> sum over each channel (a bias's gradient): pooling only moves what it is given, so the sum
 * of that is the same, over the smaller tensor. */
static bool sum_before_pool_gradient(const struct rewriting *rewriting, size_t n, int producer)
{
    const struct node *pool = &rewriting->graph->nodes[producer];
    if (pool->fusion_count) return false;
    rewriting->graph->nodes[n].inputs[0] = pool->inputs[0];
    return true;
}

const struct pattern pattern_sum_of_pool_gradient = {
    .operation = &operation_channel_sum,
    .producer = &operation_max_pool_gradient,
    .apply = sum_before_pool_gradient,
};

/* -------------------------------------------------------------------------------------------------- builders ---- */

static int64_t or_else(int64_t value, int64_t fallback)
{
    return value ? value : fallback;
}

static tutti_tensor append(tutti_network *network, tutti_tensor x, const char *name, const struct operation *operation,
    const struct pool_attributes *attributes)
{
    int layer = network_layer_begin(network, name, operation->name);
    return network_append(network, layer, operation, attributes, &x.id, 1);
}

static tutti_tensor sliding(tutti_network *network, tutti_tensor x, int64_t kernel, const tutti_pool_options *options,
    const struct operation *operation)
{
    tutti_pool_options read;
    const tutti_pool_options *o = &read;
    const tutti_status readable = OPTIONS_READ(&read, options, tutti_pool_options);
    if (readable != TUTTI_OK) return network_fail(network, readable);
    if (!network_value(network, x)) return (tutti_tensor) { NO_VALUE };
    struct pool_attributes a = { .ceil_mode = o->ceil_mode, .exclude_padding = o->exclude_padding };
    struct window *window = &a.window;
    window->kernel[0] = kernel;
    window->kernel[1] = or_else(o->kernel_w, kernel);
    window->stride[0] = or_else(o->stride, kernel);
    window->stride[1] = or_else(o->stride_w, or_else(o->stride, window->kernel[1]));
    window->padding[0] = o->padding;
    window->padding[1] = o->padding_w == -1 ? 0 : or_else(o->padding_w, o->padding);
    return append(network, x, o->name, operation, &a);
}

tutti_tensor tutti_max_pool(tutti_network *network, tutti_tensor x, int64_t kernel, const tutti_pool_options *options)
{
    return sliding(network, x, kernel, options, &operation_max_pool);
}

tutti_tensor tutti_average_pool(
    tutti_network *network, tutti_tensor x, int64_t kernel, const tutti_pool_options *options)
{
    return sliding(network, x, kernel, options, &operation_average_pool);
}

/* One window: the whole image. */
static tutti_tensor global(tutti_network *network, tutti_tensor x, const struct operation *operation)
{
    const struct value *value = network_value(network, x);
    if (!value) return (tutti_tensor) { NO_VALUE };
    tutti_status status = image_check(operation->name, value);
    if (status != TUTTI_OK) return network_fail(network, status);
    struct pool_attributes a = { .window.stride = { 1, 1 } };
    for (int i = 0; i < IMAGE_SPACE; i++) a.window.kernel[i] = value->shape.sizes[SPACE_AXIS + i];
    return append(network, x, NULL, operation, &a);
}

tutti_tensor tutti_global_average_pool(tutti_network *network, tutti_tensor x)
{
    return global(network, x, &operation_average_pool);
}

tutti_tensor tutti_global_max_pool(tutti_network *network, tutti_tensor x)
{
    return global(network, x, &operation_max_pool);
}

/* Windows of one size that do not overlap are ordinary pooling; the image's own size changes nothing. */
tutti_tensor tutti_adaptive_average_pool(tutti_network *network, tutti_tensor x, int64_t height, int64_t width)
{
    const struct value *value = network_value(network, x);
    if (!value) return (tutti_tensor) { NO_VALUE };
    tutti_status status = image_check("adaptive_average_pool", value);
    if (status == TUTTI_OK && (height < 1 || width < 1 || height > INT32_MAX || width > INT32_MAX))
        status = fail(TUTTI_INVALID, "adaptive_average_pool: the output size is %lld x %lld: it must be at least 1 x 1",
            (long long)height, (long long)width);
    if (status != TUTTI_OK) return network_fail(network, status);
    int64_t h = value->shape.sizes[SPACE_AXIS], w = value->shape.sizes[SPACE_AXIS + 1];
    if (h == height && w == width) return x;
    struct pool_attributes a = { .window.stride = { 1, 1 } };
    bool even = h % height == 0 && w % width == 0;
    a.window.kernel[0] = even ? h / height : height;
    a.window.kernel[1] = even ? w / width : width;
    for (int i = 0; even && i < 2; i++) a.window.stride[i] = a.window.kernel[i];
    return append(network, x, NULL, even ? &operation_average_pool : &operation_adaptive_average_pool, &a);
}
