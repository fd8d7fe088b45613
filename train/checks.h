/* What public calls check first. */
#ifndef TRAIN_CHECKS_H
#define TRAIN_CHECKS_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

struct tutti_trainer;

/* Checks that there is a trainer, which has a loss if `trains` and no open view, and at least one
 * sample. */
tutti_status trainer_check(const struct tutti_trainer *trainer, bool trains, int64_t samples);
/* Checks that the call is not made by a callback of a fit of this trainer. */
tutti_status trainer_check_not_in_fit(const struct tutti_trainer *trainer, const char *call);

#endif
