/* This trainer among those of the other ranks (communicator.h): who takes which samples of a batch, and what is agreed
 * on. Every rank has the network, the parameters and the optimizer's states whole, and calls the same functions in the
 * same order; a step is updated on all ranks or on none. */
#ifndef PARALLEL_RANKS_H
#define PARALLEL_RANKS_H

#include "parallel/balance.h"
#include "parallel/communicator.h"
#include "parallel/repartition.h"
#include "parallel/shares.h"
#include "replica/metric_sums.h"
#include "replica/optimizer.h"

/* A rank's message to all others when they agree on something; zero if it has nothing to say. */
struct rank_note {
    int32_t says;   /* enum verdict: the worst of all ranks' counts for all */
    int32_t status; /* tutti_status, of a failure */
    int32_t not_finite;
    int32_t cancelled;
    int32_t divides;     /* rank 0: a new division follows */
    int32_t repartition; /* enum repartition_state, of the next division */
    int32_t partial;     /* did not go through all of its samples */
    uint64_t hash;       /* of what must be the same everywhere */
    uint64_t digests;    /* eight bits of the hash of each part of it, for the message */
    int64_t samples;     /* its own, of which `metrics` has the sums */
    struct metric_sums metrics;
    double seconds;   /* time for these samples, without waiting for others */
    double weight;    /* of its devices; in an average, the samples that it has trained */
    int64_t capacity; /* samples that it takes at most */
    double scale;     /* of losses, where ranks average; 0: it has had no sample since the last average */
    int64_t good, skipped;
    double largest; /* largest magnitude of this rank's gradients; the ranks' total bounds their sum */
};

/* Arrays of an all-reduce of gradients. */
struct all_reduce_buffers {
    float *send; /* of this rank, as long as the arena; where ranks average, its weighted parameters */
    /* Gradients of trained parameters as bfloat16: this rank's, and the sums of all ranks. NULL: they are floats, and
     * the sums are in the parameter store. */
    uint16_t *send_bf16, *receive_bf16;
    int64_t blocks_left; /* whose all-reduce has not been started */
};

/* The division of batches over the ranks; the thread that reads batches uses it, too. The next division applies from
 * `next_step` on, which no rank's reader has begun. */
struct rank_division {
    pthread_mutex_t lock;
    struct share *shares, *next;
    int64_t next_step; /* 0: there is no next one */
    bool automatic;
    struct balance balance; /* rank 0 decides */
    bool wanted;            /* it has decided, but not told the others */
    bool preparing;         /* the others were told, but not all ranks have plans for it */
    struct repartition repartition;
};

/* Averages of parameters. */
struct average {
    int64_t every; /* steps between them; 0: gradients are summed in every step */
    /* Since the last one: steps, also those that failed; this rank's sums; the estimated sums of all ranks that the
     * caller was told. */
    int64_t steps;
    struct rank_note since, reported;
    struct optimizer_arrays result; /* of an average in progress; after one, the former master copy. Kept, as a device
                                     * that hangs may still read it, and a rank that was silent may still add to it */
};

struct ranks {
    struct tutti_hosts *comm; /* to the other ranks */
    bool cancelled;           /* all ranks have agreed to cancel */
    struct rank_note *notes, mine;
    struct all_reduce_buffers buffers;
    struct sync_ranks *sync_ranks; /* NULL: devices of several ranks do not synchronise within a step */
    double seconds;                /* of this rank's own work in the last step */
    struct rank_division division;
    struct average average;
};

struct tutti_trainer;

/* Call it after the options were read, with their status: joins the trainers of the other ranks. Without other ranks,
 * trainer->ranks is NULL. */
tutti_status ranks_open(struct tutti_trainer *trainer, const tutti_training *training, tutti_status status);
void ranks_close(struct tutti_trainer *trainer);
/* At the end of tutti_compile(): agrees that all ranks succeeded, and makes them begin with the same
 * parameters. */
tutti_status ranks_begin(struct tutti_trainer *trainer, tutti_status status);
/* For watchdog_open(): communication between ranks makes progress only during these calls. */
double ranks_progress(void *trainer);

#endif
