#include "replica/arrays.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

/* Arrays begin at multiples of it, because a device may read them in place. */
#define ARRAY_ALIGNMENT 64

void arrays_add(struct array_list *list, const struct value *value)
{
    list->bytes[list->count] = value_sample_bytes(value);
    list->sequences[list->count++] = shape_sequences(&value->shape);
}

size_t arrays_sample_bytes(const struct array_list *list, int number, int64_t length)
{
    size_t bytes = list->bytes[number];
    for (int i = 0; i < list->sequences[number]; i++) bytes *= (size_t)length;
    return bytes;
}

size_t arrays_offset(const struct array_list *list, int number, struct bound_sizes sizes)
{
    size_t offset = 0;
    for (int i = 0; i < number; i++)
        offset += size_round_up((size_t)sizes.samples * arrays_sample_bytes(list, i, sizes.length), ARRAY_ALIGNMENT);
    return offset;
}

size_t arrays_bytes(const struct array_list *list, struct bound_sizes sizes)
{
    return arrays_offset(list, list->count, sizes);
}

struct arrays arrays_from(const struct array_list *list, const struct arrays *arrays, int64_t first)
{
    struct arrays moved = { .length = arrays->length };
    for (int i = 0; i < list->count; i++)
        if (arrays->at[i])
            moved.at[i] = (unsigned char *)arrays->at[i] + (size_t)first * arrays_sample_bytes(list, i, arrays->length);
    return moved;
}

struct arrays arrays_at(const struct array_list *list, void *memory, struct bound_sizes sizes)
{
    struct arrays arrays = { .length = sizes.length };
    for (int i = 0; i < list->count; i++) arrays.at[i] = (unsigned char *)memory + arrays_offset(list, i, sizes);
    return arrays;
}

void arrays_copy(const struct array_list *list, const struct arrays *from, int64_t samples, const struct arrays *to)
{
    for (int i = 0; i < list->count; i++)
        if (from->at[i] && to->at[i])
            memcpy(to->at[i], from->at[i], (size_t)samples * arrays_sample_bytes(list, i, from->length));
}

struct arrays arrays_pack(const struct array_list *list, const struct arrays *from, int64_t samples, void *memory)
{
    const struct arrays to = arrays_at(list, memory, (struct bound_sizes) { samples, from->length });
    arrays_copy(list, from, samples, &to);
    return to;
}

tutti_status arrays_reserve(
    const struct array_list *list, struct bound_sizes sizes, bool keep, struct arrays_memory *memory)
{
    const size_t bytes = arrays_bytes(list, sizes);
    if (memory->bytes >= bytes) return TUTTI_OK;
    void *larger = memory_new(bytes, 1);
    if (!larger) return TUTTI_NO_MEMORY;
    if (!keep) free(memory->at);
    *memory = (struct arrays_memory) { larger, bytes };
    return TUTTI_OK;
}

bool arrays_equal(const struct arrays *a, const struct arrays *b)
{
    for (int i = 0; i < ARRAYS_MAX; i++)
        if (a->at[i] != b->at[i]) return false;
    return a->length == b->length;
}
