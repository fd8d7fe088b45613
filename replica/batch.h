/* The samples that a trainer or a replica gets for a step:
 *
 * global batch     all samples of the step, on all ranks
 *   rank's batch   of one rank; the global batch where there are no ranks: struct batch, struct step_input
 *     part         of one device: struct replica_work (run.h)
 *       micro-batch   what the device computes at once, if the part does not fit into its memory */
#ifndef REPLICA_BATCH_H
#define REPLICA_BATCH_H

#include "plan/types.h"
#include "replica/arrays.h"
#include "replica/metric_sums.h"

/* A rank's batch. */
struct batch {
    struct arrays feeds;
    const int64_t *indices; /* of these samples in their source; NULL where they have none */
    int64_t samples;
    int64_t global_offset, global_samples; /* where it begins in the global batch, and that one's size; 0: no batch */
    uint64_t number;                       /* of an announced batch, in the copies that struct lookahead has; else 0 */
    const struct arrays *outputs;          /* where its outputs go; NULL: not wanted */
};

/* What a step or a forward pass gets: the rank's batch, and what all its devices have in common. */
struct step_input {
    enum plan_mode mode;
    struct arrays feeds, outputs;    /* of the rank's batch */
    bool gives_outputs;              /* some are wanted */
    const bool *keeps;               /* for each output: it may stay in the plan's buffer, which the host can map */
    bool journaled;                  /* the feeds are the journal's copies, which stay, not the caller's memory */
    int64_t samples;                 /* of the rank's batch */
    int64_t global_offset;           /* of the rank's batch, in the global batch */
    int64_t global_samples;          /* of the step, or if ranks average, of the rank's batch; 0 in forward passes */
    struct step_constants constants; /* first_sample and micro_batches are set for each micro-batch */
    uint64_t number;                 /* of the announced batch that this is: lookahead_number(); 0: of none */
    struct metric_sums excluded;     /* labels of the batch that do not count */
};

#endif
