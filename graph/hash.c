/* A hash of a network's graph, by which processes find out that they train the same network. */
#include "graph/graph.h"
#include "graph/operation.h"

#include <string.h>
#include <xxhash.h>

static uint64_t text_hash(const char *text, uint64_t hash)
{
    return XXH3_64bits_withSeed(text, strlen(text), hash);
}

static uint64_t shape_hash(const tutti_shape *shape, uint64_t hash)
{
    return XXH3_64bits_withSeed(
        shape->sizes, (size_t)shape->rank * sizeof(*shape->sizes), hash + (uint64_t)shape->rank);
}

static uint64_t value_hash(const struct value *value, uint64_t hash)
{
    const int64_t numbers[] = { value->role, value->type, value->batched, value->rows, value->producer,
        value->parameter };
    hash = XXH3_64bits_withSeed(numbers, sizeof(numbers), hash);
    hash = shape_hash(&value->shape, hash);
    return value->role == ROLE_INPUT && value->name ? text_hash(value->name, hash) : hash;
}

/* Member by member, as attributes_equal() compares. */
static uint64_t attributes_hash(const struct node *node, uint64_t hash)
{
    for (const struct attribute *member = attribute_members(node->operation->attributes); member->name; member++) {
        const void *at = node->attributes.bytes + member->offset;
        if (member->kind == ATTRIBUTE_POINTER) continue;
        hash = member->kind == ATTRIBUTE_SHAPE ? shape_hash(at, hash) : XXH3_64bits_withSeed(at, member->bytes, hash);
    }
    return hash;
}

static uint64_t node_hash(const struct node *node, uint64_t hash)
{
    hash = attributes_hash(node, text_hash(node->operation->name, hash));
    hash = XXH3_64bits_withSeed(node->inputs, (size_t)node->input_count * sizeof(*node->inputs), hash);
    return XXH3_64bits_withSeed(node->outputs, (size_t)node->output_count * sizeof(*node->outputs), hash);
}

uint64_t graph_hash(const struct graph *graph, const bool *reached, uint64_t seed)
{
    uint64_t hash = seed;
    for (size_t i = 0; i < graph->value_count; i++)
        if (reached[i]) hash = value_hash(&graph->values[i], hash);
    for (size_t n = 0; n < graph->node_count; n++)
        if (node_is_reached(&graph->nodes[n], reached)) hash = node_hash(&graph->nodes[n], hash);
    return hash;
}
