/* The range test of learning rates: see tutti_find_rate(). */
#include "base/memory.h"
#include "base/options.h"
#include "parallel/ranks_average.h"
#include "parallel/ranks_notes.h"
#include "parallel/step.h"
#include "parallel/trainer.h"
#include "runtime/forked.h"
#include "train/batches.h"
#include "train/buckets.h"
#include "train/checks.h"
#include "tutti_finetune.h"

#include <math.h>
#include <stdlib.h>

enum { LEAST_STEPS = 10, MOST_STEPS = 1000 };
static const double smoothing = 0.9; /* of the mean before */

struct test {
    tutti_trainer *trainer;
    const tutti_source *source;
    tutti_rate_options options;
    struct batches *batches;
    int64_t epoch;
    tutti_rate_result result;
    double mean, least;
};

static tutti_status check(struct test *test)
{
    tutti_status status;
    tutti_rate_options *o = &test->options;
    tutti_trainer *trainer = test->trainer;
    if (!test->source) FAIL(TUTTI_INVALID, "the source is NULL: pass one");
    TRY(trainer_check(trainer, true, test->source->samples));
    TRY(buckets_check_source(&trainer->feeds, test->source, "training"));
    if (ranks_average_mode(trainer))
        FAIL(TUTTI_UNSUPPORTED, "ranks that average parameters cannot test rates: sum their gradients in each step");
    if (o->low == 0) o->low = 1e-7;
    if (o->high == 0) o->high = 10;
    if (o->steps == 0) o->steps = 100;
    if (o->batch == 0) o->batch = trainer->options.batch;
    if (!(o->low > 0 && o->high > o->low && o->high < 1e30))
        FAIL(TUTTI_INVALID, "rates are from %g to %g: the first must be positive, the second larger", o->low, o->high);
    if (o->steps < LEAST_STEPS || o->steps > MOST_STEPS)
        FAIL(TUTTI_INVALID, "there are %d steps: from %d to %d are possible", o->steps, LEAST_STEPS, MOST_STEPS);
    if (o->batch < 1 || o->batch > trainer->options.batch)
        FAIL(TUTTI_INVALID, "the batch is %lld: it must be from 1 to %lld, that of the trainer", (long long)o->batch,
            (long long)trainer->options.batch);
    if (o->batch > test->source->samples) o->batch = test->source->samples;
done:
    return status;
}

/* Gets the next batch, of the next epoch if this one has ended. */
static tutti_status next_batch(struct test *test, struct batch *batch)
{
    tutti_status status = TUTTI_OK;
    tutti_trainer *trainer = test->trainer;
    const struct batches_options options = { .batch = test->options.batch,
        .feeds = &trainer->feeds,
        .ranks = trainer->ranks,
        .shuffle = true,
        .seed = trainer->state.seed,
        .epoch = (uint64_t)test->epoch,
        .end = test->source->samples,
        .step = trainer->state.position.steps };
    for (int attempts = 0; attempts < 2; attempts++) {
        if (!test->batches) TRY(batches_open(&test->batches, test->source, &options));
        TRY(batches_next(test->batches, batch));
        if (batch->global_samples > 0) return TUTTI_OK;
        batches_close(test->batches);
        test->batches = NULL;
        test->epoch++;
    }
    FAIL(TUTTI_FILE, "the data have no more samples");
done:
    return status;
}

/* Returns whether to go on. */
static bool note(struct test *test, double rate, double loss)
{
    tutti_rate_result *r = &test->result;
    test->mean = smoothing * test->mean + (1 - smoothing) * loss;
    r->rates[r->count] = rate;
    r->losses[r->count] = loss;
    const double mean = test->mean / (1 - pow(smoothing, r->count + 1));
    r->smoothed[r->count++] = mean;
    if (r->count == 1 || mean < test->least) test->least = mean;
    return r->count <= LEAST_STEPS || mean <= 4 * test->least;
}

static tutti_status climb(struct test *test)
{
    tutti_status status = TUTTI_OK;
    const tutti_rate_options *o = &test->options;
    bool rises = true;
    for (int i = 0; i < o->steps && rises; i++) {
        struct batch batch = { 0 };
        struct metric_totals totals;
        const double rate = o->low * pow(o->high / o->low, (double)i / (o->steps - 1));
        if (trainer_stops(test->trainer)) FAIL(TUTTI_CANCELLED, "the test of rates was cancelled");
        const struct vote ready = vote_of(next_batch(test, &batch));
        test->trainer->optimizer.learning_rate = (float)rate;
        status = trainer_step(test->trainer, &ready, &batch, &totals);
        if (status == TUTTI_NOT_FINITE && test->result.count > 0) return TUTTI_OK;
        TRY(status);
        rises = note(test, rate, totals.metrics.loss / (double)batch.global_samples);
    }
done:
    return status;
}

