/* Brings the newest parameters to the host: from the device that has them or, if it was lost, by replaying on others
 * the steps that it did alone (journal.c). */
#include "parallel/redo.h"

#include "parallel/commit.h"
#include "parallel/faults.h"
#include "parallel/journal.h"
#include "parallel/state.h"
#include "parallel/step.h"

/* Replays the next step of the journal. */
static tutti_status redo_next(tutti_trainer *trainer)
{
    tutti_status status = TUTTI_OK;
    struct step step = { .work = journal_next(trainer), .replayed = true };
    TRY(trainer_run(trainer, &step));
    TRY(step_commit(trainer, &step));
    TRY(journal_note(trainer, &step.work, 0));
done:
    return status;
}

/* If another device is lost during a replay, some steps are replayed once more. */
tutti_status redo_lost(tutti_trainer *trainer)
{
    tutti_status status = TUTTI_OK;
    for (size_t left = journal_claim(trainer); left > 0;) {
        status = redo_next(trainer);
        if (status == TUTTI_OK) {
            left--;
            status = redo_lost(trainer);
        }
        if (status == TUTTI_OK) continue;
        journal_return(trainer, left);
        break;
    }
    return status;
}

/* Reads from the only device. */
static tutti_status fetch_only(tutti_trainer *trainer)
{
    tutti_status status = TUTTI_OK;
    struct parameter_store *store = &trainer->store;
    TRY(parameters_make_parameters(store));
    TRY(parameters_make_states(store));
    const struct optimizer_arrays master = parameters_master(store);
    status = replica_read(parameters_holder(store), &master);
done:
    return status;
}

tutti_status trainer_fetch(tutti_trainer *trainer)
{
    tutti_status status = TUTTI_OK;
    struct replica *replica;
    TRY(redo_lost(trainer));
    while ((replica = parameters_holder(&trainer->store))) {
        if (versions_are_torn(&replica->versions))
            FAIL(TUTTI_DEVICE_LOST,
                "device %d, '%s', failed while it updated the parameters: they may be from two different steps",
                replica->device->index, replica->device->can.name);
        status = trainer->journal ? journal_copy(trainer) : fetch_only(trainer);
        if (status == TUTTI_OK) break;
        TRY(trainer_lose(trainer, replica, status)); /* others do its last steps again */
        TRY(redo_lost(trainer));
    }
    parameters_fetched(&trainer->store);
done:
    return status;
}

tutti_status trainer_show(tutti_trainer *trainer, bool average)
{
    tutti_status status = TUTTI_OK;
    if (optimizer_average(&trainer->optimizer) < 0 || parameters_shows_average(&trainer->store) == average)
        return TUTTI_OK;
    TRY(trainer_fetch(trainer));
    parameters_show(&trainer->store, average);
done:
    return status;
}
