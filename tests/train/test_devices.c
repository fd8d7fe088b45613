/* Training on one and on two devices: run with two POCL devices (POCL_DEVICES="pthread pthread"). */
#include "tests/feeds.h"
#include "tests/train/training.h"

#include "base/bf16.h"
#include "base/memory.h"
#include "plan/commands.h"
#include "tutti_experts.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Sums in another order differ in the last bits; a few steps make them a few more. */
#define ROUNDING 2e-5

static void two_devices_are_there(void)
{
    tutti_runtime *runtime = tutti_open(&(tutti_runtime_options) { .devices = "0,1" });
    ck_assert_msg(runtime, "two devices are needed, POCL_DEVICES=\"pthread pthread\": %s", tutti_message(NULL));
    tutti_close(runtime);
}

static int warnings;

static void setup(void)
{
    warnings = 0;
    data_make();
    two_devices_are_there();
}

/* ------------------------------------------------------------------------------------------------- equality ---- */

/* Whether the plan says of any layer that it was chosen by measurement. */
static bool chosen_by_measurement(const struct session *session)
{
    char *text = tutti_explain(session->trainer, 0, false);
    ck_assert_ptr_nonnull(text);
    const bool found = strstr(text, "by the device's table, in ms: ") != NULL;
    free(text);
    return found;
}

/* A batch of 8 is taken by more than one matrix product. What was measured serves the next process too, and what rounds
 * no more than before is still as close to the run by rule. */
START_TEST(measured_choices_are_kept)
{
    char folder[] = "/tmp/tutti-tune-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(folder));
    const tutti_runtime_options options = { .devices = "0", .cache_folder = folder };
    struct session rule, tuned, later;
    session_try(&rule, &options, KIND_PLAIN, &(tutti_training) { .batch = 8 });
    ck_assert(!chosen_by_measurement(&rule));
    session_try(&tuned, &options, KIND_PLAIN, &(tutti_training) { .batch = 8, .tune = true });
    ck_assert(chosen_by_measurement(&tuned));
    session_try(&later, &options, KIND_PLAIN, &(tutti_training) { .batch = 8 });
    ck_assert(chosen_by_measurement(&later));
    struct session *const all[] = { &rule, &tuned, &later };
    for (int i = 0; i < 3; i++)
        for (int step = 0; step < 3; step++)
            ASSERT_OK(
                tutti_train_step(all[i]->trainer, FEED_PAIR(images + 8 * step * PIXELS, labels + 8 * step), 8, NULL));
    close_to(&rule, &tuned, ROUNDING);
    same_bytes(&tuned, &later);
    for (int i = 0; i < 3; i++) session_close(all[i]);
    char command[64];
    snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    ck_assert_int_eq(system(command), 0);
}
END_TEST

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

/* Uploads by page-locked memory and gradients that leave while backward goes on change no byte. */
START_TEST(memory_of_their_own)
{
    const char *const devices = _i % 2 ? "0,1" : "0";
    const double unequal[2] = { 3, 2 };
    const tutti_training training = { .momentum = 0.9f, .shares = unequal, .micro_batch = _i / 2 ? 5 : 0 };
    struct session shared, apart;
    session_open(&shared, devices, KIND_NORM, &training);
    session_open_apart(&apart, devices, KIND_NORM, &training);
    session_steps(&shared, 4);
    session_steps(&apart, 4);
    same_bytes(&shared, &apart);
    tutti_metrics left, right;
    ASSERT_OK(tutti_evaluate(shared.trainer, FEED_PAIR(images, labels), SAMPLES, &left));
    ASSERT_OK(tutti_evaluate(apart.trainer, FEED_PAIR(images, labels), SAMPLES, &right));
    ck_assert(left.loss == right.loss && left.accuracy == right.accuracy);
    session_close(&shared);
    session_close(&apart);
}
END_TEST

/* Steps on the batches 0, 1, 2 ... of the data, of each of which the one behind it is announced. */
static void announced_step(struct session *session, int step)
{
    const int first = step * STEP_SAMPLES, next = first + STEP_SAMPLES;
    ASSERT_OK(tutti_train_prefetch(session->trainer, FEED_PAIR(images + next * PIXELS, labels + next), STEP_SAMPLES));
    ASSERT_OK(
        tutti_train_step(session->trainer, FEED_PAIR(images + first * PIXELS, labels + first), STEP_SAMPLES, NULL));
}

