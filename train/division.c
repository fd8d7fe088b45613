/* The parts of a batch for this trainer's devices. */
#include "train/trainer.h"

#include "base/memory.h"

#include <stdlib.h>

/* Without micro-batches, where statistics are to be over the whole batch. */
static tutti_status divide_by_limits(
    const tutti_trainer *trainer, enum plan_mode mode, struct share *shares, int64_t samples, int64_t *parts)
{
    const bool whole = mode == PLAN_TRAIN && trainer->whole_batch;
    for (int i = 0; whole && i < trainer->count; i++) shares[i].limit = trainer->replicas[i].capacity;
    const tutti_status status = shares_divide(shares, trainer->count, samples, parts);
    if (status != TUTTI_DEVICE_MEMORY) return status;
    return status_context(status,
        "batch normalisation over the whole batch (--sync-batchnorm) needs all samples in the devices' memory at once, "
        "without micro-batches");
}

/* Devices without a share step in when no other is left. */
tutti_status trainer_divide(const tutti_trainer *trainer, enum plan_mode mode, int64_t samples, int64_t *parts)
{
    double sum = 0;
    int left = 0;
    struct share *shares = memory_new((size_t)trainer->count, sizeof(*shares));
    if (!shares) return TUTTI_NO_MEMORY;
    for (int i = 0; i < trainer->count; i++) {
        shares[i] = trainer->shares[i];
        if (trainer->replicas[i].lost || trainer->replicas[i].suspect) shares[i].weight = 0;
        sum += shares[i].weight;
    }
    for (int i = 0; i < trainer->count && sum == 0; i++) {
        shares[i].weight = !trainer->replicas[i].lost && !trainer->replicas[i].suspect;
        left += !trainer->replicas[i].lost;
    }
    const tutti_status status = sum > 0 || left > 0
        ? divide_by_limits(trainer, mode, shares, samples, parts)
        : fail(TUTTI_DEVICE_LOST, "no device is left: see the system's log, then 'tutti devices --check'");
    free(shares);
    return status;
}
