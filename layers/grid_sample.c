#include "layers/grid_sample.h"
#include "layers/interpreter/interpreter.h"

#include "base/memory.h"
#include "clkernels/arguments/grid_sample.h"
#include "layers/broadcast.h"
#include "layers/decompose.h"
#include "layers/elementwise.h"
#include "layers/lines.h"
#include "layers/schema/op_builders.h"
#include "runtime/arguments.h"

#include <stdlib.h>

ATTRIBUTES_DESCRIBE(grid_sample, ATTRIBUTE(grid_sample, INT, mode), ATTRIBUTE(grid_sample, INT, padding),
    ATTRIBUTE(grid_sample, FLAG, align_corners), ATTRIBUTE(grid_sample, SHAPE, shape))

static tutti_status infer(const struct graph *graph, struct node *node, struct value *outputs)
{
    const struct value *x = graph_at(graph, node->inputs[0]), *grid = graph_at(graph, node->inputs[1]);
    const int axes = x->shape.rank - SPACE_AXIS, places = grid->shape.rank - grid->batched - 1;
    if (!x->batched || axes < 2 || axes > 3)
        return fail(TUTTI_SHAPE, "grid_sample: the input must be [channels, (depth,) height, width] for each sample");
    if (places < 1 || value_size(grid, 0) != axes || places + SPACE_AXIS > TUTTI_MAX_RANK)
        return fail(TUTTI_SHAPE, "grid_sample: the grid must be [places ..., %d]: its last axis has size %s", axes,
            size_print(value_size(grid, 0), (char[SIZE_TEXT]) { 0 }));
    outputs[0] = (struct value) { .type = TYPE_F32, .batched = true, .shape = { .rank = SPACE_AXIS + places } };
    outputs[0].shape.sizes[0] = x->shape.sizes[0];
    outputs[0].shape.sizes[CHANNEL_AXIS] = x->shape.sizes[CHANNEL_AXIS];
    for (int i = 0; i < places; i++) outputs[0].shape.sizes[SPACE_AXIS + i] = grid->shape.sizes[grid->batched + i];
    outputs[0].axes = axes_with_channels(outputs[0].shape.rank);
    return TUTTI_OK;
}

static tutti_status infer_data_gradient(const struct graph *graph, struct node *node, struct value *outputs)
{
    (void)graph;
    const tutti_shape shape = grid_sample_attributes(node)->shape;
    outputs[0] =
        (struct value) { .type = TYPE_F32, .batched = true, .shape = shape, .axes = axes_with_channels(shape.rank) };
    return TUTTI_OK;
}

static tutti_status infer_grid_gradient(const struct graph *graph, struct node *node, struct value *outputs)
{
    const struct value *x = graph_at(graph, node->inputs[0]), *grid = graph_at(graph, node->inputs[1]);
    outputs[0] = (struct value) { .type = TYPE_F32, .batched = true, .shape = { .sizes = { x->shape.sizes[0] } } };
    outputs[0].shape.rank = 1 + grid->shape.rank - grid->batched;
    for (int i = 1; i < outputs[0].shape.rank; i++)
        outputs[0].shape.sizes[i] = grid->shape.sizes[i - 1 + grid->batched];
    return TUTTI_OK;
}

static tutti_status gradient(struct graph *graph, const struct node *node, const struct node_gradients *g)
{
    const int dy = g->outputs[0], x = node->inputs[0], grid = node->inputs[1], layer = node->layer;
    struct grid_sample_attributes attributes = *grid_sample_attributes(node);
    if (dy == NO_VALUE) return TUTTI_OK;
    if (g->wanted[1]) {
        const int made =
            graph_append(graph, &operation_grid_sample_grid_gradient, &attributes, (int[]) { x, grid, dy }, 3, layer);
        g->inputs[1] = broadcast_gradient(graph, made, grid, layer);
    }
    if (!g->wanted[0] || graph->status != TUTTI_OK) return graph->status;
    attributes.shape = graph_at(graph, x)->shape;
    g->inputs[0] =
        graph_append(graph, &operation_grid_sample_data_gradient, &attributes, (int[]) { grid, dy }, 2, layer);
    return graph->status;
}

/* ------------------------------------------------------------------------------------------- implementations ---- */

