/* Gradients without an update, updates by gradients that were changed, states and positions: include/tutti_steps.h. */
#include "tests/feeds.h"
#include "tests/train/test_devices.h"
#include "tests/train/training.h"
#include "tutti_finetune.h"
#include "tutti_steps.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 3, BIASES = 6 }; /* BIASES: of the layer "conv" */
#define ROUNDING 2e-5

static int first_of(int step)
{
    return step * STEP_SAMPLES % (SAMPLES - STEP_SAMPLES);
}

static tutti_status backward(const struct session *session, int step, tutti_metrics *metrics)
{
    const int first = first_of(step);
    return tutti_backward(session->trainer, FEED_PAIR(images + first * PIXELS, labels + first), STEP_SAMPLES, metrics);
}

static void train(const struct session *session, int step)
{
    const int first = first_of(step);
    ASSERT_OK(
        tutti_train_step(session->trainer, FEED_PAIR(images + first * PIXELS, labels + first), STEP_SAMPLES, NULL));
}

static void backward_and_apply(const struct session *session, int step)
{
    ASSERT_OK(backward(session, step, NULL));
    ASSERT_OK(tutti_apply(session->trainer));
}

static const struct {
    enum kind kind;
    tutti_training training;
} trainings[] = {
    { KIND_GROUPS, { .momentum = 0.9f, .weight_decay = 0.01f } },
    { KIND_PLAIN, { .optimizer = TUTTI_ADAM, .learning_rate = 0.01f, .ema_decay = 0.9f } },
    { KIND_DROPOUT, { .momentum = 0.9f, .clip_norm = 0.1f } },
};
enum { TRAININGS = sizeof(trainings) / sizeof(*trainings) };

static void open_way(struct session *session, int way, int number)
{
    tutti_training training = trainings[number].training;
    const struct way *w = &training_ways[way];
    training.micro_batch = w->training.micro_batch;
    if (w->training.sharing == TUTTI_SHARES_AUTO)
        session_open_automatic(session, w->devices, trainings[number].kind, &training);
    else if (w->apart)
        session_open_apart(session, w->devices, trainings[number].kind, &training);
    else
        session_open(session, w->devices, trainings[number].kind, &training);
}

/* On any devices; also where steps of either sort follow each other, and gradients are computed in vain. */
START_TEST(backward_and_apply_are_a_step)
{
    struct session steps, parts, mixed;
    const int way = _i % WAYS, number = _i / WAYS;
    open_way(&steps, 0, number);
    open_way(&parts, way, number);
    open_way(&mixed, way, number);
    for (int step = 0; step < 2 * STEPS; step++) {
        train(&steps, step);
        backward_and_apply(&parts, step);
        if (step % 2) ASSERT_OK(backward(&mixed, step + 1, NULL));
        if (step % 3)
            train(&mixed, step);
        else
            backward_and_apply(&mixed, step);
    }
    close_to(&steps, &parts, ROUNDING);
    close_to(&steps, &mixed, ROUNDING);
    tutti_position position = { .size = sizeof(position) };
    ASSERT_OK(tutti_get_position(mixed.trainer, &position));
    ck_assert(position.steps == 2 * STEPS && position.updates == 2 * STEPS && position.epoch == 0);
    ck_assert(isnan(tutti_gradient_norm(parts.trainer)) == (trainings[number].training.clip_norm == 0));
    session_close(&steps);
    session_close(&parts);
    session_close(&mixed);
}
END_TEST

/* The only device with memory of its own sends buckets, which no other step of it does. Steps of either sort follow. */
START_TEST(only_device_sends_buckets)
{
    struct session steps, parts;
    const tutti_training *training = &trainings[_i].training;
    session_open(&steps, "0", trainings[_i].kind, training);
    session_open_apart(&parts, "0", trainings[_i].kind, training);
    for (int step = 0; step < 2 * STEPS; step++) {
        train(&steps, step);
        if (step % 3 == 1)
            train(&parts, step);
        else
            backward_and_apply(&parts, step);
    }
    close_to(&steps, &parts, ROUNDING);
    session_close(&steps);
    session_close(&parts);
}
END_TEST

