/* One copy of the newest parameters from a device to the host; newest.h repeats it, with replays, until it succeeds. */
#ifndef PARALLEL_NEWEST_COPY_H
#define PARALLEL_NEWEST_COPY_H

#include "base/status.h"

struct tutti_trainer;

/* Copies the newest parameters and optimizer states to the host, if a device has them. If the device fails, it is lost,
 * and others have to replay its steps (journal_lacks_steps()): TUTTI_OK is returned then, too. */
tutti_status newest_copy(struct tutti_trainer *trainer);
/* If the device with the newest parameters failed while it updated them, they may be from two different steps. Then it
 * is lost as above; fails if no other device is left. Call it before the device goes on with them. */
tutti_status newest_check(struct tutti_trainer *trainer);

#endif
