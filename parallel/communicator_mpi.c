/* Several processes, by MPI.
 *
 * Waiting tests and sleeps in turns: MPI's own waiting keeps a core busy, which an OpenCL device of this host may need.
 * Open MPI moves collective operations on only inside its calls, so comm_progress() is what lets sums overlap with
 * backward.
 *
 * Sums are made by MPI_Iallreduce, which for the same number of ranks and values adds in the same order each time
 * (MPI 3.1, section 5.9.1, advises so, and Open MPI does), and gives the same bytes to all. */
#include "base/bf16.h"
#include "base/clock.h"
#include "base/memory.h"
#include "parallel/communicator.h"
#include "parallel/mpi_library.h"
#include "tutti_hosts.h"

#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

/* Tests of an operation before the first sleep, and how long sleeps are. */
enum { TESTS = 30 };
#define BACKOFF_LEAST_S 20e-6
#define BACKOFF_MOST_S 1e-3
/* A sleep counts as no longer than this, so that a stopped process does not take the others for dead. */
#define SLICE_S 0.05
/* Heartbeats that a rank sends within limit_s. */
#define HEARTBEATS 8
enum { HEARTBEAT_TAG = 1 };

struct link {
    /* Rounds have their own communicator, because all ranks must begin the operations on one communicator in the same
     * order. */
    MPI_Comm communicator, gathers;
    bool ours;             /* MPI was initialised here */
    double *silent;        /* seconds for which this rank has waited without a heartbeat of each rank */
    double last_heartbeat; /* of this rank, by clock_seconds() */
    MPI_Op add_bf16;
    MPI_Request *sums; /* under way */
    size_t sum_count, sum_capacity;
    MPI_Request gather;
    double gather_seen; /* when it was asked for last */
};

#define MPI_TRY(call, what)                          \
    do {                                             \
        const int error_ = (call);                   \
        if (error_ != MPI_SUCCESS) {                 \
            status = mpi_failed(comm, error_, what); \
            goto done;                               \
        }                                            \
    } while (0)

static tutti_status mpi_failed(struct tutti_hosts *comm, int error, const char *what)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    membership_lose_all(&comm->members); /* MPI does not tell which one */
    MPI_Error_string(error, text, &length);
    return fail(TUTTI_HOST_LOST, "%s with the other hosts failed: %s", what, text);
}

/* ----------------------------------------------------------------------------------------------------- joining ---- */

