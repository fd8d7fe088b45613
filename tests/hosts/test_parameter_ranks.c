/* Groups of parameters, constants, class weights, clipping, averages and sequences on two ranks, run by mpirun: rank 0
 * has two devices, rank 1 one.
 *
 *   test_parameter_ranks equal    like one device, both ranks with the same bytes; parts are applied by all or none
 *   test_parameter_ranks other    a rank whose network differs, in what no shape of a parameter tells, is refused
 *   test_parameter_ranks lengths  sequences of another length in each step; the ranks must have the same
 *   test_parameter_ranks silent   if a rank falls silent in the middle of an average, nothing is averaged
 *   test_parameter_ranks leaves   a rank whose commit fails leaves the others
 *   test_parameter_ranks scales   after an average, losses are scaled by the same number
 *   test_parameter_ranks alone    what fails on one rank alone changes nothing on any rank
 *   test_parameter_ranks again    ranks that failed after different numbers of steps train together again
 *   test_parameter_ranks unread   an average after failed steps is of what was trained, if anything was
 *   test_parameter_ranks none     a rank without samples takes part, and what one rank refuses all refuse */
#include "parallel/commit.h"
#include "parallel/ranks.h"
#include "parallel/ranks_notes.h"
#include "parallel/ranks_sum.h"
#include "parallel/step.h"
#include "tests/feeds.h"
#include "tests/hosts/ranks.h"
#include "tutti_finetune.h"
#include "tutti_steps.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROUNDING 2e-5
enum { STEPS = 3 };

/* What differs between two networks. */
struct variant {
    float rate_factor, constant;
    const char *function;
    float momentum, epsilon; /* of a batch normalisation; momentum 0: there is none */
};
static const struct variant usual = { .rate_factor = 0.5f, .constant = 1.5f, .function = "tanh" };

static tutti_tensor build(tutti_network *network, const struct variant *variant, tutti_tensor *loss)
{
    static const float class_weights[CLASSES] = { 0.25f, 2, 0, 1, 1.5f };
    const float scale[] = { variant->constant, 0.5f };
    tutti_tensor x = tutti_input(network, "images", TUTTI_SHAPE(2, 7, 7));
    x = tutti_mul(network, x, tutti_constant(network, "scale", TUTTI_SHAPE(2, 1, 1), scale));
    x = tutti_dense(network, tutti_flatten(network, x), 12, &(tutti_dense_options) { .name = "in" });
    if (variant->momentum > 0)
        x = tutti_batch_norm(
            network, x, &(tutti_batch_norm_options) { .momentum = variant->momentum, .epsilon = variant->epsilon });
    x = tutti_op(network, variant->function, &x, 1, NULL);
    x = tutti_dense(network, x, CLASSES, &(tutti_dense_options) { .name = "fc" });
    ASSERT_OK(tutti_group(network, "in.*", &(tutti_group_options) { .rate_factor = variant->rate_factor }));
    ASSERT_OK(tutti_group(network, "*.bias", &(tutti_group_options) { .has_weight_decay = true }));
    *loss = tutti_cross_entropy(network, x, tutti_input_typed(network, "labels", TUTTI_DTYPE_I32, NULL, 0),
        &(tutti_loss_options) { .class_weights = class_weights, .class_weight_count = CLASSES });
    return x;
}

static void open_one(struct session *session, const char *devices, const struct variant *variant, bool with_hosts)
{
    static const double shares[][2] = { { 3, 5 }, { 8, 0 } };
    *session = (struct session) { .runtime = session_runtime(devices, false) };
    session->network = tutti_network_new(session->runtime);
    tutti_tensor loss;
    const tutti_tensor output = build(session->network, variant, &loss);
    /* For inference: it does not make a network another one. */
    if (with_hosts && hosts->rank == 0) (void)tutti_softmax(session->network, output);
    const tutti_training training = { .optimizer = TUTTI_ADAMW,
        .learning_rate = 0.01f,
        .weight_decay = 0.1f,
        .epsilon = 1e-3f,
        .clip_norm = 0.05f,
        .ema_decay = 0.75f,
        .batch = STEP_SAMPLES,
        .seed = 7,
        .losses = &loss,
        .loss_count = 1,
        .shares = with_hosts ? shares[hosts->rank] : NULL,
        .hosts = with_hosts ? hosts : NULL };
    session->trainer = tutti_compile(session->network, output, &training);
}

