/* Losses between predictions and targets of one shape, element by element. The formulas stand in
 * layers/loss/loss_elements.cl under the operations' names. */
#include "layers/loss/arguments/loss_elements.h"
#include "base/memory.h"
#include "layers/elementwise.h"
#include "layers/interpreter/interpreter.h"
#include "layers/layers.h"
#include "layers/loss/loss.h"
#include "runtime/arguments.h"

static tutti_status infer(const struct graph *graph, struct node *node, struct value *outputs)
{
    const struct value *x = graph_at(graph, node->inputs[LOSS_X]), *t = graph_at(graph, node->inputs[LOSS_TARGETS]);
    if (x->type != TYPE_F32 || t->type != TYPE_F32 || !shape_equal(x->shape, t->shape))
        return fail(TUTTI_SHAPE, "%s: the targets must be floats of the predictions' shape", node->operation->name);
    loss_outputs(x, node, outputs);
    return TUTTI_OK;
}

tutti_tensor tutti_mse(tutti_network *network, tutti_tensor x, tutti_tensor targets, const tutti_loss_options *options)
{
    return loss_build(network, &operation_mean_squared_error, x, targets, options);
}

tutti_tensor tutti_l1(tutti_network *network, tutti_tensor x, tutti_tensor targets, const tutti_loss_options *options)
{
    return loss_build(network, &operation_l1, x, targets, options);
}

tutti_tensor tutti_huber(
    tutti_network *network, tutti_tensor x, tutti_tensor targets, const tutti_loss_options *options)
{
    return loss_build(network, &operation_huber, x, targets, options);
}

tutti_tensor tutti_bce_with_logits(
    tutti_network *network, tutti_tensor logits, tutti_tensor targets, const tutti_loss_options *options)
{
    return loss_build(network, &operation_bce_with_logits, logits, targets, options);
}

/* ------------------------------------------------------------------------------------------- implementations ---- */

/* Elements for a task or a group: they share one result. */
static int64_t piece_of(const struct problem *problem)
{
    return problem->device->class == DEVICE_GPU ? 4096 : 2048;
}

static int64_t pieces_of(const struct problem *problem)
{
    return divide_up(value_elements(problem->inputs[LOSS_X]), piece_of(problem));
}

static size_t workspace(const struct problem *problem)
{
    return 2 * sizeof(float) * (size_t)pieces_of(problem);
}

ARGUMENTS(elements, ELEMENTS_ARGUMENTS)

static void emit(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const bool wanted = operands->outputs[LOSS_GRADIENT] != NULL, gpu = problem->device->class == DEVICE_GPU;
    const int64_t elements = value_elements(problem->inputs[LOSS_X]), positions = loss_positions(problem, LOSS_X);
    const size_t group = gpu ? group_size(problem->device, 256) : 1, pieces = (size_t)pieces_of(problem);
    struct launch *launch = launch_add(list, "loss_elements", "loss_elements", "-DGRADIENT=%d -DLOSS_%s -DGROUP=%d",
        wanted, problem->node->operation->name, (int)group);
    ARGUMENTS_SET(launch, elements, .x = operands->inputs[LOSS_X], .targets = operands->inputs[LOSS_TARGETS],
        .constants = operands->inputs[LOSS_CONSTANTS], .dx = loss_gradient(operands), .results = operands->workspace,
        .weight = loss_factor(problem, positions), .delta = (double)loss_attributes(problem->node)->delta,
        .n = elements, .each = piece_of(problem));
    launch_grid(launch, 1, pieces * group, 1, 1, group, 1, 1);
    launch_work(launch, 4 * (double)elements, 4 * (wanted ? 3 : 2) * (double)elements);
    loss_sum(problem, operands, list, (int64_t)pieces, 1 / (double)positions);
}

static const struct implementation pieces = {
    .name = "pieces",
    .workspace = workspace,
    .emit = emit,
};

#define ELEMENT_LOSS(operation_name, correct)                                                                 \
    const struct operation operation_##operation_name = {                                                     \
        .name = #operation_name,                                                                              \
        .inputs = { [LOSS_X] = { "x" }, [LOSS_TARGETS] = { "targets" }, [LOSS_CONSTANTS] = { "constants" } }, \
        .outputs = { [LOSS_METRICS] = { "metrics" }, [LOSS_GRADIENT] = { "dx" } },                            \
        .attributes = &loss_attributes_type,                                                                  \
        .infer = infer,                                                                                       \
        .reference = interpret_loss_of_elements,                                                              \
        .implementations = ONE(pieces),                                                                       \
        .is_loss = true,                                                                                      \
        .counts_correct = (correct),                                                                          \
    }
ELEMENT_LOSS(mean_squared_error, false);
ELEMENT_LOSS(l1, false);
ELEMENT_LOSS(huber, false);
ELEMENT_LOSS(bce_with_logits, true);
