/* Decoded bytes that stay in memory up to a limit. What was kept stays until the end: with every sample read once in an
 * epoch, whatever is thrown out would be missed just as soon. Any thread may call at any time. */
#ifndef DATA_CACHE_H
#define DATA_CACHE_H

#include "tutti.h"

struct cached {
    int width, height, channels;   /* of what was decoded */
    int whole_width, whole_height; /* of the picture in its file */
    int level;                     /* what the owner tells apart: how it was decoded */
    size_t bytes;
    unsigned char data[];
};

struct cache;
/* A limit of 0 or less keeps nothing. */
tutti_status cache_new(struct cache **cache, size_t slots, int64_t limit);
void cache_free(struct cache *cache); /* takes NULL */
/* What a slot keeps, or NULL; valid until cache_free(). */
const struct cached *cache_find(const struct cache *cache, size_t slot);
/* Copies head and data, unless the slot has something, the limit is reached or memory is short: a cache may forget. */
void cache_keep(struct cache *cache, size_t slot, const struct cached *head, const void *data);

#endif
