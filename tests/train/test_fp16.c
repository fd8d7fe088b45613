/* --precision fp16: gradients that half-precision numbers lose are found by a scale of the loss, and a scale that is
 * too large costs steps and nothing else. GPU-class devices round to half; others compute in floats, which overflow
 * too. */
#include "tests/feeds.h"
#include "tests/train/test_devices.h"
#include "tests/train/training.h"
#include "tutti_advanced.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { INPUTS = 8, OUTPUTS = 64 };

static float inputs[STEP_SAMPLES * INPUTS], targets[STEP_SAMPLES * OUTPUTS];

/* Targets are a linear function of inputs, of the sizes `x` and `t`. */
static void fill(float x, float t)
{
    for (int i = 0; i < STEP_SAMPLES; i++) {
        for (int j = 0; j < INPUTS; j++) inputs[i * INPUTS + j] = x * (0.92f + 0.08f * sinf((float)(i * INPUTS + j)));
        for (int k = 0; k < OUTPUTS; k++) {
            double sum = 0;
            for (int j = 0; j < INPUTS; j++)
                sum += (double)inputs[i * INPUTS + j] / (double)x * (1 + 0.05 * cos(k + j));
            targets[i * OUTPUTS + k] = (float)(sum / INPUTS * (double)t);
        }
    }
}

static int warnings;
static void count_warnings(void *user, tutti_log_level level, const char *line)
{
    (void)user;
    warnings += level == TUTTI_LOG_WARN && strstr(line, "gradients overflow") != NULL;
}

static bool rounds(const struct session *session)
{
    return session->runtime->devices[0].can.class == DEVICE_GPU;
}

static bool both_classes; /* of the first two devices */

/* One layer without bias, which begins with zeros. */
static void open_linear(struct session *session, const char *devices, bool apart, tutti_training training)
{
    static const float zeros[INPUTS * OUTPUTS];
    training.loss = TUTTI_MSE;
    training.batch = STEP_SAMPLES;
    training.sharing = TUTTI_SHARES_EQUAL;
    session->runtime = tutti_open(&(tutti_runtime_options) { .devices = devices, .log = count_warnings });
    ck_assert_msg(session->runtime, "%s", tutti_message(NULL));
    for (int i = 0; apart && i < session->runtime->count; i++)
        session->runtime->devices[i].can.unified = session->runtime->devices[i].host_cpu = false;
    for (int i = 0; both_classes && i < 2; i++) session->runtime->devices[i].can.class = i ? DEVICE_GPU : DEVICE_CPU;
    session->network = tutti_network_new(session->runtime);
    const tutti_tensor x = tutti_input(session->network, "x", TUTTI_SHAPE(INPUTS));
    const tutti_dense_options options = { .name = "fc", .no_bias = true };
    session->trainer = tutti_compile(session->network, tutti_dense(session->network, x, OUTPUTS, &options), &training);
    ck_assert_msg(session->trainer, "%s", tutti_message(NULL));
    ASSERT_OK(tutti_set_parameter(session->trainer, "fc.weight", zeros, INPUTS * OUTPUTS));
}

static void step(struct session *session, double *loss)
{
    tutti_metrics metrics;
    ASSERT_OK(tutti_train_step(session->trainer, FEED_PAIR(inputs, targets), STEP_SAMPLES, &metrics));
    if (loss) *loss = metrics.loss;
}

static bool is_zero(struct session *session)
{
    int64_t count;
    bool zero = true;
    float *values = session_parameters(session, &count);
    for (int64_t i = 0; i < count; i++) zero &= values[i] == 0;
    free(values);
    return zero;
}

