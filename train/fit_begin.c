/* Before the first epoch: checks of the options, also that all ranks have the same, and where the training begins. */
#include "base/memory.h"
#include "base/options.h"
#include "parallel/ranks_division.h"
#include "parallel/ranks_notes.h"
#include "parallel/trainer.h"
#include "train/buckets.h"
#include "train/checks.h"
#include "train/fit.h"
#include "train/parameters.h"
#include "train/scores_ranks.h"

#include <xxhash.h>

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
    TRY(buckets_check_source(&trainer->feeds, fit->source, "training"));
    if (fitting->test) TRY(buckets_check_source(&trainer->feeds, fitting->test, "test"));
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

/* What all ranks must know alike of lengths. */
static uint64_t lengths_hash(const tutti_source *source)
{
    if (!source) return 0;
    const int64_t list[] = { source->samples, source->length, source->batch_length != NULL, source->buckets };
    return XXH3_64bits(list, sizeof(list));
}

/* Checks that all ranks do the same. */
static tutti_status agree(const struct fit *fit, tutti_status status)
{
    const tutti_fitting *fitting = fit->fitting;
    const int64_t ends[] = { fit->epochs, fitting->steps, fitting->pause_after };
    const int64_t saving[] = { fitting->save != NULL, fitting->resume != NULL, fitting->save_best };
    const int64_t judging[] = { fitting->patience, (int64_t)scores_hash(fitting->scores) };
    const struct common list[] = { { "numbers of samples", (uint64_t)fit->source->samples },
        { "lengths of sequences", lengths_hash(fit->source) }, { "test data", lengths_hash(fitting->test) },
        { "batches", (uint64_t)fit->batch }, { "orders of samples (no_shuffle)", fitting->no_shuffle },
        { "numbers of epochs or steps", XXH3_64bits(ends, sizeof(ends)) },
        { "ways to save and resume", XXH3_64bits(saving, sizeof(saving)) },
        { "scores or patience", XXH3_64bits(judging, sizeof(judging)) } };
    TRY(ranks_same(fit->trainer, status, list, sizeof(list) / sizeof(*list)));
    if (fit->trainer->ranks) TRY(ranks_resize(fit->trainer->ranks, fit->batch));
done:
    return status;
}

int64_t fit_steps_of_epoch(const struct fit *fit)
{
    return divide_up(fit->source->samples, fit->batch);
}

int64_t fit_steps_done(const struct fit *fit)
{
    const struct position *position = &fit->trainer->state.position;
    return position->epoch * fit_steps_of_epoch(fit) + divide_up(position->samples, fit->batch);
}

/* Called when it is known where the training begins. */
static tutti_status begin_schedule(struct fit *fit)
{
    tutti_schedule given;
    const int64_t epoch = fit_steps_of_epoch(fit);
    int64_t steps = fit->epochs > INT64_MAX / epoch ? INT64_MAX : fit->epochs * epoch;
    const tutti_status status = OPTIONS_READ(&given, fit->fitting->schedule, tutti_schedule);
    if (status != TUTTI_OK) return status;
    if (given.steps == TUTTI_SCHEDULE_CALL && fit->fitting->steps > 0)
        steps = fit_steps_done(fit) + fit->fitting->steps;
    return schedule_open(&fit->schedule, fit->fitting->schedule ? &given : NULL, steps, epoch);
}

tutti_status fit_begin(struct fit *fit)
{
    tutti_status status;
    tutti_trainer *trainer = fit->trainer;
    struct position *position = &trainer->state.position;
    read_fitting(fit);
    TRY(agree(fit, check(fit)));
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
