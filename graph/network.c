#include "graph/network.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "graph/operation.h"
#include "tutti_inspect.h"

tutti_network *tutti_network_new(tutti_runtime *runtime)
{
    if (!runtime) { /* tutti_open() failed: its message tells why */
        if (!*status_message())
            fail(TUTTI_INVALID, "tutti_network_new() got a runtime that is NULL: open one with tutti_open()");
        return NULL;
    }
    tutti_network *network = memory_new(1, sizeof *network);
    if (!network) return NULL;
    network->runtime = runtime;
    graph_init(&network->graph);
    return network;
}

void tutti_network_free(tutti_network *network)
{
    if (!network || network->held) return;
    graph_free(&network->graph);
    for (size_t i = 0; i < network->parameter_count; i++) {
        free(network->parameters[i].name);
        free(network->parameters[i].values);
    }
    for (size_t i = 0; i < network->layer_count; i++) {
        free(network->layers[i].name);
        free(network->layers[i].operation);
    }
    for (size_t i = 0; i < network->output_count; i++) free(network->outputs[i].name);
    free(network->outputs);
    free(network->adapters.list);
    free(network->parameters);
    free(network->layers);
    free(network->scope.text);
    free(network->scope.ends);
    free(network->message);
    free(network);
}

tutti_status tutti_network_status(const tutti_network *network)
{
    if (network->status != TUTTI_OK && network->message) status_set(network->status, network->message);
    return network->status;
}

bool network_ok(tutti_network *network)
{
    return network && network->status == TUTTI_OK;
}

tutti_tensor network_fail(tutti_network *network, tutti_status status)
{
    if (network && network->status == TUTTI_OK) {
        const struct layer *last = network->layer_count ? &network->layers[network->layer_count - 1] : NULL;
        if (last && last->name && last->value == NO_VALUE)
            status_context(status, "layer %s", last->name); /* still open */
        network->status = status;
        network->message = memory_copy_text(status_message());
    }
    return (tutti_tensor) { NO_VALUE };
}

bool network_grows(tutti_network *network)
{
    if (!network_ok(network)) return false;
    if (network->trainers == 0) return true;
    network_fail(network,
        fail(TUTTI_INVALID,
            "the network cannot grow while a trainer uses it: add all layers, inputs and parameters before "
            "tutti_compile(), or free the trainer first"));
    return false;
}

void tutti_scope_push(tutti_network *network, const char *prefix)
{
    if (!network_ok(network)) return;
    if (!prefix || !text_is_utf8(prefix)) {
        network_fail(network,
            fail(TUTTI_INVALID, "tutti_scope_push() got a prefix that is NULL or not UTF-8: pass valid UTF-8"));
        return;
    }
    size_t before = network->scope.text ? strlen(network->scope.text) : 0;
    char *scope = memory_format("%s%s.", before ? network->scope.text : "", prefix);
    tutti_status status = memory_grow(
        (void **)&network->scope.ends, &network->scope.capacity, network->scope.depth + 1, sizeof *network->scope.ends);
    if (!scope || status != TUTTI_OK) {
        network_fail(network, TUTTI_NO_MEMORY);
        free(scope);
        return;
    }
    network->scope.ends[network->scope.depth++] = before;
    free(network->scope.text);
    network->scope.text = scope;
}

void tutti_scope_pop(tutti_network *network)
{
    if (!network_ok(network)) return;
    if (!network->scope.depth) {
        network_fail(
            network, fail(TUTTI_INVALID, "tutti_scope_pop() was called without a matching tutti_scope_push()"));
        return;
    }
    network->scope.text[network->scope.ends[--network->scope.depth]] = 0;
}

