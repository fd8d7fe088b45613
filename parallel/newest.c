#include "parallel/newest.h"

#include "parallel/newest_copy.h"
#include "parallel/replay.h"
#include "parallel/trainer.h"

static tutti_status no_owner(void)
{
    return fail(TUTTI_INVALID,
        "the trainer whose parameters this one reads (tutti_training.parameters_of) was freed: free this one, too");
}

static tutti_status copy_to_host(tutti_trainer *owner)
{
    tutti_status status = TUTTI_OK;
    TRY(replay_lost(owner));
    while (parameters_holder(owner->store)) {
        TRY(newest_copy(owner));
        TRY(replay_lost(owner)); /* if the device was lost */
    }
    if (parameters_are_lost(owner->store))
        FAIL(TUTTI_DEVICE_LOST, "the newest parameters were lost with their device: load those that were saved last");
done:
    return status;
}

tutti_status newest_to_host(tutti_trainer *trainer)
{
    parameters_lock(trainer->store);
    tutti_trainer *owner = parameters_owner(trainer->store);
    const tutti_status status = owner ? copy_to_host(owner) : no_owner();
    parameters_unlock(trainer->store);
    return status;
}

static tutti_status use_ema(tutti_trainer *owner, bool use)
{
    tutti_status status = TUTTI_OK;
    if (optimizer_ema_state(&owner->optimizer) < 0 || parameters_are_ema(owner->store) == use) return TUTTI_OK;
    TRY(copy_to_host(owner));
    parameters_use_ema(owner->store, use);
done:
    return status;
}

tutti_status trainer_use_ema(tutti_trainer *trainer, bool use)
{
    parameters_lock(trainer->store);
    tutti_trainer *owner = parameters_owner(trainer->store);
    const tutti_status status = owner ? use_ema(owner, use) : no_owner();
    parameters_unlock(trainer->store);
    return status;
}