static void step(struct session *session, int number, int first, int samples, tutti_metrics *metrics)
{
    first += number * STEP_SAMPLES;
    const tutti_feed feeds[] = { { "images", TUTTI_DTYPE_F32, images + first * PIXELS },
        { "labels", TUTTI_DTYPE_I32, labels + first } };
    if (number == 1) ASSERT_OK(tutti_set_learning_rate(session->trainer, 0.003f));
    if (number != 1 || samples == STEP_SAMPLES) {
        ASSERT_OK(tutti_train_step(session->trainer, feeds, 2, samples, metrics));
        return;
    }
    ASSERT_OK(tutti_backward(session->trainer, feeds, 2, samples, metrics));
    ASSERT_OK(tutti_apply(session->trainer));
}

/* What one rank cannot apply, no rank applies. */
static void refuse_to_apply(struct session *ranks)
{
    const int first = hosts->rank * STEP_SAMPLES / 2;
    const tutti_feed feeds[] = { { "images", TUTTI_DTYPE_F32, images + first * PIXELS },
        { "labels", TUTTI_DTYPE_I32, labels + first } };
    float gradient[CLASSES] = { 0 };
    tutti_position before = { .size = sizeof(before) }, after = before;
    ASSERT_OK(tutti_get_position(ranks->trainer, &before));
    ASSERT_OK(tutti_backward(ranks->trainer, feeds, 2, STEP_SAMPLES / 2, NULL));
    ASSERT_OK(tutti_get_gradient(ranks->trainer, "fc.bias", gradient, CLASSES));
    if (hosts->rank == 1) gradient[2] = NAN;
    ASSERT_OK(tutti_set_gradient(ranks->trainer, "fc.bias", gradient, CLASSES));
    fails_with(tutti_apply(ranks->trainer), TUTTI_NOT_FINITE, "rank 1: a gradient is not finite");
    ASSERT_OK(tutti_get_position(ranks->trainer, &after));
    ck_assert_int_eq(after.steps, before.steps);
}

static void equal(void)
{
    struct session one, ranks;
    open_one(&one, "0", &usual, false);
    open_one(&ranks, hosts->rank ? "0" : "0,1", &usual, true);
    ck_assert_msg(one.trainer && ranks.trainer, "%s", tutti_message(NULL));
    for (int number = 0; number < STEPS; number++) {
        tutti_metrics whole, both;
        step(&one, number, 0, STEP_SAMPLES, &whole);
        step(&ranks, number, hosts->rank * STEP_SAMPLES / 2, STEP_SAMPLES / 2, &both);
        ck_assert_double_eq_tol(whole.loss, both.loss, ROUNDING * whole.loss);
        ck_assert_double_eq(whole.accuracy, both.accuracy);
        const float norm = tutti_gradient_norm(one.trainer);
        ck_assert(norm > 0.05f);
        ck_assert_float_eq_tol(tutti_gradient_norm(ranks.trainer), norm, ROUNDING * norm);
    }
    refuse_to_apply(&ranks);
    close_to(&one, &ranks, ROUNDING);
    float a[STEP_SAMPLES * CLASSES], b[STEP_SAMPLES * CLASSES]; /* by the averages */
    ASSERT_OK(tutti_infer(one.trainer, FEED_ONE(images), STEP_SAMPLES, FETCH_FIRST(one.trainer, a)));
    ASSERT_OK(tutti_infer(ranks.trainer, FEED_ONE(images), STEP_SAMPLES, FETCH_FIRST(ranks.trainer, b)));
    for (int i = 0; i < STEP_SAMPLES * CLASSES; i++) ck_assert_float_eq_tol(a[i], b[i], 1e-4f);
    same_on_ranks(&ranks);
    session_close(&one);
    session_close(&ranks);
}

