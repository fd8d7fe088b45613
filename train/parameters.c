/* Parameters and checkpoints of a trainer, as the caller sees them. */
#include "train/parameters.h"

#include "base/log.h"
#include "graph/parameter_storage.h"
#include "parallel/newest.h"
#include "parallel/ranks_average.h"
#include "parallel/ranks_notes.h"
#include "parallel/step.h"
#include "parallel/trainer.h"
#include "runtime/forked.h"
#include "train/checks.h"
#include "tutti_steps.h"

#include <string.h>

static tutti_status find(tutti_trainer *trainer, const char *name, const struct parameter **parameter)
{
    if (!trainer || !name) return fail(TUTTI_INVALID, "the trainer or the parameter's name is NULL: pass both");
    *parameter = network_find(trainer->network, name);
    if (!*parameter)
        return fail(TUTTI_INVALID, "the network has no parameter '%s': tutti_parameter_info() lists them", name);
    return forked_check();
}

tutti_status trainer_check_array(const struct parameter *parameter, const float *values, int64_t count)
{
    if (!values) return fail(TUTTI_INVALID, "the array for '%s' is NULL: pass one", parameter->name);
    if (parameter->elements == count) return TUTTI_OK;
    return fail(TUTTI_INVALID, "'%s' has %lld elements, but the array has %lld: pass an array of the parameter's size",
        parameter->name, (long long)parameter->elements, (long long)count);
}

tutti_status trainer_find_trained(tutti_trainer *trainer, const char *name, const struct parameter **parameter)
{
    const tutti_status status = find(trainer, name, parameter);
    if (status != TUTTI_OK || (*parameter)->kind == PARAMETER_TRAINED) return status;
    return fail(TUTTI_INVALID, "'%s' is %s: it has no gradient", name,
        (*parameter)->kind == PARAMETER_FROZEN ? "frozen" : "a running statistic");
}

tutti_status trainer_find_parameter(tutti_trainer *trainer, const char *name, const struct parameter **parameter)
{
    tutti_status status;
    TRY(find(trainer, name, parameter));
    TRY(trainer_use_ema(trainer, false));
    TRY(newest_to_host(trainer));
done:
    return status;
}

tutti_status trainer_find_gradient(
    tutti_trainer *trainer, const char *name, const struct parameter **parameter, float **values)
{
    tutti_status status;
    TRY(trainer_find_trained(trainer, name, parameter));
    if (!trainer->last.kept.valid) FAIL(TUTTI_INVALID, "no gradients are kept: call tutti_backward() first");
    *values = trainer->last.kept.sums + (*parameter)->offset;
done:
    return status;
}

const char *tutti_state_name(const tutti_trainer *trainer, int position)
{
    if (!trainer || !trainer->options.trains || position < 0) return NULL;
    return position < optimizer_states(&trainer->optimizer) ? optimizer_state_name(&trainer->optimizer, position)
                                                            : NULL;
}

tutti_status trainer_find_state(
    tutti_trainer *trainer, const char *name, const char *state, const struct parameter **parameter, float **values)
{
    tutti_status status;
    int number = 0;
    if (!state) FAIL(TUTTI_INVALID, "the state's name is NULL: pass one of tutti_state_name()");
    TRY(trainer_find_trained(trainer, name, parameter));
    const char *one = tutti_state_name(trainer, 0);
    while (one && strcmp(one, state) != 0) one = tutti_state_name(trainer, ++number);
    if (!one)
        FAIL(TUTTI_INVALID, "%s has no state '%s': tutti_state_name() lists them",
            tutti_optimizer_name(trainer->optimizer.kind), state);
    TRY(trainer_use_ema(trainer, false));
    TRY(newest_to_host(trainer));
    TRY(parameters_make_states(trainer->store));
    *values = parameters_master(trainer->store).states[number] + (*parameter)->offset;
done:
    return status;
}

void trainer_parameter_changed(tutti_trainer *trainer, const struct parameter *parameter)
{
    if (parameter->kind == PARAMETER_TRAINED)
        parameters_begin_ema(trainer->store, parameter->offset, parameter->elements);
    parameters_changed(trainer->store);
}

static tutti_status get_parameter(tutti_trainer *trainer, const char *name, float *values, int64_t count)
{
    tutti_status status;
    const struct parameter *parameter = NULL;
    TRY(trainer_find_parameter(trainer, name, &parameter));
    TRY(trainer_check_array(parameter, values, count));
    const struct parameter_arenas arenas = parameters_arenas(trainer->store);
    parameter_get(parameter, &arenas, values);
done:
    return status;
}

tutti_status tutti_get_parameter(tutti_trainer *trainer, const char *name, float *values, int64_t count)
{
    trainer_lock(trainer);
    const tutti_status status = get_parameter(trainer, name, values, count);
    trainer_unlock(trainer);
    return status;
}

