/* Attempts at a step on the devices of a rank or of all ranks; each is without the devices that failed before. */
#ifndef PARALLEL_RETRY_H
#define PARALLEL_RETRY_H

#include "parallel/membership.h"

struct step;
struct tutti_trainer;

/* Makes attempts at the work of a step or a forward pass on this rank's devices until one succeeds or fails, or steps
 * have to be replayed first (VOTE_REPLAY). If it succeeds, adds its results to step->result. Called by
 * run_attempts_and_replays(). */
struct vote run_attempts(struct tutti_trainer *trainer, struct step *step);
/* Instead, if ranks sum gradients: makes attempts at the work of a step on all ranks, whose gradients are summed while
 * they arrive. If one rank has to retry its batch, all sum again. `ready`: whether this rank can do its batch. */
tutti_status run_attempts_ranks(struct tutti_trainer *trainer, const struct vote *ready, struct step *step);

#endif
