/* Samples, parameters and gradients on their way between the host and devices with memory of their own. */
#include "tests/feeds.h"
#include "tests/train/test_devices.h"
#include "tests/train/training.h"

#include "base/bf16.h"
#include "base/memory.h"
#include "plan/commands.h"
#include "tutti_advanced.h"
#include "tutti_inspect.h"

#include <stdlib.h>
#include <string.h>

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

/* Steps on the batches 0, 1, 2 ... of the data, of each of which the one after it is announced. */
static void announced_step(struct session *session, int step)
{
    const int first = step * STEP_SAMPLES, next = first + STEP_SAMPLES;
    ASSERT_OK(tutti_train_prefetch(session->trainer, FEED_PAIR(images + next * PIXELS, labels + next), STEP_SAMPLES));
    ASSERT_OK(
        tutti_train_step(session->trainer, FEED_PAIR(images + first * PIXELS, labels + first), STEP_SAMPLES, NULL));
}

/* Samples that are sent during the step before change no byte; the step uses them as they were when they were
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
    tutti_device_times times = { .size = sizeof(times) };
    ASSERT_OK(tutti_report_times(apart.trainer, 0, &times));
    ck_assert(times.sent_overlapped_s >= 0 && times.sent_overlapped_s <= times.sent_s);
    session_steps(&plain, 1); /* batch 0, where 3 was announced */
    session_steps(&apart, 1);
    same_bytes(&plain, &apart);
    session_close(&plain);
    session_close(&apart);
}
END_TEST

