/* The newest parameters on the host, after all steps, for whoever reads or changes them. */
#ifndef PARALLEL_NEWEST_H
#define PARALLEL_NEWEST_H

#include "base/status.h"

#include <stdbool.h>

struct tutti_trainer;

/* Makes the host's arenas the newest. */
tutti_status trainer_fetch(struct tutti_trainer *trainer);
/* If parameters are averaged: makes the host's parameters the averages (`use`), to be evaluated or saved, or the
 * trained ones. */
tutti_status trainer_use_averages(struct tutti_trainer *trainer, bool use);

#endif