/* Samples that travel beside the step before change no byte; what comes of them is what was there when they were
 * announced. Another batch than the announced one is taken from where it is, as are micro-batches. */
START_TEST(samples_of_the_next_step)
{
    const double unequal[2] = { 3, 2 };
    const bool micro = _i / 2 == 1;
    const tutti_training training = { .momentum = 0.9f, .shares = unequal, .micro_batch = micro ? 5 : 0 };
    float held[STEP_SAMPLES * PIXELS];
    struct session plain, apart;
    session_open_apart(&plain, _i % 2 ? "0,1" : "0", KIND_NORM, &training);
    session_open_apart(&apart, _i % 2 ? "0,1" : "0", KIND_NORM, &training);
    const uint64_t before = replica_memory(&apart.trainer->replicas[0]);
    session_steps(&plain, 3);
    announced_step(&apart, 0);
    ck_assert_uint_eq(replica_memory(&apart.trainer->replicas[0]) > before, !micro);
    memcpy(held, images + STEP_SAMPLES * PIXELS, sizeof(held));
    if (!micro) memset(images + STEP_SAMPLES * PIXELS, 0, sizeof(held)); /* the device has them */
    announced_step(&apart, 1);
    memcpy(images + STEP_SAMPLES * PIXELS, held, sizeof(held));
    tutti_metrics metrics;
    ASSERT_OK(tutti_evaluate(apart.trainer, FEED_PAIR(images, labels), SAMPLES, &metrics)); /* in between */
    announced_step(&apart, 2);
    tutti_device_times times;
    ASSERT_OK(tutti_report_times(apart.trainer, 0, &times));
    ck_assert(times.sent_beside_s >= 0 && times.sent_beside_s <= times.sent_s);
    session_steps(&plain, 1); /* batch 0, where 3 was announced */
    session_steps(&apart, 1);
    same_bytes(&plain, &apart);
    session_close(&plain);
    session_close(&apart);
}
END_TEST

/* Where its memory is full, a device that could hold the samples of a second step does not. */
START_TEST(no_room_for_the_next_step)
{
    struct session plain, apart;
    session_open_apart(&plain, "0", KIND_NORM, NULL);
    session_open_apart(&apart, "0", KIND_NORM, NULL);
    struct replica *replica = &apart.trainer->replicas[0];
    const size_t memory = apart.runtime->devices[0].can.memory_bytes;
    apart.runtime->devices[0].can.memory_bytes = (size_t)replica_memory(replica);
    session_steps(&plain, 2);
    announced_step(&apart, 0);
    announced_step(&apart, 1);
    ck_assert_ptr_null(replica->prefetch.buffer);
    same_bytes(&plain, &apart);
    apart.runtime->devices[0].can.memory_bytes = memory;
    session_close(&plain);
    session_close(&apart);
}
END_TEST

/* Together the ranges cover the arena once, in its order, and none is wanted before the one in front of it. */
static void check_needs(const struct plan *plan)
{
    int64_t end = 0;
    size_t position = 0;
    const struct command *need;
    while ((need = command_next(plan, COMMAND_NEED, &position))) {
        ck_assert_int_eq(need->first, end);
        end += need->count;
    }
    ck_assert_int_eq(end, plan->network->total_floats);
}

/* The launches before a command. */
static size_t launches_before(const struct plan *plan, enum command_kind kind, size_t number)
{
    size_t launches = 0;
    for (size_t i = 0; i < plan->command_count; i++) {
        if (plan->commands[i].kind == kind && plan->commands[i].number == number) return launches;
        launches += plan->commands[i].kind == COMMAND_KERNEL;
    }
    ck_abort_msg("there are fewer than %zu such commands", number + 1);
}

/* Gradients come from memory of the device's own, and nothing is copied where it shares the host's. */
static void check_traffic(const struct session *session, int device, double received)
{
    tutti_device_times times;
    ASSERT_OK(tutti_report_times(session->trainer, device, &times));
    ck_assert_double_eq(times.received_bytes, received);
    ck_assert_double_gt(times.sent_bytes, received); /* parameters, and samples as well */
}

