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

static tutti_status views_are_open(const char *whose, size_t count)
{
    return fail(
        TUTTI_INVALID, "views of %s are open (%zu): call tutti_view_close() for each of them first", whose, count);
}

tutti_status trainer_check_own_views(const tutti_trainer *trainer)
{
    const size_t count = trainer->state.views.count;
    return count == 0 ? TUTTI_OK : views_are_open("this trainer", count);
}

tutti_status trainer_check_views(const tutti_trainer *trainer)
{
    const tutti_status status = trainer_check_own_views(trainer);
    if (status != TUTTI_OK || parameters_owner(trainer->store) == trainer) return status;
    parameters_lock(trainer->store);
    const tutti_trainer *owner = parameters_owner(trainer->store);
    const size_t count = owner ? owner->state.views.parameters : 0;
    parameters_unlock(trainer->store);
    return count == 0 ? TUTTI_OK : views_are_open("the trainer whose parameters it reads", count);
}

int64_t training_state_updates(const struct training_state *state)
{
    return state->position.steps - state->loss_scale.skipped;
}

float trainer_learning_rate(const tutti_trainer *trainer)
{
    return trainer->state.scheduled ? trainer->state.rate : trainer->optimizer.learning_rate;
}
