#include "train/batches.h"

#include "base/memory.h"
#include "base/random.h"
#include "parallel/ranks_division.h"
#include "train/buckets.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { BUFFERS = BATCHES_AHEAD + 1 };

struct buffer {
    void *memory;        /* of all feeds, of the longest sequences */
    struct arrays feeds; /* in it */
    int64_t samples, global_offset, global_samples;
    const int64_t *indices; /* in the order of the epoch */
    bool full;
};

struct batches {
    const tutti_source *source;
    struct batches_options options;
    struct buckets buckets;
    int64_t longest; /* length of sequences of the source */
    int64_t *order;
    struct buffer buffers[BUFFERS];
    int given; /* the buffer that the caller holds, or -1 */
    int next;  /* the buffer that the caller gets next */
    pthread_t reader;
    bool running;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool stop;           /* the caller wants no more */
    bool finished;       /* the reader is at the end, or failed */
    tutti_status status; /* the reader's failure */
    char message[1024];
};

void batches_shuffle(int64_t *order, int64_t count, uint64_t seed, uint64_t epoch)
{
    for (int64_t i = 0; i < count; i++) order[i] = i;
    for (int64_t i = count - 1; i > 0; i--) {
        const int64_t other =
            (int64_t)random_below(seed, RANDOM_SHUFFLE + (uint32_t)epoch, (uint64_t)i, (uint64_t)i + 1);
        const int64_t moved = order[i];
        order[i] = order[other];
        order[other] = moved;
    }
}

/* Sets which samples of the batch at `position` are read. */
static tutti_status place_batch(const struct batches *batches, int64_t position, int64_t number, struct buffer *buffer)
{
    const int64_t left = batches->options.end - position;
    buffer->global_samples = left < batches->options.batch ? left : batches->options.batch;
    buffer->global_offset = 0;
    buffer->samples = buffer->global_samples;
    if (!batches->options.ranks) return TUTTI_OK;
    return ranks_own_samples(batches->options.ranks, batches->options.step + number, buffer->global_samples,
        &buffer->global_offset, &buffer->samples);
}

static void place_feeds(const struct batches *batches, struct buffer *buffer, int64_t length)
{
    const struct feed_list *feeds = batches->options.feeds;
    buffer->feeds = arrays_at(&feeds->arrays, buffer->memory, (struct bound_sizes) { batches->options.batch, length });
    for (int f = 0; f < feeds->arrays.count; f++)
        if (!feeds->feeds[f].trains) buffer->feeds.at[f] = NULL;
}

/* Gives the buffer the length of the global batch at `position`. */
static tutti_status set_length(const struct batches *batches, int64_t position, struct buffer *buffer)
{
    int64_t length;
    if (!batches->source->batch_length) return TUTTI_OK;
    const tutti_status status = buckets_batch_length(
        batches->source, batches->longest, batches->order + position, buffer->global_samples, &length);
    if (status == TUTTI_OK) place_feeds(batches, buffer, buckets_round(&batches->buckets, length));
    return status;
}

/* Reads samples from the position `first` of the epoch on. */
static tutti_status read_samples(
    const struct batches *batches, int64_t first, int64_t count, const tutti_buffer *buffers, int buffer_count)
{
    const tutti_source *source = batches->source;
    status_set(TUTTI_OK, "");
    const int result = source->read(source->user, batches->order + first, count, buffers, buffer_count);
    if (result != 0 && *status_message()) /* a source that uses this library has told why */
        return status_context(TUTTI_FILE, "the data cannot be read");
    if (result != 0)
        return fail(TUTTI_FILE, "the data source returned error %d for samples %lld to %lld of the epoch", result,
            (long long)first, (long long)(first + count - 1));
    return TUTTI_OK;
}

static void advance(tutti_buffer *buffers, int buffer_count, int64_t samples)
{
    for (int b = 0; b < buffer_count; b++)
        buffers[b].data = (unsigned char *)buffers[b].data + (size_t)samples * buffers[b].bytes;
}

/* Moves the samples that are not replaced to the beginning, and their indices to order[to]. Returns how many they
 * are. */
static int64_t keep_own(
    struct batches *batches, int64_t first, int64_t count, int64_t to, const tutti_buffer *buffers, int buffer_count)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < count; i++) {
        const int64_t index = batches->order[first + i];
        if (batches->source->is_replaced(batches->source->user, index)) continue;
        for (int b = 0; b < buffer_count && kept < i; b++) {
            unsigned char *data = buffers[b].data;
            const size_t bytes = buffers[b].bytes;
            memcpy(data + (size_t)kept * bytes, data + (size_t)i * bytes, bytes);
        }
        batches->order[to + kept++] = index;
    }
    return kept;
}

