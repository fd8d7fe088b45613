/* The processes ("ranks") that train one network together, on one host or several: what they can tell each other. All
 * calls of MPI are behind this header, made by the thread that uses the trainer; a build without MPI has hosts_none.c
 * instead. Every rank makes the same calls in the same order.
 *
 * Nobody waits for ever: whoever waits says so every few seconds, and a rank that has been silent for limit_s is taken
 * for dead. After any failure here the ranks cannot agree on anything any more: some member is lost. */
#ifndef TRAIN_HOSTS_H
#define TRAIN_HOSTS_H

#include "train/membership.h"

struct tutti_hosts {
    int rank, count;
    double limit_s;
    struct membership members; /* the ranks; none where count is 1 */
    struct link *link;         /* NULL where count is 1 */
};

/* Joins the others, if this process was started with any. */
tutti_status link_open(struct tutti_hosts *hosts);
/* Waits for the others to come here too, unless somebody is lost. */
void link_close(struct tutti_hosts *hosts);

/* Nobody is lost. This rank does not go on with the others, which will hear no more of it. */
bool hosts_are_whole(const struct tutti_hosts *hosts);
void hosts_leave(struct tutti_hosts *hosts);

/* Begins sums = the sum of all ranks' values, always added in the same order; many may be under way. Neither array is
 * touched by others before hosts_sums_wait(). */
tutti_status hosts_sum(struct tutti_hosts *hosts, const float *values, float *sums, int64_t count);
/* The same of bfloat16; each addition is rounded. */
tutti_status hosts_sum_bf16(struct tutti_hosts *hosts, const uint16_t *values, uint16_t *sums, int64_t count);
tutti_status hosts_sums_wait(struct tutti_hosts *hosts);
/* Moves on what was begun, and tells the others that this rank lives; to be called often. Whether sums are under way.
 */
bool hosts_progress(struct tutti_hosts *hosts);
/* all[i] is what rank i gave, `bytes` each. */
tutti_status hosts_gather(struct tutti_hosts *hosts, const void *mine, void *all, size_t bytes);
tutti_status hosts_broadcast(struct tutti_hosts *hosts, int root, void *data, size_t bytes);
/* Begins a round: a gathering beside the sums, in whatever order the ranks begin those; one at a time. Whether it is
 * over, to be asked often; waits for it. */
tutti_status hosts_round(struct tutti_hosts *hosts, const void *mine, void *all, size_t bytes);
tutti_status hosts_round_test(struct tutti_hosts *hosts, bool *over);
tutti_status hosts_round_wait(struct tutti_hosts *hosts);

#endif