/* Parameters and gradients that travel in ranges, beside the launches that need others, change no byte; forward does
 * not wait for the second layer's weights to begin. */
START_TEST(ranges_of_parameters)
{
    struct session shared, apart;
    session_open(&shared, "0,1", KIND_WIDE, NULL);
    session_open_apart(&apart, "0,1", KIND_WIDE, NULL);
    session_steps(&shared, 4);
    session_steps(&apart, 4);
    same_bytes(&shared, &apart);
    for (int i = 0; i < 2; i++) {
        const struct cached_plan *cached = plan_cache_find(
            &apart.trainer->replicas[i].plans, (struct plan_key) { PLAN_TRAIN, { STEP_SAMPLES / 2, 0 } });
        ck_assert_ptr_nonnull(cached);
        const struct plan *plan = cached->plan;
        check_needs(plan);
        ck_assert_uint_le(launches_before(plan, COMMAND_NEED, 2), plan->step.count);
        ck_assert_uint_le(launches_before(plan, COMMAND_READY, 2), plan->step.count);
        ck_assert_uint_lt(launches_before(plan, COMMAND_NEED, 0), launches_before(plan, COMMAND_NEED, 1));
        ck_assert_uint_lt(
            launches_before(plan, COMMAND_NEED, 1) + 1, launches_before(plan, COMMAND_READY, 0)); /* still in forward */
        check_traffic(&shared, i, 0);
        check_traffic(&apart, i, 4 * (double)apart.network->total_floats * sizeof(float));
    }
    session_close(&shared);
    session_close(&apart);
}
END_TEST

/* What a device gave, rounded as on the wire where that is so. */
static float *gradients_of(struct replica *replica)
{
    const tutti_network *network = replica->trainer->network;
    const size_t total = (size_t)network->total_floats;
    float *gradients = memory_new(total, sizeof(float));
    ck_assert_ptr_nonnull(gradients);
    ASSERT_OK(buffer_read(replica->device, gradients_last(&replica->port), 0, gradients, total * sizeof(float)));
    for (int64_t i = 0; i < network->trained_floats; i++) gradients[i] = bf16_to_float(bf16_from_float(gradients[i]));
    return gradients;
}

static const tutti_expert_options bf16_wire = { .wire = TUTTI_BF16 };

/* Each device's gradients are rounded and those of parameters only, their sums are not, whatever leaves the device:
 * buckets, or the sum over micro-batches. To the bit. */
START_TEST(half_precision_on_the_wire)
{
    const double unequal[2] = { 3, 2 };
    struct session session;
    session_open_apart(&session, "0,1", _i == 2 ? KIND_WIDE : KIND_NORM,
        &(tutti_training) { .shares = unequal, .micro_batch = _i == 1 ? 5 : 0, .experts = &bf16_wire });
    const tutti_network *network = session.network;
    const size_t bytes = (size_t)network->total_floats * sizeof(float);
    float *wanted = memory_new((size_t)network->total_floats, sizeof(float));
    ck_assert_ptr_nonnull(wanted);
    memcpy(wanted, session.trainer->store.master.parameters, bytes);
    session_steps(&session, 1);
    float *a = gradients_of(&session.trainer->replicas[0]), *b = gradients_of(&session.trainer->replicas[1]);
    for (size_t k = 0; k < network->parameter_count; k++) {
        const struct parameter *p = &network->parameters[k];
        for (int64_t i = p->offset; i < p->offset + p->elements; i++) {
            const float sum = a[i] + b[i];
            wanted[i] = p->kind == PARAMETER_TRAINED ? wanted[i] - 0.05f * sum
                                                     : (1 - p->momentum) * wanted[i] + p->momentum * sum;
            ck_assert_msg(wanted[i] == session.trainer->store.master.parameters[i], "%s, element %lld: %.9g, not %.9g",
                p->name, (long long)(i - p->offset), session.trainer->store.master.parameters[i], wanted[i]);
        }
    }
    free(a);
    free(b);
    free(wanted);
    session_close(&session);
}
END_TEST

/* Rounding to 8 bits moves a step by no more than 2^-9 of it; the same in every run; and nothing where nothing
 * travels. */
