/* The plans of a device: a cache of bounded size that evicts the least recently used plan. Plans share one arena, so
 * a plan's prepared data are valid until another plan runs or the parameters change. */
#ifndef REPLICA_PLAN_CACHE_H
#define REPLICA_PLAN_CACHE_H

#include "plan/plan.h"

#include <pthread.h>
#include <stdatomic.h>

enum { PLAN_CACHE_PLANS = 8 };

/* A plan serves all work with its key, and no other. */
struct plan_key {
    enum plan_mode mode;
    struct bound_sizes sizes;
};

struct cached_plan {
    struct plan *plan; /* NULL: the place is empty */
    uint64_t used;     /* when it was last used; 0: never */
    uint64_t prepared; /* the `generation` of its prepared data */
    bool ran;          /* to its end: all memory that it needs is allocated */
};

struct plan_cache {
    struct cached_plan plans[PLAN_CACHE_PLANS];
    uint64_t clock;          /* counts uses of plans */
    uint64_t generation;     /* counts changes of the parameters on the device */
    const struct plan *last; /* the plan that ran last; prepared data of others may be overwritten */
    pthread_mutex_t making;  /* one thread at a time makes plans, or drops them */
    atomic_bool full;        /* the device's memory was full: present plans are to be freed */
};

void plan_cache_open(struct plan_cache *cache);
void plan_cache_free(struct plan_cache *cache);  /* the plans */
void plan_cache_close(struct plan_cache *cache); /* everything else */

/* Returns the plan with this key, or NULL; returns the plan that was used last. */
struct cached_plan *plan_cache_find(struct plan_cache *cache, struct plan_key key);
struct cached_plan *plan_cache_latest(struct plan_cache *cache);
void plan_cache_use(struct plan_cache *cache, struct cached_plan *cached);
/* For a thread that makes plans, or waits for one that does. */
void plan_cache_lock(struct plan_cache *cache);
void plan_cache_unlock(struct plan_cache *cache);
/* Under that lock: drops the least recently used plan if the cache is full; drops all plans; adds a new plan. */
void plan_cache_make_place(struct plan_cache *cache);
void plan_cache_drop(struct plan_cache *cache);
struct cached_plan *plan_cache_keep(struct plan_cache *cache, struct plan *plan);

/* Returns the largest arena, which serves all plans, since only one of them runs at a time; NULL: there is none, or
 * it is to be freed. */
struct arena *plan_cache_arena(const struct plan_cache *cache);
uint64_t plan_cache_bytes(const struct plan_cache *cache); /* of the arenas */
/* Marks the present plans to be freed; does not call the driver, which may hang. */
void plan_cache_mark_full(struct plan_cache *cache);
/* Frees the marked plans. If a plan is being made, which may hang, frees nothing: try again later. Returns whether it
 * has freed them. */
bool plan_cache_empty(struct plan_cache *cache);

/* Invalidate prepared data: the parameters on the device have changed; its arena has been overwritten. */
void plan_cache_invalidate(struct plan_cache *cache);
void plan_cache_overwritten(struct plan_cache *cache);
/* Makes the device compute what inference derives from the parameters alone, unless it is still valid. Notes that the
 * plan's launches are enqueued; notes that they have run to their end. */
tutti_status plan_cache_prepare(struct plan_cache *cache, struct cached_plan *cached);
void plan_cache_enqueued(struct plan_cache *cache, const struct cached_plan *cached);
void plan_cache_ran(struct plan_cache *cache, struct plan_key key);

#endif
