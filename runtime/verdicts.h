/* What was found out about a device and driver: checks of implementations and abilities, and the blacklist of what
 * failed. */
#ifndef RUNTIME_VERDICTS_H
#define RUNTIME_VERDICTS_H

#include "runtime/device.h"

/* NULL, or why this implementation is not used with this device and driver (from the file on disk). */
const char *blacklist_reason(struct device *device, const char *implementation);
/* Calls each() for all that is not used. */
void blacklist_list(
    struct device *device, void (*each)(void *user, const char *implementation, const char *reason), void *user);
/* Records, on disk too, that the implementation is not used, and why; logs a warning. */
void blacklist_add(struct device *device, const char *implementation, const char *reason);
/* Records a failure as blacklist_add() does, but without a warning: for what nobody misses. */
void check_failed(struct device *device, const char *what, const char *reason);
/* check_is_decided() tells whether it passed or failed its check on this device and driver before; check_passed()
 * records, on disk too, that it passed. */
bool check_is_decided(struct device *device, const char *implementation);
void check_passed(struct device *device, const char *implementation);

/* Tries out an ability of the device by `try`, unless the verdict is known. A trial that lacks memory gives no
 * verdict. A trial that takes longer than two minutes, including compiling at the first launch, counts as failed.
 * Returns NULL if the device has the ability, else why not, in a text that the checks own. */
typedef tutti_status trial_function(struct device *device, const char *name, const void *context);
const char *check_trial(struct device *device, const char *name, trial_function *try, const void *context);
/* `try` calls this before it enqueues anything, so that a trial that ends the process, or never ends, is not made a
 * second time. While the process lives, another one makes the trial, too. */
void check_trial_begins(struct device *device, const char *name);

#endif