START_TEST(half_precision_trains_alike)
{
    const tutti_training plain = { .momentum = 0.9f }, half = { .momentum = 0.9f, .experts = &bf16_wire };
    struct session exact, one, two, shared, shared_half;
    session_open_apart(&exact, "0,1", KIND_NORM, &plain);
    session_open_apart(&one, "0,1", KIND_NORM, &half);
    session_open_apart(&two, "0,1", KIND_NORM, &half);
    session_open(&shared, "0,1", KIND_NORM, &plain);
    session_open(&shared_half, "0,1", KIND_NORM, &half);
    struct session *const all[] = { &exact, &one, &two, &shared, &shared_half };
    for (int i = 0; i < 5; i++) session_steps(all[i], 4);
    close_to(&exact, &one, 5e-3);
    same_bytes(&one, &two);
    same_bytes(&shared, &shared_half);
    int64_t count;
    float *left = session_parameters(&exact, &count), *right = session_parameters(&one, &count);
    ck_assert_msg(memcmp(left, right, (size_t)count * sizeof(float)) != 0, "nothing was rounded");
    free(left);
    free(right);
    for (int i = 0; i < 5; i++) session_close(all[i]);
}
END_TEST

static const tutti_training rules[] = {
    { .optimizer = TUTTI_SGD },
    { .optimizer = TUTTI_SGD, .momentum = 0.9f, .nesterov = true, .weight_decay = 0.01f },
    { .optimizer = TUTTI_ADAM, .learning_rate = 0.01f, .epsilon = 1e-3f },
    { .optimizer = TUTTI_ADAMW, .learning_rate = 0.01f, .weight_decay = 0.1f, .epsilon = 1e-3f },
};

/* The rules on the device against those on the host: with all samples on the first device, the gradients are equal. */
START_TEST(update_on_device_equals_host)
{
    const double all[2] = { 1, 0 };
    tutti_training training = rules[_i];
    struct session one, two;
    session_open(&one, "0", KIND_NORM, &training);
    training.shares = all;
    session_open(&two, "0,1", KIND_NORM, &training);
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

/* Profiling runs the plan again, with the parameters that the step has updated. */
START_TEST(profiles_change_nothing)
{
    enum { FLOATS = 6 * 2 * 3 * 3 };
    struct session session;
    float gradient[FLOATS], after[FLOATS];
    const char *name = "conv.weight";
    session_open(&session, _i ? "0,1" : "0", KIND_NORM, NULL);
    session_steps(&session, 1);
    ASSERT_OK(tutti_get_gradient(session.trainer, name, gradient, FLOATS));
    int64_t count;
    float *const parameters = session_parameters(&session, &count);
    for (int d = 0; d < session.runtime->count; d++) {
        char *text = tutti_profile(session.trainer, d, NULL);
        ck_assert_msg(text != NULL, "%s", tutti_message(NULL));
        free(text);
    }
    ASSERT_OK(tutti_get_gradient(session.trainer, name, after, FLOATS));
    ck_assert(memcmp(gradient, after, sizeof(gradient)) == 0);
    float *const later = session_parameters(&session, &count);
    ck_assert(memcmp(parameters, later, (size_t)count * sizeof(float)) == 0);
    free(later);
    free(parameters);
    session_close(&session);
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

/* ------------------------------------------------------------------------------------------- micro-batches ---- */

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

/* ------------------------------------------------------------------------------------------------ not finite ---- */

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

/* -------------------------------------------------------------------------------------------------- faults ---- */

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
        if (plan && plan->options.mode == PLAN_TRAIN) plan->step.launches[plan->step.count / 2].call = break_down;
    }
}

static void count_warnings(void *user, tutti_log_level level, const char *line)
{
    (void)user;
    if (level == TUTTI_LOG_WARN && strstr(line, "is lost")) warnings++;
}

