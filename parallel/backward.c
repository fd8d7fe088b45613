#include "parallel/backward.h"

#include "base/clock.h"
#include "base/floats.h"
#include "base/memory.h"
#include "base/threads.h"
#include "parallel/commit.h"
#include "parallel/newest.h"
#include "parallel/ranks_average.h"
#include "parallel/ranks_notes.h"
#include "parallel/ranks_sum.h"
#include "parallel/rebalance.h"
#include "parallel/step.h"
#include "parallel/trainer.h"
#include "replica/clip.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void free_inputs(struct kept_gradients *kept)
{
    for (int i = 0; i < ARRAYS_MAX; i++) free(kept->inputs.at[i]);
    kept->inputs = (struct arrays) { 0 };
    kept->samples = 0;
}

void kept_gradients_free(struct kept_gradients *kept)
{
    free_inputs(kept);
    free(kept->sums);
    *kept = (struct kept_gradients) { 0 };
}

/* Makes the host's memory for the gradients of a batch. */
static tutti_status make(tutti_trainer *trainer, const struct batch *batch)
{
    tutti_status status = TUTTI_OK;
    struct kept_gradients *kept = &trainer->last.kept;
    const struct objective *objective = &trainer->objective;
    const int first = objective->output_count;
    if (!trainer->pool) TRY(thread_pool_new(&trainer->pool, trainer->network->runtime->threads));
    if (!kept->sums) kept->sums = memory_new((size_t)trainer->network->total_floats, sizeof(*kept->sums));
    if (!kept->sums) return TUTTI_NO_MEMORY;
    free_inputs(kept);
    kept->inputs.length = batch->feeds.length;
    for (int i = first; i < first + objective->gradient_input_count; i++) {
        const size_t bytes = arrays_sample_bytes(&trainer->outputs, i, batch->feeds.length);
        kept->inputs.at[i] = memory_new((size_t)batch->samples, bytes);
        if (!kept->inputs.at[i]) return TUTTI_NO_MEMORY;
    }
    kept->samples = batch->samples;
done:
    return status;
}

static void scale(float *values, int64_t count, float factor)
{
    for (int64_t i = 0; i < count && factor != 1; i++) values[i] *= factor;
}

/* Takes over what the attempt has given. */
static void keep(tutti_trainer *trainer, const struct step *step)
{
    struct kept_gradients *kept = &trainer->last.kept;
    const int64_t total = trainer->network->total_floats;
    const float unscale = step->input.constants.unscale;
    if (ranks_sum_mode(trainer))
        memcpy(kept->sums, parameters_gradients(trainer->store), (size_t)total * sizeof(*kept->sums));
    scale(kept->sums, total, unscale);
    for (int i = 0; i < trainer->outputs.count; i++) {
        if (!kept->inputs.at[i]) continue;
        const size_t bytes = arrays_sample_bytes(&trainer->outputs, i, kept->inputs.length);
        scale(kept->inputs.at[i], kept->samples * (int64_t)(bytes / sizeof(float)), unscale);
    }
    kept->valid = true;
    kept->applied = false;
}

/* Computes gradients until they are finite: with a lower loss scale, if that may help. */
static tutti_status compute_finite(
    tutti_trainer *trainer, const struct vote *ready, const struct batch *batch, struct step *step)
{
    tutti_status status = TUTTI_OK;
    struct kept_gradients *kept = &trainer->last.kept;
    do {
        struct vote vote = *ready;
        const double start = clock_seconds();
        *step = step_new(trainer, batch);
        step->kept = kept->sums;
        step->input.outputs = kept->inputs;
        step->input.gives_outputs = trainer->objective.gradient_input_count > 0;
        if (!vote_fails(&vote)) vote_take(&vote, step_check_and_rebalance(trainer, &step->input));
        TRY(step_run_attempts(trainer, &vote, step));
        if (trainer->options.automatic && !ranks_sum_mode(trainer)) /* ranks agree on shares in finish() of step.c */
            TRY(rebalance_after_step(trainer, &step->input, clock_seconds() - start));
        TRY(step_check_finite(trainer, step));
        if (step->result.not_finite) loss_scale_lower(&trainer->state.loss_scale);
    } while (step->result.not_finite);
done:
    return status;
}

