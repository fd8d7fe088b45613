/* Losses by class number: cross_entropy (softmax included) and nll. */
#include "layers/loss/arguments/loss_classes.h"
#include "base/memory.h"
#include "layers/elementwise.h"
#include "layers/interpreter/interpreter.h"
#include "layers/layers.h"
#include "layers/loss/loss.h"
#include "runtime/arguments.h"

static tutti_shape label_shape(const tutti_shape *shape, int axis)
{
    tutti_shape labels = { 0 };
    for (int i = 0; i < shape->rank; i++)
        if (i != axis) labels.sizes[labels.rank++] = shape->sizes[i];
    return labels;
}

static tutti_status infer(const struct graph *graph, struct node *node, struct value *outputs)
{
    const struct value *x = graph_at(graph, node->inputs[LOSS_X]),
                       *labels = graph_at(graph, node->inputs[LOSS_TARGETS]),
                       *weights = node->input_count > LOSS_CLASS_WEIGHTS
        ? graph_at(graph, node->inputs[LOSS_CLASS_WEIGHTS])
        : NULL;
    const char *name = node->operation->name;
    if (x->type != TYPE_F32 || labels->type != TYPE_I32)
        return fail(TUTTI_SHAPE, "%s: the predictions must be floats and the targets class numbers (int32)", name);
    if (x->shape.rank < 2) return fail(TUTTI_SHAPE, "%s: the predictions have no axis of classes", name);
    const int axis = loss_class_axis(node, x);
    if (x->shape.sizes[axis] == TUTTI_SEQUENCE)
        return fail(TUTTI_SHAPE,
            "%s: axis %d of the predictions, that of the classes, has the length of sequences, TUTTI_SEQUENCE: the "
            "classes must be a number",
            name, axis - 1);
    const tutti_shape wanted = label_shape(&x->shape, axis);
    if (!shape_equal(wanted, labels->shape)) {
        if (labels->shape.rank == 1)
            return fail(TUTTI_SHAPE,
                "%s: with one class number for each sample, the predictions must be [classes], but they have %d "
                "dimensions: flatten them",
                name, x->shape.rank - 1);
        return fail(TUTTI_SHAPE,
            "%s: the targets must have the predictions' shape without axis %d, that of the classes: set class_axis if "
            "it is another one",
            name, axis - 1);
    }
    if (weights && !shape_equal(weights->shape, TUTTI_SHAPE(x->shape.sizes[axis])))
        return fail(TUTTI_SHAPE, "%s: there must be as many class weights as classes", name);
    loss_outputs(x, node, outputs);
    return TUTTI_OK;
}

tutti_tensor tutti_cross_entropy(
    tutti_network *network, tutti_tensor logits, tutti_tensor targets, const tutti_loss_options *options)
{
    const struct value *wanted = network_operand(network, targets);
    const bool soft = wanted && wanted->type == TYPE_F32;
    return loss_build(
        network, soft ? &operation_soft_cross_entropy : &operation_cross_entropy, logits, targets, options);
}

tutti_tensor tutti_nll(
    tutti_network *network, tutti_tensor log_probabilities, tutti_tensor targets, const tutti_loss_options *options)
{
    return loss_build(network, &operation_nll, log_probabilities, targets, options);
}

/* ------------------------------------------------------------------------------------------- implementations ---- */

static int64_t width_of(const struct problem *problem)
{
    const struct value *x = problem->inputs[LOSS_X];
    return x->shape.sizes[loss_class_axis(problem->node, x)];
}

/* Elements of x from one class to the next. */
static int64_t inner_of(const struct problem *problem)
{
    const struct value *x = problem->inputs[LOSS_X];
    int64_t inner = 1;
    for (int i = loss_class_axis(problem->node, x) + 1; i < x->shape.rank; i++) inner *= x->shape.sizes[i];
    return inner;
}

static int64_t labels_of(const struct problem *problem)
{
    return value_elements(problem->inputs[LOSS_TARGETS]);
}

/* Bytes of two floats for each label: its loss, and 1 or 0 for correct. */
static size_t workspace(const struct problem *problem)
{
    return 2 * sizeof(float) * (size_t)labels_of(problem);
}

ARGUMENTS(labels, LABELS_ARGUMENTS)
ARGUMENTS(rows, ROWS_ARGUMENTS)
ARGUMENTS(pieces, PIECES_ARGUMENTS)
ARGUMENTS(width, WIDTH_ARGUMENTS)
ARGUMENTS(positions, POSITIONS_ARGUMENTS)
ARGUMENTS(weights, WEIGHTS_ARGUMENTS)

