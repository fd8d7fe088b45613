#include "generate/walk.h"

#include "base/memory.h"
#include "layers/indices.h"
#include "layers/layers.h"

#include <stdio.h>
#include <string.h>

const struct value *walk_value(const struct walk *walk, int value)
{
    return graph_at(&walk->from->graph, value);
}

struct token_axes token_axes(const struct value *value)
{
    struct token_axes axes = { 0, -1, -1 };
    for (int i = 0; value && i < value->shape.rank; i++) {
        if (value->shape.sizes[i] != TUTTI_SEQUENCE) continue;
        *(axes.count++ == 0 ? &axes.row : &axes.column) = value->shape.rank - 1 - i;
    }
    return axes;
}

int walk_fail(struct walk *walk, tutti_status status)
{
    if (walk->status == TUTTI_OK) walk->status = status;
    return NO_VALUE;
}

int walk_refuse(struct walk *walk, const struct node *node, const char *why)
{
    const tutti_network *from = walk->from;
    const char *layer = node->layer >= 0 ? from->layers[node->layer].name : "a layer";
    return walk_fail(walk,
        fail(TUTTI_UNSUPPORTED, "a generator computes a text token by token, but '%s' (%s) %s", layer,
            node->operation->name, why));
}

static bool same_node(const struct node *node, const struct node *other)
{
    return node->operation == other->operation && node->input_count == other->input_count &&
        memcmp(node->inputs, other->inputs, sizeof node->inputs) == 0 &&
        attributes_equal(node->operation->attributes, &node->attributes, &other->attributes);
}

int walk_append(struct walk *walk, const struct operation *operation, const void *attributes, const int *inputs,
    int count, int layer)
{
    struct graph *graph = &walk->made->network->graph;
    struct node wanted = { .input_count = count };
    if (walk->status != TUTTI_OK) return NO_VALUE;
    node_set_operation(&wanted, operation, attributes);
    for (int i = 0; i < GRAPH_MAX_INPUTS; i++) wanted.inputs[i] = i < count ? inputs[i] : NO_VALUE;
    for (size_t n = graph->node_count; n-- > 0;)
        if (same_node(&graph->nodes[n], &wanted)) return graph->nodes[n].outputs[0];
    const int made = graph_append(graph, operation, attributes, inputs, count, layer);
    return made == NO_VALUE ? walk_fail(walk, graph->status) : made;
}

void walk_bind(const struct walk *walk, struct node *node, int keep)
{
    for (const struct attribute *member = attribute_members(node->operation->attributes); member->name; member++) {
        tutti_shape *shape = (void *)(node->attributes.bytes + member->offset);
        if (member->kind != ATTRIBUTE_SHAPE) continue;
        for (int i = 0, found = 0; i < shape->rank; i++)
            if (shape->sizes[i] == TUTTI_SEQUENCE && found++ >= keep) shape->sizes[i] = walk->capacity;
    }
}

/* -------------------------------------------------------------------------------------------------- states ---- */

int walk_state(struct walk *walk, tutti_shape shape)
{
    char name[32];
    snprintf(name, sizeof name, "state_%d", walk->made->network->input_count);
    const tutti_tensor input = tutti_input(walk->made->network, name, shape);
    return input.id < 0 ? walk_fail(walk, tutti_network_status(walk->made->network)) : input.id;
}

void walk_carry(struct walk *walk, int output, int input)
{
    struct decoding *made = walk->made;
    if (output == NO_VALUE || input == NO_VALUE) return;
    const tutti_status status =
        memory_grow((void **)&made->carries, &made->carry_capacity, made->carry_count + 1, sizeof *made->carries);
    if (status != TUTTI_OK)
        (void)walk_fail(walk, status);
    else
        made->carries[made->carry_count++] = (tutti_carry) { { output }, { input } };
}

/* A cache of a value: each call writes the rows of its tokens. */
static int cached(struct walk *walk, int value)
{
    const struct value *of = walk_value(walk, value);
    const struct node *node = of->producer >= 0 ? &walk->from->graph.nodes[of->producer] : NULL;
    const int rows = walk_local(walk, value), axis = of->shape.rank - 1 - token_axes(of).row;
    if (rows == NO_VALUE) return NO_VALUE;
    tutti_shape shape = { .rank = of->shape.rank - 1 };
    for (int i = 0; i < shape.rank; i++) shape.sizes[i] = i + 1 == axis ? walk->capacity : of->shape.sizes[i + 1];
    const int state = walk_state(walk, shape);
    const struct indexed_attributes attributes = { .kind = INDEXED_AXIS, .axis = axis, .reduction = SCATTER_NONE };
    const int inputs[] = { state, walk->made->positions.id, rows };
    const int written = walk_append(walk, &operation_scatter, &attributes, inputs, 3, node ? node->layer : -1);
    walk_carry(walk, written, state);
    return written;
}

/* --------------------------------------------------------------------------------------------------- forms ---- */

/* A copy of the node that makes the value, with the forms `inputs` of what it reads. */
static int copied(struct walk *walk, int value, const struct node *node, const int *inputs)
{
    const struct node *made;
    const int first =
        walk_append(walk, node->operation, node->attributes.bytes, inputs, node->input_count, node->layer);
    if (first == NO_VALUE) return NO_VALUE;
    made = &walk->made->network->graph.nodes[graph_at(&walk->made->network->graph, first)->producer];
    for (int i = 0; i < node->output_count; i++)
        if (node->outputs[i] == value) return made->outputs[i];
    return NO_VALUE;
}