/* Several devices that exchange gradients do the same arithmetic in either way, running statistics included. */
START_TEST(same_bytes_of_several_devices)
{
    struct session steps, parts;
    session_open(&steps, "0,1", KIND_NORM, NULL);
    session_open(&parts, "0,1", KIND_NORM, NULL);
    for (int step = 0; step < STEPS; step++) {
        train(&steps, step);
        backward_and_apply(&parts, step);
    }
    same_bytes(&steps, &parts);
    session_close(&steps);
    session_close(&parts);
}
END_TEST

/* Gradients are those of a step, and nothing but them changes. */
START_TEST(backward_gives_gradients)
{
    struct session stepped, kept, untouched;
    int64_t count;
    tutti_metrics wanted, found;
    session_open(&stepped, "0", KIND_DROPOUT, NULL);
    open_way(&kept, _i, 2);
    open_way(&untouched, _i, 2);
    ASSERT_OK(tutti_train_step(stepped.trainer, FEED_PAIR(images, labels), STEP_SAMPLES, &wanted));
    for (int i = 0; i < 2; i++) ASSERT_OK(backward(&kept, 0, &found));
    ck_assert_double_eq_tol(found.loss, wanted.loss, 1e-5 * wanted.loss);
    float *const a = session_gradients(&stepped, &count), *const b = session_gradients(&kept, &count);
    double largest = 0, difference = 0;
    for (int64_t i = 0; i < count; i++) {
        largest = fmax(largest, fabs((double)a[i]));
        difference = fmax(difference, fabs((double)a[i] - (double)b[i]));
    }
    ck_assert_double_le(difference, ROUNDING * largest);
    same_bytes(&kept, &untouched);
    free(a);
    free(b);
    session_close(&stepped);
    session_close(&kept);
    session_close(&untouched);
}
END_TEST

/* The update is by the gradient that the program has set. */
START_TEST(gradients_can_be_changed)
{
    struct session session;
    float before[BIASES], after[BIASES], gradient[BIASES];
    session_open(&session, _i ? "0,1" : "0", KIND_PLAIN, &(tutti_training) { .learning_rate = 0.5f });
    for (int i = 0; i < BIASES; i++) gradient[i] = (float)(i - 2) / 4;
    train(&session, 0);
    ASSERT_OK(backward(&session, 1, NULL));
    ASSERT_OK(tutti_get_parameter(session.trainer, "conv.bias", before, BIASES));
    ASSERT_OK(tutti_set_gradient(session.trainer, "conv.bias", gradient, BIASES));
    ASSERT_OK(tutti_get_gradient(session.trainer, "conv.bias", after, BIASES));
    ck_assert_int_eq(memcmp(after, gradient, sizeof(gradient)), 0);
    ASSERT_OK(tutti_apply(session.trainer));
    ASSERT_OK(tutti_get_parameter(session.trainer, "conv.bias", after, BIASES));
    for (int i = 0; i < BIASES; i++) ck_assert_float_eq_tol(after[i], before[i] - 0.5f * gradient[i], 1e-6f);
    ASSERT_OK(backward(&session, 2, NULL));
    gradient[3] = NAN;
    ASSERT_OK(tutti_set_gradient(session.trainer, "conv.bias", gradient, BIASES));
    fails_with(tutti_apply(session.trainer), TUTTI_NOT_FINITE, "nothing was updated");
    ASSERT_OK(tutti_get_parameter(session.trainer, "conv.bias", before, BIASES));
    ck_assert_int_eq(memcmp(after, before, sizeof(before)), 0);
    session_close(&session);
}
END_TEST

/* y = W x + b with the mean squared error, whose gradient with respect to x is known; also where values are stored as
 * bfloat16. */