/* A step that is refused ends what was announced: its arrays may have other contents when they come again. */
START_TEST(refused_steps_reset_the_next)
{
    float batch[2][STEP_SAMPLES * PIXELS];
    int32_t targets[2][STEP_SAMPLES];
    struct session plain, apart;
    session_open_apart(&plain, _i % 2 ? "0,1" : "0", KIND_NORM, NULL);
    session_open_apart(&apart, _i % 2 ? "0,1" : "0", KIND_NORM, NULL);
    for (int b = 0; b < 2; b++) {
        memcpy(batch[b], images + b * STEP_SAMPLES * PIXELS, sizeof(batch[b]));
        memcpy(targets[b], labels + b * STEP_SAMPLES, sizeof(targets[b]));
    }
    ASSERT_OK(tutti_train_prefetch(apart.trainer, FEED_PAIR(batch[1], targets[1]), STEP_SAMPLES));
    ASSERT_OK(tutti_train_step(apart.trainer, FEED_PAIR(batch[0], targets[0]), STEP_SAMPLES, NULL));
    if (_i / 2 == 0)
        fails_with(tutti_train_step(apart.trainer, FEED_PAIR(batch[1], targets[1]), STEP_SAMPLES + 1, NULL),
            TUTTI_INVALID, "tutti_training.batch");
    if (_i / 2 == 1)
        fails_with(tutti_train_step(apart.trainer, FEED_ONE(batch[1]), STEP_SAMPLES, NULL), TUTTI_INVALID, "not fed");
    if (_i / 2 == 2)
        fails_with(tutti_train_fetch(apart.trainer, FEED_PAIR(batch[1], targets[1]), STEP_SAMPLES, NULL, 0, NULL),
            TUTTI_INVALID, "fetch_in_training");
    for (int i = 0; i < STEP_SAMPLES * PIXELS; i++) batch[1][i] *= 2;
    ASSERT_OK(tutti_train_step(apart.trainer, FEED_PAIR(batch[1], targets[1]), STEP_SAMPLES, NULL));
    ASSERT_OK(tutti_train_step(plain.trainer, FEED_PAIR(batch[0], targets[0]), STEP_SAMPLES, NULL));
    ASSERT_OK(tutti_train_step(plain.trainer, FEED_PAIR(batch[1], targets[1]), STEP_SAMPLES, NULL));
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

/* Together the ranges cover the arena once, in its order, and none is wanted before the one before it. */
static void check_needs(const struct plan *plan)
{
    int64_t end = 0;
    size_t position = 0;
    const struct command *need;
    while ((need = command_next(plan, COMMAND_PIECE, &position))) {
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
    tutti_device_times times = { .size = sizeof(times) };
    ASSERT_OK(tutti_report_times(session->trainer, device, &times));
    ck_assert_double_eq(times.received_bytes, received);
    ck_assert_double_gt(times.sent_bytes, received); /* parameters, and samples as well */
}

/* Parameters and gradients that travel in ranges, in parallel with the launches that need others, change no byte;
 * forward does not wait for the second layer's weights to begin. */
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
        ck_assert_uint_le(launches_before(plan, COMMAND_PIECE, 2), plan->launches.count);
        ck_assert_uint_le(launches_before(plan, COMMAND_BUCKET, 2), plan->launches.count);
        ck_assert_uint_lt(launches_before(plan, COMMAND_PIECE, 0), launches_before(plan, COMMAND_PIECE, 1));
        ck_assert_uint_lt(launches_before(plan, COMMAND_PIECE, 1) + 1,
            launches_before(plan, COMMAND_BUCKET, 0)); /* still in forward */
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
    const tutti_network *network = replica->setup->network;
    const size_t total = (size_t)network->total_floats;
    float *gradients = memory_new(total, sizeof(float));
    ck_assert_ptr_nonnull(gradients);
    ASSERT_OK(buffer_read(replica->device, gradients_last(&replica->gradients), 0, gradients, total * sizeof(float)));
    for (int64_t i = 0; i < network->trained_floats; i++) gradients[i] = bf16_to_float(bf16_from_float(gradients[i]));
    return gradients;
}

static const tutti_advanced_options bf16_wire = { .wire = TUTTI_BF16 };

/* Each device's gradients are rounded and those of parameters only, their sums are not, whatever leaves the device:
 * buckets, or the sum over micro-batches. To the bit. */
START_TEST(half_precision_on_the_wire)
{
    const double unequal[2] = { 3, 2 };
    struct session session;
    session_open_apart(&session, "0,1", _i == 2 ? KIND_WIDE : KIND_NORM,
        &(tutti_training) { .shares = unequal, .micro_batch = _i == 1 ? 5 : 0, .advanced = &bf16_wire });
    const tutti_network *network = session.network;
    const size_t bytes = (size_t)network->total_floats * sizeof(float);
    float *wanted = memory_new((size_t)network->total_floats, sizeof(float));
    ck_assert_ptr_nonnull(wanted);
    memcpy(wanted, session.trainer->store->master.parameters, bytes);
    session_steps(&session, 1);
    float *a = gradients_of(&session.trainer->replicas[0]), *b = gradients_of(&session.trainer->replicas[1]);
    for (size_t k = 0; k < network->parameter_count; k++) {
        const struct parameter *p = &network->parameters[k];
        for (int64_t i = p->offset; i < p->offset + p->elements; i++) {
            const float sum = a[i] + b[i];
            wanted[i] = p->kind == PARAMETER_TRAINED ? wanted[i] - 0.05f * sum
                                                     : (1 - p->momentum) * wanted[i] + p->momentum * sum;
            ck_assert_msg(wanted[i] == session.trainer->store->master.parameters[i], "%s, element %lld: %.9g, not %.9g",
                p->name, (long long)(i - p->offset), session.trainer->store->master.parameters[i], wanted[i]);
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
    const tutti_training plain = { .momentum = 0.9f }, half = { .momentum = 0.9f, .advanced = &bf16_wire };
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

void transfers_together(TCase *cases)
{
    add_cases(cases, memory_of_their_own, 4);
    tcase_add_test(cases, ranges_of_parameters);
    add_cases(cases, half_precision_on_the_wire, 3);
    tcase_add_test(cases, half_precision_trains_alike);
    add_cases(cases, samples_of_the_next_step, 4);
    add_cases(cases, refused_steps_reset_the_next, 6);
}

void transfers_alone(TCase *cases)
{
    tcase_add_test(cases, no_room_for_the_next_step);
}
