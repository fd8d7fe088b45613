/* Does the runs of the chaos test, in this process. */
#ifndef TESTS_CHAOS_RUN_H
#define TESTS_CHAOS_RUN_H

#include "tests/chaos/case.h"

/* A run that has not ended by then, whatever hangs in it, is a failure. */
#define RUN_LIMIT_S 60.0

/* Finds the layer and three devices, and makes the data; `folder`: for checkpoints. NULL, or what is missing. */
const char *runs_begin(const char *folder);
/* Makes every plan that a run may need, without a fault, so that later runs compile and check nothing. NULL, or what
 * failed. */
const char *runs_warm_up(void);
/* NULL, or what was expected and found; the text is valid until the next run. */
const char *run_case(const struct chaos_case *it);
/* The warnings of the last run, a line each. */
const char *run_log(void);
void runs_end(void);

#endif
