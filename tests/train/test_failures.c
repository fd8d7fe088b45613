/* Steps that fail: gradients that are not finite, and devices that are lost. */
#include "tests/feeds.h"
#include "tests/train/test_devices.h"
#include "tests/train/training.h"
#include "tutti_inspect.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Sums in another order differ in the last bits; a few steps make them a few more. */
#define ROUNDING 2e-5

START_TEST(not_a_number_updates_nothing)
{
    const char *const devices = _i % 2 ? "0,1" : "0";
    const int64_t micro_batch = _i / 2 ? 4 : 0;
    static float bad[STEP_SAMPLES * PIXELS];
    struct session a, b;
    const tutti_training training = { .momentum = 0.9f, .micro_batch = micro_batch };
    session_open(&a, devices, KIND_NORM, &training);
    session_open(&b, devices, KIND_NORM, &training);
    session_steps(&a, 3);
    session_steps(&b, 3);
    memcpy(bad, images, sizeof(bad));
    bad[PIXELS + 3] = NAN; /* in the first micro-batch, not in the last */
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(tutti_train_step(a.trainer, FEED_PAIR(bad, labels), STEP_SAMPLES, NULL), TUTTI_NOT_FINITE);
        ck_assert_msg(strstr(tutti_message(NULL), "NaN at step 4"), "%s", tutti_message(NULL));
    }
    same_bytes(&a, &b);
    session_steps(&a, 2); /* and goes on as if nothing had been */
    session_steps(&b, 2);
    same_bytes(&a, &b);
    session_close(&a);
    session_close(&b);
}
END_TEST

static tutti_status break_down(struct device *device, void *state, cl_event *event)
{
    (void)state;
    (void)event;
    return fail(TUTTI_DEVICE, "the test broke '%s'", device->can.name);
}

/* From its next training step on, the device fails in the middle of backward. */
static void break_device(struct session *session, int position)
{
    struct replica *replica = &session->trainer->replicas[position];
    for (int i = 0; i < PLAN_CACHE_PLANS; i++) {
        struct plan *plan = replica->plans.plans[i].plan;
        if (plan && plan->options.mode == PLAN_TRAIN)
            plan->launches.launches[plan->launches.count / 2].call = break_down;
    }
}

static int warnings;

static void count_warnings(void *user, tutti_log_level level, const char *line)
{
    (void)user;
    if (level == TUTTI_LOG_WARN && strstr(line, "is lost")) warnings++;
}

START_TEST(lost_device_is_made_up_for)
{
    struct session one, two;
    const tutti_runtime_options options = { .devices = "0,1", .log = count_warnings };
    warnings = 0;
    session_open(&one, "0", KIND_DROPOUT, NULL);
    session_try(&two, &options, KIND_DROPOUT, NULL);
    ck_assert_msg(two.trainer, "%s", tutti_message(NULL));
    session_steps(&one, 6);
    session_steps(&two, 2);
    break_device(&two, _i);
    for (int step = 2; step < 6; step++) {
        const int first = step * STEP_SAMPLES % (SAMPLES - STEP_SAMPLES);
        ASSERT_OK(
            tutti_train_step(two.trainer, FEED_PAIR(images + first * PIXELS, labels + first), STEP_SAMPLES, NULL));
    }
    ck_assert_int_eq(warnings, 1);
    close_to(&one, &two, ROUNDING);
    tutti_metrics left, right;
    ASSERT_OK(tutti_evaluate(one.trainer, FEED_PAIR(images, labels), SAMPLES, &left));
    ASSERT_OK(tutti_evaluate(two.trainer, FEED_PAIR(images, labels), SAMPLES, &right));
    ck_assert_double_eq_tol(left.loss, right.loss, 1e-4);
    tutti_device_report report;
    ASSERT_OK(tutti_report(two.trainer, _i, &report));
    ck_assert_int_eq(report.share, 0);
    session_close(&one);
    session_close(&two);
}
END_TEST

START_TEST(no_device_left)
{
    struct session session;
    session_try(&session, &(tutti_runtime_options) { .devices = "0,1", .log = count_warnings }, KIND_PLAIN, NULL);
    ck_assert_msg(session.trainer, "%s", tutti_message(NULL));
    session_steps(&session, 1);
    int64_t count;
    float *before = session_parameters(&session, &count);
    break_device(&session, 0);
    break_device(&session, 1);
    ck_assert_int_eq(tutti_train_step(session.trainer, FEED_PAIR(images, labels), STEP_SAMPLES, NULL), TUTTI_DEVICE);
    ck_assert_msg(strstr(tutti_message(NULL), "the test broke"), "%s", tutti_message(NULL));
    float *after = session_parameters(&session, &count); /* still there to be saved */
    ck_assert_int_eq(memcmp(before, after, (size_t)count * sizeof(float)), 0);
    free(before);
    free(after);
    session_close(&session);
}
END_TEST

void failures_together(TCase *cases)
{
    add_cases(cases, not_a_number_updates_nothing, 4);
    add_cases(cases, lost_device_is_made_up_for, 2);
    tcase_add_test(cases, no_device_left);
}
