/* Another division of the batch over two ranks, run by mpirun: plans for it are made while steps go on. Rank 0 has two
 * devices, rank 1 one.
 *
 *   test_divisions change    all change at the same step, and nobody has to make a plan then
 *   test_divisions refuse    rank 1 has no room for a larger part: all keep what they have
 *   test_divisions hang      a plan is never finished, first of one of rank 0's two devices, then of rank 1's only one
 */
#include "parallel/ranks.h"
#include "tests/feeds.h"
#include "tests/hosts/ranks.h"

#include <stdlib.h>
#include <time.h>

/* Whole batches only, so that no other sizes occur; a step is short compared with what making a plan takes. */
enum { FITTED = 4 * STEP_SAMPLES, EPOCHS = 1 << 20, MOST_STEPS = 20000 };
#define PAUSE_S 0.002
/* Seconds: several times what a plan takes whose programs are in the caches. */
#define BUILD_LIMIT_S 5.0

static int pause_briefly(void *user, const tutti_progress *progress)
{
    (void)user, (void)progress;
    nanosleep(&(struct timespec) { .tv_nsec = (long)(PAUSE_S * 1e9) }, NULL);
    return 0;
}

static void steps(struct session *session, int count)
{
    const tutti_fitting fitting = { .epochs = EPOCHS, .steps = count, .no_shuffle = true, .progress = pause_briefly };
    ASSERT_OK(tutti_fit(session->trainer, FEED_PAIR(images, labels), FITTED, &fitting));
}

/* Whatever the times say, divisions change by order alone. */
static void open_ranks(struct session *session)
{
    const tutti_training training = {
        .momentum = 0.9f, .learning_rate = 0.001f, .sharing = TUTTI_SHARES_AUTO, .hosts = hosts
    };
    session_open_automatic(session, hosts->rank ? "0" : "0,1", KIND_PLAIN, &training);
    session->trainer->ranks->division.balance.cold = MOST_STEPS;
    if (hosts->rank == 0) session->trainer->balance.cold = MOST_STEPS;
    steps(session, 3);
}

static void order(struct session *session, int64_t first)
{
    struct ranks *ranks = session->trainer->ranks;
    ranks->division.balance.wanted[0] = first;
    ranks->division.balance.wanted[1] = STEP_SAMPLES - first;
    ranks->division.wanted = hosts->rank == 0;
}

/* Trains until the ranks have taken the division or given it up, and some steps more. Returns the number of steps. */
static int64_t go_on(struct session *session)
{
    const struct ranks *ranks = session->trainer->ranks;
    const int64_t before = session->trainer->state.position.steps;
    do {
        steps(session, 1);
        ck_assert_int_lt(session->trainer->state.position.steps - before, MOST_STEPS);
    } while (ranks->division.preparing || ranks->division.next_step > 0);
    const int64_t taken = session->trainer->state.position.steps - before;
    steps(session, 3);
    return taken;
}

/* Checks the rank's samples of the last step. built(): seconds that plans have taken so far. */
static void check_parts(struct session *session, int64_t first)
{
    int64_t samples = 0;
    for (int i = 0; i < session->trainer->count; i++) samples += session->trainer->device_division.parts[i];
    ck_assert_int_eq(samples, hosts->rank ? STEP_SAMPLES - first : first);
}

static double built(const struct session *session)
{
    double seconds = 0;
    for (int i = 0; i < session->trainer->count; i++) seconds += session->trainer->replicas[i].report.build_s;
    return seconds;
}

static void change(void)
{
    struct session session;
    open_ranks(&session);
    check_parts(&session, STEP_SAMPLES / 2);
    static const int64_t firsts[] = { 6, 12, 6 };
    for (int i = 0; i < 3; i++) {
        order(&session, firsts[i]);
        struct ranks *ranks = session.trainer->ranks;
        do { /* until all are ready: nothing is made any more from then on */
            steps(&session, 1);
        } while (ranks->division.preparing);
        const double before = built(&session);
        go_on(&session);
        check_parts(&session, firsts[i]);
        ck_assert_msg(built(&session) == before, "a plan was made when the division was taken");
        if (session.trainer->options.automatic) ck_assert_int_eq(session.trainer->balance.batch, firsts[i]);
    }
    same_on_ranks(&session);
    session_close(&session);
}

static void refuse(void)
{
    struct session session;
    open_ranks(&session);
    struct device *device = &session.runtime->devices[0];
    const uint64_t bytes = device->can.memory_bytes;
    if (hosts->rank == 1) device->can.memory_bytes = 0;
    order(&session, 3);
    go_on(&session);
    device->can.memory_bytes = bytes;
    check_parts(&session, STEP_SAMPLES / 2);
    order(&session, 10); /* a smaller part for the one that refused */
    go_on(&session);
    check_parts(&session, 10);
    same_on_ranks(&session);
    session_close(&session);
}

/* Makes plans for these numbers of samples once, so that making them again takes hardly any time. */
static void fill_caches(struct session *session, const int64_t *samples, int count)
{
    for (int i = 0; i < count; i++) {
        struct plan *plan = NULL;
        ASSERT_OK(replica_explain(
            &session->trainer->replicas[0], (struct plan_key) { PLAN_TRAIN, { samples[i], 0 } }, &plan));
        plan_free(plan);
    }
}

/* The stuck device's plan waits for the end of another one's making. */
static void order_stuck(struct session *session, struct replica *stuck, int rank, int64_t first)
{
    session->trainer->watchdog.build_limit_s = hosts->rank == rank ? BUILD_LIMIT_S : 0;
    if (hosts->rank == rank) plan_cache_lock(&stuck->plans);
    order(session, first);
    ck_assert_int_gt(go_on(session), 10);
    check_parts(session, STEP_SAMPLES / 2);
    ck_assert(replica_is_lost(stuck) == (hosts->rank == 0)); /* rank 0 has another one; rank 1 goes on by what it has */
}

static void hang(void)
{
    struct session session;
    open_ranks(&session);
    struct replica *stuck = hosts->rank == 0 ? &session.trainer->replicas[1] : &session.trainer->replicas[0];
    if (hosts->rank == 0) fill_caches(&session, (const int64_t[]) { 5, 4 }, 2);
    if (hosts->rank == 1) fill_caches(&session, (const int64_t[]) { 6, 12 }, 2);
    order_stuck(&session, stuck, 0, 10);
    order_stuck(&session, stuck, 1, 4);
    same_on_ranks(&session);
}

const struct mode modes[] = { { "change", change }, { "refuse", refuse }, { "hang", hang }, { NULL } };
