/* The proof that work-items of a subgroup can read one another's registers, for sums over a work-group. */
#ifndef RUNTIME_SHUFFLE_H
#define RUNTIME_SHUFFLE_H

#include "runtime/launch.h"

/* The first form whose sums and maxima are right on this device, tried where the device names the extension that goes
 * with it; the verdicts are kept as check.h's are. Fills in device->can.shuffle. */
void shuffle_prove(struct device *device);
/* Appends the launch of such sums by the form that the list's device has. It has no buffers: only compilers use
 * it. */
void shuffle_emit_trial(struct launch_list *list);

#endif
