/* Wrong arguments of calls are refused. */
#include "tests/feeds.h"
#include "tests/train/test_devices.h"
#include "tests/train/training.h"
#include "tutti_inspect.h"

#include <string.h>

START_TEST(bad_calls)
{
    struct session session;
    float values[4];
    session_open(&session, "0", KIND_PLAIN, NULL);
    tutti_trainer *t = session.trainer;
    ck_assert_int_eq(tutti_train_step(t, FEED_PAIR(images, labels), STEP_SAMPLES + 1, NULL), TUTTI_INVALID);
    ck_assert_int_eq(tutti_train_step(t, FEED_PAIR(images, labels), 0, NULL), TUTTI_INVALID);
    ck_assert_int_eq(tutti_train_step(t, FEED_PAIR(NULL, labels), 1, NULL), TUTTI_INVALID);
    ck_assert_int_eq(tutti_evaluate(t, FEED_PAIR(images, labels), -1, NULL), TUTTI_INVALID);
    ck_assert_int_eq(tutti_infer(t, FEED_ONE(images), 1, FETCH_FIRST(t, NULL)), TUTTI_INVALID);
    ck_assert_int_eq(tutti_get_parameter(t, "fc.bias", values, 4), TUTTI_INVALID);
    ck_assert_int_eq(tutti_report(t, 1, &(tutti_device_report) { 0 }), TUTTI_INVALID);
    ck_assert_ptr_null(tutti_explain(t, 1, false));
    ck_assert_ptr_null(tutti_tuner_new(NULL, (tutti_tensor) { 0 }, &(tutti_training) { 0 }, 0));
    ck_assert_ptr_null(tutti_tuner_new(session.network, (tutti_tensor) { 0 }, NULL, 0));
    session_close(&session);
    const double none[1] = { 0 };
    session_try(
        &session, &(tutti_runtime_options) { .devices = "0" }, KIND_PLAIN, &(tutti_training) { .shares = none });
    ck_assert_ptr_null(session.trainer);
    session_close(&session);
    session_try(&session, &(tutti_runtime_options) { .devices = "0" }, KIND_PLAIN, &(tutti_training) { .batch = -3 });
    ck_assert_ptr_null(session.trainer);
    session_close(&session);
}
END_TEST

START_TEST(bad_targets)
{
    struct session session;
    int32_t wrong[STEP_SAMPLES];
    memcpy(wrong, labels, sizeof(wrong));
    wrong[3] = CLASSES;
    session_open(&session, "0", KIND_PLAIN, NULL);
    ck_assert_int_eq(tutti_train_step(session.trainer, FEED_PAIR(images, wrong), STEP_SAMPLES, NULL), TUTTI_INVALID);
    ck_assert_msg(strstr(tutti_message(NULL), "sample 3"), "%s", tutti_message(NULL));
    ck_assert_int_eq(tutti_evaluate(session.trainer, FEED_PAIR(images, wrong), STEP_SAMPLES, NULL), TUTTI_INVALID);
    session_close(&session);
}
END_TEST

void calls_alone(TCase *cases)
{
    tcase_add_test(cases, bad_targets);
    tcase_add_test(cases, bad_calls);
}
