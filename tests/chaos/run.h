/* Does the runs of the chaos test, in this process. */
#ifndef TESTS_CHAOS_RUN_H
#define TESTS_CHAOS_RUN_H

#include "tests/chaos/case.h"

/* A run that has not ended by then, whatever hangs in it, is a failure; times the run's patience. */
#define RUN_LIMIT_S 60.0

/* Finds the layer and three devices, and makes the data; `name`: of the checkpoint, the same for all ranks. NULL, or
 * what is missing. */
const char *runs_begin(const char *name, int ranks);
/* Makes every plan that a run may need, without a fault, so that later runs compile and check nothing. NULL, or what
 * failed. */
const char *runs_warm_up(void);
/* NULL, or what was expected and found; the text is valid until the next run. Where something hangs, devices may take
 * `patience` times the usual, short, limits. */
const char *run_case(const struct chaos_case *it, double patience);
/* Whether the last run was one in which devices that do not hang may have been too slow for the limits. */
bool run_may_be_late(const struct chaos_case *it);
/* The rank of this process among those that mpirun has started; 0 if it is alone. */
int run_rank(void);
/* Whether the ranks, if there are several, can agree on another run: the last one has not failed. */
bool runs_go_on(void);
/* The warnings of the last run, a line each. */
const char *run_log(void);
void runs_end(void);

#endif
