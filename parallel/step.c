/* A step. Each attempt divides the batch over the replicas (retry.c, division.c), each runs its part (replica/run.c),
 * and their gradients are summed (exchange.c). The attempt that succeeds is committed (commit.c). A sole replica has
 * the whole batch, and its update is part of its run. */
#include "parallel/step.h"

#include "base/clock.h"
#include "base/log.h"
#include "parallel/commit.h"
#include "parallel/faults.h"
#include "parallel/journal.h"
#include "parallel/newest.h"
#include "parallel/ranks_average.h"
#include "parallel/ranks_division.h"
#include "parallel/ranks_sum.h"
#include "parallel/rebalance.h"
#include "parallel/replay.h"
#include "parallel/retry.h"
#include "parallel/trainer.h"

#include <math.h>

/* ------------------------------------------------------------------------------------------- after a step ---- */

static void traffic_add(struct traffic *sum, const struct traffic *more)
{
    sum->bytes += more->bytes;
    sum->seconds += more->seconds;
    sum->overlapped += more->overlapped;
}

/* Adds the devices' times of the step. A device is idle for the time of the step beyond its own part. */
static void add_device_times(tutti_trainer *trainer, double seconds)
{
    trainer->report.steps++;
    trainer->report.seconds += seconds;
    for (int i = 0; i < trainer->count; i++) {
        struct replica_report *report = &trainer->replicas[i].report;
        const struct replica_result done =
            trainer->device_division.parts[i] > 0 ? trainer->works[i].result : (struct replica_result) { 0 };
        const double busy = fmin(done.seconds, seconds);
        const double overlapped = done.sent.overlapped + done.received.overlapped;
        const double transfer = fmin(done.sent.seconds + done.received.seconds - overlapped, busy);
        report->compute_s += busy - transfer;
        report->transfer_s += transfer;
        report->idle_s += seconds - busy;
        traffic_add(&report->sent, &done.sent);
        traffic_add(&report->received, &done.received);
    }
}

/* Returns the samples of the step: of the global batch, or of this rank's where ranks average parameters. */
static int64_t samples_of(const tutti_trainer *trainer, const struct batch *batch)
{
    return ranks_average_mode(trainer) ? batch->samples : batch->global_samples;
}

static void note_scale(tutti_trainer *trainer, const struct step_result *result)
{
    struct loss_scale *loss_scale = &trainer->state.loss_scale;
    if (!result->not_finite) {
        loss_scale_updated(loss_scale);
        return;
    }
    loss_scale_skipped(loss_scale);
    if (ranks_sum_mode(trainer) && trainer->ranks->comm->rank > 0) return; /* they all do the same */
    log_warn(&trainer->network->runtime->log,
        "step %lld updated nothing, because its gradients overflow; losses are scaled by %.0f instead of %.0f from now "
        "on",
        (long long)trainer->state.position.steps, loss_scale->scale, 2 * loss_scale->scale);
}

/* ------------------------------------------------------------------------------------------------ the step ---- */

tutti_status step_check_and_rebalance(tutti_trainer *trainer, struct step_input *input)
{
    tutti_status status = TUTTI_OK;
    if (input->samples > 0) trainer->feeds.length = input->feeds.length;
    TRY(feeds_check_and_count(&trainer->feeds, &input->feeds, input->samples, &input->excluded));
    if (trainer->ranks) TRY(repartition_advance(trainer, rebalance_is_changing(trainer)));
    if (trainer->options.automatic) TRY(rebalance_before_step(trainer, input->samples));
done:
    return status;
}

static struct step_input input_of(
    const tutti_trainer *trainer, const struct batch *batch, const struct step_constants *constants)
{
    struct step_input input = { .mode = PLAN_TRAIN,
        .feeds = batch->feeds,
        .samples = batch->samples,
        .global_samples = samples_of(trainer, batch),
        .global_offset = batch->global_offset,
        .number = lookahead_number(&trainer->lookahead, batch),
        .constants = *constants,
        .gives_outputs = batch->outputs != NULL };
    if (batch->outputs) input.outputs = *batch->outputs;
    return input;
}

static void count_step(tutti_trainer *trainer, const struct step_result *result)
{
    trainer->state.position.steps++;
    note_scale(trainer, result);
}

