/* one_hot: represents a number by a vector that differs at one place. */
#include "clkernels/arguments/one_hot.h"
#include "layers/elementwise.h"
#include "layers/indices.h"
#include "layers/interpreter/interpreter.h"
#include "layers/lines.h"
#include "runtime/arguments.h"

ATTRIBUTES_DESCRIBE(one_hot, ATTRIBUTE(one_hot, AXIS, axis), ATTRIBUTE(one_hot, LONG, depth),
    ATTRIBUTE(one_hot, NUMBER, off), ATTRIBUTE(one_hot, NUMBER, on))

static tutti_status infer(const struct graph *graph, struct node *node, struct value *outputs)
{
    const struct value *x = graph_at(graph, node->inputs[0]);
    const struct one_hot_attributes *a = one_hot_attributes(node);
    if (x->type != TYPE_F32 && x->type != TYPE_I32)
        return fail(TUTTI_INVALID, "one_hot: the indices must be whole numbers of int32 or float32");
    if (a->depth < 1 || a->depth > INT32_MAX)
        return fail(
            TUTTI_INVALID, "one_hot: depth is %lld: it must be at least 1 and less than 2^31", (long long)a->depth);
    if (a->axis < x->batched || a->axis > x->shape.rank || x->shape.rank == TUTTI_MAX_RANK)
        return fail(TUTTI_INVALID, "one_hot: axis %d does not exist, or the result would have more than %d axes",
            a->axis - x->batched, TUTTI_MAX_RANK);
    outputs[0] = (struct value) { .type = TYPE_F32, .batched = x->batched, .shape = { .rank = x->shape.rank + 1 } };
    for (int i = 0; i < outputs[0].shape.rank; i++)
        outputs[0].shape.sizes[i] = i == a->axis ? a->depth : x->shape.sizes[i - (i > a->axis)];
    return TUTTI_OK;
}

ARGUMENTS(one_hot, ONE_HOT_ARGUMENTS)

static void emit(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct one_hot_attributes *a = one_hot_attributes(problem->node);
    const struct value *y = problem->outputs[0];
    const int64_t elements = value_elements(y), inner = value_planes(y, a->axis).pixels;
    struct launch *launch = launch_add(list, "one_hot", "one_hot", "%s", indexed_options(problem->inputs[0]));
    ARGUMENTS_SET(launch, one_hot, .indices = operands->inputs[0], .y = operands->outputs[0], .elements = elements,
        .chunk = elements_chunk(problem->device, elements), .depth = a->depth, .inner = inner, .off = (double)a->off,
        .on = (double)a->on);
    elements_launch(launch, problem->device, elements);
    launch_work(launch, 0, 4 * (double)elements);
}

static const struct implementation by_element = { .name = "elements", .emit = emit };

const struct operation operation_one_hot = {
    .name = "one_hot",
    .inputs = { { "indices", PORT_ANY_TYPE | PORT_INDEX } },
    .outputs = { { "y" } },
    .attributes = &one_hot_attributes_type,
    .infer = infer,
    .reference = interpret_one_hot,
    .implementations = ONE(by_element),
};
