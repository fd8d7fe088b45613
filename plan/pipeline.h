/* The passes in their order: from a network and options to a graph whose kernels and layouts are chosen. */
#ifndef PLAN_PIPELINE_H
#define PLAN_PIPELINE_H

#include "plan/types.h"

/* Finds the inputs of a network in their order, at most NETWORK_MAX_INPUTS values; plans call them feeds. Errors:
 * TUTTI_INVALID if there is none. */
tutti_status plan_find_inputs(const struct graph *graph, int *inputs, int *count);
/* Returns the objective of a network with one output and a loss of struct tutti_training. */
struct objective objective_of(tutti_tensor output, tutti_loss loss);
/* Pairs of floats in plan->metrics. */
int objective_pairs(const struct objective *objective);
/* A plan without launches: the network bound to the options' sizes once plan_run_passes() has run. */
struct plan *plan_start(struct device *device, const tutti_network *network, const struct plan_options *options);
tutti_status plan_run_passes(struct plan *plan);
/* Resets the plan to its state before the first pass. */
void plan_restart(struct plan *plan);
void plan_free(struct plan *plan); /* with launches or without; takes NULL */

#endif
