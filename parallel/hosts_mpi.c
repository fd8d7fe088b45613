/* Several processes, by MPI.
 *
 * Waiting tests and sleeps in turns: MPI's own waiting keeps a core busy, which an OpenCL device of this host may need.
 * Open MPI moves collective operations on only inside its calls, so hosts_progress() is what lets sums overlap with
 * backward.
 *
 * Sums are made by MPI_Iallreduce, which for the same number of ranks and values adds in the same order each time
 * (MPI 3.1, section 5.9.1, advises so, and Open MPI does), and gives the same bytes to all. */
#include "base/bf16.h"
#include "base/memory.h"
#include "base/threads.h"
#include "parallel/hosts.h"
#include "tutti_hosts.h"

#include <math.h>
#include <mpi.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

/* Tests of an operation before the first nap, and how long naps are. */
enum { TESTS = 30 };
#define NAP_LEAST_S 20e-6
#define NAP_MOST_S 1e-3
/* A nap counts as no longer than this, so that a stopped process does not take the others for dead. */
#define SLICE_S 0.05
/* Signs of life that a rank sends within limit_s. */
#define SIGNS 8
enum { SIGN_TAG = 1 };

struct link {
    /* Rounds have their own communicator, because all ranks must begin the operations on one communicator in the same
     * order. */
    MPI_Comm communicator, rounds;
    bool ours;        /* MPI was initialised here */
    double *silent;   /* seconds for which this rank has waited without a sign of each rank */
    double last_sign; /* of this rank, by clock_seconds() */
    MPI_Op add_bf16;
    MPI_Request *sums; /* under way */
    size_t sum_count, sum_capacity;
    MPI_Request round;
    double round_seen; /* when it was asked for last */
};

#define MPI_TRY(call, what)                           \
    do {                                              \
        const int error_ = (call);                    \
        if (error_ != MPI_SUCCESS) {                  \
            status = mpi_failed(hosts, error_, what); \
            goto done;                                \
        }                                             \
    } while (0)

static tutti_status mpi_failed(struct tutti_hosts *hosts, int error, const char *what)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    membership_lose_all(&hosts->members); /* MPI does not tell which one */
    MPI_Error_string(error, text, &length);
    return fail(TUTTI_HOST_LOST, "%s with the other hosts failed: %s", what, text);
}

/* ----------------------------------------------------------------------------------------------------- joining ---- */

/* Returns whether this process was started as one of several. Called before MPI is initialised, which takes time. */
static bool is_started(void)
{
    static const char *const signs[] = { "OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "PMI_SIZE" };
    int initialised = 0;
    for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++)
        if (getenv(signs[i])) return true;
    MPI_Initialized(&initialised);
    return initialised;
}

/* Only one thread at a time calls MPI, but not always the same one. */
static tutti_status initialise(struct tutti_hosts *hosts)
{
    tutti_status status = TUTTI_OK;
    int initialised = 0, finalised = 0, level = 0;
    MPI_Finalized(&finalised);
    if (finalised)
        FAIL(TUTTI_INVALID,
            "MPI was finalised in this process and cannot be initialised again: call tutti_hosts_close() only once, at "
            "the end");
    MPI_Initialized(&initialised);
    if (!initialised) {
        MPI_TRY(MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level), "beginning");
        hosts->link->ours = true;
    } else {
        MPI_TRY(MPI_Query_thread(&level), "beginning");
    }
    if (level < MPI_THREAD_SERIALIZED)
        FAIL(TUTTI_UNSUPPORTED,
            "MPI was initialised with the thread level %d: initialise it with MPI_THREAD_SERIALIZED (%d)", level,
            (int)MPI_THREAD_SERIALIZED);
done:
    return status;
}

/* Two numbers are added as floats, and rounded. */
static void add_bf16(void *in, void *sums, int *count, MPI_Datatype *type)
{
    const uint16_t *restrict a = in;
    uint16_t *restrict b = sums;
    (void)type;
    for (int i = 0; i < *count; i++) b[i] = bf16_from_float(bf16_to_float(a[i]) + bf16_to_float(b[i]));
}

tutti_status link_open(struct tutti_hosts *hosts)
{
    tutti_status status = TUTTI_OK;
    hosts->count = 1;
    if (!is_started()) return TUTTI_OK;
    hosts->link = memory_new(1, sizeof(*hosts->link));
    if (!hosts->link) return TUTTI_NO_MEMORY;
    hosts->link->communicator = hosts->link->rounds = MPI_COMM_NULL;
    hosts->link->round = MPI_REQUEST_NULL;
    hosts->link->add_bf16 = MPI_OP_NULL;
    TRY(initialise(hosts));
    /* A separate communicator: messages are not mixed with the program's, and failures are returned instead of ending
     * the process. */
    MPI_TRY(MPI_Comm_dup(MPI_COMM_WORLD, &hosts->link->communicator), "beginning");
    MPI_TRY(MPI_Comm_set_errhandler(hosts->link->communicator, MPI_ERRORS_RETURN), "beginning");
    MPI_TRY(MPI_Comm_dup(hosts->link->communicator, &hosts->link->rounds), "beginning");
    MPI_TRY(MPI_Op_create(add_bf16, 1, &hosts->link->add_bf16), "beginning");
    MPI_TRY(MPI_Comm_rank(hosts->link->communicator, &hosts->rank), "beginning");
    MPI_TRY(MPI_Comm_size(hosts->link->communicator, &hosts->count), "beginning");
    hosts->link->silent = memory_new((size_t)hosts->count, sizeof(double));
    if (!hosts->link->silent) status = TUTTI_NO_MEMORY;
    if (status == TUTTI_OK) status = membership_open(&hosts->members, hosts->count);
done:
    return status;
}

