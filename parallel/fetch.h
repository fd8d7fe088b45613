/* Brings the newest parameters from a device to the host. */
#ifndef PARALLEL_FETCH_H
#define PARALLEL_FETCH_H

#include "base/status.h"

struct tutti_trainer;

/* Copies the newest parameters and states to the host, if a device has them. If the device fails, it is lost, and
 * others have to replay its steps (journal_lacks_steps()): TUTTI_OK is returned then, too. */
tutti_status fetch_newest(struct tutti_trainer *trainer);

#endif
