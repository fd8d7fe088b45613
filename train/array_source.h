/* A source over the arrays of tutti_fit(). */
#ifndef TRAIN_ARRAY_SOURCE_H
#define TRAIN_ARRAY_SOURCE_H

#include "parallel/feeds.h"

struct array_source {
    const struct feed_list *list;
    struct arrays arrays; /* the caller's, or `copies` */
    /* Kept until the training ends, because calls within it read feeds, too (tutti_fitting.progress). */
    int32_t *copies[PLAN_MAX_FEEDS];
    const int64_t *lengths; /* of each sample, or NULL */
};

/* lengths, buckets: of tutti_fitting. *made is valid until array_source_close(), which is called also after a
 * failure. */
tutti_status array_source_open(struct array_source *source, struct feed_list *list, const tutti_feed *feeds,
    int feed_count, int64_t samples, const int64_t *lengths, int buckets, tutti_source *made);
void array_source_close(struct array_source *source);

#endif
