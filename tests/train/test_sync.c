/* Batch normalisation over the whole batch: two devices train as one does, whatever their shares. */
#include "tests/feeds.h"
#include "tests/train/test_devices.h"
#include "tests/train/training.h"
#include "tutti_inspect.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Relative to the largest parameter. Sums in another order differ in the last bits: 3e-7 after one step with any of
 * twelve seeds, of which a few more steps make up to 2e-5, as they do of the difference between one device with and
 * without Winograd. Statistics of parts of the batch make another training. */
#define ONE_STEP 2e-6
#define ROUNDING 5e-5
#define DIVISION 5e-3

static const enum kind kinds[] = { KIND_NORM, KIND_APART, KIND_RESIDUAL, KIND_SIAMESE };
static const double shares[][2] = { { 1, 1 }, { 11, 5 }, { 1, 15 }, { 0, 1 } };
enum { KINDS = 4, DIVISIONS = 4, STEPS = 4 };

/* The largest difference of any parameter, relative to the largest parameter. */
static double difference(struct session *a, struct session *b)
{
    int64_t count, other;
    float *left = session_parameters(a, &count), *right = session_parameters(b, &other);
    double largest = 0, most = 0;
    ck_assert_int_eq(count, other);
    for (int64_t i = 0; i < count; i++) {
        ck_assert(isfinite(right[i]));
        largest = fmax(largest, fabs(left[i]));
        most = fmax(most, fabs(left[i] - right[i]));
    }
    free(left);
    free(right);
    return most / largest;
}

/* Steps from `step` to `end`; the last of all has a batch that is smaller. */
static void train_steps(struct session *session, int step, int end, double *losses)
{
    tutti_metrics metrics;
    for (; step < end; step++) {
        const int first = step * STEP_SAMPLES, samples = step == STEPS - 1 ? STEP_SAMPLES - 3 : STEP_SAMPLES;
        ASSERT_OK(
            tutti_train_step(session->trainer, FEED_PAIR(images + first * PIXELS, labels + first), samples, &metrics));
        losses[step] = metrics.loss;
    }
}

static void train(struct session *session, double *losses)
{
    train_steps(session, 0, STEPS, losses);
}

START_TEST(any_division_equals_one_device)
{
    const enum kind kind = kinds[_i % KINDS];
    const double *given = shares[_i / KINDS];
    double alone[STEPS], together[STEPS];
    struct session one, two;
    session_open(&one, "0", kind, NULL);
    session_open(&two, "0,1", kind, &(tutti_training) { .momentum = 0.9f, .shares = given, .sync_batchnorm = true });
    train_steps(&one, 0, 1, alone);
    train_steps(&two, 0, 1, together);
    ck_assert_double_lt(difference(&one, &two), ONE_STEP);
    train_steps(&one, 1, STEPS, alone);
    train_steps(&two, 1, STEPS, together);
    ck_assert_double_lt(difference(&one, &two), ROUNDING);
    for (int step = 0; step < STEPS; step++) ck_assert_double_eq_tol(alone[step], together[step], ROUNDING);
    session_close(&one);
    session_close(&two);
}
END_TEST

/* Without the option it is another training: else the test above would show nothing. */
START_TEST(statistics_of_parts_differ)
{
    double alone[STEPS], together[STEPS];
    struct session one, two;
    session_open(&one, "0", kinds[_i], NULL);
    session_open(&two, "0,1", kinds[_i], NULL);
    train(&one, alone);
    train(&two, together);
    ck_assert_double_gt(difference(&one, &two), DIVISION);
    session_close(&one);
    session_close(&two);
}
END_TEST

START_TEST(one_device_is_not_changed)
{
    struct session without, with;
    session_open(&without, "0", KIND_RESIDUAL, NULL);
    session_open(&with, "0", KIND_RESIDUAL, &(tutti_training) { .momentum = 0.9f, .sync_batchnorm = true });
    session_steps(&without, 3);
    session_steps(&with, 3);
    same_bytes(&without, &with);
    session_close(&without);
    session_close(&with);
}
END_TEST

/* With memory of their own, gradients leave in buckets between the all-reduces; the bytes are the same, and so again.
 */
START_TEST(same_bytes_with_buckets)
{
    const double unequal[2] = { 3, 2 };
    const tutti_training training = { .momentum = 0.9f, .shares = unequal, .sync_batchnorm = true };
    struct session shared, apart;
    session_open(&shared, "0,1", KIND_RESIDUAL, &training);
    session_open_apart(&apart, "0,1", KIND_RESIDUAL, &training);
    session_steps(&shared, 3);
    session_steps(&apart, 3);
    same_bytes(&shared, &apart);
    session_close(&shared);
    session_close(&apart);
}
END_TEST

