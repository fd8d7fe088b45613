/* Sources whose batches have lengths of their own: a masked mean of words, which padding does not change. */
#include "tests/feeds.h"
#include "tests/train/folder.h"
#include "tests/train/test_devices.h"
#include "tests/train/training.h"

#include "base/random.h"
#include "tutti_sequences.h"

#include <stdlib.h>
#include <string.h>

enum { LONGEST = 12, WORDS = 11, WIDTH = 6, TOPICS = 3, TEXTS = 45, BATCH_TEXTS = 8, STEPS_MOST = 24 };
#define ROUNDING 2e-5

/* ---------------------------------------------------------------------------------------------------- texts ---- */

static struct texts {
    int32_t words[TEXTS * LONGEST], topics[TEXTS];
    float mask[TEXTS * LONGEST];
    int64_t lengths[TEXTS];
} texts;

static void setup(void)
{
    folder_new();
    for (int64_t i = 0; i < TEXTS; i++) {
        texts.lengths[i] = 1 + (int64_t)random_below(4, 1, (uint64_t)i, LONGEST);
        texts.topics[i] = (int32_t)random_below(4, 2, (uint64_t)i, TOPICS);
        for (int64_t t = 0; t < LONGEST; t++) {
            const bool inside = t < texts.lengths[i];
            texts.words[i * LONGEST + t] = (int32_t)random_below(4, 3, (uint64_t)(i * LONGEST + t), WORDS);
            texts.mask[i * LONGEST + t] = inside ? 1 : 0;
        }
    }
}

/* What a source has given: batches in their order, if one thread of one rank reads them. */
struct given {
    int64_t fixed; /* length of all batches; 0: that of the longest text */
    const char *reason;
    int batches;
    struct step {
        int64_t count, length, indices[BATCH_TEXTS];
    } steps[STEPS_MOST];
};

static int64_t length_of(void *user, const int64_t *indices, int64_t count)
{
    struct given *given = user;
    int64_t longest = 0;
    if (given->reason) return tutti_fail(TUTTI_FORMAT, given->reason) ? -1 : 0;
    for (int64_t i = 0; i < count; i++)
        if (texts.lengths[indices[i]] > longest) longest = texts.lengths[indices[i]];
    return given->fixed ? given->fixed : longest;
}

static int read_texts(void *user, const int64_t *indices, int64_t count, const tutti_buffer *buffers, int buffer_count)
{
    struct given *given = user;
    const int64_t length = buffers[0].length;
    if (buffer_count != 3 || buffers[0].bytes != (size_t)length * sizeof(int32_t) || buffers[2].length != length)
        return 7;
    for (int64_t i = 0; i < count; i++) {
        const int64_t from = indices[i] * LONGEST;
        memcpy((int32_t *)buffers[0].data + i * length, texts.words + from, (size_t)length * sizeof(int32_t));
        memcpy((float *)buffers[1].data + i * length, texts.mask + from, (size_t)length * sizeof(float));
        ((int32_t *)buffers[2].data)[i] = texts.topics[indices[i]];
    }
    if (given->batches < STEPS_MOST && count <= BATCH_TEXTS) {
        struct step *step = &given->steps[given->batches++];
        *step = (struct step) { .count = count, .length = length };
        memcpy(step->indices, indices, (size_t)count * sizeof(*indices));
    }
    return 0;
}

static tutti_source source_of(struct given *given, int buckets)
{
    return (tutti_source) {
        .samples = TEXTS, .read = read_texts, .user = given, .batch_length = length_of, .buckets = buckets
    };
}

/* The samples of a step, as feeds. */
static void feed_step(const struct step *step, struct texts *room, tutti_feed feeds[3])
{
    tutti_buffer buffers[3] = { { .data = room->words, .bytes = (size_t)step->length * sizeof(int32_t) },
        { .data = room->mask }, { .data = room->topics } };
    struct given unused = { .batches = STEPS_MOST };
    for (int b = 0; b < 3; b++) buffers[b].length = step->length;
    ck_assert_int_eq(read_texts(&unused, step->indices, step->count, buffers, 3), 0);
    feeds[0] = (tutti_feed) { "words", TUTTI_DTYPE_I32, room->words, step->length };
    feeds[1] = (tutti_feed) { "mask", TUTTI_DTYPE_F32, room->mask, step->length };
    feeds[2] = (tutti_feed) { "topics", TUTTI_DTYPE_I32, room->topics, 0 };
}

