/* softmax over the last dimension, and its gradient. */
#include "base/memory.h"
#include "graph/network.h"
#include "layers/decompose.h"
#include "layers/elementwise.h"
#include "layers/interpreter/interpreter.h"
#include "layers/layers.h"

#include <stdio.h>

static tutti_status infer(const struct graph *graph, struct node *node, struct value *outputs)
{
    const struct value *x = graph_at(graph, node->inputs[0]);
    if (x->shape.rank < 2) return fail(TUTTI_SHAPE, "softmax: the input has no dimension to normalise over");
    outputs[0] = (struct value) { .type = TYPE_F32, .batched = x->batched, .shape = x->shape, .axes = x->axes };
    return TUTTI_OK;
}

static tutti_status infer_gradient(const struct graph *graph, struct node *node, struct value *outputs)
{
    const struct value *y = graph_at(graph, node->inputs[0]), *dy = graph_at(graph, node->inputs[1]);
    if (!shape_equal(y->shape, dy->shape))
        return fail(TUTTI_SHAPE, "softmax_gradient: the gradient and the output must have the same shape");
    return infer(graph, node, outputs);
}

static tutti_status gradient(struct graph *graph, const struct node *node, const struct node_gradients *g)
{
    if (g->outputs[0] == NO_VALUE || !g->wanted[0]) return TUTTI_OK;
    const int inputs[] = { node->outputs[0], g->outputs[0] };
    g->inputs[0] = graph_append(graph, &operation_softmax_gradient, NULL, inputs, 2, node->layer);
    return graph->status;
}

tutti_tensor tutti_softmax(tutti_network *network, tutti_tensor x)
{
    if (!network_value(network, x)) return (tutti_tensor) { NO_VALUE };
    const int layer = network_layer_begin(network, NULL, "softmax");
    return network_append(network, layer, &operation_softmax, NULL, &x.id, 1);
}

/* ------------------------------------------------------------------------------------------- implementations ---- */

static bool in_place(const struct problem *problem, int input)
{
    (void)problem, (void)input;
    return true;
}

/* Adds a launch of the kernel with its buffers: x, y or y, dy, dx. */
static struct launch *add(const struct problem *problem, const struct operands *operands, struct launch_list *list,
    const char *source, int group)
{
    const bool backward = problem->node->operation == &operation_softmax_gradient;
    struct launch *launch = launch_add(list, source, backward ? "softmax_gradient" : "softmax", "-DGROUP=%d", group);
    launch_buffer(launch, operands->inputs[0]);
    if (backward) launch_buffer(launch, operands->inputs[1]);
    launch_buffer(launch, operands->outputs[0]);
    const double elements = (double)value_elements(problem->outputs[0]);
    launch_work(launch, (backward ? 4 : 10) * elements, 4 * (backward ? 3 : 2) * elements);
    return launch;
}

static void emit_rows(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const int64_t width = value_size(problem->outputs[0], 0), rows = value_elements(problem->outputs[0]) / width;
    const int64_t each = divide_up(2048, width); /* floats that are worth a task */
    struct launch *launch = add(problem, operands, list, "softmax_cpu", 1);
    LAUNCH_INTS(launch, rows, width, each);
    launch_tasks(launch, (size_t)divide_up(rows, each), 1, 1);
}

static void emit_groups(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const int64_t width = value_size(problem->outputs[0], 0), rows = value_elements(problem->outputs[0]) / width;
    const size_t group = group_size(problem->device, width > 64 ? 256 : 64);
    struct launch *launch = add(problem, operands, list, "softmax_gpu", (int)group);
    launch_int(launch, width);
    launch_grid(launch, 1, (size_t)rows * group, 1, 1, group, 1, 1);
}

static const struct implementation rows = {
    .name = "rows",
    .fits = fits_cpu_class,
    .in_place = in_place,
    .emit = emit_rows,
};
static const struct implementation groups = {
    .name = "groups",
    .in_place = in_place,
    .emit = emit_groups,
};
static const struct implementation *const implementations[] = { &rows, &groups, NULL };

const struct operation operation_softmax = {
    .name = "softmax",
    .inputs = { { "x" } },
    .outputs = { { "y" } },
    .infer = infer,
    .gradient = gradient,
    .reference = interpret_softmax,
    .implementations = implementations,
};
const struct operation operation_softmax_gradient = {
    .name = "softmax_gradient",
    .inputs = { { "y" }, { "dy" } },
    .outputs = { { "dx" } },
    .infer = infer_gradient,
    .reference = interpret_softmax_gradient,
    .implementations = implementations,
};

/* ----------------------------------------------------------------------------------------------- log_softmax ---- */

/* With m, the largest element: (x - m) - log(sum of exp(x - m)). */
int decompose_log_softmax(const struct append_context *c, const void *attributes, const int *inputs, int count)
{
    (void)count;
    const unsigned axis = 1u << ((const struct axis_attributes *)attributes)->axis;
    const int m = append_reduce(c, &operation_reduce_max, inputs[0], axis);
    const int x = append_two(c, &operation_sub, inputs[0], m);
    const int sum = append_reduce(c, &operation_reduce_sum, append_one(c, &operation_exp, x), axis);
    return append_two(c, &operation_sub, x, append_one(c, &operation_log, sum));
}

tutti_tensor tutti_log_softmax(tutti_network *network, tutti_tensor x, int axis)
{
    char text[32];
    snprintf(text, sizeof text, "axis=%d", axis);
    return tutti_op(network, "log_softmax", &x, 1, text);
}
