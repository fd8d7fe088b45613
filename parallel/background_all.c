#include "parallel/background_all.h"

#include "parallel/trainer.h"

void background_start_all(tutti_trainer *trainer, const int64_t *parts, bool sole)
{
    for (int i = 0; i < trainer->count; i++)
        if (parts[i] > 0)
            background_start(&trainer->replicas[i], (struct bound_sizes) { parts[i], trainer->feeds.length }, sole);
}

bool background_all_done(tutti_trainer *trainer)
{
    bool done = true;
    for (int i = 0; i < trainer->count; i++)
        done &= replica_is_lost(&trainer->replicas[i]) || background_is_done(&trainer->replicas[i]);
    return done;
}

tutti_status background_adopt_all(tutti_trainer *trainer, const int64_t *parts, struct replica **failed)
{
    tutti_status status = TUTTI_OK;
    *failed = NULL;
    for (int i = 0; i < trainer->count; i++)
        if (parts[i] > 0) worker_start(&trainer->replicas[i].worker, background_adopt, NULL);
    for (int i = 0; i < trainer->count; i++) {
        const tutti_status one = parts[i] > 0 ? worker_wait(&trainer->replicas[i].worker) : TUTTI_OK;
        if (one == TUTTI_OK || *failed) continue;
        *failed = &trainer->replicas[i];
        status = replica_suspect_memory(*failed, one);
    }
    return status;
}
