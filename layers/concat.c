/* concat joins values along one dimension, and window, which cuts parts out and pads, is its gradient. Joining copies
 * rows: a value is [outer][size along the axis][inner], and joining along the axis puts the [size][inner] after one
 * another. A window along the channels is a copy of rows, too. The blocked layout is the same along the channels when
 * all are multiples of the vector width; with channels last, these are a row, and multiples of 4 there. */
#include "base/memory.h"
#include "clkernels/arguments/rows.h"
#include "graph/network.h"
#include "layers/append.h"
#include "layers/elementwise.h"
#include "layers/epilogue.h"
#include "layers/interpreter/interpreter.h"
#include "layers/layers.h"
#include "layers/loop/loop.h"
#include "runtime/arguments.h"

#include <stdlib.h>

ATTRIBUTES_DESCRIBE(axis, ATTRIBUTE(axis, AXIS, axis))
ATTRIBUTES_DESCRIBE(window, ATTRIBUTE(window, SHAPE, shape), ATTRIBUTE(window, PLACES, begins),
    ATTRIBUTE(window, NUMBER, outside), ATTRIBUTE(window, FLAG, within), ATTRIBUTE(window, AXES, reversed))

static tutti_status infer_concat(const struct graph *graph, struct node *node, struct value *outputs)
{
    const struct value *first = graph_at(graph, node->inputs[0]);
    int axis = axis_attributes(node)->axis;
    if (axis < (first->batched ? 1 : 0) || axis >= first->shape.rank)
        return fail(TUTTI_INVALID, "concat: dimension %d does not exist: the inputs have %d, counted from 0", axis - 1,
            first->shape.rank - 1);
    outputs[0] = *first;
    for (int i = 1; i < node->input_count; i++) {
        const struct value *other = graph_at(graph, node->inputs[i]);
        tutti_shape shape = other->shape;
        if (shape.rank == first->shape.rank) shape.sizes[axis] = first->shape.sizes[axis];
        if (!shape_equal(shape, first->shape) || other->type != first->type)
            return fail(TUTTI_SHAPE,
                "concat: input %d differs from input 0 in a dimension other than %d: all other sizes must be equal", i,
                axis - 1);
        if (shape.sizes[axis] == TUTTI_SEQUENCE || other->shape.sizes[axis] == TUTTI_SEQUENCE)
            return fail(TUTTI_SHAPE,
                "concat: the inputs have the length of sequences, TUTTI_SEQUENCE, along dimension %d: only numbers can "
                "be added up",
                axis - 1);
        outputs[0].shape.sizes[axis] += other->shape.sizes[axis];
    }
    infer_axes(graph, node, &outputs[0]);
    return TUTTI_OK;
}

/* Checks one axis of a window. From an axis with the length of sequences, whose number is not known yet, a window can
 * take all, or the first element. */
static tutti_status check_axis(const struct window_attributes *a, int axis, int64_t have, int axis_of_sample)
{
    const int64_t begin = a->begins[axis], size = a->shape.sizes[axis];
    if (have == TUTTI_SEQUENCE && (begin != 0 || (size != TUTTI_SEQUENCE && size != 1)))
        return fail(TUTTI_SHAPE,
            "window: axis %d has the length of sequences, TUTTI_SEQUENCE: nothing can be cut from it or added to it, "
            "but the first element can be taken",
            axis_of_sample);
    if (have == TUTTI_SEQUENCE || (size == TUTTI_SEQUENCE && a->within)) return TUTTI_OK;
    if (a->within && begin + size > have)
        return fail(TUTTI_SHAPE,
            "window: the first %lld elements are taken along axis %d, which has %lld: it needs as many as the longest "
            "sequence has",
            (long long)size, axis_of_sample, (long long)have);
    if (size >= 1 && begin < have && begin + size > 0) return TUTTI_OK;
    return fail(TUTTI_SHAPE, "window: along axis %d it has elements %lld to %lld, all outside the input's %lld",
        axis_of_sample, (long long)begin, (long long)(begin + size - 1), (long long)have);
}

