/* How far a training has come, as a checkpoint keeps it. */
#ifndef PARALLEL_POSITION_H
#define PARALLEL_POSITION_H

#include <stdint.h>

/* What ReduceLROnPlateau keeps; zeros as a training begins. */
struct plateau {
    int64_t any; /* 1: there is a best loss */
    double best;
    int64_t bad; /* epochs since the last reduction without a better one */
    int64_t reductions;
};

/* The best epoch so far. */
struct best {
    int64_t epoch;         /* from 1; 0: none */
    double loss, accuracy; /* accuracy: -1 if it is unknown */
    int64_t bad;           /* epochs since then that patience has counted; 0 after an epoch without patience */
};

/* What resuming needs besides the arrays. */
struct position {
    int64_t steps;          /* updates since the beginning: dropout, Adam's bias correction */
    int64_t epoch;          /* epochs that are complete */
    int64_t samples;        /* of the epoch that has begun, done already */
    int64_t epoch_samples;  /* of a whole epoch, 0 before the first */
    int64_t epoch_order;    /* a hash of what orders the samples besides the seed: batches_order(); 0: nothing */
    double loss, correct;   /* metrics of the epoch that has begun: sums over its samples */
    double excluded;        /* of these, samples that do not count among the correct ones */
    struct plateau plateau; /* what complete epochs have come to */
    struct best best;
};

#endif
