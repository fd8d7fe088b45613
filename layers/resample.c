/* resample: along one axis, each element is a weighted sum of elements at constant positions. The gradient is the same
 * operation with the transposed table, so a node has both. */
#include "layers/resample.h"
#include "layers/interpreter/interpreter.h"

#include <stdlib.h>

#include "base/memory.h"
#include "clkernels/arguments/resample.h"
#include "layers/elementwise.h"
#include "layers/layers.h"
#include "runtime/arguments.h"

ATTRIBUTES_DESCRIBE(resample, ATTRIBUTE(resample, AXIS, axis), ATTRIBUTE(resample, NUMBER, outside))

/* Positions of a node's inputs, and their numbers. */
enum { X, TABLE, TRANSPOSED = 4, TABLE_INPUTS = 3, INPUTS = 7 };

static bool is_table(const struct graph *graph, const int *inputs)
{
    const struct value *starts = graph_at(graph, inputs[0]), *positions = graph_at(graph, inputs[1]),
                       *weights = graph_at(graph, inputs[2]);
    if (starts->shape.rank != 1 || positions->shape.rank != 1 || weights->shape.rank != 1) return false;
    return starts->type == TYPE_I32 && positions->type == TYPE_I32 && weights->type == TYPE_F32 &&
        positions->shape.sizes[0] == weights->shape.sizes[0];
}

static tutti_status infer(const struct graph *graph, struct node *node, struct value *outputs)
{
    const struct value *x = graph_at(graph, node->inputs[X]);
    const int axis = resample_attributes(node)->axis;
    if (axis < x->batched || axis >= x->shape.rank)
        return fail(TUTTI_INVALID, "resample: axis %d does not exist: the input has %d", axis - x->batched,
            x->shape.rank - x->batched);
    if (!is_table(graph, node->inputs + TABLE) || !is_table(graph, node->inputs + TRANSPOSED) ||
        graph_at(graph, node->inputs[TRANSPOSED])->shape.sizes[0] != x->shape.sizes[axis] + 1)
        return fail(TUTTI_SHAPE, "resample: its table is not one for an axis of %lld elements",
            (long long)x->shape.sizes[axis]);
    outputs[0] = (struct value) { .type = TYPE_F32, .batched = x->batched, .shape = x->shape, .axes = x->axes };
    outputs[0].shape.sizes[axis] = graph_at(graph, node->inputs[TABLE])->shape.sizes[0] - 1;
    return TUTTI_OK;
}

static tutti_status gradient(struct graph *graph, const struct node *node, const struct node_gradients *g)
{
    if (g->outputs[0] == NO_VALUE || !g->wanted[X]) return TUTTI_OK;
    const struct resample_attributes attributes = { .axis = resample_attributes(node)->axis };
    int inputs[INPUTS] = { g->outputs[0] };
    for (int i = 0; i < TABLE_INPUTS; i++) {
        inputs[TABLE + i] = node->inputs[TRANSPOSED + i];
        inputs[TRANSPOSED + i] = node->inputs[TABLE + i];
    }
    g->inputs[X] = graph_append(graph, &operation_resample, &attributes, inputs, INPUTS, node->layer);
    return graph->status;
}

/* ---------------------------------------------------------------------------------------------------- tables ---- */

/* The most outputs and taps of a table: a file that asks for more shall not take the host's memory. */
enum { MOST = 1 << 24 };
/* The most entries of all tables of a network, with their transposed ones: 1 GiB of constants. */
enum { MOST_IN_ALL = 1 << 26 };

tutti_status taps_new(struct taps *taps, int64_t from, int64_t to)
{
    *taps = (struct taps) { .from = from, .to = to };
    if (from < 1 || to < 1 || from > MOST || to > MOST)
        return fail(TUTTI_SHAPE, "an axis of %lld elements cannot become %lld: both must be from 1 to %d",
            (long long)from, (long long)to, MOST);
    taps->starts = memory_new((size_t)to + 1, sizeof *taps->starts);
    return taps->starts ? TUTTI_OK : TUTTI_NO_MEMORY;
}

