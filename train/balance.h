/* Which devices train, and how many samples each: decided from the times of the steps, and looked at again after each.
 * Host arithmetic alone: the trainer tells the times, asks, makes what a new division needs, and adopts it.
 *
 * A step takes as long as the slowest device, and then the host's part of the exchange; a device alone exchanges
 * nothing. Devices may stand in each other's way (on one CPU they share its cores), which no device's own times tell.
 * So, after the first steps, each device that could do it alone within reach of all together is tried alone. */
#ifndef TRAIN_BALANCE_H
#define TRAIN_BALANCE_H

#include "base/status.h"
#include "train/speed.h"

struct balance_device {
    struct speed speed;
    int64_t limit; /* samples that it takes; 0: it is lost */
    bool tried;    /* alone */
    /* Of a device that is left out: what the decision was made by, seconds of a step. */
    double with, without;
};

struct balance {
    struct balance_device *devices;
    int count;
    int64_t batch;
    int64_t *parts;                /* in use */
    int64_t *wanted, *other;       /* the division to change to; room for another one */
    int64_t *before;               /* the division before this one */
    double exchange[SPEED_RECENT]; /* what a step takes longer than its slowest device, of the last steps together */
    int exchanges;
    int cold;                    /* steps that still do not count */
    int steps;                   /* since the division changed */
    int votes;                   /* steps in a row after which another division seemed better */
    int patience;                /* such steps that a change takes: more after each change that gained nothing */
    double recent[SPEED_RECENT]; /* the last steps of this division, seconds */
    double before_s;             /* such a step's median before the change to it; 0: judged already */
    bool trying;                 /* this division is a trial of one device alone */
    bool settled;                /* all trials are over and the last step asked for no change */
};

/* Equal parts; limits[i] is what device i takes, 0: it is not there. */
tutti_status balance_init(struct balance *balance, int count, int64_t batch, const int64_t *limits);
void balance_free(struct balance *balance);
/* The one device that trains, which then updates itself; -1 where there are several. */
int balance_alone(const struct balance *balance);
/* Of a step of the whole batch with the parts in use: seconds[i] of each device's part, and those of the whole step. */
void balance_add(struct balance *balance, const double *seconds, double step);
/* Of a device that is left out, which has done `samples` beside the others. */
void balance_probed(struct balance *balance, int device, int64_t samples, double seconds);
/* Whether the division should change, to balance->wanted; the answer stays until balance_adopt(). */
bool balance_decide(struct balance *balance);
/* The devices work by balance->wanted from now on. */
void balance_adopt(struct balance *balance);
/* What is known may have been noise: devices whose trial alone was not far behind may be tried once more, and of the
 * times together only each device's last size and the shortest exchange stay. */
void balance_try_again(struct balance *balance);
/* The wanted division cannot be had: the device takes no more than this (0: it is lost). Parts in use that are larger
 * are divided anew. */
tutti_status balance_limit(struct balance *balance, int device, int64_t samples);
/* Steps have another size from now on; what is known of the devices stays. */
tutti_status balance_resize(struct balance *balance, int64_t batch);
/* The same, and the devices work by `parts` from now on. */
void balance_take(struct balance *balance, int64_t batch, const int64_t *parts);

#endif
