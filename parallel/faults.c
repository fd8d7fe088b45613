/* Handles devices that fail. Nothing is updated before every part of a step has succeeded, so after any failure the
 * step is retried from the same samples and parameters.
 *
 * - An error: the device is lost, the others do the step.
 * - No memory: the device stays and takes fewer samples at once. CL_OUT_OF_RESOURCES may mean this, too: see
 *   replica_suspect_memory().
 * - A hang (replica/watchdog.c): the device is lost, as after an error.
 * - Losses or gradients that are not finite, or have no norm: the devices that gave them are left out of one attempt.
 *   If the others' numbers are finite, those devices are faulty and lost; if they are not, the training diverges. If
 *   losses are scaled, gradients alone prove nothing about a device: it may be the one that computes in half
 *   precision.
 *
 * - Parameters that differ from the master copy, if check_replicas asks for the comparison (run.c): an error as any
 *   other.
 *
 * Other wrong numbers that are finite go unnoticed. */
#include "parallel/faults.h"

#include "base/log.h"
#include "parallel/trainer.h"
#include "replica/run.h"

#include <math.h>

/* ----------------------------------------------------------------------------------------- losing devices ---- */

/* Returns whether a failure makes a device count as lost while others go on. Any other failure goes to the caller at
 * once. */
bool is_device_fault(tutti_status status)
{
    return status == TUTTI_DEVICE || status == TUTTI_DEVICE_LOST || status == TUTTI_DEVICE_MEMORY ||
        status == TUTTI_DEVICE_RESOURCES || status == TUTTI_BUILD || status == TUTTI_WRONG_RESULT;
}

tutti_status trainer_shrink_or_lose(tutti_trainer *trainer, struct replica *replica, tutti_status status)
{
    if (status != TUTTI_DEVICE_MEMORY || versions_are_partial(&replica->versions) || !replica_shrink(replica))
        return trainer_lose(trainer, replica, status);
    log_warn(&trainer->network->runtime->log, "device %d, '%s', computes at most %lld samples at once from now on: %s",
        replica->device->index, replica->device->can.name, (long long)replica->capacity, status_message());
    return TUTTI_OK;
}

bool trainer_has_lost(const void *user, int replica)
{
    const tutti_trainer *trainer = user;
    return membership_is_lost(&trainer->members, replica);
}

int devices_hanging(const tutti_trainer *trainer)
{
    int count = 0;
    for (int i = 0; i < trainer->count; i++) count += worker_is_abandoned(&trainer->replicas[i].worker);
    return count;
}

bool samples_may_be_read(const tutti_trainer *trainer)
{
    return devices_hanging(trainer) > 0;
}

tutti_status trainer_lose(tutti_trainer *trainer, struct replica *replica, tutti_status status)
{
    const struct device *device = replica->device;
    struct membership *members = &trainer->members;
    const int left = membership_left(members);
    if (replica_is_lost(replica)) return left > 0 && is_device_fault(status) ? TUTTI_OK : status;
    if (!is_device_fault(status) || (left == 1 && !worker_is_abandoned(&replica->worker))) return status;
    membership_lose(members, replica->number);
    if (left == 1) return status;
    if (membership_count(members, MEMBER_PRESENT) == 0) membership_clear(members); /* suspects do the step */
    log_warn(&trainer->network->runtime->log, "device %d, '%s', is lost, %d of %d go on: %s", device->index,
        device->can.name, left - 1, trainer->count, status_message());
    parameters_lose(trainer->store, replica);
    return TUTTI_OK;
}

/* ------------------------------------------------------------------------------------------ wrong numbers ---- */

/* Returns whether only gradients are not finite, so that the loss scale must change (loss_scale.h). */
static bool only_scaled_too_much(const tutti_trainer *trainer)
{
    bool finite = true;
    for (int i = 0; i < trainer->count; i++)
        finite &= trainer->device_division.parts[i] == 0 || isfinite(trainer->works[i].result.metrics.loss);
    return finite && loss_scale_can_fall(&trainer->state.loss_scale);
}

/* Returns whether a device that clips and updates itself has given no norm; finite gradients have one. */
static bool has_no_norm(const tutti_trainer *trainer, int i)
{
    const struct replica_work *work = &trainer->works[i];
    return work->update && trainer->optimizer.clip_norm > 0 && isnan(work->result.norm);
}

static bool is_bad(const tutti_trainer *trainer, int i)
{
    if (trainer->device_division.parts[i] == 0 || only_scaled_too_much(trainer)) return false;
    if (sync_devices_judged(&trainer->sync_devices))
        return sync_devices_spoiled(&trainer->sync_devices, i); /* the others received their numbers from it */
    return trainer->works[i].result.not_finite || !isfinite(trainer->works[i].result.metrics.loss) ||
        has_no_norm(trainer, i);
}

/* Loses the suspects, because the others' numbers were finite where theirs were not. */
static tutti_status lose_suspects(tutti_trainer *trainer)
{
    tutti_status status = TUTTI_OK;
    for (int i = 0; i < trainer->count && status == TUTTI_OK; i++)
        if (membership_is_suspect(&trainer->members, i))
            status = trainer_lose(trainer, &trainer->replicas[i],
                fail(TUTTI_WRONG_RESULT,
                    "its losses or gradients were not finite, but those of another device with the same samples are: "
                    "see 'tutti devices --check'"));
    return status;
}

/* Leaves devices with bad numbers out of the next attempt. */
static void suspect_bad(tutti_trainer *trainer)
{
    for (int i = 0; i < trainer->count; i++) {
        if (!is_bad(trainer, i)) continue;
        membership_suspect(&trainer->members, i);
        parameters_lose(trainer->store, &trainer->replicas[i]); /* it may have updated itself */
    }
}

struct vote faults_check(tutti_trainer *trainer, bool replayed)
{
    int bad = 0, good = 0;
    struct membership *members = &trainer->members;
    const bool tried = membership_count(members, MEMBER_SUSPECT) > 0;
    if (replayed && tried) return vote_of(TUTTI_OK); /* their own step is yet to come */
    for (int i = 0; i < trainer->count; i++) {
        bad += is_bad(trainer, i);
        good += !membership_is_lost(members, i) && !is_bad(trainer, i);
    }
    if (tried && bad == 0) return vote_of(lose_suspects(trainer));
    membership_clear(members);
    if (tried || good == 0 || bad == 0) return vote_of(TUTTI_OK); /* where all are bad, it diverges */
    suspect_bad(trainer);
    return vote_retry();
}
