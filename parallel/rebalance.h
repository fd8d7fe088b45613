/* Automatic shares: measures the devices, and divides the batch anew (balance.h). */
#ifndef PARALLEL_REBALANCE_H
#define PARALLEL_REBALANCE_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

struct replica;
struct step_input;
struct tutti_trainer;

/* rebalance_open() is called after the replicas are made, rebalance_close() after they were freed.
 * rebalance_before_step() adopts a division whose plans are ready; rebalance_after_step() is told that the step took
 * `seconds`. rebalance_lost() is called before a batch is divided, because replicas may be lost. */
tutti_status rebalance_open(struct tutti_trainer *trainer);
void rebalance_close(struct tutti_trainer *trainer);
tutti_status rebalance_before_step(struct tutti_trainer *trainer, int64_t samples);
tutti_status rebalance_after_step(struct tutti_trainer *trainer, const struct step_input *input, double seconds);
tutti_status rebalance_lost(struct tutti_trainer *trainer);
/* Starts building the plans for balance.wanted in the background; returns whether such plans are being built. */
void rebalance_start(struct tutti_trainer *trainer);
bool rebalance_is_changing(const struct tutti_trainer *trainer);
/* Returns the replica that does the whole step and updates itself; NULL if gradients are exchanged. */
struct replica *trainer_sole_replica(struct tutti_trainer *trainer);

#endif
