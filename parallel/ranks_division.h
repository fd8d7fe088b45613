/* The division of batches over the ranks. */
#ifndef PARALLEL_RANKS_DIVISION_H
#define PARALLEL_RANKS_DIVISION_H

#include "parallel/ranks.h"
#include "replica/batch.h"

struct tutti_trainer;

/* Batches that are read ahead of the one in use: the next one, which devices may fetch meanwhile, and the one that is
 * being read. */
enum { BATCHES_AHEAD = 2 };

/* Gives the number of this rank's samples among the `whole` of a step, and the first of them. */
tutti_status ranks_own_samples(struct ranks *ranks, int64_t step, int64_t whole, int64_t *first, int64_t *samples);
/* Sets the size of later batches. */
tutti_status ranks_resize(struct ranks *ranks, int64_t batch);
/* All ranks call it with their own samples; batch_status: whether they could be read. Sets how many there are in all,
 * and where this rank's begin. A failure of one rank becomes that of all. A rank without samples gets the others'
 * length of sequences. Without ranks: the batch is the global one; returns batch_status. */
tutti_status ranks_place(struct tutti_trainer *trainer, tutti_status batch_status, struct batch *batch);

/* The notes of a step tell all ranks what rank 0 wants, and how far each rank is with it. All ranks have the same
 * notes, so they do the same. */
tutti_status ranks_take_division(struct tutti_trainer *trainer);
/* Rank 0 decides on the division after a step that took so long, from its notes. */
void ranks_decide(struct tutti_trainer *trainer, double seconds);

#endif
