/* gather, gather_elements, gather_nd: select elements of a tensor by index. The gradient, a sum of updates, is in
 * scatter.c. */
#include "clkernels/arguments/gather.h"
#include "base/memory.h"
#include "layers/elementwise.h"
#include "layers/indices.h"
#include "layers/interpreter/interpreter.h"
#include "runtime/arguments.h"

static tutti_status infer(const struct graph *graph, struct node *node, struct value *outputs)
{
    return indexed_shape(node, graph_at(graph, node->inputs[0]), graph_at(graph, node->inputs[1]), &outputs[0]);
}

static tutti_status gradient(struct graph *graph, const struct node *node, const struct node_gradients *g)
{
    if (g->outputs[0] == NO_VALUE || !g->wanted[0]) return TUTTI_OK;
    const struct value *data = graph_at(graph, node->inputs[0]);
    struct indexed_attributes attributes = *indexed_attributes(node);
    attributes.reduction = SCATTER_ADD;
    attributes.batched = data->batched;
    attributes.shape = data->shape;
    const int inputs[] = { node->inputs[1], g->outputs[0] };
    g->inputs[0] = graph_append(graph, &operation_gather_gradient, &attributes, inputs, 2, node->layer);
    return graph->status;
}

ARGUMENTS(gather, GATHER_ARGUMENTS)

static void emit(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct value *data = problem->inputs[0], *indices = problem->inputs[1];
    const struct indexed_sizes z = indexed_sizes_of(indexed_attributes(problem->node), data, indices);
    const int64_t slices = z.samples * z.outer * z.count,
                  task = elementwise_task_floats(problem->device, slices * z.inner);
    const int64_t piece = task < z.inner ? task : z.inner, each = divide_up(task, piece);
    struct launch *launch = launch_add(list, "gather", "gather", "%s", indexed_options(indices));
    ARGUMENTS_SET(launch, gather, .data = operands->inputs[0], .indices = operands->inputs[1],
        .y = operands->outputs[0], .data_sample = data->batched ? z.outer * z.axis * z.inner : 0, .slices = slices,
        .each = each, .piece = piece);
    indexed_arguments(launch, &z);
    if (problem->device->class == DEVICE_CPU)
        launch_tasks(launch, (size_t)divide_up(z.inner, piece), (size_t)divide_up(slices, each), 1);
    else
        items_launch(launch, problem->device, 256, slices * z.inner, 0);
    launch_work(launch, 0, 8 * (double)slices * (double)z.inner);
}

/* Slices of `inner` floats in memory order. */
static const struct implementation slices = { .name = "slices", .emit = emit };

const struct operation operation_gather = {
    .name = "gather",
    .inputs = { { "data" }, { "indices", PORT_ANY_TYPE | PORT_INDEX } },
    .outputs = { { "y" } },
    .attributes = &indexed_attributes_type,
    .infer = infer,
    .gradient = gradient,
    .reference = interpret_gather,
    .implementations = ONE(slices),
};
