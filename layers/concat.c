/* concat joins values along one dimension, slice cuts a part out: each the gradient of the other. Both are copies of
 * rows: a value is [outer][size along the axis][inner], and joining along the axis puts the [size][inner] behind one
 * another. The blocked layout is the same along the channels when all are multiples of the vector width; with channels
 * last, these are a row, and multiples of 4 there. */
#include "base/memory.h"
#include "graph/network.h"
#include "layers/elementwise.h"
#include "layers/epilogue.h"
#include "layers/layers.h"

static tutti_status infer_concat(const struct graph *graph, struct node *node, struct value *outputs)
{
    const struct value *first = graph_at(graph, node->inputs[0]);
    int axis = node->attributes.axis;
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
        outputs[0].shape.sizes[axis] += other->shape.sizes[axis];
    }
    node->output_count = 1;
    return TUTTI_OK;
}

static tutti_status infer_slice(const struct graph *graph, struct node *node, struct value *outputs)
{
    const struct value *x = graph_at(graph, node->inputs[0]);
    const struct attributes *a = &node->attributes;
    tutti_shape rest = a->shape;
    if (a->axis < 0 || a->axis >= x->shape.rank || rest.rank != x->shape.rank)
        return fail(TUTTI_INVALID, "slice: dimension %d does not exist: the input has %d, counted from 0", a->axis,
            x->shape.rank);
    rest.sizes[a->axis] = x->shape.sizes[a->axis];
    if (!shape_equal(rest, x->shape) || a->offset < 0 || a->offset + a->shape.sizes[a->axis] > x->shape.sizes[a->axis])
        return fail(TUTTI_SHAPE, "slice: offset %lld plus size %lld exceeds the input's size %lld",
            (long long)a->offset, (long long)a->shape.sizes[a->axis], (long long)x->shape.sizes[a->axis]);
    outputs[0] = *x;
    outputs[0].shape = a->shape;
    node->output_count = 1;
    return TUTTI_OK;
}

static tutti_status gradient(
    struct graph *graph, const struct node *node, const int *output_gradients, const bool *wanted, int *input_gradients)
{
    struct node forward = *node; /* appending may move the nodes */
    struct attributes attributes = { .axis = forward.attributes.axis };
    if (output_gradients[0] == NO_VALUE) return TUTTI_OK;
    for (int i = 0; i < forward.input_count; i++) {
        attributes.shape = graph_at(graph, forward.inputs[i])->shape;
        if (wanted[i])
            input_gradients[i] = graph_append(graph, &operation_slice, &attributes, output_gradients, 1, forward.layer);
        attributes.offset += attributes.shape.sizes[attributes.axis];
    }
    return graph->status;
}

/* ------------------------------------------------------------------------------------------- implementations ---- */

static bool channels_aligned(const struct problem *problem, int width)
{
    if (problem->node->attributes.axis != 1 || problem->outputs[0]->shape.rank != 4 ||
        problem->node->attributes.offset % width)
        return false;
    for (int i = 0; i < problem->node->input_count; i++)
        if (problem->inputs[i]->shape.sizes[1] % width) return false;
    return problem->outputs[0]->shape.sizes[1] % width == 0;
}

static const char *fits_any(const struct problem *problem)
{
    const bool gpu = problem->device->class == DEVICE_GPU;
    if (channels_aligned(problem, gpu ? CHANNELS_LAST_MULTIPLE : problem->device->vector_width)) return NULL;
    return gpu ? "the axis is not the channels, or their numbers are not all multiples of 4"
               : "the axis is not the channels, or their numbers are not all multiples of the vector width";
}

/* Floats from the axis on: of one index of the dimensions before it; and the number of those. */
static int64_t row_width(const struct value *value, int axis)
{
    int64_t width = 1;
    if (value->layout == LAYOUT_CHANNELS_LAST) return value->shape.sizes[1]; /* what fits_any() takes */
    for (int i = axis; i < value->shape.rank; i++) width *= value->shape.sizes[i];
    return width;
}

/* rows x width floats from one array of rows to another (rows.cl), with the node's epilogue. Positions in floats. */
struct row_copy {
    int64_t rows, width;
    int64_t in_first, in_stride, out_first, out_stride;
};

