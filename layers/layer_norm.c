/* Layer normalisation over the last dimension (Ba, Kiros and Hinton 2016), and its gradient. tutti_op() comes here by
 * norms.c, which makes several last axes one row. */
#include "clkernels/arguments/layer_norm.h"
#include "base/invariant.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "graph/network.h"
#include "layers/elementwise.h"
#include "layers/interpreter/interpreter.h"
#include "layers/layers.h"
#include "runtime/arguments.h"

#include <math.h>

/* Outputs of the forward node and of its gradient. */
enum { OUTPUT_Y, OUTPUT_MEAN, OUTPUT_RSTD };
enum { OUTPUT_DX, OUTPUT_DGAMMA, OUTPUT_DBETA };

ATTRIBUTES_DESCRIBE(layer_norm, ATTRIBUTE(layer_norm, AXIS, axis), ATTRIBUTE(layer_norm, NUMBER, epsilon))

static bool is_vector(const struct value *value, int64_t width)
{
    return value->shape.rank == 1 && !value->batched && value->shape.sizes[0] == width;
}

static tutti_status infer(const struct graph *graph, struct node *node, struct value *outputs)
{
    const struct value *x = graph_at(graph, node->inputs[0]);
    const struct value *gamma = graph_at(graph, node->inputs[1]), *beta = graph_at(graph, node->inputs[2]);
    const float epsilon = layer_norm_attributes(node)->epsilon;
    const int rank = x->shape.rank;
    if (rank - x->batched < 1) return fail(TUTTI_SHAPE, "layer_norm: the input has no dimension to normalise over");
    INVARIANT(layer_norm_attributes(node)->axis == rank - 1);
    if (!is_vector(gamma, value_size(x, 0)) || !is_vector(beta, value_size(x, 0)))
        return fail(TUTTI_SHAPE, "layer_norm: gamma and beta must have the shape [%lld], as the input's last dimension",
            (long long)value_size(x, 0));
    if (!(epsilon > 0) || isinf(epsilon))
        return fail(TUTTI_INVALID, "layer_norm: epsilon is %g: it must be positive and finite", (double)epsilon);
    outputs[OUTPUT_Y] = (struct value) { .type = TYPE_F32, .batched = x->batched, .shape = x->shape, .axes = x->axes };
    outputs[OUTPUT_MEAN] = outputs[OUTPUT_Y];
    outputs[OUTPUT_MEAN].shape.sizes[rank - 1] = 1;
    outputs[OUTPUT_RSTD] = outputs[OUTPUT_MEAN];
    node->output_count = 3;
    return TUTTI_OK;
}

/* Inputs: x, dy, gamma, mean, rstd. */
static tutti_status infer_gradient(const struct graph *graph, struct node *node, struct value *outputs)
{
    const struct value *x = graph_at(graph, node->inputs[0]), *dy = graph_at(graph, node->inputs[1]);
    if (!shape_equal(x->shape, dy->shape))
        return fail(TUTTI_SHAPE, "layer_norm_gradient: the input and the gradient must have the same shape");
    outputs[OUTPUT_DX] = (struct value) { .type = TYPE_F32, .batched = x->batched, .shape = x->shape, .axes = x->axes };
    outputs[OUTPUT_DGAMMA] = (struct value) { .type = TYPE_F32, .shape = TUTTI_SHAPE(value_size(x, 0)) };
    outputs[OUTPUT_DBETA] = outputs[OUTPUT_DGAMMA];
    node->output_count = 3;
    return TUTTI_OK;
}

static tutti_status gradient(struct graph *graph, const struct node *node, const struct node_gradients *g)
{
    if (g->outputs[OUTPUT_Y] == NO_VALUE) return TUTTI_OK;
    const int inputs[] = { node->inputs[0], g->outputs[OUTPUT_Y], node->inputs[1], node->outputs[OUTPUT_MEAN],
        node->outputs[OUTPUT_RSTD] };
    if (graph_append(graph, &operation_layer_norm_gradient, NULL, inputs, 5, node->layer) == NO_VALUE)
        return graph->status;
    for (int i = 0; i < 3; i++)
        if (g->wanted[i]) g->inputs[i] = graph_last(graph)->outputs[i];
    return TUTTI_OK;
}

/* --------------------------------------------------------------------------------------------------- builder ---- */

