/* The newest parameters on the host, after all steps, for whoever reads or changes them. */
#ifndef PARALLEL_NEWEST_H
#define PARALLEL_NEWEST_H

#include "base/status.h"

#include <stdbool.h>

struct tutti_trainer;

/* Copies the newest parameters and optimizer states to the host, if a device has them; if it is lost, other devices
 * replay its steps. For a trainer that reads another one's parameters, these. */
tutti_status newest_to_host(struct tutti_trainer *trainer);
/* If there is an EMA of the parameters: makes the host's parameters the EMA (`use`), to be evaluated or saved, or the
 * trained ones. */
tutti_status trainer_use_ema(struct tutti_trainer *trainer, bool use);

#endif