static tutti_status infer_window(const struct graph *graph, struct node *node, struct value *outputs)
{
    tutti_status status = TUTTI_OK;
    const struct value *x = graph_at(graph, node->inputs[0]);
    const struct window_attributes *a = window_attributes(node);
    if (a->shape.rank != x->shape.rank || (x->batched && (a->begins[0] || a->shape.sizes[0] != x->shape.sizes[0])))
        return fail(TUTTI_SHAPE, "window: its shape and the input's differ in their axes or their batch");
    for (int i = x->batched; i < x->shape.rank; i++) TRY(check_axis(a, i, x->shape.sizes[i], i - x->batched));
    outputs[0] = (struct value) {
        .type = TYPE_F32, .batched = x->batched, .shape = a->shape, .axes = axes_with_sequences(x->axes, &a->shape)
    };
done:
    return status;
}

/* The gradient of a window is the window of dy that has the input's shape. */
static tutti_status gradient_of_window(struct graph *graph, const struct node *node, const struct node_gradients *g)
{
    const struct window_attributes *a = window_attributes(node);
    struct window_attributes attributes = { .shape = graph_at(graph, node->inputs[0])->shape, .reversed = a->reversed };
    if (g->outputs[0] == NO_VALUE || !g->wanted[0]) return TUTTI_OK;
    for (int i = 0; i < attributes.shape.rank; i++) {
        attributes.begins[i] = -a->begins[i];
        if (a->reversed >> i & 1)
            attributes.begins[i] =
                graph_at(graph, node->outputs[0])->shape.sizes[i] + a->begins[i] - attributes.shape.sizes[i];
    }
    g->inputs[0] = graph_append(graph, &operation_window, &attributes, g->outputs, 1, node->layer);
    return graph->status;
}

static tutti_status gradient_of_concat(struct graph *graph, const struct node *node, const struct node_gradients *g)
{
    const int axis = axis_attributes(node)->axis;
    struct window_attributes attributes = { 0 };
    if (g->outputs[0] == NO_VALUE) return TUTTI_OK;
    for (int i = 0; i < node->input_count; i++) {
        attributes.shape = graph_at(graph, node->inputs[i])->shape;
        if (g->wanted[i])
            g->inputs[i] = graph_append(graph, &operation_window, &attributes, g->outputs, 1, node->layer);
        attributes.begins[axis] += attributes.shape.sizes[axis];
    }
    return graph->status;
}

/* ------------------------------------------------------------------------------------------- implementations ---- */

/* `begin`: the first channel of a window. */
static const char *fits_channels(const struct problem *problem, bool along_channels, int64_t begin)
{
    const struct value *y = problem->outputs[0];
    const bool gpu = problem->device->class == DEVICE_GPU;
    const int width = gpu ? CHANNELS_LAST_MULTIPLE : problem->device->vector_width;
    bool aligned =
        along_channels && value_has_layouts(y) && begin % width == 0 && y->shape.sizes[CHANNEL_AXIS] % width == 0;
    for (int i = 0; i < problem->node->input_count && aligned; i++)
        aligned = problem->inputs[i]->shape.sizes[CHANNEL_AXIS] % width == 0;
    if (aligned) return NULL;
    return gpu ? "the axis is not the channels, or their numbers are not all multiples of 4"
               : "the axis is not the channels, or their numbers are not all multiples of the vector width";
}

static const char *concat_fits(const struct problem *problem)
{
    return fits_channels(problem, axis_attributes(problem->node)->axis == CHANNEL_AXIS, 0);
}

