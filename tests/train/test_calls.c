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

/* A NULL has the status of its message, whatever failed in between. */
START_TEST(constructors_tell_a_status)
{
    struct session session;
    ck_assert_ptr_null(tutti_open(&(tutti_runtime_options) { .devices = "no such device" }));
    ck_assert_int_eq(tutti_last_status(), TUTTI_NO_DEVICE);
    ck_assert_ptr_null(tutti_network_new(NULL));
    ck_assert_int_eq(tutti_last_status(), TUTTI_NO_DEVICE);
    session_open(&session, "0", KIND_PLAIN, NULL);
    const tutti_tensor output = { session.trainer->objective.outputs[0] };
    ck_assert_ptr_null(tutti_compile(session.network, output, &(tutti_training) { .batch = -3 }));
    ck_assert_int_eq(tutti_last_status(), TUTTI_INVALID);
    ck_assert_ptr_null(tutti_weights_metadata("/no/such/file", "key"));
    ck_assert_int_eq(tutti_last_status(), TUTTI_FILE);
    ck_assert_int_lt(tutti_relu(session.network, output).id, 0); /* a trainer uses the network */
    ck_assert_int_eq(tutti_last_status(), TUTTI_INVALID);
    session_close(&session);
}
END_TEST

/* A trainer has arrays as long as its network's: whatever would make the network larger is refused, and changes
 * nothing for the trainer. */
START_TEST(networks_do_not_grow)
{
    static const float values[CLASSES] = { 0 };
    struct session session, plain;
    session_open(&session, "0", KIND_PLAIN, NULL);
    session_open(&plain, "0", KIND_PLAIN, NULL);
    tutti_network *network = session.network;
    tutti_tensor added, output = { session.trainer->objective.outputs[0] };
    if (_i == 0) added = tutti_dense(network, output, 4096, NULL);
    if (_i == 1) added = tutti_parameter(network, "p", TUTTI_SHAPE(CLASSES), NULL);
    if (_i == 2) added = tutti_constant(network, "c", TUTTI_SHAPE(CLASSES), values);
    if (_i == 3) added = tutti_input(network, "y", TUTTI_SHAPE(3));
    if (_i == 4) added = tutti_relu(network, output);
    if (_i == 5) added = tutti_op(network, "exp", &output, 1, NULL);
    ck_assert_int_lt(added.id, 0);
    fails_with(tutti_network_status(network), TUTTI_INVALID, "before tutti_compile()");
    ck_assert_ptr_null(tutti_compile(network, output, NULL));
    session_steps(&session, 2);
    session_steps(&plain, 2);
    same_bytes(&session, &plain);
    session_close(&session);
    session_close(&plain);
}
END_TEST

/* Names that would give hidden files. */
START_TEST(names_of_files)
{
    struct session session;
    session_open(&session, "0", KIND_PLAIN, NULL);
    tutti_trainer *t = session.trainer;
    const char *const names[] = { "", "/tmp/" };
    for (int i = 0; i < 2; i++) {
        fails_with(tutti_save(t, names[i]), TUTTI_INVALID, "last part");
        fails_with(tutti_resume(t, names[i]), TUTTI_INVALID, "last part");
        fails_with(tutti_save_weights(t, names[i]), TUTTI_INVALID, "last part");
        fails_with(tutti_load_weights(t, names[i]), TUTTI_INVALID, "last part");
        const tutti_fitting fitting = { .save = names[i] };
        fails_with(tutti_fit(t, FEED_PAIR(images, labels), SAMPLES, &fitting), TUTTI_INVALID, "last part");
    }
    session_close(&session);
}
END_TEST

/* Nothing is as long as the largest batch. */
START_TEST(largest_batch)
{
    struct session session, plain;
    const tutti_training largest = { .momentum = 0.9f, .batch = INT32_MAX, .micro_batch = 1 << 16 };
    session_open(&session, "0", KIND_PLAIN, &largest);
    session_open(&plain, "0", KIND_PLAIN, NULL);
    ck_assert_int_le(replica_min_micro_batch(session.trainer->options.batch), 1 << 15);
    session_steps(&session, 2);
    session_steps(&plain, 2);
    same_bytes(&session, &plain);
    session_close(&session);
    session_close(&plain);
    session_try(&session, &(tutti_runtime_options) { .devices = "0" }, KIND_PLAIN,
        &(tutti_training) { .batch = INT32_MAX, .micro_batch = 1 });
    ck_assert_ptr_null(session.trainer);
    fails_with(TUTTI_INVALID, TUTTI_INVALID, "micro-batch");
    session_close(&session);
}
END_TEST

void calls_alone(TCase *cases)
{
    tcase_add_loop_test(cases, networks_do_not_grow, 0, 6);
    tcase_add_test(cases, names_of_files);
    tcase_add_test(cases, largest_batch);
    tcase_add_test(cases, bad_targets);
    tcase_add_test(cases, bad_calls);
    tcase_add_test(cases, constructors_tell_a_status);
}
