#include "train/arrays.h"

#include "base/memory.h"

#include <string.h>

/* Arrays begin at multiples of it: a device may read them where they lie. */
#define ARRAY_ALIGNMENT 64

size_t arrays_offset(const struct array_list *list, int number, int64_t samples)
{
    size_t offset = 0;
    for (int i = 0; i < number; i++) offset += size_round_up((size_t)samples * list->bytes[i], ARRAY_ALIGNMENT);
    return offset;
}

size_t arrays_bytes(const struct array_list *list, int64_t samples)
{
    return arrays_offset(list, list->count, samples);
}

struct arrays arrays_from(const struct array_list *list, const struct arrays *arrays, int64_t first)
{
    struct arrays moved = { 0 };
    for (int i = 0; i < list->count; i++)
        if (arrays->at[i]) moved.at[i] = (unsigned char *)arrays->at[i] + (size_t)first * list->bytes[i];
    return moved;
}

struct arrays arrays_at(const struct array_list *list, void *memory, int64_t samples)
{
    struct arrays arrays = { 0 };
    for (int i = 0; i < list->count; i++) arrays.at[i] = (unsigned char *)memory + arrays_offset(list, i, samples);
    return arrays;
}

void arrays_copy(const struct array_list *list, const struct arrays *from, int64_t samples, const struct arrays *to)
{
    for (int i = 0; i < list->count; i++)
        if (from->at[i] && to->at[i]) memcpy(to->at[i], from->at[i], (size_t)samples * list->bytes[i]);
}

struct arrays arrays_pack(const struct array_list *list, const struct arrays *from, int64_t samples, void *memory)
{
    const struct arrays to = arrays_at(list, memory, samples);
    arrays_copy(list, from, samples, &to);
    return to;
}

bool arrays_equal(const struct arrays *a, const struct arrays *b)
{
    for (int i = 0; i < ARRAYS_MAX; i++)
        if (a->at[i] != b->at[i]) return false;
    return true;
}
