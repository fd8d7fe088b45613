/* The commit of a step: it updates everything or nothing. */
#ifndef PARALLEL_COMMIT_H
#define PARALLEL_COMMIT_H

#include "base/status.h"

struct step;
struct step_constants;
struct tutti_trainer;

/* Fails if the step's losses are not finite, or its gradients are not and no lower loss scale can help. */
tutti_status step_check_finite(const struct tutti_trainer *trainer, const struct step *step);
/* Call it after all parts of a training step have succeeded. Computes the norm of its gradients if they are clipped,
 * and checks the step's numbers. If they are finite, makes the updated parameters the newest ones. If the loss scale
 * was too large, updates nothing and returns TUTTI_OK; the result is not finite then. */
tutti_status step_commit(struct tutti_trainer *trainer, struct step *step);
/* Updates the master copy by gradients on the host, the sums over all devices and ranks. norm: theirs, if they are
 * clipped. */
void update_from_sums(
    struct tutti_trainer *trainer, const struct step_constants *constants, const float *gradients, float norm);

#endif