static void other(void)
{
    static const char *const what[] = { "parameters, or options of them", "parameters, or options of them", "networks",
        "parameters, or options of them", "networks" };
    static const struct variant pairs[][2] = {
        { { 0.5f, 1.5f, "tanh" }, { 0.25f, 1.5f, "tanh" } },
        { { 0.5f, 1.5f, "tanh" }, { 0.5f, 2, "tanh" } },
        { { 0.5f, 1.5f, "tanh" }, { 0.5f, 1.5f, "sigmoid" } },
        { { 0.5f, 1.5f, "tanh", 0.1f, 1e-5f }, { 0.5f, 1.5f, "tanh", 0.2f, 1e-5f } },
        { { 0.5f, 1.5f, "tanh", 0.1f, 1e-5f }, { 0.5f, 1.5f, "tanh", 0.1f, 1e-3f } },
    };
    for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++) {
        struct session ranks;
        open_one(&ranks, "0", &pairs[i][hosts->rank], true);
        ck_assert_msg(!ranks.trainer, "pair %zu trains", i);
        char words[96];
        snprintf(words, sizeof words, "rank 1 and rank 0 have different %s: start", what[i]);
        ck_assert_msg(strstr(tutti_message(NULL), words) != NULL, "pair %zu: %s", i, tutti_message(NULL));
        session_close(&ranks);
    }
}

static void open_averaging(struct session *session, const tutti_advanced_options *advanced, tutti_precision precision)
{
    session_open(session, "0", KIND_PLAIN,
        &(tutti_training) { .optimizer = TUTTI_ADAM,
            .learning_rate = 0.01f,
            .precision = precision,
            .sharing = TUTTI_SHARES_EQUAL,
            .advanced = advanced,
            .hosts = advanced ? hosts : NULL });
}

static tutti_status half_step(struct session *session, int samples)
{
    return tutti_train_step(session->trainer, FEED_PAIR(images, labels), samples, NULL);
}

static void fall_silent(void)
{
    while (kill(getpid(), SIGSTOP) == 0) { } /* mpirun hands on a SIGCONT of its own */
}

/* Rank 1 takes part in the vote and the average of the parameters, and falls silent before that of the states. */
static void leave_in_the_middle(struct session *ranks)
{
    struct tutti_trainer *trainer = ranks->trainer;
    const struct vote vote = vote_of(TUTTI_OK);
    const int64_t floats = trainer->network->total_floats;
    float *sums = calloc((size_t)floats, sizeof(*sums));
    ck_assert_ptr_nonnull(sums);
    trainer->ranks->mine.samples = STEP_SAMPLES / 2;
    ASSERT_OK(ranks_exchange_notes(trainer, &vote)); /* on the batch */
    ASSERT_OK(ranks_exchange_notes(trainer, &vote));
    for (int64_t begin = 0; begin < floats; begin += SEGMENT_FLOATS)
        ASSERT_OK(comm_start_all_reduce(hosts, trainer->ranks->buffers.send + begin, sums + begin,
            floats - begin < SEGMENT_FLOATS ? floats - begin : SEGMENT_FLOATS));
    ASSERT_OK(comm_wait_all_reduces(hosts));
    free(sums);
    fall_silent();
}

static void silent(void)
{
    struct session one, ranks;
    open_averaging(&one, NULL, TUTTI_FP32);
    open_averaging(&ranks, &(tutti_advanced_options) { .average_every = 1 }, TUTTI_FP32);
    if (hosts->rank == 0) {
        ASSERT_OK(half_step(&one, STEP_SAMPLES / 2));
        fails_with(half_step(&ranks, STEP_SAMPLES / 2), TUTTI_HOST_LOST, "rank 1");
        same_bytes(&one, &ranks); /* what this rank has trained alone */
    } else {
        leave_in_the_middle(&ranks);
    }
    session_close(&one);
    session_close(&ranks);
}

