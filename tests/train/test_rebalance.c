/* Divisions that change while the training goes on: plans made in the background, a device alone and back. */
#include "parallel/background_all.h"
#include "parallel/faults.h"
#include "parallel/rebalance.h"
#include "replica/run.h"
#include "tests/feeds.h"
#include "tests/train/test_devices.h"
#include "tests/train/training.h"
#include "tutti_inspect.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Sums in another order differ in the last bits; some steps make them a few more. */
#define ROUNDING 1e-4

/* Two arrays in turns hold the batches, as those that a thread reads ahead of a training. */
static float ring_images[2][STEP_SAMPLES * PIXELS];
static int32_t ring_labels[2][STEP_SAMPLES];

static int slower = -1; /* the step from which on the learning rate is lower */

static void fill(int step)
{
    const int first = step * STEP_SAMPLES % (SAMPLES - STEP_SAMPLES);
    memcpy(ring_images[step % 2], images + first * PIXELS, sizeof(ring_images[0]));
    memcpy(ring_labels[step % 2], labels + first, sizeof(ring_labels[0]));
}

/* In turn, one step announces the next step's samples, one announces samples that are then not used, and one
 * announces nothing. */
static void next_step(struct session *session, int *step)
{
    const int now = *step % 2, other = 1 - now;
    if (*step == slower) ASSERT_OK(tutti_set_learning_rate(session->trainer, 0.02f));
    if (*step % 3 != 2) fill(*step + 1);
    fill(*step);
    if (*step % 3 != 2)
        ASSERT_OK(tutti_train_prefetch(
            session->trainer, FEED_PAIR(ring_images[other], ring_labels[other]), STEP_SAMPLES - (*step % 3 == 1)));
    ASSERT_OK(tutti_train_step(session->trainer, FEED_PAIR(ring_images[now], ring_labels[now]), STEP_SAMPLES, NULL));
    memset(ring_images[now], 0, sizeof(ring_images[now])); /* nobody may need them any more */
    memset(ring_labels[now], 0, sizeof(ring_labels[now]));
    ++*step;
}

/* Trains until the devices have this division; what the times ask for meanwhile is overruled. The trainer must go on
 * stepping while plans are made. */
static void divide(struct session *session, int64_t first, int *step)
{
    tutti_trainer *trainer = session->trainer;
    for (int tries = 0; trainer->balance.parts[0] != first; tries++) {
        ck_assert_int_lt(tries, 100);
        const int64_t wanted[2] = { first, STEP_SAMPLES - first };
        memcpy(trainer->balance.wanted, wanted, sizeof(wanted));
        rebalance_start(trainer);
        for (int i = 0; i < 2; i++)
            while (!background_is_done(&trainer->replicas[i]))
                nanosleep(&(struct timespec) { .tv_nsec = 1000000 }, NULL);
        next_step(session, step);
    }
    ck_assert_int_eq(trainer->works[first == 0 ? 1 : 0].update, first == 0 || first == STEP_SAMPLES);
}

/* Whatever the divisions, the parameters are those of one device; also when they are asked for in between. */
START_TEST(any_divisions_equal_one_device)
{
    static const int64_t divisions[] = { 5, 16, 11, 0, 16, 3, 0, 8 };
    struct session one, two;
    int step = 0;
    float left[CLASSES], right[CLASSES];
    session_open(&one, "0", KIND_DROPOUT, NULL);
    session_open_automatic(&two, "0,1", KIND_DROPOUT, NULL);
    for (size_t i = 0; i < sizeof(divisions) / sizeof(*divisions); i++) {
        divide(&two, divisions[i], &step);
        ASSERT_OK(tutti_get_gradient(two.trainer, "fc.bias", right, CLASSES));
        if (i % 3 == 1) ASSERT_OK(tutti_get_parameter(two.trainer, "fc.bias", left, CLASSES));
        if (i % 3 == 2)
            ASSERT_OK(
                tutti_infer(two.trainer, FEED_ONE(images), 3, FETCH_FIRST(two.trainer, (float[3 * CLASSES]) { 0 })));
        tutti_device_report report;
        ASSERT_OK(tutti_report(two.trainer, 0, &report));
    }
    for (int i = 0; i < step;) next_step(&one, &i);
    ASSERT_OK(tutti_get_gradient(one.trainer, "fc.bias", left, CLASSES));
    for (int i = 0; i < CLASSES; i++) ck_assert_float_eq_tol(left[i], right[i], 1e-3f);
    close_to(&one, &two, ROUNDING);
    session_close(&one);
    session_close(&two);
}
END_TEST

/* Nobody waits for a plan: the devices' threads go on, with samples that travel ahead, while it is made. For
 * ThreadSanitizer. */
