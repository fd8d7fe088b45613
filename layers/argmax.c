/* argmax, argmin: positions of the largest or smallest elements. hardmax is 1 at that position. */
#include "layers/elementwise.h"
#include "layers/interpreter/interpreter.h"
#include "layers/lines.h"

ATTRIBUTES_DESCRIBE(
    argmax, ATTRIBUTE(argmax, AXIS, axis), ATTRIBUTE(argmax, FLAG, keepdims), ATTRIBUTE(argmax, FLAG, last))

static tutti_status infer(const struct graph *graph, struct node *node, struct value *outputs)
{
    const struct value *x = graph_at(graph, node->inputs[0]);
    const struct argmax_attributes *a = argmax_attributes(node);
    const bool hot = node->operation == &operation_hardmax;
    const tutti_status status = lines_check(node->operation->name, x, a->axis);
    if (status != TUTTI_OK) return status;
    outputs[0] = (struct value) { .type = TYPE_F32, .batched = x->batched };
    for (int i = 0; i < x->shape.rank; i++) {
        if (i == a->axis && !hot && !a->keepdims) continue;
        outputs[0].axes.kinds[outputs[0].shape.rank] = x->axes.kinds[i];
        outputs[0].shape.sizes[outputs[0].shape.rank++] = i == a->axis && !hot ? 1 : x->shape.sizes[i];
    }
    if (outputs[0].shape.rank == 0) outputs[0].shape = TUTTI_SHAPE(1);
    return TUTTI_OK;
}

static void emit(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct operation *operation = problem->node->operation;
    const struct value *x = problem->inputs[0];
    const struct argmax_attributes *a = argmax_attributes(problem->node);
    const struct lines lines = lines_of(x, a->axis, problem->device);
    struct launch *launch = launch_add(list, "argmax", "argmax", "-DLAST=%d -DLEAST=%d -DHOT=%d", a->last,
        operation == &operation_argmin, operation == &operation_hardmax);
    LAUNCH_BUFFERS(launch, operands->inputs[0], operands->outputs[0]);
    lines_launch(launch, &lines, problem->device);
    launch_work(launch, 0, 4 * (double)(value_elements(x) + value_elements(problem->outputs[0])));
}

static const struct implementation by_line = { .name = "lines", .emit = emit };

#define ARGMAX(name_)                            \
    const struct operation operation_##name_ = { \
        .name = #name_,                          \
        .inputs = { { "x" } },                   \
        .outputs = { { "y" } },                  \
        .attributes = &argmax_attributes_type,   \
        .infer = infer,                          \
        .reference = interpret_argmax,           \
        .implementations = ONE(by_line),         \
    };
ARGMAX(argmax)
ARGMAX(argmin)
ARGMAX(hardmax)
