/* The loop over epochs: batches are read (batches.c), steps done, test data evaluated, checkpoints saved, progress
 * reported. Also the evaluation of a source by itself. */
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/options.h"
#include "parallel/faults.h"
#include "parallel/ranks_average.h"
#include "parallel/ranks_division.h"
#include "parallel/ranks_notes.h"
#include "parallel/step.h"
#include "runtime/forked.h"
#include "train/batches.h"
#include "train/checks.h"
#include "train/objective.h"
#include "train/parameters.h"
#include "train/schedule.h"
#include "train/scored.h"
#include "train/scores_ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

struct fit {
    tutti_trainer *trainer;
    const tutti_source *source;
    const tutti_fitting *fitting;
    int64_t batch, epochs;
    int64_t steps;         /* of this call */
    int64_t samples;       /* of this call */
    bool unsaved;          /* the last save failed */
    int64_t epoch_samples; /* of this call's part of the epoch, and the seconds that training them took */
    double epoch_seconds;
    struct schedule schedule;
};

/* ------------------------------------------------------------------------------------------------ checking ---- */

static tutti_status check_source(const tutti_trainer *trainer, const tutti_source *source, const char *what)
{
    int64_t length = source->length;
    if (!source->read) return fail(TUTTI_INVALID, "the %s data have no read function: set tutti_source.read", what);
    if (source->samples < 1) return fail(TUTTI_INVALID, "the %s data have no samples: they need at least one", what);
    return feeds_length(&trainer->feeds, &length);
}

/* Sets the numbers of epochs and of samples of a batch: given ones, or those for 0. */
static void read_fitting(struct fit *fit)
{
    const tutti_fitting *fitting = fit->fitting;
    const struct trainer_options *options = &fit->trainer->options;
    fit->epochs = fitting->epochs ? fitting->epochs : 1;
    fit->batch = fitting->batch ? fitting->batch : options->batch;
    if (!fitting->batch && !options->batch_given && fit->batch > fit->source->samples)
        fit->batch = fit->source->samples;
}

/* Also tries to write the file of `save`. */
static tutti_status check(const struct fit *fit)
{
    tutti_status status = TUTTI_OK;
    const tutti_fitting *fitting = fit->fitting;
    const tutti_trainer *trainer = fit->trainer;
    TRY(trainer_check(trainer, true, 1));
    TRY(check_source(trainer, fit->source, "training"));
    if (fitting->test) TRY(check_source(trainer, fitting->test, "test"));
    if (fitting->patience < 0)
        FAIL(TUTTI_INVALID, "patience is %lld: it cannot be negative", (long long)fitting->patience);
    if (fitting->save_best && !fitting->save)
        FAIL(TUTTI_INVALID, "save_best is set, but there is no name: set tutti_fitting.save");
    if (fitting->epochs < 0 || fitting->steps < 0 || fitting->batch < 0 || fitting->pause_after < 0)
        FAIL(TUTTI_INVALID,
            "epochs, steps, batch and pause_after are %lld, %lld, %lld and %lld: they cannot be negative",
            (long long)fitting->epochs, (long long)fitting->steps, (long long)fitting->batch,
            (long long)fitting->pause_after);
    if (fit->batch > trainer->options.batch)
        FAIL(TUTTI_INVALID,
            "the batch is %lld, but the trainer was compiled for at most %lld: lower it, or compile with a larger "
            "batch",
            (long long)fit->batch, (long long)trainer->options.batch);
    if (fit->batch > fit->source->samples)
        FAIL(TUTTI_INVALID, "the batch, %lld, is larger than the data: there are %lld samples; lower the batch",
            (long long)fit->batch, (long long)fit->source->samples);
    if (fitting->save) TRY(checkpoint_check_name(fitting->save));
    if (fitting->save && trainer_writes(trainer)) TRY(checkpoint_try(fitting->save)); /* now, not after an epoch */
done:
    return status;
}

