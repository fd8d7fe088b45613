#include "train/evaluate.h"

#include "parallel/ranks_division.h"
#include "parallel/ranks_notes.h"
#include "parallel/step.h"
#include "parallel/trainer.h"
#include "runtime/forked.h"
#include "train/batches.h"
#include "train/buckets.h"
#include "train/checks.h"
#include "train/objective.h"
#include "train/scored.h"
#include "train/scores_ranks.h"

/* Evaluates this rank's samples of a source. */
static tutti_status evaluate_rank(tutti_trainer *trainer, const tutti_source *source, tutti_scores *scores,
    struct metric_totals *totals, int64_t *samples, bool *whole)
{
    tutti_status status = TUTTI_OK;
    struct scored scored;
    struct batches *batches = NULL;
    struct batches_options options = { .batch = trainer->device_division.rank_batch,
        .feeds = &trainer->feeds,
        .end = source->samples,
        .leaves_out = true };
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

tutti_status trainer_evaluate(
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

static tutti_status evaluate_source(
    tutti_trainer *trainer, const tutti_source *source, tutti_scores *scores, tutti_metrics *metrics)
{
    tutti_status status;
    bool whole;
    tutti_metrics unused;
    status = source ? trainer_check(trainer, true, 1) : fail(TUTTI_INVALID, "the source is NULL: pass one");
    if (status == TUTTI_OK) status = buckets_check_source(&trainer->feeds, source, "test");
    TRY(ranks_report_failure(trainer, status));
    trainer_run_begin(trainer);
    status = trainer_evaluate(trainer, source, scores, metrics ? metrics : &unused, &whole);
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