START_TEST(bfloat16_too)
{
    double alone[STEPS], together[STEPS];
    struct session one, two;
    session_open(&one, "0", KIND_APART, &(tutti_training) { .momentum = 0.9f, .precision = TUTTI_BF16 });
    session_open(&two, "0,1", KIND_APART,
        &(tutti_training) { .momentum = 0.9f, .precision = TUTTI_BF16, .sync_batchnorm = true });
    train(&one, alone);
    train(&two, together);
    for (int step = 0; step < STEPS; step++) /* a value in 256 that rounds the other way is another value */
        ck_assert_double_eq_tol(alone[step], together[step], 2e-2);
    session_close(&one);
    session_close(&two);
}
END_TEST

/* Statistics of a batch that is never in memory as a whole cannot be had. A network without them has no such bounds. */
START_TEST(micro_batches_are_refused)
{
    const char *const devices = _i ? "0,1" : "0";
    const tutti_training training = { .momentum = 0.9f, .micro_batch = 5, .sync_batchnorm = true };
    struct session session;
    session_try(&session, &(tutti_runtime_options) { .devices = devices }, KIND_NORM, &training);
    ck_assert_ptr_null(session.trainer);
    ck_assert_msg(strstr(tutti_message(NULL), "--sync-batchnorm"), "%s", tutti_message(NULL));
    session_close(&session);
    session_open(&session, devices, KIND_PLAIN, &training);
    session_steps(&session, 1);
    session_close(&session);
}
END_TEST

/* A device takes no more than it can at once; the others take the rest. */
START_TEST(limits_move_shares)
{
    const double unequal[2] = { 3, 1 };
    const tutti_training training = { .momentum = 0.9f, .shares = unequal, .micro_batch = 10, .sync_batchnorm = true };
    double alone[STEPS], together[STEPS];
    struct session one, two;
    session_open(&one, "0", KIND_NORM, NULL);
    session_open(&two, "0,1", KIND_NORM, &training);
    train(&one, alone);
    train(&two, together);
    ck_assert_double_lt(difference(&one, &two), ROUNDING);
    tutti_device_report report;
    ASSERT_OK(tutti_report(two.trainer, 0, &report));
    ck_assert_int_eq(report.share, 10);
    session_close(&one);
    session_close(&two);
}
END_TEST

/* -------------------------------------------------------------------------------------------------- faults ---- */

static tutti_status break_down(struct device *device, void *state, cl_event *event)
{
    (void)state;
    (void)event;
    return fail(TUTTI_DEVICE, "the test broke '%s'", device->can.name);
}

/* The other device waits for this one at an all-reduce: forward (0, 1), backward (2, 3). The step is done by it alone.
 */
START_TEST(others_do_not_wait_for_the_lost)
{
    struct session one, two;
    session_open(&one, "0", KIND_RESIDUAL, NULL);
    session_open(&two, "0,1", KIND_RESIDUAL, &(tutti_training) { .momentum = 0.9f, .sync_batchnorm = true });
    session_steps(&one, 3);
    session_steps(&two, 1);
    struct replica *replica = &two.trainer->replicas[_i % 2];
    struct plan *plan =
        plan_cache_find(&replica->plans, (struct plan_key) { PLAN_TRAIN, { STEP_SAMPLES / 2, 0 } })->plan;
    plan->launches.launches[plan->launches.count * (_i / 2 ? 3 : 1) / 4].call = break_down;
    for (int step = 1; step < 3; step++) {
        const int first = step * STEP_SAMPLES;
        ASSERT_OK(
            tutti_train_step(two.trainer, FEED_PAIR(images + first * PIXELS, labels + first), STEP_SAMPLES, NULL));
    }
    ck_assert(replica_is_lost(replica) && !replica_is_lost(&two.trainer->replicas[1 - _i % 2]));
    ck_assert_double_lt(difference(&one, &two), ROUNDING);
    session_close(&one);
    session_close(&two);
}
END_TEST

static tutti_status spoil(struct device *device, void *state, cl_event *event)
{
    (void)event;
    return buffer_fill(device, *(cl_mem *)state, 0, sizeof(float), 0x7fc00000u);
}

