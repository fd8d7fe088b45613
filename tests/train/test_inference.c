/* Evaluation and inference. */
#include "tests/feeds.h"
#include "tests/train/test_devices.h"
#include "tests/train/training.h"
#include "tutti_inspect.h"
#include "tutti_steps.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

START_TEST(any_number_of_samples)
{
    struct session one, two;
    const double unequal[2] = { 2, 1 };
    session_open(&one, "0", KIND_NORM, NULL);
    session_open(&two, "0,1", KIND_NORM, &(tutti_training) { .momentum = 0.9f, .shares = unequal, .micro_batch = 3 });
    session_steps(&one, 3);
    for (int i = 0; i < 6; i++) { /* the same parameters */
        static const char *const names[] = { "conv.weight", "conv.bias", "bn.weight", "bn.running_var", "fc.weight",
            "fc.bias" };
        const struct parameter *parameter = network_find(one.network, names[i]);
        float values[1000];
        ASSERT_OK(tutti_get_parameter(one.trainer, names[i], values, parameter->elements));
        ASSERT_OK(tutti_set_parameter(two.trainer, names[i], values, parameter->elements));
    }
    float mean[6], shift[6];
    ASSERT_OK(tutti_get_parameter(one.trainer, "bn.running_mean", mean, 6));
    ASSERT_OK(tutti_set_parameter(two.trainer, "bn.running_mean", mean, 6));
    ASSERT_OK(tutti_get_parameter(one.trainer, "bn.bias", shift, 6));
    ASSERT_OK(tutti_set_parameter(two.trainer, "bn.bias", shift, 6));
    static float all[SAMPLES * CLASSES], some[SAMPLES * CLASSES];
    ASSERT_OK(tutti_infer(one.trainer, FEED_ONE(images), SAMPLES, FETCH_FIRST(one.trainer, all)));
    double loss = 0, correct = 0;
    for (int64_t samples = 1; samples <= SAMPLES; samples += samples < 20 ? 1 : 25) {
        tutti_metrics metrics;
        memset(some, 0xff, sizeof(some)); /* NaN */
        ASSERT_OK(tutti_infer(two.trainer, FEED_ONE(images), samples, FETCH_FIRST(two.trainer, some)));
        for (int64_t i = 0; i < samples * CLASSES; i++) ck_assert_float_eq_tol(some[i], all[i], 1e-4f);
        ck_assert(isnan(some[SAMPLES * CLASSES - 1]) || samples == SAMPLES);
        ASSERT_OK(tutti_evaluate(two.trainer, FEED_PAIR(images, labels), samples, &metrics));
        loss = correct = 0;
        for (int64_t i = 0; i < samples; i++) {
            const float *logits = all + i * CLASSES;
            double sum = 0;
            int best = 0;
            for (int c = 0; c < CLASSES; c++) {
                sum += exp(logits[c]);
                if (logits[c] > logits[best]) best = c;
            }
            loss += log(sum) - logits[labels[i]];
            correct += best == labels[i];
        }
        ck_assert_int_eq(metrics.samples, samples);
        ck_assert_double_eq_tol(metrics.loss, loss / (double)samples, 1e-4);
        ck_assert_double_eq_tol(metrics.accuracy, correct / (double)samples, 1e-9);
    }
    session_close(&one);
    session_close(&two);
}
END_TEST

/* Values that inference computes from the parameters are computed again after these change: by a step, or by the
 * caller. */
START_TEST(inference_follows_the_parameters)
{
    struct session session;
    float before[CLASSES], after[CLASSES], last[CLASSES];
    const float bias[CLASSES] = { 100, 100, 100, 100, 100 };
    session_open(&session, _i ? "0,1" : "0", KIND_NORM, NULL);
    ASSERT_OK(tutti_infer(session.trainer, FEED_ONE(images), 1, FETCH_FIRST(session.trainer, before)));
    session_steps(&session, 2);
    ASSERT_OK(tutti_infer(session.trainer, FEED_ONE(images), 1, FETCH_FIRST(session.trainer, after)));
    ck_assert(memcmp(before, after, sizeof(before)) != 0);
    ASSERT_OK(tutti_set_parameter(session.trainer, "fc.bias", bias, CLASSES));
    ASSERT_OK(tutti_infer(session.trainer, FEED_ONE(images), 1, FETCH_FIRST(session.trainer, last)));
    for (int i = 0; i < CLASSES; i++) ck_assert_float_gt(last[i], 50);
    ASSERT_OK(tutti_infer(session.trainer, FEED_ONE(images), 1, FETCH_FIRST(session.trainer, before)));
    ck_assert(memcmp(before, last, sizeof(before)) == 0);
    session_close(&session);
}
END_TEST

