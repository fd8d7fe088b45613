/* trilu: the upper or lower triangle of matrices. */
#include "layers/elementwise.h"
#include "layers/interpreter/interpreter.h"
#include "layers/lines.h"

ATTRIBUTES_DESCRIBE(trilu, ATTRIBUTE(trilu, FLAG, upper), ATTRIBUTE(trilu, LONG, k))

static tutti_status infer(const struct graph *graph, struct node *node, struct value *outputs)
{
    const struct value *x = graph_at(graph, node->inputs[0]);
    if (x->shape.rank - x->batched < 2)
        return fail(TUTTI_SHAPE, "trilu: the input has %d axes: a matrix has two", x->shape.rank - x->batched);
    outputs[0] = (struct value) { .type = TYPE_F32, .batched = x->batched, .shape = x->shape, .axes = x->axes };
    return TUTTI_OK;
}

static void emit(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct trilu_attributes *a = trilu_attributes(problem->node);
    const struct value *y = problem->outputs[0];
    const int64_t elements = value_elements(y);
    struct launch *launch = launch_add(list, "trilu", "trilu", "-DUPPER=%d -DK=%lldL", a->upper, (long long)a->k);
    LAUNCH_BUFFERS(launch, operands->inputs[0], operands->outputs[0]);
    launch_long(launch, elements);
    launch_long(launch, elements_chunk(problem->device, elements));
    LAUNCH_INTS(launch, value_size(y, 1), value_size(y, 0));
    elements_launch(launch, problem->device, elements);
    launch_work(launch, 0, 8 * (double)elements);
}

static const struct implementation by_element = {
    .name = "elements",
    .in_place = in_place_first,
    .emit = emit,
};

const struct operation operation_trilu = {
    .name = "trilu",
    .inputs = { { "x" } },
    .outputs = { { "y" } },
    .attributes = &trilu_attributes_type,
    .infer = infer,
    .gradient = gradient_by_itself,
    .reference = interpret_trilu,
    .implementations = ONE(by_element),
};
