/* What is done about devices that fail. Nothing is updated before every part of a step has succeeded, so whatever goes
 * wrong, the step is done again, from the same samples and parameters.
 *
 * - An error: the device is lost, the others do the step.
 * - No memory: the device stays and takes fewer samples at once. CL_OUT_OF_RESOURCES may mean this, too: see
 *   replica_doubt().
 * - A hang: the trainer's thread, which waits for jobs no longer than they may take, notices it. The device is given
 *   up, with the thread that is stuck in its driver and all that this thread may still use.
 * - Losses or gradients that are not finite: the devices that gave them are left out for one try. If the others'
 *   numbers are finite, those devices are faulty and lost; if they are not, the training diverges.
 *
 * - Parameters that are not those of the master copy, where check_replicas asks for it (run.c): an error as any other.
 *
 * Other wrong numbers that are finite go unnoticed. */
#include "train/trainer.h"

#include "base/log.h"
#include "base/threads.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <time.h>

/* -------------------------------------------------------------------------------------------- time limits ---- */

/* Without a limit by the caller: of a step, so many times as long as steps have taken, and never less than a minute,
 * because other programs may use the device; of a job that makes plans, half an hour: some compilers are slow. */
enum { STEP_FACTOR = 20, STEP_LEAST_S = 60, BUILD_S = 1800 };
/* Time is counted in slices in which this thread was awake, so that a stopped process or a sleeping machine does not
 * look like a hanging device. */
#define SLICE_S 0.05
#define PROGRESS_S 0.0005

double faults_build_limit(const struct replica *replica)
{
    const double given = replica->trainer->build_limit_s;
    return given > 0 ? given : BUILD_S;
}

double faults_step_limit(const struct replica *replica, int64_t samples)
{
    const double given = replica->trainer->step_limit_s;
    if (replica->pace_s == 0) return faults_build_limit(replica); /* its first step: drivers compile in it, too */
    return given > 0 ? given : fmax(STEP_LEAST_S, STEP_FACTOR * replica->pace_s * (double)samples);
}

/* Under the lock. */
static void give_up(struct replica *replica)
{
    replica->abandoned = true;
    replica->stop = true; /* its thread ends if it ever comes back */
    replica->attends = false;
    replica->status = TUTTI_DEVICE_LOST;
    snprintf(replica->message, sizeof(replica->message),
        "device %d, '%s', did not finish its work within %.3g seconds: see the system's log; its memory cannot be "
        "freed before the program ends",
        replica->device->index, replica->device->can.name, replica->allowed_s);
    pthread_cond_broadcast(&replica->trainer->changed);
}

void faults_wait(tutti_trainer *trainer)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    /* Sums of other ranks' gradients go on only while somebody looks after them. */
    const bool sums = trainer->world && hosts_progress(trainer->world->hosts);
    until.tv_nsec += (long)(1e9 * (sums ? PROGRESS_S : SLICE_S));
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

/* ----------------------------------------------------------------------------------------- losing devices ---- */

/* What a device may do to be taken for lost while others go on; anything else is the caller's to hear at once. */
bool is_device_fault(tutti_status status)
{
    return status == TUTTI_DEVICE || status == TUTTI_DEVICE_LOST || status == TUTTI_DEVICE_MEMORY ||
        status == TUTTI_DEVICE_RESOURCES || status == TUTTI_BUILD || status == TUTTI_WRONG_RESULT;
}

int trainer_devices_left(const tutti_trainer *trainer)
{
    int left = 0;
    for (int i = 0; i < trainer->count; i++) left += !trainer->replicas[i].lost;
    return left;
}

tutti_status trainer_shrink_or_lose(tutti_trainer *trainer, struct replica *replica, tutti_status status)
{
    if (status != TUTTI_DEVICE_MEMORY || replica->torn || !replica_shrink(replica))
        return trainer_lose(trainer, replica, status);
    log_warn(&trainer->runtime->log, "device %d, '%s', takes at most %lld samples at once from now on: %s",
        replica->device->index, replica->device->can.name, (long long)replica->capacity, status_message());
    return TUTTI_OK;
}

tutti_status trainer_lose(tutti_trainer *trainer, struct replica *replica, tutti_status status)
{
    const struct device *device = replica->device;
    const int left = trainer_devices_left(trainer);
    if (!is_device_fault(status) || (left == 1 && !replica->abandoned)) return status;
    replica->lost = true;
    if (left == 1) return status;
    log_warn(&trainer->runtime->log, "device %d, '%s', is lost, %d of %d go on: %s", device->index, device->can.name,
        left - 1, trainer->count, status_message());
    if (trainer->newest == replica) journal_lost(trainer); /* it trained alone */
    return trainer->automatic ? adapt_lost(trainer, replica) : TUTTI_OK;
}

/* ------------------------------------------------------------------------------------------ wrong numbers ---- */

static bool is_bad(const tutti_trainer *trainer, int i)
{
    const struct replica *replica = &trainer->replicas[i];
    if (trainer->parts[i] == 0) return false;
    if (trainer->meetings.judged) return replica->spoiled; /* the others have their numbers from it */
    return replica->not_finite || !isfinite(trainer->works[i].loss);
}

/* The others' numbers were finite where those of the suspects were not. */
static tutti_status lose_suspects(tutti_trainer *trainer)
{
    tutti_status status = TUTTI_OK;
    for (int i = 0; i < trainer->count && status == TUTTI_OK; i++) {
        struct replica *replica = &trainer->replicas[i];
        if (!replica->suspect) continue;
        replica->suspect = false;
        if (replica->lost) continue;
        status = trainer_lose(trainer, replica,
            fail(TUTTI_WRONG_RESULT,
                "its losses or gradients were not finite and those of another device, from the same samples, are: see "
                "'tutti devices --check'"));
    }
    return status;
}

tutti_status faults_check(tutti_trainer *trainer, bool *again)
{
    bool tried = false;
    int bad = 0, good = 0;
    *again = false;
    for (int i = 0; i < trainer->count; i++) {
        tried |= trainer->replicas[i].suspect;
        bad += is_bad(trainer, i);
        good += !trainer->replicas[i].lost && !is_bad(trainer, i);
    }
    if (tried && bad == 0) return lose_suspects(trainer);
    for (int i = 0; i < trainer->count; i++)
        trainer->replicas[i].suspect = !tried && good > 0 && is_bad(trainer, i); /* else all agree: it diverges */
    *again = !tried && good > 0 && bad > 0;
    return TUTTI_OK;
}
