/* Plans for other shares, built in the background (background.c). The trainer's thread makes all calls, between two
 * runs of the replica. */
#ifndef REPLICA_BACKGROUND_H
#define REPLICA_BACKGROUND_H

#include "plan/plan.h"

#include <pthread.h>

struct replica;

struct background {
    pthread_t thread;
    bool started;
    bool done, hangs;      /* guarded by the watchdog's lock */
    double waited_s, seen; /* time counted against its limit; when it was last checked */
    bool sole;             /* also builds the device's own update */
    bool plan_wanted;
    struct plan_options options;
    struct plan *plan;
    tutti_status status;
    char message[1024];
};

/* Starts a thread that builds what a part of this size needs; does nothing if all is there. If the start fails,
 * background_wait() returns the failure. `sole`: the device is to update itself, too. */
void background_start(struct replica *replica, struct bound_sizes sizes, bool sole);
bool background_is_done(struct replica *replica);
bool background_hangs(const struct replica *replica);
/* Waits for the thread, at most as long as building plans may take. Returns its status. */
tutti_status background_wait(struct replica *replica);
/* A job: adopts what was built. */
tutti_status background_adopt(struct replica *replica, void *unused);
/* Waits likewise and frees what was built. If the thread hangs, frees nothing and returns the failure. */
tutti_status background_free(struct replica *replica);

#endif