/* The gradients of the outputs are at most 2^-25: less than half of the least number there is in half precision. */
START_TEST(small_gradients_are_not_lost)
{
    const tutti_training fp16 = { .learning_rate = 3, .precision = TUTTI_FP16 }, fp32 = { .learning_rate = 3 };
    struct session exact, scaled, plain;
    double first, wanted, found;
    fill(1, 0x1p-17f);
    open_linear(&exact, "0", false, fp32);
    open_linear(&scaled, "0", false, fp16);
    open_linear(&plain, "0", false, fp16);
    for (int i = 0; i < 12; i++) {
        step(&exact, i ? &wanted : &first);
        step(&scaled, &found);
        plain.trainer->state.loss_scale.scale = 1;
        step(&plain, NULL);
    }
    ck_assert_double_lt(wanted, 0.1 * first);
    ck_assert_double_eq_tol(found, wanted, 0.01 * first);
    ck_assert(is_zero(&plain) == rounds(&plain));
    if (!rounds(&scaled)) same_bytes(&exact, &scaled); /* a power of two */
    ck_assert_int_eq(warnings, 0);
    session_close(&exact);
    session_close(&scaled);
    session_close(&plain);
}
END_TEST

/* With the scale 2^5 times this, nothing overflows any more. Half precision: gradients of outputs are 20, of which 2^12
 * times are more than 65504. Floats: those of weights are 2^60.5, of which 2^68 times, over both devices, are too
 * large. */
enum { SKIPPED = 5 };
static double fill_overflowing(const struct session *session)
{
    if (rounds(session))
        fill(1, 1e4f);
    else
        fill(0x1.cp32f, 0x1.cp32f);
    return rounds(session) ? 0x1p11 : 0x1p67;
}

static const tutti_advanced_options bf16 = { .wire = TUTTI_BF16 };
static const struct {
    const char *devices;
    bool apart;
    tutti_training training;
} ways[] = {
    { "0", false, { .optimizer = TUTTI_ADAM } },
    { "0", false, { .optimizer = TUTTI_ADAMW, .micro_batch = 5 } },
    { "0,1", false, { .optimizer = TUTTI_SGD, .learning_rate = 0x1p-80f, .momentum = 0.9f } },
    { "0,1", true, { .optimizer = TUTTI_ADAM, .advanced = &bf16 } },
    { "0,1", true, { .optimizer = TUTTI_ADAM, .micro_batch = 5 } },
};

/* Steps whose gradients overflow change nothing but the scale: after them the training is one that began with it, to
 * the bit, with Adam's first updates. */
START_TEST(overflow_costs_a_step)
{
    struct session late, early;
    float gradients[2][INPUTS * OUTPUTS];
    tutti_training training = ways[_i].training;
    training.precision = TUTTI_FP16;
    if (training.learning_rate == 0) training.learning_rate = 0x1p-20f; /* outputs stay far below targets */
    open_linear(&late, ways[_i].devices, ways[_i].apart, training);
    open_linear(&early, ways[_i].devices, ways[_i].apart, training);
    const double scale = early.trainer->state.loss_scale.scale = fill_overflowing(&early);
    late.trainer->state.loss_scale.scale = scale * (1 << SKIPPED);
    for (int i = 0; i < SKIPPED; i++) step(&late, NULL);
    ck_assert_int_eq(warnings, SKIPPED);
    ck_assert(late.trainer->state.loss_scale.scale == scale && late.trainer->state.loss_scale.skipped == SKIPPED);
    ck_assert_int_eq(late.trainer->state.position.steps, SKIPPED);
    ck_assert(is_zero(&late));
    for (int i = 0; i < 3; i++) {
        step(&late, NULL);
        step(&early, NULL);
    }
    ck_assert_int_eq(warnings, SKIPPED);
    ck_assert_int_eq(late.trainer->state.loss_scale.good, 3);
    ck_assert(!is_zero(&late));
    same_bytes(&late, &early);
    ASSERT_OK(tutti_get_gradient(late.trainer, "fc.weight", gradients[0], INPUTS * OUTPUTS));
    ASSERT_OK(tutti_get_gradient(early.trainer, "fc.weight", gradients[1], INPUTS * OUTPUTS));
    ck_assert(!memcmp(gradients[0], gradients[1], sizeof(gradients[0])));
    const double wanted = -2.0 / OUTPUTS * (double)inputs[0] * (double)targets[0]; /* about; not times the scale */
    ck_assert_double_lt(fabs((double)gradients[0][0] - wanted), 0.3 * fabs(wanted));
    session_close(&late);
    session_close(&early);
}
END_TEST

