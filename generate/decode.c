#include "generate/decode.h"

#include "base/memory.h"
#include "generate/rules.h"
#include "graph/twin.h"

#include <stdlib.h>
#include <string.h>

static bool same_constant(const struct parameter *a, const struct parameter *b)
{
    return b->kind == PARAMETER_CONSTANT && a->type == b->type && shape_equal(a->shape, b->shape) && a->values &&
        b->values && memcmp(a->values, b->values, (size_t)a->elements * sizeof *a->values) == 0;
}

/* Each layer of attention makes masks of its own, from equal constants: they become one mask. */
static void find_parameters(struct walk *walk)
{
    const tutti_network *made = walk->made->network;
    for (size_t i = 0; i < made->parameter_count; i++) {
        const struct parameter *parameter = &made->parameters[i];
        walk->parameters[i] = parameter->value;
        for (size_t j = 0; parameter->kind == PARAMETER_CONSTANT && j < i; j++) {
            if (!same_constant(parameter, &made->parameters[j])) continue;
            walk->parameters[i] = made->parameters[j].value;
            break;
        }
    }
}

/* What depends on inputs, and what is made of values with two axes of tokens. */
static void mark_values(struct walk *walk)
{
    const struct graph *graph = &walk->from->graph;
    for (size_t v = 0; v < graph->value_count; v++) {
        const enum value_role role = graph->values[v].role;
        walk->depends[v] = role == ROLE_INPUT || role == ROLE_CONSTANTS;
        walk->wide[v] = token_axes(&graph->values[v]).count > 1;
        walk->forms[LOCAL][v] = walk->forms[WHOLE][v] = UNKNOWN;
    }
    for (size_t n = 0; n < graph->node_count; n++) {
        const struct node *node = &graph->nodes[n];
        for (int i = 0; i < node->input_count; i++)
            for (int o = 0; node->inputs[i] != NO_VALUE && o < node->output_count; o++) {
                walk->depends[node->outputs[o]] |= walk->depends[node->inputs[i]];
                walk->wide[node->outputs[o]] |= walk->wide[node->inputs[i]];
            }
    }
}

static tutti_status check(const tutti_network *from, tutti_tensor ids, tutti_tensor logits, int64_t capacity)
{
    const struct value *input = graph_at(&from->graph, ids.id), *output = graph_at(&from->graph, logits.id);
    if (from->status != TUTTI_OK) return tutti_network_status(from);
    if (!input || input->role != ROLE_INPUT || input->type != TYPE_I32 || input->shape.rank != 2 ||
        input->shape.sizes[1] != TUTTI_SEQUENCE)
        return fail(TUTTI_INVALID, "the tokens of a generator are an input of int32, [TUTTI_SEQUENCE]");
    if (!output || !output->batched || output->shape.rank != 3 || output->shape.sizes[1] != TUTTI_SEQUENCE ||
        output->shape.sizes[2] == TUTTI_SEQUENCE)
        return fail(TUTTI_SHAPE, "the logits of a generator are [TUTTI_SEQUENCE, vocabulary]: the network has others");
    if (capacity < 1 || capacity > INT32_MAX)
        return fail(
            TUTTI_INVALID, "the longest text of a generator has %lld tokens: it needs at least 1", (long long)capacity);
    return TUTTI_OK;
}

static tutti_status open_walk(struct walk *walk)
{
    tutti_status status = TUTTI_OK;
    const struct graph *graph = &walk->from->graph;
    tutti_network *network = walk->made->network;
    const int64_t sequence = TUTTI_SEQUENCE;
    TRY(graph_bind(graph, (struct bound_sizes) { 1, walk->capacity }, &walk->bound));
    walk->depends = memory_new(graph->value_count + 1, sizeof *walk->depends);
    walk->wide = memory_new(graph->value_count + 1, sizeof *walk->wide);
    walk->parameters = memory_new(network->parameter_count + 1, sizeof *walk->parameters);
    for (int i = 0; i < FORMS; i++) walk->forms[i] = memory_new(graph->value_count + 1, sizeof *walk->forms[i]);
    if (!walk->depends || !walk->wide || !walk->parameters || !walk->forms[LOCAL] || !walk->forms[WHOLE])
        return TUTTI_NO_MEMORY;
    walk->made->ids = tutti_input_typed(network, "ids", TUTTI_DTYPE_I32, &sequence, 1);
    walk->made->positions = tutti_input_typed(network, "positions", TUTTI_DTYPE_I32, &sequence, 1);
    find_parameters(walk);
    mark_values(walk);
    TRY(causal_open(&walk->causal, walk->from, walk->depends, walk->capacity));
    status = tutti_network_status(network);
done:
    return status;
}

static void close_walk(struct walk *walk)
{
    graph_free(&walk->bound);
    causal_close(&walk->causal);
    free(walk->depends);
    free(walk->wide);
    free(walk->parameters);
    for (int i = 0; i < FORMS; i++) free(walk->forms[i]);
}

/* The walk goes from a value to what it is made of. Values are walked to in their order, so that it never goes far. */
static void walk_all(struct walk *walk, const bool *reached)
{
    const struct graph *graph = &walk->from->graph;
    for (size_t n = 0; n < graph->node_count && walk->status == TUTTI_OK; n++) {
        const struct node *node = &graph->nodes[n];
        if (!node_is_reached(node, reached) || token_axes(graph_at(graph, node->outputs[0])).count != 1) continue;
        if (walk->depends[node->outputs[0]]) (void)walk_local(walk, node->outputs[0]);
    }
}

tutti_status decode_make(
    const tutti_network *from, tutti_tensor ids, tutti_tensor logits, int64_t capacity, struct decoding *made)
{
    bool *reached = NULL;
    struct walk walk = { .rules = &token_rules, .from = from, .made = made, .capacity = capacity, .ids = ids.id };
    *made = (struct decoding) { 0 };
    tutti_status status = check(from, ids, logits, capacity);
    if (status != TUTTI_OK) return status;
    graph_init(&walk.bound);
    graph_init(&walk.causal.shorter.graph);
    graph_init(&walk.causal.longer.graph);
    made->network = network_twin(from);
    reached = graph_reaches(&from->graph, &logits.id, 1);
    if (!made->network || !reached) FAIL(TUTTI_NO_MEMORY, "there is no memory for the network of a generator");
    TRY(open_walk(&walk));
    walk_all(&walk, reached);
    made->logits.id = walk_local(&walk, logits.id);
    TRY(walk.status);
    status = tutti_network_status(made->network);
done:
    close_walk(&walk);
    free(reached);
    if (status != TUTTI_OK) decode_free(made);
    return status;
}

void decode_free(struct decoding *made)
{
    tutti_network_free(made->network);
    free(made->carries);
    *made = (struct decoding) { 0 };
}
