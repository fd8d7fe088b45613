#include "tests/train/test_train.h"

#include "parallel/ranks_division.h"
#include "train/batches.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 103, BATCH_SAMPLES = 10 };

/* A source whose sample i is the number i; fails at one sample if asked to. */
struct numbers {
    int64_t fail_at;
    const char *reason; /* told when it fails, or NULL */
    atomic_int reads;
};

static int read_numbers(
    void *user, const int64_t *indices, int64_t count, const tutti_buffer *buffers, int buffer_count)
{
    float *inputs = buffers[0].data;
    int32_t *targets = buffers[1].data;
    struct numbers *numbers = user;
    atomic_fetch_add(&numbers->reads, 1);
    if (buffer_count != 2 || buffers[1].bytes != sizeof(*targets)) return 6;
    for (int64_t i = 0; i < count; i++) {
        if (indices[i] == numbers->fail_at && numbers->reason) fail(TUTTI_FORMAT, "%s", numbers->reason);
        if (indices[i] == numbers->fail_at) return 5;
        inputs[i] = (float)indices[i];
        targets[i] = (int32_t)indices[i];
    }
    return 0;
}

/* The last input is not needed by training. */
static const struct feed_list list = { .feeds = { { .name = "x", .trains = true },
                                           { .name = "targets", .trains = true }, { .name = "other" } },
    .arrays = { .count = 3, .bytes = { sizeof(float), sizeof(int32_t), sizeof(float) } } };

static const float *inputs_of(const struct batch *batch)
{
    return batch->feeds.at[0];
}

static struct batches_options options_of(uint64_t seed, uint64_t epoch, int64_t position)
{
    return (struct batches_options) { .batch = BATCH_SAMPLES,
        .feeds = &list,
        .shuffle = true,
        .seed = seed,
        .epoch = epoch,
        .position = position,
        .end = SAMPLES };
}

/* Reads a whole epoch into order[]; returns how many samples there were. */
static int64_t read_epoch(uint64_t seed, uint64_t epoch, int64_t position, int64_t *order)
{
    struct numbers numbers = { .fail_at = -1 };
    const tutti_source source = { .samples = SAMPLES, .read = read_numbers, .user = &numbers };
    const struct batches_options options = options_of(seed, epoch, position);
    struct batches *batches;
    struct batch batch;
    int64_t count = 0;
    ck_assert_int_eq(batches_open(&batches, &source, &options), TUTTI_OK);
    while (batches_next(batches, &batch) == TUTTI_OK && batch.samples > 0) {
        ck_assert(batch.samples == BATCH_SAMPLES || position + count + batch.samples == SAMPLES);
        ck_assert_ptr_null(batch.feeds.at[2]);
        for (int64_t i = 0; i < batch.samples; i++) {
            const float input = inputs_of(&batch)[i];
            ck_assert(input == (float)((const int32_t *)batch.feeds.at[1])[i]);
            order[count++] = (int64_t)input;
        }
    }
    batches_close(batches);
    return count;
}

/* A rank may have none of the test data, at the very beginning too. */
START_TEST(nothing_is_read_of_an_empty_part)
{
    struct numbers numbers = { .fail_at = -1 };
    const tutti_source source = { .samples = SAMPLES, .read = read_numbers, .user = &numbers };
    struct batches_options options = options_of(1, 0, 0);
    struct batches *batches = NULL;
    struct batch batch;
    options.end = 0;
    ck_assert_int_eq(batches_open(&batches, &source, &options), TUTTI_OK);
    ck_assert_int_eq(batches_next(batches, &batch), TUTTI_OK);
    ck_assert_int_eq(batch.samples, 0);
    batches_close(batches);
}
END_TEST

START_TEST(every_sample_once)
{
    int64_t order[SAMPLES];
    bool seen[SAMPLES] = { false };
    ck_assert_int_eq(read_epoch(1, 0, 0, order), SAMPLES);
    for (int i = 0; i < SAMPLES; i++) seen[order[i]] = true;
    for (int i = 0; i < SAMPLES; i++) ck_assert_msg(seen[i], "sample %d is missing", i);
}
END_TEST

