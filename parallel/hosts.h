/* Communication between the processes ("ranks") that train one network together, on one host or several. This header
 * hides all calls of MPI, which the thread that uses the trainer makes; a build without MPI has hosts_none.c instead.
 * Every rank makes the same calls in the same order.
 *
 * No rank waits for ever: a waiting rank sends a sign of life every few seconds, and a rank that has been silent for
 * limit_s counts as lost. After any failure here the ranks cannot agree on anything any more: some member is lost. */
#ifndef PARALLEL_HOSTS_H
#define PARALLEL_HOSTS_H

#include "parallel/membership.h"

struct tutti_hosts {
    int rank, count;
    double limit_s;
    struct membership members; /* the ranks; none where count is 1 */
    struct link *link;         /* NULL where count is 1 */
};

/* Joins the others, if this process was started with any. */
tutti_status link_open(struct tutti_hosts *hosts);
/* Waits until the others make this call, too, unless a rank is lost. */
void link_close(struct tutti_hosts *hosts);

/* Returns whether no rank is lost. Makes this rank leave the others, which will not hear from it any more. */
bool hosts_are_whole(const struct tutti_hosts *hosts);
void hosts_leave(struct tutti_hosts *hosts);

/* Starts an all-reduce: sums = the sum of all ranks' values, always added in the same order. Many may be in progress.
 * The caller must not use either array before hosts_wait_all_reduces(). */
tutti_status hosts_start_all_reduce(struct tutti_hosts *hosts, const float *values, float *sums, int64_t count);
/* Starts an all-reduce of bfloat16 values; each addition is rounded. */
tutti_status hosts_start_all_reduce_bf16(
    struct tutti_hosts *hosts, const uint16_t *values, uint16_t *sums, int64_t count);
tutti_status hosts_wait_all_reduces(struct tutti_hosts *hosts);
/* Makes progress with all-reduces, and tells the others that this rank lives. Call it often. Returns whether
 * all-reduces are in progress. */
bool hosts_progress(struct tutti_hosts *hosts);
/* All-gather: all[i] is what rank i gave, `bytes` each. */
tutti_status hosts_gather(struct tutti_hosts *hosts, const void *mine, void *all, size_t bytes);
tutti_status hosts_broadcast(struct tutti_hosts *hosts, int root, void *data, size_t bytes);
/* Begins a round: an all-gather in parallel with the all-reduces, whose order relative to it may differ between ranks;
 * one at a time. Tests whether it is over (call it often); waits for it. */
tutti_status hosts_round(struct tutti_hosts *hosts, const void *mine, void *all, size_t bytes);
tutti_status hosts_round_test(struct tutti_hosts *hosts, bool *over);
tutti_status hosts_round_wait(struct tutti_hosts *hosts);

#endif