/* Reads on until the batch is full of samples that are not replaced, or the epoch ends. A batch with a length of its
 * own is not filled up, because the samples after it may be longer. */
static tutti_status read_own(struct batches *batches, int64_t position, struct buffer *buffer, int64_t *next,
    tutti_buffer *buffers, int buffer_count)
{
    int64_t kept = 0;
    *next = position;
    while (kept < buffer->samples && *next < batches->options.end) {
        const int64_t left = batches->options.end - *next;
        const int64_t count = buffer->samples - kept < left ? buffer->samples - kept : left;
        const tutti_status status = read_samples(batches, *next, count, buffers, buffer_count);
        if (status != TUTTI_OK) return status;
        const int64_t more = keep_own(batches, *next, count, position + kept, buffers, buffer_count);
        advance(buffers, buffer_count, more);
        kept += more;
        *next += count;
        if (batches->source->batch_length) break;
    }
    buffer->samples = buffer->global_samples = kept;
    return TUTTI_OK;
}

/* Reads the batch at `position`; *next is the position of the one after it. */
static tutti_status read_batch(
    struct batches *batches, int64_t position, int64_t number, struct buffer *buffer, int64_t *next)
{
    tutti_status status = place_batch(batches, position, number, buffer);
    *next = position + buffer->global_samples;
    if (status == TUTTI_OK) status = set_length(batches, position, buffer); /* also of a rank without samples */
    if (status != TUTTI_OK || buffer->samples == 0) return status;
    tutti_buffer buffers[PLAN_MAX_FEEDS];
    const int count = feeds_buffers(batches->options.feeds, &buffer->feeds, buffers);
    const int64_t first = position + buffer->global_offset;
    buffer->indices = batches->order + first;
    if (batches->options.leaves_out && batches->source->is_replaced)
        return read_own(batches, first, buffer, next, buffers, count);
    return read_samples(batches, first, buffer->samples, buffers, count);
}

/* Reads the first batch from *position on that has samples, and sets *position to the one after it. */
static tutti_status read_next(struct batches *batches, int64_t number, struct buffer *buffer, int64_t *position)
{
    tutti_status status;
    do status = read_batch(batches, *position, number, buffer, position);
    while (status == TUTTI_OK && buffer->global_samples == 0 && *position < batches->options.end);
    return status;
}

/* Fills the buffers in turn until the epoch ends, a read fails or the caller stops. */
static void *read_all(void *argument)
{
    struct batches *batches = argument;
    tutti_status status = TUTTI_OK;
    int64_t position = batches->options.position;
    pthread_mutex_lock(&batches->lock);
    for (int64_t number = 0; position < batches->options.end && !batches->stop; number++) {
        struct buffer *buffer = &batches->buffers[number % BUFFERS];
        while (buffer->full && !batches->stop) pthread_cond_wait(&batches->changed, &batches->lock);
        if (batches->stop) break;
        pthread_mutex_unlock(&batches->lock);
        status = read_next(batches, number, buffer, &position);
        pthread_mutex_lock(&batches->lock);
        if (status != TUTTI_OK || buffer->global_samples == 0) break;
        buffer->full = true;
        pthread_cond_broadcast(&batches->changed);
    }
    batches->status = status;
    if (status != TUTTI_OK) strncpy(batches->message, status_message(), sizeof(batches->message) - 1);
    batches->finished = true;
    pthread_cond_broadcast(&batches->changed);
    pthread_mutex_unlock(&batches->lock);
    return NULL;
}

/* Sets the order of the epoch. In an evaluation (leaves_out), samples before `position` and from `end` on are other
 * ranks' and stay in their places. */
