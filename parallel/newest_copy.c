#include "parallel/newest_copy.h"

#include "parallel/faults.h"
#include "parallel/journal.h"
#include "parallel/trainer.h"

/* Reads from the only device. */
static tutti_status copy_only(tutti_trainer *trainer)
{
    tutti_status status = TUTTI_OK;
    struct parameter_store *store = trainer->store;
    TRY(parameters_make_parameters(store));
    TRY(parameters_make_states(store));
    const struct optimizer_arrays master = parameters_master(store);
    status = replica_read(parameters_holder(store), &master);
done:
    return status;
}

tutti_status newest_check(tutti_trainer *trainer)
{
    struct replica *replica = parameters_holder(trainer->store);
    if (!replica || !versions_are_partial(&replica->versions)) return TUTTI_OK;
    return trainer_lose(trainer, replica,
        fail(TUTTI_DEVICE_LOST,
            "device %d, '%s', failed while it updated the parameters: they may be from two different steps; "
            "resume from what was saved last",
            replica->device->index, replica->device->can.name));
}

tutti_status newest_copy(tutti_trainer *trainer)
{
    tutti_status status = TUTTI_OK;
    TRY(newest_check(trainer));
    struct replica *replica = parameters_holder(trainer->store);
    if (!replica) return TUTTI_OK;
    status = trainer->journal ? journal_copy(trainer) : copy_only(trainer);
    if (status != TUTTI_OK) return trainer_lose(trainer, replica, status);
    parameters_fetched(trainer->store);
done:
    return status;
}
