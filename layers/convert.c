/* cast: converts any type to floats. convert: the same with scale and shift for each channel, or to int32. */
#include "clkernels/arguments/convert.h"
#include "base/memory.h"
#include "base/options.h"
#include "graph/network.h"
#include "layers/elementwise.h"
#include "layers/interpreter/interpreter.h"
#include "layers/layers.h"
#include "layers/loop/loop.h"
#include "runtime/arguments.h"

#include <math.h>

ATTRIBUTES_DESCRIBE(convert, ATTRIBUTE(convert, INT, channels), ATTRIBUTE(convert, NUMBERS, scale),
    ATTRIBUTE(convert, NUMBERS, shift), ATTRIBUTE(convert, OTHER, type))

static tutti_status infer(const struct graph *graph, struct node *node, struct value *outputs)
{
    const struct value *x = graph_at(graph, node->inputs[0]);
    const enum value_type type = convert_attributes(node)->type;
    outputs[0] = (struct value) { .type = type, .batched = x->batched, .shape = x->shape, .axes = x->axes };
    return TUTTI_OK;
}

static tutti_status infer_cast(const struct graph *graph, struct node *node, struct value *outputs)
{
    const struct value *x = graph_at(graph, node->inputs[0]);
    outputs[0] = (struct value) { .type = TYPE_F32, .batched = x->batched, .shape = x->shape, .axes = x->axes };
    return TUTTI_OK;
}

/* Floats stay as they are, with their gradient. */
tutti_tensor tutti_cast(tutti_network *network, tutti_tensor x, tutti_dtype dtype)
{
    const struct value *value = network_operand(network, x);
    if (!value) return (tutti_tensor) { NO_VALUE };
    if (value->type == TYPE_F32 && dtype == TUTTI_DTYPE_F32) return x;
    const int layer = network_layer_begin(network, NULL, "convert");
    if (dtype != TUTTI_DTYPE_F32 && dtype != TUTTI_DTYPE_I32)
        return network_fail(network, fail(TUTTI_INVALID, "tutti_cast() converts to f32 or i32 only"));
    const struct convert_attributes attributes = { .type = TYPE_I32 };
    const bool is_integer = value->type == TYPE_U8 || value->type == TYPE_BOOL || value->type == TYPE_I32;
    if (dtype == TUTTI_DTYPE_I32 && !is_integer)
        return network_fail(network, fail(TUTTI_INVALID, "convert: only u8, bool and i32 become i32"));
    if (dtype == TUTTI_DTYPE_F32) return network_append(network, layer, &operation_cast, NULL, &x.id, 1);
    return network_append(network, layer, &operation_convert, &attributes, &x.id, 1);
}

static tutti_status read_options(
    const struct value *x, const tutti_normalise_options *options, struct convert_attributes *convert)
{
    tutti_status status = TUTTI_OK;
    const float scale = options->scale != 0 ? options->scale : 1;
    const bool statistics = options->mean || options->std;
    convert->channels = statistics ? options->channels : 1;
    if (convert->channels < 1 || convert->channels > CONVERT_CHANNELS)
        FAIL(TUTTI_INVALID, "channels is %d: mean and std are for 1 to %d channels", options->channels,
            CONVERT_CHANNELS);
    if (statistics && (x->shape.rank <= CHANNEL_AXIS || x->shape.sizes[CHANNEL_AXIS] != convert->channels))
        FAIL(TUTTI_SHAPE, "mean and std have %d channels, but the input has another number on its first axis",
            convert->channels);
    for (int c = 0; c < convert->channels; c++) {
        const float mean = options->mean ? options->mean[c] : 0, deviation = options->std ? options->std[c] : 1;
        convert->scale[c] = scale / deviation;
        convert->shift[c] = -mean / deviation;
        if (!isfinite(convert->scale[c]) || !isfinite(convert->shift[c]))
            FAIL(TUTTI_INVALID, "channel %d has mean %g and std %g: they must be finite, and std not 0", c,
                (double)mean, (double)deviation);
    }
done:
    return status;
}

tutti_tensor tutti_normalise(tutti_network *network, tutti_tensor x, const tutti_normalise_options *given)
{
    tutti_normalise_options options;
    struct convert_attributes attributes = { .type = TYPE_F32 };
    const struct value *value = network_value(network, x);
    if (!value) return (tutti_tensor) { NO_VALUE };
    tutti_status status = OPTIONS_READ(&options, given, tutti_normalise_options);
    const int layer = network_layer_begin(network, status == TUTTI_OK ? options.name : NULL, "normalise");
    if (status == TUTTI_OK && value->role != ROLE_INPUT)
        status = fail(TUTTI_INVALID, "tutti_normalise() takes an input of the network, and this is another tensor");
    if (status == TUTTI_OK) status = read_options(value, &options, &attributes);
    if (status != TUTTI_OK) return network_fail(network, status);
    return network_append(network, layer, &operation_convert, &attributes, &x.id, 1);
}

/* ------------------------------------------------------------------------------------------- implementations ---- */

ARGUMENTS(convert, CONVERT_ARGUMENTS)

static void emit_channel(
    const struct problem *problem, const struct operands *operands, struct launch_list *list, int channel)
{
    static const char *const types[] = { "F32", "I32", "U8", "F32", "F16", "BF16", "BOOL" };
    const struct value *x = problem->inputs[0];
    const struct convert_attributes *a = convert_attributes(problem->node);
    const int64_t elements = value_elements(x), samples = x->shape.sizes[0], channels = a->channels;
    const bool divided = channels > 1;
    const int64_t n = divided ? elements / samples / channels : elements;
    const int64_t chunk = elementwise_task_floats(problem->device, n);
    struct launch *launch = launch_add(
        list, "convert", "convert", "-DFROM_%s -DTO_I32=%d", types[x->type], problem->outputs[0]->type == TYPE_I32);
    ARGUMENTS_SET(launch, convert, .x = operands->inputs[0], .y = operands->outputs[0],
        .scale = channels ? (double)a->scale[channel] : 1, .shift = channels ? (double)a->shift[channel] : 0, .n = n,
        .stride = n * channels, .first = n * channel, .chunk = chunk);
    const int64_t planes = divided ? samples : 1;
    if (problem->device->class == DEVICE_CPU)
        launch_tasks(launch, (size_t)divide_up(n, chunk), (size_t)planes, 1);
    else
        items_launch(launch, problem->device, 256, n, planes);
    launch_work(
        launch, 2 * (double)n * (double)planes, (double)n * (double)planes * (4 + (double)value_type_bytes(x->type)));
}

static void emit(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const int channels = convert_attributes(problem->node)->channels;
    for (int c = 0; c < channels || c == 0; c++) emit_channel(problem, operands, list, c);
}

static const struct implementation elements = {
    .name = "elements",
    .emit = emit,
};

const struct operation operation_convert = {
    .name = "convert",
    .inputs = { { "x", PORT_ANY_TYPE } },
    .outputs = { { "y" } },
    .attributes = &convert_attributes_type,
    .infer = infer,
    .reference = interpret_convert,
    .implementations = ONE(elements),
};

static void describe_cast(const struct problem *problem, struct loop *loop)
{
    loop_begin(loop, problem->outputs[0]);
    loop_add_operand(loop, problem, 0);
}

const struct operation operation_cast = {
    .name = "cast",
    .inputs = { { "x", PORT_ANY_TYPE } },
    .outputs = { { "y" } },
    .infer = infer_cast,
    .loop = describe_cast,
    .implementations = loop_implementations,
};
