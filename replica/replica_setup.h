/* What the replicas of a trainer have in common: made once, before the first replica. It lives as long as the trainer.
 * If a device's thread is stuck in its driver, neither is ever freed, because that thread may come back and read it. */
#ifndef REPLICA_REPLICA_SETUP_H
#define REPLICA_REPLICA_SETUP_H

#include "plan/types.h"
#include "runtime/launch.h"

#include <stdatomic.h>

struct array_list;
struct carry_list;
struct log;
struct optimizer;
struct watchdog;

struct replica_setup {
    tutti_network *network;
    struct log *log;
    struct watchdog *watchdog; /* over the replicas' workers */
    const struct objective *objective;
    const struct optimizer *optimizer;
    const struct array_list *feeds, *outputs;
    const struct carry_list *carries; /* its count is 0 where nothing is carried */
    int64_t longest;                  /* length of sequences; 0: the network has none */
    int64_t batch, micro_batch;       /* micro_batch 0: no limit but memory */
    tutti_precision precision, wire;
    bool trains; /* there is a loss */
    bool exact, recompute, tune;
    bool automatic;             /* shares by speed: any may be the sole replica */
    bool ranks;                 /* there are other ranks */
    bool exchange, whole_batch; /* of struct trainer_options */
    /* `building` of tutti_training, with its `user`; NULL: not wanted. */
    void (*building)(void *user, int built, int total);
    void *building_user;
    /* What a replica asks of the trainer, which knows all replicas. The functions get it and the replica's number. */
    struct trainer_callbacks {
        void *trainer;
        /* Statistics over all devices, called by the replica's thread: hands in the numbers of its samples and gets
         * those of all in their place. */
        tutti_status (*statistics_exchange)(
            void *trainer, int replica, const struct sync_point *point, int64_t samples, float *numbers);
        void (*statistics_leave)(void *trainer, int replica); /* exchanges nothing more in this step */
        bool (*is_lost)(const void *trainer, int replica);    /* called by the trainer's thread */
    } callbacks;
    atomic_bool reported_single_values; /* the warning of run.c was given */
};

#endif
