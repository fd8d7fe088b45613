/* A step on several devices or ranks, which is tried again without those that fail. */
#ifndef PARALLEL_TRIES_H
#define PARALLEL_TRIES_H

#include "parallel/membership.h"

struct replica;
struct step;
struct tutti_trainer;

/* Does what trainer_run() (step.h) does on several devices; on all ranks, whose gradients are summed while they
 * arrive. If one rank has to repeat its part, all sum again. `ready`: whether this rank can do its part. */
tutti_status tries_run(struct tutti_trainer *trainer, struct step *step);
tutti_status tries_run_ranks(struct tutti_trainer *trainer, const struct vote *ready, struct step *step);
/* Returns the replica that does the whole step and updates itself; NULL if gradients are exchanged. */
struct replica *trainer_alone(struct tutti_trainer *trainer);

#endif
