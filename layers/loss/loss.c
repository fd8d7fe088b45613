/* The common part of the losses, and the losses of tutti_training.loss. */
#include "layers/loss/loss.h"

#include "base/memory.h"
#include "base/options.h"
#include "layers/append.h"
#include "layers/elementwise.h"
#include "layers/layers.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

ATTRIBUTES_DESCRIBE(loss, ATTRIBUTE(loss, AXIS, axis), ATTRIBUTE(loss, NUMBER, weight),
    ATTRIBUTE(loss, NUMBER, smoothing), ATTRIBUTE(loss, NUMBER, delta), ATTRIBUTE(loss, NUMBER, mean_weight),
    ATTRIBUTE(loss, FLAG, ignores), ATTRIBUTE(loss, OTHER, ignored), ATTRIBUTE(loss, OTHER, blank),
    ATTRIBUTE(loss, FLAG, zero_infinity), ATTRIBUTE(loss, FLAG, summed), ATTRIBUTE(loss, LONG, labels),
    ATTRIBUTE(loss, LONG, excluded))

int loss_class_axis(const struct node *loss, const struct value *x)
{
    const int axis = loss_attributes(loss)->axis;
    return axis ? axis : x->shape.rank - 1;
}

void loss_set_weight(struct node *loss, float weight)
{
    struct loss_attributes attributes = *loss_attributes(loss);
    attributes.weight = weight;
    node_set_operation(loss, loss->operation, &attributes);
}

void loss_outputs(const struct value *x, struct node *node, struct value *outputs)
{
    outputs[LOSS_METRICS] = (struct value) { .type = TYPE_F32, .shape = TUTTI_SHAPE(2) };
    outputs[LOSS_GRADIENT] =
        (struct value) { .type = TYPE_F32, .batched = x->batched, .shape = x->shape, .axes = x->axes };
    node->output_count = 2;
}

int64_t loss_positions(const struct problem *problem, int input)
{
    return value_elements(problem->inputs[input]) / problem->inputs[input]->shape.sizes[0];
}

double loss_factor(const struct problem *problem, int64_t positions)
{
    const float weight = loss_attributes(problem->node)->weight;
    return (weight != 0 ? (double)weight : 1) / (double)positions;
}

cl_mem loss_gradient(const struct operands *operands)
{
    return operands->outputs[LOSS_GRADIENT] ? operands->outputs[LOSS_GRADIENT] : operands->workspace;
}

void loss_sum(const struct problem *problem, const struct operands *operands, struct launch_list *list, int64_t rows,
    double factor)
{
    const size_t group = problem->device->class == DEVICE_GPU ? group_size(problem->device, 256) : 1;
    struct launch *launch = launch_add(list, "loss_sum", "loss_sum", "-DGROUP=%d", (int)group);
    LAUNCH_BUFFERS(launch, operands->workspace, operands->outputs[LOSS_METRICS]);
    launch_float(launch, factor);
    launch_int(launch, rows);
    launch_grid(launch, 1, group, 1, 1, group, 1, 1);
    launch_work(launch, 2 * (double)rows, 8 * (double)rows);
}

/* -------------------------------------------------------------------------------------------------- builder ---- */

/* Finds the axis of the classes, the batch included. */
static tutti_status find_axis(const struct value *x, int class_axis, int *axis)
{
    const int rank = x->shape.rank - 1;
    *axis = 1 + (class_axis < 0 ? rank + class_axis : class_axis < rank ? class_axis : rank);
    if (*axis >= 1 && *axis <= rank) return TUTTI_OK;
    return fail(TUTTI_INVALID,
        "class_axis is %d, but a sample of the predictions has %d axes: it counts them from 0, or "
        "from the last one as -1",
        class_axis, rank);
}

static tutti_status check_class_weights(const struct operation *operation, const struct value *x,
    const tutti_loss_options *options, struct loss_attributes *to)
{
    double sum = 0;
    if (!options->class_weights && options->class_weight_count == 0) return TUTTI_OK;
    if (!operation->of_classes)
        return fail(TUTTI_INVALID, "class_weights are for tutti_cross_entropy() and tutti_nll() only");
    if (!options->class_weights || options->class_weight_count != x->shape.sizes[to->axis])
        return fail(TUTTI_INVALID,
            "%d class weights are given, and the predictions have %" PRId64 " classes: pass a weight for each class",
            options->class_weights ? options->class_weight_count : 0, x->shape.sizes[to->axis]);
    for (int i = 0; i < options->class_weight_count; i++) {
        const float weight = options->class_weights[i];
        if (!(weight >= 0 && weight <= 1e30f))
            return fail(TUTTI_INVALID, "class_weights[%d] is %g: it must be at least 0 and finite", i, (double)weight);
        sum += (double)weight;
    }
    to->mean_weight = (float)(sum / options->class_weight_count);
    return TUTTI_OK;
}

/* Adds the class weights as a constant of the network; NO_VALUE where there are none, or after a failure. */
static int add_class_weights(tutti_network *network, int layer, const tutti_loss_options *options)
{
    if (!options->class_weights || layer < 0) return NO_VALUE;
    char *name = memory_format("%s.class_weights", network->layers[layer].name);
    const tutti_shape shape = TUTTI_SHAPE(options->class_weight_count);
    const int value = name ? network_constant(network, name, TYPE_F32, shape, options->class_weights) : NO_VALUE;
    if (!name) network_fail(network, TUTTI_NO_MEMORY);
    free(name);
    return value;
}

