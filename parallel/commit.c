#include "parallel/commit.h"

#include "parallel/exchange.h"
#include "parallel/ranks_sum.h"
#include "parallel/step.h"
#include "parallel/trainer.h"
#include "replica/clip.h"

#include <math.h>

/* Finds the norm of the gradients if they are clipped: a sole replica has computed its own. NaN: they are not. If the
 * host's is not finite, the step updates nothing; a device has checked its own. */
static tutti_status find_norm(const tutti_trainer *trainer, struct step *step)
{
    tutti_status status = TUTTI_OK;
    struct step_result *result = &step->result;
    const struct replica *sole = result->sole;
    result->norm = sole ? trainer->works[sole->number].result.norm : NAN;
    if (sole || trainer->optimizer.clip_norm <= 0 || result->not_finite) return TUTTI_OK;
    TRY(clip_norm_of(parameters_gradients(trainer->store), trainer->network->trained_floats,
        step->input.constants.unscale, trainer->pool, &result->norm));
    result->not_finite = !isfinite(result->norm);
done:
    return status;
}

void update_from_sums(
    tutti_trainer *trainer, const struct step_constants *constants, const float *gradients, float norm)
{
    const struct optimizer_arrays master = parameters_master(trainer->store);
    struct host_update update = { &trainer->optimizer, trainer->network, constants, NULL };
    const float clip = clip_factor(&trainer->optimizer, norm);
    if (trainer->optimizer.clip_norm > 0) update.clip = &clip;
    optimizer_update(&update, trainer->pool, master.parameters, gradients, master.states);
}

static void update_parameters(tutti_trainer *trainer, const struct step *step)
{
    struct replica *sole = step->result.sole;
    const enum update_way way = step->result.update;
    if (way == UPDATE_FROM_SUMS)
        update_from_sums(trainer, &step->input.constants, parameters_gradients(trainer->store), step->result.norm);
    parameters_commit(trainer->store, sole, way == UPDATE_IN_EXCHANGE);
    /* The devices that have the new parameters: */
    if (way == UPDATE_BY_DEVICE) versions_updated(&sole->versions, parameters_version(trainer->store), true);
    if (way == UPDATE_IN_EXCHANGE) exchange_mark_devices(trainer);
    /* The only device has the newest; the host's copy is made again when it is read (newest_copy.c). */
    if (!trainer->options.exchange) parameters_drop(trainer->store);
}

tutti_status step_check_finite(const tutti_trainer *trainer, const struct step *step)
{
    const double loss = step->result.totals.metrics.loss;
    const bool may_skip = !step->replayed && loss_scale_can_fall(&trainer->state.loss_scale);
    if (isfinite(loss) && (!step->result.not_finite || may_skip)) return TUTTI_OK;
    if (step->replayed)
        return fail(TUTTI_NOT_FINITE,
            "a step was finite on a device that is now lost, but is not on the others: see 'tutti devices --check'");
    return fail(TUTTI_NOT_FINITE,
        "the %s %s at step %lld: nothing was updated; lower the learning rate (%g) or look for "
        "NaN in the data",
        isfinite(loss) ? "gradients are" : "loss is",
        isnan(loss)          ? "NaN"
            : isfinite(loss) ? "not finite"
                             : "infinite",
        (long long)trainer->state.position.steps + 1, trainer_learning_rate(trainer));
}

tutti_status step_commit(tutti_trainer *trainer, struct step *step)
{
    tutti_status status = find_norm(trainer, step);
    if (status != TUTTI_OK) {
        if (ranks_sum_mode(trainer)) comm_leave(trainer->ranks->comm); /* the vote is over: the others update */
        return status;
    }
    trainer->last.norm = step->result.norm; /* also of a step that fails now */
    TRY(step_check_finite(trainer, step));
    for (int i = 0; i < trainer->count; i++)
        gradients_note_step(&trainer->replicas[i].gradients, trainer->device_division.parts[i] > 0);
    trainer->last.unscale = step->input.constants.unscale;
    trainer->last.stepped = true;
    if (!step->result.not_finite) update_parameters(trainer, step);
done:
    return status;
}
