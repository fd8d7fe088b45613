/* A step of a training, and forward passes. */
#ifndef PARALLEL_STEP_H
#define PARALLEL_STEP_H

#include "parallel/membership.h"
#include "replica/run.h"

struct tutti_trainer;

/* Does one step. *sums: its losses and correct samples, of all ranks. `read`: whether this rank's batch could be
 * read; if not, the others get the failure. */
tutti_status trainer_step(
    struct tutti_trainer *trainer, const struct vote *read, const struct batch *batch, struct sums *sums);
/* If ranks average parameters: averages what is not averaged yet. Call it before anything that needs the
 * parameters. */
tutti_status trainer_settle(struct tutti_trainer *trainer, struct sums *sums);
/* Runs the work on this rank's devices until it succeeds, and adds up their results. */
tutti_status trainer_run(struct tutti_trainer *trainer, const struct replica_work *work, struct sums *sums);
/* Call it then, before the check whether the step may update: computes the norm of its gradients if they are clipped.
 * If it is not finite, the step updates nothing. */
tutti_status trainer_measure(struct tutti_trainer *trainer, const struct step_constants *constants);
/* After all parts of a training step have succeeded: makes the parameters those after it. */
void trainer_update(struct tutti_trainer *trainer, const struct step_constants *constants);
/* Returns whether the exchange keeps summed gradients, from which trainer_update() updates: with several ranks, or to
 * clip them. */
bool trainer_keeps_sums(const struct tutti_trainer *trainer);
/* Evaluation or inference of any number of samples. */
tutti_status trainer_forward(struct tutti_trainer *trainer, enum plan_mode mode, const struct arrays *feeds,
    int64_t samples, struct sums *sums, const struct arrays *outputs);

#endif