/* After the vote, rank 1 finds no memory for the norm of the gradients: it leaves, and rank 0 does not go on alone. */
static void leaves(void)
{
    struct session ranks;
    const tutti_feed feeds[] = { { "images", TUTTI_DTYPE_F32, images }, { "labels", TUTTI_DTYPE_I32, labels } };
    open_one(&ranks, "0", &usual, true);
    ck_assert_msg(ranks.trainer, "%s", tutti_message(NULL));
    ASSERT_OK(tutti_train_step(ranks.trainer, feeds, 2, STEP_SAMPLES / 2, NULL));
    if (hosts->rank == 1) {
        struct step voted = { .input.constants.unscale = 1 };
        const int64_t floats = ranks.network->trained_floats;
        ranks.network->trained_floats = -((int64_t)1 << 40); /* no memory has room for their sums */
        ck_assert_int_eq(step_commit(ranks.trainer, &voted), TUTTI_NO_MEMORY);
        ranks.network->trained_floats = floats;
        fails_with(
            tutti_train_step(ranks.trainer, feeds, 2, STEP_SAMPLES / 2, NULL), TUTTI_HOST_LOST, "was lost before");
        fall_silent(); /* mpirun would end rank 0 */
    } else {
        fails_with(tutti_train_step(ranks.trainer, feeds, 2, STEP_SAMPLES / 2, NULL), TUTTI_HOST_LOST, "rank 1");
    }
    session_close(&ranks);
}

/* Returns the same sample times a number: the gradients of such large ones overflow where losses are scaled. */
static const float *scaled_images(float factor)
{
    static float scaled[SAMPLES * PIXELS];
    for (int i = 0; i < SAMPLES * PIXELS; i++) scaled[i] = factor * images[i];
    return scaled;
}

static void same_scales(const struct session *ranks)
{
    const struct loss_scale *scale = &ranks->trainer->state.loss_scale;
    const double mine[] = { scale->scale, (double)scale->good, (double)scale->skipped };
    double all[2][3];
    ASSERT_OK(comm_gather(hosts, mine, all, sizeof(mine)));
    for (int i = 0; i < 3; i++) ck_assert_double_eq(all[0][i], all[1][i]);
}

static void scales(void)
{
    struct session ranks;
    open_averaging(&ranks, &(tutti_advanced_options) { .average_every = 2 }, TUTTI_FP16);
    const struct loss_scale *scale = &ranks.trainer->state.loss_scale;
    const double before = scale->scale;
    for (int number = 0; number < 4; number++) /* a rank without samples, then both with some */
        ASSERT_OK(half_step(&ranks, hosts->rank == number ? 0 : STEP_SAMPLES / 2));
    same_scales(&ranks);
    ck_assert_double_eq(scale->scale, before);
    ck_assert_int_eq(scale->good, 4);
    for (int number = 0; number < 2; number++) /* only rank 1's gradients overflow */
        ASSERT_OK(tutti_train_step(ranks.trainer,
            FEED_PAIR(scaled_images(hosts->rank == 1 && number == 0 ? 1e36f : 1), labels), STEP_SAMPLES / 2, NULL));
    same_scales(&ranks);
    ck_assert_double_eq(scale->scale, before / 2);
    session_close(&ranks);
}

/* The ranks from which on the samples cannot be read. */
static int read_below(void *user, const int64_t *indices, int64_t count, const tutti_buffer *buffers, int buffer_count)
{
    const void *const arrays[] = { images, labels };
    if (hosts->rank >= *(const int *)user) return 1;
    for (int b = 0; b < buffer_count; b++)
        for (int64_t i = 0; i < count; i++)
            memcpy((char *)buffers[b].data + (size_t)i * buffers[b].bytes,
                (const char *)arrays[b] + (size_t)indices[i] * buffers[b].bytes, buffers[b].bytes);
    return 0;
}

/* Rank 0 reads its samples and does two steps, or neither rank reads any. */
static void unread(void)
{
    for (int readers = 0; readers < 2; readers++) {
        struct session one, ranks;
        const tutti_source source = { .samples = 2 * STEP_SAMPLES, .read = read_below, .user = &readers };
        open_averaging(&one, NULL, TUTTI_FP32);
        open_averaging(&ranks, &(tutti_advanced_options) { .average_every = 2 }, TUTTI_FP32);
        for (int number = 0; number < 2 * readers; number++) {
            const int first = number * STEP_SAMPLES;
            ASSERT_OK(tutti_train_step(
                one.trainer, FEED_PAIR(images + first * PIXELS, labels + first), STEP_SAMPLES / 2, NULL));
        }
        fails_with(tutti_fit_source(ranks.trainer, &source, &(tutti_fitting) { .no_shuffle = true }), TUTTI_FILE,
            readers ? "rank 1" : "rank 0");
        ASSERT_OK(tutti_evaluate(ranks.trainer, FEED_PAIR(images, labels), STEP_SAMPLES, NULL)); /* averages first */
        same_bytes(&one, &ranks);
        same_on_ranks(&ranks);
        session_close(&one);
        session_close(&ranks);
    }
}

