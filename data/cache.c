#include "data/cache.h"

#include "base/memory.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct cache {
    size_t slots;
    int64_t limit;
    _Atomic(int64_t) used;
    _Atomic(struct cached *) entries[];
};

tutti_status cache_new(struct cache **made, size_t slots, int64_t limit)
{
    size_t bytes;
    if (!size_multiply(slots, sizeof(_Atomic(struct cached *)), &bytes) ||
        !size_add(bytes, sizeof(struct cache), &bytes))
        return TUTTI_NO_MEMORY;
    struct cache *cache = memory_new(bytes, 1);
    if (!cache) return TUTTI_NO_MEMORY;
    cache->slots = slots;
    cache->limit = limit;
    for (size_t i = 0; i < slots; i++) atomic_init(&cache->entries[i], NULL);
    *made = cache;
    return TUTTI_OK;
}

void cache_free(struct cache *cache)
{
    if (!cache) return;
    for (size_t i = 0; i < cache->slots; i++) free(atomic_load(&cache->entries[i]));
    free(cache);
}

const struct cached *cache_find(const struct cache *cache, size_t slot)
{
    return atomic_load_explicit(&cache->entries[slot], memory_order_acquire);
}

void cache_keep(struct cache *cache, size_t slot, const struct cached *head, const void *data)
{
    size_t bytes;
    struct cached *none = NULL;
    if (cache_find(cache, slot) || !size_add(head->bytes, sizeof(*head), &bytes) || bytes > INT64_MAX / 2) return;
    const int64_t cost = (int64_t)bytes;
    if (atomic_fetch_add(&cache->used, cost) > cache->limit - cost) {
        atomic_fetch_sub(&cache->used, cost);
        return;
    }
    struct cached *copy = malloc(bytes);
    if (copy) {
        *copy = *head;
        memcpy(copy->data, data, head->bytes);
        if (atomic_compare_exchange_strong(&cache->entries[slot], &none, copy)) return;
        free(copy);
    }
    atomic_fetch_sub(&cache->used, cost);
}
