/* Devices that fail, and numbers that cannot be trusted. */
#ifndef PARALLEL_FAULTS_H
#define PARALLEL_FAULTS_H

#include "parallel/membership.h"

struct replica;
struct tutti_trainer;

/* Handles a replica's failure. Returns TUTTI_OK if others can do its work; the last device is never given up, unless it
 * hangs. */
tutti_status trainer_lose(struct tutti_trainer *trainer, struct replica *replica, tutti_status status);
/* Handles a failure like trainer_lose(), but a device whose memory is full goes on with fewer samples at once. */
tutti_status trainer_shrink_or_lose(struct tutti_trainer *trainer, struct replica *replica, tutti_status status);
/* For struct replica_setup: returns whether the replica with this number is lost (membership.h). */
bool trainer_has_lost(const void *trainer, int replica);
/* Returns whether a failure is a device's, not the caller's or the host's. */
bool is_device_fault(tutti_status status);
/* After a training step in which no device failed: votes whether its numbers can be trusted, or it is retried
 * without some of the devices. `replayed`: the step is one of the journal's. */
struct vote faults_check(struct tutti_trainer *trainer, bool replayed);
/* Returns how many devices hang. */
int devices_hanging(const struct tutti_trainer *trainer);
/* Returns whether a device that hangs may still read samples, which are then never freed. */
bool samples_may_be_read(const struct tutti_trainer *trainer);

#endif