/* Rank 0 has done two steps, rank 1 one, which failed. Afterwards they average after the same steps. */
static void again(void)
{
    struct session ranks;
    int readers = 1;
    const tutti_source source = { .samples = 2 * STEP_SAMPLES, .read = read_below, .user = &readers };
    const tutti_fitting fitting = { .epochs = 2, .no_shuffle = true };
    open_averaging(&ranks, &(tutti_advanced_options) { .average_every = 3 }, TUTTI_FP32);
    fails_with(tutti_fit_source(ranks.trainer, &source, &fitting), TUTTI_FILE, "rank 1");
    readers = 2;
    ASSERT_OK(tutti_fit_source(ranks.trainer, &source, &fitting));
    same_on_ranks(&ranks);
    session_close(&ranks);
}

enum { COLUMNS = 7, LONGEST = 9 };

static void open_sequences(struct session *session, const char *devices, bool with_hosts)
{
    *session = (struct session) { .runtime = session_runtime(devices, false) };
    tutti_network *network = session->network = tutti_network_new(session->runtime);
    tutti_tensor x = tutti_input(network, "x", TUTTI_SHAPE(TUTTI_SEQUENCE, COLUMNS));
    x = tutti_tanh(network, tutti_dense(network, x, 12, &(tutti_dense_options) { .name = "in" }));
    x = tutti_op(network, "reduce_mean", &x, 1, "axes=0 keepdims=0");
    x = tutti_dense(network, x, CLASSES, &(tutti_dense_options) { .name = "fc" });
    const tutti_training training = { .batch = STEP_SAMPLES,
        .learning_rate = 0.1f,
        .seed = 7,
        .sharing = TUTTI_SHARES_EQUAL,
        .sequence = LONGEST,
        .hosts = with_hosts ? hosts : NULL };
    session->trainer = tutti_compile(network, x, &training);
    ck_assert_msg(session->trainer, "%s", tutti_message(NULL));
}

static tutti_status step_of(struct session *session, int64_t length, int first, int samples, tutti_metrics *metrics)
{
    const tutti_feed feeds[] = { { "x", TUTTI_DTYPE_F32, images + first * length * COLUMNS, length },
        { "targets", TUTTI_DTYPE_I32, labels + first } };
    return tutti_train_step(session->trainer, feeds, 2, samples, metrics);
}

/* Epochs over all data, in batches of similar lengths: each rank reads its part of a batch with the whole one's length.
 * The lengths begin with that of sample `first`. */
static tutti_status fit_lengths(struct session *session, int first)
{
    int64_t of[SAMPLES];
    const tutti_feed feeds[] = { { "x", TUTTI_DTYPE_F32, images, LONGEST }, { "targets", TUTTI_DTYPE_I32, labels } };
    for (int i = 0; i < SAMPLES; i++) of[i] = 1 + (i + first) * 5 % LONGEST;
    return tutti_fit(
        session->trainer, feeds, 2, SAMPLES, &(tutti_fitting) { .epochs = 2, .lengths = of, .buckets = 3 });
}

static void lengths(void)
{
    const int half = STEP_SAMPLES / 2, mine = hosts->rank * half;
    struct session one, ranks;
    open_sequences(&one, "0", false);
    open_sequences(&ranks, hosts->rank ? "0" : "0,1", true);
    for (int64_t length = LONGEST; length > 0; length -= 4) {
        tutti_metrics whole, both;
        ASSERT_OK(step_of(&one, length, 0, STEP_SAMPLES, &whole));
        ASSERT_OK(step_of(&ranks, length, mine, half, &both));
        ck_assert_double_eq_tol(whole.loss, both.loss, ROUNDING * whole.loss);
    }
    ASSERT_OK(fit_lengths(&one, 0));
    ASSERT_OK(fit_lengths(&ranks, 0));
    fails_with(fit_lengths(&ranks, hosts->rank), TUTTI_MISMATCH, "different lengths of samples or buckets");
    fails_with(step_of(&ranks, 3 + hosts->rank, mine, half, NULL), TUTTI_MISMATCH, "different lengths of sequences");
    close_to(&one, &ranks, ROUNDING);
    same_on_ranks(&ranks);
    session_close(&one);
    session_close(&ranks);
}

