/* average_pool and adaptive_average_pool and their gradients. The mean of the whole image has kernels of its own. */
#include <stdio.h>

#include "base/memory.h"
#include "layers/elementwise.h"
#include "layers/layers.h"
#include "layers/pool.h"

static tutti_status infer(const struct graph *graph, struct node *node, struct value *outputs)
{
    const struct value *x = graph_at(graph, node->inputs[0]);
    outputs[0] = (struct value) { .type = TYPE_F32, .batched = x->batched };
    node->output_count = 1;
    return pool_shape("average_pool", &node->attributes, x, &outputs[0].shape);
}

static tutti_status infer_adaptive(const struct graph *graph, struct node *node, struct value *outputs)
{
    const struct value *x = graph_at(graph, node->inputs[0]);
    if (x->shape.rank != 4)
        return fail(TUTTI_SHAPE,
            "adaptive_average_pool: the input must be an image [C, H, W], but it has %d dimensions", x->shape.rank - 1);
    outputs[0] = (struct value) { .type = TYPE_F32, .batched = x->batched, .shape = x->shape };
    for (int i = 0; i < 2; i++) outputs[0].shape.sizes[2 + i] = node->attributes.kernel[i];
    node->output_count = 1;
    return TUTTI_OK;
}

static tutti_status append_gradient(struct graph *graph, const struct node *node, const int *output_gradients,
    const bool *wanted, int *input_gradients, const struct operation *operation)
{
    if (output_gradients[0] == NO_VALUE || !wanted[0]) return TUTTI_OK;
    struct attributes attributes = node->attributes;
    attributes.shape = graph_at(graph, node->inputs[0])->shape;
    input_gradients[0] = graph_append(graph, operation, &attributes, output_gradients, 1, node->layer);
    return graph->status;
}

static tutti_status gradient(
    struct graph *graph, const struct node *node, const int *output_gradients, const bool *wanted, int *input_gradients)
{
    return append_gradient(graph, node, output_gradients, wanted, input_gradients, &operation_average_pool_gradient);
}

static tutti_status gradient_adaptive(
    struct graph *graph, const struct node *node, const int *output_gradients, const bool *wanted, int *input_gradients)
{
    return append_gradient(
        graph, node, output_gradients, wanted, input_gradients, &operation_adaptive_average_pool_gradient);
}

/* ------------------------------------------------------------------------------------------ any windows ---- */

static void emit(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const bool blocked = pool_is_blocked(problem);
    const int64_t floats = value_elements(problem->outputs[0]);
    struct launch *launch = pool_launch(
        problem, list, blocked ? "pool_cpu" : "pool_plain", "average_pool", blocked ? pool_stream(floats) : "");
    LAUNCH_BUFFERS(launch, operands->inputs[0], operands->outputs[0]);
    if (blocked)
        pool_tasks(launch, problem, pool_sizes_of(problem).oh);
    else
        pool_items(launch, problem, floats);
}

static struct launch *gradient_launch(const struct problem *problem, const struct operands *operands,
    struct launch_list *list, const char *source, const char *kernel, const char *options)
{
    struct launch *launch = pool_launch(problem, list, source, kernel, options);
    launch_buffer(launch, operands->inputs[0]);
    if (problem->node->epilogue.add != NO_VALUE) launch_buffer(launch, operands->add);
    launch_buffer(launch, operands->outputs[0]);
    return launch;
}

static void emit_gradient(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const bool blocked = pool_is_blocked(problem);
    const int64_t floats = value_elements(problem->outputs[0]);
    struct launch *launch = gradient_launch(problem, operands, list, blocked ? "pool_cpu" : "pool_plain",
        "average_pool_gradient", blocked ? pool_stream(floats) : "");
    if (blocked)
        pool_tasks(launch, problem, pool_sizes_of(problem).h);
    else
        pool_items(launch, problem, floats);
}

/* ---------------------------------------------------------------------------------------- the whole image ---- */

static bool is_global(const struct problem *problem)
{
    const struct attributes *a = &problem->node->attributes;
    struct pool_sizes z = pool_sizes_of(problem);
    return a->kernel[0] == z.h && a->kernel[1] == z.w && !a->padding[0] && !a->padding[1];
}

static const char *fits_global_cpu(const struct problem *problem)
{
    if (problem->device->class != DEVICE_CPU) return "it needs a CPU-class device";
    return is_global(problem) ? NULL : "the kernel is not the whole image";
}

static const char *fits_global_gpu(const struct problem *problem)
{
    if (problem->device->class != DEVICE_GPU) return "it needs a GPU-class device";
    return is_global(problem) ? NULL : "the kernel is not the whole image";
}

/* One pixel for each channel: plain, as the dense layer that follows wants it. */
static void layouts_global(const struct problem *problem, enum value_layout *inputs, enum value_layout *outputs)
{
    (void)problem;
    inputs[0] = LAYOUT_BLOCKED;
    outputs[0] = LAYOUT_PLAIN;
}

static void layouts_global_gradient(
    const struct problem *problem, enum value_layout *inputs, enum value_layout *outputs)
{
    (void)problem;
    inputs[0] = LAYOUT_PLAIN;
    outputs[0] = LAYOUT_BLOCKED;
}

/* As x lies: its channels may be last. */
static void layouts_global_gpu(const struct problem *problem, enum value_layout *inputs, enum value_layout *outputs)
{
    inputs[0] = problem->inputs[0]->layout == LAYOUT_CHANNELS_LAST ? LAYOUT_CHANNELS_LAST : LAYOUT_PLAIN;
    outputs[0] = LAYOUT_PLAIN;
}

/* The result's channels are last where convolutions want them so: dy is small, and of one pixel both layouts are one.
 */