static int make_whole(struct walk *walk, int value)
{
    const struct value *of = walk_value(walk, value);
    int inputs[GRAPH_MAX_INPUTS];
    if (of->parameter >= 0) return walk->parameters[of->parameter];
    if (of->producer < 0) return walk_fail(walk, fail(TUTTI_UNSUPPORTED, "a generator takes one input, the tokens"));
    struct node node = walk->from->graph.nodes[of->producer];
    if (walk->depends[value]) {
        if (of->rows > 1 || token_axes(of).count != 1)
            return walk_refuse(walk, &node, "computes one number of all tokens of a text");
        if (!walk->rules->moves(walk, &node)) return cached(walk, value);
        walk_bind(walk, &node, 0);
    } else {
        node = walk->bound.nodes[of->producer]; /* the same for all texts: computed once */
    }
    for (int i = 0; i < node.input_count; i++)
        inputs[i] = node.inputs[i] == NO_VALUE ? NO_VALUE : walk_whole(walk, node.inputs[i]);
    return copied(walk, value, &node, inputs);
}

static int reshaped(struct walk *walk, int x, tutti_shape shape, int layer)
{
    const struct value *value = graph_at(&walk->made->network->graph, x);
    struct reshape_attributes attributes = { .shape = shape };
    if (!value || shape_equal(value->shape, shape)) return x;
    const tutti_status status = reshape_resolve(value, &attributes);
    return status == TUTTI_OK ? walk_append(walk, &operation_reshape, &attributes, &x, 1, layer)
                              : walk_fail(walk, status);
}

int walk_align(struct walk *walk, int made, const struct value *from, int rank)
{
    const struct value *value = graph_at(&walk->made->network->graph, made);
    if (!value || from->batched || !value->batched || from->shape.rank >= rank) return made;
    tutti_shape shape = { .rank = rank + 1, .sizes = { value->shape.sizes[0] } };
    for (int i = 0; i < rank; i++) {
        const int at = i - (rank - from->shape.rank);
        shape.sizes[i + 1] = at < 0 ? 1 : value->shape.sizes[at + 1];
    }
    return reshaped(walk, made, shape, -1);
}

/* The rows of what depends on positions alone. */
static int rows_of_positions(struct walk *walk, int value)
{
    const struct value *of = walk_value(walk, value);
    const struct node *node = &walk->from->graph.nodes[of->producer];
    const int axis = of->shape.rank - 1 - token_axes(of).row;
    int64_t width = 1;
    tutti_shape shape = { .rank = of->shape.rank + 1, .sizes = { BATCH } };
    for (int i = 0; i < of->shape.rank; i++) {
        const int64_t size = of->shape.sizes[i];
        if (i < axis && size != 1) return walk_refuse(walk, node, "has positions behind another axis");
        shape.sizes[i + 1] = i > axis && size == TUTTI_SEQUENCE ? walk->capacity : size;
        if (i > axis) width *= shape.sizes[i + 1];
    }
    const int whole = walk_whole(walk, value);
    const int table = reshaped(walk, whole, TUTTI_SHAPE(walk->capacity, width), node->layer);
    const int inputs[] = { walk->made->positions.id, table };
    if (table == NO_VALUE) return NO_VALUE;
    return reshaped(walk, walk_append(walk, &operation_embedding, NULL, inputs, 2, node->layer), shape, node->layer);
}

/* What positions give must not depend on the length of the text, which grows. */
static bool fits_all_lengths(struct walk *walk, int value)
{
    const struct value *of = walk_value(walk, value);
    bool holds = true;
    if (of->producer < 0 || walk->depends[value] || token_axes(of).count == 0) return true;
    const tutti_status status = causal_check_lengths(&walk->causal, value, &holds);
    if (status != TUTTI_OK)
        (void)walk_fail(walk, status);
    else if (!holds)
        (void)walk_refuse(walk, &walk->from->graph.nodes[of->producer], "depends on the length of the text");
    return walk->status == TUTTI_OK;
}

static int make_local(struct walk *walk, int value)
{
    const struct value *of = walk_value(walk, value);
    const struct node *node = of->producer >= 0 ? &walk->from->graph.nodes[of->producer] : NULL;
    if (value == walk->ids) return walk->made->ids.id;
    if (!walk->depends[value]) {
        if (token_axes(of).count == 0) return walk_whole(walk, value);
        const bool elementwise = node && node->operation->pointwise;
        const bool reduces = node &&
            (node->operation == &operation_reduce_max || node->operation == &operation_reduce_min ||
                node->operation == &operation_reduce_sum);
        /* Elementwise work on masks stays what it is: patterns find attention by it. */
        if (!walk->wide[value] || !(elementwise || reduces)) return rows_of_positions(walk, value);
    }
    if (!node) return walk_fail(walk, fail(TUTTI_UNSUPPORTED, "a generator takes one input, the tokens"));
    for (int i = 0; i < node->output_count; i++)
        if (node->outputs[i] == value) return walk->rules->local(walk, node, i);
    return NO_VALUE;
}

static int form_of(struct walk *walk, int value, enum form form)
{
    int *known = &walk->forms[form][value];
    if (walk->status != TUTTI_OK) return NO_VALUE;
    if (*known == UNKNOWN) {
        if (!fits_all_lengths(walk, value)) return NO_VALUE;
        const int made = form == LOCAL ? make_local(walk, value) : make_whole(walk, value);
        if (made != NO_VALUE) *known = made;
        return made;
    }
    return *known;
}

int walk_local(struct walk *walk, int value)
{
    return form_of(walk, value, LOCAL);
}

int walk_whole(struct walk *walk, int value)
{
    return form_of(walk, value, WHOLE);
}
