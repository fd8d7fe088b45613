/* tutti_custom(): an operation whose texts a program gives, and its gradient. */
#include "layers/custom/custom.h"

#include "base/memory.h"
#include "base/options.h"
#include "graph/network.h"
#include "layers/broadcast.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

ATTRIBUTES_DESCRIBE(
    custom, ATTRIBUTE(custom, OTHER, hash), ATTRIBUTE(custom, SHAPE, shape), ATTRIBUTE(custom, POINTER, custom))

/* ----------------------------------------------------------------------------------------------------- shapes ---- */

/* Returns the first input with the batch; NULL: there is none. */
static const struct value *first_batched(const struct graph *graph, const int *inputs, int count)
{
    for (int i = 0; i < count; i++)
        if (graph_at(graph, inputs[i])->batched) return graph_at(graph, inputs[i]);
    return NULL;
}

/* An item's number is an int. There is one for each element of this value, unless the options say how many. */
static tutti_status check_items(const struct custom *custom, const struct value *value, bool backward)
{
    const int64_t elements = custom_sample_elements(value);
    if (custom->items[backward] || shape_sequences(&value->shape) > 0 || elements <= INT32_MAX) return TUTTI_OK;
    return fail(TUTTI_SHAPE,
        "custom operation '%s': a sample would have %" PRId64 " items in the %s, one for each element of %s: at most "
        "2147483647 are possible; set tutti_custom_options.%s_items, and let an item do more",
        custom->operation, elements, backward ? "backward" : "forward", backward ? custom->names[0] : "y",
        backward ? "backward" : "forward");
}

static tutti_status infer(const struct graph *graph, struct node *node, struct value *outputs)
{
    const struct custom_attributes *a = custom_attributes(node);
    const struct value *x = graph_at(graph, node->inputs[0]),
                       *with = first_batched(graph, node->inputs, node->input_count);
    if (!with)
        return fail(TUTTI_SHAPE, "custom operation '%s': all inputs are parameters or constants: one must have samples",
            a->custom->operation);
    if (a->shape.rank == 0 && !x->batched)
        return fail(TUTTI_SHAPE,
            "custom operation '%s': its first input is a parameter or constant: set tutti_custom_options.shape",
            a->custom->operation);
    const tutti_shape shape = a->shape.rank ? a->shape : x->shape;
    outputs[0] = (struct value) { .type = TYPE_F32, .batched = true, .shape = shape };
    if (x->batched && shape.rank == x->shape.rank) outputs[0].axes = x->axes;
    return check_items(a->custom, &outputs[0], false);
}

/* Sets the gradient's shape: that of the input, with the batch. */
static tutti_status infer_input(
    const struct custom *custom, const struct value *x, const struct value *dy, struct value *dx)
{
    *dx = (struct value) { .type = TYPE_F32, .batched = true, .shape = x->shape, .axes = x->axes };
    if (x->batched) return TUTTI_OK;
    if (x->shape.rank == TUTTI_MAX_RANK)
        return fail(TUTTI_SHAPE, "custom operation '%s': a parameter has %d axes: %d are possible", custom->operation,
            x->shape.rank, TUTTI_MAX_RANK - 1);
    dx->axes = (struct axes) { 0 };
    dx->shape = (tutti_shape) { .rank = x->shape.rank + 1, .sizes = { dy->shape.sizes[0] } };
    for (int i = 0; i < x->shape.rank; i++) dx->shape.sizes[i + 1] = x->shape.sizes[i];
    return TUTTI_OK;
}

static tutti_status infer_gradient(const struct graph *graph, struct node *node, struct value *outputs)
{
    tutti_status status = TUTTI_OK;
    const struct custom *custom = custom_attributes(node)->custom;
    const struct value *dy = graph_at(graph, node->inputs[CUSTOM_DY]);
    TRY(check_items(custom, graph_at(graph, node->inputs[CUSTOM_X]), true));
    node->output_count = custom->inputs;
    for (int i = 0; i < custom->inputs; i++)
        TRY(infer_input(custom, graph_at(graph, node->inputs[CUSTOM_X + i]), dy, &outputs[i]));
done:
    return status;
}