static void layouts_gradient(const struct problem *problem, enum value_layout *inputs, enum value_layout *outputs)
{
    const bool last = problem->channels_last && value_has_channels_last(problem->outputs[0]);
    const struct pool_sizes z = pool_sizes_of(problem);
    outputs[0] = last ? LAYOUT_CHANNELS_LAST : LAYOUT_PLAIN;
    inputs[0] = z.oh * z.ow == 1 ? LAYOUT_PLAIN : outputs[0];
}

/* Tasks of several channel blocks of an image: 16 for each unit, which finish together. */
static void global_tasks(struct launch *launch, const struct problem *problem)
{
    struct pool_sizes z = pool_sizes_of(problem);
    int64_t blocks = divide_up(z.c, problem->device->vector_width);
    int64_t wanted = divide_up(16 * (int64_t)problem->device->units, z.n);
    int64_t per = divide_up(blocks, wanted < blocks ? wanted : blocks);
    launch_int(launch, blocks);
    launch_int(launch, z.c);
    launch_int(launch, per);
    launch_tasks(launch, (size_t)divide_up(blocks, per), (size_t)z.n, 1);
    launch_work(launch, pool_flops(problem), 4.0 * (double)(z.n * z.c) * (double)(z.h * z.w + 1));
}

static void emit_global_cpu(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    struct launch *launch = pool_launch(problem, list, "pool_cpu", "global_average_pool", "");
    launch_buffer(launch, operands->inputs[0]);
    launch_buffer(launch, operands->outputs[0]);
    global_tasks(launch, problem);
}

static void emit_global_gradient_cpu(
    const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const char *stream = pool_stream(value_elements(problem->outputs[0]));
    struct launch *launch =
        gradient_launch(problem, operands, list, "pool_cpu", "global_average_pool_gradient", stream);
    global_tasks(launch, problem);
}

static void emit_global_gpu(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    struct pool_sizes z = pool_sizes_of(problem);
    size_t group = group_size(problem->device, 64), planes = (size_t)(z.n * z.c);
    if (problem->inputs[0]->layout == LAYOUT_CHANNELS_LAST) { /* neighbours have neighbouring channels */
        emit(problem, operands, list);
        return;
    }
    char options[32];
    snprintf(options, sizeof options, "-DGROUP=%zu", group);
    struct launch *launch = pool_launch(problem, list, "pool_plain", "global_average_pool", options);
    launch_buffer(launch, operands->inputs[0]);
    launch_buffer(launch, operands->outputs[0]);
    launch_grid(launch, 1, planes * group, 1, 1, group, 1, 1);
    launch_work(launch, pool_flops(problem), 4.0 * (double)planes * (double)(z.h * z.w + 1));
}

/* ---------------------------------------------------------------------------------------------------- tables ---- */

static const struct implementation global_cpu = {
    .name = "global_cpu",
    .fits = fits_global_cpu,
    .layouts = layouts_global,
    .emit = emit_global_cpu,
    .bf16_inputs = 1 << 0,
};
static const struct implementation global_gpu = {
    .name = "global_gpu", .fits = fits_global_gpu, .layouts = layouts_global_gpu, .emit = emit_global_gpu
};
static const struct implementation forward_cpu = { POOL_CPU, .emit = emit };
static const struct implementation forward_plain = { POOL_PLAIN, .any_layout = IN_PLAIN | IN_CHANNELS_LAST,
    .emit = emit };
static const struct implementation global_gradient_cpu = {
    .name = "global_cpu",
    .fits = fits_global_cpu,
    .layouts = layouts_global_gradient,
    .epilogues = pool_epilogues_of_gradient,
    .emit = emit_global_gradient_cpu,
    .bf16_outputs = 1 << 0,
};
static const struct implementation gradient_cpu = { POOL_CPU, .epilogues = pool_epilogues_of_gradient,
    .emit = emit_gradient };
static const struct implementation gradient_plain = { POOL_PLAIN, .layouts = layouts_gradient,
    .epilogues = pool_epilogues_of_gradient, .emit = emit_gradient };
static const struct implementation *const forward_implementations[] = { &global_cpu, &global_gpu, &forward_cpu,
    &forward_plain, NULL };
static const struct implementation *const gradient_implementations[] = { &global_gradient_cpu, &gradient_cpu,
    &gradient_plain, NULL };
static const struct implementation *const adaptive_implementations[] = { &forward_cpu, &forward_plain, NULL };
static const struct implementation *const adaptive_gradient_implementations[] = { &gradient_cpu, &gradient_plain,
    NULL };

const struct operation operation_average_pool = {
    .name = "average_pool",
    .inputs = { { "x" } },
    .outputs = { { "y" } },
    .infer = infer,
    .gradient = gradient,
    .implementations = forward_implementations,
    .flops = pool_flops,
};
const struct operation operation_average_pool_gradient = {
    .name = "average_pool_gradient",
    .inputs = { { "dy" } },
    .outputs = { { "dx" } },
    .infer = pool_infer_gradient,
    .implementations = gradient_implementations,
    .flops = pool_flops,
};
const struct operation operation_adaptive_average_pool = {
    .name = "adaptive_average_pool",
    .inputs = { { "x" } },
    .outputs = { { "y" } },
    .infer = infer_adaptive,
    .gradient = gradient_adaptive,
    .implementations = adaptive_implementations,
    .flops = pool_flops,
};
const struct operation operation_adaptive_average_pool_gradient = {
    .name = "adaptive_average_pool_gradient",
    .inputs = { { "dy" } },
    .outputs = { { "dx" } },
    .infer = pool_infer_gradient,
    .implementations = adaptive_gradient_implementations,
    .flops = pool_flops,
};
