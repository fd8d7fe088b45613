/* Pairs of outputs and inputs that a trainer carries from one inference to the next: tutti_carry. */
#ifndef TRAIN_CARRIED_H
#define TRAIN_CARRIED_H

#include "tutti.h"

/* Reads tutti_training.carries, after the outputs and the feeds. */
tutti_status carried_read(tutti_trainer *trainer, const tutti_training *training);
/* Makes the largest share 1 and the others 0: its device has the state. Does nothing if nothing is carried. */
void carried_choose_device(tutti_trainer *trainer);
/* Checks `samples` before an inference: as many as the state has, if it has begun, and at most the batch. */
tutti_status carried_check(const tutti_trainer *trainer, int64_t samples);

#endif