void taps_free(struct taps *taps)
{
    free(taps->starts);
    free(taps->positions);
    free(taps->weights);
    *taps = (struct taps) { 0 };
}

static tutti_status grow(struct taps *taps)
{
    const int64_t capacity = taps->capacity ? 2 * taps->capacity : 2 * taps->to;
    if (taps->count >= MOST)
        return fail(TUTTI_UNSUPPORTED, "an axis of %lld elements made from %lld needs more than %d products",
            (long long)taps->to, (long long)taps->from, MOST);
    int32_t *positions = realloc(taps->positions, (size_t)capacity * sizeof *positions);
    if (positions) taps->positions = positions;
    float *weights = realloc(taps->weights, (size_t)capacity * sizeof *weights);
    if (weights) taps->weights = weights;
    if (!positions || !weights)
        return fail(TUTTI_NO_MEMORY, "no memory for a table of %lld numbers", (long long)capacity);
    taps->capacity = capacity;
    return TUTTI_OK;
}

tutti_status taps_add(struct taps *taps, int64_t position, double weight)
{
    if (weight == 0) return TUTTI_OK;
    if (position < 0 || position >= taps->from || taps->rows >= taps->to)
        return fail(TUTTI_INTERNAL, "position %lld of %lld for output %lld of %lld", (long long)position,
            (long long)taps->from, (long long)taps->rows, (long long)taps->to);
    const tutti_status status = taps->count == taps->capacity ? grow(taps) : TUTTI_OK;
    if (status != TUTTI_OK) return status;
    taps->positions[taps->count] = (int32_t)position;
    taps->weights[taps->count++] = (float)weight;
    return TUTTI_OK;
}

void taps_end_row(struct taps *taps)
{
    if (taps->rows < taps->to) taps->starts[++taps->rows] = (int32_t)taps->count;
}

/* Counts the taps of each position, then places them in the order of their outputs. */
tutti_status taps_transpose(const struct taps *taps, struct taps *made)
{
    tutti_status status = taps_new(made, taps->to, taps->from);
    made->capacity = taps->count > 0 ? taps->count : 1;
    if (status == TUTTI_OK) made->positions = memory_new((size_t)made->capacity, sizeof *made->positions);
    if (status == TUTTI_OK) made->weights = memory_new((size_t)made->capacity, sizeof *made->weights);
    if (status == TUTTI_OK && (!made->positions || !made->weights)) status = TUTTI_NO_MEMORY;
    if (status != TUTTI_OK) return status;
    for (int64_t t = 0; t < taps->count; t++) made->starts[taps->positions[t] + 1]++;
    for (int64_t j = 0; j < made->to; j++) made->starts[j + 1] += made->starts[j];
    for (int64_t j = 0; j < taps->to; j++)
        for (int32_t t = taps->starts[j]; t < taps->starts[j + 1]; t++) {
            const int32_t at = made->starts[taps->positions[t]]++;
            made->positions[at] = (int32_t)j;
            made->weights[at] = taps->weights[t];
        }
    /* Each start has become the next one. */
    for (int64_t j = made->to; j > 0; j--) made->starts[j] = made->starts[j - 1];
    made->starts[0] = 0;
    made->rows = made->to;
    made->count = taps->count;
    return TUTTI_OK;
}

/* --------------------------------------------------------------------------------------------------- builder ---- */

static tutti_status count_entries(tutti_network *network, const struct taps *taps)
{
    network->table_entries += taps->from + taps->to + taps->count;
    if (network->table_entries <= MOST_IN_ALL) return TUTTI_OK;
    return fail(TUTTI_UNSUPPORTED, "tables of resized, padded and windowed axes would have more than %d entries in all",
        MOST_IN_ALL);
}

