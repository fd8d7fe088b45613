/* The measured choice of the fastest implementation for a problem. `tutti tune` measures each by itself (tutti_tuner
 * in tutti_advanced.h); plan_tune() measures all of a network at once. */
#ifndef PLAN_TUNE_H
#define PLAN_TUNE_H

#include "plan/types.h"

/* Measures every problem of the network's plan that several implementations take and that this device and driver have
 * not measured yet. Keeps the results (runtime/tuning.h), by which later plans choose, of later processes, too. A
 * problem that does not fit the device's memory together with another is left to the rule. */
tutti_status plan_tune(struct device *device, const tutti_network *network, const struct plan_options *options);

#endif
