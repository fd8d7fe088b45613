/* The first-use check of a device and driver. */
#ifndef RUNTIME_CHECK_H
#define RUNTIME_CHECK_H

#include "runtime/device.h"

/* Compares probe kernels with the host: build, copy, arithmetic, local memory and barriers. The message says what is
 * wrong. */
tutti_status check_device(struct device *device);
/* Tells whether the driver compiles at all, by a kernel of one line that no cache has. */
bool check_compiler(struct device *device);

#endif
