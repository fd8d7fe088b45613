/* Runs the work of a step, and replays steps that were lost with a device. */
#ifndef PARALLEL_REPLAY_H
#define PARALLEL_REPLAY_H

#include "base/status.h"

struct step;
struct tutti_trainer;

/* Replays the steps of a sole replica whose device was lost since. They are not counted in `position`. A failure
 * leaves the rest in the journal: nothing is saved or trained from these parameters before they are replayed. */
tutti_status replay_lost(struct tutti_trainer *trainer);
/* Runs the work of a step or a forward pass on this rank's devices until it succeeds (run_attempts()), and adds its
 * results to step->result. If an attempt needs steps that were lost with a device (VOTE_REPLAY), replays them first. */
tutti_status run_attempts_and_replays(struct tutti_trainer *trainer, struct step *step);

#endif