ARGUMENTS(sample, GRID_SAMPLE_ARGUMENTS)
ARGUMENTS(data_gradient, GRID_DATA_ARGUMENTS)
ARGUMENTS(grid_gradient, GRID_GRID_ARGUMENTS)
ARGUMENTS(sizes, GRID_SIZES)

static struct launch *add(
    const struct problem *problem, struct launch_list *list, const char *kernel, const struct grid_sizes *z)
{
    static const int taps[] = { 2, 1, 4 };
    const struct grid_sample_attributes *a = grid_sample_attributes(problem->node);
    struct launch *launch =
        launch_add(list, "grid_sample", kernel, "-DMODE=%d -DTAPS=%d -DPADDING=%d -DALIGN=%d -DAXES=%d", a->mode,
            taps[a->mode], a->padding, a->align_corners, z->axes);
    double all = (double)z->samples * (double)z->channels * (double)z->outputs;
    for (int i = 0; i < z->axes; i++) all *= taps[a->mode];
    launch_work(launch, 2 * all, 4 * all);
    return launch;
}

static void set_sizes(struct launch *launch, const struct grid_sizes *z, int64_t all)
{
    ARGUMENTS_SET(launch, sizes, .channels = z->channels, .depth = z->depth, .height = z->height, .width = z->width,
        .outputs = z->outputs, .grid_stride = z->grid_stride, .all = all);
}

static void emit(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct grid_sizes z = grid_sizes_of(problem->inputs[0], problem->inputs[1]);
    const int64_t all = z.samples * z.channels * z.outputs;
    struct launch *launch = add(problem, list, "grid_sample", &z);
    ARGUMENTS_SET(launch, sample, .x = operands->inputs[0], .grid = operands->inputs[1], .y = operands->outputs[0],
        .chunk = elements_chunk(problem->device, all));
    set_sizes(launch, &z, all);
    elements_launch(launch, problem->device, all);
}

/* Divides the channels of samples first, then their elements: each block of elements looks at all places. */
static void emit_data_gradient(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    enum { ENOUGH_ITEMS = 16384, TASKS = 4, MOST_BLOCKS = 16, GROUP = 64 };
    const struct capabilities *device = problem->device;
    const struct grid_sizes z = grid_sizes_of(problem->outputs[0], problem->inputs[0]);
    const bool cpu = device->class == DEVICE_CPU;
    const int64_t lines = z.samples * z.channels, pixels = z.depth * z.height * z.width;
    int64_t blocks = divide_up(cpu ? TASKS * (device->units > 0 ? device->units : 1) : ENOUGH_ITEMS, lines);
    if (blocks > MOST_BLOCKS) blocks = MOST_BLOCKS;
    const int64_t each = divide_up(pixels, blocks);
    struct launch *launch = add(problem, list, "grid_data_gradient", &z);
    ARGUMENTS_SET(launch, data_gradient, .grid = operands->inputs[0], .dy = operands->inputs[1],
        .dx = operands->outputs[0], .each = each);
    set_sizes(launch, &z, lines);
    blocks = divide_up(pixels, each);
    if (cpu)
        launch_tasks(launch, (size_t)lines, (size_t)blocks, 1);
    else
        items_launch(launch, device, GROUP, lines, blocks);
}

static void emit_grid_gradient(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct grid_sizes z = grid_sizes_of(problem->inputs[0], problem->inputs[1]);
    const int64_t all = z.samples * z.outputs;
    const int64_t chunk = problem->device->class == DEVICE_CPU
        ? divide_up(elements_chunk(problem->device, all * z.channels), z.channels)
        : 1;
    struct launch *launch = add(problem, list, "grid_grid_gradient", &z);
    ARGUMENTS_SET(launch, grid_gradient, .x = operands->inputs[0], .grid = operands->inputs[1],
        .dy = operands->inputs[2], .dgrid = operands->outputs[0], .chunk = chunk);
    set_sizes(launch, &z, all);
    if (problem->device->class == DEVICE_CPU)
        launch_tasks(launch, (size_t)divide_up(all, chunk), 1, 1);
    else
        elements_launch(launch, problem->device, all);
}