static tutti_status set_order(struct batches *batches)
{
    tutti_status status = TUTTI_OK;
    const struct batches_options *options = &batches->options;
    const int64_t samples = batches->source->samples;
    batches->order = memory_new((size_t)samples, sizeof(*batches->order));
    if (!batches->order) return TUTTI_NO_MEMORY;
    TRY(buckets_open(&batches->buckets, batches->source, batches->longest));
    if (!options->shuffle) {
        const int64_t first = options->leaves_out ? options->position : 0;
        const int64_t end = options->leaves_out ? options->end : samples;
        for (int64_t i = 0; i < samples; i++) batches->order[i] = i;
        return buckets_sort(&batches->buckets, batches->order + first, end - first);
    }
    batches_shuffle(batches->order, samples, options->seed, options->epoch);
    if (batches->buckets.count == 0) return TUTTI_OK;
    TRY(buckets_sort(&batches->buckets, batches->order, samples));
    TRY(buckets_shuffle_batches(batches->order, samples, options->batch, options->seed, options->epoch));
done:
    return status;
}

static tutti_status allocate(struct batches *batches)
{
    tutti_status status = TUTTI_OK;
    const struct feed_list *feeds = batches->options.feeds;
    batches->longest = batches->source->length;
    TRY(feeds_length(feeds, &batches->longest));
    TRY(set_order(batches));
    for (int i = 0; i < BUFFERS; i++) {
        struct buffer *buffer = &batches->buffers[i];
        buffer->memory = memory_new(
            arrays_bytes(&feeds->arrays, (struct bound_sizes) { batches->options.batch, batches->longest }), 1);
        if (!buffer->memory) return TUTTI_NO_MEMORY;
        place_feeds(batches, buffer, batches->longest);
    }
done:
    return status;
}

tutti_status batches_open(struct batches **made, const tutti_source *source, const struct batches_options *options)
{
    tutti_status status = TUTTI_NO_MEMORY;
    struct batches *batches = memory_new(1, sizeof(*batches));
    if (!batches) return status;
    batches->source = source;
    batches->options = *options;
    if (batches->options.batch > source->samples) batches->options.batch = source->samples;
    batches->given = -1;
    pthread_mutex_init(&batches->lock, NULL);
    pthread_cond_init(&batches->changed, NULL);
    TRY(allocate(batches));
    const int error = pthread_create(&batches->reader, NULL, read_all, batches);
    if (error) FAIL(TUTTI_NO_MEMORY, "cannot start the thread that reads batches: %s", strerror(error));
    batches->running = true;
    *made = batches;
    return TUTTI_OK;
done:
    batches_close(batches);
    return status;
}

static struct batch batch_in(const struct buffer *buffer)
{
    return (struct batch) { .feeds = buffer->feeds,
        .indices = buffer->indices,
        .samples = buffer->samples,
        .global_offset = buffer->global_offset,
        .global_samples = buffer->global_samples };
}

tutti_status batches_next(struct batches *batches, struct batch *batch)
{
    tutti_status status = TUTTI_OK;
    memset(batch, 0, sizeof(*batch));
    pthread_mutex_lock(&batches->lock);
    if (batches->given >= 0) {
        batches->buffers[batches->given].full = false;
        batches->given = -1;
        pthread_cond_broadcast(&batches->changed);
    }
    struct buffer *buffer = &batches->buffers[batches->next];
    while (!buffer->full && !batches->finished) pthread_cond_wait(&batches->changed, &batches->lock);
    if (buffer->full) {
        *batch = batch_in(buffer);
        batches->given = batches->next;
        batches->next = (batches->next + 1) % BUFFERS;
    } else if (batches->status != TUTTI_OK) {
        status = batches->status;
        status_set(batches->status, batches->message);
    }
    pthread_mutex_unlock(&batches->lock);
    return status;
}

int64_t batches_order(const struct batches *batches)
{
    return buckets_hash(&batches->buckets, batches->options.batch);
}

bool batches_peek(struct batches *batches, struct batch *batch)
{
    pthread_mutex_lock(&batches->lock);
    const struct buffer *buffer = &batches->buffers[batches->next];
    const bool full = buffer->full;
    if (full) *batch = batch_in(buffer);
    pthread_mutex_unlock(&batches->lock);
    return full;
}

void batches_close(struct batches *batches)
{
    if (!batches) return;
    if (batches->running) {
        pthread_mutex_lock(&batches->lock);
        batches->stop = true;
        pthread_cond_broadcast(&batches->changed);
        pthread_mutex_unlock(&batches->lock);
        pthread_join(batches->reader, NULL);
    }
    for (int i = 0; i < BUFFERS; i++) free(batches->buffers[i].memory);
    free(batches->order);
    buckets_close(&batches->buckets);
    pthread_cond_destroy(&batches->changed);
    pthread_mutex_destroy(&batches->lock);
    free(batches);
}