/* After the commit: counts the step, notes it in the journal, and decides about shares by its time. A failure here is
 * not voted on: this rank leaves, and the other ranks end when they hear no more from it. */
static tutti_status finish(tutti_trainer *trainer, const struct step *step, double start)
{
    tutti_status status = TUTTI_OK;
    const struct step_input *input = &step->input;
    count_step(trainer, &step->result);
    if (!step->result.not_finite) TRY(journal_note(trainer, input, clock_seconds() - start));
    TRY(replay_lost(trainer)); /* journal_note() may have lost the device while copying its parameters */
    const double seconds = clock_seconds() - start;
    add_device_times(trainer, seconds);
    if (ranks_sum_mode(trainer)) ranks_decide(trainer, seconds);
    if (trainer->options.automatic)
        TRY(rebalance_after_step(trainer, input, ranks_sum_mode(trainer) ? trainer->ranks->seconds : seconds));
done:
    if (status != TUTTI_OK && ranks_sum_mode(trainer)) comm_leave(trainer->ranks->comm);
    return status;
}

/* A step in which this rank, which averages parameters, has no samples. It averages later. */
static tutti_status skip_step(tutti_trainer *trainer, const struct vote *vote, const struct step *step)
{
    if (!vote_fails(vote)) count_step(trainer, &step->result);
    return vote_status(vote);
}

tutti_status step_run_attempts(tutti_trainer *trainer, struct vote *vote, struct step *step)
{
    if (ranks_sum_mode(trainer)) return run_attempts_ranks(trainer, vote, step);
    const tutti_status status = vote_status(vote);
    return status == TUTTI_OK ? run_attempts_and_replays(trainer, step) : status;
}

/* Does the step on this rank's batch; if ranks sum gradients, together with them. */
static tutti_status run_step(tutti_trainer *trainer, struct vote *vote, struct step *step)
{
    tutti_status status = TUTTI_OK;
    struct step_input *input = &step->input;
    if (!vote_fails(vote)) vote_take(vote, trainer_use_ema(trainer, false));
    if (!vote_fails(vote)) vote_take(vote, step_check_and_rebalance(trainer, input));
    if (ranks_average_mode(trainer) && input->samples == 0) return skip_step(trainer, vote, step);
    const double start = clock_seconds();
    if (!vote_fails(vote) && input->samples > 0 && trainer->journal && trainer_sole_replica(trainer))
        TRY(journal_take(trainer, input));
    TRY(step_run_attempts(trainer, vote, step));
    TRY(step_commit(trainer, step));
    TRY(finish(trainer, step, start));
done:
    return status;
}

/* Makes the parameters of all ranks their mean. */
static tutti_status average(tutti_trainer *trainer, struct vote *vote, struct metric_totals *totals)
{
    if (!vote_fails(vote)) vote_take(vote, newest_to_host(trainer));
    if (!vote_fails(vote)) vote_take(vote, trainer_use_ema(trainer, false)); /* on all ranks */
    if (!vote_fails(vote)) vote_take(vote, parameters_make_states(trainer->store));
    if (!vote_fails(vote)) vote_take(vote, ranks_make_average(trainer));
    return ranks_average_parameters(trainer, vote, totals);
}

tutti_status trainer_settle(tutti_trainer *trainer, struct metric_totals *totals)
{
    *totals = (struct metric_totals) { 0 };
    if (!ranks_average_mode(trainer) || trainer->ranks->average.steps == 0) return TUTTI_OK;
    parameters_lock(trainer->store);
    struct vote vote = vote_of(trainer_check_views(trainer)); /* the master copy moves */
    const tutti_status status = average(trainer, &vote, totals);
    parameters_unlock(trainer->store);
    return status;
}

/* Seed and step, from which layers make random numbers. */
static struct step_constants random_constants(const tutti_trainer *trainer)
{
    const uint64_t seed = trainer->state.seed, step = (uint64_t)trainer->state.position.steps;
    return (struct step_constants) { .seed_low = (uint32_t)seed,
        .seed_high = (uint32_t)(seed >> 32),
        .step_low = (uint32_t)step,
        .step_high = (uint32_t)(step >> 32) };
}