static tutti_status backward(
    tutti_trainer *trainer, const struct vote *ready, const struct batch *batch, struct metric_totals *totals)
{
    struct step step = { 0 };
    struct vote vote = *ready;
    if (ranks_average_mode(trainer))
        return fail(TUTTI_UNSUPPORTED, "ranks that average parameters have no common gradients: sum them in each step");
    trainer->last.kept.valid = trainer->last.outputs.valid = false;
    trainer->last.stepped = false;        /* the devices' gradients are overwritten */
    lookahead_reset(&trainer->lookahead); /* it reads nothing that was announced */
    if (!vote_fails(&vote)) vote_take(&vote, make(trainer, batch));
    if (!vote_fails(&vote)) vote_take(&vote, trainer_use_ema(trainer, false));
    const tutti_status status = compute_finite(trainer, &vote, batch, &step);
    membership_clear(&trainer->members);
    *totals = step.result.totals;
    totals->samples = batch->global_samples;
    if (status == TUTTI_OK) keep(trainer, &step);
    return status;
}

tutti_status trainer_backward(
    tutti_trainer *trainer, const struct vote *ready, const struct batch *batch, struct metric_totals *totals)
{
    parameters_lock(trainer->store);
    const tutti_status status = backward(trainer, ready, batch, totals);
    parameters_unlock(trainer->store);
    return status;
}

/* Brings what an update changes to the host. */
static tutti_status fetch(tutti_trainer *trainer)
{
    tutti_status status = TUTTI_OK;
    TRY(trainer_use_ema(trainer, false));
    TRY(newest_to_host(trainer));
    TRY(parameters_make_states(trainer->store));
done:
    return status;
}

/* Does what can still fail on this rank alone: nothing is updated before. *norm: NaN if they are not clipped. */
static tutti_status prepare_update(tutti_trainer *trainer, float *norm)
{
    tutti_status status = TUTTI_OK;
    const struct kept_gradients *kept = &trainer->last.kept;
    const float *gradients = kept->sums;
    *norm = NAN;
    if (!kept->valid || kept->applied)
        FAIL(TUTTI_INVALID, "there are no gradients to be applied: call tutti_backward() first");
    TRY(fetch(trainer));
    if (floats_not_finite(gradients, trainer->network->total_floats))
        FAIL(TUTTI_NOT_FINITE, "a gradient is not finite: nothing was updated");
    if (trainer->optimizer.clip_norm <= 0) return TUTTI_OK;
    TRY(clip_norm_of(gradients, trainer->network->trained_floats, 1, trainer->pool, norm));
    if (!isfinite(*norm)) FAIL(TUTTI_NOT_FINITE, "the norm of the gradients is not finite: nothing was updated");
done:
    return status;
}

static tutti_status apply(tutti_trainer *trainer, tutti_status ready)
{
    tutti_status status = TUTTI_OK;
    float norm = NAN;
    struct kept_gradients *kept = &trainer->last.kept;
    struct step_constants constants = { 0 };
    TRY(ranks_agree(trainer, ready == TUTTI_OK ? prepare_update(trainer, &norm) : ready));
    optimizer_constants(
        &trainer->optimizer, trainer_learning_rate(trainer), training_state_updates(&trainer->state), &constants);
    update_from_sums(trainer, &constants, kept->sums, norm);
    parameters_commit(trainer->store, NULL, false);
    trainer->state.position.steps++;
    loss_scale_updated(&trainer->state.loss_scale);
    trainer->last.norm = norm;
    trainer->last.stepped = kept->applied = true;
done:
    return status;
}

tutti_status trainer_apply(tutti_trainer *trainer, tutti_status ready)
{
    parameters_lock(trainer->store);
    const tutti_status status = apply(trainer, ready);
    parameters_unlock(trainer->store);
    return status;
}
