/* Runs the work of a step. Steps that a device did alone and that were lost with it (journal.c) are replayed first. */
#include "parallel/replay.h"

#include "parallel/commit.h"
#include "parallel/journal.h"
#include "parallel/retry.h"
#include "parallel/step.h"
#include "parallel/trainer.h"

/* Replays the next step of the journal. */
static tutti_status replay_next(tutti_trainer *trainer)
{
    tutti_status status = TUTTI_OK;
    struct step step = { .input = journal_next(trainer), .replayed = true };
    TRY(run_attempts_and_replays(trainer, &step));
    TRY(step_commit(trainer, &step));
    TRY(journal_note(trainer, &step.input, 0));
done:
    return status;
}

/* The replayed step may itself lose the device that did it; then the journal has more steps to claim, and some steps
 * are replayed once more. */
tutti_status replay_lost(tutti_trainer *trainer)
{
    tutti_status status = TUTTI_OK;
    for (size_t left = journal_claim(trainer); left > 0;) {
        status = replay_next(trainer);
        if (status == TUTTI_OK) {
            left--;
            status = replay_lost(trainer);
        }
        if (status == TUTTI_OK) continue;
        journal_return(trainer, left);
        break;
    }
    return status;
}

tutti_status run_attempts_and_replays(tutti_trainer *trainer, struct step *step)
{
    struct vote vote;
    while ((vote = run_attempts(trainer, step)).says == VOTE_REPLAY) {
        const tutti_status status = replay_lost(trainer);
        if (status != TUTTI_OK) return status;
    }
    return vote_status(&vote);
}
