/* Meetings (sync_devices.h) over the ranks: when all devices of this rank have handed in, their numbers go round, and
 * those of all ranks come back, added in the ranks' order in double precision, so that all have the same bytes. Rounds
 * have a communicator of their own, beside the sums of gradients. The trainer's thread carries them while it waits for
 * the devices.
 *
 * In each try at a step all ranks take part in the same rounds: those whose devices have nothing to hand in, too, until
 * a round in which nobody has, or one in which somebody says that its part has failed. Such a round breaks the step off
 * for those whose devices still meet; the vote (world.h) has everybody do it again, or fail. */
#ifndef TRAIN_SYNC_RANKS_H
#define TRAIN_SYNC_RANKS_H

#include "train/membership.h"

struct tutti_trainer;

/* After the trainer is made, where devices of several ranks meet; else there is nothing, and the others do nothing. */
tutti_status rounds_open(struct tutti_trainer *trainer);
void rounds_close(struct tutti_trainer *trainer);
/* A try at a step; its end, with this rank's vote so far, which takes what has failed here. */
void rounds_begin(struct tutti_trainer *trainer);
void rounds_end(struct tutti_trainer *trainer, struct vote *vote);
/* Under the watchdog's lock, often: whether a round is under way. */
bool rounds_carry(struct tutti_trainer *trainer);
/* Of this try, waiting for other ranks. */
double rounds_waited(const struct tutti_trainer *trainer);

#endif
