#include "train/feeds.h"

#include "base/memory.h"
#include "layers/layers.h"
#include "plan/start.h"

#include <string.h>

/* Arrays begin at multiples of it: a device may read them where they lie. */
#define FEED_ALIGNMENT 64

tutti_status feed_list_init(
    struct feed_list *list, const tutti_network *network, tutti_tensor output, const struct loss *loss)
{
    tutti_status status = TUTTI_OK;
    const struct graph *graph = &network->graph;
    int inputs[PLAN_MAX_FEEDS];
    *list = (struct feed_list) { 0 };
    TRY(plan_find_inputs(graph, inputs, &list->inputs));
    for (int i = 0; i < list->inputs; i++) list->bytes[i] = value_sample_bytes(graph_at(graph, inputs[i]));
    list->count = list->inputs;
    if (!loss) goto done;
    const struct value targets = loss_targets(loss, graph_at(graph, output.id));
    list->bytes[list->count++] = value_sample_bytes(&targets);
done:
    return status;
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