/* ----------------------------------------------------------------------------------------------- the network ---- */

static void compile(struct session *session, const struct way *way, float dropout)
{
    tutti_training training = way->training;
    tutti_network *network;
    session->runtime = session_runtime(way->devices, way->apart);
    network = session->network = tutti_network_new(session->runtime);
    const int64_t length = TUTTI_SEQUENCE;
    tutti_tensor words = tutti_input_typed(network, "words", TUTTI_DTYPE_I32, &length, 1),
                 mask = tutti_input_typed(network, "mask", TUTTI_DTYPE_F32, &length, 1),
                 topics = tutti_input_typed(network, "topics", TUTTI_DTYPE_I32, NULL, 0);
    tutti_tensor x = tutti_embedding(network, "words", words, WORDS, WIDTH);
    x = tutti_dropout(network, tutti_tanh(network, tutti_dense(network, x, WIDTH, NULL)), dropout);
    const tutti_tensor masked[] = { x, tutti_reshape(network, mask, TUTTI_SHAPE(TUTTI_SEQUENCE, 1)) };
    x = tutti_op(network, "mul", masked, 2, NULL);
    const tutti_tensor sums[] = { tutti_op(network, "reduce_sum", &x, 1, "axes=0 keepdims=0"),
        tutti_op(network, "reduce_sum", &mask, 1, "axes=0 keepdims=1") };
    x = tutti_dense(network, tutti_op(network, "div", sums, 2, NULL), TOPICS, NULL);
    const tutti_tensor loss = tutti_cross_entropy(network, x, topics, NULL);
    ck_assert_msg(tutti_network_status(network) == TUTTI_OK, "%s", tutti_message(NULL));
    training.batch = BATCH_TEXTS;
    training.learning_rate = 0.1f;
    training.momentum = 0.9f;
    training.seed = 3;
    training.losses = &loss;
    training.loss_count = 1;
    training.sequence = LONGEST;
    session->trainer = tutti_compile(network, x, &training);
    ck_assert_msg(session->trainer, "%s", tutti_message(NULL));
}

static tutti_status fit(struct session *session, const tutti_source *source, tutti_fitting fitting)
{
    return tutti_fit_source(session->trainer, source, &fitting);
}

/* ----------------------------------------------------------------------------------------------------- steps ---- */

/* The batches that a source gave, in a loop of one's own, learn the same: the same bytes on one device. */
START_TEST(fit_is_a_loop_of_steps)
{
    const struct way *way = &training_ways[_i];
    struct given given = { 0 };
    struct session fitted, loop;
    struct texts room;
    tutti_feed feeds[3];
    const tutti_source source = source_of(&given, 3);
    int64_t least = LONGEST;
    compile(&fitted, way, 0.2f);
    compile(&loop, &training_ways[0], 0.2f);
    ASSERT_OK(fit(&fitted, &source, (tutti_fitting) { .epochs = 3 }));
    ck_assert_int_eq(given.batches, 18);
    for (int i = 0; i < given.batches; i++) {
        if (given.steps[i].length < least) least = given.steps[i].length;
        feed_step(&given.steps[i], &room, feeds);
        ASSERT_OK(tutti_train_step(loop.trainer, feeds, 3, given.steps[i].count, NULL));
    }
    ck_assert_int_lt(least, LONGEST);
    if (_i == 0) same_bytes(&fitted, &loop);
    close_to(&fitted, &loop, ROUNDING);
    session_close(&loop);
    session_close(&fitted);
}
END_TEST

/* Padding does not change a masked mean: batches of the full length learn the same. */
START_TEST(lengths_do_not_change_a_masked_mean)
{
    struct given given = { 0 }, padded = { .fixed = LONGEST };
    struct session a, b;
    const tutti_source sources[] = { source_of(&given, 0), source_of(&padded, 0) };
    compile(&a, &training_ways[_i], 0);
    compile(&b, &training_ways[0], 0);
    ASSERT_OK(fit(&a, &sources[0], (tutti_fitting) { .epochs = 2 }));
    ASSERT_OK(fit(&b, &sources[1], (tutti_fitting) { .epochs = 2 }));
    close_to(&a, &b, ROUNDING);
    session_close(&a);
    session_close(&b);
}
END_TEST

