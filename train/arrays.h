/* Several arrays of samples that belong together: what a step reads (feeds.h), or gives. */
#ifndef TRAIN_ARRAYS_H
#define TRAIN_ARRAYS_H

#include "plan/types.h"

enum { ARRAYS_MAX = PLAN_MAX_FEEDS > PLAN_MAX_OUTPUTS ? PLAN_MAX_FEEDS : PLAN_MAX_OUTPUTS };

/* Which arrays there are. */
struct array_list {
    int count;
    size_t bytes[ARRAYS_MAX];  /* of one sample, with a sequence length of 1 */
    int sequences[ARRAYS_MAX]; /* its axes of that length */
};

/* Where they lie: [samples][a sample] each. NULL: that one is not read, as inference does not read targets, or not
 * wanted. */
struct arrays {
    void *at[ARRAYS_MAX];
    int64_t length; /* of their sequences; 0: the network has none */
};

/* Adds the array of a value of the network. */
void arrays_add(struct array_list *list, const struct value *value);
/* Bytes of one sample of array `number`. */
size_t arrays_sample_bytes(const struct array_list *list, int number, int64_t length);
/* Bytes of the samples of all arrays, one behind the other. */
size_t arrays_bytes(const struct array_list *list, struct bound_sizes sizes);
/* Where array `number` begins there. */
size_t arrays_offset(const struct array_list *list, int number, struct bound_sizes sizes);
/* The same arrays from sample `first` on. */
struct arrays arrays_from(const struct array_list *list, const struct arrays *arrays, int64_t first);
/* All arrays at `memory`, one behind the other. */
struct arrays arrays_at(const struct array_list *list, void *memory, struct bound_sizes sizes);
/* Copies `samples` samples of those arrays that both have. */
void arrays_copy(const struct array_list *list, const struct arrays *from, int64_t samples, const struct arrays *to);
/* Copies them to `memory`, one behind the other: where they lie there. Those that are NULL are left out. */
struct arrays arrays_pack(const struct array_list *list, const struct arrays *from, int64_t samples, void *memory);
bool arrays_equal(const struct arrays *a, const struct arrays *b);

#endif
