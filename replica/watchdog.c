/* Waits for the jobs of devices, which may hang, up to their limits. */
#include "replica/watchdog.h"

#include "base/clock.h"
#include "base/numbers.h"
#include "replica/worker.h"

#include <math.h>
#include <time.h>

/* Time is counted in slices in which this thread was awake, so that a stopped process or a sleeping machine does not
 * look like a hanging device. */
#define SLICE_S 0.05

void watchdog_open(struct watchdog *watchdog, double (*progress)(void *user), void *user)
{
    pthread_condattr_t attributes;
    *watchdog = (struct watchdog) { .progress = progress, .user = user };
    pthread_mutex_init(&watchdog->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC); /* watchdog_wait() */
    pthread_cond_init(&watchdog->changed, &attributes);
    pthread_condattr_destroy(&attributes);
}

void watchdog_close(struct watchdog *watchdog)
{
    pthread_cond_destroy(&watchdog->changed);
    pthread_mutex_destroy(&watchdog->lock);
}

void watchdog_set_limits(struct watchdog *watchdog, double step_s, double build_s)
{
    watchdog->step_limit_s = step_s;
    watchdog->build_limit_s = build_s;
}

bool watchdog_has_limit(const struct watchdog *watchdog)
{
    return watchdog->step_limit_s > 0;
}

void watchdog_lock(struct watchdog *watchdog)
{
    pthread_mutex_lock(&watchdog->lock);
}

void watchdog_unlock(struct watchdog *watchdog)
{
    pthread_mutex_unlock(&watchdog->lock);
}

void watchdog_notify(struct watchdog *watchdog)
{
    pthread_cond_broadcast(&watchdog->changed);
}

static void give_up(struct worker *worker)
{
    worker->abandoned = true;
    worker->stop = true; /* its thread ends if it ever comes back */
    worker->status = TUTTI_DEVICE_LOST;
    number_print(worker->message, sizeof(worker->message),
        "device %d, '%s', did not finish its work within %.3g seconds: see the system's log; its memory is not freed "
        "before the program ends",
        worker->device->index, worker->device->can.name, worker->allowed_s);
    watchdog_notify(worker->watchdog);
}

void watchdog_wait(struct watchdog *watchdog)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    const double soon = watchdog->progress(watchdog->user);
    until.tv_nsec += (long)(1e9 * (soon > 0 ? soon : SLICE_S));
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    const double start = clock_seconds();
    (void)pthread_cond_timedwait(&watchdog->changed, &watchdog->lock, &until);
    const double passed = fmin(clock_seconds() - start, SLICE_S);
    for (struct worker *worker = watchdog->workers; worker; worker = worker->next) {
        if (!worker_is_busy_locked(worker) || worker->guarded || worker->waits) continue;
        worker->waited_s += passed;
        if (worker->waited_s > worker->allowed_s) give_up(worker);
    }
}