START_TEST(only_inference)
{
    struct session session;
    float output[CLASSES];
    session_open(&session, "0", KIND_NORM, &(tutti_training) { .loss = TUTTI_LOSS_NONE });
    ASSERT_OK(tutti_infer(session.trainer, FEED_ONE(images), 1, FETCH_FIRST(session.trainer, output)));
    ck_assert_int_eq(tutti_train_step(session.trainer, FEED_PAIR(images, labels), 1, NULL), TUTTI_INVALID);
    ck_assert_int_eq(tutti_evaluate(session.trainer, FEED_PAIR(images, labels), 1, NULL), TUTTI_INVALID);
    ck_assert_int_eq(tutti_fit(session.trainer, FEED_PAIR(images, labels), SAMPLES, NULL), TUTTI_INVALID);
    char *text = tutti_explain(session.trainer, 0, true);
    ck_assert_msg(text && strlen(text) > 0, "%s", tutti_message(NULL));
    free(text);
    session_close(&session);
}
END_TEST

/* Outputs that are images, of a network that copies its input: in the order of the header, whatever the kernels use. */
START_TEST(image_outputs)
{
    const double unequal[2] = { 2, 3 };
    struct session session;
    session.runtime = tutti_open(&(tutti_runtime_options) { .devices = "0,1" });
    session.network = tutti_network_new(session.runtime);
    tutti_tensor x = tutti_input(session.network, "x", TUTTI_SHAPE(2, 7, 7));
    x = tutti_conv2d(session.network, x, 2, 1, &(tutti_conv2d_options) { .name = "copy" });
    session.trainer = tutti_compile(session.network, x,
        &(tutti_training) { .loss = TUTTI_MSE, .learning_rate = 0.1f, .batch = 8, .shares = unequal });
    ck_assert_msg(session.trainer, "%s", tutti_message(NULL));
    const float identity[4] = { 1, 0, 0, 1 }, zero[2] = { 0 };
    ASSERT_OK(tutti_set_parameter(session.trainer, "copy.weight", identity, 4));
    ASSERT_OK(tutti_set_parameter(session.trainer, "copy.bias", zero, 2));
    static float outputs[SAMPLES * PIXELS];
    ASSERT_OK(tutti_infer(session.trainer, FEED_ONE(images), SAMPLES, FETCH_FIRST(session.trainer, outputs)));
    for (int i = 0; i < SAMPLES * PIXELS; i++) ck_assert_float_eq(outputs[i], images[i]);
    tutti_metrics metrics;
    ASSERT_OK(tutti_train_step(session.trainer, FEED_PAIR(images, images), 8, &metrics));
    ck_assert_double_eq(metrics.loss, 0);
    ck_assert(isnan(metrics.accuracy));
    session_close(&session);
}
END_TEST

/* The output is the second convolution, alone or with layers after it: a batch normalisation, which could be folded
 * into that convolution, directly (0) or after dropout (1), and the rest of a network. */