static int read_zeros(void *user, const int64_t *indices, int64_t count, const tutti_buffer *buffers, int buffer_count)
{
    (void)user, (void)indices;
    for (int b = 0; b < buffer_count; b++) memset(buffers[b].data, 0, (size_t)count * buffers[b].bytes);
    return 0;
}

/* Makes all calls that ranks make together, on rank 1 with arguments that it must refuse. */
static void refused_together(struct session *session)
{
    const tutti_source source = { .samples = 1, .read = read_zeros };
    tutti_trainer *t = session->trainer;
    const bool bad = hosts->rank == 1;
    const tutti_feed feeds[] = { { "images", TUTTI_DTYPE_F32, images }, { "labels", TUTTI_DTYPE_I32, labels } };
    const int count = bad ? 1 : 2;
    const tutti_fitting fitting = { .epochs = bad ? -1 : 1 };
    fails_with(tutti_train_step(t, feeds, count, 4, NULL), TUTTI_INVALID, "rank 1");
    fails_with(tutti_train_step(t, feeds, 2, bad ? -1 : 4, NULL), TUTTI_INVALID, "rank 1");
    fails_with(tutti_train_step(t, feeds, 2, 0, NULL), TUTTI_INVALID, "no rank");
    fails_with(tutti_evaluate(t, feeds, count, 4, NULL), TUTTI_INVALID, "rank 1");
    fails_with(tutti_evaluate(t, feeds, 2, 0, NULL), TUTTI_INVALID, "no rank");
    fails_with(tutti_fit(t, feeds, count, SAMPLES, NULL), TUTTI_INVALID, "rank 1");
    fails_with(tutti_fit(t, feeds, 2, SAMPLES, &fitting), TUTTI_INVALID, "rank 1");
    const char *const name = bad ? "never" : ""; /* rank 0 has the files */
    fails_with(tutti_save(t, name), TUTTI_INVALID, "rank 0");
    fails_with(tutti_save_weights(t, name), TUTTI_INVALID, "rank 0");
    fails_with(tutti_resume(t, name), TUTTI_INVALID, "rank 0");
    fails_with(tutti_load_weights(t, name), TUTTI_INVALID, "rank 0");
    fails_with(tutti_load_matching(t, name, NULL, NULL), TUTTI_INVALID, "rank 0");
    fails_with(tutti_evaluate_source(t, bad ? NULL : &source, NULL), TUTTI_INVALID, "rank 1");
    tutti_snapshot *snapshot = tutti_snapshot_take(t);
    fails_with(tutti_snapshot_restore(t, bad ? NULL : snapshot), TUTTI_INVALID, "rank 1");
    tutti_snapshot_free(snapshot);
}

static void none(void)
{
    struct session one, ranks;
    open_one(&one, "0", &usual, false);
    open_one(&ranks, hosts->rank ? "0" : "0,1", &usual, true);
    ck_assert_msg(one.trainer && ranks.trainer, "%s", tutti_message(NULL));
    for (int number = 0; number < STEPS; number++) {
        tutti_metrics whole, both;
        const bool absent = hosts->rank == number % 2;
        step(&one, number, 0, STEP_SAMPLES / 2, &whole);
        if (absent && number == 0) ASSERT_OK(tutti_train_step(ranks.trainer, NULL, 0, 0, &both));
        if (absent && number > 0) step(&ranks, number, 0, 0, &both);
        if (!absent) step(&ranks, number, 0, STEP_SAMPLES / 2, &both);
        ck_assert_int_eq(both.samples, STEP_SAMPLES / 2);
        ck_assert_double_eq_tol(whole.loss, both.loss, ROUNDING * whole.loss);
        refused_together(&ranks);
    }
    tutti_metrics whole, both;
    const tutti_feed feeds[] = { { "images", TUTTI_DTYPE_F32, images }, { "labels", TUTTI_DTYPE_I32, labels } };
    ASSERT_OK(tutti_evaluate(one.trainer, feeds, 2, SAMPLES, &whole));
    ASSERT_OK(tutti_evaluate(ranks.trainer, hosts->rank ? feeds : NULL, 2, hosts->rank ? SAMPLES : 0, &both));
    ck_assert_double_eq_tol(whole.loss, both.loss, ROUNDING * whole.loss);
    close_to(&one, &ranks, ROUNDING);
    same_on_ranks(&ranks);
    session_close(&one);
    session_close(&ranks);
}

