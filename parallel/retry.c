/* Attempts at a step. Each divides the rank's batch over the devices that are left (division.c); each device runs its
 * part (replica/run.c), and their gradients are summed (exchange.c). A device that fails is lost, and the others make
 * another attempt from the same samples and parameters, because the master copy changes only after every part has
 * succeeded and the losses are finite. Devices that share memory may already have new parameters; they get the old ones
 * again. Ranks that sum gradients make attempts together. If the network was compiled for one device and not for such
 * ranks, an attempt is attempt_on_only_device(). */
#include "parallel/retry.h"

#include "base/clock.h"
#include "base/floats.h"
#include "base/invariant.h"
#include "parallel/division.h"
#include "parallel/exchange.h"
#include "parallel/faults.h"
#include "parallel/journal.h"
#include "parallel/newest_copy.h"
#include "parallel/ranks_sum.h"
#include "parallel/rebalance.h"
#include "parallel/step.h"
#include "parallel/sync_ranks.h"
#include "parallel/trainer.h"

#include <float.h>

static tutti_status rebalance_and_divide(tutti_trainer *trainer, const struct step_input *input)
{
    const tutti_status status = rebalance_lost(trainer);
    return status == TUTTI_OK
        ? divide_over_devices(trainer, input->mode, input->samples, trainer->device_division.parts)
        : status;
}

/* Begins an attempt: divides the rank's batch over the devices; fetches the newest parameters to the host if some
 * device needs them. */
static struct vote divide_and_fetch(tutti_trainer *trainer, const struct step_input *input)
{
    tutti_status status = TUTTI_OK;
    bool wanted = false;
    TRY(newest_check(trainer));
    if (journal_lacks_steps(trainer)) return vote_replay();
    TRY(rebalance_and_divide(trainer, input));
    for (int i = 0; i < trainer->count; i++)
        wanted |= trainer->device_division.parts[i] > 0 && parameters_holder(trainer->store) != &trainer->replicas[i];
    if (!wanted) return vote_of(TUTTI_OK);
    TRY(newest_copy(trainer));
    if (journal_lacks_steps(trainer)) return vote_replay(); /* a device is lost now */
    TRY(rebalance_and_divide(trainer, input));
done:
    return vote_of(status);
}

/* Starts device `device` on its part, which begins at sample `offset` of the rank's batch. */
static void start_part(tutti_trainer *trainer, int device, const struct replica_work *common, int64_t offset)
{
    const struct step_input *input = &common->input;
    struct replica_work *work = &trainer->works[device];
    *work = *common;
    work->snapshot = parameters_snapshot(trainer->store, &trainer->replicas[device]);
    work->offset = offset;
    work->samples = trainer->device_division.parts[device];
    if (input->mode == PLAN_TRAIN) {
        work->next = lookahead_next(&trainer->lookahead, input->samples);
        work->synchronised = trainer->options.whole_batch && work->samples < input->global_samples;
    }
    INVARIANT(membership_is_present(&trainer->members, device));
    worker_start(&trainer->replicas[device].worker, replica_run, work);
}

static void start_all(tutti_trainer *trainer, const struct step *step, const struct replica *sole)
{
    const struct step_input *input = &step->input;
    struct replica_work common = { .input = *input, .update = sole != NULL, .keeps_gradients = step->kept != NULL };
    int64_t offset = 0;
    common.verify_parameters = trainer->options.advanced.check_replicas && input->mode == PLAN_TRAIN && !sole &&
        !parameters_holder(trainer->store); /* the master copy is the newest */
    if (common.verify_parameters)
        common.checksum = parameters_checksum(trainer->network, parameters_master(trainer->store).parameters);
    for (int i = 0; i < trainer->count; i++) {
        if (trainer->device_division.parts[i] == 0) continue;
        start_part(trainer, i, &common, offset);
        offset += trainer->device_division.parts[i];
    }
    INVARIANT(offset == input->samples);
}

/* Returns the vote of a device that has not done its part. */
static struct vote vote_of_failure(tutti_trainer *trainer, int device, tutti_status status)
{
    if (sync_devices_interrupted(&trainer->sync_devices, device)) return vote_retry(); /* by another's failure */
    const tutti_status lost = trainer_shrink_or_lose(trainer, &trainer->replicas[device], status);
    return lost == TUTTI_OK ? vote_retry() : vote_of(lost);
}

/* Waits for all devices and returns their vote. Each that has failed is handled now, until one failure ends the
 * training. */
static struct vote vote_of_devices(tutti_trainer *trainer, struct step_result *result)
{
    struct vote all = vote_of(TUTTI_OK);
    for (int i = 0; i < trainer->count; i++) {
        if (trainer->device_division.parts[i] == 0) continue;
        const tutti_status status = worker_wait(&trainer->replicas[i].worker);
        replica_end_attempt(&trainer->replicas[i]);
        if (status == TUTTI_OK)
            result->not_finite |= trainer->works[i].result.not_finite;
        else if (!vote_fails(&all))
            all = vote_of_failure(trainer, i, status);
    }
    return all;
}

static enum update_way update_way_of(const tutti_trainer *trainer, const struct step *step, const struct replica *sole)
{
    if (step->input.mode != PLAN_TRAIN || step->kept) return UPDATE_NONE;
    if (sole) return UPDATE_BY_DEVICE;
    return trainer_updates_from_sums(trainer) ? UPDATE_FROM_SUMS : UPDATE_IN_EXCHANGE;
}