int network_layer_begin(tutti_network *network, const char *name, const char *operation)
{
    if (!network_grows(network)) return -1;
    if (memory_grow((void **)&network->layers, &network->layer_capacity, network->layer_count + 1,
            sizeof *network->layers) != TUTTI_OK) {
        network_fail(network, TUTTI_NO_MEMORY);
        return -1;
    }
    if (!name) name = network->layer_name;
    network->layer_name = NULL;
    if (name && !text_is_utf8(name)) {
        network_fail(network,
            fail(TUTTI_INVALID, "layer %zu (%s) has a name that is not UTF-8: files of weights need UTF-8 names",
                network->layer_count, operation));
        return -1;
    }
    struct layer *layer = &network->layers[network->layer_count];
    memset(layer, 0, sizeof *layer);
    layer->value = NO_VALUE;
    const char *scope = network->scope.text ? network->scope.text : "";
    layer->name =
        name ? memory_format("%s%s", scope, name) : memory_format("%s%s_%zu", scope, operation, network->layer_count);
    layer->operation = memory_copy_text(operation);
    network->layer_count++;
    if (!layer->name || !layer->operation) {
        network_fail(network, TUTTI_NO_MEMORY);
        return -1;
    }
    return (int)network->layer_count - 1;
}

tutti_tensor network_close(tutti_network *network, int layer, int value)
{
    if (value == NO_VALUE) return network_fail(network, network->graph.status);
    network->layers[layer].value = value;
    return (tutti_tensor) { value };
}

tutti_tensor network_append(tutti_network *network, int layer, const struct operation *operation,
    const void *attributes, const int *inputs, int input_count)
{
    if (!network_ok(network) || layer < 0) return (tutti_tensor) { NO_VALUE };
    return network_close(
        network, layer, graph_append(&network->graph, operation, attributes, inputs, input_count, layer));
}

tutti_status network_no_tensor(const tutti_network *network, tutti_tensor tensor)
{
    const tutti_status status = tutti_network_status(network);
    return status == TUTTI_OK ? fail(TUTTI_INVALID, "tensor %d is not of this network", tensor.id) : status;
}

const struct value *network_operand(tutti_network *network, tutti_tensor tensor)
{
    if (!network_ok(network)) return NULL;
    const struct value *value = graph_at(&network->graph, tensor.id);
    if (!value)
        network_fail(network,
            fail(TUTTI_INVALID,
                "a layer got tensor %d, which is not of this network: pass a tensor that this network returned",
                tensor.id));
    return value;
}

const struct value *network_value(tutti_network *network, tutti_tensor tensor)
{
    const struct value *value = network_operand(network, tensor);
    if (!value || value->role != ROLE_PARAMETER) return value;
    const bool constant = network->parameters[value->parameter].kind == PARAMETER_CONSTANT;
    network_fail(network,
        constant
            ? fail(TUTTI_INVALID, "a layer got the constant '%s' as its input: tutti_op() computes with constants",
                  value->name)
            : fail(TUTTI_INVALID, "a layer got the parameter '%s' as its input: pass it as the layer's weight or bias",
                  value->name));
    return NULL;
}

int *network_count_uses(const tutti_network *network, const int *from, int count)
{
    const struct graph *graph = &network->graph;
    bool *reached = graph_reaches(graph, from, count);
    int *uses = reached ? memory_new(network->parameter_count + 1, sizeof(*uses)) : NULL;
    for (size_t n = 0; uses && n < graph->node_count; n++) {
        const struct node *node = &graph->nodes[n];
        if (!node_is_reached(node, reached)) continue;
        for (int i = 0; i < node->input_count; i++) {
            const struct value *value = graph_at(graph, node->inputs[i]);
            if (value && value->parameter >= 0) uses[value->parameter]++;
        }
    }
    free(reached);
    return uses;
}

/* ---------------------------------------------------------------------------------------- what is in a network ---- */

int tutti_network_layers(const tutti_network *network)
{
    return (int)network->layer_count;
}

static tutti_shape without_batch(const struct value *value)
{
    tutti_shape shape = value->shape;
    if (!value->batched) return shape;
    shape.rank--;
    for (int i = 0; i < shape.rank; i++) shape.sizes[i] = shape.sizes[i + 1];
    return shape;
}