START_TEST(lost_device_is_made_up_for)
{
    struct session one, two;
    const tutti_runtime_options options = { .devices = "0,1", .log = count_warnings };
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

/* ------------------------------------------------------------------------------------- evaluation, inference ---- */

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

/* What inference makes from the parameters is made again after they change: by a step, or by the caller. */
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

/* The output is the second convolution, alone or with layers behind it: a batch normalisation, which could be folded
 * into that convolution, directly (0) or behind dropout (1), and the rest of a network. */
static void open_inner(struct session *session, const char *devices, bool behind, int form)
{
    session->runtime = tutti_open(&(tutti_runtime_options) { .devices = devices });
    tutti_network *network = session->network = tutti_network_new(session->runtime);
    tutti_tensor x = tutti_input(network, "x", TUTTI_SHAPE(2, 7, 7));
    x = tutti_conv2d(network, x, 6, 3, &(tutti_conv2d_options) { .name = "first", .padding = 1 });
    x = tutti_relu(network, tutti_batch_norm(network, x, &(tutti_batch_norm_options) { .name = "norm" }));
    x = tutti_conv2d(network, x, 2, 3, &(tutti_conv2d_options) { .name = "output", .padding = 1 });
    if (form == 1) x = tutti_dropout(network, x, 0.5f);
    const tutti_tensor output = x;
    if (behind) {
        x = tutti_batch_norm(network, x, &(tutti_batch_norm_options) { .name = "behind" });
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
    static const char *const names[] = { "behind.running_var", "behind.weight", "behind.bias", "behind.running_mean" };
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

static void *train_and_free(void *argument)
{
    struct session *session = argument;
    for (int round = 0; round < 2; round++) {
        session_compile(session, KIND_NORM, NULL);
        ck_assert_msg(session->trainer, "%s", tutti_message(NULL));
        session_steps(session, 3);
        if (round > 0) break; /* the last ones are compared */
        tutti_trainer_free(session->trainer);
        tutti_network_free(session->network);
    }
    return NULL;
}

/* Each in a thread of its own, on the same devices; with memory of their own, which has queues of its own for copies.
 */
START_TEST(two_trainers_on_one_runtime)
{
    struct session alone, both[2];
    pthread_t threads[2];
    char folder[] = "/tmp/tutti-two-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(folder));
    tutti_runtime *runtime = tutti_open(&(tutti_runtime_options) { .devices = "0,1", .cache_folder = folder });
    ck_assert_msg(runtime, "%s", tutti_message(NULL));
    for (int i = 0; _i > 0 && i < runtime->count; i++)
        runtime->devices[i].can.unified = runtime->devices[i].host_memory = false;
    for (int i = 0; i < 2; i++) {
        both[i] = (struct session) { .runtime = runtime };
        ck_assert_int_eq(pthread_create(&threads[i], NULL, train_and_free, &both[i]), 0);
    }
    for (int i = 0; i < 2; i++) ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    session_open(&alone, "0,1", KIND_NORM, NULL);
    session_steps(&alone, 3);
    for (int i = 0; i < 2; i++) {
        same_bytes(&alone, &both[i]);
        tutti_trainer_free(both[i].trainer);
        tutti_network_free(both[i].network);
    }
    session_close(&alone);
    tutti_close(runtime);
    char command[64];
    snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    ck_assert_int_eq(system(command), 0);
}
END_TEST

Suite *suite_adapt(void);
Suite *suite_feeds(void);
Suite *suite_fit(void);
Suite *suite_fp16(void);
Suite *suite_objective(void);
Suite *suite_parameters(void);
Suite *suite_sequences(void);
Suite *suite_sync(void);

/* TUTTI_SUITES names the suites to run; without it all of them run. */
static bool is_wanted(const char *suite)
{
    const char *wanted = getenv("TUTTI_SUITES");
    return !wanted || strstr(wanted, suite);
}

/* What two devices do together. */
static Suite *suite_devices(void)
{
    Suite *suite = suite_create("devices");
    TCase *cases = cases_new(suite, "devices", setup, NULL);
    add_cases(cases, two_devices_equal_one, 2 * (int)(sizeof(shares) / sizeof(*shares)));
    add_cases(cases, memory_of_their_own, 4);
    tcase_add_test(cases, ranges_of_parameters);
    add_cases(cases, half_precision_on_the_wire, 3);
    tcase_add_test(cases, half_precision_trains_alike);
    tcase_add_test(cases, gradient_is_the_mean_over_the_batch);
    add_cases(cases, micro_batches_equal_the_whole, 6);
    add_cases(cases, not_a_number_updates_nothing, 4);
    add_cases(cases, lost_device_is_made_up_for, 2);
    tcase_add_test(cases, no_device_left);
    tcase_add_test(cases, any_number_of_samples);
    add_cases(cases, samples_of_the_next_step, 4);
    add_cases(cases_new(suite, "threads", setup, NULL), two_trainers_on_one_runtime, 2);
    return suite;
}

/* ------------------------------------------------------------------------------------------------- threads ---- */

enum { USES = 100000 };

static void *use_arena(void *arena)
{
    for (int i = 0; i < USES; i++) {
        ((struct arena *)arena)->users++;
        arena_free(arena);
    }
    return NULL;
}

/* A plan that is made in the background takes and drops the arena of plans in use. */
START_TEST(arena_has_users_in_several_threads)
{
    struct session session;
    pthread_t threads[2];
    session_open(&session, "0", KIND_PLAIN, NULL);
    struct arena *arena = session.trainer->replicas[0].plans.plans[0].plan->arena;
    const int users = arena->users;
    for (int i = 0; i < 2; i++) ck_assert_int_eq(pthread_create(&threads[i], NULL, use_arena, arena), 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    ck_assert_int_eq(arena->users, users);
    session_steps(&session, 1);
    session_close(&session);
}
END_TEST

struct asking {
    struct replica *replica;
    atomic_bool ends;
};

static void *ask_memory(void *argument)
{
    struct asking *asking = argument;
    while (!asking->ends) {
        plan_cache_lock(&asking->replica->plans);
        (void)replica_memory(asking->replica);
        plan_cache_unlock(&asking->replica->plans);
    }
    return NULL;
}

/* As the maker of a plan in the background does, while a step of the device is divided for the first time. */
START_TEST(memory_is_asked_for_during_a_step)
{
    struct session session;
    pthread_t thread;
    session_open(&session, "0,1", KIND_PLAIN, NULL);
    struct replica *replica = &session.trainer->replicas[1];
    struct asking asking = { .replica = replica };
    const uint64_t before = replica_memory(replica);
    ck_assert_int_eq(pthread_create(&thread, NULL, ask_memory, &asking), 0);
    replica->capacity = 3; /* of 8 samples */
    session_steps(&session, 2);
    asking.ends = true;
    pthread_join(thread, NULL);
    const size_t sums = (size_t)session.network->total_floats * sizeof(float);
    ck_assert_uint_ge(replica_memory(replica), before + sums);
    session_close(&session);
}
END_TEST

static Suite *suite_alone(void)
{
    Suite *suite = suite_create("alone");
    TCase *cases = cases_new(suite, "alone", setup, NULL);
    tcase_add_test(cases, measured_choices_are_kept);
    add_cases(cases, update_on_device_equals_host, (int)(sizeof(rules) / sizeof(*rules)));
    add_cases(cases, profiles_change_nothing, 2);
    add_cases(cases, same_again_gives_same_bytes, 4);
    tcase_add_test(cases, memory_limit);
    add_cases(cases, inference_follows_the_parameters, 2);
    tcase_add_test(cases, only_inference);
    tcase_add_test(cases, image_outputs);
    add_cases(cases, outputs_within_a_network, 4);
    tcase_add_test(cases, bad_targets);
    tcase_add_test(cases, no_parameters);
    tcase_add_test(cases, bad_calls);
    tcase_add_test(cases, no_room_for_the_next_step);
    tcase_add_test(cases, arena_has_users_in_several_threads);
    tcase_add_test(cases, memory_is_asked_for_during_a_step);
    return suite;
}

int main(void)
{
    static const struct {
        const char *name;
        Suite *(*make)(void);
    } suites[] = { { "devices", suite_devices }, { "alone", suite_alone }, { "adapt", suite_adapt },
        { "feeds", suite_feeds }, { "fit", suite_fit }, { "fp16", suite_fp16 }, { "objective", suite_objective },
        { "parameters", suite_parameters }, { "sequences", suite_sequences }, { "sync", suite_sync } };
    SRunner *runner = srunner_create(NULL);
    srunner_set_fork_status(runner, CK_NOFORK);
    sessions_share_runtimes();
    for (size_t i = 0; i < sizeof(suites) / sizeof(*suites); i++)
        if (is_wanted(suites[i].name)) srunner_add_suite(runner, suites[i].make());
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    sessions_end();
    return failed ? 1 : 0;
}
