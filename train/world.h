/* This trainer among those of the other ranks (hosts.h): who takes which part of a batch, and what is agreed on. Every
 * rank has the network, the parameters and the optimizer's states whole, and calls the same functions in the same
 * order; a step is updated on all ranks or on none. */
#ifndef TRAIN_WORLD_H
#define TRAIN_WORLD_H

#include "train/balance.h"
#include "train/batches.h"
#include "train/hosts.h"
#include "train/repartition.h"
#include "train/shares.h"
#include "train/tally.h"

/* What each rank tells all others when they agree on something; zero where it has nothing to say. */
struct world_note {
    int32_t says;   /* enum verdict: the worst of all ranks' counts for all */
    int32_t status; /* tutti_status, of a failure */
    int32_t not_finite;
    int32_t cancelled;
    int32_t divides;     /* rank 0: a new division follows */
    int32_t repartition; /* enum repartition_state, of the next division */
    int32_t partial;     /* did not go through all of its samples */
    uint64_t hash;       /* of what must be the same everywhere */
    int64_t samples;     /* its own, of which the tally has the sums */
    struct tally tally;
    double seconds; /* what they took it, without waiting for others */
    double weight;
    int64_t capacity; /* samples that it takes at most */
    double largest;   /* magnitude among this rank's gradients; their sum bounds that of all ranks' */
};

/* Gradients on their way to the other ranks: this rank's sums, as long as the arena, and how many blocks have not left
 * yet. */
struct leaving {
    float *own;
    uint16_t *own_half, *half; /* trained parameters' as bfloat16, and all ranks'; NULL where they travel as floats */
    int64_t blocks_left;
};

/* The division of batches over the ranks; the thread that reads them asks, too. The next one holds from a certain step
 * on, which no rank's reader has begun. */
struct division {
    pthread_mutex_t lock;
    struct share *shares, *next;
    int64_t next_step; /* 0: there is no next one */
    bool automatic;
    struct balance balance; /* rank 0 decides */
    bool wanted;            /* it has decided, and not told yet */
    bool preparing;         /* it was told, and not all ranks have plans for it */
    struct repartition repartition;
};

/* Averages of parameters. */
struct average {
    int64_t every; /* steps between them; 0: gradients are summed in every step */
    /* Since the last one: steps, and this rank's sums; what the others' part of them was taken to be. */
    int64_t steps, whole;
    struct world_note since, told;
};

struct world {
    struct tutti_hosts *hosts;
    bool cancelled; /* agreed on */
    struct world_note *notes, mine;
    struct leaving leaving;
    struct sync_ranks *sync_ranks; /* NULL: devices of several ranks do not synchronise within a step */
    double seconds;                /* of this rank's own part of the last step */
    struct division division;
    struct average average;
};

struct tutti_trainer;

/* After the options were read, with their status: joins the others' trainers, or nobody (trainer->world is NULL). */
tutti_status world_open(struct tutti_trainer *trainer, const tutti_training *training, tutti_status status);
void world_close(struct tutti_trainer *trainer);
/* The last of tutti_compile(): all ranks succeeded, and begin with the same parameters. */
tutti_status world_begin(struct tutti_trainer *trainer, tutti_status status);

/* Every rank comes with its status; a failure of any becomes that of all. */
tutti_status world_agree(struct tutti_trainer *trainer, tutti_status status);
/* The same, and the hashes of `what` are equal. */
tutti_status world_same(struct tutti_trainer *trainer, tutti_status status, uint64_t hash, const char *what);
/* The same, and sums over all ranks. *whole: all went through all of their samples. */
tutti_status world_total(
    struct tutti_trainer *trainer, tutti_status status, struct sums *sums, int64_t *samples, bool *whole);
/* Rank 0's arrays for all. */
tutti_status world_share_arenas(struct tutti_trainer *trainer);
tutti_status world_broadcast(struct tutti_trainer *trainer, void *data, size_t bytes);

/* This rank's part of a batch of `whole` samples in a step, and where it begins. */
tutti_status world_part(struct world *world, int64_t step, int64_t whole, int64_t *first, int64_t *samples);
/* Batches have this size from now on. */
tutti_status world_resize(struct world *world, int64_t batch);
/* The ranks come with samples of their own, if they could be read: how many there are in all, and where this rank's
 * begin. A rank may have none; the length of sequences is the others' then. */
tutti_status world_place(struct tutti_trainer *trainer, tutti_status read, struct batch *batch);

/* Other ranks take part in every step: their gradients are summed. Else there are none, or they average. */
bool world_sums(const struct tutti_trainer *trainer);
/* A try at such a step begins; what is summed on this host leaves, from the end of the arena on: blocks marked in
 * `summed`, or all (NULL); the end of the try, with this rank's vote, and what counts for all: VOTE_DONE or
 * VOTE_AGAIN. `sums` becomes those of all ranks. */
void world_try(struct tutti_trainer *trainer);
/* This rank's sums of a range, by any thread. */
void world_put(struct tutti_trainer *trainer, int64_t first, int64_t count, const float *sums);
void world_leave(struct tutti_trainer *trainer, const bool *summed);
/* For watchdog_open(): communication between ranks makes progress only during these calls. */
double world_progress(void *trainer);
tutti_status world_vote(struct tutti_trainer *trainer, const struct vote *vote, enum verdict *all, struct sums *sums);
/* After a step that took so long. */
void world_stepped(struct tutti_trainer *trainer, double seconds);

/* Parameters are averaged. After a step: unless an average is due (world->average.steps), its sums become those of all
 * ranks as far as they are known. The average, when the newest parameters and states are on the host, or this rank has
 * failed: `sums` become what had not been told yet. */
bool world_averages(const struct tutti_trainer *trainer);
void world_local_step(struct tutti_trainer *trainer, const struct batch *batch, struct sums *sums);
tutti_status world_average(struct tutti_trainer *trainer, const struct vote *vote, struct sums *sums);

#endif
