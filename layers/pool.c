/* Pooling: public builders, and what the operations share. */
#include "layers/pool.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/options.h"
#include "graph/network.h"
#include "layers/element.h"
#include "layers/elementwise.h"
#include "layers/layers.h"

static bool is_gradient(const struct node *node)
{
    return node->operation == &operation_max_pool_gradient || node->operation == &operation_average_pool_gradient ||
        node->operation == &operation_adaptive_average_pool_gradient;
}

struct pool_sizes pool_sizes_of(const struct problem *problem)
{
    const struct value *x = problem->inputs[0], *y = problem->outputs[0];
    if (is_gradient(problem->node)) {
        x = problem->outputs[0];
        y = problem->inputs[0];
    }
    const int64_t *s = x->shape.sizes;
    return (struct pool_sizes) { s[0], s[1], s[2], s[3], y->shape.sizes[2], y->shape.sizes[3] };
}

/* ---------------------------------------------------------------------------------------------------- shapes ---- */

static const char *const direction[2] = { "height", "width" };

/* As PyTorch: in ceil mode a window must begin inside the image or the padding before it. */
static tutti_status output_size(const char *name, const struct attributes *a, int axis, int64_t size, int64_t *out)
{
    int64_t kernel = a->kernel[axis], stride = a->stride[axis], padding = a->padding[axis];
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

static tutti_status check_image(const char *name, const struct value *x)
{
    if (x->shape.rank == 4) return TUTTI_OK;
    return fail(
        TUTTI_SHAPE, "%s: the input must be an image [C, H, W], but it has %d dimensions", name, x->shape.rank - 1);
}

tutti_status pool_shape(
    const char *name, const struct attributes *attributes, const struct value *x, tutti_shape *shape)
{
    tutti_status status = check_image(name, x);
    if (status != TUTTI_OK) return status;
    *shape = x->shape;
    for (int axis = 0; axis < 2 && status == TUTTI_OK; axis++)
        status = output_size(name, attributes, axis, x->shape.sizes[2 + axis], &shape->sizes[2 + axis]);
    return status;
}

tutti_status pool_infer_gradient(const struct graph *graph, struct node *node, struct value *outputs)
{
    const struct value *dy = graph_at(graph, node->inputs[0]);
    const tutti_shape *shape = &node->attributes.shape;
    if (dy->shape.rank != 4 || shape->rank != 4)
        return fail(TUTTI_SHAPE, "%s: the gradient and the image must have 4 dimensions", node->operation->name);
    outputs[0] = (struct value) { .type = TYPE_F32, .batched = dy->batched, .shape = *shape };
    node->output_count = 1;
    return TUTTI_OK;
}

/* -------------------------------------------------------------------------------------------------- launches ---- */

enum { TASKS = 8, GROUP = 64 };

struct launch *pool_launch(
    const struct problem *problem, struct launch_list *list, const char *source, const char *kernel, const char *more)
{
    struct pool_sizes z = pool_sizes_of(problem);
    const struct attributes *a = &problem->node->attributes;
    bool adaptive = problem->node->operation == &operation_adaptive_average_pool ||
        problem->node->operation == &operation_adaptive_average_pool_gradient;
    char elements[ELEMENT_OPTIONS + 32];
    element_options(problem, elements, ELEMENT_OPTIONS);
    const size_t used = strlen(elements);
    if (problem->inputs[0]->layout == LAYOUT_CHANNELS_LAST || problem->outputs[0]->layout == LAYOUT_CHANNELS_LAST)
        snprintf(elements + used, sizeof elements - used, " -DCHANNELS=%lld", (long long)z.c);
    long long kernel_h = adaptive ? 1 : a->kernel[0], kernel_w = adaptive ? 1 : a->kernel[1];
    return launch_add(list, source, kernel,
        "-DH=%lld -DW=%lld -DOH=%lld -DOW=%lld -DKH=%lld -DKW=%lld -DSH=%lld -DSW=%lld -DPH=%lld -DPW=%lld "
        "-DADAPTIVE=%d "
        "-DCOUNT=%d -DADD=%d %s%s",
        (long long)z.h, (long long)z.w, (long long)z.oh, (long long)z.ow, kernel_h, kernel_w, (long long)a->stride[0],
        (long long)a->stride[1], (long long)a->padding[0], (long long)a->padding[1], adaptive, a->exclude_padding,
        problem->node->epilogue.add != NO_VALUE, more, elements);
}

const char *pool_stream(int64_t floats)
{
    return (size_t)floats * sizeof(float) > STREAM_BYTES ? " -DSTREAM=1" : "";
}

static void note_work(struct launch *launch, const struct problem *problem)
{
    double bytes = 0;
    for (int i = 0; i < problem->node->input_count; i++)
        if (problem->inputs[i]) bytes += (double)value_bytes(problem->inputs[i], 1);
    for (int i = 0; i < problem->node->output_count; i++)
        if (problem->outputs[i]) bytes += (double)value_bytes(problem->outputs[i], 1);
    launch_work(launch, pool_flops(problem), bytes);
}

void pool_tasks(struct launch *launch, const struct problem *problem, int64_t rows)
{
    struct pool_sizes z = pool_sizes_of(problem);
    int64_t blocks = divide_up(z.c, problem->device->vector_width);
    int64_t parts = divide_up((int64_t)TASKS * problem->device->units, blocks * z.n);
    if (parts > rows) parts = rows;
    launch_tasks(launch, (size_t)blocks, (size_t)z.n, (size_t)parts);
    note_work(launch, problem);
}

void pool_items(struct launch *launch, const struct problem *problem, int64_t floats)
{
    size_t group = group_size(problem->device, GROUP);
    launch_long(launch, floats);
    launch_grid(launch, 1, size_round_up((size_t)floats, group), 1, 1, group, 1, 1);
    note_work(launch, problem);
}

bool pool_is_blocked(const struct problem *problem)
{
    return problem->inputs[0]->layout == LAYOUT_BLOCKED;
}

void pool_layouts_blocked(const struct problem *problem, enum value_layout *inputs, enum value_layout *outputs)
{
    for (int i = 0; i < problem->node->input_count; i++) inputs[i] = LAYOUT_BLOCKED;
    for (int i = 0; i < problem->node->output_count; i++) outputs[i] = LAYOUT_BLOCKED;
}

unsigned pool_epilogues_of_gradient(const struct problem *problem)
{
    (void)problem;
    return EPILOGUE_ADD;
}

/* An addition or comparison for each pixel of each window. */
double pool_flops(const struct problem *problem)
{
    struct pool_sizes z = pool_sizes_of(problem);
    const struct attributes *a = &problem->node->attributes;
    bool adaptive = problem->node->operation == &operation_adaptive_average_pool ||
        problem->node->operation == &operation_adaptive_average_pool_gradient;
    double planes = (double)(z.n * z.c);
    if (adaptive) return planes * (double)(z.h * z.w);
    return planes * (double)(z.oh * z.ow) * (double)(a->kernel[0] * a->kernel[1]);
}

/* -------------------------------------------------------------------------------------------------- builders ---- */

static int64_t or_else(int64_t value, int64_t otherwise)
{
    return value ? value : otherwise;
}

static tutti_tensor append(tutti_network *network, tutti_tensor x, const char *name, const struct operation *operation,
    const struct attributes *attributes)
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
    struct attributes a = { .ceil_mode = o->ceil_mode, .exclude_padding = o->exclude_padding };
    a.kernel[0] = kernel;
    a.kernel[1] = or_else(o->kernel_w, kernel);
    a.stride[0] = or_else(o->stride, kernel);
    a.stride[1] = or_else(o->stride_w, or_else(o->stride, a.kernel[1]));
    a.padding[0] = o->padding;
    a.padding[1] = o->padding_w == -1 ? 0 : or_else(o->padding_w, o->padding);
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
    tutti_status status = check_image(operation->name, value);
    if (status != TUTTI_OK) return network_fail(network, status);
    struct attributes a = { .stride = { 1, 1 } };
    a.kernel[0] = value->shape.sizes[2];
    a.kernel[1] = value->shape.sizes[3];
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
    tutti_status status = check_image("adaptive_average_pool", value);
    if (status == TUTTI_OK && (height < 1 || width < 1 || height > INT32_MAX || width > INT32_MAX))
        status = fail(TUTTI_INVALID, "adaptive_average_pool: the output size is %lld x %lld: it must be at least 1 x 1",
            (long long)height, (long long)width);
    if (status != TUTTI_OK) return network_fail(network, status);
    int64_t h = value->shape.sizes[2], w = value->shape.sizes[3];
    if (h == height && w == width) return x;
    struct attributes a = { .stride = { 1, 1 } };
    bool even = h % height == 0 && w % width == 0;
    a.kernel[0] = even ? h / height : height;
    a.kernel[1] = even ? w / width : width;
    for (int i = 0; even && i < 2; i++) a.stride[i] = a.kernel[i];
    return append(network, x, NULL, even ? &operation_average_pool : &operation_adaptive_average_pool, &a);
}