static const struct implementation elements = { .name = "elements", .emit = emit },
                                   planes = { .name = "planes", .emit = emit_data_gradient },
                                   places = { .name = "places", .emit = emit_grid_gradient };

const struct operation operation_grid_sample = {
    .name = "grid_sample",
    .inputs = { { "x" }, { "grid" } },
    .outputs = { { "y" } },
    .attributes = &grid_sample_attributes_type,
    .infer = infer,
    .gradient = gradient,
    .reference = interpret_grid_sample,
    .implementations = ONE(elements),
};
const struct operation operation_grid_sample_data_gradient = {
    .name = "grid_sample_data_gradient",
    .inputs = { { "grid" }, { "dy" } },
    .outputs = { { "dx" } },
    .attributes = &grid_sample_attributes_type,
    .infer = infer_data_gradient,
    .reference = interpret_grid_data_gradient,
    .implementations = ONE(planes),
};
const struct operation operation_grid_sample_grid_gradient = {
    .name = "grid_sample_grid_gradient",
    .inputs = { { "x" }, { "grid" }, { "dy" } },
    .outputs = { { "dgrid" } },
    .attributes = &grid_sample_attributes_type,
    .infer = infer_grid_gradient,
    .reference = interpret_grid_grid_gradient,
    .implementations = ONE(places),
};

/* ----------------------------------------------------------------------------------------------- affine_grid ---- */

enum { MOST_PLACES = 1 << 26 };

/* The centre of element i of `size`, where -1 and 1 are the ends of the axis. */
static double centre(int64_t i, int64_t size, bool align_corners)
{
    if (align_corners) return size > 1 ? 2 * (double)i / (double)(size - 1) - 1 : 0;
    return (2 * (double)i + 1) / (double)size - 1;
}

/* The places of all elements, [elements, axes + 1]: the last axis of space comes first, and after all a 1. */
static int add_places(struct tutti_network *network, const struct affine_grid_options *a, int64_t count)
{
    const int axes = a->size.count;
    float *list = memory_new((size_t)(count * (axes + 1)), sizeof *list);
    if (!list) return NO_VALUE;
    for (int64_t i = 0; i < count; i++) {
        int64_t rest = i;
        for (int k = 0; k < axes; k++) {
            const int64_t size = a->size.numbers[axes - 1 - k];
            list[i * (axes + 1) + k] = (float)centre(rest % size, size, a->align_corners);
            rest /= size;
        }
        list[i * (axes + 1) + axes] = 1;
    }
    const int made = network_constant(network, NULL, TYPE_F32, TUTTI_SHAPE(count, axes + 1), list);
    free(list);
    return made;
}

/* The grid is the product of the places and theta, transposed. Its numbers are positions, so they are not rounded. */
tutti_status op_affine_grid(const struct append_context *c, const struct op_call *call, int *y)
{
    const struct affine_grid_options *a = call->options;
    const struct value *theta = graph_at(c->graph, call->inputs[0]);
    const int axes = a->size.count, rank = theta->shape.rank - theta->batched;
    tutti_shape shape = { .rank = theta->batched, .sizes = { theta->shape.sizes[0] } };
    int64_t total = 1;
    if (axes < 2 || axes > 3 || rank != 2 || value_size(theta, 0) != axes + 1 || value_size(theta, 1) != axes)
        return fail(TUTTI_SHAPE,
            "affine_grid: theta must be [2, 3] for a size of 2 numbers, or [3, 4] for 3; size has %d", axes);
    for (int i = 0; i < axes; i++) {
        const int64_t size = a->size.numbers[i];
        if (size < 1 || size > MOST_PLACES / total)
            return fail(TUTTI_INVALID,
                "affine_grid: size %d is %lld: it must be at least 1, and all together at most %d", i, (long long)size,
                MOST_PLACES);
        total *= size;
        shape.sizes[shape.rank++] = size;
    }
    shape.sizes[shape.rank++] = axes;
    const struct matmul_attributes how = { .transpose_b = true, .full_precision = true };
    const int operands[] = { add_places(c->network, a, total), call->inputs[0] };
    if (operands[0] == NO_VALUE) return TUTTI_NO_MEMORY;
    *y = append_reshape(c, decompose_matmul(c, &how, operands, 2), shape);
    return c->graph->status;
}
