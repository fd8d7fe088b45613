/* Length buckets: batches of samples with similar lengths of sequences. */
#ifndef TRAIN_BUCKETS_H
#define TRAIN_BUCKETS_H

#include "parallel/feeds.h"

enum { BUCKETS_MAX = 64 };

/* Ranges of lengths. Bucket i has those above bounds[i - 1], to bounds[i]. */
struct buckets {
    int count; /* 0: none */
    int64_t bounds[BUCKETS_MAX];
    unsigned char *of; /* the bucket of each sample of the source */
    int64_t samples;
};

/* `what`: the data that it gives, for messages. */
tutti_status buckets_check_source(const struct feed_list *feeds, const tutti_source *source, const char *what);
/* Asks the source for the length of a batch, which may be from 1 to `longest`. Errors: TUTTI_FILE with the source's
 * reason, or that it returned another length. */
tutti_status buckets_batch_length(
    const tutti_source *source, int64_t longest, const int64_t *indices, int64_t count, int64_t *length);

/* Divides all samples of a source into source->buckets ranges with about as many samples each. A source without
 * buckets gets none. */
tutti_status buckets_open(struct buckets *buckets, const tutti_source *source, int64_t longest);
/* The largest length of the range that contains this one. */
int64_t buckets_round(const struct buckets *buckets, int64_t length);
/* Sorts `order`, stably, by bucket. */
tutti_status buckets_sort(const struct buckets *buckets, int64_t *order, int64_t count);
/* Puts batches of `batch` neighbours into a random order. The one with fewer, which comes last, is taken from a random
 * position. */
tutti_status buckets_shuffle_batches(int64_t *order, int64_t count, int64_t batch, uint64_t seed, uint64_t epoch);
/* What the order depends on besides seed and epoch, above 0; 0: on nothing. */
int64_t buckets_hash(const struct buckets *buckets, int64_t batch);
void buckets_close(struct buckets *buckets);

#endif
