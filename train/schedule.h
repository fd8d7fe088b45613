/* Learning rates as functions of the step, and what the metrics of epochs decide: a plateau, the best epoch. The
 * formulas are those of PyTorch's schedulers, in closed form, so that a training that is resumed has the same rates:
 *
 *   warm-up    LinearLR(start_factor=1 / (W + 1), total_iters=W), then the others (SequentialLR), which count from W on
 *   COSINE     CosineAnnealingLR(T_max, eta_min)
 *   STEP       StepLR(step_size, gamma), in epochs
 *   ONE_CYCLE  OneCycleLR(max_lr, total_steps, pct_start), whose first part is the warm-up
 *   PLATEAU    ReduceLROnPlateau(factor, patience, min_lr), by the loss of each epoch */
#ifndef TRAIN_SCHEDULE_H
#define TRAIN_SCHEDULE_H

#include "parallel/position.h"
#include "tutti.h"

struct schedule {
    tutti_schedule options; /* with defaults filled in */
    int64_t steps;          /* of the whole training */
    int64_t warmup;         /* steps */
    int64_t epoch;          /* steps of one */
};

/* options NULL: a constant rate. `steps`: of the training; `epoch`: of an epoch, at least 1. */
tutti_status schedule_open(struct schedule *schedule, const tutti_schedule *options, int64_t steps, int64_t epoch);
/* The rate of the step with this number, from 0. */
double schedule_rate(const struct schedule *schedule, double base, int64_t step, int64_t reductions);
uint64_t schedule_hash(const struct schedule *schedule);

void plateau_judge(struct plateau *plateau, const struct schedule *schedule, double loss);
/* Returns whether the metrics are the best so far: by accuracy or, if it is equal or unknown, by the lower loss. */
bool best_is_beaten(const struct best *best, const tutti_metrics *metrics);
struct best best_of(const tutti_metrics *metrics, int64_t epoch);

#endif