static void open_inner(struct session *session, const char *devices, bool after, int form)
{
    session->runtime = tutti_open(&(tutti_runtime_options) { .devices = devices });
    tutti_network *network = session->network = tutti_network_new(session->runtime);
    tutti_tensor x = tutti_input(network, "x", TUTTI_SHAPE(2, 7, 7));
    x = tutti_conv2d(network, x, 6, 3, &(tutti_conv2d_options) { .name = "first", .padding = 1 });
    x = tutti_relu(network, tutti_batch_norm(network, x, &(tutti_batch_norm_options) { .name = "norm" }));
    x = tutti_conv2d(network, x, 2, 3, &(tutti_conv2d_options) { .name = "output", .padding = 1 });
    if (form == 1) x = tutti_dropout(network, x, 0.5f);
    const tutti_tensor output = x;
    if (after) {
        x = tutti_batch_norm(network, x, &(tutti_batch_norm_options) { .name = "after" });
        x = tutti_flatten(network, tutti_relu(network, x));
        (void)tutti_dense(network, x, CLASSES, &(tutti_dense_options) { .name = "last" });
    }
    session->trainer = tutti_compile(network, output,
        &(tutti_training) { .loss = TUTTI_MSE,
            .learning_rate = 0.1f,
            .momentum = 0.9f,

            .batch = STEP_SAMPLES,
            .seed = 7 });
    ck_assert_msg(session->trainer, "%s", tutti_message(NULL));
}

static void run_inner(struct session *session, float *outputs, tutti_metrics *metrics)
{
    for (int step = 0; step < 3; step++)
        ASSERT_OK(tutti_train_step(session->trainer, FEED_PAIR(images, images), STEP_SAMPLES, NULL));
    ASSERT_OK(tutti_infer(session->trainer, FEED_ONE(images), STEP_SAMPLES, FETCH_FIRST(session->trainer, outputs)));
    ASSERT_OK(tutti_evaluate(session->trainer, FEED_PAIR(images, images), STEP_SAMPLES, metrics));
}

START_TEST(outputs_within_a_network)
{
    static const char *const names[] = { "after.running_var", "after.weight", "after.bias", "after.running_mean" };
    static const float initial[] = { 1, 1, 0, 0 };
    static float alone_outputs[STEP_SAMPLES * PIXELS], inner_outputs[STEP_SAMPLES * PIXELS];
    const char *devices = _i / 2 ? "0,1" : "0";
    struct session alone, inner;
    tutti_metrics alone_metrics, inner_metrics;
    open_inner(&alone, devices, false, _i % 2);
    open_inner(&inner, devices, true, _i % 2);
    run_inner(&alone, alone_outputs, &alone_metrics);
    run_inner(&inner, inner_outputs, &inner_metrics);
    ck_assert(memcmp(alone_outputs, inner_outputs, sizeof(alone_outputs)) == 0);
    ck_assert_double_eq(alone_metrics.loss, inner_metrics.loss);
    for (int i = 0; i < 4; i++) { /* nothing has trained them */
        float numbers[2];
        ASSERT_OK(tutti_get_parameter(inner.trainer, names[i], numbers, 2));
        ck_assert_msg(numbers[0] == initial[i] && numbers[1] == initial[i], "%s is %g", names[i], (double)numbers[0]);
    }
    session_close(&inner);
    session_close(&alone);
}
END_TEST

static void keep_and_compare(const struct session *session, int64_t samples)
{
    static float wanted[SAMPLES * CLASSES];
    const tutti_tensor output = { session->trainer->objective.outputs[0] };
    tutti_view view = { .size = sizeof(view) }, again = view;
    ASSERT_OK(tutti_infer(session->trainer, FEED_ONE(images), samples, FETCH_ONE(output, wanted)));
    fails_with(tutti_view_output(session->trainer, output, &view), TUTTI_INVALID, "not an output");
    ASSERT_OK(tutti_infer_keep(session->trainer, FEED_ONE(images), samples, &output, 1));
    ASSERT_OK(tutti_view_output(session->trainer, output, &view));
    ASSERT_OK(tutti_view_output(session->trainer, output, &again));
    ck_assert_int_eq(view.count, samples * CLASSES);
    ck_assert(view.shape.rank == 2 && view.shape.sizes[0] == samples && view.shape.sizes[1] == CLASSES);
    ck_assert_ptr_null(view.name);
    ck_assert_mem_eq(view.values, wanted, (size_t)view.count * sizeof(float));
    ASSERT_OK(tutti_view_close(session->trainer, &view, false));
    fails_with(
        tutti_infer(session->trainer, FEED_ONE(images), samples, FETCH_ONE(output, wanted)), TUTTI_INVALID, "open (1)");
    ck_assert_ptr_null(tutti_profile(session->trainer, 0, NULL));
    ck_assert_mem_eq(again.values, wanted, (size_t)again.count * sizeof(float));
    ASSERT_OK(tutti_view_close(session->trainer, &again, false));
}

