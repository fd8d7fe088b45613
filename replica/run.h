/* A replica's part of the rank's batch. */
#ifndef REPLICA_RUN_H
#define REPLICA_RUN_H

#include "replica/batch.h"
#include "replica/metric_sums.h"
#include "replica/replica.h"

/* The result of that part. */
struct replica_result {
    struct metric_sums metrics;
    bool not_finite; /* some gradient; if the device updates itself, it has updated nothing */
    float norm;      /* of the gradients, if such a device clips them */
    double seconds;
    struct traffic sent, received;
    const struct plan *kept; /* it has the outputs that step_input.keeps names; NULL: they were copied */
};

/* What a replica does with its part of the rank's batch. */
struct replica_work {
    struct step_input input;
    int64_t offset, samples;            /* of the part, in the rank's batch */
    struct batch next;                  /* the batch that may come next, divided in the same way; number 0: none */
    struct parameter_snapshot snapshot; /* the newest parameters and states; what the device lacks is uploaded */
    bool update;                        /* training: the device updates its parameters itself, nothing is exchanged */
    bool keeps_gradients;               /* training: gradients are exchanged, but nothing is updated by them now */
    bool synchronised;                  /* others have parts of the batch, and statistics are over the whole batch */
    bool verify_parameters;             /* at the end the device's must have the master copy's checksum */
    uint64_t checksum;
    bool probe; /* only its time counts: old parameters are good enough, and results are dropped */
    struct replica_result result;
};

/* A job. `argument`: a struct replica_work. */
tutti_status replica_run(struct replica *replica, void *argument);

#endif
