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
/* Checks that its parameters are its own. */
tutti_status trainer_check_owns(const struct tutti_trainer *trainer, const char *call);
/* Checks that it may train or move its position: its parameters are its own, and the call is not made by a callback of
 * one of its fits. Accepts NULL. */
tutti_status trainer_check_trains(const struct tutti_trainer *trainer, const char *call);
/* Keep other threads from the parameters, also between calls of parallel/, which lock them, too. Accept NULL, and a
 * trainer of a parent process: then the calls in between fail. */
void trainer_lock(const struct tutti_trainer *trainer);
void trainer_unlock(const struct tutti_trainer *trainer);

#endif
