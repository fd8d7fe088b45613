/* Making a plan, and running it. */
#ifndef PLAN_PLAN_H
#define PLAN_PLAN_H

#include "plan/start.h"

/* Bytes of arena that a plan would take, without making it. */
tutti_status plan_measure(
    struct device *device, const tutti_network *network, const struct plan_options *options, size_t *bytes);
tutti_status plan_new(
    struct device *device, const tutti_network *network, const struct plan_options *options, struct plan **plan);
/* Runs the plan's kernels once, so that nothing is compiled later. plan_new() does it, unless told not to. */
tutti_status plan_warm_up(struct plan *plan);
/* Whether what a sample gives in training depends on the batch that it is in. */
bool plan_wants_whole_batch(const tutti_network *network);

/* Called by plan_enqueue(); either may be NULL. */
struct plan_stops {
    /* After the launch that completes a bucket was enqueued, so that the caller can enqueue its download. */
    tutti_status (*bucket)(void *user, int bucket);
    /* After the launches before a meeting were: what is enqueued next finds the numbers of all devices. */
    tutti_status (*meeting)(void *user, const struct meeting *meeting);
    /* Before the first launch that reads a range of the parameters, so that it can be made to wait for them. */
    tutti_status (*need)(void *user, int need);
};
/* Enqueues the step (not the uploads); does not wait. stops: NULL, or what is done on the way. */
tutti_status plan_enqueue(struct plan *plan, const struct plan_stops *stops, void *user);
/* The launches that read a feed (its number in plan->feeds) read `buffer` from now on; NULL: the plan's own buffer
 * again. After a failure, including TUTTI_UNSUPPORTED where a launch cannot be told, some may still read the other
 * buffer: NULL has to succeed before the plan runs. What was enqueued before stays as it is. */
tutti_status plan_read_feed_from(struct plan *plan, int feed, cl_mem buffer);
/* Where a value lies (those of interest have memory of their own); NULL for NO_VALUE. */
cl_mem plan_buffer(const struct plan *plan, int value);
/* Tests: fills the arena with NaN; before the uploads. And whether the guards still hold it. */
tutti_status plan_poison(struct plan *plan);
tutti_status plan_check_guards(struct plan *plan);
/* Inference: runs the launches that depend on parameters only. */
tutti_status plan_prepare(struct plan *plan);

#endif
