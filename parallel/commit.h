/* A step that runs, and its commit: it updates everything or nothing. */
#ifndef PARALLEL_COMMIT_H
#define PARALLEL_COMMIT_H

#include "replica/run.h"

struct tutti_trainer;

/* The result of a try at a step or a forward pass. */
struct step_result {
    struct sums sums;
    bool not_finite; /* some of the summed gradients are not finite, or their norm is not */
    float largest;   /* largest magnitude of the summed gradients, on this rank */
    float norm;      /* of the gradients, if they are clipped; else NaN */
};

struct step {
    struct replica_work work; /* of all devices of this rank */
    bool replayed;            /* it is one of the journal's */
    struct step_result result;
};

/* Call it after all parts of a training step have succeeded. Computes the norm of its gradients if they are clipped,
 * and checks the step's numbers. If they are finite, makes the updated parameters the newest ones. If the loss scale
 * was too large, updates nothing and returns TUTTI_OK; the result is not finite then. */
tutti_status step_commit(struct tutti_trainer *trainer, struct step *step);

#endif