/* The arrays of tutti_fit() are cut to each batch's length; it has the batches of a source. */
START_TEST(arrays_with_lengths)
{
    struct given given = { 0 };
    struct session a, b;
    const tutti_source source = source_of(&given, 2);
    const tutti_feed feeds[] = { { "words", TUTTI_DTYPE_I32, texts.words }, { "mask", TUTTI_DTYPE_F32, texts.mask },
        { "topics", TUTTI_DTYPE_I32, texts.topics } };
    compile(&a, &training_ways[0], 0.2f);
    compile(&b, &training_ways[0], 0.2f);
    ASSERT_OK(fit(&a, &source, (tutti_fitting) { .epochs = 2 }));
    tutti_fitting fitting = { .epochs = 2, .lengths = texts.lengths, .buckets = 2 };
    ASSERT_OK(tutti_fit(b.trainer, feeds, 3, TEXTS, &fitting));
    same_bytes(&a, &b);
    fitting.lengths = NULL;
    fails_with(tutti_fit(b.trainer, feeds, 3, TEXTS, &fitting), TUTTI_INVALID, "set tutti_fitting.lengths");
    fails_with(fit(&b, &source, fitting), TUTTI_INVALID, "set batch_length and buckets of tutti_source");
    texts.lengths[7] = LONGEST + 1;
    fitting.lengths = texts.lengths;
    fails_with(tutti_fit(b.trainer, feeds, 3, TEXTS, &fitting), TUTTI_INVALID,
        "sample 7 has the length 13: it must be from 1 to 12");
    session_close(&a);
    session_close(&b);
}
END_TEST

/* Swaps the lengths of a shortest text and of a longest one. */
static void swap_lengths(void)
{
    int least = 0, most = 0;
    for (int i = 1; i < TEXTS; i++) {
        if (texts.lengths[i] < texts.lengths[least]) least = i;
        if (texts.lengths[i] > texts.lengths[most]) most = i;
    }
    const int64_t length = texts.lengths[least];
    texts.lengths[least] = texts.lengths[most];
    texts.lengths[most] = length;
}

/* Stopped within the second epoch, and continued by another trainer. Other buckets or batches are refused there. */
START_TEST(resumed_equals_never_stopped)
{
    const struct way *way = &training_ways[_i];
    struct given given = { 0 };
    struct session whole, part;
    const tutti_source source = source_of(&given, 4), other = source_of(&given, 2);
    compile(&whole, way, 0.2f);
    ASSERT_OK(fit(&whole, &source, (tutti_fitting) { .epochs = 3 }));
    compile(&part, way, 0.2f);
    ASSERT_OK(fit(&part, &source, (tutti_fitting) { .epochs = 3, .steps = 8, .save = in_folder("part") }));
    session_close(&part);
    compile(&part, way, 0.2f);
    fails_with(fit(&part, &other, (tutti_fitting) { .epochs = 3, .resume = in_folder("part") }), TUTTI_MISMATCH,
        "resume with the same buckets, batch and data");
    fails_with(fit(&part, &source, (tutti_fitting) { .epochs = 3, .batch = 7, .resume = in_folder("part") }),
        TUTTI_MISMATCH, "resume with the same buckets, batch and data");
    swap_lengths(); /* which leaves the bounds of the buckets as they are */
    fails_with(fit(&part, &source, (tutti_fitting) { .epochs = 3, .resume = in_folder("part") }), TUTTI_MISMATCH,
        "resume with the same buckets, batch and data");
    swap_lengths();
    ASSERT_OK(fit(&part, &source, (tutti_fitting) { .epochs = 3, .resume = in_folder("part") }));
    if (way->training.sharing != TUTTI_SHARES_AUTO) same_bytes(&whole, &part);
    close_to(&whole, &part, ROUNDING);
    session_close(&whole);
    session_close(&part);
}
END_TEST

static bool every_third(void *user, int64_t index)
{
    (void)user;
    return index % 3 == 0;
}

