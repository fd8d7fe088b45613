/* Batches of an epoch, read by a separate thread while the devices compute the previous batch. */
#ifndef TRAIN_BATCHES_H
#define TRAIN_BATCHES_H

#include "parallel/feeds.h"
#include "replica/batch.h"

struct batches;
struct ranks;

struct batches_options {
    int64_t batch;                 /* samples; the last one of the epoch has what is left */
    const struct feed_list *feeds; /* arrays of those that training does not need are NULL */
    bool shuffle;
    uint64_t seed, epoch; /* the order depends on these two alone */
    int64_t position;     /* samples of the epoch that are already done: resuming */
    int64_t end;          /* the position where it ends, such as the number of the source's samples */
    bool leaves_out;      /* samples that the source has replaced; later ones fill the batch, unless lengths vary */
    /* If not NULL, only this rank's samples of each batch are read, by the division of the batch's step. `step` is that
     * of the first batch. NULL: whole batches. */
    struct ranks *ranks;
    int64_t step;
};

/* Starts reading at once. The source, which buckets_check_source() has accepted, must outlive it. */
tutti_status batches_open(struct batches **batches, const tutti_source *source, const struct batches_options *options);
/* The next batch, valid until the next call; global_samples is 0 at the end of the epoch. */
tutti_status batches_next(struct batches *batches, struct batch *batch);
/* Gets the batch after it if it has been read; returns whether it has. It is valid while it is the next or the given
 * batch. */
bool batches_peek(struct batches *batches, struct batch *batch);
/* What the order depends on besides the options' seed and epoch: lengths and the batch, above 0. 0: on nothing. */
int64_t batches_order(const struct batches *batches);
void batches_close(struct batches *batches); /* takes NULL */

/* The order of an epoch: Fisher and Yates's shuffle (Durstenfeld's form) of 0 .. count - 1. */
void batches_shuffle(int64_t *order, int64_t count, uint64_t seed, uint64_t epoch);

#endif
