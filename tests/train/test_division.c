/* One batch, however it is divided over devices and micro-batches, gives the same gradients and updates. */
#include "tests/feeds.h"
#include "tests/train/reference.h"
#include "tests/train/test_devices.h"
#include "tests/train/training.h"
#include "tutti_inspect.h"

#include <math.h>
#include <string.h>

/* Sums in another order differ in the last bits; a few steps make them a few more. */
#define ROUNDING 2e-5

static const double shares[][2] = { { 1, 1 }, { 3, 1 }, { 1, 5 }, { 1, 0 }, { 0, 1 } };

/* One device, which updates itself, against two, whose gradients meet on the host. */
START_TEST(two_devices_equal_one)
{
    const enum kind kind = _i % 2 ? KIND_DROPOUT : KIND_PLAIN;
    struct session one, two;
    session_open(&one, "0", kind, NULL);
    session_open(&two, "0,1", kind, &(tutti_training) { .momentum = 0.9f, .shares = shares[_i / 2] });
    session_steps(&one, 6);
    session_steps(&two, 6);
    close_to(&one, &two, ROUNDING);
    session_close(&one);
    session_close(&two);
}
END_TEST

/* The rules on the device against those on the host: with all samples on the first device, the gradients are equal. A
 * bias before a normalisation has gradients of rounding alone, by whose sign Lion would make whole steps. */
START_TEST(update_on_device_equals_host)
{
    const double all[2] = { 1, 0 };
    tutti_training training = reference_trainings[_i];
    const enum kind kind = training.optimizer == TUTTI_LION ? KIND_PLAIN : KIND_NORM;
    struct session one, two;
    session_open(&one, "0", kind, &training);
    training.shares = all;
    session_open(&two, "0,1", kind, &training);
    session_steps(&one, 4);
    session_steps(&two, 4);
    close_to(&one, &two, ROUNDING);
    session_close(&one);
    session_close(&two);
}
END_TEST

START_TEST(gradient_is_the_mean_over_the_batch)
{
    const double unequal[2] = { 1, 3 };
    struct session one, two;
    float left[CLASSES], right[CLASSES];
    session_open(&one, "0", KIND_DROPOUT, NULL);
    session_open(&two, "0,1", KIND_DROPOUT, &(tutti_training) { .momentum = 0.9f, .shares = unequal });
    ck_assert_int_eq(tutti_get_gradient(one.trainer, "fc.bias", left, CLASSES), TUTTI_INVALID);
    session_steps(&one, 1);
    session_steps(&two, 1);
    ASSERT_OK(tutti_get_gradient(one.trainer, "fc.bias", left, CLASSES));
    ASSERT_OK(tutti_get_gradient(two.trainer, "fc.bias", right, CLASSES));
    float sum = 0, size = 0;
    for (int i = 0; i < CLASSES; i++) {
        ck_assert_float_eq_tol(left[i], right[i], 1e-6f);
        sum += left[i];
        size += fabsf(left[i]);
    }
    ck_assert_float_eq_tol(sum, 0, 1e-6f); /* of softmax minus target */
    ck_assert_float_gt(size, 0.01f);
    ck_assert_int_eq(tutti_get_gradient(one.trainer, "fc.bias", left, CLASSES + 1), TUTTI_INVALID);
    ck_assert_int_eq(tutti_get_gradient(one.trainer, "nothing", left, 1), TUTTI_INVALID);
    session_close(&one);
    session_close(&two);
}
END_TEST

START_TEST(same_again_gives_same_bytes)
{
    const char *const devices = _i % 2 ? "0,1" : "0";
    const enum kind kind = _i / 2 ? KIND_NORM : KIND_DROPOUT;
    struct session a, b;
    session_open(&a, devices, kind, NULL);
    session_open(&b, devices, kind, NULL);
    session_steps(&a, 5);
    session_steps(&b, 5);
    same_bytes(&a, &b);
    session_close(&a);
    session_close(&b);
}
END_TEST

START_TEST(micro_batches_equal_the_whole)
{
    const char *const devices = _i % 2 ? "0,1" : "0";
    const int64_t sizes[] = { 5, 1, 8 };
    struct session whole, parts;
    session_open(&whole, "0", KIND_DROPOUT, NULL);
    session_open(&parts, devices, KIND_DROPOUT, &(tutti_training) { .momentum = 0.9f, .micro_batch = sizes[_i / 2] });
    session_steps(&whole, 5);
    session_steps(&parts, 5);
    close_to(&whole, &parts, ROUNDING);
    float left[CLASSES], right[CLASSES];
    ASSERT_OK(tutti_get_gradient(whole.trainer, "fc.bias", left, CLASSES));
    ASSERT_OK(tutti_get_gradient(parts.trainer, "fc.bias", right, CLASSES));
    for (int i = 0; i < CLASSES; i++) ck_assert_float_eq_tol(left[i], right[i], 1e-5f);
    session_close(&whole);
    session_close(&parts);
}
END_TEST

/* A device whose memory holds a few samples at once takes the batch in parts; one that holds none says so. */
START_TEST(memory_limit)
{
    struct session whole, limited;
    session_open(&whole, "0", KIND_DROPOUT, NULL);
    session_steps(&whole, 3);
    tutti_device_report report;
    ASSERT_OK(tutti_report(whole.trainer, 0, &report));
    const size_t needed = (size_t)report.memory_bytes;
    tutti_runtime_options options = { .devices = "0", .memory_limit = needed - needed / 8 };
    session_try(&limited, &options, KIND_DROPOUT, NULL);
    ck_assert_msg(limited.trainer, "%s", tutti_message(NULL));
    ck_assert_int_lt(limited.trainer->replicas[0].capacity, STEP_SAMPLES);
    session_steps(&limited, 3);
    close_to(&whole, &limited, ROUNDING);
    ASSERT_OK(tutti_report(limited.trainer, 0, &report));
    ck_assert_uint_le(report.memory_bytes, options.memory_limit);
    session_close(&limited);
    options.memory_limit = 4096;
    session_try(&limited, &options, KIND_DROPOUT, NULL);
    ck_assert_ptr_null(limited.trainer);
    ck_assert_int_eq(tutti_network_status(limited.network), TUTTI_OK);
    ck_assert_msg(strstr(tutti_message(NULL), "one sample"), "%s", tutti_message(NULL));
    session_close(&limited);
    session_close(&whole);
}
END_TEST

void division_together(TCase *cases)
{
    add_cases(cases, two_devices_equal_one, 2 * (int)(sizeof(shares) / sizeof(*shares)));
    tcase_add_test(cases, gradient_is_the_mean_over_the_batch);
    add_cases(cases, micro_batches_equal_the_whole, 6);
}

void division_alone(TCase *cases)
{
    add_cases(cases, update_on_device_equals_host, REFERENCE_TRAININGS);
    add_cases(cases, same_again_gives_same_bytes, 4);
    tcase_add_test(cases, memory_limit);
}