/* Returns the rate of the steepest descent, between `begin` and the least loss: after it, losses that explode may
 * fall again. */
static double steepest(const tutti_rate_result *r, int begin, int end)
{
    double least = 0, found = 0;
    int bottom = begin;
    for (int i = begin; i < end; i++)
        if (r->smoothed[i] < r->smoothed[bottom]) bottom = i;
    for (int i = begin; i < bottom; i++) {
        const double slope = (r->smoothed[i + 1] - r->smoothed[i]) / log(r->rates[i + 1] / r->rates[i]);
        if (slope >= least) continue;
        least = slope;
        found = r->rates[i];
    }
    return found;
}

/* Returns fastai's suggestion, by the longest falling subsequence of the smoothed losses. length[i]: its elements
 * before i. */
static double valley(const tutti_rate_result *r, int begin, int end)
{
    int length[MOST_STEPS], from[MOST_STEPS], last = begin;
    for (int i = begin; i < end; i++) {
        length[i] = 0;
        from[i] = i;
        for (int j = begin; j < i; j++) {
            if (r->smoothed[i] >= r->smoothed[j] || length[j] + 1 <= length[i]) continue;
            length[i] = length[j] + 1;
            from[i] = from[j];
        }
        if (length[i] > length[last]) last = i;
    }
    return end <= begin || length[last] == 0 ? 0 : r->rates[from[last] + (last - from[last]) * 2 / 3];
}

static void suggest(tutti_rate_result *r)
{
    const int begin = r->count / 10, end = r->count > 2 * LEAST_STEPS ? r->count - 5 : r->count;
    r->steepest = steepest(r, begin, end);
    r->valley = valley(r, begin, end);
}

/* Runs the test, and restores everything but the result. */
static tutti_status run(struct test *test)
{
    tutti_status status = TUTTI_OK;
    tutti_trainer *trainer = test->trainer;
    tutti_rate_result *r = &test->result;
    const size_t steps = (size_t)test->options.steps;
    const float rate = trainer->optimizer.learning_rate;
    const bool resumed = trainer->state.resumed;
    tutti_snapshot *snapshot = tutti_snapshot_take(trainer);
    r->rates = memory_new(steps, sizeof(double));
    r->losses = memory_new(steps, sizeof(double));
    r->smoothed = memory_new(steps, sizeof(double));
    if (!snapshot || !r->rates || !r->losses || !r->smoothed) {
        status = TUTTI_NO_MEMORY;
        goto done;
    }
    trainer_run_begin(trainer);
    trainer->state.in_fit = true;
    status = climb(test);
    trainer->state.in_fit = false;
    trainer_run_end(trainer);
    batches_close(test->batches);
    lookahead_reset(&trainer->lookahead);
    trainer->optimizer.learning_rate = rate;
    const tutti_status restored = tutti_snapshot_restore(trainer, snapshot);
    if (status == TUTTI_OK) status = restored;
    trainer->state.resumed = resumed;
    if (status == TUTTI_OK) suggest(r);
done:
    tutti_snapshot_free(snapshot);
    return status;
}

tutti_status tutti_find_rate(
    tutti_trainer *trainer, const tutti_source *source, const tutti_rate_options *given, tutti_rate_result *result)
{
    tutti_status status;
    struct test test = { .trainer = trainer, .source = source };
    TRY(forked_check());
    if (!trainer || !result) FAIL(TUTTI_INVALID, "the trainer or the result is NULL: pass both");
    TRY(trainer_check_trains(trainer, "tutti_find_rate()"));
    status = OPTIONS_READ(&test.options, given, tutti_rate_options);
    if (status == TUTTI_OK) status = check(&test);
    TRY(ranks_report_failure(trainer, status));
    TRY(run(&test));
    status = RESULT_WRITE(result, &test.result, tutti_rate_result);
done:
    if (status == TUTTI_OK) return TUTTI_OK;
    free(test.result.rates);
    free(test.result.losses);
    free(test.result.smoothed);
    return status;
}
