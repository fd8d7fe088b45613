/* Several arrays with the same samples: what a step reads (parallel/feeds.h) or returns. */
#ifndef REPLICA_ARRAYS_H
#define REPLICA_ARRAYS_H

#include "plan/types.h"

enum { ARRAYS_MAX = PLAN_MAX_FEEDS > PLAN_MAX_OUTPUTS ? PLAN_MAX_FEEDS : PLAN_MAX_OUTPUTS };

/* Which arrays there are. */
struct array_list {
    int count;
    size_t bytes[ARRAYS_MAX];  /* of one sample, with a sequence length of 1 */
    int sequences[ARRAYS_MAX]; /* number of its axes that have the length of sequences */
};

/* Pointers to the arrays, each [samples][a sample]. NULL: the array is not read (inference does not read targets), or
 * not wanted. */
struct arrays {
    void *at[ARRAYS_MAX];
    int64_t length; /* of their sequences; 0: the network has none */
};

/* Memory for the samples of all arrays, which serves one batch after the other. */
struct arrays_memory {
    void *at;
    size_t bytes;
};

/* Adds the array of a value of the network. */
void arrays_add(struct array_list *list, const struct value *value);
/* Bytes of one sample of array `number`. */
size_t arrays_sample_bytes(const struct array_list *list, int number, int64_t length);
/* Bytes of the samples of all arrays, one after the other. */
size_t arrays_bytes(const struct array_list *list, struct bound_sizes sizes);
/* Byte offset of array `number` if all arrays lie one after the other. */
size_t arrays_offset(const struct array_list *list, int number, struct bound_sizes sizes);
/* Returns the arrays from sample `first` on. */
struct arrays arrays_from(const struct array_list *list, const struct arrays *arrays, int64_t first);
/* Returns arrays that lie at `memory`, one after the other. */
struct arrays arrays_at(const struct array_list *list, void *memory, struct bound_sizes sizes);
/* Copies `samples` samples of the arrays that are not NULL in both. */
void arrays_copy(const struct array_list *list, const struct arrays *from, int64_t samples, const struct arrays *to);
/* Copies `samples` samples to `memory`, one array after the other, and returns these arrays. One that is NULL is not
 * copied: what is returned for it has no contents. */
struct arrays arrays_pack(const struct array_list *list, const struct arrays *from, int64_t samples, void *memory);
/* Makes room for samples; those that were there are lost. keep: memory that is too small is not freed, because a device
 * that hangs may still read it. */
tutti_status arrays_reserve(
    const struct array_list *list, struct bound_sizes sizes, bool keep, struct arrays_memory *memory);
bool arrays_equal(const struct arrays *a, const struct arrays *b);

#endif