static tutti_status set_parameter(tutti_trainer *trainer, const char *name, const float *values, int64_t count)
{
    tutti_status status;
    const struct parameter *parameter = NULL;
    TRY(trainer_find_parameter(trainer, name, &parameter));
    TRY(trainer_check_owns(trainer, "tutti_set_parameter()"));
    TRY(trainer_check_array(parameter, values, count));
    const struct parameter_arenas arenas = parameters_arenas(trainer->store);
    parameter_set(parameter, &arenas, values);
    trainer_parameter_changed(trainer, parameter);
done:
    return status;
}

tutti_status tutti_set_parameter(tutti_trainer *trainer, const char *name, const float *values, int64_t count)
{
    trainer_lock(trainer);
    const tutti_status status = set_parameter(trainer, name, values, count);
    trainer_unlock(trainer);
    return status;
}

/* --------------------------------------------------------------------------------------------- checkpoints ---- */

static void describe(const tutti_trainer *trainer, struct checkpoint *checkpoint)
{
    const struct optimizer_arrays master = parameters_master(trainer->store);
    const tutti_trainer *owner = parameters_owner(trainer->store);
    if (!owner) owner = trainer;
    *checkpoint = (struct checkpoint) { .parameters = trainer->network->parameters,
        .count = trainer->network->parameter_count,
        .weights = parameters_arenas(trainer->store),
        .optimizer = &trainer->optimizer,
        .position = owner->state.position,
        .loss_scale = trainer->state.loss_scale,
        .seed = trainer->state.seed,
        .metadata = trainer->metadata->count > 0 ? trainer->metadata : owner->metadata };
    for (int i = 0; i < OPTIMIZER_STATES; i++) checkpoint->states[i] = master.states[i];
}

tutti_status trainer_checkpoint(tutti_trainer *trainer, bool ema, bool states, struct checkpoint *checkpoint)
{
    tutti_status status = trainer_check_views(trainer);
    if (status == TUTTI_OK) status = newest_to_host(trainer);
    if (status == TUTTI_OK && states && trainer->options.trains) status = parameters_make_states(trainer->store);
    if (status == TUTTI_OK) status = trainer_use_ema(trainer, ema);
    describe(trainer, checkpoint);
    return status;
}

static tutti_status check_trains(const tutti_trainer *trainer, const char *what)
{
    if (!trainer || trainer->options.trains) return TUTTI_OK;
    const bool owns = parameters_owner(trainer->store) == trainer;
    return fail(TUTTI_INVALID, "this trainer %s, so there is no training to %s",
        owns ? "has no loss" : "reads another one's parameters", what);
}

tutti_status trainer_begin_file(tutti_trainer *trainer, const char *name, tutti_status status)
{
    if (!trainer) return fail(TUTTI_INVALID, "the trainer is NULL: make one with tutti_compile()");
    if (status == TUTTI_OK) status = checkpoint_check_name(name);
    if (status == TUTTI_OK) status = trainer_check_views(trainer);
    return ranks_report_failure(trainer, status);
}

bool trainer_writes(const tutti_trainer *trainer)
{
    return !trainer->ranks || trainer->ranks->comm->rank == 0;
}

static tutti_status save_weights(tutti_trainer *trainer, const char *path)
{
    struct checkpoint checkpoint;
    trainer_lock(trainer);
    tutti_status status = trainer_checkpoint(trainer, true, false, &checkpoint);
    if (status == TUTTI_OK && trainer_writes(trainer)) status = weights_save(&checkpoint, path);
    trainer_unlock(trainer);
    return status;
}

tutti_status tutti_save_weights(tutti_trainer *trainer, const char *path)
{
    tutti_status status;
    struct metric_totals totals;
    TRY(forked_check());
    TRY(trainer_begin_file(trainer, path, TUTTI_OK));
    TRY(trainer_settle(trainer, &totals));
    status = ranks_agree(trainer, save_weights(trainer, path));
done:
    return status;
}

tutti_status tutti_set_metadata(tutti_trainer *trainer, const char *key, const char *value)
{
    if (!trainer || !key) return fail(TUTTI_INVALID, "the trainer or the key is NULL: pass both");
    return metadata_set(trainer->metadata, key, value);
}

static tutti_status load_weights(tutti_trainer *trainer, const char *path)
{
    tutti_status status;
    struct checkpoint checkpoint;
    struct metric_totals totals;
    TRY(forked_check());
    TRY(trainer_begin_file(trainer, path, TUTTI_OK));
    TRY(trainer_check_owns(trainer, "tutti_load_weights()"));
    TRY(trainer_settle(trainer, &totals));
    TRY(ranks_agree(trainer, trainer_checkpoint(trainer, false, false, &checkpoint)));
    TRY(ranks_agree(trainer, trainer_writes(trainer) ? weights_load(&checkpoint, path) : TUTTI_OK));
    TRY(ranks_share_arenas(trainer));
    parameters_begin_ema(trainer->store, 0, trainer->network->trained_floats);
    parameters_changed(trainer->store);
done:
    return status;
}