struct step step_new(const tutti_trainer *trainer, const struct batch *batch)
{
    const int64_t samples = samples_of(trainer, batch);
    struct step_constants constants = random_constants(trainer);
    constants.gradient_weight = samples > 0 ? (float)(1.0 / (double)samples) : 0;
    optimizer_constants(
        &trainer->optimizer, trainer_learning_rate(trainer), training_state_updates(&trainer->state), &constants);
    loss_scale_constants(&trainer->state.loss_scale, &constants);
    return (struct step) { .input = input_of(trainer, batch, &constants) };
}

static tutti_status step_with_parameters(
    tutti_trainer *trainer, const struct vote *ready, const struct batch *batch, struct metric_totals *totals)
{
    struct vote vote = *ready;
    struct step step = step_new(trainer, batch);
    trainer->last.kept.valid = trainer->last.outputs.valid = false;
    const double start = clock_seconds();
    tutti_status status = run_step(trainer, &vote, &step);
    *totals = step.result.totals;
    membership_clear(&trainer->members);
    if (ranks_average_mode(trainer)) {
        vote = vote_of(status);
        trainer->ranks->seconds = clock_seconds() - start;
        if (vote_fails(&vote)) *totals = (struct metric_totals) { 0 };
        ranks_local_step(trainer, vote_fails(&vote) ? &(struct batch) { 0 } : batch, totals);
        if (vote_fails(&vote) || trainer->ranks->average.steps >= trainer->ranks->average.every)
            status = average(trainer, &vote, totals);
    }
    totals->samples = batch->global_samples;
    lookahead_advance(&trainer->lookahead);
    return status;
}

tutti_status trainer_step(
    tutti_trainer *trainer, const struct vote *ready, const struct batch *batch, struct metric_totals *totals)
{
    parameters_lock(trainer->store);
    const tutti_status status = step_with_parameters(trainer, ready, batch, totals);
    parameters_unlock(trainer->store);
    return status;
}

static tutti_status forward_with_parameters(tutti_trainer *trainer, enum plan_mode mode, const struct arrays *feeds,
    int64_t samples, struct metric_totals *totals, const struct arrays *outputs)
{
    tutti_status status = TUTTI_OK;
    TRY(trainer_check_views(trainer)); /* of its owner: they may have been opened while this call waited */
    /* All samples, before any is computed: the chunks' `excluded` stays 0. */
    if (mode != PLAN_INFER) TRY(feeds_check_and_count(&trainer->feeds, feeds, samples, &totals->metrics));
    TRY(trainer_use_ema(trainer, true));
    if (parameters_owner(trainer->store) != trainer) TRY(newest_to_host(trainer));
    trainer->last.outputs.valid = false;
    for (int64_t done_samples = 0; done_samples < samples;) {
        const int64_t left = samples - done_samples;
        struct step step = { .result.totals = *totals };
        struct step_input *input = &step.input;
        input->mode = mode;
        input->samples = left < trainer->device_division.rank_batch ? left : trainer->device_division.rank_batch;
        input->feeds = arrays_from(&trainer->feeds.arrays, feeds, done_samples);
        if (outputs) input->outputs = arrays_from(&trainer->outputs, outputs, done_samples);
        input->gives_outputs = outputs != NULL;
        input->keeps = mode == PLAN_INFER && samples == input->samples ? trainer->last.outputs.wanted : NULL;
        input->constants = random_constants(trainer);
        input->constants.gradient_weight = (float)(1.0 / (double)input->samples);
        input->global_offset = done_samples;
        TRY(run_attempts_and_replays(trainer, &step));
        *totals = step.result.totals;
        done_samples += input->samples;
    }
done:
    return status;
}

/* A device of a reader that has begun to hang may still read the arrays that it was given. */
static void leak_what_is_read(tutti_trainer *trainer)
{
    if (parameters_owner(trainer->store) == trainer) return;
    if (membership_note_hanging(&trainer->members, devices_hanging(trainer))) parameters_leak(trainer->store);
}

tutti_status trainer_forward(tutti_trainer *trainer, enum plan_mode mode, const struct arrays *feeds, int64_t samples,
    struct metric_totals *totals, const struct arrays *outputs)
{
    parameters_lock(trainer->store);
    const tutti_status status = forward_with_parameters(trainer, mode, feeds, samples, totals, outputs);
    leak_what_is_read(trainer);
    parameters_unlock(trainer->store);
    return status;
}
