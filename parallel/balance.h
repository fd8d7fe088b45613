/* Decides from the times of the steps which devices train, and with how many samples each; reconsiders it after each
 * step. This is host arithmetic only: the trainer reports the times, asks for the decision, builds what a new
 * division needs, and adopts it.
 *
 * A step takes as long as its slowest device, plus the host's part of the exchange; a device alone exchanges nothing.
 * Devices may slow each other down (on one CPU they share its cores), which a device's own times do not show. So
 * after the first steps, each device whose predicted time alone comes close to that of all together is tried
 * alone. */
#ifndef PARALLEL_BALANCE_H
#define PARALLEL_BALANCE_H

#include "base/status.h"
#include "parallel/speed.h"

struct balance_device {
    struct speed speed;
    int64_t limit; /* most samples that it takes; 0: it is lost */
    bool tried;    /* alone */
    /* If the device is left out: predicted seconds of a step with it and without it. */
    double with, without;
};

struct balance {
    struct balance_device *devices;
    int count;
    int64_t batch;
    int64_t *parts;                /* in use */
    int64_t *wanted, *other;       /* the division to change to; room for another one */
    int64_t *before;               /* the division before this one */
    double exchange[SPEED_RECENT]; /* time of a step beyond its slowest device, of the last steps together */
    int exchanges;
    int cold;                    /* steps that are still ignored */
    int steps;                   /* since the division changed */
    int votes;                   /* steps in a row after which another division seemed better */
    int patience;                /* votes that a change needs: more after each change that gained nothing */
    double recent[SPEED_RECENT]; /* the last steps of this division, seconds */
    double before_s;             /* median step before the change to this division; 0: judged already */
    bool trying;                 /* this division is a trial of a sole replica */
    bool settled;                /* all trials are over and the last step asked for no change */
};

/* Begins with equal parts. limits[i]: most samples of device i; 0: it does not take part. */
tutti_status balance_init(struct balance *balance, int count, int64_t batch, const int64_t *limits);
void balance_free(struct balance *balance);
/* Returns the device whose replica is the sole one by this division; -1 if several get samples. */
int balance_sole_device(const struct balance *balance);
/* Adds a step of the whole batch with the parts in use: seconds[i] of each device's part, and those of the whole
 * step. */
void balance_add(struct balance *balance, const double *seconds, double step);
/* Adds a probe of a device that is left out: its seconds for `samples` samples while the others trained. */
void balance_probed(struct balance *balance, int device, int64_t samples, double seconds);
/* Returns whether the division should change to balance->wanted, which then stays until balance_adopt(). */
bool balance_decide(struct balance *balance);
/* Makes balance->wanted the division in use. */
void balance_adopt(struct balance *balance);
/* Discards times that may have been noise: of the times together it keeps only each device's last size and the
 * shortest exchange. Devices whose trial alone was not far behind may be tried once more. */
void balance_try_again(struct balance *balance);
/* The wanted division is impossible: the device takes at most `samples` (0: it is lost). If its part in use is
 * larger, the batch is divided again. */
tutti_status balance_limit(struct balance *balance, int device, int64_t samples);
/* Sets the size of later steps; keeps what is known of the devices. */
tutti_status balance_resize(struct balance *balance, int64_t batch);
/* Sets the size of later steps, and makes `parts` the division in use. */
void balance_take(struct balance *balance, int64_t batch, const int64_t *parts);

#endif
