/* A division of the batches over the ranks that is to come: plans for this rank's part are made in the background
 * (background.c) while steps go on by the old division. Every rank does so; when all are ready, all change at the same
 * step (world.c). Where a rank's devices cannot have such plans, all keep the division that they have.
 *
 * All calls are made by the trainer's thread, between two steps. */
#ifndef TRAIN_REPARTITION_H
#define TRAIN_REPARTITION_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

struct tutti_trainer;

enum coming_state {
    COMING_NOTHING,
    COMING_WAITS,
    COMING_BUILDS,
    COMING_READY, /* the plans lie with the replicas */
    COMING_REFUSED,
    COMING_TAKEN /* the division is in use */
};

struct coming {
    enum coming_state state;
    int64_t samples; /* this rank's part of a batch */
    int64_t *parts;  /* and its devices' */
};

tutti_status coming_open(struct tutti_trainer *trainer);
void coming_close(struct tutti_trainer *trainer);
/* This rank's part will be `samples`. */
void coming_begin(struct tutti_trainer *trainer, int64_t samples);
/* Before a step. `busy`: plans for other shares of this rank's devices are being made (rebalance.c), which come first.
 */
tutti_status coming_go_on(struct tutti_trainer *trainer, bool busy);
/* The shares of this rank's devices have to stay as they are. */
bool coming_holds(const struct tutti_trainer *trainer);
/* The devices' parts of `samples`, if plans were made for them; else NULL. */
const int64_t *coming_parts(const struct tutti_trainer *trainer, int64_t samples);

#endif
