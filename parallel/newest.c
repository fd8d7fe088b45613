#include "parallel/newest.h"

#include "parallel/newest_copy.h"
#include "parallel/replay.h"
#include "parallel/trainer.h"

tutti_status newest_to_host(tutti_trainer *trainer)
{
    tutti_status status = TUTTI_OK;
    TRY(replay_lost(trainer));
    while (parameters_holder(&trainer->store)) {
        TRY(newest_copy(trainer));
        TRY(replay_lost(trainer)); /* if the device was lost */
    }
done:
    return status;
}

tutti_status trainer_use_ema(tutti_trainer *trainer, bool use)
{
    tutti_status status = TUTTI_OK;
    if (optimizer_ema_state(&trainer->optimizer) < 0 || parameters_are_ema(&trainer->store) == use) return TUTTI_OK;
    TRY(newest_to_host(trainer));
    parameters_use_ema(&trainer->store, use);
done:
    return status;
}
