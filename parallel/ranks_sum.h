/* Gradients that are summed over the ranks in every step. */
#ifndef PARALLEL_RANKS_SUM_H
#define PARALLEL_RANKS_SUM_H

#include "parallel/membership.h"
#include "parallel/ranks.h"

struct step_result;
struct tutti_trainer;

/* Floats of a segment, which is all-reduced as a unit, 4 MiB: enough that latency does not dominate. */
enum { SEGMENT_FLOATS = 1 << 20 };

/* Returns whether gradients are summed over ranks in every step. If not, there are no other ranks, or they
 * average. */
bool ranks_sum_mode(const struct tutti_trainer *trainer);
/* Begins an attempt at such a step. */
void ranks_begin_attempt(struct tutti_trainer *trainer);
/* Sets this rank's sums of a range. Any thread may call it. */
void ranks_set_sums(struct tutti_trainer *trainer, int64_t first, int64_t count, const float *sums);
/* Starts the all-reduce of what is summed on this rank, from the end of the arena on: the blocks marked in `summed`,
 * or all (NULL). */
void ranks_start_all_reduce(struct tutti_trainer *trainer, const bool *summed);
/* Ends an attempt with this rank's vote. *all: what counts for all ranks, VOTE_DONE or VOTE_RETRY. `result` becomes
 * that of all ranks. */
tutti_status ranks_end_attempt(
    struct tutti_trainer *trainer, const struct vote *vote, enum verdict *all, struct step_result *result);

#endif
