/* reverse_sequence: sequences of different lengths in reverse order, each in the first elements along an axis. */
#include "clkernels/arguments/reverse_sequence.h"
#include "layers/elementwise.h"
#include "layers/indices.h"
#include "layers/interpreter/interpreter.h"
#include "layers/lines.h"
#include "runtime/arguments.h"

ATTRIBUTES_DESCRIBE(
    reverse_sequence, ATTRIBUTE(reverse_sequence, AXIS, axis), ATTRIBUTE(reverse_sequence, AXIS, batch_axis))

static tutti_status infer(const struct graph *graph, struct node *node, struct value *outputs)
{
    const struct value *x = graph_at(graph, node->inputs[0]), *lengths = graph_at(graph, node->inputs[1]);
    const struct reverse_sequence_attributes *a = reverse_sequence_attributes(node);
    const int axes = lengths->shape.rank - lengths->batched;
    if (lengths->type != TYPE_F32 && lengths->type != TYPE_I32)
        return fail(TUTTI_INVALID, "reverse_sequence: the lengths must be whole numbers of int32 or float32");
    if (a->axis < x->batched || a->axis >= x->shape.rank || a->axis == a->batch_axis || a->batch_axis >= x->shape.rank)
        return fail(TUTTI_INVALID, "reverse_sequence: axis %d and batch_axis must be two of the input's %d axes",
            a->axis - x->batched, x->shape.rank - x->batched);
    if (lengths->batched && !x->batched)
        return fail(TUTTI_SHAPE, "reverse_sequence: the lengths are of samples, and the input is the same for all");
    const int64_t wanted = a->batch_axis >= 0 ? x->shape.sizes[a->batch_axis] : 1;
    if (axes > 1 || (axes && value_size(lengths, 0) != wanted) || (!axes && wanted != 1))
        return fail(TUTTI_SHAPE,
            "reverse_sequence: there must be one length for each sample, or as many as batch_axis is long, %s",
            size_print(wanted, (char[SIZE_TEXT]) { 0 }));
    outputs[0] = (struct value) { .type = TYPE_F32, .batched = x->batched, .shape = x->shape, .axes = x->axes };
    return TUTTI_OK;
}

ARGUMENTS(reverse, REVERSE_ARGUMENTS)

static void emit(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct reverse_sequence_attributes *a = reverse_sequence_attributes(problem->node);
    const struct value *x = problem->inputs[0], *lengths = problem->inputs[1];
    const int64_t elements = value_elements(x), sample = x->batched ? elements / x->shape.sizes[0] : elements;
    const struct planes time = value_planes(x, a->axis);
    const struct planes batch = a->batch_axis >= 0 ? value_planes(x, a->batch_axis) : (struct planes) { 1, 1, 1 };
    struct launch *launch = launch_add(list, "reverse_sequence", "reverse_sequence", "%s", indexed_options(lengths));
    ARGUMENTS_SET(launch, reverse, .x = operands->inputs[0], .lengths = operands->inputs[1], .y = operands->outputs[0],
        .elements = elements, .chunk = elements_chunk(problem->device, elements), .sample = sample, .times = time.c,
        .inner = time.pixels, .batches = batch.c, .batch_inner = batch.pixels,
        .length_sample = lengths->batched ? batch.c : 0, .length_next = a->batch_axis >= 0);
    elements_launch(launch, problem->device, elements);
    launch_work(launch, 0, 8 * (double)elements);
}

static const struct implementation by_element = { .name = "elements", .emit = emit };

const struct operation operation_reverse_sequence = {
    .name = "reverse_sequence",
    .inputs = { { "x" }, { "lengths", PORT_ANY_TYPE | PORT_INDEX } },
    .outputs = { { "y" } },
    .attributes = &reverse_sequence_attributes_type,
    .infer = infer,
    .gradient = gradient_by_itself,
    .reference = interpret_reverse_sequence,
    .implementations = ONE(by_element),
};
