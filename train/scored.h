/* Evaluations that fill scores. */
#ifndef TRAIN_SCORED_H
#define TRAIN_SCORED_H

#include "replica/metric_sums.h"
#include "train/batches.h"
#include "train/scores.h"

struct tutti_trainer;

struct scored {
    tutti_scores *scores; /* NULL: nothing is filled */
    struct tutti_trainer *trainer;
    struct score_layout layout;
    int target;            /* the feed with the targets */
    bool soft;             /* the targets are probabilities */
    bool of_positions;     /* samples have as many labels as the sequences of their batch have positions */
    struct arrays outputs; /* of a batch: the first output */
    int32_t *labels;       /* of a batch; NULL: the targets are used as they are */
};
/* Errors: TUTTI_INVALID if the scores do not fit the trainer's first output and its targets. Call scored_close() also
 * after a failure. */
tutti_status scored_open(
    struct scored *scored, struct tutti_trainer *trainer, tutti_scores *scores, const tutti_source *source);
/* Evaluates a batch. */
tutti_status scored_forward(struct scored *scored, const struct batch *batch, struct metric_totals *totals);
void scored_close(struct scored *scored);

#endif