/* Checks that all ranks do the same. */
static tutti_status agree(const struct fit *fit, tutti_status status)
{
    const tutti_fitting *fitting = fit->fitting;
    const int64_t test[] = { fitting->test ? fitting->test->samples : 0, fitting->test ? fitting->test->length : 0 };
    const int64_t ends[] = { fit->epochs, fitting->steps, fitting->pause_after };
    const int64_t saving[] = { fitting->save != NULL, fitting->resume != NULL, fitting->save_best };
    const int64_t judging[] = { fitting->patience, (int64_t)scores_hash(fitting->scores) };
    const struct common list[] = { { "numbers of samples", (uint64_t)fit->source->samples },
        { "lengths of sequences", (uint64_t)fit->source->length }, { "test data", XXH3_64bits(test, sizeof(test)) },
        { "batches", (uint64_t)fit->batch }, { "orders of samples (no_shuffle)", fitting->no_shuffle },
        { "numbers of epochs or steps", XXH3_64bits(ends, sizeof(ends)) },
        { "ways to save and resume", XXH3_64bits(saving, sizeof(saving)) },
        { "scores or patience", XXH3_64bits(judging, sizeof(judging)) } };
    TRY(ranks_same(fit->trainer, status, list, sizeof(list) / sizeof(*list)));
    if (fit->trainer->ranks) TRY(ranks_resize(fit->trainer->ranks, fit->batch));
done:
    return status;
}

static int64_t steps_of_epoch(const struct fit *fit)
{
    return divide_up(fit->source->samples, fit->batch);
}

/* Returns the steps that are done in this training, without those of earlier ones. */
static int64_t steps_done(const struct fit *fit)
{
    const struct position *position = &fit->trainer->state.position;
    return position->epoch * steps_of_epoch(fit) + divide_up(position->samples, fit->batch);
}

/* Called when it is known where the training begins. */
static tutti_status begin_schedule(struct fit *fit)
{
    tutti_schedule given;
    const int64_t epoch = steps_of_epoch(fit);
    int64_t steps = fit->epochs > INT64_MAX / epoch ? INT64_MAX : fit->epochs * epoch;
    const tutti_status status = OPTIONS_READ(&given, fit->fitting->schedule, tutti_schedule);
    if (status != TUTTI_OK) return status;
    if (given.steps == TUTTI_SCHEDULE_CALL && fit->fitting->steps > 0) steps = steps_done(fit) + fit->fitting->steps;
    return schedule_open(&fit->schedule, fit->fitting->schedule ? &given : NULL, steps, epoch);
}

/* Sets the position to begin at: that of the checkpoint, or the start. */
static tutti_status begin(struct fit *fit, tutti_status status)
{
    tutti_trainer *trainer = fit->trainer;
    struct position *position = &trainer->state.position;
    TRY(agree(fit, status));
    if (fit->fitting->resume) TRY(trainer_resume(trainer, fit->fitting->resume));
    if (!trainer->state.resumed) *position = (struct position) { .steps = position->steps };
    trainer->state.resumed = false;
    if (position->samples > 0 && position->epoch_samples != fit->source->samples)
        FAIL(TUTTI_MISMATCH,
            "the checkpoint was saved within an epoch of %lld samples, but these data have %lld: resume with the same "
            "data",
            (long long)position->epoch_samples, (long long)fit->source->samples);
    position->epoch_samples = fit->source->samples;
    status = begin_schedule(fit);
    TRY(ranks_same(trainer, status, &(struct common) { "schedules", schedule_hash(&fit->schedule) }, 1));
done:
    return status;
}

/* -------------------------------------------------------------------------------------------------- epochs ---- */

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
        .steps_in_epoch = steps_of_epoch(fit),
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

