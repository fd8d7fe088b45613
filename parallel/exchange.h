/* The exchange of gradients: their sum over devices, and what follows from it on the host. */
#ifndef PARALLEL_EXCHANGE_H
#define PARALLEL_EXCHANGE_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

struct step;
struct tutti_trainer;

enum { EXCHANGE_BLOCK = 1 << 16 }; /* floats: what a thread takes at once */

/* Sums the replicas' gradients while they arrive, block by block. Then, for each block: if ranks sum gradients, stores
 * the sums for the all-reduce (ranks->buffers). Else keeps them in step->kept, or, if gradients are clipped, in the
 * parameter store. Else updates the next copy of the parameters and states. Returns when all replicas are done.
 * step->result says whether the sums are finite, and how large they are. */
tutti_status exchange_run(struct tutti_trainer *trainer, struct step *step);
/* Returns whether step_commit() updates from sums of gradients, which the parameter store keeps: if ranks sum them, or
 * to clip them. */
bool trainer_updates_from_sums(const struct tutti_trainer *trainer);
/* After parameters_commit() has adopted the next copy: devices to whose memory the exchange wrote have its version. */
void exchange_mark_devices(struct tutti_trainer *trainer);

#endif
