/* Maps the arrays that programs pass, by name or position, to the numbered arrays that the engine reads, and checks
 * their types: one array for each input of the network, in the order in which they were added, and the targets of
 * tutti_training.loss last. */
#ifndef PARALLEL_FEEDS_H
#define PARALLEL_FEEDS_H

#include "graph/network.h"
#include "replica/arrays.h"
#include "replica/metric_sums.h"

struct feed {
    char *name;
    enum value_type type;
    tutti_shape shape; /* the batch first; sizes may be TUTTI_SEQUENCE */
    int64_t classes;   /* a loss reads class numbers below this; 0: none does */
    int32_t ignored;   /* label that this loss ignores, if `ignores`; it always ignores negative ones */
    bool ignores;
    int32_t blank;       /* label that no list may have, if `lists` */
    bool lists;          /* a sample has a list of labels, which ends at the first one below 0 */
    bool trains, infers; /* training and evaluation read it; inference does */
    bool carried;        /* a device has it, see tutti_carry: it is not fed */
};

struct feed_list {
    struct feed feeds[PLAN_MAX_FEEDS];
    struct array_list arrays;
    /* Lengths of sequences: the longest, and that of the last step, at first the longest. 0: the network has none */
    int64_t longest, length;
    /* Number of the feed whose labels each loss compares, and the accuracy; -1: none. */
    int compared[PLAN_MAX_LOSSES], accuracy;
    /* Excluded share of the labels where they are a constant: of each loss, and of the accuracy. */
    double excluded[PLAN_MAX_LOSSES], accuracy_excluded;
    /* Arrays of int32 for callers that pass int64: copies that the next feeds_read() overwrites. */
    int32_t *narrowed[PLAN_MAX_FEEDS];
    size_t room[PLAN_MAX_FEEDS]; /* of each, in numbers */
};

/* longest: tutti_training.sequence. Errors: TUTTI_INVALID if the network has no input, or too many, or sequences whose
 * longest is not given. */
tutti_status feeds_init(
    struct feed_list *list, const tutti_network *network, const struct objective *objective, int64_t longest);
void feeds_free(struct feed_list *list);
/* Checks that sequences can have this length. If it is 0, sets *length to that of the longest. */
tutti_status feeds_length(const struct feed_list *list, int64_t *length);
/* Converts the caller's feeds to arrays. If `trains`, all feeds that training reads must be there, else all that
 * inference reads; the arrays of others are NULL, also if they are fed. *borrowed: no array is a copy, which would be
 * valid only until the next call. Errors: TUTTI_INVALID with the feed's name. */
tutti_status feeds_read(struct feed_list *list, const tutti_feed *feeds, int count, bool trains, int64_t samples,
    struct arrays *arrays, bool *borrowed);
/* Moves the list's copies to copies[PLAN_MAX_FEEDS], where they stay valid until the caller has freed each; some may be
 * NULL. Later calls make new ones. */
void feeds_take_copies(struct feed_list *list, int32_t **copies);
/* Checks class numbers here, because the sample can still be named. Adds the labels that losses exclude to the
 * sums. */
tutti_status feeds_check_and_count(
    const struct feed_list *list, const struct arrays *arrays, int64_t samples, struct metric_sums *sums);
/* Writes the buffers of the feeds that training reads, at most PLAN_MAX_FEEDS. Returns their number. */
int feeds_buffers(const struct feed_list *list, const struct arrays *arrays, tutti_buffer *buffers);

#endif
