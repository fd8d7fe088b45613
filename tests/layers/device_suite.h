/* The main() of test programs that run kernels on devices. */
#ifndef TESTS_LAYERS_DEVICE_SUITE_H
#define TESTS_LAYERS_DEVICE_SUITE_H

#include <check.h>
#undef fail /* base/status.h has its own */

#include "tutti.h"

/* Opens *runtime with these devices, or those of TUTTI_DEVICES, runs the tests that `add` adds, all in this process and
 * without a time limit, and closes it. NULL: the devices that tutti_open() selects. Returns the program's exit status.
 */
int device_suite_run(const char *name, const char *devices, tutti_runtime **runtime, void (*add)(TCase *cases));

#endif
