#include "layers/epilogue.h"

#include "base/numbers.h"
#include "layers/conv2d/arguments/conv2d_same_layout.h"
#include "layers/conv2d/arguments/conv2d_tile_statistics.h"
#include "runtime/arguments.h"

#include <math.h>

/* Appends " -DNAME=value". */
static void append_option(char *buffer, size_t size, const char *name, float value)
{
    if (isinf(value))
        number_append(buffer, size, " -D%s=%sINFINITY", name, value < 0 ? "-" : "");
    else
        number_append(buffer, size, " -D%s=%.9ef", name, (double)value);
}

void append_bounds(struct nonlinearity function, char *buffer, size_t size)
{
    const bool clips = function.activation == ACTIVATION_CLIP;
    if (clips || function.activation == ACTIVATION_LEAKY_RELU) append_option(buffer, size, "LOW", function.low);
    if (clips) append_option(buffer, size, "HIGH", function.high);
}

const char *activation_options(struct nonlinearity function, char *buffer, size_t size)
{
    buffer[0] = '\0';
    number_append(buffer, size, "-DACTIVATE=%d", (int)function.activation);
    append_bounds(function, buffer, size);
    return buffer;
}

const char *mask_options(struct nonlinearity function, char *buffer, size_t size)
{
    buffer[0] = '\0';
    number_append(buffer, size, "-DMASK=%d", (int)function.activation);
    append_bounds(function, buffer, size);
    return buffer;
}

const char *epilogue_options_with(const struct node *node, struct nonlinearity function, char *buffer, size_t size)
{
    activation_options(function, buffer, size);
    number_append(buffer, size, " -DADD=%d", node && node_added(node) != NO_VALUE);
    return buffer;
}

const char *epilogue_options(const struct node *node, char *buffer, size_t size)
{
    const struct nonlinearity none = { 0 };
    return epilogue_options_with(node, node ? node_function(node, FUSION_ACTIVATION) : none, buffer, size);
}

bool keeps_zero(struct nonlinearity function)
{
    if (function.activation == ACTIVATION_CLIP) return function.low <= 0 && function.high >= 0;
    return function.activation != ACTIVATION_SIGMOID;
}

void fused_layouts(const struct node *node, enum value_layout layout, enum value_layout *inputs)
{
    for (int i = 0; i < node->input_count; i++)
        if (node->inputs[i] != NO_VALUE && node_input_port(node, i)->flags & PORT_SAME_LAYOUT) inputs[i] = layout;
}

const struct value *fused_input(const struct problem *problem, enum fusion_kind kind, int input)
{
    const struct fusion *fusion = node_fusion(problem->node, kind);
    return fusion ? problem->inputs[fusion->input + input] : NULL;
}

cl_mem fused_input_buffer(
    const struct problem *problem, const struct operands *operands, enum fusion_kind kind, int input)
{
    const struct fusion *fusion = node_fusion(problem->node, kind);
    return fusion ? operands->inputs[fusion->input + input] : NULL;
}

const struct value *fused_output(const struct problem *problem, enum fusion_kind kind)
{
    const struct fusion *fusion = node_fusion(problem->node, kind);
    return fusion ? problem->outputs[fusion->output] : NULL;
}

cl_mem fused_output_buffer(const struct problem *problem, const struct operands *operands, enum fusion_kind kind)
{
    const struct fusion *fusion = node_fusion(problem->node, kind);
    return fusion ? operands->outputs[fusion->output] : NULL;
}

/* GATE of the kernels: from which tensor they take the output of the activation whose derivative they apply. */
enum { GATE_NONE, GATE_NORMALISED, GATE_OF_SUM, GATE_MASK };
static int gate_of(const struct node *node)
{
    const struct fusion *gate = node_fusion(node, FUSION_GATE);
    if (gate) return node->inputs[gate->input + GATE_Y] != NO_VALUE ? GATE_OF_SUM : GATE_NORMALISED;
    return node_fusion(node, FUSION_MASK) ? GATE_MASK : GATE_NONE;
}

const char *result_options(const struct node *node, char *buffer, size_t size)
{
    const int gate = gate_of(node);
    char mask[EPILOGUE_OPTIONS];
    mask_options(node_function(node, gate == GATE_MASK ? FUSION_MASK : FUSION_GATE), mask, sizeof mask);
    buffer[0] = '\0';
    number_append(buffer, size, "-DSTATISTICS=%d -DGATE=%d %s", gives_statistics(node), gate, mask);
    return buffer;
}

ARGUMENTS(gate, GATE_ARGUMENTS)
ARGUMENTS(statistics, STATISTICS_ARGUMENTS)
ARGUMENTS(tile_statistics, TILE_STATISTICS_ARGUMENTS)
ARGUMENTS(normalise, NORMALISE_ARGUMENTS)
#define FUSED_VALUE(kind, input) fused_input_buffer(problem, operands, kind, input)

void result_arguments(struct launch *launch, const struct problem *problem, const struct operands *operands)
{
    const int gate = gate_of(problem->node);
    if (gate)
        ARGUMENTS_SET(launch, gate,
            .x = gate == GATE_MASK ? FUSED_VALUE(FUSION_MASK, 0) : FUSED_VALUE(FUSION_GATE, GATE_X),
            .gamma = FUSED_VALUE(FUSION_GATE, GATE_GAMMA), .beta = FUSED_VALUE(FUSION_GATE, GATE_BETA),
            .mean = FUSED_VALUE(FUSION_GATE, GATE_MEAN), .rstd = FUSED_VALUE(FUSION_GATE, GATE_RSTD),
            .output = FUSED_VALUE(FUSION_GATE, GATE_Y), .channels = problem->outputs[0]->shape.sizes[CHANNEL_AXIS],
            .statistics = fused_output_buffer(problem, operands, FUSION_GATE));
    else if (gives_statistics(problem->node))
        ARGUMENTS_SET(launch, statistics, .statistics = fused_output_buffer(problem, operands, FUSION_STATISTICS));
}

bool gives_statistics(const struct node *node)
{
    return node_fusion(node, FUSION_STATISTICS) != NULL;
}

void statistics_arguments(struct launch *launch, const struct problem *problem, const struct operands *operands)
{
    if (gives_statistics(problem->node))
        ARGUMENTS_SET(launch, tile_statistics, .statistics = fused_output_buffer(problem, operands, FUSION_STATISTICS),
            .stride = fused_output(problem, FUSION_STATISTICS)->shape.sizes[2]);
}

const char *normalised_option(const struct node *node)
{
    return node_fusion(node, FUSION_NORMALISED) ? "-DNORMALISE=1" : "-DNORMALISE=0";
}

void normalised_arguments(struct launch *launch, const struct problem *problem, const struct operands *operands)
{
    if (!node_fusion(problem->node, FUSION_NORMALISED)) return;
    ARGUMENTS_SET(launch, normalise, .gamma = FUSED_VALUE(FUSION_NORMALISED, NORMALISED_GAMMA),
        .beta = FUSED_VALUE(FUSION_NORMALISED, NORMALISED_BETA),
        .mean = FUSED_VALUE(FUSION_NORMALISED, NORMALISED_MEAN),
        .rstd = FUSED_VALUE(FUSION_NORMALISED, NORMALISED_RSTD),
        .channels = problem->inputs[0]->shape.sizes[CHANNEL_AXIS]);
}
