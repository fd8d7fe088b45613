/* A recurrent layer in one direction, over the steps of each sample (ONNX's LSTM, GRU and RNN). X are the products of
 * the inputs for all steps, which another node makes; R h those of the state, with their biases.
 *
 *   simple   h' = f(X + R h)
 *   LSTM     i = f(Xi + Ri h + Pi c)   f = f(Xf + Rf h + Pf c)   g = g(Xc + Rc h)   c' = f c + i g
 *            o = f(Xo + Ro h + Po c')  h' = o h(c')
 *   GRU      z = f(Xz + Rz h)  r = f(Xr + Rr h)  n = g(Xn + Rn (r h)) or g(Xn + r (Rn h))  h' = (1 - z) n + z h
 *
 * The gradient runs the steps backwards and gives dX; that of R is one product of dX and all states (the gradient
 * node's output `previous`). Here is the implementation for all devices and attributes, whose kernel runs all steps of
 * a sample, since samples are independent; recurrent_panels.c has that of CPU-class devices. */
#include "layers/recurrent/recurrent.h"

#include "base/memory.h"
#include "base/numbers.h"
#include "layers/elementwise.h"
#include "layers/recurrent/arguments/recurrent.h"
#include "runtime/arguments.h"

ATTRIBUTES_DESCRIBE(recurrent, ATTRIBUTE(recurrent, INT, kind), ATTRIBUTE(recurrent, INT, functions),
    ATTRIBUTE(recurrent, FLAG, reverse), ATTRIBUTE(recurrent, FLAG, coupled), ATTRIBUTE(recurrent, FLAG, after),
    ATTRIBUTE(recurrent, FLAG, torch), ATTRIBUTE(recurrent, NUMBER, clip))

/* ------------------------------------------------------------------------------------------------------ shapes ---- */

static bool has_shape(const struct graph *graph, int value, tutti_shape shape, bool batched)
{
    const struct value *v = graph_at(graph, value);
    return !v || (v->batched == batched && shape_equal(v->shape, shape));
}

static tutti_status check_inputs(const struct graph *graph, const struct node *node, int64_t width)
{
    const struct value *x = graph_at(graph, node->inputs[RECURRENT_GATES]);
    const int64_t rows = width * recurrent_gates(recurrent_attributes(node)->kind);
    const tutti_shape state = TUTTI_SHAPE(x->shape.sizes[0], width), one = TUTTI_SHAPE(x->shape.sizes[0]);
    const int *inputs = node->inputs;
    if (x->shape.rank != 3 || !x->batched || value_size(x, 0) != rows)
        return fail(TUTTI_SHAPE, "recurrent: the products of the inputs must be [length, %lld] for each sample",
            (long long)rows);
    if (!has_shape(graph, inputs[RECURRENT_R], TUTTI_SHAPE(rows, width), false) ||
        !has_shape(graph, inputs[RECURRENT_BIAS], TUTTI_SHAPE(rows), false))
        return fail(TUTTI_SHAPE, "recurrent: the weights of the state must be [%lld, %lld], and their bias [%lld]",
            (long long)rows, (long long)width, (long long)rows);
    if (!has_shape(graph, inputs[RECURRENT_H0], state, true) || !has_shape(graph, inputs[RECURRENT_C0], state, true) ||
        !has_shape(graph, inputs[RECURRENT_LENGTHS], one, true))
        return fail(TUTTI_SHAPE, "recurrent: an initial state must be [%lld] for each sample, and a length one number",
            (long long)width);
    if (has_shape(graph, inputs[RECURRENT_PEEPHOLES], TUTTI_SHAPE(3 * width), false)) return TUTTI_OK;
    return fail(TUTTI_SHAPE, "recurrent: peepholes must be [%lld]", (long long)(3 * width));
}

static struct value as_states(const struct value *x, int64_t width)
{
    struct value y = { .type = TYPE_F32, .batched = true, .shape = x->shape, .axes = x->axes };
    y.shape.sizes[2] = width;
    return y;
}

static struct value as_state(const struct value *x, int64_t width)
{
    struct value y = { .type = TYPE_F32, .batched = true, .shape = TUTTI_SHAPE(x->shape.sizes[0], width) };
    y.axes.kinds[1] = AXIS_CHANNEL;
    return y;
}

