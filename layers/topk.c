/* topk: the largest or smallest elements along an axis, and where they lie. */
#include "graph/network.h"
#include "layers/elementwise.h"
#include "layers/indices.h"
#include "layers/interpreter/interpreter.h"
#include "layers/lines.h"

ATTRIBUTES_DESCRIBE(topk, ATTRIBUTE(topk, AXIS, axis), ATTRIBUTE(topk, FLAG, largest), ATTRIBUTE(topk, LONG, k))

enum { VALUES, INDICES };

static tutti_status infer(const struct graph *graph, struct node *node, struct value *outputs)
{
    const struct value *x = graph_at(graph, node->inputs[0]);
    const struct topk_attributes *a = topk_attributes(node);
    const tutti_status status = lines_check("topk", x, a->axis);
    if (status != TUTTI_OK) return status;
    if (a->k < 1 || a->k > x->shape.sizes[a->axis])
        return fail(TUTTI_SHAPE, "topk: k is %lld, and axis %d has size %s", (long long)a->k, a->axis - x->batched,
            size_print(x->shape.sizes[a->axis], (char[SIZE_TEXT]) { 0 }));
    outputs[VALUES] = (struct value) { .type = TYPE_F32, .batched = x->batched, .shape = x->shape, .axes = x->axes };
    outputs[VALUES].shape.sizes[a->axis] = a->k;
    outputs[INDICES] = outputs[VALUES];
    node->output_count = 2;
    return TUTTI_OK;
}

static tutti_status gradient(struct graph *graph, const struct node *node, const struct node_gradients *g)
{
    if (g->outputs[VALUES] == NO_VALUE || !g->wanted[0]) return TUTTI_OK;
    const struct value *x = graph_at(graph, node->inputs[0]);
    const struct indexed_attributes attributes = { .kind = INDEXED_ELEMENTS,
        .axis = topk_attributes(node)->axis,
        .reduction = SCATTER_ADD,
        .batched = x->batched,
        .shape = x->shape };
    const int inputs[] = { node->outputs[INDICES], g->outputs[VALUES] };
    g->inputs[0] = graph_append(graph, &operation_gather_gradient, &attributes, inputs, 2, node->layer);
    return graph->status;
}

static void emit(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct value *x = problem->inputs[0];
    const struct topk_attributes *a = topk_attributes(problem->node);
    const struct lines lines = lines_of(x, a->axis, problem->device);
    struct launch *launch = launch_add(list, "topk", "topk", "-DLARGEST=%d", a->largest);
    LAUNCH_BUFFERS(launch, operands->inputs[0], operands->outputs[VALUES], operands->outputs[INDICES]);
    launch_int(launch, a->k);
    lines_launch(launch, &lines, problem->device);
    launch_work(launch, 0, 4 * (double)(value_elements(x) + 2 * value_elements(problem->outputs[0])));
}

static const struct implementation heaps = { .name = "heaps", .emit = emit };

const struct operation operation_topk = {
    .name = "topk",
    .inputs = { { "x" } },
    .outputs = { { "values", PORT_OWN }, { "indices", PORT_OWN } },
    .attributes = &topk_attributes_type,
    .infer = infer,
    .gradient = gradient,
    .reference = interpret_topk,
    .implementations = ONE(heaps),
};

tutti_tensor tutti_topk(
    tutti_network *network, tutti_tensor x, int64_t k, int axis, bool largest, tutti_tensor *indices)
{
    const struct value *value = network_operand(network, x);
    if (indices) *indices = (tutti_tensor) { NO_VALUE };
    if (!value) return (tutti_tensor) { NO_VALUE };
    const int rank = value->shape.rank - value->batched, layer = network_layer_begin(network, NULL, "topk");
    if (axis < -rank || axis >= rank)
        return network_fail(
            network, fail(TUTTI_INVALID, "topk: axis %d does not exist: the input has %d axes", axis, rank));
    const struct topk_attributes attributes = {
        .axis = value->batched + (axis < 0 ? axis + rank : axis), .largest = largest, .k = k
    };
    const tutti_tensor values = network_append(network, layer, &operation_topk, &attributes, &x.id, 1);
    if (indices && network_ok(network)) indices->id = graph_last(&network->graph)->outputs[INDICES];
    return values;
}
