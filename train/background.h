/* Plans for other shares, made beside the running ones (background.c). The trainer's thread makes all calls, between
 * two runs of the replica. */
#ifndef TRAIN_BACKGROUND_H
#define TRAIN_BACKGROUND_H

#include "plan/plan.h"

#include <pthread.h>

struct replica;
struct tutti_trainer;

struct background {
    pthread_t thread;
    bool started;
    bool done, hangs;      /* guarded by the watchdog's lock */
    double waited_s, seen; /* of its time limit; when it was last looked at */
    bool alone;            /* also what the device needs to update itself */
    bool plan_wanted;
    struct plan_options options;
    struct plan *plan;
    tutti_status status;
    char message[1024];
};

/* Has what a part of `samples` needs made by a thread of its own; nothing is started where all is there. */
tutti_status background_start(struct replica *replica, int64_t samples, bool alone);
bool background_is_done(struct replica *replica);
bool background_hangs(const struct replica *replica);
/* Waits for the end, no longer than making plans may take; its status. */
tutti_status background_wait(struct replica *replica);
/* A job: takes what was made into use. */
tutti_status background_adopt(struct replica *replica, void *unused);
/* Waits likewise and frees what was made, unless that hangs: why not. */
tutti_status background_free(struct replica *replica);

/* The same on all devices that have a part; a failure to start is the status of its background_wait(). *failed: the
 * first device that could not take what was made into use, or NULL. */
void background_start_all(struct tutti_trainer *trainer, const int64_t *parts, bool alone);
bool background_all_done(struct tutti_trainer *trainer);
tutti_status background_adopt_all(struct tutti_trainer *trainer, const int64_t *parts, struct replica **failed);

#endif