/* Adds a table. One without taps gets one tap that no output reads. */
static void add_table(tutti_network *network, const struct taps *taps, int *inputs)
{
    const int32_t no_position = 0;
    const float no_weight = 0;
    const bool empty = taps->count == 0;
    const tutti_shape count = TUTTI_SHAPE(empty ? 1 : taps->count);
    inputs[0] = network_constant(network, "starts", TYPE_I32, TUTTI_SHAPE(taps->to + 1), taps->starts);
    inputs[1] = network_constant(network, "positions", TYPE_I32, count, empty ? &no_position : taps->positions);
    inputs[2] = network_constant(network, "weights", TYPE_F32, count, empty ? &no_weight : taps->weights);
}

int resample(const struct append_context *c, int x, int axis, const struct taps *taps, float outside)
{
    struct taps back = { 0 };
    int inputs[INPUTS] = { x };
    tutti_network *network = c->network;
    if (!network_ok(network) || x == NO_VALUE) return NO_VALUE;
    tutti_status status = taps->rows == taps->to ? TUTTI_OK : fail(TUTTI_INTERNAL, "a table is not complete");
    if (status == TUTTI_OK) status = count_entries(network, taps);
    if (status == TUTTI_OK) status = taps_transpose(taps, &back);
    if (status == TUTTI_OK) {
        add_table(network, taps, inputs + TABLE);
        add_table(network, &back, inputs + TRANSPOSED);
    }
    taps_free(&back);
    if (status != TUTTI_OK) network_fail(network, status);
    if (!network_ok(network)) return NO_VALUE;
    const struct resample_attributes attributes = { .axis = axis, .outside = outside };
    return graph_append(c->graph, &operation_resample, &attributes, inputs, INPUTS, c->layer);
}

/* ------------------------------------------------------------------------------------------- implementations ---- */

enum { GROUP = 128 };

ARGUMENTS(resample, RESAMPLE_ARGUMENTS)

static void emit(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct capabilities *device = problem->device;
    const bool cpu = device->class == DEVICE_CPU;
    const int axis = resample_attributes(problem->node)->axis;
    const struct planes z = value_planes(problem->outputs[0], axis);
    const int64_t elements = z.n * z.c * z.pixels, taps = problem->inputs[TABLE + 1]->shape.sizes[0];
    const int64_t each_task = cpu ? elementwise_task_floats(device, elements) : 1;
    const int64_t piece = each_task < z.pixels ? each_task : z.pixels, each = divide_up(each_task, piece);
    struct launch *launch = launch_add(list, "resample", "resample", "-DTASKS=%d", cpu);
    ARGUMENTS_SET(launch, resample, .x = operands->inputs[X], .starts = operands->inputs[TABLE],
        .positions = operands->inputs[TABLE + 1], .weights = operands->inputs[TABLE + 2], .y = operands->outputs[0],
        .outside = (double)resample_attributes(problem->node)->outside, .from = problem->inputs[X]->shape.sizes[axis],
        .to = z.c, .rows = z.n * z.c, .inner = z.pixels, .each = each, .piece = piece);
    if (cpu)
        launch_tasks(launch, (size_t)divide_up(z.pixels, piece), (size_t)divide_up(z.n * z.c, each), 1);
    else
        items_launch(launch, device, GROUP, elements, 0);
    launch_work(launch, 2 * (double)taps * (double)(z.n * z.pixels),
        4 * ((double)value_elements(problem->inputs[X]) + (double)elements));
}

static double flops(const struct problem *problem)
{
    const struct planes z = value_planes(problem->outputs[0], resample_attributes(problem->node)->axis);
    return 2 * (double)problem->inputs[TABLE + 1]->shape.sizes[0] * (double)(z.n * z.pixels);
}

static const struct implementation elements = { .name = "elements", .emit = emit };

const struct operation operation_resample = {
    .name = "resample",
    .inputs = { { "x" }, { "starts", PORT_ANY_TYPE }, { "positions", PORT_ANY_TYPE }, { "weights" },
        { "back_starts", PORT_ANY_TYPE }, { "back_positions", PORT_ANY_TYPE }, { "back_weights" } },
    .outputs = { { "y" } },
    .attributes = &resample_attributes_type,
    .infer = infer,
    .gradient = gradient,
    .reference = interpret_resample,
    .implementations = ONE(elements),
    .flops = flops,
};
