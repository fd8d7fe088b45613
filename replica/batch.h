/* The samples that a trainer or a replica gets for a step. The global batch: those of the step, on all ranks. A rank's
 * batch: its part of them, and all of them where there are no ranks; devices get parts of it. */
#ifndef REPLICA_BATCH_H
#define REPLICA_BATCH_H

#include "replica/arrays.h"

/* A rank's batch. */
struct batch {
    struct arrays feeds;
    const int64_t *indices; /* of these samples in their source; NULL where they have none */
    int64_t samples;
    int64_t global_offset, global_samples; /* where it begins in the global batch, and that one's size; 0: no batch */
    uint64_t number;                       /* of an announced batch (lookahead.h); else 0 */
    const struct arrays *outputs;          /* where its outputs go; NULL: not wanted */
};

#endif