START_TEST(inputs_have_gradients)
{
    enum { OUTPUTS = 3 };
    static float wanted[STEP_SAMPLES * OUTPUTS], y[STEP_SAMPLES * OUTPUTS], weights[OUTPUTS * PIXELS],
        gradient[STEP_SAMPLES * PIXELS];
    const bool rounded = _i / WAYS;
    const struct way *way = &training_ways[_i % WAYS];
    struct session session = { .runtime = session_runtime(way->devices, way->apart) };
    session.network = tutti_network_new(session.runtime);
    const tutti_tensor x = tutti_input(session.network, "x", TUTTI_SHAPE(PIXELS));
    const tutti_tensor output = tutti_dense(session.network, x, OUTPUTS, &(tutti_dense_options) { .name = "fc" });
    tutti_training training = way->training;
    training.loss = TUTTI_MSE;
    training.precision = rounded ? TUTTI_BF16 : TUTTI_FP32;
    training.batch = STEP_SAMPLES;
    training.gradient_inputs = &x;
    training.gradient_input_count = 1;
    session.trainer = tutti_compile(session.network, output, &training);
    ck_assert_msg(session.trainer, "%s", tutti_message(NULL));
    for (int i = 0; i < STEP_SAMPLES * OUTPUTS; i++) wanted[i] = images[2 * i + 1];
    const tutti_feed feeds[] = { { "x", TUTTI_DTYPE_F32, images }, { "targets", TUTTI_DTYPE_F32, wanted } };
    ASSERT_OK(tutti_get_parameter(session.trainer, "fc.weight", weights, OUTPUTS * PIXELS));
    ASSERT_OK(tutti_infer(session.trainer, feeds, 1, STEP_SAMPLES, FETCH_ONE(output, y)));
    ASSERT_OK(tutti_backward(session.trainer, feeds, 2, STEP_SAMPLES, NULL));
    ASSERT_OK(tutti_get_input_gradient(session.trainer, x, gradient, STEP_SAMPLES * PIXELS));
    for (int n = 0; n < STEP_SAMPLES; n++)
        for (int i = 0; i < PIXELS; i++) {
            double sum = 0;
            for (int k = 0; k < OUTPUTS; k++)
                sum += 2 * (double)(y[n * OUTPUTS + k] - wanted[n * OUTPUTS + k]) * (double)weights[k * PIXELS + i] /
                    (STEP_SAMPLES * OUTPUTS);
            ck_assert_double_eq_tol(gradient[n * PIXELS + i], sum, rounded ? 1e-3 : 1e-6);
        }
    fails_with(tutti_get_input_gradient(session.trainer, x, gradient, 3), TUTTI_INVALID, "elements");
    fails_with(tutti_get_input_gradient(session.trainer, output, gradient, 3), TUTTI_INVALID, "none of");
    ASSERT_OK(tutti_train_step(session.trainer, feeds, 2, STEP_SAMPLES, NULL));
    fails_with(tutti_get_input_gradient(session.trainer, x, gradient, STEP_SAMPLES * PIXELS), TUTTI_INVALID,
        "tutti_backward() first");
    session_close(&session);
}
END_TEST

static void copy_states(const struct session *from, const struct session *to)
{
    const char *name, *state;
    bool trained;
    tutti_shape shape;
    for (int i = 0; tutti_parameter_info(from->network, i, &name, &shape, &trained) == TUTTI_OK; i++) {
        int64_t count = 1;
        for (int j = 0; j < shape.rank; j++) count *= shape.sizes[j];
        float *const values = malloc((size_t)count * sizeof(*values));
        ck_assert_ptr_nonnull(values);
        ASSERT_OK(tutti_get_parameter(from->trainer, name, values, count));
        ASSERT_OK(tutti_set_parameter(to->trainer, name, values, count));
        for (int s = 0; trained && (state = tutti_state_name(from->trainer, s)); s++) {
            ASSERT_OK(tutti_get_state(from->trainer, name, state, values, count));
            ASSERT_OK(tutti_set_state(to->trainer, name, state, values, count));
        }
        free(values);
    }
}

/* A training that another one takes over in memory goes on as it would have. */
START_TEST(states_move_a_training)
{
    struct session from, to;
    const int number = _i / 2;
    const char *const devices = _i % 2 ? "0,1" : "0";
    tutti_position position = { .size = sizeof(position) };
    session_open(&from, devices, trainings[number].kind, &trainings[number].training);
    session_open(&to, devices, trainings[number].kind, &trainings[number].training);
    for (int step = 0; step < STEPS; step++) train(&from, step);
    copy_states(&from, &to);
    ASSERT_OK(tutti_get_position(from.trainer, &position));
    ck_assert_int_eq(position.steps, STEPS);
    ASSERT_OK(tutti_set_position(to.trainer, &position));
    for (int step = STEPS; step < 2 * STEPS; step++) {
        train(&from, step);
        train(&to, step);
    }
    same_bytes(&from, &to);
    session_close(&from);
    session_close(&to);
}
END_TEST