/* A device that rounds to half has gradients that overflow where those of another one do not: it is not to blame. */
START_TEST(devices_of_both_classes)
{
    struct session session;
    both_classes = true;
    open_linear(&session, "0,1", false, (tutti_training) { .learning_rate = 1e-3f, .precision = TUTTI_FP16 });
    both_classes = false;
    fill(1, 1e4f);
    for (int i = 0; i < SKIPPED; i++) step(&session, NULL);
    ck_assert(is_zero(&session));
    step(&session, NULL);
    ck_assert(!is_zero(&session));
    ck_assert_int_eq(warnings, SKIPPED);
    ck_assert_int_eq(membership_left(&session.trainer->members), 2);
    session_close(&session);
}
END_TEST

/* Where no scale is left to be halved, the training ends, and nothing is updated. */
START_TEST(overflow_without_scale_ends)
{
    struct session session;
    open_linear(&session, _i ? "0,1" : "0", false, (tutti_training) { .precision = TUTTI_FP16 });
    if (rounds(&session))
        fill(1, 1e8f);
    else
        fill(0x1p77f, 0x1p58f);
    session.trainer->state.loss_scale.scale = 2;
    step(&session, NULL);
    ck_assert_int_eq(warnings, 1);
    ck_assert_int_eq(
        tutti_train_step(session.trainer, FEED_PAIR(inputs, targets), STEP_SAMPLES, NULL), TUTTI_NOT_FINITE);
    ck_assert_msg(strstr(tutti_message(NULL), "gradients are not finite at step 2"), "%s", tutti_message(NULL));
    ck_assert(is_zero(&session));
    ck_assert_int_eq(session.trainer->state.loss_scale.skipped, 1);
    ck_assert_int_eq(membership_left(&session.trainer->members), 1 + _i);
    fill(1, 1);
    step(&session, NULL);
    ck_assert(!is_zero(&session));
    session_close(&session);
}
END_TEST

/* Without a loss scale: a finite loss whose gradients overflow updates nothing on a device that trains alone. */
START_TEST(overflow_updates_nothing)
{
    static const tutti_training trainings[] = { { 0 }, { .momentum = 0.9f, .micro_batch = 5 },
        { .optimizer = TUTTI_ADAM } };
    struct session session;
    tutti_metrics metrics;
    open_linear(&session, "0", false, trainings[_i]);
    fill(0x1p77f, 0x1p58f);
    ck_assert_int_eq(
        tutti_train_step(session.trainer, FEED_PAIR(inputs, targets), STEP_SAMPLES, &metrics), TUTTI_NOT_FINITE);
    ck_assert_msg(strstr(tutti_message(NULL), "gradients are not finite at step 1"), "%s", tutti_message(NULL));
    ck_assert(is_zero(&session));
    fill(1, 1);
    step(&session, NULL);
    ck_assert(!is_zero(&session));
    int64_t count;
    float *values = session_parameters(&session, &count);
    for (int64_t i = 0; i < count; i++) ck_assert(isfinite(values[i]));
    free(values);
    session_close(&session);
}
END_TEST

static void setup(void)
{
    data_make();
    warnings = 0;
}

Suite *suite_fp16(void)
{
    Suite *suite = suite_create("fp16");
    TCase *cases = cases_new(suite, "fp16", setup, NULL);
    tcase_add_test(cases, small_gradients_are_not_lost);
    add_cases(cases, overflow_costs_a_step, (int)(sizeof(ways) / sizeof(*ways)));
    tcase_add_test(cases, devices_of_both_classes);
    add_cases(cases, overflow_without_scale_ends, 2);
    add_cases(cases, overflow_updates_nothing, 3);
    return suite;
}