tutti_tensor tutti_layer_norm(tutti_network *network, const char *name, tutti_tensor x, float epsilon)
{
    const struct value *value = network_value(network, x);
    if (!value) return (tutti_tensor) { NO_VALUE };
    const int layer = network_layer_begin(network, name, "layer_norm");
    if (value->shape.rank - value->batched < 1)
        return network_fail(network, fail(TUTTI_SHAPE, "layer_norm: the input has no dimension to normalise over"));
    const struct layer_norm_attributes attributes = { .epsilon = epsilon != 0 ? epsilon : 1e-5f,
        .axis = value->shape.rank - 1 };
    const tutti_shape shape = TUTTI_SHAPE(value_size(value, 0));
    const struct parameter weight = { .init = TUTTI_INIT_ZEROS, .init_constant = 1 },
                           bias = { .init = TUTTI_INIT_ZEROS };
    int inputs[] = { x.id, NO_VALUE, NO_VALUE };
    inputs[1] = network_parameter(network, layer, "weight", shape, &weight);
    inputs[2] = network_parameter(network, layer, "bias", shape, &bias);
    return network_append(network, layer, &operation_layer_norm, &attributes, inputs, 3);
}

/* ------------------------------------------------------------------------------------------- implementations ---- */

enum { TASK_FLOATS = 2048, TASKS = 4, PART_ROWS = 16, COLUMNS = 64 };

struct sizes {
    int64_t rows, width;
    int64_t each; /* rows of a task, or of a part of the sums */
};

/* `across`: tasks or groups for each part of the rows. */
static struct sizes sizes_of(const struct problem *problem, int64_t least, int64_t across)
{
    const int64_t width = value_size(problem->inputs[0], 0), rows = value_elements(problem->inputs[0]) / width;
    const int64_t units = problem->device->units > 0 ? problem->device->units : 1;
    const int64_t each = divide_up(rows, divide_up(TASKS * units, across));
    return (struct sizes) { rows, width, each > least ? each : least };
}

static struct sizes sizes_of_rows(const struct problem *problem)
{
    return sizes_of(problem, divide_up(TASK_FLOATS, value_size(problem->inputs[0], 0)), 1);
}

static struct sizes sizes_of_groups(const struct problem *problem)
{
    return sizes_of(problem, PART_ROWS, divide_up(value_size(problem->inputs[0], 0), COLUMNS));
}

static bool is_backward(const struct problem *problem)
{
    return problem->node->operation == &operation_layer_norm_gradient;
}

static bool wants_sums(const struct problem *problem)
{
    return is_backward(problem) && (problem->outputs[OUTPUT_DGAMMA] || problem->outputs[OUTPUT_DBETA]);
}

/* STRIDE of layer_norm.cl: rows of a part of the sums; of tasks, with their rounding errors and a block's sums. */
enum { STRIDE_OF_ROWS = 6, STRIDE_OF_GROUPS = 2 };

static size_t workspace(const struct problem *problem, struct sizes sizes, int64_t stride)
{
    return wants_sums(problem) ? (size_t)(divide_up(sizes.rows, sizes.each) * stride * sizes.width) * sizeof(float) : 0;
}

static size_t workspace_rows(const struct problem *problem)
{
    return workspace(problem, sizes_of_rows(problem), STRIDE_OF_ROWS);
}

static size_t workspace_groups(const struct problem *problem)
{
    return workspace(problem, sizes_of_groups(problem), STRIDE_OF_GROUPS);
}

static void emit_finish(const struct problem *problem, const struct operands *operands, const struct sizes *sizes,
    const char *options, struct launch_list *list)
{
    const size_t group = group_size(problem->device, COLUMNS);
    const int64_t parts = divide_up(sizes->rows, sizes->each);
    struct launch *launch = launch_add(list, "layer_norm", "layer_norm_finish", "%s", options);
    LAUNCH_BUFFERS(launch, operands->workspace, operands->outputs[OUTPUT_DGAMMA], operands->outputs[OUTPUT_DBETA]);
    LAUNCH_INTS(launch, parts, sizes->width);
    launch_grid(launch, 1, size_round_up((size_t)sizes->width, group), 1, 1, group, 1, 1);
    launch_work(launch, 0, 8 * (double)(sizes->width * (parts + 1)));
}

ARGUMENTS(rows, ROWS_ARGUMENTS)
ARGUMENTS(rows_gradient, ROWS_GRADIENT_ARGUMENTS)
ARGUMENTS(groups, GROUPS_ARGUMENTS)
ARGUMENTS(groups_gradient, GROUPS_GRADIENT_ARGUMENTS)
ARGUMENTS(sums, SUMS_ARGUMENTS)
#define FORWARD_VALUES(operands)                                                               \
    .x = (operands)->inputs[0], .gamma = (operands)->inputs[1], .beta = (operands)->inputs[2], \
    .y = (operands)->outputs[0], .mean = (operands)->outputs[OUTPUT_MEAN], .rstd = (operands)->outputs[OUTPUT_RSTD]
#define GRADIENT_VALUES(operands)                                                           \
    .x = (operands)->inputs[0], .dy = (operands)->inputs[1], .mean = (operands)->inputs[3], \
    .rstd = (operands)->inputs[4]