/* Rates of a group that are changed hold from the next step on, on the host and on a device that updates itself. */
START_TEST(groups_change)
{
    struct session one, two, still;
    struct session *const sessions[] = { &one, &two, &still };
    float changed[BIASES], unchanged[BIASES];
    const tutti_training training = { .momentum = 0.9f, .weight_decay = 0.01f };
    session_open(&one, "0", KIND_GROUPS, &training);
    session_open(&two, "0,1", KIND_GROUPS, &training);
    session_open(&still, "0", KIND_GROUPS, &training);
    for (int step = 0; step < 2 * STEPS; step++)
        for (int i = 0; i < 3; i++) {
            if (step == STEPS && i < 2)
                ASSERT_OK(
                    tutti_set_group(sessions[i]->trainer, "*.bias", &(tutti_group_options) { .rate_factor = 0.125f }));
            train(sessions[i], step);
        }
    close_to(&one, &two, ROUNDING);
    ASSERT_OK(tutti_get_parameter(one.trainer, "conv.bias", changed, BIASES));
    ASSERT_OK(tutti_get_parameter(still.trainer, "conv.bias", unchanged, BIASES));
    ck_assert(memcmp(changed, unchanged, sizeof(changed)) != 0);
    fails_with(tutti_set_group(one.trainer, "nothing.*", NULL), TUTTI_INVALID, "nothing.*");
    for (int i = 0; i < 3; i++) session_close(sessions[i]);
    session_open(&one, "0", KIND_PLAIN, NULL);
    fails_with(tutti_set_group(one.trainer, "*.bias", NULL), TUTTI_INVALID, "before tutti_compile()");
    session_close(&one);
}
END_TEST

static tutti_status break_down(struct device *device, void *state, cl_event *event)
{
    (void)state, (void)event;
    return fail(TUTTI_DEVICE, "the test broke '%s'", device->can.name);
}

/* A device that fails in tutti_backward() is made up for; the only one that fails leaves everything as it was. */
START_TEST(devices_fail_in_backward)
{
    struct session steps, parts;
    const int broken = _i;
    session_open(&steps, "0", KIND_DROPOUT, NULL);
    session_try(&parts, &(tutti_runtime_options) { .devices = "0,1" }, KIND_DROPOUT, NULL);
    ck_assert_msg(parts.trainer, "%s", tutti_message(NULL));
    for (int step = 0; step < 2 * STEPS; step++) {
        train(&steps, step);
        struct replica *replica = &parts.trainer->replicas[broken];
        for (int i = 0; step == STEPS && i < PLAN_CACHE_PLANS; i++) {
            struct plan *plan = replica->plans.plans[i].plan;
            if (plan && plan->options.mode == PLAN_TRAIN)
                plan->launches.launches[plan->launches.count / 2].call = break_down;
        }
        backward_and_apply(&parts, step);
    }
    close_to(&steps, &parts, ROUNDING);
    session_close(&steps);
    session_close(&parts);
}
END_TEST

START_TEST(not_a_number_keeps_nothing)
{
    static float bad[STEP_SAMPLES * PIXELS];
    struct session a, b;
    session_open(&a, _i ? "0,1" : "0", KIND_NORM, NULL);
    session_open(&b, _i ? "0,1" : "0", KIND_NORM, NULL);
    train(&a, 0);
    train(&b, 0);
    memcpy(bad, images, sizeof(bad));
    bad[PIXELS + 3] = NAN;
    ck_assert_int_eq(tutti_backward(a.trainer, FEED_PAIR(bad, labels), STEP_SAMPLES, NULL), TUTTI_NOT_FINITE);
    fails_with(tutti_apply(a.trainer), TUTTI_INVALID, "tutti_backward() first");
    same_bytes(&a, &b);
    backward_and_apply(&a, 1);
    fails_with(tutti_apply(a.trainer), TUTTI_INVALID, "tutti_backward() first");
    session_close(&a);
    session_close(&b);
}
END_TEST

