#include "train/checks.h"

#include "parallel/trainer.h"
#include "runtime/forked.h"

tutti_status trainer_check(const tutti_trainer *trainer, bool trains, int64_t samples)
{
    if (!trainer) return fail(TUTTI_INVALID, "the trainer is NULL: make one with tutti_compile()");
    if (samples < 1)
        return fail(TUTTI_INVALID, "the number of samples is %lld: it must be at least 1", (long long)samples);
    if (trains && !trainer->options.evaluates)
        return fail(TUTTI_INVALID, "this trainer has no loss and can only infer: set tutti_training.loss");
    const tutti_status status = trainer_check_own_views(trainer); /* trainer_forward() checks those of its owner */
    return status == TUTTI_OK ? forked_check() : status;
}

tutti_status trainer_check_owns(const tutti_trainer *trainer, const char *call)
{
    if (parameters_owner(trainer->store) == trainer) return TUTTI_OK;
    return fail(TUTTI_INVALID,
        "%s was called for a trainer that reads the parameters of another one (tutti_training.parameters_of): call it "
        "for that one",
        call);
}

tutti_status trainer_check_trains(const tutti_trainer *trainer, const char *call)
{
    if (!trainer) return TUTTI_OK;
    const tutti_status status = trainer_check_owns(trainer, call);
    if (status != TUTTI_OK || !trainer->state.in_fit) return status;
    return fail(TUTTI_INVALID,
        "%s was called within a tutti_fit() or tutti_find_rate() of this trainer: their callbacks may evaluate, infer, "
        "save, and read or set parameters; train in another trainer, or after the call",
        call);
}

void trainer_lock(const tutti_trainer *trainer)
{
    if (trainer && !is_forked()) parameters_lock(trainer->store);
}

void trainer_unlock(const tutti_trainer *trainer)
{
    if (trainer && !is_forked()) parameters_unlock(trainer->store);
}
