/* What is done about devices that fail. Nothing is updated before every part of a step has succeeded, so whatever goes
 * wrong, the step is done again, from the same samples and parameters.
 *
 * - An error: the device is lost, the others do the step.
 * - No memory: the device stays and takes fewer samples at once. CL_OUT_OF_RESOURCES may mean this, too: see
 *   replica_doubt().
 * - A hang (watchdog.c): the same.
 * - Losses or gradients that are not finite: the devices that gave them are left out for one try. If the others'
 *   numbers are finite, those devices are faulty and lost; if they are not, the training diverges. Where losses are
 *   scaled, gradients alone tell nothing about a device: it may be the one that computes in half precision.
 *
 * - Parameters that are not those of the master copy, where check_replicas asks for it (run.c): an error as any other.
 *
 * Other wrong numbers that are finite go unnoticed. */
#include "train/trainer.h"

#include "base/log.h"

#include <math.h>

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
    if (status != TUTTI_DEVICE_MEMORY || holding_is_torn(&replica->holding) || !replica_shrink(replica))
        return trainer_lose(trainer, replica, status);
    log_warn(&trainer->runtime->log, "device %d, '%s', computes at most %lld samples at once from now on: %s",
        replica->device->index, replica->device->can.name, (long long)replica->capacity, status_message());
    return TUTTI_OK;
}

void faults_forget(tutti_trainer *trainer)
{
    for (int i = 0; i < trainer->count; i++) trainer->replicas[i].suspect = false;
}

/* Where only suspects are left, they do the step. */
static void forget_without_others(tutti_trainer *trainer)
{
    for (int i = 0; i < trainer->count; i++)
        if (!trainer->replicas[i].lost && !trainer->replicas[i].suspect) return;
    faults_forget(trainer);
}

bool trainer_may_be_read(const tutti_trainer *trainer)
{
    for (int i = 0; i < trainer->count; i++)
        if (worker_is_abandoned(&trainer->replicas[i].worker)) return true;
    return false;
}

tutti_status trainer_lose(tutti_trainer *trainer, struct replica *replica, tutti_status status)
{
    const struct device *device = replica->device;
    const int left = trainer_devices_left(trainer);
    if (replica->lost) return left > 0 && is_device_fault(status) ? TUTTI_OK : status;
    if (!is_device_fault(status) || (left == 1 && !worker_is_abandoned(&replica->worker))) return status;
    replica->lost = true;
    if (left == 1) return status;
    forget_without_others(trainer);
    log_warn(&trainer->runtime->log, "device %d, '%s', is lost, %d of %d go on: %s", device->index, device->can.name,
        left - 1, trainer->count, status_message());
    parameters_lose(&trainer->store, replica);
    return TUTTI_OK;
}

/* ------------------------------------------------------------------------------------------ wrong numbers ---- */

/* Gradients alone are not finite, and their scale is what must change (loss_scale.h). */
static bool only_scaled_too_much(const tutti_trainer *trainer)
{
    bool finite = true;
    for (int i = 0; i < trainer->count; i++) finite &= trainer->parts[i] == 0 || isfinite(trainer->works[i].tally.loss);
    return finite && loss_scale_can_fall(&trainer->loss_scale);
}

static bool is_bad(const tutti_trainer *trainer, int i)
{
    const struct replica *replica = &trainer->replicas[i];
    if (trainer->parts[i] == 0 || only_scaled_too_much(trainer)) return false;
    if (meetings_judged(&trainer->meetings))
        return meetings_spoiled(&trainer->meetings, i); /* the others have their numbers from it */
    return replica->not_finite || trainer->works[i].not_finite || !isfinite(trainer->works[i].tally.loss);
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
                "its losses or gradients were not finite, but those of another device with the same samples are: see "
                "'tutti devices --check'"));
    }
    return status;
}

static bool has_suspects(const tutti_trainer *trainer)
{
    for (int i = 0; i < trainer->count; i++)
        if (trainer->replicas[i].suspect) return true;
    return false;
}

tutti_status faults_check(tutti_trainer *trainer, bool *again)
{
    bool tried = false;
    int bad = 0, good = 0;
    *again = false;
    if (trainer->repeats && has_suspects(trainer)) return TUTTI_OK; /* their own step is yet to come */
    for (int i = 0; i < trainer->count; i++) {
        tried |= trainer->replicas[i].suspect;
        bad += is_bad(trainer, i);
        good += !trainer->replicas[i].lost && !is_bad(trainer, i);
    }
    if (tried && bad == 0) return lose_suspects(trainer);
    for (int i = 0; i < trainer->count; i++) {
        struct replica *replica = &trainer->replicas[i];
        replica->suspect = !tried && good > 0 && is_bad(trainer, i);     /* else all agree: it diverges */
        if (replica->suspect) parameters_lose(&trainer->store, replica); /* it may have updated itself */
    }
    *again = !tried && good > 0 && bad > 0;
    return TUTTI_OK;
}
