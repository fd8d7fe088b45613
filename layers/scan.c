/* cumsum, cumprod: sums and products of all elements along an axis up to each one. */
#include "layers/elementwise.h"
#include "layers/interpreter/interpreter.h"
#include "layers/lines.h"

ATTRIBUTES_DESCRIBE(scan, ATTRIBUTE(scan, AXIS, axis), ATTRIBUTE(scan, FLAG, exclusive), ATTRIBUTE(scan, FLAG, reverse))

static tutti_status infer(const struct graph *graph, struct node *node, struct value *outputs)
{
    const struct value *x = graph_at(graph, node->inputs[0]);
    const int axis = scan_attributes(node)->axis;
    if (axis < x->batched || axis >= x->shape.rank)
        return fail(TUTTI_INVALID, "%s: axis %d does not exist: the input has %d", node->operation->name,
            axis - x->batched, x->shape.rank - x->batched);
    outputs[0] = (struct value) { .type = TYPE_F32, .batched = x->batched, .shape = x->shape, .axes = x->axes };
    return TUTTI_OK;
}

static tutti_status infer_gradient(const struct graph *graph, struct node *node, struct value *outputs)
{
    if (!shape_equal(graph_at(graph, node->inputs[0])->shape, graph_at(graph, node->inputs[1])->shape))
        return fail(TUTTI_SHAPE, "cumprod_gradient: the gradient and the input must have the same shape");
    return infer(graph, node, outputs);
}

/* The gradient of an element is the sum of the gradients of all results that contain it. */
static tutti_status gradient_of_sum(struct graph *graph, const struct node *node, const struct node_gradients *g)
{
    if (g->outputs[0] == NO_VALUE || !g->wanted[0]) return TUTTI_OK;
    struct scan_attributes attributes = *scan_attributes(node);
    attributes.reverse = !attributes.reverse;
    g->inputs[0] = graph_append(graph, &operation_cumsum, &attributes, g->outputs, 1, node->layer);
    return graph->status;
}

static tutti_status gradient_of_product(struct graph *graph, const struct node *node, const struct node_gradients *g)
{
    if (g->outputs[0] == NO_VALUE || !g->wanted[0]) return TUTTI_OK;
    const int inputs[] = { node->inputs[0], g->outputs[0] };
    g->inputs[0] = graph_append(graph, &operation_cumprod_gradient, scan_attributes(node), inputs, 2, node->layer);
    return graph->status;
}

static void emit(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct operation *operation = problem->node->operation;
    const struct scan_attributes *a = scan_attributes(problem->node);
    const bool gradient = operation == &operation_cumprod_gradient;
    const struct lines lines = lines_of(problem->inputs[0], a->axis, problem->device);
    struct launch *launch = launch_add(list, "scan", gradient ? "scan_gradient" : "scan",
        "-DPRODUCT=%d -DEXCLUSIVE=%d -DREVERSE=%d", operation != &operation_cumsum, a->exclusive, a->reverse);
    launch_buffer(launch, operands->inputs[0]);
    if (gradient) launch_buffer(launch, operands->inputs[1]);
    launch_buffer(launch, operands->outputs[0]);
    lines_launch(launch, &lines, problem->device);
    const double elements = (double)value_elements(problem->outputs[0]);
    launch_work(launch, (gradient ? 4 : 1) * elements, (gradient ? 20 : 8) * elements);
}

static const struct implementation by_line = {
    .name = "lines",
    .in_place = in_place_first,
    .emit = emit,
};
static const struct implementation gradient_by_line = { .name = "lines", .emit = emit };
static const struct implementation *const implementations[] = { &by_line, NULL };

const struct operation operation_cumsum = {
    .name = "cumsum",
    .inputs = { { "x" } },
    .outputs = { { "y" } },
    .attributes = &scan_attributes_type,
    .infer = infer,
    .gradient = gradient_of_sum,
    .reference = interpret_scan,
    .implementations = implementations,
};
const struct operation operation_cumprod = {
    .name = "cumprod",
    .inputs = { { "x" } },
    .outputs = { { "y" } },
    .attributes = &scan_attributes_type,
    .infer = infer,
    .gradient = gradient_of_product,
    .reference = interpret_scan,
    .implementations = implementations,
};
const struct operation operation_cumprod_gradient = {
    .name = "cumprod_gradient",
    .inputs = { { "x" }, { "dy" } },
    .outputs = { { "dx" } },
    .attributes = &scan_attributes_type,
    .infer = infer_gradient,
    .reference = interpret_cumprod_gradient,
    .implementations = ONE(gradient_by_line),
};
