/* The passes in their order: from a network and options to a graph whose kernels and layouts are chosen. */
#ifndef PLAN_START_H
#define PLAN_START_H

#include "plan/types.h"

/* A plan without launches: the network bound to the options' samples once plan_run_passes() has run. */
struct plan *plan_start(struct device *device, const tutti_network *network, const struct plan_options *options);
tutti_status plan_run_passes(struct plan *plan);
/* As before the first pass. */
void plan_restart(struct plan *plan);
void plan_free(struct plan *plan); /* with launches or without; takes NULL */

#endif