tutti_status tutti_load_weights(tutti_trainer *trainer, const char *path)
{
    trainer_lock(trainer);
    const tutti_status status = load_weights(trainer, path);
    trainer_unlock(trainer);
    return status;
}

static tutti_status save_all(tutti_trainer *trainer, const char *name)
{
    tutti_status status;
    struct checkpoint checkpoint;
    TRY(trainer_checkpoint(trainer, true, true, &checkpoint));
    if (trainer_writes(trainer)) TRY(checkpoint_save(&checkpoint, name));
done:
    return status;
}

tutti_status trainer_save(tutti_trainer *trainer, const char *name)
{
    trainer_lock(trainer);
    const tutti_status status = save_all(trainer, name);
    trainer_unlock(trainer);
    return status;
}

tutti_status tutti_save(tutti_trainer *trainer, const char *name)
{
    tutti_status status;
    struct metric_totals totals;
    TRY(forked_check());
    TRY(trainer_begin_file(trainer, name, check_trains(trainer, "save: use tutti_save_weights()")));
    TRY(trainer_settle(trainer, &totals));
    TRY(ranks_agree(trainer, trainer_save(trainer, name)));
done:
    return status;
}

/* On the rank that has the files: reads them. */
static tutti_status load(const tutti_trainer *trainer, const char *name, struct checkpoint *checkpoint)
{
    if (!trainer_writes(trainer)) return TUTTI_OK;
    const tutti_status status = checkpoint_load(checkpoint, name);
    if (status == TUTTI_OK && checkpoint->begun > 0)
        log_warn(&trainer->network->runtime->log,
            "%d parameters were frozen when '%s' was saved: they train from now on, with new states of the optimizer",
            checkpoint->begun, name);
    return status;
}

/* Returns the only device, if its update has failed: the host cannot get its parameters, nor need it where a file
 * replaces them all. Else NULL. */
static struct replica *partial_holder(const tutti_trainer *trainer)
{
    struct replica *holder = parameters_holder(trainer->store);
    return holder && !trainer->journal && versions_are_partial(&holder->versions) ? holder : NULL;
}

/* Makes the arrays that a file fills. */
static tutti_status checkpoint_to_fill(tutti_trainer *trainer, struct checkpoint *checkpoint)
{
    tutti_status status = TUTTI_OK;
    if (!partial_holder(trainer)) return trainer_checkpoint(trainer, true, true, checkpoint);
    TRY(parameters_make_parameters(trainer->store));
    TRY(parameters_make_states(trainer->store));
    parameters_use_ema(trainer->store, true);
    describe(trainer, checkpoint);
done:
    return status;
}

static tutti_status resume(tutti_trainer *trainer, const char *name)
{
    tutti_status status;
    struct checkpoint checkpoint;
    TRY(forked_check());
    TRY(trainer_begin_file(trainer, name, check_trains(trainer, "resume: use tutti_load_weights()")));
    TRY(ranks_agree(trainer, checkpoint_to_fill(trainer, &checkpoint)));
    TRY(ranks_agree(trainer, load(trainer, name, &checkpoint)));
    TRY(ranks_share_arenas(trainer));
    TRY(ranks_broadcast(trainer, &checkpoint.position, sizeof(checkpoint.position)));
    TRY(ranks_broadcast(trainer, &checkpoint.loss_scale, sizeof(checkpoint.loss_scale)));
    TRY(ranks_broadcast(trainer, &checkpoint.seed, sizeof(checkpoint.seed)));
    trainer->state.position = checkpoint.position;
    loss_scale_resume(&trainer->state.loss_scale, &checkpoint.loss_scale);
    trainer->state.seed = checkpoint.seed;
    trainer->state.resumed = true;
    if (trainer->ranks) ranks_average_reset(trainer->ranks);
    struct replica *partial = partial_holder(trainer);
    if (partial) versions_mark_partial(&partial->versions, false);
    if (partial) parameters_fetched(trainer->store);
    parameters_changed(trainer->store);
done:
    return status;
}

tutti_status trainer_resume(tutti_trainer *trainer, const char *name)
{
    trainer_lock(trainer);
    const tutti_status status = resume(trainer, name);
    trainer_unlock(trainer);
    return status;
}

tutti_status tutti_resume(tutti_trainer *trainer, const char *name)
{
    const tutti_status status = trainer_check_trains(trainer, "tutti_resume()");
    return status == TUTTI_OK ? trainer_resume(trainer, name) : status;
}