START_TEST(plans_are_made_during_steps)
{
    static const int64_t divisions[] = { 5, 11, 3, 9, 6, 12, 4, 10 };
    struct session one, two;
    int step = 0;
    session_open(&one, "0", KIND_DROPOUT, NULL);
    session_open_automatic_apart(&two, "0,1", KIND_DROPOUT, NULL);
    for (size_t i = 0; i < sizeof(divisions) / sizeof(*divisions); i++) {
        const int64_t wanted[2] = { divisions[i], STEP_SAMPLES - divisions[i] };
        while (rebalance_is_changing(two.trainer)) {
            next_step(&two, &step); /* few: after hundreds rounding alone makes other parameters */
            nanosleep(&(struct timespec) { .tv_nsec = step < 40 ? 30000000 : 600000000 }, NULL);
        }
        memcpy(two.trainer->balance.wanted, wanted, sizeof(wanted));
        rebalance_start(two.trainer);
        next_step(&two, &step);
    }
    for (int i = 0; i < step;) next_step(&one, &i);
    close_to(&one, &two, ROUNDING);
    session_close(&one);
    session_close(&two);
}
END_TEST

/* The caller may change groups while a device's update is made in the background: their table is read after that. */
START_TEST(groups_change_in_the_background)
{
    struct session session;
    struct replica *failed;
    const int64_t parts[2] = { STEP_SAMPLES, 0 };
    session_open_automatic(&session, "0,1", KIND_GROUPS, NULL);
    session_steps(&session, 1);
    tutti_trainer *trainer = session.trainer;
    struct replica *replica = &trainer->replicas[0];
    struct optimizer_group *groups = trainer->optimizer.groups;
    const size_t bytes = trainer->optimizer.group_count * sizeof(*groups);
    background_start_all(trainer, parts, true);
    ASSERT_OK(background_wait(replica));
    groups[0].rate_factor *= 2;
    ASSERT_OK(background_adopt_all(trainer, parts, &failed));
    ck_assert(device_update_is_made(replica));
    struct optimizer_group *found = malloc(bytes);
    ck_assert_ptr_nonnull(found);
    ASSERT_OK(buffer_read(replica->device, replica->update.groups, 0, found, bytes));
    ck_assert(memcmp(found, groups, bytes) == 0);
    free(found);
    session_close(&session);
}
END_TEST

/* Kernels of a new plan run once as it is adopted: nothing that they write or read is mapped then. */
START_TEST(nothing_is_mapped_while_plans_are_adopted)
{
    struct session session, other;
    struct replica *failed;
    const int64_t parts[2] = { 3, 0 };
    session_open_automatic(&session, "0,1", KIND_PLAIN, NULL);
    session_open(&other, "0,1", KIND_PLAIN, NULL);
    session_steps(&session, 1);
    session_steps(&other, 1);
    struct replica *replica = &session.trainer->replicas[0];
    ck_assert_uint_gt(replica->gradients.mapped.count, 0);
    background_start_all(session.trainer, parts, false);
    ASSERT_OK(background_wait(replica));
    ASSERT_OK(background_adopt_all(session.trainer, parts, &failed));
    ck_assert_uint_eq(replica->gradients.mapped.count, 0);
    session_steps(&session, 1);
    session_steps(&other, 1);
    close_to(&session, &other, ROUNDING);
    session_close(&session);
    session_close(&other);
}
END_TEST

/* Left to itself: every sample once, the times of each device add up, and the result is that of one device. */
START_TEST(by_measured_times)
{
    enum { STEPS = 60 };
    struct session one, two;
    session_open(&one, "0", KIND_PLAIN, NULL);
    session_open_automatic(&two, "0,1", KIND_PLAIN, NULL);
    int64_t samples = 0;
    for (int i = 0; i < STEPS;) next_step(&two, &i);
    for (int i = 0; i < STEPS;) next_step(&one, &i);
    close_to(&one, &two, ROUNDING);
    for (int i = 0; i < 2; i++) {
        tutti_device_times times = { .size = sizeof(times) };
        tutti_device_report report;
        ASSERT_OK(tutti_report(two.trainer, i, &report));
        ASSERT_OK(tutti_report_times(two.trainer, i, &times));
        samples += report.samples;
        ck_assert_int_eq(times.steps, STEPS);
        ck_assert(times.automatic);
        ck_assert(times.compute_s > 0 && times.transfer_s >= 0 && times.idle_s >= 0);
        ck_assert_double_eq_tol(times.compute_s + times.transfer_s + times.idle_s, times.step_s, 1e-9);
    }
    ck_assert_int_eq(samples, STEPS * STEP_SAMPLES);
    tutti_report_reset(two.trainer);
    tutti_device_times times = { .size = sizeof(times) };
    ASSERT_OK(tutti_report_times(two.trainer, 1, &times));
    ck_assert(times.steps == 0 && times.step_s == 0 && times.compute_s == 0);
    ck_assert_int_eq(tutti_report_times(two.trainer, 2, &times), TUTTI_INVALID);
    session_close(&one);
    session_close(&two);
}
END_TEST

