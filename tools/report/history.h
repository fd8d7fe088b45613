/* What a training did so far, in bounded memory: its curve over steps, its epochs, and each device's part. */
#ifndef TOOLS_HISTORY_H
#define TOOLS_HISTORY_H

#include "tutti_inspect.h"
#include "tutti_scores.h"

enum { HISTORY_ROWS = 1024, HISTORY_DEVICES = 64 };

/* One step, or several in a row as one. */
struct moment {
    int64_t step;
    double epoch; /* with the part of it that is done: 1.5 */
    double seconds, loss, accuracy, rate, samples_per_s;
};

/* One device in the steps of a moment: its share of the batch, and milliseconds of a step. */
struct device_moment {
    double share, compute_ms, transfer_ms, idle_ms;
};

struct epoch {
    int64_t epoch, step;
    double seconds, rate, samples_per_s;
    tutti_metrics train, test;
    tutti_scores_summary scores; /* samples 0: none */
};

struct history {
    int devices;
    struct moment *moments;
    struct device_moment *parts; /* [moments][devices] */
    size_t count;
    int64_t stride;  /* steps in a moment */
    int64_t waiting; /* steps in `sum`, which is not a moment yet */
    struct moment sum;
    tutti_device_times before[HISTORY_DEVICES]; /* when the last moment ended */
    struct epoch *epochs;
    size_t epoch_count, epoch_room;
    double started;
    tutti_metrics running; /* of the epoch, until the step before */
    int64_t samples_per_epoch;
};

tutti_status history_begin(struct history *history, int devices);
void history_free(struct history *history);
/* Adds a step. *step: its own values, because progress has means over the epoch. */
void history_step(
    struct history *history, const tutti_progress *progress, const tutti_trainer *trainer, struct moment *step);
/* Adds an epoch. scores may be NULL. */
tutti_status history_epoch(
    struct history *history, const tutti_progress *progress, const tutti_trainer *trainer, const tutti_scores *scores);

#endif