/* FLOPs of the layer's nodes for one sample, with a sequence length of 1. */
static tutti_status layer_flops(const tutti_network *network, int layer, double *flops)
{
    struct graph graph;
    tutti_status status = graph_bind(&network->graph, (struct bound_sizes) { 1, 1 }, &graph);
    if (status != TUTTI_OK) return status;
    *flops = 0;
    for (size_t n = 0; n < graph.node_count; n++) {
        const struct node *node = &graph.nodes[n];
        if (node->layer != layer || !node->operation->flops) continue;
        struct problem problem = { .node = node };
        for (int i = 0; i < node->input_count; i++) problem.inputs[i] = graph_at(&graph, node->inputs[i]);
        for (int i = 0; i < node->output_count; i++) problem.outputs[i] = graph_at(&graph, node->outputs[i]);
        *flops += node->operation->flops(&problem);
    }
    graph_free(&graph);
    return TUTTI_OK;
}

/* The layer that made the parameter; if the caller did, the first layer that reads it. -1: none does. */
static int layer_of(const tutti_network *network, int parameter)
{
    const struct graph *graph = &network->graph;
    if (network->parameters[parameter].layer >= 0) return network->parameters[parameter].layer;
    for (size_t n = 0; n < graph->node_count; n++)
        for (int i = 0; i < graph->nodes[n].input_count; i++) {
            const struct value *value = graph_at(graph, graph->nodes[n].inputs[i]);
            if (value && value->parameter == parameter) return graph->nodes[n].layer;
        }
    return -1;
}

tutti_status tutti_network_layer(const tutti_network *network, int position, tutti_layer_info *info)
{
    if (position < 0 || (size_t)position >= network->layer_count)
        return fail(TUTTI_INVALID, "layer %d does not exist: the network has %zu layers, counted from 0", position,
            network->layer_count);
    const struct layer *layer = &network->layers[position];
    memset(info, 0, sizeof *info);
    info->name = layer->name;
    info->operation = layer->operation;
    for (size_t i = 0; i < network->parameter_count; i++)
        if (network->parameters[i].kind == PARAMETER_TRAINED && layer_of(network, (int)i) == position)
            info->parameters += network->parameters[i].elements;
    const struct value *value = graph_at(&network->graph, layer->value);
    if (value) info->shape = without_batch(value);
    return layer_flops(network, position, &info->flops);
}

/* The layer that makes the value; -1: an input of the network; -2: a parameter, or nothing. */
static int producer_of(const struct graph *graph, int number)
{
    const struct value *value = graph_at(graph, number);
    if (!value) return -2;
    if (value->producer >= 0) return graph->nodes[value->producer].layer;
    return value->role == ROLE_INPUT ? -1 : -2;
}

static bool makes(const int *producers, int count, int producer)
{
    for (int i = 0; i < count; i++)
        if (producers[i] == producer) return true;
    return false;
}

tutti_status tutti_network_layer_input(const tutti_network *network, int position, int index, int *from)
{
    const struct graph *graph = &network->graph;
    int found = 0, producers[GRAPH_MAX_INPUTS * 4];
    if (position < 0 || (size_t)position >= network->layer_count || index < 0)
        return fail(TUTTI_INVALID, "layer %d has no input %d", position, index);
    for (size_t n = 0; n < graph->node_count; n++) {
        const struct node *node = &graph->nodes[n];
        if (node->layer != position) continue;
        for (int i = 0; i < node->input_count && found < GRAPH_MAX_INPUTS * 4; i++) {
            const int producer = producer_of(graph, node->inputs[i]);
            if (producer != -2 && producer != position && !makes(producers, found, producer))
                producers[found++] = producer;
        }
    }
    if (index >= found) return fail(TUTTI_INVALID, "layer %d has %d inputs, not %d", position, found, index + 1);
    *from = producers[index];
    return TUTTI_OK;
}

tutti_status tutti_shape_of(const tutti_network *network, tutti_tensor tensor, tutti_shape *shape)
{
    const struct value *value = graph_at(&network->graph, tensor.id);
    if (!value) return network_no_tensor(network, tensor);
    *shape = without_batch(value);
    return TUTTI_OK;
}
