/* What a trainer computes: its outputs, losses and metrics. */
#ifndef TRAIN_OBJECTIVE_H
#define TRAIN_OBJECTIVE_H

#include "parallel/trainer.h"

/* Reads outputs and losses; returns how many nodes use each parameter (struct optimizer), to be freed by free(), NULL
 * without memory. */
tutti_status trainer_read_objective(tutti_trainer *trainer, tutti_tensor output, const tutti_training *training);
int *trainer_count_uses(const tutti_trainer *trainer);
/* Refuses a loss that depends on no parameter, and warns of parameters on which it does not depend. */
tutti_status trainer_check_reached(const tutti_trainer *trainer);

/* Means from sums. *metrics may be NULL; `sums` is kept for tutti_loss_metrics(). */
void metrics_set(const tutti_trainer *trainer, const struct metric_sums *sums, int64_t samples, tutti_metrics *metrics);
void metrics_report(tutti_trainer *trainer, const struct metric_sums *sums, int64_t samples, tutti_metrics *metrics);

#endif
