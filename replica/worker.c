#include "replica/worker.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Limits, unless the caller sets them. A step: so many times as long as steps have taken, and at least a minute,
 * because other programs may use the device. A job that makes plans: half an hour, because some compilers are
 * slow. */
enum { STEP_FACTOR = 20, STEP_LEAST_S = 60, BUILD_S = 1800 };

/* -------------------------------------------------------------------------------------------- its life ---- */

void worker_open(struct worker *worker, struct watchdog *watchdog, struct replica *replica, const struct device *device)
{
    *worker = (struct worker) { .watchdog = watchdog, .replica = replica, .device = device };
    watchdog_lock(watchdog);
    worker->next = watchdog->workers;
    watchdog->workers = worker;
    watchdog_unlock(watchdog);
}

static void finish_job(struct worker *worker, tutti_status status)
{
    worker->busy = false;
    if (worker->abandoned) return; /* too late */
    worker->status = status;
    if (status != TUTTI_OK) snprintf(worker->message, sizeof(worker->message), "%s", status_message());
}

static void *serve(void *argument)
{
    struct worker *worker = argument;
    struct watchdog *watchdog = worker->watchdog;
    watchdog_lock(watchdog);
    while (true) {
        while (!worker->busy && !worker->stop) pthread_cond_wait(&worker->given, &watchdog->lock);
        if (!worker->busy) break;
        watchdog_unlock(watchdog);
        const tutti_status status = worker->job(worker->replica, worker->argument);
        watchdog_lock(watchdog);
        finish_job(worker, status);
        watchdog_notify(watchdog);
    }
    watchdog_unlock(watchdog);
    return NULL;
}

tutti_status worker_thread(struct worker *worker)
{
    pthread_cond_init(&worker->given, NULL);
    const int error = pthread_create(&worker->thread, NULL, serve, worker);
    if (error)
        return fail(TUTTI_NO_MEMORY, "cannot start a thread for device %d: %s", worker->device->index, strerror(error));
    worker->threaded = true;
    return TUTTI_OK;
}

bool worker_close(struct worker *worker)
{
    if (!worker->threaded) return true;
    watchdog_lock(worker->watchdog);
    worker->stop = true;
    const bool stuck = worker->abandoned && worker->busy;
    pthread_cond_signal(&worker->given);
    watchdog_unlock(worker->watchdog);
    if (stuck) {
        pthread_detach(worker->thread);
    } else {
        pthread_join(worker->thread, NULL);
        pthread_cond_destroy(&worker->given);
    }
    return !stuck;
}

/* ------------------------------------------------------------------------------------------------ jobs ---- */

void worker_start(struct worker *worker, worker_job *job, void *argument)
{
    if (!worker->threaded) {
        finish_job(worker, job(worker->replica, argument));
        return;
    }
    watchdog_lock(worker->watchdog);
    while (worker_is_busy_locked(worker)) watchdog_wait(worker->watchdog); /* a probe may still run */
    if (!worker->abandoned) {                                              /* else worker_wait() returns why it was */
        worker->job = job;
        worker->argument = argument;
        worker->busy = true;
        worker->waited_s = 0;
        worker->allowed_s = worker_build_limit(worker);
        pthread_cond_signal(&worker->given);
    }
    watchdog_unlock(worker->watchdog);
}

tutti_status worker_wait(struct worker *worker)
{
    watchdog_lock(worker->watchdog);
    while (worker_is_busy_locked(worker)) watchdog_wait(worker->watchdog);
    watchdog_unlock(worker->watchdog);
    if (worker->status != TUTTI_OK) status_set(worker->status, worker->message);
    return worker->status;
}

const char *worker_message(const struct worker *worker)
{
    return worker->message;
}

bool worker_is_busy_locked(const struct worker *worker)
{
    return worker->busy && !worker->abandoned;
}

bool worker_failed_locked(const struct worker *worker)
{
    return !worker_is_busy_locked(worker) && worker->status != TUTTI_OK;
}

bool worker_is_idle_locked(const struct worker *worker)
{
    return !worker->busy;
}

bool worker_is_abandoned_locked(const struct worker *worker)
{
    return worker->abandoned;
}

bool worker_is_busy(struct worker *worker)
{
    watchdog_lock(worker->watchdog);
    const bool busy = worker_is_busy_locked(worker);
    watchdog_unlock(worker->watchdog);
    return busy;
}

bool worker_is_abandoned(const struct worker *worker)
{
    watchdog_lock(worker->watchdog);
    const bool abandoned = worker->abandoned;
    watchdog_unlock(worker->watchdog);
    return abandoned;
}

bool worker_is_stuck(const struct worker *worker)
{
    if (!worker->threaded) return false;
    watchdog_lock(worker->watchdog);
    const bool stuck = worker->abandoned && worker->busy;
    watchdog_unlock(worker->watchdog);
    return stuck;
}

bool worker_has_thread(const struct worker *worker)
{
    return worker->threaded;
}

/* ---------------------------------------------------------------------------------------------- limits ---- */

double worker_build_limit(const struct worker *worker)
{
    const double given = worker->watchdog->build_limit_s;
    return given > 0 ? given : BUILD_S;
}

double worker_step_limit(const struct worker *worker, int64_t positions)
{
    const double given = worker->watchdog->step_limit_s;
    if (given > 0) return given;
    if (worker->pace_s == 0) return worker_build_limit(worker);
    return fmax(STEP_LEAST_S, STEP_FACTOR * worker->pace_s * (double)positions);
}

/* --------------------------------------------------------------------------------------- within a job ---- */

void worker_allow(struct worker *worker, double seconds)
{
    watchdog_lock(worker->watchdog);
    worker->allowed_s = seconds;
    worker->waited_s = 0;
    watchdog_unlock(worker->watchdog);
}

bool worker_guard(struct worker *worker)
{
    watchdog_lock(worker->watchdog);
    const bool guarded = worker->guarded = !worker->abandoned;
    watchdog_unlock(worker->watchdog);
    return guarded;
}

tutti_status worker_guard_or_fail(struct worker *worker)
{
    if (worker_guard(worker)) return TUTTI_OK;
    return fail(TUTTI_DEVICE_LOST, "the device was given up because it did not finish in time");
}

void worker_unguard(struct worker *worker)
{
    watchdog_lock(worker->watchdog);
    worker->guarded = false;
    watchdog_unlock(worker->watchdog);
}

void worker_wait_for_others(struct worker *worker)
{
    worker->waits = true;
    pthread_cond_wait(&worker->watchdog->changed, &worker->watchdog->lock);
    worker->waits = false;
}

void worker_note_pace(struct worker *worker, double seconds)
{
    if (seconds > worker->pace_s) worker->pace_s = seconds;
}
