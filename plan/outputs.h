/* Which outputs of a network a plan has. */
#ifndef PLAN_OUTPUTS_H
#define PLAN_OUTPUTS_H

#include "plan/types.h"

/* Number of outputs, counted from the first, that the host reads; and that passes keep, which includes those that a
 * test's seed needs. */
int plan_read_outputs(const struct plan_options *options);
/* How many gradients of inputs a plan with these options computes: outputs from objective.output_count on. */
int plan_input_gradients(const struct plan_options *options);
int plan_wanted_outputs(const struct plan_options *options);
void plan_keep_outputs(struct plan *plan, int kept);

#endif
