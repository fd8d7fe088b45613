#include "graph/fusion.h"

#include <string.h>

#include "base/invariant.h"
#include "graph/operation.h"

static const struct kind {
    const char *name;
    struct port inputs[GATE_INPUTS];
    struct port output;
} kinds[FUSION_KINDS] = {
    [FUSION_NORMALISED] = { "normalised", .inputs = { { "gamma" }, { "beta" }, { "mean" }, { "rstd" } } },
    [FUSION_MASKED] = { "masked", .inputs = { { "y", PORT_OPTIONAL | PORT_SAME_LAYOUT }, { "beta" } },
        .output = { "dadd", PORT_SAME_LAYOUT } },
    [FUSION_GIVEN] = { "given", .inputs = { { "statistics" } } },
    [FUSION_ADD] = { "add" },
    [FUSION_MASK] = { "mask", .inputs = { { "z", PORT_SAME_LAYOUT } } },
    [FUSION_GATE] = { "gate",
        .inputs = { { "x", PORT_SAME_LAYOUT }, { "gamma" }, { "beta", PORT_OPTIONAL }, { "mean", PORT_ZERO_IN_TRIALS },
            { "rstd" }, { "z", PORT_OPTIONAL | PORT_SAME_LAYOUT } },
        .output = { "statistics" } },
    [FUSION_STATISTICS] = { "statistics", .output = { "statistics" } },
    [FUSION_BIAS] = { "bias gradient", .output = { "db" } },
    [FUSION_WEIGHTS] = { "weight gradient", .output = { "dw" } },
};

static int input_count(enum fusion_kind kind)
{
    int count = 0;
    while (count < GATE_INPUTS && kinds[kind].inputs[count].name) count++;
    return count;
}

/* Returns the first position after the ports of the operation and those of earlier fusions. */
static int free_place(const struct port *ports, int most, int used)
{
    int named = 0;
    while (named < most && ports[named].name) named++;
    return named > used ? named : used;
}

void node_fuse(struct node *node, struct fusion fusion, const int *inputs, int output)
{
    const struct operation *operation = node->operation;
    const int count = input_count(fusion.kind);
    fusion.input = free_place(operation->inputs, GRAPH_MAX_INPUTS, node->input_count);
    fusion.output = free_place(operation->outputs, GRAPH_MAX_OUTPUTS, node->output_count);
    INVARIANT(!node_fusion(node, fusion.kind)); /* so that there is room for each */
    INVARIANT(!count || fusion.input + count <= GRAPH_MAX_INPUTS);
    INVARIANT(!kinds[fusion.kind].output.name || fusion.output < GRAPH_MAX_OUTPUTS);
    for (int i = 0; i < count; i++) node->inputs[fusion.input + i] = inputs[i];
    if (count) node->input_count = fusion.input + count;
    if (kinds[fusion.kind].output.name) {
        node->outputs[fusion.output] = output;
        node->output_count = fusion.output + 1;
    }
    int place = node->fusion_count++;
    for (; place > 0 && node->fusions[place - 1].kind > fusion.kind; place--)
        node->fusions[place] = node->fusions[place - 1];
    node->fusions[place] = fusion;
}

void node_separate(struct node *node, unsigned kept)
{
    int count = 0;
    for (int k = 0; k < node->fusion_count; k++) {
        const struct fusion *fusion = &node->fusions[k];
        if (kept >> fusion->kind & 1) {
            node->fusions[count++] = *fusion;
            continue;
        }
        for (int i = 0; i < input_count(fusion->kind); i++) node->inputs[fusion->input + i] = NO_VALUE;
        if (kinds[fusion->kind].output.name) node->outputs[fusion->output] = NO_VALUE;
    }
    node->fusion_count = count;
    while (node->input_count > 0 && !node_input_port(node, node->input_count - 1)) node->input_count--;
    while (node->output_count > 0 && !node_output_port(node, node->output_count - 1)) node->output_count--;
}

const char *fusion_name(enum fusion_kind kind)
{
    return kinds[kind].name;
}

const char *activation_name(enum activation activation)
{
    static const char *const names[] = { "none", "relu", "clip", "leaky_relu", "sigmoid", "tanh" };
    return names[activation];
}

const struct fusion *node_fusion(const struct node *node, enum fusion_kind kind)
{
    for (int k = 0; k < node->fusion_count; k++)
        if (node->fusions[k].kind == kind) return &node->fusions[k];
    return NULL;
}

unsigned node_fusions(const struct node *node)
{
    unsigned set = 0;
    for (int k = 0; k < node->fusion_count; k++) set |= 1u << node->fusions[k].kind;
    return set;
}

struct nonlinearity node_function(const struct node *node, enum fusion_kind kind)
{
    const struct fusion *fusion = node_fusion(node, kind);
    return fusion ? fusion->function : (struct nonlinearity) { 0 };
}

int node_added(const struct node *node)
{
    const struct fusion *fusion = node_fusion(node, FUSION_ADD);
    return fusion ? fusion->added : NO_VALUE;
}

void node_set_added(struct node *node, int value)
{
    for (int k = 0; k < node->fusion_count; k++)
        if (node->fusions[k].kind == FUSION_ADD) node->fusions[k].added = value;
}

const struct port *node_input_port(const struct node *node, int i)
{
    for (int k = 0; k < node->fusion_count; k++) {
        const struct fusion *fusion = &node->fusions[k];
        const int place = i - fusion->input;
        if (place >= 0 && place < input_count(fusion->kind)) return &kinds[fusion->kind].inputs[place];
    }
    return operation_input(node->operation, i);
}

const struct port *node_output_port(const struct node *node, int i)
{
    const struct port *port = &node->operation->outputs[i];
    for (int k = 0; k < node->fusion_count; k++) {
        const struct fusion *fusion = &node->fusions[k];
        if (i == fusion->output && kinds[fusion->kind].output.name) return &kinds[fusion->kind].output;
    }
    return port->name ? port : NULL;
}