static tutti_status infer(const struct graph *graph, struct node *node, struct value *outputs)
{
    const struct value *x = graph_at(graph, node->inputs[RECURRENT_GATES]);
    const struct value *r = graph_at(graph, node->inputs[RECURRENT_R]);
    const enum recurrent_kind kind = recurrent_attributes(node)->kind;
    const int64_t width = value_size(r, 0);
    const tutti_status status = check_inputs(graph, node, width);
    if (status != TUTTI_OK) return status;
    outputs[RECURRENT_Y] = as_states(x, width);
    outputs[RECURRENT_LAST] = outputs[RECURRENT_LAST_C] = as_state(x, width);
    outputs[RECURRENT_SAVED] = as_states(x, width * recurrent_saved(kind));
    node->output_count = kind == RECURRENT_LSTM ? 4 : kind == RECURRENT_GRU ? 3 : 2;
    return TUTTI_OK;
}

static tutti_status infer_gradient(const struct graph *graph, struct node *node, struct value *outputs)
{
    const struct recurrent_attributes *a = recurrent_attributes(node);
    const struct value *y = graph_at(graph, node->inputs[BACKWARD_Y]);
    const int64_t width = value_size(y, 0);
    outputs[BACKWARD_DGATES] = as_states(y, width * recurrent_gates(a->kind));
    outputs[BACKWARD_DH0] = outputs[BACKWARD_DC0] = as_state(y, width);
    outputs[BACKWARD_PREVIOUS] = as_states(y, width);
    outputs[BACKWARD_OTHER] = as_states(y, width * recurrent_others(a->kind));
    node->output_count = a->kind == RECURRENT_LSTM ? 4 : 3;
    if (node->inputs[BACKWARD_PEEPHOLES] != NO_VALUE || (a->kind == RECURRENT_GRU && a->after)) node->output_count = 5;
    return TUTTI_OK;
}

/* ---------------------------------------------------------------------------------------------------- gradient ---- */

/* Cuts gate `gate` out of [N, steps, gates width]. */
static int gate_of(struct graph *graph, int value, int gate, int64_t width, int layer)
{
    struct window_attributes a = { .shape = graph_at(graph, value)->shape, .begins = { 0, 0, gate * width } };
    a.shape.sizes[2] = width;
    return graph_append(graph, &operation_window, &a, &value, 1, layer);
}

static int sum_over_steps(struct graph *graph, int value, int layer)
{
    const struct value *x = graph_at(graph, value);
    if (!x) return NO_VALUE;
    const struct reduce_attributes a = { .axes = 3, .shape = TUTTI_SHAPE(value_size(x, 0)) };
    return graph_append(graph, &operation_reduce_sum, &a, &value, 1, layer);
}

/* The gradient of R, [gates width, width]. Where a GRU's reset gate multiplies the state, the last gate saw r h. */
static int gradient_of_r(struct graph *graph, const struct node *node, const int *backward, int64_t width)
{
    const struct recurrent_attributes *a = recurrent_attributes(node);
    const int layer = node->layer, dgates = backward[BACKWARD_DGATES], previous = backward[BACKWARD_PREVIOUS];
    const int of_product = a->kind == RECURRENT_GRU && a->after ? backward[BACKWARD_OTHER] : dgates;
    if (a->kind != RECURRENT_GRU || a->after)
        return graph_append(graph, &operation_dense_weight_gradient, NULL, (int[]) { previous, of_product }, 2, layer);
    struct window_attributes first = { .shape = graph_at(graph, dgates)->shape };
    first.shape.sizes[2] = 2 * width;
    const int pair[] = { previous, graph_append(graph, &operation_window, &first, &dgates, 1, layer) };
    const int last[] = { gate_of(graph, node->outputs[RECURRENT_SAVED], 3, width, layer),
        gate_of(graph, dgates, 2, width, layer) };
    const int parts[] = { graph_append(graph, &operation_dense_weight_gradient, NULL, pair, 2, layer),
        graph_append(graph, &operation_dense_weight_gradient, NULL, last, 2, layer) };
    return graph_append(graph, &operation_concat, &(struct axis_attributes) { 0 }, parts, 2, layer);
}

/* The gradient of the peepholes of i, o and f: sums of the gate's gradient times the cell that it saw. */
static int gradient_of_peepholes(struct graph *graph, const struct node *node, const int *backward, int64_t width)
{
    const struct recurrent_attributes *a = recurrent_attributes(node);
    int sums[3];
    for (int g = 0; g < 3; g++) {
        const int d = gate_of(graph, backward[BACKWARD_DGATES], recurrent_place(a, g), width, node->layer);
        const int cell =
            g == 1 ? gate_of(graph, node->outputs[RECURRENT_SAVED], 4, width, node->layer) : backward[BACKWARD_OTHER];
        const int product = graph_append(graph, &operation_mul, NULL, (int[]) { d, cell }, 2, node->layer);
        sums[g] = sum_over_steps(graph, product, node->layer);
    }
    return graph_append(graph, &operation_concat, &(struct axis_attributes) { 0 }, sums, 3, node->layer);
}

