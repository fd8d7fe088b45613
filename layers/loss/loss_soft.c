/* The cross-entropy with probabilities as targets (layers/loss/loss_soft.cl has the formula). tutti_cross_entropy()
 * uses it where the targets are floats. */
#include "layers/loss/arguments/loss_soft.h"
#include "base/memory.h"
#include "layers/elementwise.h"
#include "layers/interpreter/interpreter.h"
#include "layers/layers.h"
#include "layers/loss/loss.h"
#include "runtime/arguments.h"

static tutti_status infer(const struct graph *graph, struct node *node, struct value *outputs)
{
    const struct value *x = graph_at(graph, node->inputs[LOSS_X]), *p = graph_at(graph, node->inputs[LOSS_TARGETS]),
                       *weights = node->input_count > LOSS_CLASS_WEIGHTS
        ? graph_at(graph, node->inputs[LOSS_CLASS_WEIGHTS])
        : NULL;
    if (x->type != TYPE_F32 || p->type != TYPE_F32 || !shape_equal(x->shape, p->shape))
        return fail(TUTTI_SHAPE,
            "cross_entropy: the targets must be class numbers (int32), or probabilities, floats of the predictions' "
            "shape");
    if (x->shape.rank < 2) return fail(TUTTI_SHAPE, "cross_entropy: the predictions have no axis of classes");
    const int64_t classes = x->shape.sizes[loss_class_axis(node, x)];
    if (classes == TUTTI_SEQUENCE)
        return fail(TUTTI_SHAPE,
            "cross_entropy: the axis of the classes has the length of sequences, TUTTI_SEQUENCE: the classes must be a "
            "number");
    if (weights && !shape_equal(weights->shape, TUTTI_SHAPE(classes)))
        return fail(TUTTI_SHAPE, "cross_entropy: there must be as many class weights as classes");
    loss_outputs(x, node, outputs);
    return TUTTI_OK;
}

/* Sizes of the predictions: classes, elements from one class to the next, and positions. */
struct sizes {
    int64_t width, inner, labels;
};

static struct sizes sizes_of(const struct problem *problem)
{
    const struct value *x = problem->inputs[LOSS_X];
    const int axis = loss_class_axis(problem->node, x);
    struct sizes sizes = { .width = x->shape.sizes[axis], .inner = 1 };
    for (int i = axis + 1; i < x->shape.rank; i++) sizes.inner *= x->shape.sizes[i];
    sizes.labels = value_elements(x) / sizes.width;
    return sizes;
}

/* Bytes of two floats for each position: its loss, and 1 or 0 for correct. */
static size_t workspace(const struct problem *problem)
{
    return 2 * sizeof(float) * (size_t)sizes_of(problem).labels;
}

ARGUMENTS(soft, SOFT_ARGUMENTS)
ARGUMENTS(soft_rows, SOFT_ROWS_ARGUMENTS)
ARGUMENTS(soft_positions, SOFT_POSITIONS_ARGUMENTS)
ARGUMENTS(soft_weights, SOFT_WEIGHTS_ARGUMENTS)

static void emit(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct sizes sizes = sizes_of(problem);
    const bool wanted = operands->outputs[LOSS_GRADIENT] != NULL, gpu = problem->device->class == DEVICE_GPU;
    const bool in_rows = sizes.inner == 1;
    const int64_t positions = sizes.labels / problem->inputs[LOSS_X]->shape.sizes[0];
    const size_t group = in_rows && !gpu ? 1 : group_size(problem->device, in_rows && sizes.width > 64 ? 256 : 64);
    const int64_t each = group > 1 ? 1 : divide_up(2048, sizes.width); /* rows that are worth a group */
    const double elements = (double)value_elements(problem->inputs[LOSS_X]);
    struct launch *launch =
        launch_add(list, "loss_soft", in_rows ? "loss_soft_rows" : "loss_soft_positions", "-DGRADIENT=%d -DGROUP=%d%s",
            wanted, (int)group, problem->inputs[LOSS_CLASS_WEIGHTS] ? " -DCLASS_WEIGHTS=1" : "");
    ARGUMENTS_SET(launch, soft, .x = operands->inputs[LOSS_X], .targets = operands->inputs[LOSS_TARGETS],
        .constants = operands->inputs[LOSS_CONSTANTS], .dx = loss_gradient(operands), .results = operands->workspace,
        .weight = loss_factor(problem, positions), .smoothing = (double)loss_attributes(problem->node)->smoothing,
        .width = sizes.width);
    if (in_rows) {
        ARGUMENTS_SET(launch, soft_rows, .rows = sizes.labels, .each = each);
        launch_grid(launch, 1, (size_t)divide_up(sizes.labels, each) * group, 1, 1, group, 1, 1);
    } else {
        ARGUMENTS_SET(launch, soft_positions, .inner = sizes.inner, .total = sizes.labels);
        launch_grid(launch, 1, size_round_up((size_t)sizes.labels, group), 1, 1, group, 1, 1);
    }
    if (problem->inputs[LOSS_CLASS_WEIGHTS])
        ARGUMENTS_SET(launch, soft_weights, .class_weights = operands->inputs[LOSS_CLASS_WEIGHTS]);
    launch_work(launch, 12 * elements, 4 * (wanted ? 3 : 2) * elements);
    loss_sum(problem, operands, list, sizes.labels, 1 / (double)positions);
}

static const struct implementation one = {
    .name = "one",
    .workspace = workspace,
    .emit = emit,
};

const struct operation operation_soft_cross_entropy = {
    .name = "soft_cross_entropy",
    .inputs = { [LOSS_X] = { "x" },
        [LOSS_TARGETS] = { "targets" },
        [LOSS_CONSTANTS] = { "constants" },
        [LOSS_CLASS_WEIGHTS] = { "class_weights", PORT_OPTIONAL } },
    .outputs = { [LOSS_METRICS] = { "metrics" }, [LOSS_GRADIENT] = { "dx" } },
    .attributes = &loss_attributes_type,
    .infer = infer,
    .reference = interpret_soft_cross_entropy,
    .implementations = ONE(one),
    .is_loss = true,
    .counts_correct = true,
    .of_classes = true,
};
