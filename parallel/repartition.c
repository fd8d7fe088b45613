#include "parallel/repartition.h"

#include "base/log.h"
#include "base/memory.h"
#include "parallel/background_all.h"
#include "parallel/division.h"
#include "parallel/faults.h"
#include "parallel/ranks.h"
#include "parallel/trainer.h"

#include <stdlib.h>

tutti_status repartition_open(struct tutti_trainer *trainer)
{
    trainer->ranks->division.repartition.parts = memory_new((size_t)trainer->count, sizeof(int64_t));
    return trainer->ranks->division.repartition.parts ? TUTTI_OK : TUTTI_NO_MEMORY;
}

void repartition_close(struct tutti_trainer *trainer)
{
    free(trainer->ranks->division.repartition.parts);
}

void repartition_begin(struct tutti_trainer *trainer, int64_t samples)
{
    trainer->ranks->division.repartition.state = samples > 0 ? REPARTITION_WAITING : REPARTITION_READY;
    trainer->ranks->division.repartition.samples = samples;
}

bool repartition_keeps_shares(const struct tutti_trainer *trainer)
{
    if (!trainer->ranks) return false;
    const struct rank_division *division = &trainer->ranks->division;
    const bool awaited = division->preparing || division->next_step > 0; /* else ranks_resize() has given it up */
    return division->repartition.state == REPARTITION_BUILDING ||
        (division->repartition.state == REPARTITION_READY && awaited);
}

const int64_t *repartition_parts(const struct tutti_trainer *trainer, int64_t samples)
{
    const struct repartition *repartition = trainer->ranks ? &trainer->ranks->division.repartition : NULL;
    if (!repartition || repartition->samples != samples) return NULL;
    if (repartition->state != REPARTITION_READY && repartition->state != REPARTITION_ADOPTED) return NULL;
    for (int i = 0; i < trainer->count; i++)
        if (repartition->parts[i] > 0 && replica_is_lost(&trainer->replicas[i])) return NULL;
    return repartition->parts;
}

/* The devices keep their plans. A device whose plan hangs is lost if its rank has others; the only device continues
 * with its old plans until it needs another one. */
static tutti_status refuse(struct tutti_trainer *trainer, struct replica *replica, tutti_status status)
{
    trainer->ranks->division.repartition.state = REPARTITION_REFUSED;
    const bool lose = background_hangs(replica) && membership_left(&trainer->members) > 1;
    if (!lose)
        log_warn(&trainer->network->runtime->log,
            "this rank keeps its part of the batch: the plan for another part failed on device %d, '%s': %s",
            replica->device->index, replica->device->can.name, status_message());
    const tutti_status lost = lose ? trainer_lose(trainer, replica, status) : TUTTI_OK;
    for (int i = 0; i < trainer->count; i++) background_free(&trainer->replicas[i]);
    return lost;
}

/* Divides by the present shares, as the first step of the new division will. */
static void start(struct tutti_trainer *trainer)
{
    struct repartition *repartition = &trainer->ranks->division.repartition;
    const tutti_status status = divide_over_devices(trainer, PLAN_TRAIN, repartition->samples, repartition->parts);
    bool possible = status == TUTTI_OK;
    for (int i = 0; i < trainer->count; i++) {
        struct replica *replica = &trainer->replicas[i];
        background_free(replica); /* of an earlier division */
        possible &= !background_hangs(replica) || replica_is_lost(replica);
    }
    repartition->state = possible ? REPARTITION_BUILDING : REPARTITION_REFUSED;
    if (possible) background_start_all(trainer, repartition->parts, false);
}

static tutti_status adopt(struct tutti_trainer *trainer)
{
    struct replica *failed = NULL;
    struct repartition *repartition = &trainer->ranks->division.repartition;
    for (int i = 0; i < trainer->count; i++) {
        if (repartition->parts[i] == 0) continue;
        const tutti_status made = background_wait(&trainer->replicas[i]);
        if (made != TUTTI_OK) return refuse(trainer, &trainer->replicas[i], made);
    }
    repartition->state = REPARTITION_READY;
    const tutti_status status = background_adopt_all(trainer, repartition->parts, &failed);
    return failed ? trainer_shrink_or_lose(trainer, failed, status) : TUTTI_OK;
}

tutti_status repartition_advance(struct tutti_trainer *trainer, bool busy)
{
    const enum repartition_state state = trainer->ranks->division.repartition.state;
    if (state != REPARTITION_WAITING && state != REPARTITION_BUILDING) return TUTTI_OK;
    if (busy || !background_all_done(trainer)) return TUTTI_OK;
    if (state == REPARTITION_BUILDING) return adopt(trainer);
    start(trainer);
    return TUTTI_OK;
}