static tutti_status save(const struct fit *fit)
{
    return fit->fitting->save ? tutti_save(fit->trainer, fit->fitting->save) : TUTTI_OK;
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

static struct batches_options batches_of(const tutti_trainer *trainer, int64_t batch)
{
    return (struct batches_options) { .batch = batch, .feeds = &trainer->feeds, .ranks = trainer->ranks };
}

static void set_rate(const struct fit *fit)
{
    struct training_state *state = &fit->trainer->state;
    state->scheduled = fit->fitting->schedule != NULL;
    if (!state->scheduled) return;
    state->rate = (float)schedule_rate(
        &fit->schedule, fit->trainer->optimizer.learning_rate, steps_done(fit), state->position.plateau.reductions);
}

/* Takes the next batch, unless a callback has left a view open: then *batch stays as it is. */
static tutti_status next_batch(const tutti_trainer *trainer, struct batches *batches, struct batch *batch)
{
    const tutti_status status = trainer_check_views(trainer);
    return status == TUTTI_OK ? batches_next(batches, batch) : status;
}

/* Does the remaining steps of the epoch, or fewer if cancelled or if enough steps are done. */
static tutti_status train_epoch(struct fit *fit)
{
    tutti_status status;
    tutti_trainer *trainer = fit->trainer;
    struct position *position = &trainer->state.position;
    struct batches *batches = NULL;
    struct batches_options options = batches_of(trainer, fit->batch);
    options.shuffle = !fit->fitting->no_shuffle;
    options.seed = trainer->state.seed;
    options.epoch = (uint64_t)position->epoch;
    options.position = position->samples;
    options.end = fit->source->samples;
    options.step = position->steps;
    fit->epoch_samples = 0;
    fit->epoch_seconds = 0;
    if (fit->fitting->begin_epoch) fit->fitting->begin_epoch(fit->source->user, position->epoch);
    TRY(ranks_agree(trainer, batches_open(&batches, fit->source, &options)));
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

/* Evaluates this rank's samples of a source. */
static tutti_status evaluate_rank(tutti_trainer *trainer, const tutti_source *source, tutti_scores *scores,
    struct metric_totals *totals, int64_t *samples, bool *whole)
{
    tutti_status status = TUTTI_OK;
    struct scored scored;
    struct batches *batches = NULL;
    struct batches_options options = batches_of(trainer, trainer->device_division.rank_batch);
    options.end = source->samples;
    options.ranks = NULL;
    options.leaves_out = true;
    TRY(scored_open(&scored, trainer, scores, source));
    if (trainer->ranks) {
        int64_t count;
        TRY(ranks_own_samples(
            trainer->ranks, trainer->state.position.steps, source->samples, &options.position, &count));
        options.end = options.position + count;
    }
    TRY(batches_open(&batches, source, &options));
    while (!trainer_is_cancelled(trainer)) {
        struct batch batch;
        TRY(batches_next(batches, &batch));
        *whole = batch.samples == 0;
        if (*whole) break;
        TRY(scored_forward(&scored, &batch, totals));
        *samples += batch.samples;
    }
done:
    batches_close(batches);
    scored_close(&scored);
    return status;
}

/* Computes loss and accuracy over a source, and scores unless they are NULL. If cancelled, ends early and sets *whole
 * to false. */
static tutti_status evaluate(
    tutti_trainer *trainer, const tutti_source *source, tutti_scores *scores, tutti_metrics *metrics, bool *whole)
{
    tutti_status status;
    struct metric_totals totals;
    int64_t samples = 0;
    TRY(trainer_settle(trainer, &totals));
    totals = (struct metric_totals) { 0 };
    *whole = false;
    status = evaluate_rank(trainer, source, scores, &totals, &samples, whole);
    TRY(ranks_total(trainer, status, &totals, &samples, whole));
    if (*whole && samples == 0)
        FAIL(TUTTI_FILE, "none of the %lld samples to measure can be read", (long long)source->samples);
    if (*whole) TRY(scores_total(trainer, scores));
    metrics_report(trainer, &totals.metrics, samples, metrics);
done:
    return status;
}

/* Saves after an epoch. If the file cannot be written, training goes on, because a full disk may have room at the
 * next save. All ranks have the same status. */
static tutti_status save_epoch(struct fit *fit)
{
    const tutti_status status = save(fit);
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
    if (fit->fitting->test) TRY(evaluate(fit->trainer, fit->fitting->test, fit->fitting->scores, &test, &whole));
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

/* No device is left. Saves the result of the last complete step, if it can be read: several devices share a copy on
 * the host; a single one has the only copy itself. */
static tutti_status stop_faulty(struct fit *fit, tutti_status status)
{
    char message[1024];
    const char *name = fit->fitting->save;
    if (!name) return status_context(status, "no device is left and nothing was saved");
    snprintf(message, sizeof(message), "%s", status_message());
    const tutti_status saved = save(fit);
    status_set(status, message);
    if (saved != TUTTI_OK)
        return status_context(
            status, "no device is left, and the training since '%s' was saved is lost; resume from it", name);
    return status_context(status, "no device is left; resume from '%s', saved after step %lld", name,
        (long long)fit->trainer->state.position.steps);
}

static tutti_status stop_cancelled(struct fit *fit)
{
    const tutti_status status = save(fit);
    if (status != TUTTI_OK) return status;
    return fail(TUTTI_CANCELLED, "cancelled after step %lld, in epoch %lld%s%s",
        (long long)fit->trainer->state.position.steps, (long long)fit->trainer->state.position.epoch + 1,
        fit->fitting->save ? "; saved as " : "", fit->fitting->save ? fit->fitting->save : "");
}

/* A rank is lost. If gradients are summed, rank 0 has the complete result of the last step. */
static tutti_status stop_without_hosts(const struct fit *fit, tutti_status status)
{
    char message[1024];
    const char *name = fit->fitting->save;
    if (!name) return status_context(status, "nothing was saved");
    if (fit->trainer->ranks->comm->rank != 0 || ranks_average_mode(fit->trainer))
        return status_context(status, "the training since '%s' was saved is lost; resume from it", name);
    snprintf(message, sizeof(message), "%s", status_message());
    const tutti_status saved = trainer_save(fit->trainer, name);
    status_set(status, message);
    if (saved != TUTTI_OK) return status_context(status, "what was learnt since '%s' was saved is lost", name);
    return status_context(
        status, "resume from '%s', saved after step %lld", name, (long long)fit->trainer->state.position.steps);
}

/* `read`: the status of reading the options. All ranks fail if one has a bad argument. */
static tutti_status check_call(tutti_trainer *trainer, const tutti_source *source, tutti_status read)
{
    tutti_status status = TUTTI_OK;
    TRY(trainer_check_not_in_fit(trainer, "tutti_fit()"));
    TRY(forked_check());
    if (read == TUTTI_OK && !source) read = fail(TUTTI_INVALID, "the source is NULL: pass one");
    TRY(ranks_report_failure(trainer, read));
done:
    return status;
}

tutti_status tutti_fit_source(tutti_trainer *trainer, const tutti_source *source, const tutti_fitting *given)
{
    tutti_fitting fitting;
    struct fit fit = { .trainer = trainer, .source = source, .fitting = &fitting };
    const tutti_status read = OPTIONS_READ(&fitting, given, tutti_fitting);
    if (!trainer)
        return read == TUTTI_OK ? fail(TUTTI_INVALID, "the trainer is NULL: make one with tutti_compile()") : read;
    tutti_status status = check_call(trainer, source, read);
    if (status != TUTTI_OK) return status;
    lookahead_reset(&trainer->lookahead);
    trainer_run_begin(trainer);
    trainer->state.in_fit = true;
    read_fitting(&fit);
    TRY(begin(&fit, check(&fit)));
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
        status = stop_cancelled(&fit);
        goto done;
    }
    if (exhausted(&fit) && position->epoch < fit.epochs && trainer_writes(trainer))
        log_info(&trainer->network->runtime->log, "stopped after epoch %lld: epoch %lld is the best",
            (long long)position->epoch, (long long)position->best.epoch);
    if (!saved) TRY(save(&fit));
    trainer->state.resumed = last_epoch(&fit) < fit.epochs && position->epoch >= last_epoch(&fit);
done:
    trainer->state.scheduled = trainer->state.in_fit = false;
    trainer_run_end(trainer);
    if (status == TUTTI_HOST_LOST) return stop_without_hosts(&fit, status);
    return is_device_fault(status) ? stop_faulty(&fit, status) : status;
}

/* -------------------------------------------------------------------------------------------------- arrays ---- */

/* The arrays that tutti_fit() was given: the caller's, or copies that are kept until it returns, because calls within
 * the training read feeds, too (tutti_fitting.progress). */
struct held {
    const struct feed_list *list;
    struct arrays arrays;
    int32_t *copies[PLAN_MAX_FEEDS];
};

/* A tutti_source.read. `buffers` are those of feeds_buffers(): one for each feed that trains, in the list's order. */
static int read_arrays(void *user, const int64_t *indices, int64_t count, const tutti_buffer *buffers, int buffer_count)
{
    const struct held *held = user;
    int number = -1;
    for (int b = 0; b < buffer_count; b++) {
        while (!held->list->feeds[++number].trains) continue;
        const size_t bytes = buffers[b].bytes;
        const unsigned char *from = held->arrays.at[number];
        unsigned char *to = buffers[b].data;
        for (int64_t i = 0; i < count; i++) memcpy(to + (size_t)i * bytes, from + (size_t)indices[i] * bytes, bytes);
    }
    return 0;
}

tutti_status tutti_fit(
    tutti_trainer *trainer, const tutti_feed *feeds, int feed_count, int64_t samples, const tutti_fitting *fitting)
{
    tutti_status status = TUTTI_OK;
    bool borrowed = true;
    struct held held = { 0 };
    TRY(trainer_check_not_in_fit(trainer, "tutti_fit()"));
    status = trainer_check(trainer, true, samples);
    if (status == TUTTI_OK)
        status = feeds_read(&trainer->feeds, feeds, feed_count, true, samples, &held.arrays, &borrowed);
    if (!trainer) return status;
    TRY(ranks_report_failure(trainer, status));
    if (!borrowed) feeds_take_copies(&trainer->feeds, held.copies);
    held.list = &trainer->feeds;
    const tutti_source source = {
        .samples = samples, .read = read_arrays, .user = &held, .length = held.arrays.length
    };
    status = tutti_fit_source(trainer, &source, fitting);
done:
    for (int i = 0; i < PLAN_MAX_FEEDS; i++) free(held.copies[i]);
    return status;
}

static tutti_status evaluate_source(
    tutti_trainer *trainer, const tutti_source *source, tutti_scores *scores, tutti_metrics *metrics)
{
    tutti_status status;
    bool whole;
    tutti_metrics unused;
    status = source ? trainer_check(trainer, true, 1) : fail(TUTTI_INVALID, "the source is NULL: pass one");
    if (status == TUTTI_OK) status = check_source(trainer, source, "test");
    TRY(ranks_report_failure(trainer, status));
    trainer_run_begin(trainer);
    status = evaluate(trainer, source, scores, metrics ? metrics : &unused, &whole);
    trainer_run_end(trainer);
    if (status == TUTTI_OK && !whole) FAIL(TUTTI_CANCELLED, "the evaluation was cancelled");
done:
    return status;
}

tutti_status tutti_evaluate_source(tutti_trainer *trainer, const tutti_source *source, tutti_metrics *metrics)
{
    if (!trainer) return fail(TUTTI_INVALID, "the trainer is NULL: make one with tutti_compile()");
    return evaluate_source(trainer, source, NULL, metrics);
}

tutti_status tutti_evaluate_scores(
    tutti_trainer *trainer, const tutti_source *source, tutti_scores *scores, tutti_metrics *metrics)
{
    if (!trainer) return fail(TUTTI_INVALID, "the trainer is NULL: make one with tutti_compile()");
    tutti_status status = forked_check();
    if (status != TUTTI_OK) return status;
    if (!scores) status = fail(TUTTI_INVALID, "the scores are NULL: pass some");
    status = ranks_same(trainer, status, &(struct common) { "scores", scores ? scores_hash(scores) : 0 }, 1);
    return status == TUTTI_OK ? evaluate_source(trainer, source, scores, metrics) : status;
}
