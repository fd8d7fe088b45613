/* The loop over epochs: batches are read (batches.c), steps done, test data evaluated (evaluate.c), checkpoints saved,
 * progress reported. */
#include "train/fit.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/options.h"
#include "parallel/ranks_notes.h"
#include "parallel/step.h"
#include "parallel/trainer.h"
#include "runtime/forked.h"
#include "train/batches.h"
#include "train/buckets.h"
#include "train/checks.h"
#include "train/evaluate.h"
#include "train/objective.h"
#include "train/parameters.h"

#include <stdlib.h>

/* Returns the sums of the epoch so far. */
static struct metric_sums metric_sums_of(const struct position *position)
{
    return (
        struct metric_sums) { .loss = position->loss, .correct = position->correct, .excluded = position->excluded };
}

static void position_add(struct position *position, const struct metric_sums *sums)
{
    position->loss += sums->loss;
    position->correct += sums->correct;
    position->excluded += sums->excluded;
}

static void report_progress(const struct fit *fit, const tutti_metrics *test)
{
    const tutti_trainer *trainer = fit->trainer;
    const struct position *position = &trainer->state.position;
    tutti_progress progress = { .epoch = position->epoch + 1,
        .epochs = fit->epochs,
        .step = divide_up(position->samples, fit->batch),
        .steps_in_epoch = fit_steps_of_epoch(fit),
        .total_steps = position->steps,
        .samples_per_s = fit->epoch_seconds > 0 ? (double)fit->epoch_samples / fit->epoch_seconds : 0,
        .end_of_epoch = test != NULL,
        .samples = fit->samples };
    if (!fit->fitting->progress) return;
    const struct metric_sums sums = metric_sums_of(position);
    metrics_set(trainer, &sums, position->samples, &progress.train);
    if (test) progress.test = *test;
    if (fit->fitting->progress(fit->fitting->user, &progress) != 0) tutti_cancel(fit->trainer);
}

static bool cancelled(const struct fit *fit)
{
    return trainer_stops(fit->trainer);
}

static bool enough(const struct fit *fit)
{
    return fit->fitting->steps > 0 && fit->steps >= fit->fitting->steps;
}

/* Returns the number of complete epochs at which the call returns. */
static int64_t last_epoch(const struct fit *fit)
{
    const int64_t pause = fit->fitting->pause_after;
    return pause > 0 && pause < fit->epochs ? pause : fit->epochs;
}

static void set_rate(const struct fit *fit)
{
    struct training_state *state = &fit->trainer->state;
    state->scheduled = fit->fitting->schedule != NULL;
    if (!state->scheduled) return;
    state->rate = (float)schedule_rate(
        &fit->schedule, fit->trainer->optimizer.learning_rate, fit_steps_done(fit), state->position.plateau.reductions);
}

/* Takes the next batch, unless a callback has left a view open: then *batch stays as it is. */
static tutti_status next_batch(const tutti_trainer *trainer, struct batches *batches, struct batch *batch)
{
    const tutti_status status = trainer_check_views(trainer);
    return status == TUTTI_OK ? batches_next(batches, batch) : status;
}

/* An epoch that has begun goes on in the same order. */
static tutti_status open_epoch(struct position *position, const tutti_source *source,
    const struct batches_options *options, struct batches **batches)
{
    tutti_status status;
    TRY(batches_open(batches, source, options));
    if (position->samples > 0 && position->epoch_order != batches_order(*batches))
        FAIL(TUTTI_MISMATCH,
            "the checkpoint was saved within an epoch whose batches were chosen by other lengths: resume with the same "
            "buckets, batch and data");
    position->epoch_order = batches_order(*batches);
done:
    return status;
}

