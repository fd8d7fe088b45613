/* The next division of the batch over the ranks. Each rank builds plans for its batch in the background
 * (replica/background.c) while it trains with the present division. When all ranks are ready, all switch at the same
 * step (ranks.c). If a rank cannot build its plans, all ranks keep the present division.
 *
 * The trainer's thread makes all calls, between two steps. */
#ifndef PARALLEL_REPARTITION_H
#define PARALLEL_REPARTITION_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

struct tutti_trainer;

enum repartition_state {
    REPARTITION_NONE,
    REPARTITION_WAITING,
    REPARTITION_BUILDING,
    REPARTITION_READY, /* the replicas have the plans */
    REPARTITION_REFUSED,
    REPARTITION_ADOPTED /* it is the present division */
};

struct repartition {
    enum repartition_state state;
    int64_t samples; /* this rank's, of a batch */
    int64_t *parts;  /* its devices' parts */
};

tutti_status repartition_open(struct tutti_trainer *trainer);
void repartition_close(struct tutti_trainer *trainer);
/* Starts with this rank's next number of samples. */
void repartition_begin(struct tutti_trainer *trainer, int64_t samples);
/* Before a step: starts building plans, or adopts them when all are built. `busy`: rebalance.c is building plans for
 * other shares of this rank's devices; wait for these first. */
tutti_status repartition_advance(struct tutti_trainer *trainer, bool busy);
/* Returns whether the shares of this rank's devices must not change now. */
bool repartition_keeps_shares(const struct tutti_trainer *trainer);
/* Returns the devices' parts of `samples` if there are plans for them, else NULL. */
const int64_t *repartition_parts(const struct tutti_trainer *trainer, int64_t samples);

#endif
