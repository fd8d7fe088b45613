/* Inside of tutti_data: a collection, its division into parts, and the threads that read them. */
#ifndef DATA_DATA_H
#define DATA_DATA_H

#include "base/threads.h"
#include "data/collection.h"
#include "data/description.h"

#include <pthread.h>
#include <stdatomic.h>

enum { DATA_PARTS = 4, DATA_UNUSED = DATA_PARTS };

struct data_part {
    int64_t *samples; /* [count]: numbers in the collection, in the order of the source */
    int64_t *next;    /* [count]: another position with the same class: what stands in for a damaged sample */
    int64_t count;
    tutti_source source; /* count 0: none */
};

struct tutti_data {
    struct collection *collection;
    tutti_data_options options;
    struct description description; /* of the data that the network was trained on */
    signed char *part_of;           /* [samples]: a tutti_data_part but ALL, or DATA_UNUSED */
    struct data_part parts[DATA_PARTS];
    int64_t *class_counts;  /* of training samples; NULL without labels */
    struct augment augment; /* its mixing alone is done here */
    bool mixes;
    float values[DATA_MAX_CHANNELS][256]; /* of bytes, for networks of floats */
    _Atomic(uint64_t) epoch;
    atomic_uchar *damaged; /* [samples]: found to be so */
    _Atomic(int64_t) damaged_count;
    struct thread_pool *pool; /* one read at a time */
    pthread_mutex_t reading, telling;
};

/* Fills part_of, parts and class_counts by the seed. */
tutti_status data_divide(struct tutti_data *data);
/* Changes part_of where folds are asked for: one fold of the training part becomes the part val (folds.c). */
tutti_status data_fold(struct tutti_data *data);
/* tutti_source.read of a part. */
int data_read(struct tutti_data *data, tutti_data_part part, const int64_t *indices, int64_t count,
    const tutti_buffer *buffers, int buffer_count);
/* read_tokens.c: the same for samples that are tokens; the length of a batch, a multiple of 8 unless the longest sample
 * is shorter. */
int data_read_tokens(struct tutti_data *data, tutti_data_part part, const int64_t *indices, int64_t count,
    const tutti_buffer *buffers, int buffer_count);
int64_t data_batch_length(const struct tutti_data *data, tutti_data_part part, const int64_t *indices, int64_t count);
/* Whether a sample was found to be damaged, so that another one stands in for it. */
bool data_is_replaced(const struct tutti_data *data, tutti_data_part part, int64_t index);
/* Refuses a path that no opener knows, in a message that says what lies there (unknown.c). */
tutti_status data_unknown(const char *path);
size_t data_bytes(tutti_dtype dtype, const tutti_shape *shape); /* of a sample or target */

#endif
