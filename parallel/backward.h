/* Gradients of a step without its update, and the update by gradients that the caller may have changed. The sums over
 * all devices and ranks are kept on the host, where the update is made: it reads nothing but the host's memory, so it
 * is done whole or not at all, whatever happens to devices. */
#ifndef PARALLEL_BACKWARD_H
#define PARALLEL_BACKWARD_H

#include "base/status.h"
#include "replica/arrays.h"

#include <stdbool.h>

struct batch;
struct metric_totals;
struct tutti_trainer;
struct vote;

struct kept_gradients {
    float *sums;  /* in the order of the gradient arena, unscaled; NULL before the first trainer_backward() */
    bool valid;   /* of the last trainer_backward(), which succeeded; until the next, or trainer_step(), begins */
    bool applied; /* trainer_apply() has updated by them */
    struct arrays inputs; /* gradients of the objective's gradient_inputs, in the order of the trainer's outputs */
    int64_t samples;      /* of `inputs` */
};

/* Computes losses and gradients of this rank's batch as trainer_step() does, and keeps the gradients. */
tutti_status trainer_backward(
    struct tutti_trainer *trainer, const struct vote *ready, const struct batch *batch, struct metric_totals *totals);
/* Updates the parameters, the optimizer's states and running statistics by them, which counts as a step. `ready`: this
 * rank's status before; all ranks make the call, and all update or none. */
tutti_status trainer_apply(struct tutti_trainer *trainer, tutti_status ready);

void kept_gradients_free(struct kept_gradients *kept);

#endif
