#include "tools/report/history.h"

#include "base/clock.h"
#include "base/memory.h"
#include "tutti_inspect.h"

#include <stdlib.h>
#include <string.h>

tutti_status history_begin(struct history *history, int devices)
{
    memset(history, 0, sizeof(*history));
    history->devices = devices < HISTORY_DEVICES ? devices : HISTORY_DEVICES;
    history->stride = 1;
    history->started = clock_seconds();
    history->moments = memory_new(HISTORY_ROWS, sizeof(*history->moments));
    history->parts = memory_new(HISTORY_ROWS * (size_t)(history->devices + 1), sizeof(*history->parts));
    return history->moments && history->parts ? TUTTI_OK : TUTTI_NO_MEMORY;
}

void history_free(struct history *history)
{
    free(history->moments);
    free(history->parts);
    free(history->epochs);
    memset(history, 0, sizeof(*history));
}

/* Merges each two neighbours, which frees half of the rows. */
static void halve(struct history *history)
{
    const int devices = history->devices;
    for (size_t i = 0; i + 1 < history->count; i += 2) {
        const struct moment *a = &history->moments[i], *b = a + 1;
        struct moment both = *b;
        both.loss = (a->loss + b->loss) / 2;
        both.accuracy = (a->accuracy + b->accuracy) / 2;
        history->moments[i / 2] = both;
        for (int d = 0; d < devices; d++) {
            const struct device_moment *x = &history->parts[i * (size_t)devices + (size_t)d], *y = x + devices;
            history->parts[i / 2 * (size_t)devices + (size_t)d] =
                (struct device_moment) { (x->share + y->share) / 2, (x->compute_ms + y->compute_ms) / 2,
                    (x->transfer_ms + y->transfer_ms) / 2, (x->idle_ms + y->idle_ms) / 2 };
        }
    }
    history->count /= 2;
    history->stride *= 2;
}

static void note_devices(struct history *history, const tutti_trainer *trainer)
{
    for (int d = 0; d < history->devices; d++) {
        tutti_device_report report;
        tutti_device_times now = { .size = sizeof(now) }, *before = &history->before[d];
        struct device_moment *part = &history->parts[history->count * (size_t)history->devices + (size_t)d];
        *part = (struct device_moment) { 0 };
        if (tutti_report(trainer, d, &report) != TUTTI_OK || tutti_report_times(trainer, d, &now) != TUTTI_OK) continue;
        const double steps = (double)(now.steps - before->steps);
        part->share = (double)report.share;
        if (steps > 0) {
            part->compute_ms = 1000 * (now.compute_s - before->compute_s) / steps;
            part->transfer_ms = 1000 * (now.transfer_s - before->transfer_s) / steps;
            part->idle_ms = 1000 * (now.idle_s - before->idle_s) / steps;
        }
        *before = now;
    }
}

static void add_waiting(struct history *history, const tutti_trainer *trainer)
{
    const double steps = (double)history->waiting;
    struct moment moment = history->sum;
    moment.loss /= steps;
    moment.accuracy /= steps;
    note_devices(history, trainer);
    history->moments[history->count++] = moment;
    history->waiting = 0;
    history->sum = (struct moment) { 0 };
    if (history->count == HISTORY_ROWS) halve(history);
}

/* Returns the mean over the samples that were added since. */
static double difference(double mean, double samples, double mean_before, double samples_before)
{
    if (samples_before == 0) return mean;
    if (samples <= samples_before) return 0;
    return (mean * samples - mean_before * samples_before) / (samples - samples_before);
}

void history_step(
    struct history *history, const tutti_progress *progress, const tutti_trainer *trainer, struct moment *step)
{
    tutti_metrics before = history->running;
    const tutti_metrics *now = &progress->train;
    if (now->samples <= before.samples) before = (tutti_metrics) { 0 }; /* another epoch */
    history->running = *now;
    *step = (struct moment) { .step = progress->total_steps,
        .epoch = (double)(progress->epoch - 1) +
            (double)progress->step / (double)(progress->steps_in_epoch ? progress->steps_in_epoch : 1),
        .seconds = clock_seconds() - history->started,
        .loss = difference(now->loss, (double)now->samples, before.loss, (double)before.samples),
        .accuracy = difference(now->accuracy, now->counted, before.accuracy, before.counted),
        .rate = (double)tutti_learning_rate(trainer),
        .samples_per_s = progress->samples_per_s };
    const double loss = history->sum.loss + step->loss, accuracy = history->sum.accuracy + step->accuracy;
    history->sum = *step;
    history->sum.loss = loss;
    history->sum.accuracy = accuracy;
    if (++history->waiting == history->stride) add_waiting(history, trainer);
}

tutti_status history_epoch(
    struct history *history, const tutti_progress *progress, const tutti_trainer *trainer, const tutti_scores *scores)
{
    if (history->waiting) add_waiting(history, trainer);
    if (history->epoch_count == HISTORY_ROWS) { /* keep the last one of each two */
        for (size_t i = 1; i < history->epoch_count; i += 2) history->epochs[i / 2] = history->epochs[i];
        history->epoch_count /= 2;
    }
    void *epochs = history->epochs;
    const tutti_status status =
        memory_grow(&epochs, &history->epoch_room, history->epoch_count + 1, sizeof(*history->epochs));
    history->epochs = epochs;
    if (status != TUTTI_OK) return status;
    struct epoch *epoch = &history->epochs[history->epoch_count++];
    *epoch = (struct epoch) { .epoch = progress->epoch,
        .step = progress->total_steps,
        .seconds = clock_seconds() - history->started,
        .rate = (double)tutti_learning_rate(trainer),
        .samples_per_s = progress->samples_per_s,
        .train = progress->train,
        .test = progress->test,
        .scores = { .size = sizeof(tutti_scores_summary) } };
    if (!scores || !progress->test.samples || tutti_scores_summarise(scores, &epoch->scores) != TUTTI_OK)
        epoch->scores.samples = 0;
    return TUTTI_OK;
}
