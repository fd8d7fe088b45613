/* The state of a trainer: the network on all devices, and how far its training has come. */
#ifndef PARALLEL_TRAINER_H
#define PARALLEL_TRAINER_H

#include "parallel/backward.h"
#include "parallel/balance.h"
#include "parallel/feeds.h"
#include "parallel/lookahead.h"
#include "parallel/membership.h"
#include "parallel/parameter_store.h"
#include "parallel/shares.h"
#include "parallel/sync_devices.h"
#include "parallel/training_state.h"
#include "replica/optimizer.h"
#include "replica/replica.h"
#include "replica/replica_setup.h"
#include "tutti_advanced.h"

struct metadata;
struct replica_work;
struct ranks;

/* Options of the caller, and what follows from them. */
struct trainer_options {
    bool exact, recompute, tune;
    tutti_precision precision;
    tutti_advanced_options advanced;
    void (*building)(void *user, int built, int total); /* of struct tutti_training */
    void *building_user;
    int64_t batch, micro_batch; /* micro_batch 0: no limit but memory */
    bool batch_given;           /* by the caller, not the default */
    bool automatic;             /* shares by speed */
    struct carry_list carries;  /* tutti_carry; only without a loss */
    bool evaluates;             /* it has a loss */
    bool trains;                /* it has a loss, and parameters of its own */
    /* Compiled for several devices, or for ranks that sum gradients. True: gradients are exchanged and the host updates
     * (exchange.c), except in steps of a sole replica (trainer_sole_replica()). False: the only device updates itself
     * in every step but those of backward.c. */
    bool exchange;
    /* --sync-batchnorm, and it concerns something in the network: no device may split its part into micro-batches,
     * and devices that share a batch synchronise their statistics. */
    bool whole_batch;
};

/* The last step: step_commit() writes it; gradients without an update: backward.c; and outputs of the last inference.
 */
struct last_step {
    /* A step or tutti_apply() has succeeded since the last tutti_backward(), so gradients can be read. It stays true
     * when a later step fails; `norm`, and perhaps the devices' gradients, are then those of the failed step. */
    bool stepped;
    float unscale; /* factor of its gradients */
    float norm;    /* of its gradients, if they are clipped; else NaN */
    struct kept_gradients kept;
    struct kept_outputs outputs;
};

struct device_division {
    struct share *shares; /* of devices: given by the caller, or by `balance` */
    int64_t *parts;       /* of devices, of the batch at hand */
    /* Samples of this rank's batch under the first division, at least 1; forward passes take as many at once. */
    int64_t rank_batch;
};

struct trainer_report {
    int64_t steps; /* since it was reset */
    double seconds;
    double waited;               /* seconds that steps waited for their samples */
    struct metric_sums reported; /* of the last step or evaluation, of `reported_samples` samples; 0: there was none */
    int64_t reported_samples;
};

struct tutti_trainer {
    tutti_network *network;
    struct trainer_options options;
    struct objective objective;
    struct feed_list feeds;    /* what a step reads */
    struct array_list outputs; /* what the caller can fetch */
    struct optimizer optimizer;
    struct parameter_store *store; /* another trainer's where tutti_training.parameters_of is set */
    struct metadata *metadata;     /* texts that are saved with the weights */
    struct training_state state;
    struct last_step last;
    struct lookahead lookahead;
    struct trainer_report report;

    int count; /* of devices */
    struct membership members;
    struct replica_setup setup; /* which all replicas have in common */
    struct replica *replicas;
    struct replica_work *works; /* one for each replica */
    struct device_division device_division;
    struct watchdog watchdog; /* over the replicas' workers */
    struct sync_devices sync_devices;

    struct ranks *ranks; /* trainers of other ranks; NULL: there are none */
    struct thread_pool *pool;
    struct balance balance;
    struct rebalance *rebalance;
    struct journal *journal; /* of a sole replica, while there are other devices */
};

#endif
