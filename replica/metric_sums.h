/* Sums of losses and correct samples, which steps, devices and ranks add up. */
#ifndef REPLICA_METRIC_SUMS_H
#define REPLICA_METRIC_SUMS_H

#include "plan/types.h"

/* Sums over samples: the trained loss and the correct samples, and such a pair for each loss of the objective, if
 * there are several. */
struct metric_sums {
    double loss, correct;
    double excluded; /* samples whose labels do not count among the correct ones */
    double each[2 * PLAN_MAX_LOSSES];
    double each_excluded[PLAN_MAX_LOSSES];
};

/* The metric sums of a step or an evaluation, and its samples. */
struct metric_totals {
    struct metric_sums metrics;
    int64_t samples;
};

static inline void metric_sums_add(struct metric_sums *sum, const struct metric_sums *more)
{
    sum->loss += more->loss;
    sum->correct += more->correct;
    sum->excluded += more->excluded;
    for (int i = 0; i < PLAN_MAX_LOSSES; i++) sum->each_excluded[i] += more->each_excluded[i];
    for (int i = 0; i < 2 * PLAN_MAX_LOSSES; i++) sum->each[i] += more->each[i];
}

static inline void metric_sums_scale(struct metric_sums *sum, double factor)
{
    sum->loss *= factor;
    sum->correct *= factor;
    sum->excluded *= factor;
    for (int i = 0; i < PLAN_MAX_LOSSES; i++) sum->each_excluded[i] *= factor;
    for (int i = 0; i < 2 * PLAN_MAX_LOSSES; i++) sum->each[i] *= factor;
}

/* Adds plan->metrics as a device wrote it: `pairs` pairs of floats. */
static inline void metric_sums_add_metrics(struct metric_sums *sum, const float *metrics, int pairs)
{
    sum->loss += (double)metrics[0];
    sum->correct += (double)metrics[1];
    for (int i = 0; i < 2 * (pairs - 1); i++) sum->each[i] += (double)metrics[2 + i];
}

#endif
