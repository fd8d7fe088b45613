/* The first-use check of a device and driver, and the blacklist of implementations that failed it. */
#ifndef RUNTIME_CHECK_H
#define RUNTIME_CHECK_H

#include "runtime/device.h"

/* Probe kernels against the host: build, copy, arithmetic, local memory and barriers. The message says what is wrong.
 */
tutti_status check_device(struct device *device);
/* Whether the driver still compiles at all: a kernel of one line, which no cache knows. */
bool check_compiler(struct device *device);
/* NULL, or why this implementation is not used with this device and driver (from the file on disk). */
const char *blacklist_reason(struct device *device, const char *implementation);
/* Calls each() for all that is not used. */
void blacklist_list(
    struct device *device, void (*each)(void *user, const char *implementation, const char *reason), void *user);
/* Remembers, on disk too, with the reason; a warning says so. */
void blacklist_add(struct device *device, const char *implementation, const char *reason);
/* The same without the warning: of what nobody misses. */
void check_failed(struct device *device, const char *what, const char *reason);
/* Whether it passed or failed its check on this device and driver before; check_passed remembers, on disk too. */
bool check_is_decided(struct device *device, const char *implementation);
void check_passed(struct device *device, const char *implementation);

/* Makes a trial of what the device may be able to do, unless its verdict is known: that of `try`, whose memory may be
 * short, which is none. It is given up as failed after two minutes (compiling at the first launch is part of it). NULL:
 * the device can; else why not, in the checks' own text. */
typedef tutti_status trial_function(struct device *device, const char *name, const void *context);
const char *check_trial(struct device *device, const char *name, trial_function *try, const void *context);
/* To be called by `try` before it enqueues anything: a trial that ends the process, or never ends, is not made a second
 * time. While the process lives, another one makes the trial, too. */
void check_trial_begins(struct device *device, const char *name);

#endif