static struct launch *add(const struct problem *problem, struct launch_list *list, const char *options)
{
    const bool backward = is_backward(problem);
    const double elements = (double)value_elements(problem->inputs[0]);
    struct launch *launch =
        launch_add(list, "layer_norm", backward ? "layer_norm_gradient" : "layer_norm", "%s", options);
    launch_work(launch, (backward ? 12 : 8) * elements, 4 * (backward ? 3 : 2) * elements);
    return launch;
}

static void emit_rows(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct sizes sizes = sizes_of_rows(problem);
    const bool backward = is_backward(problem);
    char options[64] = "";
    number_append(options, sizeof options, "-DROWS=1 -DDX=%d -DSUMS=%d", backward && problem->outputs[OUTPUT_DX],
        wants_sums(problem));
    struct launch *launch = add(problem, list, options);
    if (backward)
        ARGUMENTS_SET(launch, rows_gradient, GRADIENT_VALUES(operands), .gamma = operands->inputs[2],
            .dx = operands->outputs[OUTPUT_DX], .parts = operands->workspace, .rows = sizes.rows, .width = sizes.width,
            .each = sizes.each);
    else
        ARGUMENTS_SET(launch, rows, FORWARD_VALUES(operands), .rows = sizes.rows, .width = sizes.width,
            .each = sizes.each, .epsilon = (double)layer_norm_attributes(problem->node)->epsilon);
    launch_tasks(launch, (size_t)divide_up(sizes.rows, sizes.each), 1, 1);
    if (wants_sums(problem)) emit_finish(problem, operands, &sizes, options, list);
}

static void emit_sums(
    const struct problem *problem, const struct operands *operands, const char *options, struct launch_list *list)
{
    const struct sizes sizes = sizes_of_groups(problem);
    const size_t group = group_size(problem->device, COLUMNS);
    struct launch *launch = launch_add(list, "layer_norm", "layer_norm_sums", "%s", options);
    ARGUMENTS_SET(launch, sums, GRADIENT_VALUES(operands), .parts = operands->workspace, .rows = sizes.rows,
        .width = sizes.width, .each = sizes.each);
    launch_grid(launch, 2, size_round_up((size_t)sizes.width, group), (size_t)divide_up(sizes.rows, sizes.each), 1,
        group, 1, 1);
    launch_work(launch, 5 * (double)(sizes.rows * sizes.width), 8 * (double)(sizes.rows * sizes.width));
    emit_finish(problem, operands, &sizes, options, list);
}

/* Computes the sums first: dx may be where x or dy is. */
static void emit_groups(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    char options[64] = "";
    const size_t group = group_size(problem->device, value_size(problem->inputs[0], 0) > 64 ? 256 : 64);
    const struct sizes sizes = sizes_of_groups(problem);
    number_append(options, sizeof options, "-DROWS=0 -DGROUP=%zu", group);
    if (wants_sums(problem)) emit_sums(problem, operands, options, list);
    if (is_backward(problem) && !problem->outputs[OUTPUT_DX]) return;
    struct launch *launch = add(problem, list, options);
    if (is_backward(problem))
        ARGUMENTS_SET(launch, groups_gradient, GRADIENT_VALUES(operands), .gamma = operands->inputs[2],
            .dx = operands->outputs[OUTPUT_DX], .width = sizes.width);
    else
        ARGUMENTS_SET(launch, groups, FORWARD_VALUES(operands), .width = sizes.width,
            .epsilon = (double)layer_norm_attributes(problem->node)->epsilon);
    launch_grid(launch, 1, (size_t)sizes.rows * group, 1, 1, group, 1, 1);
}

#define ROWS .name = "rows", .fits = fits_cpu_class, .emit = emit_rows
#define GROUPS .name = "groups", .emit = emit_groups
static const struct implementation rows = { ROWS, .in_place = in_place_first },
                                   groups = { GROUPS, .in_place = in_place_first },
                                   rows_gradient = { ROWS, .in_place = in_place_first_two,
                                       .workspace = workspace_rows },
                                   groups_gradient = { GROUPS, .in_place = in_place_first_two,
                                       .workspace = workspace_groups };
static const struct implementation *const forward[] = { &rows, &groups, NULL },
                                          *const backward[] = { &rows_gradient, &groups_gradient, NULL };

const struct operation operation_layer_norm = {
    .name = "layer_norm",
    .inputs = { { "x" }, { "gamma" }, { "beta" } },
    .outputs = { { "y" }, { "mean" }, { "rstd" } },
    .attributes = &layer_norm_attributes_type,
    .infer = infer,
    .gradient = gradient,
    .reference = interpret_layer_norm,
    .implementations = forward,
};
const struct operation operation_layer_norm_gradient = {
    .name = "layer_norm_gradient",
    .inputs = { { "x" }, { "dy" }, { "gamma" }, { "mean" }, { "rstd" } },
    .outputs = { { "dx" }, { "dgamma" }, { "dbeta" } },
    .infer = infer_gradient,
    .reference = interpret_layer_norm_gradient,
    .implementations = backward,
};