/* Gradients that overflow are computed again with a lower scale of the loss, and are given without it. */
START_TEST(half_precision_scales)
{
    struct session plain, scaled;
    float wanted[BIASES], found[BIASES];
    const tutti_training training = { .momentum = 0.9f, .precision = TUTTI_FP16 };
    session_open(&plain, "0", KIND_PLAIN, &training);
    session_open(&scaled, _i ? "0,1" : "0", KIND_PLAIN, &training);
    scaled.trainer->state.loss_scale.scale = 0x1p140;
    ASSERT_OK(backward(&plain, 0, NULL));
    ASSERT_OK(backward(&scaled, 0, NULL));
    ck_assert_double_lt(scaled.trainer->state.loss_scale.scale, 0x1p140);
    ck_assert_int_eq(scaled.trainer->state.loss_scale.skipped, 0);
    ASSERT_OK(tutti_get_gradient(plain.trainer, "conv.bias", wanted, BIASES));
    ASSERT_OK(tutti_get_gradient(scaled.trainer, "conv.bias", found, BIASES));
    for (int i = 0; i < BIASES; i++) ck_assert_float_eq_tol(found[i], wanted[i], 1e-2f * fabsf(wanted[i]) + 1e-5f);
    ASSERT_OK(tutti_apply(scaled.trainer));
    session_close(&plain);
    session_close(&scaled);
}
END_TEST

/* Numbers that are written in place are those of the copying calls: parameters with an average, states and gradients,
 * of one device and of two. */
START_TEST(views_are_the_numbers)
{
    struct session copied, viewed;
    const char *const devices = _i % 2 ? "0,1" : "0";
    float values[BIASES];
    session_open(&copied, devices, trainings[_i / 2].kind, &trainings[_i / 2].training);
    session_open(&viewed, devices, trainings[_i / 2].kind, &trainings[_i / 2].training);
    for (int step = 0; step < STEPS; step++) {
        const char *const state = tutti_state_name(copied.trainer, 0);
        tutti_view view = { .size = sizeof(view) };
        ASSERT_OK(tutti_get_parameter(copied.trainer, "conv.bias", values, BIASES));
        ASSERT_OK(tutti_view_parameter(viewed.trainer, "conv.bias", &view));
        ck_assert_int_eq(view.count, BIASES);
        ck_assert_int_eq(view.shape.rank, 1);
        ck_assert_mem_eq(view.values, values, sizeof(values));
        for (int i = 0; i < BIASES; i++) values[i] = view.values[i] = 0.1f * (float)(i + step);
        ASSERT_OK(tutti_set_parameter(copied.trainer, "conv.bias", values, BIASES));
        ASSERT_OK(tutti_view_close(viewed.trainer, &view, true));
        ASSERT_OK(tutti_get_state(copied.trainer, "conv.bias", state, values, BIASES));
        ASSERT_OK(tutti_view_state(viewed.trainer, "conv.bias", state, &view));
        ck_assert_mem_eq(view.values, values, sizeof(values));
        for (int i = 0; i < BIASES; i++) view.values[i] = values[i] /= 2;
        ASSERT_OK(tutti_set_state(copied.trainer, "conv.bias", state, values, BIASES));
        ASSERT_OK(tutti_view_close(viewed.trainer, &view, true));
        ASSERT_OK(backward(&copied, step, NULL));
        ASSERT_OK(backward(&viewed, step, NULL));
        ASSERT_OK(tutti_get_gradient(copied.trainer, "conv.bias", values, BIASES));
        ASSERT_OK(tutti_view_gradient(viewed.trainer, "conv.bias", &view));
        ck_assert_mem_eq(view.values, values, sizeof(values));
        for (int i = 0; i < BIASES; i++) view.values[i] = values[i] *= 3;
        ASSERT_OK(tutti_set_gradient(copied.trainer, "conv.bias", values, BIASES));
        ASSERT_OK(tutti_view_close(viewed.trainer, &view, true));
        ASSERT_OK(tutti_apply(copied.trainer));
        ASSERT_OK(tutti_apply(viewed.trainer));
    }
    same_bytes(&copied, &viewed);
    session_close(&copied);
    session_close(&viewed);
}
END_TEST

