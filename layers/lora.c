/* tutti_lora(): low-rank adapters of the dense layers of a network that is built (Hu et al., "LoRA: Low-Rank
 * Adaptation of Large Language Models", 2021). y = x W^T becomes x W^T + scale (dropout(x) A^T) B^T.
 * train/adapter.c writes them to files. */
#include "base/memory.h"
#include "base/options.h"
#include "base/text.h"
#include "graph/edit.h"
#include "graph/network.h"
#include "layers/append.h"
#include "layers/layers.h"
#include "tutti_finetune.h"

#include <string.h>

/* A product of samples with a weight. */
struct product_of {
    int weight;      /* number of the parameter; -1: the node is no such product */
    bool transposed; /* the weight has a row for each feature of the input, instead of one for each of the output */
};

/* Follows transposes of a matrix back to the parameter. */
static struct product_of find_weight(const struct graph *graph, int id, bool transposed)
{
    const struct value *value = graph_at(graph, id);
    while (value && value->shape.rank == 2 && value->producer >= 0 &&
        graph->nodes[value->producer].operation == &operation_transpose) {
        const struct node *node = &graph->nodes[value->producer];
        const struct transpose_attributes *attributes = transpose_attributes(node);
        if (attributes->order[0] == 1) transposed = !transposed;
        value = graph_at(graph, node->inputs[0]);
    }
    const bool found = value && value->role == ROLE_PARAMETER && value->shape.rank == 2;
    return (struct product_of) { .weight = found ? value->parameter : -1, .transposed = transposed };
}

static struct product_of product_of(const tutti_network *network, const struct node *node)
{
    struct product_of none = { .weight = -1 };
    if (node->operation == &operation_dense) return find_weight(&network->graph, node->inputs[1], false);
    if (node->operation != &operation_matmul || matmul_attributes(node)->transpose_a) return none;
    return find_weight(&network->graph, node->inputs[1], !matmul_attributes(node)->transpose_b);
}

static bool is_like(const tutti_network *network, struct product_of product, const char *pattern)
{
    return product.weight >= 0 && !network_is_factor(network, product.weight) &&
        parameter_matches(&network->parameters[product.weight], pattern);
}

/* Whether the node reads the product's weight for something else: as a table of embeddings, or the other way round. An
 * adapter of the product would not be what is added to the weight there. */
static bool reads_otherwise(const tutti_network *network, const struct node *node, struct product_of product)
{
    const struct product_of own = product_of(network, node);
    if (node->operation == &operation_transpose && find_weight(&network->graph, node->outputs[0], false).weight >= 0)
        return false; /* what reads the transpose is looked at itself */
    for (int i = 0; i < node->input_count; i++) {
        if (find_weight(&network->graph, node->inputs[i], false).weight != product.weight) continue;
        if (i != 1 || own.weight != product.weight || own.transposed != product.transposed) return true;
    }
    return false;
}

static bool is_shared(const tutti_network *network, struct product_of product)
{
    for (size_t n = 0; n < network->graph.node_count; n++)
        if (reads_otherwise(network, &network->graph.nodes[n], product)) return true;
    return false;
}

static bool matches(const tutti_network *network, const struct node *node, const char *pattern)
{
    const struct product_of product = product_of(network, node);
    return is_like(network, product, pattern) && !is_shared(network, product);
}

/* ------------------------------------------------------------------------------------------------- parameters ---- */

static struct adapter *find_adapter(const tutti_network *network, int weight)
{
    for (size_t i = 0; i < network->adapters.count; i++)
        if (network->adapters.list[i].weight == weight) return &network->adapters.list[i];
    return NULL;
}

/* Adds the parameter "layer.lora_A.weight" or "layer.lora_B.weight" for the weight "layer.weight"; returns its number,
 * or -1 after a failure. */
static int add_factor(tutti_network *network, int weight, const char *which, int64_t rows, int64_t columns)
{
    static const char end[] = ".weight";
    const char *name = network->parameters[weight].name;
    const size_t length = strlen(name) - (text_ends_with(name, end) ? strlen(end) : 0);
    const struct parameter factor = { .name = memory_format("%.*s.lora_%s.weight", (int)length, name, which),
        .layer = network->parameters[weight].layer,
        .shape = TUTTI_SHAPE(rows, columns),
        .init = *which == 'A' ? TUTTI_INIT_DEFAULT : TUTTI_INIT_ZEROS,
        .fan_in = columns,
        .fan_out = rows };
    const int value = network_add_parameter(network, factor, NULL);
    return value == NO_VALUE ? -1 : graph_at(&network->graph, value)->parameter;
}

static struct adapter *add_adapter(tutti_network *network, struct product_of product, const tutti_lora_options *options)
{
    const tutti_shape shape = network->parameters[product.weight].shape;
    const int64_t outputs = shape.sizes[product.transposed], inputs = shape.sizes[!product.transposed];
    const tutti_status status = memory_grow((void **)&network->adapters.list, &network->adapters.capacity,
        network->adapters.count + 1, sizeof(*network->adapters.list));
    if (status != TUTTI_OK) {
        network_fail(network, status);
        return NULL;
    }
    const struct adapter adapter = { .weight = product.weight,
        .down = add_factor(network, product.weight, "A", options->rank, inputs),
        .up = add_factor(network, product.weight, "B", outputs, options->rank),
        .transposed = product.transposed,
        .scale = options->alpha == 0 ? 1 : options->alpha / (float)options->rank,
        .dropout = options->dropout };
    if (network->status != TUTTI_OK) return NULL;
    network->adapters.list[network->adapters.count] = adapter;
    return &network->adapters.list[network->adapters.count++];
}

