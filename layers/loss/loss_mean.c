/* The mean of any tensor as a loss, which the caller's own formula has computed. */
#include "base/memory.h"
#include "base/options.h"
#include "layers/elementwise.h"
#include "layers/interpreter/interpreter.h"
#include "layers/layers.h"
#include "layers/loss/loss.h"

enum { MEAN_X = LOSS_X, MEAN_CONSTANTS }; /* inputs */

static tutti_status infer(const struct graph *graph, struct node *node, struct value *outputs)
{
    const struct value *x = graph_at(graph, node->inputs[MEAN_X]);
    if (!x->batched)
        return fail(TUTTI_SHAPE, "mean_loss: the input is the same for all samples: it must depend on an input");
    loss_outputs(x, node, outputs);
    return TUTTI_OK;
}

tutti_tensor tutti_mean(tutti_network *network, tutti_tensor x, const tutti_mean_options *given)
{
    tutti_mean_options options;
    if (!network_value(network, x)) return (tutti_tensor) { NO_VALUE };
    const tutti_status status = OPTIONS_READ(&options, given, tutti_mean_options);
    if (status != TUTTI_OK) return network_fail(network, status);
    if (options.weights) x = tutti_mul(network, x, *options.weights);
    if (!network_value(network, x)) return (tutti_tensor) { NO_VALUE };
    const int layer = network_layer_begin(network, options.name, operation_mean_loss.name);
    if (layer < 0) return (tutti_tensor) { NO_VALUE };
    const int inputs[] = { [MEAN_X] = x.id, [MEAN_CONSTANTS] = graph_constants(&network->graph) };
    return network_append(network, layer, &operation_mean_loss, NULL, inputs, 2);
}

/* ------------------------------------------------------------------------------------------- implementations ---- */

/* Elements for a task or a group: they share one result. */
static int64_t piece_of(const struct problem *problem)
{
    return problem->device->class == DEVICE_GPU ? 4096 : 2048;
}

static int64_t pieces_of(const struct problem *problem)
{
    return divide_up(value_elements(problem->inputs[MEAN_X]), piece_of(problem));
}

static size_t workspace(const struct problem *problem)
{
    return 2 * sizeof(float) * (size_t)pieces_of(problem);
}

static void emit(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const bool wanted = operands->outputs[LOSS_GRADIENT] != NULL, gpu = problem->device->class == DEVICE_GPU;
    const int64_t elements = value_elements(problem->inputs[MEAN_X]), positions = loss_positions(problem, MEAN_X);
    const size_t group = gpu ? group_size(problem->device, 256) : 1, pieces = (size_t)pieces_of(problem);
    struct launch *launch = launch_add(list, "loss_mean", "loss_mean", "-DGRADIENT=%d -DGROUP=%d -DEACH=%d", wanted,
        (int)group, (int)piece_of(problem));
    LAUNCH_BUFFERS(launch, operands->inputs[MEAN_X], operands->inputs[MEAN_CONSTANTS], loss_gradient(operands),
        operands->workspace);
    launch_float(launch, loss_factor(problem, positions));
    launch_long(launch, elements);
    launch_grid(launch, 1, pieces * group, 1, 1, group, 1, 1);
    launch_work(launch, (double)elements, 4 * (wanted ? 2 : 1) * (double)elements);
    loss_sum(problem, operands, list, (int64_t)pieces, 1 / (double)positions);
}

static const struct implementation pieces = {
    .name = "pieces",
    .workspace = workspace,
    .emit = emit,
};

const struct operation operation_mean_loss = {
    .name = "mean_loss",
    .inputs = { [MEAN_X] = { "x" }, [MEAN_CONSTANTS] = { "constants" } },
    .outputs = { [LOSS_METRICS] = { "metrics" }, [LOSS_GRADIENT] = { "dx" } },
    .attributes = &loss_attributes_type,
    .infer = infer,
    .reference = interpret_mean_loss,
    .implementations = ONE(pieces),
    .is_loss = true,
};
