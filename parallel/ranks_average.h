/* Parameters that ranks average, instead of summing gradients in every step. */
#ifndef PARALLEL_RANKS_AVERAGE_H
#define PARALLEL_RANKS_AVERAGE_H

#include "parallel/ranks.h"
#include "replica/batch.h"

struct tutti_trainer;

/* Returns whether ranks average parameters. */
bool ranks_average_mode(const struct tutti_trainer *trainer);
/* Call it after a step; batch and totals are 0 if it failed. Unless an average is due (ranks->average.steps), `totals`
 * becomes an estimate for all ranks. */
void ranks_local_step(struct tutti_trainer *trainer, const struct batch *batch, struct metric_totals *totals);
/* On all ranks, after new parameters and states have replaced what was trained since the last average. */
void ranks_average_reset(struct ranks *ranks);
/* Makes the memory that ranks_average_parameters() needs, and frees. */
tutti_status ranks_make_average(struct tutti_trainer *trainer);
/* Averages parameters and states, the newest of which must be on the host unless this rank has failed: all of them, or
 * after a failure none. `totals` becomes what was not reported to the caller yet. */
tutti_status ranks_average_parameters(
    struct tutti_trainer *trainer, const struct vote *vote, struct metric_totals *totals);

#endif