static tutti_status gradient(struct graph *graph, const struct node *node, const struct node_gradients *g)
{
    const struct custom_attributes *a = custom_attributes(node);
    int inputs[GRAPH_MAX_INPUTS] = { [CUSTOM_Y] = node->outputs[0], [CUSTOM_DY] = g->outputs[0] };
    if (g->outputs[0] == NO_VALUE) return TUTTI_OK;
    if (!*a->custom->backward)
        return fail(TUTTI_INVALID,
            "custom operation '%s' has no backward, and what trains lies before it: give "
            "tutti_custom_options.backward, or freeze the layers before it",
            a->custom->operation);
    memcpy(inputs + CUSTOM_X, node->inputs, (size_t)node->input_count * sizeof *inputs);
    if (graph_append(graph, &operation_custom_gradient, a, inputs, CUSTOM_X + node->input_count, node->layer) ==
        NO_VALUE)
        return graph->status;
    int gradients[GRAPH_MAX_OUTPUTS];
    memcpy(gradients, graph_last(graph)->outputs, sizeof gradients);
    for (int i = 0; i < node->input_count; i++)
        if (g->wanted[i]) g->inputs[i] = broadcast_gradient(graph, gradients[i], node->inputs[i], node->layer);
    return graph->status;
}

/* ---------------------------------------------------------------------------------------------------- builder ---- */

/* Copies a text into memory of the graph; NULL becomes "". */
static tutti_status keep_text(struct graph *graph, const char *text, const char **kept)
{
    const size_t bytes = (text ? strlen(text) : 0) + 1;
    char *copy = graph_new(graph, bytes);
    if (!copy) return TUTTI_NO_MEMORY;
    if (text) memcpy(copy, text, bytes);
    *kept = copy;
    return TUTTI_OK;
}

/* Copies words that are separated by spaces. */
static tutti_status read_inputs(struct custom *custom, const char *text)
{
    for (const char *at = text; *(at += strspn(at, " ")) != '\0'; at += strcspn(at, " ")) {
        const size_t length = strcspn(at, " ");
        if (custom->inputs == CUSTOM_INPUTS)
            return fail(TUTTI_INVALID, "custom operation '%s': inputs are '%s': there can be at most %d",
                custom->operation, text, CUSTOM_INPUTS);
        if (length >= CUSTOM_NAME)
            return fail(TUTTI_INVALID, "custom operation '%s': the name of input %d is longer than %d bytes",
                custom->operation, custom->inputs, CUSTOM_NAME - 1);
        memcpy(custom->names[custom->inputs++], at, length);
    }
    return TUTTI_OK;
}

static tutti_status check_numbers(const struct custom *custom, tutti_shape shape)
{
    if (shape.rank < 0 || shape.rank >= TUTTI_MAX_RANK)
        return fail(TUTTI_SHAPE, "custom operation '%s': the shape has %d axes: 0 to %d are possible",
            custom->operation, shape.rank, TUTTI_MAX_RANK - 1);
    for (int i = 0; i < shape.rank; i++)
        if (shape.sizes[i] < 1 && shape.sizes[i] != TUTTI_SEQUENCE)
            return fail(TUTTI_SHAPE, "custom operation '%s': size %d of the shape is %" PRId64 ": it must be positive",
                custom->operation, i, shape.sizes[i]);
    for (int i = 0; i < 2; i++)
        if (custom->items[i] < 0 || custom->items[i] > INT32_MAX)
            return fail(TUTTI_INVALID, "custom operation '%s': %s_items is %" PRId64 ": 0 to 2147483647 are possible",
                custom->operation, i ? "backward" : "forward", custom->items[i]);
    if (!(custom->low < custom->high) || !isfinite(custom->low) || !isfinite(custom->high))
        return fail(TUTTI_INVALID, "custom operation '%s': the check's numbers are from %g to %g: low must be smaller",
            custom->operation, (double)custom->low, (double)custom->high);
    return TUTTI_OK;
}

/* Reads the options into memory of the graph. */
static tutti_status read(const tutti_custom_options *o, struct graph *graph, struct custom **made)
{
    tutti_status status = TUTTI_OK;
    struct custom *custom = *made = graph_new(graph, sizeof *custom);
    if (!custom) return TUTTI_NO_MEMORY;
    if (!o->operation || strlen(o->operation) >= CUSTOM_NAME)
        FAIL(TUTTI_INVALID, "tutti_custom_options.operation is %s: give a name of at most %d letters, digits and '_'",
            o->operation ? "too long" : "NULL", CUSTOM_NAME - 1);
    memcpy(custom->operation, o->operation, strlen(o->operation));
    if (!o->forward || !*o->forward) FAIL(TUTTI_INVALID, "custom operation '%s' has no forward", o->operation);
    TRY(read_inputs(custom, o->input_names ? o->input_names : "x"));
    TRY(keep_text(graph, o->attributes, &custom->attributes));
    TRY(keep_text(graph, o->source, &custom->source));
    TRY(keep_text(graph, o->forward, &custom->forward));
    TRY(keep_text(graph, o->backward, &custom->backward));
    TRY(custom_check_names(custom));
    custom->items[0] = o->forward_items;
    custom->items[1] = o->backward_items;
    custom->low = o->low == 0 && o->high == 0 ? -2 : o->low;
    custom->high = o->low == 0 && o->high == 0 ? 2 : o->high;
    custom->reference = o->reference;
    custom->user = o->user;
    custom->no_check = o->no_check;
    TRY(check_numbers(custom, o->shape));
done:
    return status;
}

