#include "parallel/training_state.h"

#include "parallel/ranks.h"
#include "parallel/trainer.h"

bool trainer_is_cancelled(const tutti_trainer *trainer)
{
    return atomic_load(&trainer->state.run) == RUN_CANCELLED;
}

bool trainer_stops(const tutti_trainer *trainer)
{
    return trainer->ranks ? trainer->ranks->cancelled : trainer_is_cancelled(trainer);
}

void trainer_run_begin(tutti_trainer *trainer)
{
    int ended = RUN_ENDED;
    if (trainer->state.depth++ == 0) (void)atomic_compare_exchange_strong(&trainer->state.run, &ended, RUN_OPEN);
}

void trainer_run_end(tutti_trainer *trainer)
{
    if (--trainer->state.depth > 0) return; /* a run around it is cancelled, too */
    if (trainer->ranks) trainer->ranks->cancelled = false;
    atomic_store(&trainer->state.run, RUN_ENDED);
}

tutti_status trainer_check_views(const tutti_trainer *trainer)
{
    const tutti_trainer *owner = parameters_owner(trainer->store);
    const size_t own = trainer->state.views.count, count = own > 0 || !owner ? own : owner->state.views.count;
    if (count == 0) return TUTTI_OK;
    return fail(TUTTI_INVALID, "views of %s are open (%zu): call tutti_view_close() for each of them first",
        own > 0 ? "this trainer" : "the trainer whose parameters it reads", count);
}

int64_t training_state_updates(const struct training_state *state)
{
    return state->position.steps - state->loss_scale.skipped;
}

float trainer_learning_rate(const tutti_trainer *trainer)
{
    return trainer->state.scheduled ? trainer->state.rate : trainer->optimizer.learning_rate;
}
