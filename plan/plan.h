/* Making a plan, and running it. */
#ifndef PLAN_PLAN_H
#define PLAN_PLAN_H

#include "plan/pipeline.h"

/* Computes the bytes of arena that a plan would take, without making it. */
tutti_status plan_measure(
    struct device *device, const tutti_network *network, const struct plan_options *options, size_t *bytes);
tutti_status plan_new(
    struct device *device, const tutti_network *network, const struct plan_options *options, struct plan **plan);
/* Runs each kernel of a new form once, so that nothing is compiled later, unless the driver's cache has it; then it is
 * made when first enqueued. plan_new() does it, unless told not to. */
tutti_status plan_warm_up(struct plan *plan);
/* Whether the result of a sample in training depends on the rest of its batch. */
bool plan_wants_whole_batch(const tutti_network *network);
/* Returns the name of the first layer that normalises each channel by statistics of one value, and counts such
 * layers; NULL: none. */
const char *plan_single_values(const struct plan *plan, int *count);

/* The caller's action at a command, when the launches before it are enqueued and those after it are not. */
typedef tutti_status command_handler(void *user, const struct command *command);
/* Not in training: enqueues the launches that depend on parameters only. Call it before plan_enqueue() if the
 * parameters changed or another plan ran since. */
tutti_status plan_prepare(struct plan *plan);
/* Enqueues the step. Waits only where a handler does, and for kernels that are made now. handlers: NULL, or for each
 * kind of command a function to be called, or NULL. Launches need none. */
tutti_status plan_enqueue(struct plan *plan, command_handler *const *handlers, void *user);
/* Makes the launches that read a feed (its number in plan->feeds) read `buffer` from now on; NULL: the plan's own
 * buffer again. After a failure, including TUTTI_UNSUPPORTED where a launch's buffer cannot be changed, some may
 * still read the other buffer: a call with NULL has to succeed before the plan runs. Launches enqueued before do not
 * change. */
tutti_status plan_redirect_feed(struct plan *plan, int feed, cl_mem buffer);
/* Returns the buffer of a value (values of interest have memory of their own); NULL for NO_VALUE. */
cl_mem plan_buffer(const struct plan *plan, int value);

#endif