/* Does the remaining steps of the epoch, or fewer if cancelled or if enough steps are done. */
static tutti_status train_epoch(struct fit *fit)
{
    tutti_status status;
    tutti_trainer *trainer = fit->trainer;
    const tutti_fitting *fitting = fit->fitting;
    struct position *position = &trainer->state.position;
    struct batches *batches = NULL;
    const struct batches_options options = { .batch = fit->batch,
        .feeds = &trainer->feeds,
        .ranks = trainer->ranks,
        .shuffle = !fitting->no_shuffle,
        .seed = trainer->state.seed,
        .epoch = (uint64_t)position->epoch,
        .position = position->samples,
        .end = fit->source->samples,
        .step = position->steps };
    fit->epoch_samples = 0;
    fit->epoch_seconds = 0;
    if (fitting->begin_epoch)
        fitting->begin_epoch(fit->over_arrays ? fitting->user : fit->source->user, position->epoch);
    status = open_epoch(position, fit->source, &options, &batches);
    TRY(ranks_same(
        trainer, status, &(struct common) { "lengths of samples or buckets", (uint64_t)position->epoch_order }, 1));
    struct metric_totals totals;
    while (!cancelled(fit) && !enough(fit)) {
        struct batch batch = { 0 };
        const double start = clock_seconds();
        const struct vote ready = vote_of(next_batch(trainer, batches, &batch));
        trainer->report.waited += clock_seconds() - start;
        if (!vote_fails(&ready) && batch.global_samples == 0) break;
        struct batch next;
        if (batches_peek(batches, &next)) lookahead_announce(&trainer->lookahead, &next);
        set_rate(fit);
        TRY(trainer_step(trainer, &ready, &batch, &totals));
        fit->epoch_seconds += clock_seconds() - start;
        fit->epoch_samples += batch.global_samples;
        fit->steps++;
        fit->samples += batch.global_samples;
        position->samples += batch.global_samples;
        position_add(position, &totals.metrics);
        report_progress(fit, NULL);
    }
    TRY(trainer_settle(trainer, &totals));
    position_add(position, &totals.metrics);
done:
    lookahead_reset(&trainer->lookahead);
    batches_close(batches);
    return status;
}

/* Saves after an epoch. If the file cannot be written, training goes on, because a full disk may have room at the
 * next save. All ranks have the same status. */
static tutti_status save_epoch(struct fit *fit)
{
    const tutti_status status = fit_save(fit);
    fit->unsaved = status == TUTTI_FILE;
    if (!fit->unsaved) return status;
    if (trainer_writes(fit->trainer))
        log_warn(&fit->trainer->network->runtime->log, "epoch %lld is not saved, training goes on: %s",
            (long long)fit->trainer->state.position.epoch, status_message());
    return TUTTI_OK;
}

/* If the best weights cannot be written, the best epoch stays the one whose weights are there. */
static tutti_status save_best(const struct fit *fit, int64_t epoch, bool *saved)
{
    tutti_trainer *trainer = fit->trainer;
    char *path = memory_format("%s.best.safetensors", fit->fitting->save);
    if (!path) return TUTTI_NO_MEMORY;
    const tutti_status status = tutti_save_weights(trainer, path);
    free(path);
    *saved = status == TUTTI_OK;
    if (status != TUTTI_FILE) return status;
    if (trainer_writes(trainer))
        log_warn(&trainer->network->runtime->log, "the weights of epoch %lld, the best so far, are not saved: %s",
            (long long)epoch, status_message());
    return TUTTI_OK;
}

/* Decides by the epoch's metrics on a plateau and the best epoch. The best weights are saved before the checkpoint
 * records them: a training that is killed in between writes them again. */
static tutti_status judge(const struct fit *fit, const tutti_metrics *test, struct position *next)
{
    tutti_status status = TUTTI_OK;
    const tutti_fitting *fitting = fit->fitting;
    const struct position *position = &fit->trainer->state.position;
    tutti_metrics metrics = *test;
    bool better;
    const struct metric_sums sums = metric_sums_of(position);
    if (!fitting->test) metrics_set(fit->trainer, &sums, position->samples, &metrics);
    next->plateau = position->plateau;
    next->best = position->best;
    if (fit->schedule.options.kind == TUTTI_SCHEDULE_PLATEAU)
        plateau_judge(&next->plateau, &fit->schedule, metrics.loss);
    if (fitting->patience == 0) next->best.bad = 0; /* patience that is asked for later begins to count then */
    if (fitting->patience == 0 && !fitting->save_best) return TUTTI_OK;
    better = best_is_beaten(&position->best, &metrics);
    if (fitting->patience > 0) next->best.bad = better ? 0 : position->best.bad + 1;
    if (better && fitting->save_best) TRY(save_best(fit, next->epoch, &better));
    if (better) next->best = best_of(&metrics, next->epoch);
done:
    return status;
}

