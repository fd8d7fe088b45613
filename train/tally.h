/* What steps, devices and ranks add up about losses. */
#ifndef TRAIN_TALLY_H
#define TRAIN_TALLY_H

#include "plan/types.h"

/* Sums over samples: of what is trained, its loss and the correct ones, and such a pair for each loss of the objective,
 * where there are several. */
struct tally {
    double loss, correct;
    double excluded; /* samples whose labels do not count among the correct ones */
    double each[2 * PLAN_MAX_LOSSES];
    double each_excluded[PLAN_MAX_LOSSES];
};

/* Over a step or an evaluation, and the samples of it. */
struct sums {
    struct tally tally;
    int64_t samples;
};

static inline void tally_add(struct tally *sum, const struct tally *more)
{
    sum->loss += more->loss;
    sum->correct += more->correct;
    sum->excluded += more->excluded;
    for (int i = 0; i < PLAN_MAX_LOSSES; i++) sum->each_excluded[i] += more->each_excluded[i];
    for (int i = 0; i < 2 * PLAN_MAX_LOSSES; i++) sum->each[i] += more->each[i];
}

static inline void tally_scale(struct tally *sum, double factor)
{
    sum->loss *= factor;
    sum->correct *= factor;
    sum->excluded *= factor;
    for (int i = 0; i < PLAN_MAX_LOSSES; i++) sum->each_excluded[i] *= factor;
    for (int i = 0; i < 2 * PLAN_MAX_LOSSES; i++) sum->each[i] *= factor;
}

/* plan->metrics as a device gave it: `pairs` pairs of floats. */
static inline void tally_add_metrics(struct tally *sum, const float *metrics, int pairs)
{
    sum->loss += (double)metrics[0];
    sum->correct += (double)metrics[1];
    for (int i = 0; i < 2 * (pairs - 1); i++) sum->each[i] += (double)metrics[2 + i];
}

#endif