/* NaN reaches all devices at the first all-reduce after it; the one that made it is found. */
START_TEST(who_makes_nan_is_found)
{
    struct session one, two;
    session_open(&one, "0", KIND_RESIDUAL, NULL);
    session_open(&two, "0,1", KIND_RESIDUAL, &(tutti_training) { .momentum = 0.9f, .sync_batchnorm = true });
    session_steps(&one, 3);
    session_steps(&two, 1);
    struct replica *replica = &two.trainer->replicas[_i];
    struct plan *plan =
        plan_cache_find(&replica->plans, (struct plan_key) { PLAN_TRAIN, { STEP_SAMPLES / 2, 0 } })->plan;
    const struct sync_point *point = &plan->launches.sync_points[plan->launches.sync_point_count / 2];
    struct launch *before = &plan->launches.launches[point->before - 1]; /* makes what is handed in */
    cl_mem buffer = point->buffer;
    before->call = spoil;
    free(before->state);
    before->state = malloc(sizeof(cl_mem));
    ck_assert_ptr_nonnull(before->state);
    memcpy(before->state, &buffer, sizeof(buffer));
    for (int step = 1; step < 3; step++) {
        const int first = step * STEP_SAMPLES;
        ASSERT_OK(
            tutti_train_step(two.trainer, FEED_PAIR(images + first * PIXELS, labels + first), STEP_SAMPLES, NULL));
    }
    ck_assert(replica_is_lost(replica) && !replica_is_lost(&two.trainer->replicas[1 - _i]));
    ck_assert_double_lt(difference(&one, &two), ROUNDING);
    session_close(&one);
    session_close(&two);
}
END_TEST

/* A sample that is not a number: nobody is faulty, nothing is updated. */
START_TEST(bad_data_blame_nobody)
{
    static float bad[STEP_SAMPLES * PIXELS];
    struct session a, b;
    const tutti_training training = { .momentum = 0.9f, .sync_batchnorm = true };
    session_open(&a, "0,1", KIND_RESIDUAL, &training);
    session_open(&b, "0,1", KIND_RESIDUAL, &training);
    session_steps(&a, 2);
    session_steps(&b, 2);
    memcpy(bad, images, sizeof(bad));
    bad[PIXELS + 3] = NAN;
    ck_assert_int_eq(tutti_train_step(a.trainer, FEED_PAIR(bad, labels), STEP_SAMPLES, NULL), TUTTI_NOT_FINITE);
    for (int i = 0; i < 2; i++) ck_assert(!replica_is_lost(&a.trainer->replicas[i]));
    session_steps(&a, 1);
    session_steps(&b, 1);
    same_bytes(&a, &b);
    session_close(&a);
    session_close(&b);
}
END_TEST

/* One device left out by automatic shares, or both at work: the same training. */
START_TEST(automatic_shares)
{
    struct session one, two;
    double alone[STEPS], together[STEPS];
    session_open(&one, "0", KIND_RESIDUAL, NULL);
    session_open_automatic(&two, "0,1", KIND_RESIDUAL, &(tutti_training) { .momentum = 0.9f, .sync_batchnorm = true });
    for (int epoch = 0; epoch < 3; epoch++) {
        train(&one, alone);
        train(&two, together);
    }
    ck_assert_double_lt(difference(&one, &two), 10 * ROUNDING);
    session_close(&one);
    session_close(&two);
}
END_TEST

/* ------------------------------------------------------------------------------------------ single values ---- */

static atomic_int told;

static void count_single_values(void *user, tutti_log_level level, const char *line)
{
    (void)user;
    if (level == TUTTI_LOG_WARN && strstr(line, "'norm' has statistics of one value")) told++;
}

/* A device that computes one sample has one value for each feature: that is told once, unless the devices synchronise.
 */
/* The variance of values begin to end - 1 of every third number, divided by their count. */
static double variance_of(const float *values, int begin, int end)
{
    double mean = 0, variance = 0;
    for (int i = begin; i < end; i++) mean += (double)values[3 * i] / (end - begin);
    for (int i = begin; i < end; i++) variance += pow((double)values[3 * i] - mean, 2) / (end - begin);
    return variance;
}