/* The hash of what the operation computes. */
static int64_t hash_of(const struct custom *custom)
{
    const char *const texts[] = { custom->operation, custom->attributes, custom->source, custom->forward,
        custom->backward };
    uint64_t hash = XXH3_64bits_withSeed(custom->items, sizeof custom->items, (uint64_t)custom->inputs);
    hash = XXH3_64bits_withSeed(custom->names, sizeof custom->names, hash);
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
        hash = XXH3_64bits_withSeed(texts[i], strlen(texts[i]) + 1, hash);
    return (int64_t)hash;
}

/* Checks the tensors and sets the attributes. */
static tutti_status prepare(tutti_network *network, const tutti_tensor *inputs, int count,
    const tutti_custom_options *given, struct custom_attributes *attributes)
{
    tutti_status status = TUTTI_OK;
    tutti_custom_options options;
    struct custom *custom;
    TRY(OPTIONS_READ(&options, given, tutti_custom_options));
    TRY(read(&options, &network->graph, &custom));
    if (count != custom->inputs || !inputs)
        FAIL(TUTTI_INVALID, "custom operation '%s': it got %d inputs: it has names for %d", custom->operation, count,
            custom->inputs);
    int values[CUSTOM_INPUTS];
    for (int i = 0; i < count; i++) {
        if (!network_operand(network, inputs[i])) return network->status;
        values[i] = inputs[i].id;
    }
    *attributes = (struct custom_attributes) { .hash = hash_of(custom), .custom = custom };
    const struct value *with = first_batched(&network->graph, values, count);
    if (options.shape.rank == 0 || !with) goto done;
    attributes->shape = (tutti_shape) { .rank = options.shape.rank + 1, .sizes = { with->shape.sizes[0] } };
    memcpy(attributes->shape.sizes + 1, options.shape.sizes, (size_t)options.shape.rank * sizeof *options.shape.sizes);
done:
    return status;
}

tutti_tensor tutti_custom(
    tutti_network *network, const tutti_tensor *inputs, int input_count, const tutti_custom_options *options)
{
    struct custom_attributes attributes;
    int values[CUSTOM_INPUTS];
    if (!network_grows(network)) return (tutti_tensor) { NO_VALUE };
    if (!options) return network_fail(network, fail(TUTTI_INVALID, "tutti_custom() got options that are NULL"));
    const tutti_status status = prepare(network, inputs, input_count, options, &attributes);
    if (status != TUTTI_OK) return network_fail(network, status);
    for (int i = 0; i < input_count; i++) values[i] = inputs[i].id;
    const int layer = network_layer_begin(network, options->name, attributes.custom->operation);
    return network_append(network, layer, &operation_custom, &attributes, values, input_count);
}

/* --------------------------------------------------------------------------------------------- implementation ---- */

static void emit(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct custom_values values = custom_values(problem);
    const int count = values.custom->inputs, first = values.backward ? CUSTOM_X : 0;
    cl_mem buffers[2 * CUSTOM_INPUTS + 2];
    for (int i = 0; i < count; i++) buffers[i] = operands->inputs[first + i];
    buffers[count] = values.backward ? operands->inputs[CUSTOM_Y] : operands->outputs[0];
    buffers[count + 1] = operands->inputs[CUSTOM_DY];
    for (int i = 0; values.backward && i < count; i++) buffers[count + 2 + i] = operands->outputs[i];
    custom_launch(&values, values.backward, values.y->shape.sizes[0], buffers, list);
}

static const struct implementation bodies = {
    .name = "bodies",
    .emit = emit,
};

const struct operation operation_custom = {
    .name = "custom",
    .inputs = { { "x", PORT_REPEATED } },
    .outputs = { { "y" } },
    .attributes = &custom_attributes_type,
    .infer = infer,
    .gradient = gradient,
    .check = custom_check,
    .implementations = ONE(bodies),
};

const struct operation operation_custom_gradient = {
    .name = "custom_gradient",
    .inputs = { { "y" }, { "dy" }, { "x", PORT_REPEATED } },
    .outputs = { { "dx", PORT_OWN }, { "dx1", PORT_OWN }, { "dx2", PORT_OWN }, { "dx3", PORT_OWN }, { "dx4", PORT_OWN },
        { "dx5", PORT_OWN } },
    .attributes = &custom_attributes_type,
    .infer = infer_gradient,
    .check = custom_check,
    .implementations = ONE(bodies),
};