/* A smaller last batch moves nothing; another size that stays does. */
START_TEST(other_batches)
{
    struct session session;
    session_open_automatic(&session, "0,1", KIND_PLAIN, NULL);
    for (int i = 0; i < 6; i++) {
        ASSERT_OK(tutti_train_step(session.trainer, FEED_PAIR(images, labels), STEP_SAMPLES, NULL));
        ASSERT_OK(tutti_train_step(session.trainer, FEED_PAIR(images, labels), 5, NULL));
        ck_assert_int_eq(session.trainer->balance.batch, STEP_SAMPLES);
    }
    for (int i = 0; i < 6; i++) ASSERT_OK(tutti_train_step(session.trainer, FEED_PAIR(images, labels), 10, NULL));
    ck_assert_int_eq(session.trainer->balance.batch, 10);
    session_close(&session);
}
END_TEST

/* A step whose gradients overflow, where losses are scaled: it updates nothing. */
static void overflowing_step(struct session *session, int *step)
{
    struct loss_scale *scale = &session->trainer->state.loss_scale;
    const struct loss_scale before = *scale;
    scale->scale = 0x1p130;
    next_step(session, step);
    ck_assert_int_eq(scale->skipped, before.skipped + 1);
    scale->scale = before.scale;
}

/* A device is lost: while both train, while it is left out, or while it trains alone and has the newest parameters; the
 * same where one of the steps that others do again has updated nothing, or has another learning rate than the one
 * before it, with groups of parameters; and where gradients are clipped and parameters averaged. */
START_TEST(lost_devices)
{
    static const int64_t divisions[] = { 8, 0, STEP_SAMPLES, STEP_SAMPLES, STEP_SAMPLES, STEP_SAMPLES };
    const enum kind kind = _i == 4 ? KIND_GROUPS : KIND_DROPOUT;
    const tutti_training training = { .momentum = 0.9f,
        .precision = _i == 3 ? TUTTI_FP16 : TUTTI_FP32,
        .clip_norm = _i == 5 ? 0.5f : 0,
        .ema_decay = _i == 5 ? 0.9f : 0 };
    float averaged[2][STEP_SAMPLES * CLASSES];
    struct session one, two;
    int step = 0;
    session_open(&one, "0", kind, &training);
    session_open_automatic(&two, "0,1", kind, &training);
    divide(&two, divisions[_i], &step);
    if (_i == 4) slower = step + 5;
    for (int i = 0; i < 4; i++) next_step(&two, &step); /* the host's copy falls behind a device alone */
    const int overflow = _i == 3 ? step : -1;
    if (_i == 3) overflowing_step(&two, &step);
    for (int i = 0; i < 3; i++) next_step(&two, &step);
    tutti_trainer *trainer = two.trainer;
    trainer->balance.steps = 0; /* no other division meanwhile */
    ck_assert_int_eq(trainer_lose(trainer, &trainer->replicas[0], TUTTI_DEVICE), TUTTI_OK);
    for (int tries = 0; !trainer->works[1].update; tries++) {
        ck_assert_int_lt(tries, 10);
        next_step(&two, &step);
        while (!background_is_done(&trainer->replicas[1])) nanosleep(&(struct timespec) { .tv_nsec = 1000000 }, NULL);
    }
    next_step(&two, &step);
    ck_assert_int_eq(trainer->balance.parts[1], STEP_SAMPLES);
    for (int i = 0; i < step;) (i == overflow ? overflowing_step : next_step)(&one, &i);
    close_to(&one, &two, ROUNDING);
    ASSERT_OK(tutti_infer(one.trainer, FEED_ONE(images), STEP_SAMPLES, FETCH_FIRST(one.trainer, averaged[0])));
    ASSERT_OK(tutti_infer(two.trainer, FEED_ONE(images), STEP_SAMPLES, FETCH_FIRST(two.trainer, averaged[1])));
    for (int i = 0; i < STEP_SAMPLES * CLASSES; i++) ck_assert_float_eq_tol(averaged[0][i], averaged[1][i], 1e-4f);
    session_close(&one);
    slower = -1;
    session_close(&two);
}
END_TEST

Suite *suite_rebalance(void)
{
    Suite *suite = suite_create("rebalance");
    TCase *cases = cases_new(suite, "rebalance", data_make, NULL);
    tcase_add_test(cases, any_divisions_equal_one_device);
    tcase_add_test(cases, plans_are_made_during_steps);
    tcase_add_test(cases, groups_change_in_the_background);
    tcase_add_test(cases, nothing_is_mapped_while_plans_are_adopted);
    tcase_add_test(cases, by_measured_times);
    tcase_add_test(cases, other_batches);
    add_cases(cases_new(suite, "lost", data_make, NULL), lost_devices, 6);
    return suite;
}