/* Returns NULL, or why the window is not a part of the channels, as a gradient of concat is. */
static const char *window_fits(const struct problem *problem)
{
    const struct value *x = problem->inputs[0], *y = problem->outputs[0];
    const int64_t *begins = window_attributes(problem->node)->begins;
    const int64_t begin = begins[CHANNEL_AXIS], size = y->shape.sizes[CHANNEL_AXIS];
    bool along = y->batched && !window_attributes(problem->node)->reversed && begin >= 0 &&
        begin + size <= x->shape.sizes[CHANNEL_AXIS];
    for (int i = SPACE_AXIS; i < y->shape.rank; i++) along &= begins[i] == 0 && x->shape.sizes[i] == y->shape.sizes[i];
    return fits_channels(problem, along, begin);
}

/* Floats of one row: from the axis on. With channels last, the axis is that of the channels. */
static int64_t row_width(const struct value *value, int axis)
{
    const struct planes planes = value_planes(value, axis);
    return value->layout == LAYOUT_CHANNELS_LAST ? planes.c : planes.c * planes.pixels;
}

/* Copies rows x width floats from one array of rows to another (rows.cl), with the node's fusions, if it is not NULL.
 * Positions in floats. */
struct row_copy {
    int64_t rows, width;
    int64_t in_first, in_stride, out_first, out_stride;
};

ARGUMENTS(copy, COPY_ARGUMENTS)

static void rows_emit(
    struct launch_list *list, const struct row_copy *copy, const struct node *node, cl_mem in, cl_mem add, cl_mem out)
{
    char options[EPILOGUE_OPTIONS];
    const struct capabilities *device = &list->device->can;
    struct launch *launch =
        launch_add(list, "rows", "copy_rows", "%s", epilogue_options(node, options, sizeof options));
    int64_t chunk = 1;
    if (device->class == DEVICE_CPU) {
        /* Tasks over pieces of rows where these are long, else over rows. */
        int64_t whole = copy->rows * copy->width;
        chunk = elementwise_task_floats(device, whole);
        if (chunk > copy->width) chunk = copy->width;
        int64_t rows_of_task = elementwise_task_floats(device, whole) / chunk;
        launch_tasks(launch, (size_t)divide_up(copy->width, chunk), (size_t)divide_up(copy->rows, rows_of_task), 1);
    } else {
        items_launch(launch, device, copy->width > 64 ? 256 : 64, copy->width, copy->rows < 4096 ? copy->rows : 4096);
    }
    ARGUMENTS_SET(launch, copy, .in = in, .add = add, .out = out, .rows = copy->rows, .width = copy->width,
        .in_first = copy->in_first, .in_stride = copy->in_stride, .out_first = copy->out_first,
        .out_stride = copy->out_stride, .chunk = chunk);
    double floats = (double)copy->rows * (double)copy->width;
    launch_work(launch, 0, floats * (add ? 12 : 8));
}

static void emit_concat(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    int axis = axis_attributes(problem->node)->axis;
    const struct value *y = problem->outputs[0];
    struct row_copy copy = { .out_stride = row_width(y, axis) };
    copy.rows = value_elements(y) / copy.out_stride;
    for (int i = 0; i < problem->node->input_count; i++) {
        copy.width = copy.in_stride = row_width(problem->inputs[i], axis);
        rows_emit(list, &copy, NULL, operands->inputs[i], NULL, operands->outputs[0]);
        copy.out_first += copy.width;
    }
}

static void emit_window(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct value *x = problem->inputs[0], *y = problem->outputs[0];
    const int64_t width = row_width(y, CHANNEL_AXIS);
    struct row_copy copy = { .width = width,
        .out_stride = width,
        .rows = value_elements(y) / width,
        .in_stride = row_width(x, CHANNEL_AXIS),
        .in_first = window_attributes(problem->node)->begins[CHANNEL_AXIS] * (width / y->shape.sizes[CHANNEL_AXIS]) };
    rows_emit(list, &copy, problem->node, operands->inputs[0], operands->add, operands->outputs[0]);
}

