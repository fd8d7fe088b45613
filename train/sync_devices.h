/* Where the devices of a step meet: small vectors that each of them makes become those of the whole batch before any of
 * them goes on (runtime/launch.h says which). A meeting waits for all that take part in the step; one that fails or is
 * given up on the way breaks the step off for the others, whose fault it is not. */
#ifndef TRAIN_SYNC_DEVICES_H
#define TRAIN_SYNC_DEVICES_H

#include "runtime/launch.h"

struct replica;
struct tutti_trainer;

enum { MEETING_ROWS = 3 }; /* numbers of a channel, at most */

/* A replica at the meetings of a step. */
struct attendee {
    bool attends;         /* it has not been at all of them yet */
    bool interrupted;     /* broke its work off because another device failed */
    bool spoiled;         /* gave the others numbers that are not finite */
    const float *numbers; /* that it handed in; NULL: not yet */
    int64_t stride;
};

/* The watchdog's lock guards it. */
struct meetings {
    int64_t samples; /* of the step, on all ranks */
    int expected, arrived;
    bool complete;                 /* all have handed in, and wait for the other ranks */
    bool broken;                   /* another rank will not come any more in this step */
    uint64_t round;                /* counts meetings */
    const struct meeting *meeting; /* that some are at */
    struct attendee *attendees;    /* one for each replica */
    double *whole; /* [rows][channels] of the last meeting; while it is complete, of this rank's devices */
    size_t capacity;
    /* Numbers that are not finite came from some devices and not from others, which have had them since: what becomes
     * of the step tells nothing more about who is faulty (`spoiled` does). */
    bool judged;
};

tutti_status meetings_open(struct tutti_trainer *trainer);
void meetings_close(struct tutti_trainer *trainer);
/* Before the replicas that have a part of the step start. */
void meetings_begin(struct tutti_trainer *trainer, int64_t samples);
/* By a replica's thread: gives the numbers of its `samples` samples and gets those of all. TUTTI_CANCELLED where the
 * step is broken off; it is interrupted then, and another one is to blame. */
tutti_status meetings_attend(struct replica *replica, const struct meeting *meeting, int64_t samples, float *numbers);
/* By a replica's thread: it has been at all meetings of the step, or will not come any more. */
void meetings_leave(struct replica *replica);
/* After the step. */
bool meetings_interrupted(const struct meetings *meetings, int replica);
/* Somebody's numbers were not finite; whose, then, are to blame. */
bool meetings_judged(const struct meetings *meetings);
bool meetings_spoiled(const struct meetings *meetings, int replica);

/* For sync_ranks.c, under the lock: numbers of a meeting without those between its rows; adds such numbers to others;
 * the other ranks' are among `whole` now, or the step is broken off. */
size_t meeting_numbers(const struct meeting *meeting);
void meeting_add(const struct meeting *meeting, const double *numbers, double *whole);
void meetings_conclude(struct tutti_trainer *trainer, bool good);

#endif
