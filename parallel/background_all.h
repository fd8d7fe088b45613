/* Plans that several devices build in the background (replica/background.h), for a division of the batch. The trainer's
 * thread makes all calls, between two steps. */
#ifndef PARALLEL_BACKGROUND_ALL_H
#define PARALLEL_BACKGROUND_ALL_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

struct replica;
struct tutti_trainer;

/* parts[i]: samples of device i, for sequences as long as those of the last step; 0: it builds nothing. */
void background_start_all(struct tutti_trainer *trainer, const int64_t *parts, bool sole);
bool background_all_done(struct tutti_trainer *trainer);
/* *failed: the first device that could not adopt what was built, or NULL. */
tutti_status background_adopt_all(struct tutti_trainer *trainer, const int64_t *parts, struct replica **failed);

#endif
