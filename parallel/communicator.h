/* Communication between the processes ("ranks") that train one network together, on one host or several. This header
 * hides all calls of MPI, which the thread that uses the trainer makes; a build without MPI has communicator_none.c
 * instead. Every rank makes the same calls in the same order.
 *
 * No rank waits for ever: a waiting rank sends a heartbeat every few seconds, and a rank that has been silent for
 * limit_s counts as lost. After any failure here the ranks cannot agree on anything any more: some member is lost. */
#ifndef PARALLEL_COMMUNICATOR_H
#define PARALLEL_COMMUNICATOR_H

#include "parallel/membership.h"

/* The communicator, whose public name is tutti_hosts. */
struct tutti_hosts {
    int rank, count;
    double limit_s;
    struct membership members; /* the ranks; none where count is 1 */
    struct link *link;         /* NULL where count is 1 */
};

/* Joins the others, if this process was started with any. */
tutti_status comm_open(struct tutti_hosts *comm);
/* Waits until the others make this call, too, unless a rank is lost. */
void comm_close(struct tutti_hosts *comm);

/* Returns whether no rank is lost. Makes this rank leave the others, which will not hear from it any more. */
bool comm_is_whole(const struct tutti_hosts *comm);
void comm_leave(struct tutti_hosts *comm);

/* Starts an all-reduce: sums = the sum of all ranks' values, always added in the same order. Many may be in progress.
 * The caller must not use either array before comm_wait_all_reduces(). */
tutti_status comm_start_all_reduce(struct tutti_hosts *comm, const float *values, float *sums, int64_t count);
/* Starts an all-reduce of bfloat16 values; each addition is rounded. */
tutti_status comm_start_all_reduce_bf16(
    struct tutti_hosts *comm, const uint16_t *values, uint16_t *sums, int64_t count);
tutti_status comm_wait_all_reduces(struct tutti_hosts *comm);
/* Makes progress with all-reduces, and tells the others that this rank lives. Call it often. Returns whether
 * all-reduces are in progress. */
bool comm_progress(struct tutti_hosts *comm);
/* All-gather: all[i] is what rank i gave, `bytes` each. */
tutti_status comm_gather(struct tutti_hosts *comm, const void *mine, void *all, size_t bytes);
tutti_status comm_broadcast(struct tutti_hosts *comm, int root, void *data, size_t bytes);
/* Starts an all-gather in parallel with the all-reduces, whose order relative to it may differ between ranks; one at a
 * time. Tests whether it is over (call it often); waits for it. */
tutti_status comm_start_gather(struct tutti_hosts *comm, const void *mine, void *all, size_t bytes);
tutti_status comm_test_gather(struct tutti_hosts *comm, bool *over);
tutti_status comm_wait_gather(struct tutti_hosts *comm);

#endif
