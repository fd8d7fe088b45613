/* The measured choice: which implementation is the fastest for a problem, found out once and kept on disk. */
#ifndef PLAN_TUNE_H
#define PLAN_TUNE_H

#include "plan/plan.h"

/* Room for a problem's name. */
#define PROBLEM_NAME 256

/* Measures every problem of the network's plan that several implementations take and that this device and driver have
 * not measured yet, and keeps what it found: later plans, of later processes too, choose by it. progress: NULL, or
 * called before each measurement. A problem that does not fit the device's memory beside another is left to the rule.
 */
tutti_status plan_tune(struct device *device, const tutti_network *network, const struct plan_options *options);

/* The problem's name without spaces: operation, shapes and attributes, as "conv2d/16x64x56x56/64x64x3x3/s1x1/...". */
void tune_problem_name(const struct problem *problem, char name[PROBLEM_NAME]);

#endif
