/* A step on the devices of a rank or of all ranks, which is tried again without those that fail. */
#ifndef PARALLEL_RETRY_H
#define PARALLEL_RETRY_H

#include "parallel/membership.h"

struct replica;
struct step;
struct tutti_trainer;

/* Runs the work of a step or a forward pass on this rank's devices until it succeeds, fails, or VOTE_REPLAY. If it
 * succeeds, adds its results to step->result. */
struct vote retry_run(struct tutti_trainer *trainer, struct step *step);
/* Runs the work of a step on all ranks, whose gradients are summed while they arrive. If one rank has to retry its
 * part, all sum again. `ready`: whether this rank can do its part. */
tutti_status retry_run_ranks(struct tutti_trainer *trainer, const struct vote *ready, struct step *step);
/* Returns the replica that does the whole step and updates itself; NULL if gradients are exchanged. */
struct replica *trainer_sole_replica(struct tutti_trainer *trainer);

#endif