/* -------------------------------------------------------------------------------------------- signs of life ---- */

static tutti_status send_signs(struct tutti_hosts *hosts)
{
    tutti_status status = TUTTI_OK;
    struct link *link = hosts->link;
    const double now = clock_seconds();
    if (now - link->last_sign < hosts->limit_s / SIGNS) return TUTTI_OK;
    link->last_sign = now;
    for (int i = 0; i < hosts->count; i++) {
        MPI_Request request;
        if (i == hosts->rank) continue;
        MPI_TRY(MPI_Isend(NULL, 0, MPI_BYTE, i, SIGN_TAG, link->communicator, &request), "talking");
        MPI_TRY(MPI_Request_free(&request), "talking");
    }
done:
    return status;
}

static tutti_status receive_signs(struct tutti_hosts *hosts)
{
    tutti_status status = TUTTI_OK;
    struct link *link = hosts->link;
    while (true) {
        int there = 0;
        MPI_Status from;
        MPI_TRY(MPI_Iprobe(MPI_ANY_SOURCE, SIGN_TAG, link->communicator, &there, &from), "listening");
        if (!there) break;
        MPI_TRY(
            MPI_Recv(NULL, 0, MPI_BYTE, from.MPI_SOURCE, SIGN_TAG, link->communicator, MPI_STATUS_IGNORE), "listening");
        link->silent[from.MPI_SOURCE] = 0;
    }
done:
    return status;
}

/* After a nap: exchanges signs of life, and loses ranks that are silent for too long. */
static tutti_status look_for_the_dead(struct tutti_hosts *hosts, double napped)
{
    tutti_status status = TUTTI_OK;
    TRY(send_signs(hosts));
    TRY(receive_signs(hosts));
    for (int i = 0; i < hosts->count; i++) {
        if (i == hosts->rank) continue;
        hosts->link->silent[i] += fmin(napped, SLICE_S);
        if (hosts->link->silent[i] <= hosts->limit_s) continue;
        membership_lose(&hosts->members, i);
        FAIL(TUTTI_HOST_LOST,
            "rank %d has not answered for %.3g seconds: its process hangs, or its host or the network is down", i,
            hosts->limit_s);
    }
done:
    return status;
}

/* ----------------------------------------------------------------------------------------------------- waiting ---- */

static double nap(int turn)
{
    if (turn < TESTS) {
        sched_yield();
        return 0;
    }
    const double wanted = fmin(NAP_LEAST_S * (1 + (turn - TESTS) / 4), NAP_MOST_S), start = clock_seconds();
    nanosleep(&(struct timespec) { .tv_nsec = (long)(1e9 * wanted) }, NULL);
    return clock_seconds() - start;
}

/* Waits until all requests are complete, and frees them. */
static tutti_status wait_for(struct tutti_hosts *hosts, MPI_Request *requests, size_t count)
{
    tutti_status status = TUTTI_OK;
    if (!hosts_are_whole(hosts)) return fail(TUTTI_HOST_LOST, "the connection to the other hosts was lost before");
    for (int i = 0; i < hosts->count; i++) hosts->link->silent[i] = 0;
    for (int turn = 0;; turn++) {
        int done = 0;
        MPI_TRY(MPI_Testall((int)count, requests, &done, MPI_STATUSES_IGNORE), "working");
        if (done) break;
        TRY(look_for_the_dead(hosts, nap(turn)));
    }
done:
    return status;
}

bool hosts_progress(struct tutti_hosts *hosts)
{
    struct link *link = hosts->link;
    int done = 0;
    if (!hosts_are_whole(hosts)) return false;
    /* A failure here occurs again where the operation is waited for. */
    (void)send_signs(hosts);
    (void)receive_signs(hosts);
    if (link->sum_count == 0) return false;
    (void)MPI_Testall((int)link->sum_count, link->sums, &done, MPI_STATUSES_IGNORE);
    if (done) link->sum_count = 0;
    return !done;
}

/* -------------------------------------------------------------------------------------------------- operations ---- */

static tutti_status begin_sum(
    struct tutti_hosts *hosts, const void *values, void *sums, int64_t count, MPI_Datatype type, MPI_Op operation)
{
    tutti_status status = TUTTI_OK;
    struct link *link = hosts->link;
    void *array = link->sums;
    if (!hosts_are_whole(hosts)) return fail(TUTTI_HOST_LOST, "the connection to the other hosts was lost before");
    TRY(memory_grow(&array, &link->sum_capacity, link->sum_count + 1, sizeof(*link->sums)));
    link->sums = array;
    MPI_TRY(MPI_Iallreduce(values, sums, (int)count, type, operation, link->communicator, &link->sums[link->sum_count]),
        "summing gradients");
    link->sum_count++;
done:
    return status;
}