/* Returns whether there was no better result for too many epochs. */
static bool exhausted(const struct fit *fit)
{
    const struct position *position = &fit->trainer->state.position;
    return fit->fitting->patience > 0 && position->samples == 0 && position->best.bad >= fit->fitting->patience;
}

/* Test, checkpoint, progress. The epoch counts as complete only after its test, so that a training that was cancelled
 * there repeats the test when it is resumed. */
static tutti_status end_epoch(struct fit *fit)
{
    tutti_status status = TUTTI_OK;
    struct position *position = &fit->trainer->state.position;
    tutti_metrics test = { 0 };
    bool whole = true;
    if (fit->fitting->test)
        TRY(trainer_evaluate(fit->trainer, fit->fitting->test, fit->fitting->scores, &test, &whole));
    if (!whole) goto done;
    const struct position before = *position;
    struct position next = { .steps = before.steps, .epoch = before.epoch + 1, .epoch_samples = before.epoch_samples };
    TRY(judge(fit, &test, &next));
    *position = next;
    TRY(save_epoch(fit));
    const struct position after = *position;
    *position = before; /* what is reported is the epoch that ended */
    report_progress(fit, &test);
    *position = after;
done:
    return status;
}

/* All ranks fail if one has a bad argument. */
static tutti_status check_call(tutti_trainer *trainer, const tutti_source *source, tutti_status read)
{
    tutti_status status = TUTTI_OK;
    TRY(trainer_check_trains(trainer, "tutti_fit()"));
    TRY(forked_check());
    if (read == TUTTI_OK && !source) read = fail(TUTTI_INVALID, "the source is NULL: pass one");
    TRY(ranks_report_failure(trainer, read));
done:
    return status;
}

tutti_status fit_run(tutti_trainer *trainer, const tutti_source *source, const tutti_fitting *fitting,
    tutti_status read, bool over_arrays)
{
    struct fit fit = { .trainer = trainer, .source = source, .fitting = fitting, .over_arrays = over_arrays };
    tutti_status status = check_call(trainer, source, read);
    if (status != TUTTI_OK) return status;
    lookahead_reset(&trainer->lookahead);
    trainer_run_begin(trainer);
    trainer->state.in_fit = true;
    TRY(fit_begin(&fit));
    const struct position *position = &trainer->state.position;
    bool saved = false; /* at the end of an epoch, with nothing done since */
    while (position->epoch < last_epoch(&fit) && !exhausted(&fit) && !cancelled(&fit) && !enough(&fit)) {
        saved = false;
        TRY(train_epoch(&fit));
        if (position->samples < source->samples) continue; /* stopped within the epoch */
        const int64_t epoch = position->epoch;
        TRY(end_epoch(&fit));
        saved = position->epoch > epoch && !fit.unsaved;
    }
    if (cancelled(&fit)) {
        status = fit_stop_cancelled(&fit);
        goto done;
    }
    if (exhausted(&fit) && position->epoch < fit.epochs && trainer_writes(trainer))
        log_info(&trainer->network->runtime->log, "stopped after epoch %lld: epoch %lld is the best",
            (long long)position->epoch, (long long)position->best.epoch);
    if (!saved) TRY(fit_save(&fit));
    trainer->state.resumed = last_epoch(&fit) < fit.epochs && position->epoch >= last_epoch(&fit);
done:
    trainer->state.scheduled = trainer->state.in_fit = false;
    trainer_run_end(trainer);
    return fit_stop_failed(&fit, status);
}

tutti_status tutti_fit_source(tutti_trainer *trainer, const tutti_source *source, const tutti_fitting *given)
{
    tutti_fitting fitting;
    tutti_status read = OPTIONS_READ(&fitting, given, tutti_fitting);
    if (!trainer)
        return read == TUTTI_OK ? fail(TUTTI_INVALID, "the trainer is NULL: make one with tutti_compile()") : read;
    if (read == TUTTI_OK && (fitting.lengths || fitting.buckets != 0))
        read = fail(TUTTI_INVALID,
            "lengths and buckets of tutti_fitting are for the arrays of tutti_fit(): set batch_length and buckets of "
            "tutti_source");
    return fit_run(trainer, source, &fitting, read, false);
}
