/* The parts of a batch for this trainer's devices. */
#include "parallel/division.h"

#include "base/memory.h"
#include "parallel/trainer.h"

#include <stdlib.h>

/* Divides by shares. Limits can be too small only if statistics over the whole batch exclude micro-batches. */
static tutti_status divide_by_limits(
    const tutti_trainer *trainer, const struct share *shares, int64_t samples, int64_t *parts)
{
    const tutti_status status = shares_divide(shares, trainer->count, samples, parts);
    if (status != TUTTI_DEVICE_MEMORY) return status;
    return status_context(status,
        "batch normalisation over the whole batch (--sync-batchnorm) needs all samples in the devices' memory at once, "
        "without micro-batches");
}

/* Lets devices without a share step in if no other is left, or the others cannot take the batch. */
static void let_all_step_in(const tutti_trainer *trainer, struct share *shares, int64_t samples)
{
    double room = 0;
    for (int i = 0; i < trainer->count; i++)
        if (shares[i].weight > 0) room += (double)shares[i].limit;
    if (room >= (double)samples && room > 0) return;
    for (int i = 0; i < trainer->count; i++)
        if (shares[i].weight == 0) shares[i].weight = membership_is_present(&trainer->members, i);
}

/* The device that has the state computes all; no other one can. */
static tutti_status divide_by_state(const tutti_trainer *trainer, int64_t samples, int64_t *parts)
{
    for (int i = 0; i < trainer->count; i++) {
        const bool holds = trainer->device_division.shares[i].weight > 0;
        parts[i] = holds ? samples : 0;
        if (holds && membership_is_lost(&trainer->members, i))
            return fail(TUTTI_DEVICE_LOST,
                "device %d is lost with the state that the trainer carries: tutti_reset_carried() begins it again, on "
                "another device",
                trainer->replicas[i].device->index);
    }
    return TUTTI_OK;
}

tutti_status divide_over_devices(const tutti_trainer *trainer, enum plan_mode mode, int64_t samples, int64_t *parts)
{
    if (trainer->options.carries.count > 0) return divide_by_state(trainer, samples, parts);
    const bool whole = mode == PLAN_TRAIN && trainer->options.whole_batch;
    struct share *shares = memory_new((size_t)trainer->count, sizeof(*shares));
    if (!shares) return TUTTI_NO_MEMORY;
    for (int i = 0; i < trainer->count; i++) {
        shares[i] = trainer->device_division.shares[i];
        if (!membership_is_present(&trainer->members, i)) shares[i].weight = 0;
        if (whole) shares[i].limit = trainer->replicas[i].capacity;
    }
    let_all_step_in(trainer, shares, samples);
    const tutti_status status = membership_left(&trainer->members) > 0
        ? divide_by_limits(trainer, shares, samples, parts)
        : fail(TUTTI_DEVICE_LOST, "no device is left: see the system's log, then 'tutti devices --check'");
    free(shares);
    return status;
}