/* Returns whether this process was started as one of several. Called before MPI is initialised, which takes time. */
static bool is_started(void)
{
    static const char *const variables[] = { "OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "PMI_SIZE" };
    int initialised = 0;
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
        if (getenv(variables[i])) return true;
    if (!loaded_is_present(&mpi_library) || loaded_refusal(&mpi_library)) return false; /* nobody initialised it */
    MPI_Initialized(&initialised);
    return initialised;
}

/* Only one thread at a time calls MPI, but not always the same one. */
static tutti_status initialise(struct tutti_hosts *comm)
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
        comm->link->ours = true;
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

tutti_status comm_open(struct tutti_hosts *comm)
{
    tutti_status status = TUTTI_OK;
    comm->count = 1;
    if (!is_started()) return TUTTI_OK;
    TRY(loaded_need(&mpi_library, "this process was started by mpirun"));
    comm->link = memory_new(1, sizeof(*comm->link));
    if (!comm->link) return TUTTI_NO_MEMORY;
    comm->link->communicator = comm->link->gathers = MPI_COMM_NULL;
    comm->link->gather = MPI_REQUEST_NULL;
    comm->link->add_bf16 = MPI_OP_NULL;
    TRY(initialise(comm));
    /* A separate communicator: messages are not mixed with the program's, and failures are returned instead of ending
     * the process. */
    MPI_TRY(MPI_Comm_dup(MPI_COMM_WORLD, &comm->link->communicator), "beginning");
    MPI_TRY(MPI_Comm_set_errhandler(comm->link->communicator, MPI_ERRORS_RETURN), "beginning");
    MPI_TRY(MPI_Comm_dup(comm->link->communicator, &comm->link->gathers), "beginning");
    MPI_TRY(MPI_Op_create(add_bf16, 1, &comm->link->add_bf16), "beginning");
    MPI_TRY(MPI_Comm_rank(comm->link->communicator, &comm->rank), "beginning");
    MPI_TRY(MPI_Comm_size(comm->link->communicator, &comm->count), "beginning");
    comm->link->silent = memory_new((size_t)comm->count, sizeof(double));
    if (!comm->link->silent) status = TUTTI_NO_MEMORY;
    if (status == TUTTI_OK) status = membership_open(&comm->members, comm->count);
done:
    return status;
}

/* ----------------------------------------------------------------------------------------------- heartbeats ---- */

static tutti_status send_heartbeats(struct tutti_hosts *comm)
{
    tutti_status status = TUTTI_OK;
    struct link *link = comm->link;
    const double now = clock_seconds();
    if (now - link->last_heartbeat < comm->limit_s / HEARTBEATS) return TUTTI_OK;
    link->last_heartbeat = now;
    for (int i = 0; i < comm->count; i++) {
        MPI_Request request;
        if (i == comm->rank) continue;
        MPI_TRY(MPI_Isend(NULL, 0, MPI_BYTE, i, HEARTBEAT_TAG, link->communicator, &request), "talking");
        MPI_TRY(MPI_Request_free(&request), "talking");
    }
done:
    return status;
}

static tutti_status receive_heartbeats(struct tutti_hosts *comm)
{
    tutti_status status = TUTTI_OK;
    struct link *link = comm->link;
    while (true) {
        int there = 0;
        MPI_Status from;
        MPI_TRY(MPI_Iprobe(MPI_ANY_SOURCE, HEARTBEAT_TAG, link->communicator, &there, &from), "listening");
        if (!there) break;
        MPI_TRY(MPI_Recv(NULL, 0, MPI_BYTE, from.MPI_SOURCE, HEARTBEAT_TAG, link->communicator, MPI_STATUS_IGNORE),
            "listening");
        link->silent[from.MPI_SOURCE] = 0;
    }
done:
    return status;
}

/* After a sleep: exchanges heartbeats, and loses ranks that are silent for too long. */
static tutti_status check_heartbeats(struct tutti_hosts *comm, double slept)
{
    tutti_status status = TUTTI_OK;
    TRY(send_heartbeats(comm));
    TRY(receive_heartbeats(comm));
    for (int i = 0; i < comm->count; i++) {
        if (i == comm->rank) continue;
        comm->link->silent[i] += fmin(slept, SLICE_S);
        if (comm->link->silent[i] <= comm->limit_s) continue;
        membership_lose(&comm->members, i);
        FAIL(TUTTI_HOST_LOST,
            "rank %d has not answered for %.3g seconds: its process hangs, or its host or the network is down", i,
            comm->limit_s);
    }
done:
    return status;
}

/* ----------------------------------------------------------------------------------------------------- waiting ---- */

static double backoff(int turn)
{
    if (turn < TESTS) {
        sched_yield();
        return 0;
    }
    const double wanted = fmin(BACKOFF_LEAST_S * (1 + (turn - TESTS) / 4), BACKOFF_MOST_S), start = clock_seconds();
    nanosleep(&(struct timespec) { .tv_nsec = (long)(1e9 * wanted) }, NULL);
    return clock_seconds() - start;
}

/* Waits until all requests are complete, and frees them. */
static tutti_status wait_for(struct tutti_hosts *comm, MPI_Request *requests, size_t count)
{
    tutti_status status = TUTTI_OK;
    if (!comm_is_whole(comm)) return fail(TUTTI_HOST_LOST, "the connection to the other hosts was lost before");
    for (int i = 0; i < comm->count; i++) comm->link->silent[i] = 0;
    for (int turn = 0;; turn++) {
        int done = 0;
        MPI_TRY(MPI_Testall((int)count, requests, &done, MPI_STATUSES_IGNORE), "working");
        if (done) break;
        TRY(check_heartbeats(comm, backoff(turn)));
    }
done:
    return status;
}

bool comm_progress(struct tutti_hosts *comm)
{
    struct link *link = comm->link;
    int done = 0;
    if (!comm_is_whole(comm)) return false;
    /* A failure here occurs again where the operation is waited for. */
    (void)send_heartbeats(comm);
    (void)receive_heartbeats(comm);
    if (link->sum_count == 0) return false;
    (void)MPI_Testall((int)link->sum_count, link->sums, &done, MPI_STATUSES_IGNORE);
    if (done) link->sum_count = 0;
    return !done;
}

/* -------------------------------------------------------------------------------------------------- operations ---- */

static tutti_status begin_sum(
    struct tutti_hosts *comm, const void *values, void *sums, int64_t count, MPI_Datatype type, MPI_Op operation)
{
    tutti_status status = TUTTI_OK;
    struct link *link = comm->link;
    void *array = link->sums;
    if (!comm_is_whole(comm)) return fail(TUTTI_HOST_LOST, "the connection to the other hosts was lost before");
    TRY(memory_grow(&array, &link->sum_capacity, link->sum_count + 1, sizeof(*link->sums)));
    link->sums = array;
    MPI_TRY(MPI_Iallreduce(values, sums, (int)count, type, operation, link->communicator, &link->sums[link->sum_count]),
        "summing gradients");
    link->sum_count++;
done:
    return status;
}

tutti_status comm_start_all_reduce(struct tutti_hosts *comm, const float *values, float *sums, int64_t count)
{
    return begin_sum(comm, values, sums, count, MPI_FLOAT, MPI_SUM);
}

tutti_status comm_start_all_reduce_bf16(struct tutti_hosts *comm, const uint16_t *values, uint16_t *sums, int64_t count)
{
    return begin_sum(comm, values, sums, count, MPI_UINT16_T, comm->link->add_bf16);
}

tutti_status comm_wait_all_reduces(struct tutti_hosts *comm)
{
    const tutti_status status = wait_for(comm, comm->link->sums, comm->link->sum_count);
    comm->link->sum_count = 0;
    return status;
}

tutti_status comm_gather(struct tutti_hosts *comm, const void *mine, void *all, size_t bytes)
{
    tutti_status status = TUTTI_OK;
    MPI_Request request;
    if (!comm_is_whole(comm)) return fail(TUTTI_HOST_LOST, "the connection to the other hosts was lost before");
    MPI_TRY(MPI_Iallgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, comm->link->communicator, &request),
        "agreeing");
    TRY(wait_for(comm, &request, 1));
done:
    return status;
}

