/* Plans for other shares, built in the background. A thread runs the passes, compiles programs and makes kernels and
 * buffers while the device continues with its steps. Warming kernels up writes to buffers that these steps use, so it
 * waits until the plan is adopted between two steps. */
#include "replica/background.h"

#include "base/clock.h"
#include "base/memory.h"
#include "replica/replica.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MOMENT_S 1.0
#define LOST_S 1.0 /* longest wait for a plan of a lost device */

/* Checks that the device has memory for one more arena in addition to the present ones. */
static tutti_status check_room(struct replica *replica, const struct plan_options *options)
{
    size_t bytes = 0;
    const tutti_status status = plan_measure(replica->device, replica->setup->network, options, &bytes);
    if (status != TUTTI_OK || (options->arena && arena_bytes(options->arena) >= bytes)) return status;
    const uint64_t used = replica_memory(replica);
    if (used <= replica->device->can.memory_bytes && bytes <= replica->device->can.memory_bytes - used) return TUTTI_OK;
    return fail(
        TUTTI_DEVICE_MEMORY, "'%s' does not have enough memory for two plans at a time", replica->device->can.name);
}

static tutti_status make(struct replica *replica)
{
    tutti_status status = TUTTI_OK;
    struct background *background = &replica->background;
    plan_cache_lock(&replica->plans);
    if (background->sole) TRY(device_update_make(replica));
    if (!background->plan_wanted) goto done;
    TRY(check_room(replica, &background->options));
    TRY(plan_new(replica->device, replica->setup->network, &background->options, &background->plan));
done:
    plan_cache_unlock(&replica->plans);
    return status;
}

static void *serve(void *argument)
{
    struct replica *replica = argument;
    struct background *background = &replica->background;
    background->status = make(replica);
    if (background->status != TUTTI_OK)
        snprintf(background->message, sizeof(background->message), "%s", status_message());
    watchdog_lock(replica->setup->watchdog);
    background->done = true;
    watchdog_notify(replica->setup->watchdog);
    watchdog_unlock(replica->setup->watchdog);
    return NULL;
}

void background_start(struct replica *replica, struct bound_sizes sizes, bool sole)
{
    struct background *background = &replica->background;
    const int64_t samples_each = replica_micro_batch(replica, sizes.samples);
    const struct plan_key key = { PLAN_TRAIN, { samples_each, sizes.length } };
    *background = (struct background) { .seen = clock_seconds(),
        .sole = sole && !device_update_is_made(replica),
        .plan_wanted = !plan_cache_find(&replica->plans, key),
        .options = replica_options(replica, key) };
    if (!background->sole && !background->plan_wanted) return;
    background->options.cold = true;
    background->options.progress = NULL;                               /* nobody waits for it */
    if (background->options.arena) background->options.arena->users++; /* its plan may be dropped meanwhile */
    background->started = pthread_create(&background->thread, NULL, serve, replica) == 0;
    if (background->started) return;
    arena_free(background->options.arena);
    background->status = fail(TUTTI_NO_MEMORY, "cannot start a thread for a plan of device %d", replica->device->index);
}

/* Under the lock. Returns whether the thread has finished or has exceeded its limit. At most MOMENT_S of the time
 * between two checks counts. */
static bool is_over(struct replica *replica)
{
    struct background *background = &replica->background;
    const double now = clock_seconds();
    if (!background->started || background->done) return true;
    background->waited_s += fmin(now - background->seen, MOMENT_S);
    background->seen = now;
    const double limit = worker_build_limit(&replica->worker);
    if (background->waited_s <= (replica_is_lost(replica) ? fmin(limit, LOST_S) : limit)) return false;
    background->hangs = true;
    return true;
}

bool background_hangs(const struct replica *replica)
{
    return replica->background.hangs;
}

bool background_is_done(struct replica *replica)
{
    watchdog_lock(replica->setup->watchdog);
    const bool done = is_over(replica);
    watchdog_unlock(replica->setup->watchdog);
    return done;
}

/* Abandons a thread that is stuck in the driver, with all that it may use. */
static tutti_status let_go(struct replica *replica)
{
    pthread_detach(replica->background.thread);
    replica->background.status = TUTTI_DEVICE_LOST;
    return fail(TUTTI_DEVICE_LOST, "device %d, '%s', did not finish a plan within %.3g seconds", replica->device->index,
        replica->device->can.name, worker_build_limit(&replica->worker));
}

tutti_status background_wait(struct replica *replica)
{
    struct background *background = &replica->background;
    if (!background->started) return background->status;
    watchdog_lock(replica->setup->watchdog);
    while (!is_over(replica)) watchdog_wait(replica->setup->watchdog);
    const bool hangs = background->hangs;
    watchdog_unlock(replica->setup->watchdog);
    background->started = false;
    if (hangs) return let_go(replica);
    pthread_join(background->thread, NULL);
    arena_free(background->options.arena);
    background->options.arena = NULL;
    if (background->status != TUTTI_OK) status_set(background->status, background->message);
    return background->status;
}

tutti_status background_adopt(struct replica *replica, void *unused)
{
    (void)unused;
    tutti_status status = TUTTI_OK;
    struct background *background = &replica->background;
    TRY(gradients_unmap(replica)); /* warming up writes to gradients, and reads parameters */
    if (background->sole) TRY(device_update_warm_up(replica));
    if (!background->plan) goto done;
    TRY(plan_warm_up(background->plan));
    plan_cache_lock(&replica->plans);
    (void)replica_keep(replica, background->plan);
    plan_cache_unlock(&replica->plans);
    background->plan = NULL;
done:
    background->sole = false;
    return status;
}

tutti_status background_free(struct replica *replica)
{
    struct background *background = &replica->background;
    const tutti_status status = background_wait(replica);
    if (background->hangs) return status;
    plan_free(background->plan);
    background->plan = NULL;
    return TUTTI_OK;
}