static tutti_status read_options(const struct operation *operation, const struct value *x,
    const tutti_loss_options *options, struct loss_attributes *to)
{
    tutti_status status = TUTTI_OK;
    *to = (struct loss_attributes) { .smoothing = options->label_smoothing,
        .delta = options->delta != 0 ? options->delta : 1,
        .ignores = options->has_ignored,
        .ignored = options->ignored };
    if (!(to->smoothing >= 0 && to->smoothing <= 1))
        FAIL(TUTTI_INVALID, "label_smoothing is %g: it must be from 0 to 1", (double)to->smoothing);
    if (!(to->delta > 0 && to->delta <= 1e30f))
        FAIL(TUTTI_INVALID, "delta is %g: it must be positive and finite", (double)to->delta);
    if (operation->of_classes) TRY(find_axis(x, options->class_axis, &to->axis));
    TRY(check_class_weights(operation, x, options, to));
done:
    return status;
}

/* Gives targets that are constants the batch and the shape of the predictions. `axis`: of the classes, which targets
 * that are class numbers lack; 0: they are floats. */
static int expand_targets(tutti_network *network, int layer, int targets, int x, int axis)
{
    const struct graph *graph = &network->graph;
    const struct append_context c = { network, &network->graph, layer };
    const struct convert_attributes attributes = { .type = TYPE_I32 };
    const struct value *wanted = graph_at(graph, targets), *predictions = graph_at(graph, x);
    tutti_shape shape = predictions->shape;
    if (wanted->batched) return targets;
    if (axis <= 0 || wanted->type != TYPE_I32) return append_expand(&c, targets, shape, x);
    for (int i = axis; i + 1 < shape.rank; i++) shape.sizes[i] = shape.sizes[i + 1];
    shape.rank--;
    const int floats = append_one(&c, &operation_cast, targets); /* class numbers below 2^24 are exact */
    const int all = append_expand(&c, floats, shape, x);
    return graph_append(&network->graph, &operation_convert, &attributes, &all, 1, layer);
}

/* Class numbers may be a constant; a parameter, which is of floats, is refused. */
static const struct value *find_targets(tutti_network *network, const struct operation *operation, tutti_tensor targets)
{
    const struct value *value = network_operand(network, targets);
    const bool numbers = value && value->role == ROLE_PARAMETER && value->type == TYPE_I32;
    return operation->takes_classes && value && !numbers ? network_value(network, targets) : value;
}

/* Checks class numbers that are a constant, and counts the excluded ones, as feeds_check_and_count() does with those of
 * a batch. */
static tutti_status check_classes(const struct parameter *constant, int64_t classes, struct loss_attributes *to)
{
    to->labels = constant->elements;
    for (int64_t i = 0; i < constant->elements; i++) {
        int32_t label;
        memcpy(&label, constant->values + i, sizeof label);
        const bool excluded = label < 0 || (to->ignores && label == to->ignored);
        to->excluded += excluded;
        if (label >= classes && !excluded)
            return fail(TUTTI_INVALID,
                "element %" PRId64 " of the constant '%s' is class %d, but the predictions have %" PRId64
                " classes, counted from 0",
                i, constant->name, label, classes);
        if (label > 1 << 24)
            return fail(TUTTI_INVALID, "element %" PRId64 " of the constant '%s' is %d: at most 2^24 is possible", i,
                constant->name, label);
    }
    return TUTTI_OK;
}

tutti_tensor loss_build(tutti_network *network, const struct operation *operation, tutti_tensor x, tutti_tensor targets,
    const tutti_loss_options *given)
{
    tutti_loss_options options;
    struct loss_attributes attributes = { 0 };
    const struct value *predictions = network_value(network, x);
    const struct value *wanted = find_targets(network, operation, targets);
    if (!predictions || !wanted) return (tutti_tensor) { NO_VALUE };
    tutti_status status = OPTIONS_READ(&options, given, tutti_loss_options);
    const int layer = network_layer_begin(network, status == TUTTI_OK ? options.name : NULL, operation->name);
    if (status == TUTTI_OK) status = read_options(operation, predictions, &options, &attributes);
    if (status == TUTTI_OK && operation->takes_classes && wanted->role == ROLE_PARAMETER)
        status = check_classes(
            &network->parameters[wanted->parameter], predictions->shape.sizes[attributes.axis], &attributes);
    if (status != TUTTI_OK) return network_fail(network, status);
    if (layer < 0) return (tutti_tensor) { NO_VALUE };
    const int weights = add_class_weights(network, layer, &options);
    const int compared =
        expand_targets(network, layer, targets.id, x.id, operation->takes_classes ? attributes.axis : 0);
    const int inputs[] = { x.id, compared, graph_constants(&network->graph), weights };
    return network_append(network, layer, operation, &attributes, inputs, weights == NO_VALUE ? 3 : 4);
}

/* ------------------------------------------------------------------------------------- tutti_training.loss ---- */

const struct operation *loss_find(tutti_loss loss)
{
    switch (loss) {
    case TUTTI_CROSS_ENTROPY: return &operation_cross_entropy;
    case TUTTI_MSE: return &operation_mean_squared_error;
    default: return NULL;
    }
}

struct value loss_targets(const struct operation *loss, const struct value *predictions)
{
    struct value targets = { .type = TYPE_F32, .shape = predictions->shape, .batched = true };
    if (!loss->takes_classes) return targets;
    targets.type = TYPE_I32;
    targets.shape = (tutti_shape) { 1, { predictions->shape.sizes[0] } };
    return targets;
}