tutti_status comm_broadcast(struct tutti_hosts *comm, int root, void *data, size_t bytes)
{
    enum { PIECE = 1 << 24 }; /* MPI counts in int */
    tutti_status status = TUTTI_OK;
    if (!comm_is_whole(comm)) return fail(TUTTI_HOST_LOST, "the connection to the other hosts was lost before");
    for (size_t done_bytes = 0; done_bytes < bytes; done_bytes += PIECE) {
        MPI_Request request;
        const size_t left = bytes - done_bytes;
        MPI_TRY(MPI_Ibcast((unsigned char *)data + done_bytes, (int)(left < PIECE ? left : PIECE), MPI_BYTE, root,
                    comm->link->communicator, &request),
            "sharing");
        TRY(wait_for(comm, &request, 1));
    }
done:
    return status;
}

tutti_status comm_start_gather(struct tutti_hosts *comm, const void *mine, void *all, size_t bytes)
{
    tutti_status status = TUTTI_OK;
    struct link *link = comm->link;
    if (!comm_is_whole(comm)) return fail(TUTTI_HOST_LOST, "the connection to the other hosts was lost before");
    MPI_TRY(MPI_Iallgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, link->gathers, &link->gather),
        "synchronising");
    for (int i = 0; i < comm->count; i++) link->silent[i] = 0;
    link->gather_seen = clock_seconds();
done:
    return status;
}

tutti_status comm_test_gather(struct tutti_hosts *comm, bool *over)
{
    tutti_status status = TUTTI_OK;
    struct link *link = comm->link;
    int done = 0;
    *over = false;
    if (!comm_is_whole(comm)) return fail(TUTTI_HOST_LOST, "the connection to the other hosts was lost before");
    MPI_TRY(MPI_Test(&link->gather, &done, MPI_STATUS_IGNORE), "synchronising");
    *over = done != 0;
    if (done) goto done;
    const double now = clock_seconds(), passed = now - link->gather_seen;
    link->gather_seen = now;
    status = check_heartbeats(comm, passed);
done:
    return status;
}

tutti_status comm_wait_gather(struct tutti_hosts *comm)
{
    return wait_for(comm, &comm->link->gather, 1);
}

/* ----------------------------------------------------------------------------------------------------- leaving ---- */

/* Receives all heartbeats that were sent, because MPI_Finalize would wait for them. All ranks have sent their last
 * heartbeat when the second barrier completes. */
static tutti_status disconnect(struct tutti_hosts *comm)
{
    tutti_status status = TUTTI_OK;
    for (int i = 0; i < 2; i++) {
        MPI_Request request;
        MPI_TRY(MPI_Ibarrier(comm->link->communicator, &request), "ending");
        if (i == 1) comm->link->last_heartbeat = INFINITY;
        TRY(wait_for(comm, &request, 1));
    }
    TRY(receive_heartbeats(comm));
    MPI_TRY(MPI_Op_free(&comm->link->add_bf16), "ending");
    MPI_TRY(MPI_Comm_free(&comm->link->gathers), "ending");
    MPI_TRY(MPI_Comm_free(&comm->link->communicator), "ending");
done:
    return status;
}

void comm_close(struct tutti_hosts *comm)
{
    struct link *link = comm->link;
    if (!link) return;
    if (membership_left(&comm->members) > 0 && comm_is_whole(comm) && disconnect(comm) == TUTTI_OK && link->ours)
        MPI_Finalize();
    membership_close(&comm->members);
    free(link->silent);
    free(link->sums);
    free(link);
}
