#include "train/repartition.h"

#include "base/log.h"
#include "base/memory.h"
#include "train/trainer.h"

#include <stdlib.h>

tutti_status coming_open(struct tutti_trainer *trainer)
{
    trainer->world->division.coming.parts = memory_new((size_t)trainer->count, sizeof(int64_t));
    return trainer->world->division.coming.parts ? TUTTI_OK : TUTTI_NO_MEMORY;
}

void coming_close(struct tutti_trainer *trainer)
{
    free(trainer->world->division.coming.parts);
}

void coming_begin(struct tutti_trainer *trainer, int64_t samples)
{
    trainer->world->division.coming.state = samples > 0 ? COMING_WAITS : COMING_READY;
    trainer->world->division.coming.samples = samples;
}

bool coming_holds(const struct tutti_trainer *trainer)
{
    if (!trainer->world) return false;
    return trainer->world->division.coming.state == COMING_BUILDS ||
        trainer->world->division.coming.state == COMING_READY;
}

const int64_t *coming_parts(const struct tutti_trainer *trainer, int64_t samples)
{
    const struct coming *coming = trainer->world ? &trainer->world->division.coming : NULL;
    if (!coming || coming->samples != samples) return NULL;
    if (coming->state != COMING_READY && coming->state != COMING_TAKEN) return NULL;
    for (int i = 0; i < trainer->count; i++)
        if (coming->parts[i] > 0 && replica_is_lost(&trainer->replicas[i])) return NULL;
    return coming->parts;
}

/* The devices go on with what they have. One whose plan hangs is lost where its rank has others; the only one works by
 * its old plans until it needs another. */
static tutti_status refuse(struct tutti_trainer *trainer, struct replica *replica, tutti_status status)
{
    trainer->world->division.coming.state = COMING_REFUSED;
    const bool lose = background_hangs(replica) && membership_left(&trainer->members) > 1;
    if (!lose)
        log_warn(&trainer->runtime->log,
            "this rank keeps its part of the batch: the plan for another part failed on device %d, '%s': %s",
            replica->device->index, replica->device->can.name, status_message());
    const tutti_status lost = lose ? trainer_lose(trainer, replica, status) : TUTTI_OK;
    for (int i = 0; i < trainer->count; i++) background_free(&trainer->replicas[i]);
    return lost;
}

/* By the shares in use, as the first step of the new division will. */
static void start(struct tutti_trainer *trainer)
{
    struct coming *coming = &trainer->world->division.coming;
    const tutti_status status = trainer_divide(trainer, PLAN_TRAIN, coming->samples, coming->parts);
    bool possible = status == TUTTI_OK;
    for (int i = 0; i < trainer->count; i++) {
        struct replica *replica = &trainer->replicas[i];
        background_free(replica); /* of a division that nobody wants any more */
        possible &= !background_hangs(replica) || replica_is_lost(replica);
    }
    coming->state = possible ? COMING_BUILDS : COMING_REFUSED;
    if (possible) background_start_all(trainer, coming->parts, false);
}

static tutti_status take(struct tutti_trainer *trainer)
{
    struct replica *failed = NULL;
    struct coming *coming = &trainer->world->division.coming;
    for (int i = 0; i < trainer->count; i++) {
        if (coming->parts[i] == 0) continue;
        const tutti_status made = background_wait(&trainer->replicas[i]);
        if (made != TUTTI_OK) return refuse(trainer, &trainer->replicas[i], made);
    }
    coming->state = COMING_READY;
    const tutti_status status = background_adopt_all(trainer, coming->parts, &failed);
    return failed ? trainer_shrink_or_lose(trainer, failed, status) : TUTTI_OK;
}

tutti_status coming_go_on(struct tutti_trainer *trainer, bool busy)
{
    const enum coming_state state = trainer->world->division.coming.state;
    if (state != COMING_WAITS && state != COMING_BUILDS) return TUTTI_OK;
    if (busy || !background_all_done(trainer)) return TUTTI_OK;
    if (state == COMING_BUILDS) return take(trainer);
    start(trainer);
    return TUTTI_OK;
}
