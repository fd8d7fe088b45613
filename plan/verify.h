/* The first-use check of kernels: an implementation is compared with the plain one before a driver's first plan uses
 * it. */
#ifndef PLAN_VERIFY_H
#define PLAN_VERIFY_H

#include "plan/plan.h"

/* Checks the implementations that the plan's chosen graph wants and that this device and driver have not run before;
 * `small` is the same network for few samples, with its implementations chosen. *failed: at least one was put on the
 * blacklist, so the choice must be made again. A failure of the check itself is a failure of the implementation. */
tutti_status verify_implementations(struct plan *plan, struct plan *small, bool *failed);
/* Appends the launches of that check, without buffers: for builder_prepare(). */
void verify_emit(struct plan *plan, struct plan *small, struct launch_list *list);
/* Whether any node of the plan has an implementation that was never checked on this device and driver. */
bool verify_wanted(const struct plan *plan);

#endif
