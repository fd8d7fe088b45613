/* Synchronised statistics over the ranks (sync_devices.h: on one rank). When all devices of a rank have handed in, its
 * numbers are gathered with those of all ranks (comm_start_gather()) and added in the order of the ranks in double
 * precision, so all ranks have the same bytes. These rounds have a communicator of their own, as they run in parallel
 * with the sums of gradients. The trainer's thread makes progress with them while it waits for the devices.
 *
 * In each attempt at a step all ranks take part in the same rounds, also ranks whose devices have nothing to hand in.
 * The attempt ends with a round in which no rank hands in, or in which a rank reports a failure. The latter breaks the
 * step off on ranks whose devices still exchange; after the vote (ranks.h), all ranks retry the step or fail. */
#ifndef PARALLEL_SYNC_RANKS_H
#define PARALLEL_SYNC_RANKS_H

#include "parallel/membership.h"

struct tutti_trainer;

/* After the trainer is made. If devices of several ranks do not synchronise, it makes nothing and the other functions
 * do nothing. */
tutti_status sync_ranks_open(struct tutti_trainer *trainer);
void sync_ranks_close(struct tutti_trainer *trainer);
/* An attempt at a step begins; it ends. `vote` is this rank's vote so far; a failure of a round is added to it. */
void sync_ranks_begin(struct tutti_trainer *trainer);
void sync_ranks_end(struct tutti_trainer *trainer, struct vote *vote);
/* Call it often under the watchdog's lock: makes progress with a round; returns whether one is under way. */
bool sync_ranks_progress(struct tutti_trainer *trainer);
/* Seconds of this attempt that were spent waiting for other ranks. */
double sync_ranks_waited(const struct tutti_trainer *trainer);

#endif
