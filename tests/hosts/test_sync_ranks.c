/* Batch normalisation over the whole batch of two ranks, run by mpirun: rank 0 has two devices, rank 1 one.
 *
 *   test_sync_ranks equal    any division ends like one device, and both ranks with the same bytes
 *   test_sync_ranks faults   a device of rank 0 fails, hangs or computes wrong between two sync points; data are bad;
 *                            rank 1 loses its only device
 *   test_sync_ranks silent   rank 1 does not join a sync point */
#include "tests/feeds.h"
#include "tests/hosts/ranks.h"

#include "base/clock.h"
#include "parallel/ranks.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* As in tests/train/test_sync.c. */
#define ROUNDING 5e-5
enum { STEPS = 3, FITTED = 4 * STEP_SAMPLES + 2 };

/* Shares of rank 0's two devices and of rank 1's one. With the second division, rank 1 has no part of the last, small
 * batch. */
static const double divisions[][3] = { { 1, 1, 2 }, { 8, 7, 1 } };

static void open_ranks(struct session *session, enum kind kind, const double *division, double step_limit_s)
{
    const tutti_training training = { .momentum = 0.9f,
        .shares = hosts->rank ? division + 2 : division,
        .sync_batchnorm = true,
        .step_limit_s = step_limit_s,
        .hosts = hosts };
    session_open(session, hosts->rank ? "0" : "0,1", kind, &training);
}

static void equal(void)
{
    static const enum kind kinds[] = { KIND_NORM, KIND_NORM, KIND_APART, KIND_RESIDUAL };
    static const int division[] = { 0, 1, 0, 0 };
    const tutti_fitting fitting = { .no_shuffle = true };
    for (int i = 0; i < 4; i++) {
        struct session one, ranks;
        session_open(&one, "0", kinds[i], NULL);
        open_ranks(&ranks, kinds[i], divisions[division[i]], 0);
        ASSERT_OK(tutti_fit(one.trainer, FEED_PAIR(images, labels), FITTED, &fitting));
        ASSERT_OK(tutti_fit(ranks.trainer, FEED_PAIR(images, labels), FITTED, &fitting));
        close_to(&one, &ranks, ROUNDING);
        same_on_ranks(&ranks);
        session_close(&one);
        session_close(&ranks);
    }
}

/* --------------------------------------------------------------------------------------------------- faults ---- */

static tutti_status break_down(struct device *device, void *state, cl_event *event)
{
    (void)state, (void)event;
    return fail(TUTTI_DEVICE, "the test broke '%s'", device->can.name);
}

static tutti_status hang(struct device *device, void *state, cl_event *event)
{
    (void)state, (void)event;
    nanosleep(&(struct timespec) { .tv_sec = 4 }, NULL);
    return break_down(device, NULL, NULL);
}

static tutti_status spoil(struct device *device, void *state, cl_event *event)
{
    (void)event;
    return buffer_fill(device, *(cl_mem *)state, 0, sizeof(float), 0x7fc00000u);
}

typedef tutti_status (*fault)(struct device *device, void *state, cl_event *event);

static struct plan *plan_of(struct session *session, int device)
{
    struct replica *replica = &session->trainer->replicas[device];
    const struct plan_key key = { PLAN_TRAIN, { session->trainer->device_division.parts[device], 0 } };
    return plan_cache_find(&replica->plans, key)->plan;
}

/* Breaks the launch before a sync point, which computes what is handed in. */
static void break_before_sync(struct session *session, int device, size_t number, fault call)
{
    struct plan *plan = plan_of(session, device);
    const struct sync_point *point = &plan->launches.sync_points[number];
    struct launch *launch = &plan->launches.launches[point->before - 1];
    launch->call = call;
    free(launch->state);
    launch->state = malloc(sizeof(cl_mem));
    ck_assert_ptr_nonnull(launch->state);
    memcpy(launch->state, &point->buffer, sizeof(cl_mem));
}

static tutti_status rank_step(struct session *session, int step, const float *samples)
{
    const int first = step * STEP_SAMPLES + hosts->rank * STEP_SAMPLES / 2;
    return tutti_train_step(session->trainer, FEED_PAIR(samples + first * PIXELS, labels + first), STEP_SAMPLES / 2,
        &(tutti_metrics) { 0 });
}

/* The rank's other device computes its part; rank 1's device, which has waited for it, computes its own part
 * again. */