/* On rank 1: a view is open, or a device was lost while it updated the parameters. */
static void fail_alone(struct session *ranks, bool by_view, bool fails)
{
    static tutti_view view;
    tutti_trainer *t = ranks->trainer;
    if (hosts->rank == 0) return;
    if (by_view && fails) ASSERT_OK(tutti_view_parameter(t, "fc.bias", &view));
    if (by_view && !fails) ASSERT_OK(tutti_view_close(t, &view, false));
    if (by_view) return;
    versions_mark_partial(&t->replicas[0].versions, fails);
    t->store->newest = fails ? NEWEST_ON_DEVICE : NEWEST_ON_HOST;
    t->store->holder = fails ? &t->replicas[0] : NULL;
}

static void check_alone(struct session *ranks, bool by_view, const char *name, const tutti_snapshot *snapshot)
{
    const tutti_status wanted = by_view ? TUTTI_INVALID : TUTTI_DEVICE_LOST;
    const char *const message = by_view ? "rank 1: views of this trainer are open" : "rank 1: device 0";
    const tutti_feed feeds[] = { { "images", TUTTI_DTYPE_F32, images }, { "labels", TUTTI_DTYPE_I32, labels } };
    char weights[96];
    int64_t count;
    tutti_trainer *t = ranks->trainer;
    snprintf(weights, sizeof(weights), "%s.safetensors", name);
    ASSERT_OK(tutti_backward(t, feeds, 2, STEP_SAMPLES / 2, NULL));
    float *const before = session_parameters(ranks, &count);
    fail_alone(ranks, by_view, true);
    fails_with(tutti_load_weights(t, weights), wanted, message);
    fails_with(tutti_load_matching(t, weights, NULL, NULL), wanted, message);
    if (by_view) fails_with(tutti_resume(t, name), wanted, message);
    fails_with(tutti_snapshot_restore(t, snapshot), wanted, message);
    fails_with(tutti_apply(t), wanted, message);
    fail_alone(ranks, by_view, false);
    float *const after = session_parameters(ranks, &count);
    ck_assert(memcmp(before, after, (size_t)count * sizeof(*after)) == 0);
    free(before);
    free(after);
    ASSERT_OK(tutti_apply(t));
    fails_with(tutti_apply(t), TUTTI_INVALID, "no gradients to be applied");
    same_on_ranks(ranks);
}

static void alone(void)
{
    struct session ranks;
    char name[64], path[96];
    open_one(&ranks, hosts->rank ? "0" : "0,1", &usual, true);
    ck_assert_msg(ranks.trainer, "%s", tutti_message(NULL));
    snprintf(name, sizeof(name), "/tmp/tutti-alone-%d", (int)getpid());
    ASSERT_OK(tutti_save(ranks.trainer, name)); /* rank 0 has the files */
    tutti_snapshot *snapshot = tutti_snapshot_take(ranks.trainer);
    ck_assert_ptr_nonnull(snapshot);
    step(&ranks, 0, hosts->rank * STEP_SAMPLES / 2, STEP_SAMPLES / 2, NULL);
    check_alone(&ranks, true, name, snapshot);
    check_alone(&ranks, false, name, snapshot);
    fail_alone(&ranks, false, true); /* a checkpoint replaces what the device has */
    ASSERT_OK(tutti_resume(ranks.trainer, name));
    same_on_ranks(&ranks);
    for (int i = 0; i < 2 && hosts->rank == 0; i++) {
        snprintf(path, sizeof(path), i ? "%s.state.safetensors" : "%s.safetensors", name);
        ck_assert_int_eq(unlink(path), 0);
    }
    tutti_snapshot_free(snapshot);
    session_close(&ranks);
}

const struct mode modes[] = { { "alone", alone }, { "none", none }, { "equal", equal }, { "other", other },
    { "lengths", lengths }, { "silent", silent, 2 }, { "leaves", leaves, 2 }, { "scales", scales },
    { "unread", unread }, { "again", again }, { NULL } };