/* The metrics of a source are those of the same samples in arrays, in the training too. */
START_TEST(tests_have_lengths)
{
    struct given given = { 0 };
    struct session session;
    tutti_metrics cut, whole;
    tutti_source source = source_of(&given, _i % 2 ? 3 : 0);
    const bool leaves_out = _i / 2 % 2;
    compile(&session, &training_ways[_i / 4 % WAYS], 0.2f);
    if (leaves_out) source.is_replaced = every_third;
    ASSERT_OK(fit(&session, &source, (tutti_fitting) { .test = &source }));
    ASSERT_OK(tutti_evaluate_source(session.trainer, &source, &cut));
    struct texts kept = { 0 };
    int64_t count = 0;
    for (int64_t i = 0; i < TEXTS; i++) {
        if (leaves_out && i % 3 == 0) continue;
        memcpy(kept.words + count * LONGEST, texts.words + i * LONGEST, LONGEST * sizeof(int32_t));
        memcpy(kept.mask + count * LONGEST, texts.mask + i * LONGEST, LONGEST * sizeof(float));
        kept.topics[count++] = texts.topics[i];
    }
    const tutti_feed feeds[] = { { "words", TUTTI_DTYPE_I32, kept.words }, { "mask", TUTTI_DTYPE_F32, kept.mask },
        { "topics", TUTTI_DTYPE_I32, kept.topics } };
    ASSERT_OK(tutti_evaluate(session.trainer, feeds, 3, count, &whole));
    ck_assert_int_eq(cut.samples, count);
    ck_assert_double_eq_tol(cut.loss, whole.loss, 1e-5);
    ck_assert_double_eq_tol(cut.accuracy, whole.accuracy, 1e-9);
    session_close(&session);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------- errors ---- */

static const struct wrong {
    tutti_status status;
    const char *message;
    int64_t fixed, length;
    int buckets;
    const char *reason;
    bool without;
} wrongs[] = {
    { TUTTI_FILE, "batch_length returned 13 for sample", LONGEST + 1, 0, 0, NULL, false },
    { TUTTI_FILE, "it must be from 1 to 12, the largest length of the source", -2, 0, 2, NULL, false },
    { TUTTI_FILE, "it must be from 1 to 5, the largest", 6, 5, 0, NULL, false },
    { TUTTI_FILE, "text 3 is cut off", 0, 0, 0, "text 3 is cut off", false },
    { TUTTI_INVALID, "is 13: it must be from 1 to tutti_training.sequence, 12", 0, LONGEST + 1, 0, NULL, false },
    { TUTTI_INVALID, "have 65 buckets: from 0 to 64 are possible", 0, 0, 65, NULL, false },
    { TUTTI_INVALID, "set tutti_source.batch_length", 0, 0, 2, NULL, true },
};

START_TEST(lengths_are_checked)
{
    const struct wrong *wrong = &wrongs[_i];
    struct given given = { .fixed = wrong->fixed, .reason = wrong->reason };
    struct session session;
    tutti_source source = source_of(&given, wrong->buckets);
    source.length = wrong->length;
    if (wrong->without) source.batch_length = NULL;
    compile(&session, &training_ways[0], 0);
    fails_with(fit(&session, &source, (tutti_fitting) { 0 }), wrong->status, wrong->message);
    ck_assert_ptr_null(strchr(tutti_message(NULL), '\n'));
    fails_with(tutti_evaluate_source(session.trainer, &source, NULL), wrong->status, wrong->message);
    session_close(&session);
}
END_TEST

START_TEST(networks_without_sequences_have_no_lengths)
{
    struct given given = { 0 };
    struct session session;
    const tutti_source source = source_of(&given, 0);
    session_open(&session, "0", KIND_PLAIN, NULL);
    fails_with(fit(&session, &source, (tutti_fitting) { 0 }), TUTTI_INVALID, "no input has TUTTI_SEQUENCE");
    const tutti_fitting fitting = { .lengths = texts.lengths };
    fails_with(tutti_fit(session.trainer, FEED_PAIR(images, labels), STEP_SAMPLES, &fitting), TUTTI_INVALID,
        "tutti_fitting.lengths is set, but no input has TUTTI_SEQUENCE");
    session_close(&session);
}
END_TEST

Suite *suite_lengths(void)
{
    Suite *suite = suite_create("lengths");
    TCase *cases = cases_new(suite, "lengths", setup, folder_remove);
    add_cases(cases, fit_is_a_loop_of_steps, WAYS);
    add_cases(cases, lengths_do_not_change_a_masked_mean, WAYS);
    tcase_add_test(cases, arrays_with_lengths);
    add_cases(cases, resumed_equals_never_stopped, WAYS);
    add_cases(cases, tests_have_lengths, 4 * WAYS);
    add_cases(cases, lengths_are_checked, (int)(sizeof(wrongs) / sizeof(*wrongs)));
    tcase_add_test(cases, networks_without_sequences_have_no_lengths);
    return suite;
}
