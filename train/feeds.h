/* The arrays of samples that a step reads: the network's inputs, in the order in which they were added to it, and
 * behind them the targets of the loss. */
#ifndef TRAIN_FEEDS_H
#define TRAIN_FEEDS_H

#include "graph/network.h"
#include "plan/types.h"

struct loss;

/* Which arrays there are. */
struct feed_list {
    int count, inputs;            /* the first `inputs` of them are the network's */
    size_t bytes[PLAN_MAX_FEEDS]; /* of one sample */
};

/* Where they lie: an array [samples][a sample] for each of the list. NULL: the step does not read it, as inference does
 * not read targets. */
struct feeds {
    const void *arrays[PLAN_MAX_FEEDS];
};

/* Fills the list for training with a loss; NULL: for inference. Errors: TUTTI_INVALID if the network has no input, or
 * too many. */
tutti_status feed_list_init(
    struct feed_list *list, const tutti_network *network, tutti_tensor output, const struct loss *loss);
/* Bytes of `samples` samples of all arrays, as feeds_copy() places them. */
size_t feeds_bytes(const struct feed_list *list, int64_t samples);
/* Where array `feed` begins there. */
size_t feeds_offset(const struct feed_list *list, int feed, int64_t samples);
/* The same arrays from sample `first` on. */
struct feeds feeds_from(const struct feed_list *list, const struct feeds *feeds, int64_t first);
/* The arrays at `memory`, one behind the other. */
struct feeds feeds_at(const struct feed_list *list, const void *memory, int64_t samples);
/* Copies `samples` samples there; arrays that are NULL are left out. */
void feeds_copy(const struct feed_list *list, const struct feeds *from, int64_t samples, void *memory);
bool feeds_equal(const struct feeds *a, const struct feeds *b);

#endif
