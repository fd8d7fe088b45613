/* The host's arenas: the master copy of parameters and of the optimizer's states. */
#include "train/trainer.h"

#include "base/memory.h"

#include <stdlib.h>

static tutti_status make_arena(float **arena, int64_t floats)
{
    if (!*arena) *arena = memory_new((size_t)floats, sizeof(float));
    return *arena ? TUTTI_OK : TUTTI_NO_MEMORY;
}

tutti_status trainer_make_arenas(tutti_trainer *trainer, bool ranks)
{
    tutti_status status = TUTTI_OK;
    const int64_t total = trainer->network->total_floats, trained = trainer->network->trained_floats;
    TRY(make_arena(&trainer->parameters, total));
    if (trainer->network->frozen_floats > 0) TRY(make_arena(&trainer->frozen, trainer->network->frozen_floats));
    trainer->version = trainer->frozen_version = 1;
    if (!trainer->exchange || !trainer->trains) return TUTTI_OK;
    TRY(make_arena(ranks ? &trainer->gradients : &trainer->next_parameters, total));
    for (int i = 0; i < optimizer_states(&trainer->optimizer); i++) {
        TRY(make_arena(&trainer->states[i], trained));
        if (!ranks) TRY(make_arena(&trainer->next_states[i], trained));
    }
done:
    return status;
}

tutti_status trainer_make_states(tutti_trainer *trainer)
{
    tutti_status status = TUTTI_OK;
    for (int i = 0; i < optimizer_states(&trainer->optimizer); i++)
        TRY(make_arena(&trainer->states[i], trainer->network->trained_floats));
done:
    return status;
}

void trainer_free_arenas(tutti_trainer *trainer)
{
    free(trainer->parameters);
    free(trainer->next_parameters);
    free(trainer->gradients);
    trainer->parameters = trainer->next_parameters = trainer->gradients = NULL;
    for (int i = 0; i < OPTIMIZER_STATES; i++) {
        free(trainer->states[i]);
        free(trainer->next_states[i]);
        trainer->states[i] = trainer->next_states[i] = NULL;
    }
}

tutti_status trainer_fetch_only(tutti_trainer *trainer)
{
    tutti_status status = TUTTI_OK;
    const struct replica *replica = trainer->newest;
    const size_t trained = (size_t)trainer->network->trained_floats, total = (size_t)trainer->network->total_floats;
    TRY(make_arena(&trainer->parameters, (int64_t)total));
    TRY(buffer_read(replica->device, replica->parameters, 0, trainer->parameters, total * sizeof(float)));
    for (int i = 0; i < OPTIMIZER_STATES; i++) {
        if (!replica->states[i]) continue;
        TRY(make_arena(&trainer->states[i], (int64_t)trained));
        TRY(buffer_read(replica->device, replica->states[i], 0, trainer->states[i], trained * sizeof(float)));
    }
done:
    return status;
}

void trainer_changed(tutti_trainer *trainer)
{
    trainer->version++;
    trainer->frozen_version++;
}
