/* What a replica's plans are made with, and where they are kept. */
#include "replica/replica.h"

/* Reports to the caller, unless the device was given up: the caller may have left. */
static void report_building(void *user, int built, int total)
{
    struct replica *replica = user;
    if (!worker_guard(&replica->worker)) return;
    replica->setup->building(replica->setup->building_user, built, total);
    worker_unguard(&replica->worker);
}

struct plan_options replica_options(struct replica *replica, struct plan_key key)
{
    return (struct plan_options) { .mode = key.mode,
        .sizes = key.sizes,
        .objective = *replica->setup->objective,
        .exact = replica->setup->exact,
        .recompute = replica->setup->recompute,
        .synchronised =
            replica->setup->whole_batch && replica->setup->exchange && key.sizes.samples < replica->setup->batch,
        .precision = replica->setup->precision,
        .parameters = replica->parameters,
        .frozen = replica->frozen,
        .gradients = key.mode == PLAN_TRAIN ? gradients_buffer(&replica->gradients, false) : NULL,
        .progress = replica->setup->building ? report_building : NULL,
        .user = replica,
        .arena = plan_cache_arena(&replica->plans) };
}

struct cached_plan *replica_keep(struct replica *replica, struct plan *plan)
{
    replica->report.build_s += plan->build_seconds;
    return plan_cache_keep(&replica->plans, plan);
}
