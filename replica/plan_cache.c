#include "replica/plan_cache.h"

#include <string.h>

void plan_cache_open(struct plan_cache *cache)
{
    *cache = (struct plan_cache) { .generation = 1 };
    pthread_mutex_init(&cache->making, NULL);
}

void plan_cache_free(struct plan_cache *cache)
{
    for (int i = 0; i < PLAN_CACHE_PLANS; i++) plan_free(cache->plans[i].plan);
}

void plan_cache_close(struct plan_cache *cache)
{
    pthread_mutex_destroy(&cache->making);
}

void plan_cache_lock(struct plan_cache *cache)
{
    pthread_mutex_lock(&cache->making);
}

void plan_cache_unlock(struct plan_cache *cache)
{
    pthread_mutex_unlock(&cache->making);
}

/* ------------------------------------------------------------------------------------------------- keeping ---- */

struct cached_plan *plan_cache_find(struct plan_cache *cache, struct plan_key key)
{
    for (int i = 0; i < PLAN_CACHE_PLANS; i++) {
        const struct plan *plan = cache->plans[i].plan;
        if (plan && plan->options.mode == key.mode && plan->options.sizes.samples == key.sizes.samples &&
            plan->options.sizes.length == key.sizes.length)
            return &cache->plans[i];
    }
    return NULL;
}

struct cached_plan *plan_cache_latest(struct plan_cache *cache)
{
    struct cached_plan *latest = NULL;
    for (int i = 0; i < PLAN_CACHE_PLANS; i++)
        if (cache->plans[i].plan && (!latest || cache->plans[i].used > latest->used)) latest = &cache->plans[i];
    return latest;
}

void plan_cache_use(struct plan_cache *cache, struct cached_plan *cached)
{
    cached->used = ++cache->clock;
}

static void drop(struct plan_cache *cache, struct cached_plan *cached)
{
    if (cache->last == cached->plan) cache->last = NULL;
    plan_free(cached->plan);
    memset(cached, 0, sizeof(*cached));
}

void plan_cache_drop(struct plan_cache *cache)
{
    for (int i = 0; i < PLAN_CACHE_PLANS; i++) drop(cache, &cache->plans[i]);
}

static struct cached_plan *make_place(struct plan_cache *cache)
{
    struct cached_plan *oldest = &cache->plans[0];
    for (int i = 0; i < PLAN_CACHE_PLANS; i++)
        if (cache->plans[i].used < oldest->used) oldest = &cache->plans[i]; /* an empty one was used at 0 */
    if (oldest->plan) drop(cache, oldest);
    return oldest;
}

void plan_cache_make_place(struct plan_cache *cache)
{
    (void)make_place(cache);
}

struct cached_plan *plan_cache_keep(struct plan_cache *cache, struct plan *plan)
{
    struct cached_plan *place = make_place(cache);
    *place = (struct cached_plan) { .plan = plan, .used = ++cache->clock };
    plan_cache_overwritten(cache); /* its kernels were warmed up */
    return place;
}

/* -------------------------------------------------------------------------------------------------- memory ---- */

struct arena *plan_cache_arena(const struct plan_cache *cache)
{
    struct arena *largest = NULL;
    for (int i = 0; i < PLAN_CACHE_PLANS && !cache->full; i++) {
        const struct plan *plan = cache->plans[i].plan;
        if (plan && (!largest || arena_bytes(plan->memory.arena) > arena_bytes(largest))) largest = plan->memory.arena;
    }
    return largest;
}

uint64_t plan_cache_bytes(const struct plan_cache *cache)
{
    const struct arena *seen[PLAN_CACHE_PLANS];
    int count = 0;
    uint64_t bytes = 0;
    for (int i = 0; i < PLAN_CACHE_PLANS; i++) {
        if (!cache->plans[i].plan) continue;
        const struct arena *arena = cache->plans[i].plan->memory.arena;
        bool known = false;
        for (int j = 0; j < count; j++) known |= seen[j] == arena;
        if (known) continue;
        seen[count++] = arena;
        bytes += arena_bytes(arena);
    }
    return bytes;
}

void plan_cache_mark_full(struct plan_cache *cache)
{
    cache->full = true;
}

bool plan_cache_empty(struct plan_cache *cache)
{
    if (!cache->full || pthread_mutex_trylock(&cache->making) != 0) return false;
    plan_cache_drop(cache);
    cache->full = false;
    pthread_mutex_unlock(&cache->making);
    return true;
}

/* ------------------------------------------------------------------------------------------- prepared data ---- */

void plan_cache_invalidate(struct plan_cache *cache)
{
    cache->generation++;
}

void plan_cache_overwritten(struct plan_cache *cache)
{
    cache->last = NULL;
}

tutti_status plan_cache_prepare(struct plan_cache *cache, struct cached_plan *cached)
{
    tutti_status status = TUTTI_OK;
    if (cached->plan->options.mode == PLAN_TRAIN) return TUTTI_OK;
    if (cache->last == cached->plan && cached->prepared == cache->generation) return TUTTI_OK;
    TRY(plan_prepare(cached->plan));
    cached->prepared = cache->generation;
done:
    return status;
}

void plan_cache_enqueued(struct plan_cache *cache, const struct cached_plan *cached)
{
    cache->last = cached->plan;
}

void plan_cache_ran(struct plan_cache *cache, struct plan_key key)
{
    struct cached_plan *cached = plan_cache_find(cache, key);
    if (cached) cached->ran = true;
}