/* Outputs that are kept: of one device, in place and as micro-batches, of one with a thread, and of two; more samples
 * than a batch. */
START_TEST(outputs_are_kept)
{
    const tutti_training trainings[] = { { 0 }, { .micro_batch = 3 }, { .step_limit_s = 60 }, { 0 } };
    struct session session;
    tutti_view view = { .size = sizeof(view) };
    session_open(&session, _i == 3 ? "0,1" : "0", KIND_NORM, &trainings[_i]);
    tutti_trainer *trainer = session.trainer;
    const tutti_tensor output = { trainer->objective.outputs[0] };
    session_steps(&session, 2);
    fails_with(tutti_view_output(trainer, output, &view), TUTTI_INVALID, "not an output");
    keep_and_compare(&session, 1);
    keep_and_compare(&session, STEP_SAMPLES);
    ck_assert_int_eq(trainer->last.outputs.plan != NULL, _i == 0);
    keep_and_compare(&session, 5);
    keep_and_compare(&session, SAMPLES);
    ASSERT_OK(tutti_infer_keep(trainer, FEED_ONE(images), 5, &output, 1));
    ASSERT_OK(tutti_evaluate(trainer, FEED_PAIR(images, labels), 5, NULL));
    fails_with(tutti_view_output(trainer, output, &view), TUTTI_INVALID, "are gone");
    ASSERT_OK(tutti_infer_keep(trainer, FEED_ONE(images), 5, &output, 1));
    session_steps(&session, 1);
    fails_with(tutti_view_output(trainer, output, &view), TUTTI_INVALID, "are gone");
    ASSERT_OK(tutti_infer_keep(trainer, FEED_ONE(images), 5, &output, 1));
    fails_with(tutti_infer_keep(trainer, FEED_ONE(images), 5, NULL, 1), TUTTI_INVALID, "to be kept");
    fails_with(
        tutti_infer_keep(trainer, FEED_ONE(images), 5, (tutti_tensor[]) { output, output }, 2), TUTTI_INVALID, "twice");
    fails_with(tutti_view_output(trainer, output, &view), TUTTI_INVALID, "not an output that the last");
    ASSERT_OK(tutti_infer_keep(trainer, FEED_ONE(images), 5, &output, 1));
    ASSERT_OK(tutti_view_output(trainer, output, &view)); /* which the trainer closes */
    session_close(&session);
}
END_TEST

/* Nothing to train: only inference. */
START_TEST(no_parameters)
{
    tutti_runtime *runtime = tutti_open(&(tutti_runtime_options) { .devices = "0" });
    tutti_network *network = tutti_network_new(runtime);
    const tutti_tensor y = tutti_relu(network, tutti_input(network, "x", TUTTI_SHAPE(3)));
    const float input[3] = { -1, 2, -3 };
    float output[3];
    ck_assert_ptr_null(tutti_compile(network, y, &(tutti_training) { .loss = TUTTI_MSE }));
    tutti_trainer *trainer = tutti_compile(network, y, &(tutti_training) { .loss = TUTTI_LOSS_NONE });
    ck_assert_msg(trainer, "%s", tutti_message(NULL));
    ASSERT_OK(tutti_infer(trainer, FEED_ONE(input), 1, FETCH_FIRST(trainer, output)));
    ck_assert(output[0] == 0 && output[1] == 2 && output[2] == 0);
    tutti_trainer_free(trainer);
    tutti_network_free(network);
    tutti_close(runtime);
}
END_TEST

void inference_together(TCase *cases)
{
    tcase_add_test(cases, any_number_of_samples);
}

void inference_alone(TCase *cases)
{
    add_cases(cases, inference_follows_the_parameters, 2);
    tcase_add_test(cases, only_inference);
    tcase_add_test(cases, image_outputs);
    add_cases(cases, outputs_within_a_network, 4);
    add_cases(cases, outputs_are_kept, 4);
    tcase_add_test(cases, no_parameters);
}
