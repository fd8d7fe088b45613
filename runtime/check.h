/* The first-use check of a device and driver, the blacklist of implementations that failed it, and which ones were
 * measured to be the fastest. */
#ifndef RUNTIME_CHECK_H
#define RUNTIME_CHECK_H

#include "runtime/device.h"

/* Probe kernels against the host: build, copy, arithmetic, local memory and barriers. The message says what is wrong.
 */
tutti_status check_device(struct device *device);
/* Whether the driver still compiles at all: a kernel of one line, which no cache knows. */
bool check_compiler(struct device *device);
/* Whether a probe kernel with matrix instructions builds and computes what it should. */
bool check_matrix(struct device *device);
/* NULL, or why this implementation is not used with this device and driver (from the file on disk). */
const char *blacklist_reason(struct device *device, const char *implementation);
/* Remembers, on disk too, with the reason. */
void blacklist_add(struct device *device, const char *implementation, const char *reason);
/* Whether it passed or failed its check on this device and driver before; check_passed remembers, on disk too. */
bool check_is_decided(struct device *device, const char *implementation);
void check_passed(struct device *device, const char *implementation);

/* What was measured for a problem on this device and driver: "winograd 1.100 direct 3.201", implementations and
 * milliseconds, the fastest first; NULL: it never was. A problem's name has no spaces. fastest_keep remembers, on disk
 * too. */
const char *fastest_of(struct device *device, const char *problem);
void fastest_keep(struct device *device, const char *problem, const char *measured);

void checks_free(struct device *device); /* called when a device is closed */

#endif