static tutti_status gradient(struct graph *graph, const struct node *node, const struct node_gradients *g)
{
    const struct recurrent_attributes *a = recurrent_attributes(node);
    const int *in = node->inputs, layer = node->layer;
    const int64_t width = value_size(graph_at(graph, in[RECURRENT_R]), 0);
    const bool lstm = a->kind == RECURRENT_LSTM;
    const int inputs[BACKWARD_INPUTS] = { in[RECURRENT_R], node->outputs[RECURRENT_Y],
        a->kind == RECURRENT_SIMPLE ? NO_VALUE : node->outputs[RECURRENT_SAVED], in[RECURRENT_H0], in[RECURRENT_C0],
        in[RECURRENT_PEEPHOLES], in[RECURRENT_LENGTHS], g->outputs[RECURRENT_Y], g->outputs[RECURRENT_LAST],
        lstm ? g->outputs[RECURRENT_LAST_C] : NO_VALUE };
    if (graph_append(graph, &operation_recurrent_gradient, a, inputs, BACKWARD_INPUTS, layer) == NO_VALUE)
        return graph->status;
    if (!lstm) graph_last(graph)->outputs[BACKWARD_DC0] = NO_VALUE; /* only an LSTM's is written */
    int backward[GRAPH_MAX_OUTPUTS];
    for (int i = 0; i < GRAPH_MAX_OUTPUTS; i++) backward[i] = graph_last(graph)->outputs[i];
    if (g->wanted[RECURRENT_GATES]) g->inputs[RECURRENT_GATES] = backward[BACKWARD_DGATES];
    if (g->wanted[RECURRENT_H0]) g->inputs[RECURRENT_H0] = backward[BACKWARD_DH0];
    if (g->wanted[RECURRENT_C0]) g->inputs[RECURRENT_C0] = backward[BACKWARD_DC0];
    if (g->wanted[RECURRENT_R]) g->inputs[RECURRENT_R] = gradient_of_r(graph, node, backward, width);
    if (g->wanted[RECURRENT_BIAS]) {
        const bool after = a->kind == RECURRENT_GRU && a->after;
        g->inputs[RECURRENT_BIAS] = sum_over_steps(graph, backward[after ? BACKWARD_OTHER : BACKWARD_DGATES], layer);
    }
    if (g->wanted[RECURRENT_PEEPHOLES])
        g->inputs[RECURRENT_PEEPHOLES] = gradient_of_peepholes(graph, node, backward, width);
    return graph->status;
}

/* ------------------------------------------------------------------------------------------- implementations ---- */

ARGUMENTS(forward, FORWARD_ARGUMENTS)
ARGUMENTS(backward, BACKWARD_ARGUMENTS)

enum { OPTIONS = 320, GROUP = 256 };

/* Whether r is transposed: tasks need that for the gradient, groups for the forward pass. */
static bool turns(const struct problem *problem)
{
    return recurrent_is_backward(problem) == (problem->device->class == DEVICE_CPU);
}

static size_t workspace(const struct problem *problem)
{
    return turns(problem) ? (size_t)value_elements(recurrent_matrix(problem)) * sizeof(float) : 0;
}

static size_t work_group(const struct problem *problem)
{
    return group_size(problem->device, value_size(recurrent_matrix(problem), 0) > 64 ? GROUP : 64);
}

static void write_options(const struct problem *problem, char *options)
{
    options[0] = '\0';
    number_append(
        options, OPTIONS, "-DROWS=%d -DGROUP=%zu ", problem->device->class == DEVICE_CPU, work_group(problem));
    recurrent_options(recurrent_attributes(problem->node), options, OPTIONS);
}

/* Transposes r where that is needed, and returns the matrix that the kernel reads. */
static cl_mem emit_turn(
    const struct problem *problem, const struct operands *operands, const char *options, struct launch_list *list)
{
    const struct value *r = recurrent_matrix(problem);
    const cl_mem from = operands->inputs[recurrent_is_backward(problem) ? BACKWARD_R : RECURRENT_R];
    const size_t group = work_group(problem), elements = (size_t)value_elements(r);
    if (!turns(problem)) return from;
    struct launch *launch = launch_add(list, "recurrent", "recurrent_turn", "%s", options);
    LAUNCH_BUFFERS(launch, from, operands->workspace);
    LAUNCH_INTS(launch, value_size(r, 1), value_size(r, 0));
    launch_grid(launch, 1, size_round_up(elements, group), 1, 1, group, 1, 1);
    launch_work(launch, 0, 8 * (double)elements);
    return operands->workspace;
}