static void describe_window(const struct problem *problem, struct loop *loop)
{
    const struct value *x = problem->inputs[0], *y = problem->outputs[0];
    const struct window_attributes *a = window_attributes(problem->node);
    loop_begin(loop, y);
    struct loop_operand *operand = &loop->operands[loop_add_operand(loop, problem, 0)];
    operand->outside = a->outside;
    for (int i = 0; i < y->shape.rank; i++) {
        const int64_t begin = a->begins[i], size = x->shape.sizes[i], count = y->shape.sizes[i];
        const bool reversed = a->reversed >> i & 1;
        operand->offset += (reversed ? begin + count - 1 : begin) * operand->strides[i];
        if (reversed) operand->strides[i] = -operand->strides[i];
        loop_guard(
            operand, i, reversed ? count + begin - size : -begin, reversed ? count + begin : size - begin, count);
    }
}

static const struct implementation concat_any = {
    .name = "rows", .fits = concat_fits, .any_layout = IN_ANY_LAYOUT, .emit = emit_concat
};
static const struct implementation concat_plain = { .name = "plain", .emit = emit_concat };
static const struct implementation window_rows = {
    .name = "rows",
    .fits = window_fits,
    .any_layout = IN_ANY_LAYOUT,
    .fusions = FUSED(ADD),
    .emit = emit_window,
};
static const struct implementation *const concat_implementations[] = { &concat_any, &concat_plain, NULL };
static const struct implementation *const window_implementations[] = { &window_rows, &loop_generated, NULL };

const struct operation operation_concat = {
    .name = "concat",
    .inputs = { { "x", PORT_REPEATED } },
    .outputs = { { "y" } },
    .attributes = &axis_attributes_type,
    .infer = infer_concat,
    .gradient = gradient_of_concat,
    .reference = interpret_concat,
    .implementations = concat_implementations,
};
const struct operation operation_window = {
    .name = "window",
    .inputs = { { "x" } },
    .outputs = { { "y" } },
    .attributes = &window_attributes_type,
    .infer = infer_window,
    .gradient = gradient_of_window,
    .loop = describe_window,
    .implementations = window_implementations,
};

/* --------------------------------------------------------------------------------------------------- builder ---- */

int append_concat(const struct append_context *c, int axis, int *values, int count)
{
    enum { MOST = 8 };
    const struct axis_attributes attributes = { .axis = axis };
    do {
        int made = 0;
        for (int first = 0; first < count; first += MOST) {
            const int own = count - first < MOST ? count - first : MOST;
            const bool alone = own == 1 && count > 1;
            values[made++] = alone
                ? values[first]
                : graph_append(c->graph, &operation_concat, &attributes, values + first, own, c->layer);
        }
        count = made;
    } while (count > 1 && c->graph->status == TUTTI_OK);
    return values[0];
}

tutti_tensor tutti_concat(tutti_network *network, const tutti_tensor *inputs, int count, int dimension)
{
    tutti_status status = TUTTI_OK;
    int *values = NULL;
    tutti_tensor joined = { NO_VALUE };
    if (!network_ok(network)) return joined;
    if (!inputs || count < 1) FAIL(TUTTI_INVALID, "concat: it got %d inputs: it needs at least 1", count);
    if (dimension < 0 || dimension >= TUTTI_MAX_RANK)
        FAIL(TUTTI_INVALID, "concat: dimension %d does not exist", dimension);
    values = memory_new((size_t)count, sizeof(*values));
    if (!values) status = TUTTI_NO_MEMORY;
    for (int i = 0; i < count && status == TUTTI_OK; i++) {
        if (!network_value(network, inputs[i])) status = network->status;
        values[i] = inputs[i].id;
    }
    if (status != TUTTI_OK) goto done;
    const int layer = network_layer_begin(network, NULL, "concat");
    const struct append_context context = { network, &network->graph, layer };
    if (layer >= 0) joined = network_close(network, layer, append_concat(&context, dimension + 1, values, count));
done:
    free(values);
    return status == TUTTI_OK ? joined : network_fail(network, status);
}