START_TEST(order_of_seed_and_epoch)
{
    int64_t a[SAMPLES], b[SAMPLES];
    read_epoch(1, 3, 0, a);
    read_epoch(1, 3, 0, b);
    ck_assert(memcmp(a, b, sizeof(a)) == 0);
    read_epoch(1, 4, 0, b);
    ck_assert(memcmp(a, b, sizeof(a)) != 0);
    read_epoch(2, 3, 0, b);
    ck_assert(memcmp(a, b, sizeof(a)) != 0);
}
END_TEST

START_TEST(goes_on_within_an_epoch)
{
    int64_t whole[SAMPLES], rest[SAMPLES];
    read_epoch(1, 3, 0, whole);
    ck_assert_int_eq(read_epoch(1, 3, 40, rest), SAMPLES - 40);
    ck_assert(memcmp(whole + 40, rest, (SAMPLES - 40) * sizeof(*rest)) == 0);
    ck_assert_int_eq(read_epoch(1, 3, SAMPLES, rest), 0);
}
END_TEST

static bool is_no_third(void *user, int64_t index)
{
    (void)user;
    return index % 3 != 2;
}

/* Samples that the source has replaced are left out; those after them fill the batch. */
START_TEST(replaced_samples_are_left_out)
{
    struct numbers numbers = { .fail_at = -1 };
    const tutti_source source = {
        .samples = SAMPLES, .read = read_numbers, .user = &numbers, .is_replaced = is_no_third
    };
    struct batches_options options = options_of(1, 0, 10);
    struct batches *batches;
    struct batch batch;
    int64_t next = 11;
    options.shuffle = false;
    options.leaves_out = true;
    ck_assert_int_eq(batches_open(&batches, &source, &options), TUTTI_OK);
    while (batches_next(batches, &batch) == TUTTI_OK && batch.samples > 0) {
        ck_assert(batch.samples == BATCH_SAMPLES || next + 3 * batch.samples == SAMPLES + 1);
        for (int64_t i = 0; i < batch.samples; i++, next += 3) {
            ck_assert_int_eq(batch.indices[i], next);
            ck_assert_int_eq((int64_t)inputs_of(&batch)[i], next);
            ck_assert_int_eq(((const int32_t *)batch.feeds.at[1])[i], next);
        }
    }
    ck_assert_int_eq(next, SAMPLES + 1);
    batches_close(batches);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------- lengths ---- */

enum { LONGEST = 20, BUCKETS = 4 };
static const struct feed_list texts = { .feeds = { { .name = "x", .trains = true },
                                            { .name = "targets", .trains = true }, { .name = "other" } },
    .arrays = { .count = 3, .bytes = { sizeof(float), sizeof(int32_t), sizeof(float) }, .sequences = { 0, 0, 1 } },
    .longest = LONGEST };

static int64_t length_of(void *user, const int64_t *indices, int64_t count)
{
    int64_t longest = 0;
    (void)user;
    for (int64_t i = 0; i < count; i++)
        if (longest < 1 + indices[i] * 7 % LONGEST) longest = 1 + indices[i] * 7 % LONGEST;
    return longest;
}

/* What an epoch of batches with lengths has. */
struct epoch {
    int64_t order[SAMPLES], lengths[SAMPLES];
    int64_t count, padded; /* positions after the samples' own */
    int batches;
};

static void read_lengths(struct epoch *epoch, const struct batches_options *options, int buckets)
{
    struct numbers numbers = { .fail_at = -1 };
    const tutti_source source = {
        .samples = SAMPLES, .read = read_numbers, .user = &numbers, .batch_length = length_of, .buckets = buckets
    };
    struct batches *batches;
    struct batch batch;
    *epoch = (struct epoch) { 0 };
    ck_assert_int_eq(batches_open(&batches, &source, options), TUTTI_OK);
    while (batches_next(batches, &batch) == TUTTI_OK && batch.samples > 0) {
        ck_assert(batch.samples == BATCH_SAMPLES || options->position + epoch->count + batch.samples == SAMPLES);
        ck_assert_int_ge(batch.feeds.length, length_of(NULL, batch.indices, batch.samples));
        ck_assert(buckets > 0 || batch.feeds.length == length_of(NULL, batch.indices, batch.samples));
        epoch->lengths[epoch->batches++] = batch.feeds.length;
        for (int64_t i = 0; i < batch.samples; i++) {
            epoch->padded += batch.feeds.length - length_of(NULL, &batch.indices[i], 1);
            epoch->order[epoch->count++] = (int64_t)inputs_of(&batch)[i];
            ck_assert_int_eq(batch.indices[i], (int64_t)inputs_of(&batch)[i]);
        }
    }
    batches_close(batches);
}

static int distinct(const struct epoch *epoch)
{
    int count = 0;
    for (int i = 0; i < epoch->batches; i++) {
        bool seen = false;
        for (int j = 0; j < i; j++) seen |= epoch->lengths[j] == epoch->lengths[i];
        count += !seen;
    }
    return count;
}

START_TEST(batches_have_similar_lengths)
{
    static struct epoch mixed, sorted, other, rest;
    struct batches_options options = options_of(1, 3, 0);
    bool seen[SAMPLES] = { false };
    options.feeds = &texts;
    read_lengths(&mixed, &options, 0);
    read_lengths(&sorted, &options, BUCKETS);
    ck_assert_int_eq(sorted.count, SAMPLES);
    for (int i = 0; i < SAMPLES; i++) seen[sorted.order[i]] = true;
    for (int i = 0; i < SAMPLES; i++) ck_assert_msg(seen[i], "sample %d is missing", i);
    ck_assert_int_le(distinct(&sorted), BUCKETS);
    ck_assert_int_lt(sorted.padded * 2, mixed.padded);
    ck_assert(memcmp(sorted.lengths, sorted.lengths + 1, 4 * sizeof(int64_t)) != 0);
    options.position = 40;
    read_lengths(&rest, &options, BUCKETS);
    ck_assert_int_eq(rest.count, SAMPLES - 40);
    ck_assert(memcmp(sorted.order + 40, rest.order, (SAMPLES - 40) * sizeof(*rest.order)) == 0);
    ck_assert(memcmp(sorted.lengths + 4, rest.lengths, (size_t)rest.batches * sizeof(*rest.lengths)) == 0);
    options = options_of(1, 4, 0);
    options.feeds = &texts;
    read_lengths(&other, &options, BUCKETS);
    ck_assert(memcmp(sorted.order, other.order, sizeof(other.order)) != 0);
}
END_TEST

/* The smaller batch of an epoch has samples of any length, over the epochs. */
START_TEST(small_batch_has_any_length)
{
    static struct epoch epoch;
    bool seen[LONGEST + 1] = { false };
    int count = 0;
    for (uint64_t e = 0; e < 30; e++) {
        struct batches_options options = options_of(1, e, 100);
        options.feeds = &texts;
        read_lengths(&epoch, &options, BUCKETS);
        ck_assert_int_eq(epoch.count, 3);
        count += !seen[epoch.lengths[0]];
        seen[epoch.lengths[0]] = true;
    }
    ck_assert_int_eq(count, BUCKETS);
}
END_TEST

START_TEST(without_shuffling_the_shortest_are_first)
{
    static struct epoch epoch;
    struct batches_options options = options_of(1, 0, 0);
    options.feeds = &texts;
    options.shuffle = false;
    read_lengths(&epoch, &options, _i ? 64 : BUCKETS);
    for (int i = 1; i < epoch.batches; i++) ck_assert_int_ge(epoch.lengths[i], epoch.lengths[i - 1]);
    for (int i = 1; i < SAMPLES && _i; i++)
        ck_assert_int_ge(length_of(NULL, &epoch.order[i], 1), length_of(NULL, &epoch.order[i - 1], 1));
}
END_TEST

START_TEST(source_fails)
{
    struct numbers numbers = { .fail_at = 25, .reason = _i ? "photo.jpg is damaged" : NULL };
    const tutti_source source = { .samples = SAMPLES, .read = read_numbers, .user = &numbers };
    struct batches_options options = options_of(1, 0, 0);
    options.shuffle = false;
    struct batches *batches;
    struct batch batch;
    ck_assert_int_eq(batches_open(&batches, &source, &options), TUTTI_OK);
    ck_assert_int_eq(batches_next(batches, &batch), TUTTI_OK);
    ck_assert_int_eq(batches_next(batches, &batch), TUTTI_OK);
    ck_assert_int_eq(inputs_of(&batch)[0], 10);
    ck_assert_int_eq(batches_next(batches, &batch), TUTTI_FILE); /* after the batches before it */
    ck_assert_ptr_nonnull(strstr(status_message(), _i ? "photo.jpg is damaged" : "error 5"));
    ck_assert_int_eq(batch.samples, 0);
    batches_close(batches);
}
END_TEST

/* The next batch can be seen while the one before it is worked on, and is the same when it comes; after the last there
 * is none. */
START_TEST(next_batch_is_seen)
{
    struct numbers numbers = { .fail_at = -1 };
    const tutti_source source = { .samples = SAMPLES, .read = read_numbers, .user = &numbers };
    const struct batches_options options = options_of(1, 0, 0);
    struct batches *batches;
    struct batch batch, next = { 0 };
    ck_assert_int_eq(batches_open(&batches, &source, &options), TUTTI_OK);
    for (int64_t done = 0; done < SAMPLES; done += batch.samples) {
        ck_assert_int_eq(batches_next(batches, &batch), TUTTI_OK);
        if (done > 0) ck_assert(arrays_equal(&batch.feeds, &next.feeds));
        if (done > 0) ck_assert(batch.samples == next.samples && inputs_of(&batch)[0] == inputs_of(&next)[0]);
        const bool last = done + batch.samples == SAMPLES;
        while (!last && !batches_peek(batches, &next)) sched_yield();
        ck_assert(inputs_of(&next) != inputs_of(&batch) || last);
        ck_assert(!last || !batches_peek(batches, &next));
    }
    batches_close(batches);
}
END_TEST

/* The reader is never further ahead of the batch that is worked on, and stops at once. */
START_TEST(closed_early)
{
    struct numbers numbers = { .fail_at = -1 };
    const tutti_source source = { .samples = SAMPLES, .read = read_numbers, .user = &numbers };
    const struct batches_options options = options_of(1, 0, 0);
    struct batches *batches;
    struct batch batch;
    ck_assert_int_eq(batches_open(&batches, &source, &options), TUTTI_OK);
    ck_assert_int_eq(batches_next(batches, &batch), TUTTI_OK);
    batches_close(batches);
    ck_assert_int_le(atomic_load(&numbers.reads), 1 + BATCHES_AHEAD);
    batches_close(NULL);
}
END_TEST

/* All orders of 4 are about equally frequent: chi squared of 24 classes, 23 degrees of freedom. */
START_TEST(shuffle_is_fair)
{
    int counts[256] = { 0 };
    enum { ROUNDS = 24000 };
    for (uint64_t epoch = 0; epoch < ROUNDS; epoch++) {
        int64_t order[4];
        batches_shuffle(order, 4, 9, epoch);
        counts[order[0] | order[1] << 2 | order[2] << 4 | order[3] << 6]++;
    }
    double chi = 0;
    int classes = 0;
    for (int i = 0; i < 256; i++) {
        if (counts[i] == 0) continue;
        classes++;
        chi += (counts[i] - 1000.0) * (counts[i] - 1000.0) / 1000.0;
    }
    ck_assert_int_eq(classes, 24);
    ck_assert_msg(chi < 60, "chi squared is %g", chi); /* chance of more: 4e-5 */
}
END_TEST

Suite *suite_batches(void)
{
    Suite *suite = suite_create("batches");
    TCase *cases = tcase_create("batches");
    tcase_add_test(cases, every_sample_once);
    tcase_add_test(cases, order_of_seed_and_epoch);
    tcase_add_test(cases, goes_on_within_an_epoch);
    tcase_add_test(cases, replaced_samples_are_left_out);
    tcase_add_test(cases, batches_have_similar_lengths);
    tcase_add_test(cases, small_batch_has_any_length);
    tcase_add_loop_test(cases, without_shuffling_the_shortest_are_first, 0, 2);
    tcase_add_loop_test(cases, source_fails, 0, 2);
    tcase_add_test(cases, next_batch_is_seen);
    tcase_add_test(cases, closed_early);
    tcase_add_test(cases, nothing_is_read_of_an_empty_part);
    tcase_add_test(cases, shuffle_is_fair);
    suite_add_tcase(suite, cases);
    return suite;
}