static int leave_a_view_open(void *user, const tutti_progress *progress)
{
    tutti_view view = { .size = sizeof(view) };
    (void)progress;
    ASSERT_OK(tutti_view_parameter(user, "conv.bias", &view));
    return 0;
}

START_TEST(open_views_stop_the_training)
{
    struct session session;
    tutti_view view = { .size = sizeof(view) }, other = { .size = sizeof(other) }, small = { .size = sizeof(size_t) };
    session_open(&session, "0", KIND_PLAIN, NULL);
    tutti_trainer *t = session.trainer;
    fails_with(tutti_view_parameter(t, "none", &view), TUTTI_INVALID, "no parameter 'none'");
    fails_with(tutti_view_gradient(t, "conv.bias", &view), TUTTI_INVALID, "tutti_backward() first");
    fails_with(tutti_view_state(t, "conv.bias", "exp_avg", &view), TUTTI_INVALID, "no state");
    fails_with(tutti_view_close(t, &view, true), TUTTI_INVALID, "not open");
    fails_with(tutti_view_parameter(t, "conv.bias", &small), TUTTI_INVALID, "leaves out the values");
    train(&session, 0);
    ASSERT_OK(tutti_view_parameter(t, "conv.bias", &view));
    const uint64_t generation = view.generation;
    ASSERT_OK(tutti_view_parameter(t, "conv.bias", &other));
    fails_with(tutti_train_step(t, FEED_PAIR(images, labels), STEP_SAMPLES, NULL), TUTTI_INVALID, "open (2)");
    fails_with(tutti_evaluate(t, FEED_PAIR(images, labels), STEP_SAMPLES, NULL), TUTTI_INVALID, "open (2)");
    fails_with(tutti_save_weights(t, "never.safetensors"), TUTTI_INVALID, "open (2)");
    struct session another;
    session_open(&another, "0", KIND_PLAIN, NULL);
    tutti_view foreign = { .size = sizeof(foreign) };
    ASSERT_OK(tutti_view_parameter(another.trainer, "conv.bias", &foreign));
    fails_with(tutti_view_close(t, &foreign, false), TUTTI_INVALID, "not open");
    session_close(&another);
    ASSERT_OK(tutti_view_close(t, &other, false));
    fails_with(tutti_view_close(t, &other, false), TUTTI_INVALID, "not open");
    ASSERT_OK(tutti_view_parameter(t, "conv.bias", &other));
    tutti_view copy = other;
    ASSERT_OK(tutti_view_close(t, &other, false));
    fails_with(tutti_view_close(t, &copy, false), TUTTI_INVALID, "not open"); /* of a closed view, with one open */
    copy = view;
    ASSERT_OK(tutti_view_close(t, &copy, false));
    fails_with(tutti_view_close(t, &view, false), TUTTI_INVALID, "not open");
    train(&session, 1);
    ASSERT_OK(tutti_view_parameter(t, "conv.bias", &view));
    ck_assert_uint_gt(view.generation, generation);
    ASSERT_OK(tutti_view_close(t, &view, false));
    fails_with(tutti_fit(t, FEED_PAIR(images, labels), SAMPLES,
                   &(tutti_fitting) { .epochs = 1, .progress = leave_a_view_open, .user = t }),
        TUTTI_INVALID, "open (1)");
    session_close(&session);
}
END_TEST

/* What the next calls find on the stack is no address. */
static __attribute__((noinline)) void fill_stack(void)
{
    volatile unsigned char bytes[1 << 15];
    for (size_t i = 0; i < sizeof(bytes); i++) bytes[i] = 0xa5;
}

static int read_samples(
    void *user, const int64_t *indices, int64_t count, const tutti_buffer *buffers, int buffer_count)
{
    (void)user;
    const void *const arrays[] = { images, labels };
    for (int b = 0; b < buffer_count; b++)
        for (int64_t i = 0; i < count; i++)
            memcpy((char *)buffers[b].data + (size_t)i * buffers[b].bytes,
                (const char *)arrays[b] + (size_t)indices[i] * buffers[b].bytes, buffers[b].bytes);
    return 0;
}

