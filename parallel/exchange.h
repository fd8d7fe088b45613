/* The exchange of gradients: their sum over devices, and the update on the host. */
#ifndef PARALLEL_EXCHANGE_H
#define PARALLEL_EXCHANGE_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

struct step;
struct tutti_trainer;

enum { EXCHANGE_BLOCK = 1 << 16 }; /* floats: what a thread takes at once */

/* Sums the replicas' gradients while they arrive, block by block, and updates the next parameters and states. With
 * other ranks, puts the sums into ranks->gradient_sums.own instead. Returns when all replicas are done. step->result
 * says whether the sums are finite, and how large they are. */
tutti_status exchange_run(struct tutti_trainer *trainer, struct step *step);
/* Returns whether the exchange keeps summed gradients, from which step_commit() updates: with several ranks, or to clip
 * them. */
bool trainer_keeps_gradient_sums(const struct tutti_trainer *trainer);
/* After the step has succeeded: adopts the next parameters and states as the newest of trainer->store. */
void exchange_adopt(struct tutti_trainer *trainer);
bool exchange_not_finite(const float *values, int64_t count); /* any of them */

#endif