tutti_status hosts_start_all_reduce(struct tutti_hosts *hosts, const float *values, float *sums, int64_t count)
{
    return begin_sum(hosts, values, sums, count, MPI_FLOAT, MPI_SUM);
}

tutti_status hosts_start_all_reduce_bf16(
    struct tutti_hosts *hosts, const uint16_t *values, uint16_t *sums, int64_t count)
{
    return begin_sum(hosts, values, sums, count, MPI_UINT16_T, hosts->link->add_bf16);
}

tutti_status hosts_wait_all_reduces(struct tutti_hosts *hosts)
{
    const tutti_status status = wait_for(hosts, hosts->link->sums, hosts->link->sum_count);
    hosts->link->sum_count = 0;
    return status;
}

tutti_status hosts_gather(struct tutti_hosts *hosts, const void *mine, void *all, size_t bytes)
{
    tutti_status status = TUTTI_OK;
    MPI_Request request;
    if (!hosts_are_whole(hosts)) return fail(TUTTI_HOST_LOST, "the connection to the other hosts was lost before");
    MPI_TRY(MPI_Iallgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, hosts->link->communicator, &request),
        "agreeing");
    TRY(wait_for(hosts, &request, 1));
done:
    return status;
}

tutti_status hosts_broadcast(struct tutti_hosts *hosts, int root, void *data, size_t bytes)
{
    enum { PIECE = 1 << 24 }; /* MPI counts in int */
    tutti_status status = TUTTI_OK;
    if (!hosts_are_whole(hosts)) return fail(TUTTI_HOST_LOST, "the connection to the other hosts was lost before");
    for (size_t done_bytes = 0; done_bytes < bytes; done_bytes += PIECE) {
        MPI_Request request;
        const size_t left = bytes - done_bytes;
        MPI_TRY(MPI_Ibcast((unsigned char *)data + done_bytes, (int)(left < PIECE ? left : PIECE), MPI_BYTE, root,
                    hosts->link->communicator, &request),
            "sharing");
        TRY(wait_for(hosts, &request, 1));
    }
done:
    return status;
}

tutti_status hosts_round(struct tutti_hosts *hosts, const void *mine, void *all, size_t bytes)
{
    tutti_status status = TUTTI_OK;
    struct link *link = hosts->link;
    if (!hosts_are_whole(hosts)) return fail(TUTTI_HOST_LOST, "the connection to the other hosts was lost before");
    MPI_TRY(MPI_Iallgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, link->rounds, &link->round),
        "synchronising");
    for (int i = 0; i < hosts->count; i++) link->silent[i] = 0;
    link->round_seen = clock_seconds();
done:
    return status;
}

tutti_status hosts_round_test(struct tutti_hosts *hosts, bool *over)
{
    tutti_status status = TUTTI_OK;
    struct link *link = hosts->link;
    int done = 0;
    *over = false;
    if (!hosts_are_whole(hosts)) return fail(TUTTI_HOST_LOST, "the connection to the other hosts was lost before");
    MPI_TRY(MPI_Test(&link->round, &done, MPI_STATUS_IGNORE), "synchronising");
    *over = done != 0;
    if (done) goto done;
    const double now = clock_seconds(), passed = now - link->round_seen;
    link->round_seen = now;
    status = look_for_the_dead(hosts, passed);
done:
    return status;
}

tutti_status hosts_round_wait(struct tutti_hosts *hosts)
{
    return wait_for(hosts, &hosts->link->round, 1);
}

/* ----------------------------------------------------------------------------------------------------- leaving ---- */

/* Receives all signs of life that were sent, because MPI_Finalize would wait for them. All ranks have sent their last
 * sign when the second barrier completes. */
static tutti_status part(struct tutti_hosts *hosts)
{
    tutti_status status = TUTTI_OK;
    for (int i = 0; i < 2; i++) {
        MPI_Request request;
        MPI_TRY(MPI_Ibarrier(hosts->link->communicator, &request), "ending");
        if (i == 1) hosts->link->last_sign = INFINITY;
        TRY(wait_for(hosts, &request, 1));
    }
    TRY(receive_signs(hosts));
    MPI_TRY(MPI_Op_free(&hosts->link->add_bf16), "ending");
    MPI_TRY(MPI_Comm_free(&hosts->link->rounds), "ending");
    MPI_TRY(MPI_Comm_free(&hosts->link->communicator), "ending");
done:
    return status;
}

void link_close(struct tutti_hosts *hosts)
{
    struct link *link = hosts->link;
    if (!link) return;
    if (membership_left(&hosts->members) > 0 && hosts_are_whole(hosts) && part(hosts) == TUTTI_OK && link->ours)
        MPI_Finalize();
    membership_close(&hosts->members);
    free(link->silent);
    free(link->sums);
    free(link);
}