/* Adds the launch over the labels, without its sizes. */
static struct launch *add(const struct problem *problem, const struct operands *operands, struct launch_list *list,
    const char *source, int group)
{
    const bool wanted = operands->outputs[LOSS_GRADIENT] != NULL;
    const struct loss_attributes *a = loss_attributes(problem->node);
    struct launch *launch =
        launch_add(list, source, inner_of(problem) > 1 ? "cross_entropy_positions" : "cross_entropy",
            "-DGRADIENT=%d -DLOG_PROBABILITIES=%d -DSMOOTHING=%d -DIGNORED=%d -DGROUP=%d%s", wanted,
            problem->node->operation == &operation_nll, a->smoothing > 0, a->ignores ? (int)a->ignored : -1, group,
            problem->inputs[LOSS_CLASS_WEIGHTS] ? " -DCLASS_WEIGHTS=1" : "");
    ARGUMENTS_SET(launch, labels, .x = operands->inputs[LOSS_X], .labels = operands->inputs[LOSS_TARGETS],
        .constants = operands->inputs[LOSS_CONSTANTS], .dx = loss_gradient(operands), .results = operands->workspace,
        .weight = loss_factor(problem, loss_positions(problem, LOSS_TARGETS)), .smoothing = (double)a->smoothing);
    const double elements = (double)value_elements(problem->inputs[LOSS_X]);
    launch_work(launch, 10 * elements, 4 * (wanted ? 2 : 1) * elements);
    return launch;
}

/* Sets the last arguments of the launch over the labels, and appends the launch that sums. */
static void finish(
    const struct problem *problem, const struct operands *operands, struct launch *launch, struct launch_list *list)
{
    if (problem->inputs[LOSS_CLASS_WEIGHTS])
        ARGUMENTS_SET(launch, weights, .class_weights = operands->inputs[LOSS_CLASS_WEIGHTS],
            .mean_weight = (double)loss_attributes(problem->node)->mean_weight);
    loss_sum(problem, operands, list, labels_of(problem), 1 / (double)loss_positions(problem, LOSS_TARGETS));
}

static void emit_rows(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const int64_t width = width_of(problem), inner = inner_of(problem), labels = labels_of(problem);
    int64_t each = divide_up(2048, width); /* floats that are worth a task */
    struct launch *launch = add(problem, operands, list, "loss_cpu", 1);
    if (inner == 1) {
        ARGUMENTS_SET(launch, rows, .rows = labels, .width = width, .each = each);
        launch_tasks(launch, (size_t)divide_up(labels, each), 1, 1);
    } else {
        each = (int64_t)size_round_up((size_t)each, (size_t)problem->device->vector_width);
        const int64_t pieces = divide_up(inner, each);
        ARGUMENTS_SET(launch, pieces, .width = width, .inner = inner, .pieces = pieces, .each = each);
        launch_tasks(launch, (size_t)(labels / inner * pieces), 1, 1);
    }
    finish(problem, operands, launch, list);
}

static void emit_groups(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const int64_t width = width_of(problem), inner = inner_of(problem), labels = labels_of(problem);
    const size_t group = group_size(problem->device, inner == 1 && width > 64 ? 256 : 64);
    struct launch *launch = add(problem, operands, list, "loss_gpu", (int)group);
    if (inner == 1) {
        ARGUMENTS_SET(launch, width, .width = width);
        launch_grid(launch, 1, (size_t)labels * group, 1, 1, group, 1, 1);
    } else {
        ARGUMENTS_SET(launch, positions, .width = width, .inner = inner, .total = labels);
        launch_grid(launch, 1, size_round_up((size_t)labels, group), 1, 1, group, 1, 1);
    }
    finish(problem, operands, launch, list);
}

static const struct implementation rows = {
    .name = "rows",
    .fits = fits_cpu_class,
    .workspace = workspace,
    .emit = emit_rows,
};
static const struct implementation groups = {
    .name = "groups",
    .workspace = workspace,
    .emit = emit_groups,
};
static const struct implementation *const implementations[] = { &rows, &groups, NULL };

#define CLASS_LOSS(name_)                                                          \
    const struct operation operation_##name_ = {                                   \
        .name = #name_,                                                            \
        .inputs = { [LOSS_X] = { "x" },                                            \
            [LOSS_TARGETS] = { "targets", PORT_ANY_TYPE },                         \
            [LOSS_CONSTANTS] = { "constants" },                                    \
            [LOSS_CLASS_WEIGHTS] = { "class_weights", PORT_OPTIONAL } },           \
        .outputs = { [LOSS_METRICS] = { "metrics" }, [LOSS_GRADIENT] = { "dx" } }, \
        .attributes = &loss_attributes_type,                                       \
        .infer = infer,                                                            \
        .reference = interpret_loss_of_classes,                                    \
        .implementations = implementations,                                        \
        .is_loss = true,                                                           \
        .counts_correct = true,                                                    \
        .of_classes = true,                                                        \
        .takes_classes = true,                                                     \
    };
CLASS_LOSS(cross_entropy)
CLASS_LOSS(nll)