static void rows_emit(struct launch_list *list, const struct row_copy *copy, const struct epilogue *epilogue, cl_mem in,
    cl_mem add, cl_mem out)
{
    char options[EPILOGUE_OPTIONS];
    const struct capabilities *device = &list->device->can;
    struct launch *launch =
        launch_add(list, "rows", "copy_rows", "%s", epilogue_options(epilogue, options, sizeof options));
    launch_buffer(launch, in);
    if (epilogue->add != NO_VALUE) launch_buffer(launch, add);
    launch_buffer(launch, out);
    launch_long(launch, copy->rows);
    launch_long(launch, copy->width);
    launch_long(launch, copy->in_first);
    launch_long(launch, copy->in_stride);
    launch_long(launch, copy->out_first);
    launch_long(launch, copy->out_stride);
    size_t rows = (size_t)(copy->rows < 4096 ? copy->rows : 4096);
    if (device->class == DEVICE_CPU) {
        /* Tasks over pieces of rows where these are long, else over rows. */
        int64_t whole = copy->rows * copy->width, chunk = elementwise_task_floats(device, whole);
        if (chunk > copy->width) chunk = copy->width;
        int64_t rows_of_task = elementwise_task_floats(device, whole) / chunk;
        launch_long(launch, chunk);
        launch_tasks(launch, (size_t)divide_up(copy->width, chunk), (size_t)divide_up(copy->rows, rows_of_task), 1);
    } else {
        size_t group = group_size(device, 64);
        launch_long(launch, 1);
        launch_grid(launch, 2, size_round_up((size_t)copy->width, group), rows, 1, group, 1, 1);
    }
    double floats = (double)copy->rows * (double)copy->width;
    launch_work(launch, 0, floats * (epilogue->add != NO_VALUE ? 12 : 8));
}

static void emit_concat(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    int axis = problem->node->attributes.axis;
    const struct value *y = problem->outputs[0];
    const struct epilogue none = { .add = NO_VALUE };
    struct row_copy copy = { .out_stride = row_width(y, axis) };
    copy.rows = value_elements(y) / copy.out_stride;
    for (int i = 0; i < problem->node->input_count; i++) {
        copy.width = copy.in_stride = row_width(problem->inputs[i], axis);
        rows_emit(list, &copy, &none, operands->inputs[i], NULL, operands->outputs[0]);
        copy.out_first += copy.width;
    }
}

static void emit_slice(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct attributes *a = &problem->node->attributes;
    const struct value *x = problem->inputs[0], *y = problem->outputs[0];
    int64_t width = row_width(y, a->axis);
    struct row_copy copy = { .width = width,
        .out_stride = width,
        .rows = value_elements(y) / width,
        .in_stride = row_width(x, a->axis),
        .in_first = a->offset * (width / y->shape.sizes[a->axis]) };
    rows_emit(list, &copy, &problem->node->epilogue, operands->inputs[0], operands->add, operands->outputs[0]);
}

static unsigned epilogues_of_slice(const struct problem *problem)
{
    (void)problem;
    return EPILOGUE_ADD;
}

static const struct implementation concat_any = {
    .name = "rows", .fits = fits_any, .any_layout = IN_ANY_LAYOUT, .emit = emit_concat
};
static const struct implementation concat_plain = { .name = "plain", .fits = fits_everything, .emit = emit_concat };
static const struct implementation slice_any = {
    .name = "rows",
    .fits = fits_any,
    .any_layout = IN_ANY_LAYOUT,
    .epilogues = epilogues_of_slice,
    .emit = emit_slice,
};
static const struct implementation slice_plain = {
    .name = "plain",
    .fits = fits_everything,
    .epilogues = epilogues_of_slice,
    .emit = emit_slice,
};
static const struct implementation *const concat_implementations[] = { &concat_any, &concat_plain, NULL };
static const struct implementation *const slice_implementations[] = { &slice_any, &slice_plain, NULL };

const struct operation operation_concat = {
    .name = "concat",
    .infer = infer_concat,
    .gradient = gradient,
    .implementations = concat_implementations,
};
const struct operation operation_slice = {
    .name = "slice",
    .infer = infer_slice,
    .implementations = slice_implementations,
};

/* --------------------------------------------------------------------------------------------------- builder ---- */

tutti_tensor tutti_concat(tutti_network *network, const tutti_tensor *inputs, int count, int dimension)
{
    enum { MOST = 8 };
    int values[MOST];
    if (!network_ok(network)) return (tutti_tensor) { NO_VALUE };
    if (!inputs || count < 1 || count > MOST)
        return network_fail(
            network, fail(TUTTI_INVALID, "concat: it got %d inputs: 1 to %d are possible", count, (int)MOST));
    for (int i = 0; i < count; i++) {
        if (!network_value(network, inputs[i])) return (tutti_tensor) { NO_VALUE };
        values[i] = inputs[i].id;
    }
    if (dimension < 0 || dimension >= TUTTI_MAX_RANK)
        return network_fail(network, fail(TUTTI_INVALID, "concat: dimension %d does not exist", dimension));
    struct attributes attributes = { .axis = dimension + 1 };
    int layer = network_layer_begin(network, NULL, "concat");
    return network_append(network, layer, &operation_concat, &attributes, values, count);
}
