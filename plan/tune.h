/* The measured choice: which implementation is the fastest for a problem. `tutti tune` asks for each by itself
 * (tutti_tuner in tutti_experts.h); plan_tune() measures all of a network at once. */
#ifndef PLAN_TUNE_H
#define PLAN_TUNE_H

#include "plan/types.h"

/* Measures every problem of the network's plan that several implementations take and that this device and driver have
 * not measured yet, and keeps what it found (runtime/tuning.h): later plans, of later processes too, choose by it. A
 * problem that does not fit the device's memory beside another is left to the rule. */
tutti_status plan_tune(struct device *device, const tutti_network *network, const struct plan_options *options);

#endif