/* Of two devices, the mean over their parts; a part of one sample has the variance 0. */
START_TEST(biased_running_variances)
{
    enum { MANY = 5 };
    static const double parts[][2] = { { 5, 0 }, { 3, 2 }, { 4, 1 } };
    float x[3 * MANY], targets[MANY] = { 0 }, found[3];
    const int first = (int)parts[_i][0];
    for (int i = 0; i < 3 * MANY; i++) x[i] = (float)(i * 7 % 11) / (float)(1 + i % 3);
    tutti_runtime *runtime = tutti_open(&(tutti_runtime_options) { .devices = "0,1" });
    tutti_network *network = tutti_network_new(runtime);
    const tutti_tensor input = tutti_input(network, "x", TUTTI_SHAPE(3));
    const tutti_tensor y = tutti_op(network, "batch_norm", &input, 1, "name=norm momentum=0.25 biased_variance=1");
    tutti_training training = { .loss = TUTTI_MSE, .batch = MANY, .shares = parts[_i], .sync_batchnorm = true };
    const tutti_tensor output = tutti_dense(network, y, 1, NULL);
    tutti_trainer *refused = tutti_compile(network, output, &training);
    ck_assert_msg(_i == 0 ? refused != NULL : !refused && strstr(tutti_message(NULL), "biased_variance"), "%s",
        tutti_message(NULL));
    tutti_trainer_free(refused);
    training.sync_batchnorm = false;
    tutti_trainer *trainer = tutti_compile(network, output, &training);
    ck_assert_msg(trainer, "%s", tutti_message(NULL));
    ASSERT_OK(tutti_train_step(trainer, FEED_PAIR(x, targets), MANY, NULL));
    ASSERT_OK(tutti_get_parameter(trainer, "norm.running_var", found, 3));
    for (int c = 0; c < 3; c++) {
        const double whole = first * variance_of(x + c, 0, first) +
            (first < MANY ? (MANY - first) * variance_of(x + c, first, MANY) : 0);
        ck_assert_double_eq_tol((double)found[c], 0.75 + 0.25 * whole / MANY, 1e-5);
    }
    tutti_trainer_free(trainer);
    tutti_network_free(network);
    tutti_close(runtime);
}
END_TEST

START_TEST(single_values_are_reported)
{
    static const struct {
        const char *devices;
        tutti_training training;
        int expected;
    } cases[] = {
        { "0", { .batch = 1 }, 1 },
        { "0", { .batch = 2 }, 0 },
        { "0", { .batch = 2, .micro_batch = 1 }, 1 },
        { "0,1", { .batch = 2 }, 1 },
        { "0,1", { .batch = 4 }, 0 },
        { "0,1", { .batch = 2, .sync_batchnorm = true }, 0 },
        { "0,1", { .batch = 1, .sync_batchnorm = true }, 1 },
    };
    struct session session = { .runtime = tutti_open(&(tutti_runtime_options) {
                                   .devices = cases[_i].devices, .log = count_single_values }) };
    ck_assert_msg(session.runtime != NULL, "%s", tutti_message(NULL));
    session.network = tutti_network_new(session.runtime);
    tutti_tensor x = tutti_input(session.network, "x", TUTTI_SHAPE(3));
    x = tutti_batch_norm(session.network, x, &(tutti_batch_norm_options) { .name = "norm" });
    tutti_training training = cases[_i].training;
    training.loss = TUTTI_MSE;
    training.sharing = TUTTI_SHARES_EQUAL;
    session.trainer = tutti_compile(session.network, x, &training);
    ck_assert_msg(session.trainer != NULL, "%s", tutti_message(NULL));
    static const float samples[12] = { 1, 2, 3, 5, 4, 0, 2, 2, 1, 7, 8, 8 }, targets[12] = { 0 };
    told = 0;
    for (int step = 0; step < 3; step++)
        ASSERT_OK(tutti_train_step(session.trainer, FEED_PAIR(samples, targets), training.batch, NULL));
    ck_assert_int_eq(told, cases[_i].expected);
    session_close(&session);
}
END_TEST

Suite *suite_sync(void)
{
    Suite *suite = suite_create("sync");
    TCase *cases = cases_new(suite, "sync", data_make, NULL);
    add_cases(cases, any_division_equals_one_device, KINDS * DIVISIONS);
    add_cases(cases, statistics_of_parts_differ, KINDS);
    tcase_add_test(cases, one_device_is_not_changed);
    tcase_add_test(cases, same_bytes_with_buckets);
    tcase_add_test(cases, bfloat16_too);
    add_cases(cases, micro_batches_are_refused, 2);
    tcase_add_test(cases, limits_move_shares);
    add_cases(cases, others_do_not_wait_for_the_lost, 4);
    add_cases(cases, who_makes_nan_is_found, 2);
    tcase_add_test(cases, bad_data_blame_nobody);
    tcase_add_test(cases, automatic_shares);
    tcase_add_loop_test(cases, biased_running_variances, 0, 3);
    tcase_add_loop_test(cases, single_values_are_reported, 0, 7);
    return suite;
}
