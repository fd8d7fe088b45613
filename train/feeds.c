#include "train/feeds.h"

#include "base/memory.h"
#include "layers/layers.h"

#include <string.h>

/* Arrays begin at multiples of it: a device may read them where they lie. */
#define FEED_ALIGNMENT 64

tutti_status feed_list_init(
    struct feed_list *list, const tutti_network *network, tutti_tensor output, const struct loss *loss)
{
    const struct graph *graph = &network->graph;
    *list = (struct feed_list) { 0 };
    for (size_t i = 0; i < graph->value_count; i++) {
        if (graph->values[i].role != ROLE_INPUT) continue;
        if (list->count + 1 == PLAN_MAX_FEEDS) /* one is for targets */
            return fail(TUTTI_INVALID, "the network has more than %d inputs: join some with tutti_concat()",
                PLAN_MAX_FEEDS - 1);
        list->bytes[list->count++] = value_sample_bytes(&graph->values[i]);
    }
    list->inputs = list->count;
    if (list->inputs == 0) return fail(TUTTI_INVALID, "the network has no input: add one with tutti_input()");
    if (!loss) return TUTTI_OK;
    const struct value targets = loss_targets(loss, graph_at(graph, output.id));
    list->bytes[list->count++] = value_sample_bytes(&targets);
    return TUTTI_OK;
}

size_t feeds_offset(const struct feed_list *list, int feed, int64_t samples)
{
    size_t offset = 0;
    for (int i = 0; i < feed; i++) offset += size_round_up((size_t)samples * list->bytes[i], FEED_ALIGNMENT);
    return offset;
}

size_t feeds_bytes(const struct feed_list *list, int64_t samples)
{
    return feeds_offset(list, list->count, samples);
}

struct feeds feeds_from(const struct feed_list *list, const struct feeds *feeds, int64_t first)
{
    struct feeds moved = { 0 };
    for (int i = 0; i < list->count; i++)
        if (feeds->arrays[i])
            moved.arrays[i] = (const unsigned char *)feeds->arrays[i] + (size_t)first * list->bytes[i];
    return moved;
}

struct feeds feeds_at(const struct feed_list *list, const void *memory, int64_t samples)
{
    struct feeds feeds = { 0 };
    for (int i = 0; i < list->count; i++)
        feeds.arrays[i] = (const unsigned char *)memory + feeds_offset(list, i, samples);
    return feeds;
}

void feeds_copy(const struct feed_list *list, const struct feeds *from, int64_t samples, void *memory)
{
    for (int i = 0; i < list->count; i++)
        if (from->arrays[i])
            memcpy((unsigned char *)memory + feeds_offset(list, i, samples), from->arrays[i],
                (size_t)samples * list->bytes[i]);
}

bool feeds_equal(const struct feeds *a, const struct feeds *b)
{
    for (int i = 0; i < PLAN_MAX_FEEDS; i++)
        if (a->arrays[i] != b->arrays[i]) return false;
    return true;
}
