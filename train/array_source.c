#include "train/array_source.h"

#include "base/status.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A sample that is copied without what lies after a length. */
struct cut {
    const tutti_shape *shape;
    int last; /* axis of sequences; 0: none */
    int64_t from, to;
};

/* Copies one element of the axes before `axis`, which has so many bytes. Returns how many bytes it wrote. */
static size_t copy_cut(const struct cut *cut, int axis, size_t bytes, const unsigned char *from, unsigned char *to)
{
    const int64_t size = cut->shape->sizes[axis];
    const int64_t count = size == TUTTI_SEQUENCE ? cut->from : size, kept = size == TUTTI_SEQUENCE ? cut->to : size;
    const size_t each = bytes / (size_t)count;
    size_t written = 0;
    if (axis < cut->last) {
        for (int64_t i = 0; i < kept; i++)
            written += copy_cut(cut, axis + 1, each, from + (size_t)i * each, to + written);
        return written;
    }
    memcpy(to, from, (size_t)kept * each);
    return (size_t)kept * each;
}

/* A tutti_source.read. `buffers` are those of feeds_buffers(): one for each feed that trains, in the list's order. */
static int read_arrays(void *user, const int64_t *indices, int64_t count, const tutti_buffer *buffers, int buffer_count)
{
    const struct array_source *source = user;
    int number = -1;
    for (int b = 0; b < buffer_count; b++) {
        while (!source->list->feeds[++number].trains) continue;
        const tutti_shape *shape = &source->list->feeds[number].shape;
        const size_t bytes = arrays_sample_bytes(&source->list->arrays, number, source->arrays.length);
        const unsigned char *from = source->arrays.at[number];
        unsigned char *to = buffers[b].data;
        struct cut cut = { shape, 0, source->arrays.length, buffers[b].length };
        for (int axis = 1; axis < shape->rank; axis++)
            if (shape->sizes[axis] == TUTTI_SEQUENCE) cut.last = axis;
        for (int64_t i = 0; i < count; i++, to += buffers[b].bytes) {
            const unsigned char *sample = from + (size_t)indices[i] * bytes;
            if (buffers[b].bytes == bytes)
                memcpy(to, sample, bytes);
            else
                (void)copy_cut(&cut, 1, bytes, sample, to);
        }
    }
    return 0;
}

static int64_t longest_of(void *user, const int64_t *indices, int64_t count)
{
    const struct array_source *source = user;
    int64_t longest = 0;
    for (int64_t i = 0; i < count; i++)
        if (source->lengths[indices[i]] > longest) longest = source->lengths[indices[i]];
    return longest;
}

static tutti_status check_lengths(const struct array_source *source, int64_t samples, int buckets)
{
    const int64_t longest = source->arrays.length;
    if (!source->lengths && buckets == 0) return TUTTI_OK;
    if (!source->lengths)
        return fail(
            TUTTI_INVALID, "tutti_fitting.buckets is %d, but there are no lengths: set tutti_fitting.lengths", buckets);
    if (longest == 0)
        return fail(
            TUTTI_INVALID, "tutti_fitting.lengths is set, but no input has TUTTI_SEQUENCE in its shape: leave it out");
    for (int64_t i = 0; i < samples; i++)
        if (source->lengths[i] < 1 || source->lengths[i] > longest)
            return fail(TUTTI_INVALID,
                "sample %" PRId64 " has the length %" PRId64 ": it must be from 1 to %" PRId64
                ", the length of the arrays",
                i, source->lengths[i], longest);
    return TUTTI_OK;
}

tutti_status array_source_open(struct array_source *source, struct feed_list *list, const tutti_feed *feeds,
    int feed_count, int64_t samples, const int64_t *lengths, int buckets, tutti_source *made)
{
    tutti_status status;
    bool borrowed = true;
    *source = (struct array_source) { .list = list, .lengths = lengths };
    TRY(feeds_read(list, feeds, feed_count, true, samples, &source->arrays, &borrowed));
    TRY(check_lengths(source, samples, buckets));
    if (!borrowed) feeds_take_copies(list, source->copies);
    *made = (tutti_source) { .samples = samples,
        .read = read_arrays,
        .user = source,
        .length = source->arrays.length,
        .batch_length = lengths ? longest_of : NULL,
        .buckets = buckets };
done:
    return status;
}

void array_source_close(struct array_source *source)
{
    for (int i = 0; i < PLAN_MAX_FEEDS; i++) free(source->copies[i]);
}
