/* Synchronised statistics on the devices of a rank: at the command `reduce`, each device hands in a small vector and
 * receives that of the whole batch before it continues (struct sync_point in runtime/launch.h). The exchange waits for
 * all devices of the step. If one of them fails or is abandoned, the others break the step off; they are not to blame.
 */
#ifndef PARALLEL_SYNC_DEVICES_H
#define PARALLEL_SYNC_DEVICES_H

#include "runtime/launch.h"

struct tutti_trainer;

enum { SYNC_ROWS = 3 }; /* numbers of a channel, at most */

/* A replica in the exchanges of a step. */
struct participant {
    bool takes_part;      /* it has not finished its exchanges yet */
    bool interrupted;     /* it broke the step off because another device failed */
    bool spoiled;         /* it handed in numbers that are not finite */
    const float *numbers; /* that it handed in, in rows `stride` apart; NULL: not yet */
    int64_t stride;
};

/* The watchdog's lock guards it. */
struct sync_devices {
    int64_t samples; /* of the step, on all ranks */
    int expected, arrived;
    bool complete;                    /* all devices have handed in and wait for the other ranks */
    bool broken;                      /* another rank will not take part in this step any more */
    uint64_t round;                   /* number of completed exchanges */
    const struct sync_point *point;   /* of the exchange at hand */
    struct participant *participants; /* one for each replica */
    double *whole; /* [rows][channels], result of the last exchange; while `complete`, of this rank's devices only */
    size_t capacity;
    /* Some devices handed in numbers that are not finite (`spoiled`). All devices have received them, so later results
     * no longer show which device is faulty. */
    bool judged;
};

tutti_status sync_devices_open(struct tutti_trainer *trainer);
void sync_devices_close(struct tutti_trainer *trainer);
/* Before the replicas with a part of the step start. */
void sync_devices_begin(struct tutti_trainer *trainer, int64_t samples);
/* A replica's thread calls it (replica/replica_setup.h): hands in the numbers of its `samples` samples and returns
 * those of all in their place. Errors: TUTTI_CANCELLED if the step is broken off because another device failed; the
 * replica is interrupted then. */
tutti_status sync_devices_exchange(
    void *trainer, int replica, const struct sync_point *point, int64_t samples, float *numbers);
/* A replica's thread calls it: the replica exchanges nothing more in this step. */
void sync_devices_leave(void *trainer, int replica);
/* After the step. */
bool sync_devices_interrupted(const struct sync_devices *sync, int replica);
/* Returns whether numbers that are not finite were handed in; returns whether this replica handed them in. */
bool sync_devices_judged(const struct sync_devices *sync);
bool sync_devices_spoiled(const struct sync_devices *sync, int replica);

/* For sync_ranks.c, under the lock: the number of values in an exchange; adds such values to a total; ends the
 * exchange, with `whole` as its result if `good`, else the step is broken off. */
size_t sync_devices_numbers(const struct sync_point *point);
void sync_devices_add(const struct sync_point *point, const double *numbers, double *whole);
void sync_devices_conclude(struct tutti_trainer *trainer, bool good);

#endif
