#include "train/buckets.h"

#include "base/memory.h"
#include "base/random.h"
#include "base/status.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

tutti_status buckets_check_source(const struct feed_list *feeds, const tutti_source *source, const char *what)
{
    int64_t length = source->length;
    if (!source->read) return fail(TUTTI_INVALID, "the %s data have no read function: set tutti_source.read", what);
    if (source->samples < 1) return fail(TUTTI_INVALID, "the %s data have no samples: they need at least one", what);
    if (source->buckets < 0 || source->buckets > BUCKETS_MAX)
        return fail(TUTTI_INVALID, "the %s data have %d buckets: from 0 to %d are possible", what, source->buckets,
            BUCKETS_MAX);
    if (source->buckets > 0 && !source->batch_length)
        return fail(TUTTI_INVALID, "the %s data have buckets, but no lengths: set tutti_source.batch_length", what);
    if (source->batch_length && feeds->longest == 0)
        return fail(TUTTI_INVALID,
            "tutti_source.batch_length of the %s data is set, but no input has TUTTI_SEQUENCE in its shape: leave out "
            "batch_length",
            what);
    return feeds_length(feeds, &length);
}

tutti_status buckets_batch_length(
    const tutti_source *source, int64_t longest, const int64_t *indices, int64_t count, int64_t *length)
{
    status_set(TUTTI_OK, "");
    *length = source->batch_length(source->user, indices, count);
    if (*length >= 1 && *length <= longest) return TUTTI_OK;
    if (*status_message()) /* the source has told why */
        return status_context(TUTTI_FILE, "the length of a batch cannot be read");
    return fail(TUTTI_FILE,
        "tutti_source.batch_length returned %" PRId64 " for sample %" PRId64 "%s: it must be from 1 to %" PRId64
        ", the largest length of the source",
        *length, indices[0], count > 1 ? " and those after it" : "", longest);
}

static int compare(const void *a, const void *b)
{
    const int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

/* Writes the bounds of ranges with equally many of the sorted lengths; equal bounds are one. */
static void find_bounds(struct buckets *buckets, int wanted, const int64_t *sorted, int64_t samples)
{
    for (int i = 1; i <= wanted; i++) {
        const int64_t last = samples / wanted * i + samples % wanted * i / wanted - 1;
        const int64_t bound = sorted[last < 0 ? 0 : last];
        if (buckets->count == 0 || buckets->bounds[buckets->count - 1] < bound)
            buckets->bounds[buckets->count++] = bound;
    }
}

static int bucket_of(const struct buckets *buckets, int64_t length)
{
    int bucket = 0;
    while (bucket < buckets->count - 1 && buckets->bounds[bucket] < length) bucket++;
    return bucket;
}

tutti_status buckets_open(struct buckets *buckets, const tutti_source *source, int64_t longest)
{
    tutti_status status = TUTTI_OK;
    int64_t *lengths = NULL, *sorted = NULL;
    const int64_t samples = source->samples;
    *buckets = (struct buckets) { .samples = samples };
    if (source->buckets == 0) return TUTTI_OK;
    lengths = memory_new((size_t)samples, sizeof(*lengths));
    sorted = memory_new((size_t)samples, sizeof(*sorted));
    buckets->of = memory_new((size_t)samples, 1);
    if (!lengths || !sorted || !buckets->of) {
        status = TUTTI_NO_MEMORY;
        goto done;
    }
    for (int64_t i = 0; i < samples; i++) TRY(buckets_batch_length(source, longest, &i, 1, &lengths[i]));
    memcpy(sorted, lengths, (size_t)samples * sizeof(*sorted));
    qsort(sorted, (size_t)samples, sizeof(*sorted), compare);
    find_bounds(buckets, source->buckets, sorted, samples);
    for (int64_t i = 0; i < samples; i++) buckets->of[i] = (unsigned char)bucket_of(buckets, lengths[i]);
done:
    free(lengths);
    free(sorted);
    if (status != TUTTI_OK) buckets_close(buckets);
    return status;
}

int64_t buckets_round(const struct buckets *buckets, int64_t length)
{
    if (buckets->count == 0) return length;
    const int64_t bound = buckets->bounds[bucket_of(buckets, length)];
    return bound > length ? bound : length;
}

tutti_status buckets_sort(const struct buckets *buckets, int64_t *order, int64_t count)
{
    int64_t begins[BUCKETS_MAX + 1] = { 0 };
    if (buckets->count == 0 || count == 0) return TUTTI_OK;
    int64_t *sorted = memory_new((size_t)count, sizeof(*sorted));
    if (!sorted) return TUTTI_NO_MEMORY;
    for (int64_t i = 0; i < count; i++) begins[buckets->of[order[i]] + 1]++;
    for (int i = 0; i < buckets->count; i++) begins[i + 1] += begins[i];
    for (int64_t i = 0; i < count; i++) sorted[begins[buckets->of[order[i]]]++] = order[i];
    memcpy(order, sorted, (size_t)count * sizeof(*sorted));
    free(sorted);
    return TUTTI_OK;
}

tutti_status buckets_shuffle_batches(int64_t *order, int64_t count, int64_t batch, uint64_t seed, uint64_t epoch)
{
    const uint32_t stream = RANDOM_BUCKETS + (uint32_t)epoch;
    const int64_t whole = count / batch, left = count % batch;
    /* The smaller batch begins at a random batch's beginning; those after it begin later. */
    const int64_t gap = (int64_t)random_below(seed, stream, 0, (uint64_t)whole + 1) * batch;
    if (whole == 0) return TUTTI_OK;
    int64_t *from = memory_new((size_t)count, sizeof(*from)), *begins = memory_new((size_t)whole, sizeof(*begins));
    if (from && begins) {
        memcpy(from, order, (size_t)count * sizeof(*from));
        for (int64_t i = 0; i < whole; i++) begins[i] = i * batch < gap ? i * batch : i * batch + left;
        for (int64_t i = whole - 1; i >= 0; i--) { /* as batches_shuffle() */
            const int64_t other = (int64_t)random_below(seed, stream, (uint64_t)i + 1, (uint64_t)i + 1);
            memcpy(order + i * batch, from + begins[other], (size_t)batch * sizeof(*from));
            begins[other] = begins[i];
        }
        memcpy(order + whole * batch, from + gap, (size_t)left * sizeof(*from));
    }
    const bool made = from && begins;
    free(from);
    free(begins);
    return made ? TUTTI_OK : TUTTI_NO_MEMORY;
}

int64_t buckets_hash(const struct buckets *buckets, int64_t batch)
{
    if (buckets->count == 0) return 0;
    uint64_t hash = XXH3_64bits(buckets->bounds, (size_t)buckets->count * sizeof(*buckets->bounds));
    hash = XXH3_64bits_withSeed(buckets->of, (size_t)buckets->samples, hash);
    return (int64_t)((hash ^ (uint64_t)batch * 0x9e3779b97f4a7c15u) >> 1 | 1);
}

void buckets_close(struct buckets *buckets)
{
    free(buckets->of);
    *buckets = (struct buckets) { 0 };
}