static double flops(const struct problem *problem)
{
    const struct value *x = problem->inputs[recurrent_is_backward(problem) ? BACKWARD_Y : RECURRENT_GATES];
    return 2.0 * (double)(x->shape.sizes[0] * x->shape.sizes[1]) * (double)value_elements(recurrent_matrix(problem));
}

static void emit(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    char options[OPTIONS];
    const cl_mem *in = operands->inputs, *out = operands->outputs;
    const struct value *x = problem->inputs[recurrent_is_backward(problem) ? BACKWARD_Y : RECURRENT_GATES];
    const int64_t samples = x->shape.sizes[0], steps = x->shape.sizes[1],
                  width = value_size(recurrent_matrix(problem), 0);
    const double clip = (double)recurrent_attributes(problem->node)->clip;
    write_options(problem, options);
    const cl_mem r = emit_turn(problem, operands, options, list);
    struct launch *launch = launch_add(
        list, "recurrent", recurrent_is_backward(problem) ? "recurrent_backward" : "recurrent_forward", "%s", options);
    if (recurrent_is_backward(problem))
        ARGUMENTS_SET(launch, backward, .r = r, .y = in[BACKWARD_Y], .saved = in[BACKWARD_SAVED], .h0 = in[BACKWARD_H0],
            .c0 = in[BACKWARD_C0], .peepholes = in[BACKWARD_PEEPHOLES], .lengths = in[BACKWARD_LENGTHS],
            .dy = in[BACKWARD_DY], .dlast = in[BACKWARD_DLAST], .dlast_c = in[BACKWARD_DLAST_C],
            .dgates = out[BACKWARD_DGATES], .dh = out[BACKWARD_DH0], .dc = out[BACKWARD_DC0],
            .previous = out[BACKWARD_PREVIOUS], .other = out[BACKWARD_OTHER], .steps = steps, .width = width,
            .clip = clip);
    else
        ARGUMENTS_SET(launch, forward, .gates = in[RECURRENT_GATES], .r = r, .bias = in[RECURRENT_BIAS],
            .h0 = in[RECURRENT_H0], .c0 = in[RECURRENT_C0], .peepholes = in[RECURRENT_PEEPHOLES],
            .lengths = in[RECURRENT_LENGTHS], .y = out[RECURRENT_Y], .last = out[RECURRENT_LAST],
            .saved = out[RECURRENT_SAVED], .last_c = out[RECURRENT_LAST_C], .steps = steps, .width = width,
            .clip = clip);
    const size_t group = work_group(problem);
    if (problem->device->class == DEVICE_CPU)
        launch_tasks(launch, (size_t)samples, 1, 1);
    else
        launch_grid(launch, 1, (size_t)samples * group, 1, 1, group, 1, 1);
    launch_work(launch, flops(problem), 4 * (double)(value_elements(x) + value_elements(recurrent_matrix(problem))));
}

static const struct implementation samples_by_steps = { .name = "steps", .workspace = workspace, .emit = emit };
static const struct implementation *const implementations[] = { &recurrent_panels, &samples_by_steps, NULL };

const struct operation operation_recurrent = {
    .name = "recurrent",
    .inputs = { { "gates" }, { "r", PORT_SMALL_IN_TRIALS }, { "bias", PORT_OPTIONAL }, { "h0", PORT_OPTIONAL },
        { "c0", PORT_OPTIONAL }, { "peepholes", PORT_OPTIONAL }, { "lengths", PORT_OPTIONAL } },
    .outputs = { { "y", PORT_OWN }, { "last" }, { "saved", PORT_OWN }, { "last_c" } },
    .attributes = &recurrent_attributes_type,
    .infer = infer,
    .gradient = gradient,
    .reference = recurrent_interpret,
    .implementations = implementations,
    .flops = flops,
};
const struct operation operation_recurrent_gradient = {
    .name = "recurrent_gradient",
    .inputs = { { "r", PORT_SMALL_IN_TRIALS }, { "y" }, { "saved", PORT_OPTIONAL }, { "h0", PORT_OPTIONAL },
        { "c0", PORT_OPTIONAL }, { "peepholes", PORT_OPTIONAL }, { "lengths", PORT_OPTIONAL }, { "dy", PORT_OPTIONAL },
        { "dlast", PORT_OPTIONAL }, { "dlast_c", PORT_OPTIONAL } },
    .outputs = { { "dgates", PORT_OWN }, { "dh0", PORT_OWN }, { "previous" }, { "dc0", PORT_OWN },
        { "other", PORT_OWN } },
    .attributes = &recurrent_attributes_type,
    .infer = infer_gradient,
    .reference = recurrent_interpret_gradient,
    .implementations = implementations,
    .flops = flops,
};
