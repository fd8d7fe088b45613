/* A step of a training, and forward passes. */
#ifndef PARALLEL_STEP_H
#define PARALLEL_STEP_H

#include "parallel/membership.h"
#include "replica/run.h"

struct tutti_trainer;

/* Who updates the parameters in a step: the sole replica itself, the exchange while gradients arrive, or step_commit()
 * from the sums of gradients, after the vote of all ranks or to clip them. UPDATE_NONE: nobody, in forward passes and
 * for gradients that are kept. */
enum update_way { UPDATE_NONE, UPDATE_BY_DEVICE, UPDATE_IN_EXCHANGE, UPDATE_FROM_SUMS };

/* The result of an attempt at a step or a forward pass. */
struct step_result {
    struct metric_totals totals;
    enum update_way update;
    struct replica *sole; /* UPDATE_BY_DEVICE: this one has done the whole step; else NULL */
    bool not_finite;      /* some of the summed gradients are not finite, or their norm is not */
    float largest; /* magnitude of the gradients that this rank summed; then a bound for all (ranks_end_attempt()) */
    float norm;    /* of the gradients, if they are clipped; else NaN */
};

struct step {
    struct step_input input; /* of all devices of this rank */
    bool replayed;           /* it is one of the journal's */
    /* backward.c: nothing is updated, and this receives the gradients summed over devices; with ranks, the parameter
     * store has the sums. NULL: an update. */
    float *kept;
    struct step_result result;
};

/* Returns the step on this batch, with the constants of the trainer's next step. */
struct step step_new(const struct tutti_trainer *trainer, const struct batch *batch);
/* Checks this rank's batch, and brings the divisions over ranks and devices up to date. */
tutti_status step_check_and_rebalance(struct tutti_trainer *trainer, struct step_input *input);
/* Runs the step's attempts, with all ranks that sum gradients, until its gradients are there or a sole replica has
 * updated itself. Then comes step_commit(), or backward.c takes the gradients. */
tutti_status step_run_attempts(struct tutti_trainer *trainer, struct vote *vote, struct step *step);
/* Does one step. *totals: its losses and correct samples, of all ranks. ready: whether this rank's batch could
 * be read; if not, the others get the failure. If ranks average parameters, *totals are as ranks_average.h says. */
tutti_status trainer_step(
    struct tutti_trainer *trainer, const struct vote *ready, const struct batch *batch, struct metric_totals *totals);
/* If ranks average parameters: averages what is not averaged yet. Call it before anything that needs the
 * parameters. */
tutti_status trainer_settle(struct tutti_trainer *trainer, struct metric_totals *totals);
/* Evaluation or inference of any number of samples. */
tutti_status trainer_forward(struct tutti_trainer *trainer, enum plan_mode mode, const struct arrays *feeds,
    int64_t samples, struct metric_totals *totals, const struct arrays *outputs);

#endif