static int leave_a_view_at_the_end(void *user, const tutti_progress *progress)
{
    if (progress->end_of_epoch) leave_a_view_open(user, progress);
    fill_stack();
    return 0;
}

static void leave_a_view_at_the_begin(void *user, int64_t epoch)
{
    (void)epoch;
    leave_a_view_open(user, NULL);
}

/* Before the first batch of an epoch there is none that a step could take for its own. */
START_TEST(open_views_stop_an_epoch)
{
    struct session session;
    session_open(&session, "0", KIND_PLAIN, NULL);
    const tutti_source source = { .samples = SAMPLES, .read = read_samples, .user = session.trainer };
    const tutti_fitting fittings[] = { { .begin_epoch = leave_a_view_at_the_begin },
        { .epochs = 2, .progress = leave_a_view_at_the_end, .user = session.trainer } };
    fill_stack();
    fails_with(tutti_fit_source(session.trainer, &source, &fittings[_i]), TUTTI_INVALID, "open (1)");
    session_close(&session);
}
END_TEST

START_TEST(wrong_calls_are_reported)
{
    struct session session;
    float values[BIASES] = { 0 };
    session_open(&session, "0", KIND_NORM, NULL);
    tutti_trainer *t = session.trainer;
    fails_with(tutti_apply(t), TUTTI_INVALID, "tutti_backward() first");
    fails_with(tutti_set_gradient(t, "conv.bias", values, BIASES), TUTTI_INVALID, "tutti_backward() first");
    ASSERT_OK(backward(&session, 0, NULL));
    fails_with(tutti_set_gradient(t, "conv.bias", values, 3), TUTTI_INVALID, "has 6 elements");
    fails_with(tutti_set_gradient(t, "bn.running_mean", values, BIASES), TUTTI_INVALID, "running statistic");
    fails_with(tutti_get_state(t, "conv.bias", "exp_avg", values, BIASES), TUTTI_INVALID, "no state 'exp_avg'");
    ck_assert_str_eq(tutti_state_name(t, 0), "momentum_buffer");
    ck_assert_ptr_null(tutti_state_name(t, 1));
    ck_assert_ptr_null(tutti_state_name(t, -1));
    fails_with(tutti_set_position(t, &(tutti_position) { .steps = 2, .updates = 3 }), TUTTI_INVALID, "more than steps");
    fails_with(tutti_backward(t, FEED_PAIR(images, labels), STEP_SAMPLES + 1, NULL), TUTTI_INVALID, "17 samples");
    session_close(&session);
    const tutti_tensor none = { 0 };
    session_try(&session, &(tutti_runtime_options) { .devices = "0" }, KIND_PLAIN,
        &(tutti_training) { .gradient_inputs = &none, .gradient_input_count = 257 });
    ck_assert_ptr_null(session.trainer);
    fails_with(tutti_last_status(), TUTTI_INVALID, "gradient_input_count is 257");
    session_close(&session);
}
END_TEST

Suite *suite_between(void)
{
    Suite *suite = suite_create("between");
    TCase *cases = cases_new(suite, "between", data_make, NULL);
    add_cases(cases, backward_and_apply_are_a_step, WAYS * TRAININGS);
    add_cases(cases, only_device_sends_buckets, TRAININGS);
    tcase_add_test(cases, same_bytes_of_several_devices);
    add_cases(cases, backward_gives_gradients, WAYS);
    add_cases(cases, gradients_can_be_changed, 2);
    add_cases(cases, inputs_have_gradients, 2 * WAYS);
    add_cases(cases, states_move_a_training, 2 * TRAININGS);
    tcase_add_test(cases, groups_change);
    add_cases(cases, devices_fail_in_backward, 2);
    add_cases(cases, not_a_number_keeps_nothing, 2);
    add_cases(cases, half_precision_scales, 2);
    add_cases(cases, views_are_the_numbers, 2 * TRAININGS);
    tcase_add_test(cases, open_views_stop_the_training);
    tcase_add_loop_test(cases, open_views_stop_an_epoch, 0, 2);
    tcase_add_test(cases, wrong_calls_are_reported);
    return suite;
}
