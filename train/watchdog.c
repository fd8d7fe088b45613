/* Waiting for devices, which may hang: the trainer's thread, which waits for jobs no longer than they may take, notices
 * it. The device is given up, with the thread that is stuck in its driver and all that this thread may still use. What
 * goes on between ranks is moved on meanwhile. */
#include "train/sync_ranks.h"
#include "train/trainer.h"

#include "base/numbers.h"
#include "base/threads.h"

#include <math.h>
#include <stdio.h>
#include <time.h>

/* Without a limit by the caller: of a step, so many times as long as steps have taken, and never less than a minute,
 * because other programs may use the device; of a job that makes plans, half an hour: some compilers are slow. */
enum { STEP_FACTOR = 20, STEP_LEAST_S = 60, BUILD_S = 1800 };
/* Time is counted in slices in which this thread was awake, so that a stopped process or a sleeping machine does not
 * look like a hanging device. */
#define SLICE_S 0.05
#define PROGRESS_S 0.0005
#define ROUND_S 0.0001 /* devices have nothing to do meanwhile */

double watch_build_limit(const struct replica *replica)
{
    const double given = replica->trainer->build_limit_s;
    return given > 0 ? given : BUILD_S;
}

double watch_step_limit(const struct replica *replica, int64_t samples)
{
    const double given = replica->trainer->step_limit_s;
    if (replica->pace_s == 0) return watch_build_limit(replica); /* its first step: drivers compile in it, too */
    return given > 0 ? given : fmax(STEP_LEAST_S, STEP_FACTOR * replica->pace_s * (double)samples);
}

/* Under the lock. */
static void give_up(struct replica *replica)
{
    replica->abandoned = true;
    replica->stop = true; /* its thread ends if it ever comes back */
    replica->attends = false;
    replica->status = TUTTI_DEVICE_LOST;
    number_print(replica->message, sizeof(replica->message),
        "device %d, '%s', did not finish its work within %.3g seconds: see the system's log; its memory is not freed "
        "before the program ends",
        replica->device->index, replica->device->can.name, replica->allowed_s);
    pthread_cond_broadcast(&replica->trainer->changed);
}

void watch_wait(tutti_trainer *trainer)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    /* What goes on between ranks does so only while somebody looks after it. */
    const bool round = rounds_carry(trainer), sums = trainer->world && hosts_progress(trainer->world->hosts);
    until.tv_nsec += (long)(1e9 * (round ? ROUND_S : sums ? PROGRESS_S : SLICE_S));
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    const double start = clock_seconds();
    (void)pthread_cond_timedwait(&trainer->changed, &trainer->lock, &until);
    const double passed = fmin(clock_seconds() - start, SLICE_S);
    for (int i = 0; i < trainer->count; i++) {
        struct replica *replica = &trainer->replicas[i];
        if (!replica->busy || replica->abandoned || replica->guarded || replica->waits) continue;
        replica->waited_s += passed;
        if (replica->waited_s > replica->allowed_s) give_up(replica);
    }
}