/* Makes one attempt of a network that was compiled for several devices, or for ranks that sum gradients. A step
 * exchanges nothing if it has a sole replica. VOTE_RETRY: the work is retried, because a device was lost, is suspect,
 * takes fewer samples from now on, or was interrupted. VOTE_REPLAY: a lost device had the sole replica, and the others
 * must replay its steps first. */
static struct vote attempt_on_devices(tutti_trainer *trainer, struct step *step)
{
    tutti_status exchanged = TUTTI_OK;
    const struct step_input *input = &step->input;
    step->result.not_finite = false;
    const struct vote divided = divide_and_fetch(trainer, input);
    if (divided.says != VOTE_DONE) return divided;
    sync_devices_begin(trainer, input->global_samples);
    const bool trains = input->mode == PLAN_TRAIN;
    struct replica *sole = trains && !step->kept ? trainer_sole_replica(trainer) : NULL;
    step->result.sole = sole;
    step->result.update = update_way_of(trainer, step, sole);
    start_all(trainer, step, sole);
    if (trains && !sole) exchanged = exchange_run(trainer, step);
    if (sole && trainer->journal) journal_take_ahead(trainer);
    struct vote vote = vote_of_devices(trainer, &step->result);
    if (!vote_fails(&vote)) vote_take(&vote, exchanged);
    if (vote.says == VOTE_DONE && trains) vote = faults_check(trainer, step->replayed);
    return vote;
}

static void add_results(const tutti_trainer *trainer, const struct step_input *input, struct metric_totals *totals)
{
    metric_sums_add(&totals->metrics, &input->excluded);
    for (int i = 0; i < trainer->count; i++) {
        if (trainer->device_division.parts[i] == 0) continue;
        metric_sums_add(&totals->metrics, &trainer->works[i].result.metrics);
    }
}

/* Begins an attempt on the only device, which may be lost. If its first update has failed, the states of the optimizer
 * begin again, too. */
static tutti_status prepare_only_device(tutti_trainer *trainer, const struct step_input *input)
{
    tutti_status status = TUTTI_OK;
    TRY(newest_check(trainer));
    TRY(divide_over_devices(trainer, input->mode, input->samples, trainer->device_division.parts));
    if (versions_are_partial(&trainer->replicas[0].versions)) TRY(parameters_make_states(trainer->store));
done:
    return status;
}

/* Makes one attempt of a network that was compiled for one device, which does the whole step and updates itself. What
 * several devices need is left out: it has no steps of a lost device to replay, no statistics to exchange, no
 * master copy to compare with, and faults_check() would have no other device to put the blame on. If its memory is
 * full, the next attempt is with fewer samples at once. Only gradients that are kept are exchanged: copied to
 * step->kept. */
static struct vote attempt_on_only_device(tutti_trainer *trainer, struct step *step)
{
    tutti_status exchanged = TUTTI_OK;
    const struct replica_work common = { .input = step->input,
        .update = step->input.mode == PLAN_TRAIN && !step->kept,
        .keeps_gradients = step->kept != NULL };
    step->result.not_finite = false;
    step->result.sole = common.update ? &trainer->replicas[0] : NULL;
    step->result.update = update_way_of(trainer, step, step->result.sole);
    const tutti_status status = prepare_only_device(trainer, &step->input);
    if (status != TUTTI_OK) return vote_of(status);
    start_part(trainer, 0, &common, 0);
    if (common.keeps_gradients) exchanged = exchange_run(trainer, step);
    struct vote vote = vote_of_devices(trainer, &step->result);
    if (!vote_fails(&vote)) vote_take(&vote, exchanged);
    return vote;
}

struct vote run_attempts(tutti_trainer *trainer, struct step *step)
{
    struct vote vote;
    do {
        vote = trainer->options.exchange ? attempt_on_devices(trainer, step) : attempt_on_only_device(trainer, step);
    } while (vote.says == VOTE_RETRY);
    if (vote.says == VOTE_DONE) add_results(trainer, &step->input, &step->result.totals);
    return vote;
}

/* Each rank's gradients are finite, but their sum may not be. It is checked only if it can overflow. All ranks have
 * the same bytes, so they find the same. */
static bool sums_overflow(const tutti_trainer *trainer, const struct step_result *result)
{
    if (result->not_finite || result->largest < FLT_MAX / 2) return false;
    return floats_not_finite(parameters_gradients(trainer->store), trainer->network->total_floats);
}

tutti_status run_attempts_ranks(tutti_trainer *trainer, const struct vote *ready, struct step *step)
{
    struct vote mine = vote_fails(ready) ? *ready : vote_retry(); /* this rank has yet to compute its batch */
    enum verdict all = VOTE_RETRY;
    struct metric_totals own = { 0 };
    while (all == VOTE_RETRY) {
        ranks_begin_attempt(trainer);
        if (mine.says == VOTE_RETRY) {
            const double start = clock_seconds();
            own = (struct metric_totals) { .samples = step->input.samples };
            mine = attempt_on_devices(trainer, step);
            INVARIANT(mine.says != VOTE_REPLAY); /* there is no sole replica */
            if (mine.says == VOTE_DONE) add_results(trainer, &step->input, &own);
            trainer->ranks->seconds = clock_seconds() - start - sync_ranks_waited(trainer);
        }
        sync_ranks_end(trainer, &mine);
        step->result.totals = own;
        const tutti_status voted = ranks_end_attempt(trainer, &mine, &all, &step->result);
        if (voted != TUTTI_OK) return voted;
        /* Ranks that retry the step need this rank's statistics, too: it computes its batch again. */
        if (all == VOTE_RETRY && trainer->ranks->sync_ranks) mine = vote_retry();
    }
    step->result.not_finite |= sums_overflow(trainer, &step->result);
    return TUTTI_OK;
}