/* ------------------------------------------------------------------------------------------------------ nodes ---- */

/* Where nodes are inserted: each append_...() puts a node at the end, and insert() moves it here. */
struct insertion {
    struct append_context context;
    size_t place;
};

static int insert(struct insertion *at, int value)
{
    if (value != NO_VALUE) edit_move_last(at->context.graph, at->place++);
    return value;
}

/* Makes node n write a new value, and the sum of that and the adapter's what it wrote: callers may hold that one. */
static void adapt(tutti_network *network, size_t n, const struct adapter *adapter)
{
    struct graph *graph = &network->graph;
    struct insertion at = { { network, graph, graph->nodes[n].layer }, n + 1 };
    const int result = graph->nodes[n].outputs[0];
    int x = graph->nodes[n].inputs[0];
    if (adapter->dropout > 0) x = insert(&at, append_dropout(&at.context, x, adapter->dropout));
    x = insert(&at, append_two(&at.context, &operation_dense, x, network->parameters[adapter->down].value));
    x = insert(&at, append_two(&at.context, &operation_dense, x, network->parameters[adapter->up].value));
    if (adapter->scale != 1) x = insert(&at, append_number(&at.context, &operation_scale, x, adapter->scale));
    const int sum = insert(&at, append_two(&at.context, &operation_add, result, x));
    if (sum == NO_VALUE) return;
    struct node *addition = &graph->nodes[at.place - 1];
    graph->nodes[n].outputs[0] = addition->inputs[0] = sum;
    addition->outputs[0] = result;
    graph_at(graph, sum)->producer = (int)n;
    graph_at(graph, result)->producer = (int)at.place - 1;
}

/* --------------------------------------------------------------------------------------------------- builder ---- */

static tutti_status refuse_pattern(const tutti_network *network, const char *pattern)
{
    for (size_t n = 0; n < network->graph.node_count; n++) {
        const struct product_of product = product_of(network, &network->graph.nodes[n]);
        if (is_like(network, product, pattern))
            return fail(TUTTI_INVALID,
                "'%s' is used otherwise, too, as a table of embeddings or transposed: it can have no adapter",
                network->parameters[product.weight].name);
    }
    return fail(TUTTI_INVALID,
        "no dense layer has a weight with a name like '%s': tutti_parameter_info() lists parameters", pattern);
}

static tutti_status check_options(const tutti_network *network, const char *pattern, tutti_lora_options *options)
{
    int found = 0;
    if (!pattern || !*pattern) return fail(TUTTI_INVALID, "the pattern is empty: pass \"*\" for all dense layers");
    if (options->rank == 0) options->rank = 8;
    if (options->rank < 1 || options->rank > 65536)
        return fail(TUTTI_INVALID, "the rank of an adapter is %lld: 1 to 65536 are possible", (long long)options->rank);
    if (!(options->alpha >= 0 && options->alpha <= 1e6f))
        return fail(TUTTI_INVALID, "alpha of an adapter is %g: it must be positive and finite, or 0 for the rank",
            (double)options->alpha);
    if (!(options->dropout >= 0 && options->dropout < 1))
        return fail(
            TUTTI_INVALID, "the dropout of an adapter is %g: 0 to below 1 are possible", (double)options->dropout);
    for (size_t n = 0; n < network->graph.node_count; n++) {
        if (!matches(network, &network->graph.nodes[n], pattern)) continue;
        const int weight = product_of(network, &network->graph.nodes[n]).weight;
        if (find_adapter(network, weight))
            return fail(TUTTI_INVALID, "'%s' has an adapter already: call tutti_lora() once for a parameter",
                network->parameters[weight].name);
        found++;
    }
    return found > 0 ? TUTTI_OK : refuse_pattern(network, pattern);
}

tutti_status tutti_lora(tutti_network *network, const char *pattern, const tutti_lora_options *given)
{
    tutti_status status;
    tutti_lora_options options;
    TRY(network_check_idle(network));
    TRY(OPTIONS_READ(&options, given, tutti_lora_options));
    TRY(check_options(network, pattern, &options));
    for (size_t i = 0; i < network->parameter_count; i++)
        if (network->parameters[i].kind == PARAMETER_TRAINED && !network_is_factor(network, (int)i))
            network->parameters[i].kind = PARAMETER_FROZEN;
    for (size_t n = 0; n < network->graph.node_count && network->status == TUTTI_OK; n++) {
        if (!matches(network, &network->graph.nodes[n], pattern)) continue;
        const struct product_of product = product_of(network, &network->graph.nodes[n]);
        struct adapter *adapter = find_adapter(network, product.weight);
        if (!adapter) adapter = add_adapter(network, product, &options);
        if (adapter) adapt(network, n, adapter);
        if (network->graph.status != TUTTI_OK) network_fail(network, network->graph.status);
    }
    status = network->status;
done:
    return status;
}