static void lose_device(fault call, int quarter)
{
    struct session one, ranks;
    session_open(&one, "0", KIND_RESIDUAL, NULL);
    open_ranks(&ranks, KIND_RESIDUAL, divisions[0], call == hang ? 1 : 0);
    session_steps(&one, STEPS);
    ASSERT_OK(rank_step(&ranks, 0, images));
    const size_t points = plan_of(&ranks, 0)->launches.sync_point_count;
    if (hosts->rank == 0) break_before_sync(&ranks, 1, points * (size_t)quarter / 4, call);
    for (int step = 1; step < STEPS; step++) ASSERT_OK(rank_step(&ranks, step, images));
    if (hosts->rank == 0)
        ck_assert(replica_is_lost(&ranks.trainer->replicas[1]) &&
            ranks.trainer->replicas[1].worker.abandoned == (call == hang));
    ck_assert(!replica_is_lost(&ranks.trainer->replicas[0]));
    close_to(&one, &ranks, ROUNDING);
    same_on_ranks(&ranks);
    session_close(&one);
    if (call != hang) session_close(&ranks); /* else its thread is there, and the program's end takes it along */
}

/* Nothing is updated, and nobody is blamed. */
static void bad_data(void)
{
    static float bad[SAMPLES * PIXELS];
    struct session one, ranks;
    session_open(&one, "0", KIND_RESIDUAL, NULL);
    open_ranks(&ranks, KIND_RESIDUAL, divisions[0], 0);
    session_steps(&one, 2);
    ASSERT_OK(rank_step(&ranks, 0, images));
    memcpy(bad, images, sizeof(bad));
    bad[(STEP_SAMPLES + STEP_SAMPLES / 2 + 1) * PIXELS] = NAN;
    ck_assert_int_eq(rank_step(&ranks, 1, bad), TUTTI_NOT_FINITE);
    for (int i = 0; i < ranks.trainer->count; i++) ck_assert(!replica_is_lost(&ranks.trainer->replicas[i]));
    ASSERT_OK(rank_step(&ranks, 1, images));
    close_to(&one, &ranks, ROUNDING);
    session_close(&one);
    session_close(&ranks);
}

/* Rank 0 waits at a sync point while the last device of rank 1 fails. */
static void lose_rank(void)
{
    struct session ranks;
    open_ranks(&ranks, KIND_RESIDUAL, divisions[0], 0);
    ASSERT_OK(rank_step(&ranks, 0, images));
    if (hosts->rank == 1) break_before_sync(&ranks, 0, 2, break_down);
    ck_assert_int_eq(rank_step(&ranks, 1, images), TUTTI_DEVICE);
    ck_assert_msg(strstr(tutti_message(NULL), "rank 1: "), "%s", tutti_message(NULL));
    ck_assert(!replica_is_lost(&ranks.trainer->replicas[0]));
    session_close(&ranks);
}

static void faults(void)
{
    lose_device(break_down, 1); /* forward */
    lose_device(break_down, 3); /* backward */
    lose_device(spoil, 1);
    lose_device(spoil, 3);
    bad_data();
    lose_rank();
    lose_device(hang, 2);
}

/* Stops the whole process, as one that hangs; mpirun ends it when the other one has left. */
static tutti_status fall_silent(struct device *device, void *state, cl_event *event)
{
    for (const pid_t self = getpid(); kill(self, SIGSTOP) == 0;) { } /* mpirun hands on a SIGCONT of its own */
    return break_down(device, state, event);
}

/* A rank that waits at a sync point notices it within the limit and a moment. */
static void silent(void)
{
    struct session ranks;
    open_ranks(&ranks, KIND_RESIDUAL, divisions[0], 0);
    ASSERT_OK(rank_step(&ranks, 0, images));
    const double start = clock_seconds();
    if (hosts->rank == 1) break_before_sync(&ranks, 0, 2, fall_silent);
    const tutti_status status = rank_step(&ranks, 1, images);
    ck_assert_int_eq(status, TUTTI_HOST_LOST);
    ck_assert_msg(strstr(tutti_message(NULL), "rank 1 has not answered"), "%s", tutti_message(NULL));
    ck_assert_double_lt(clock_seconds() - start, 20);
}

const struct mode modes[] = { { "equal", equal }, { "faults", faults }, { "silent", silent, 2 }, { NULL } };
