/* The first-use check of kernels: an implementation is compared with the interpreter before a driver's first plan uses
 * it. */
#ifndef PLAN_VERIFY_H
#define PLAN_VERIFY_H

#include "plan/node.h"

/* An implementation to be checked, and the node to check it with. */
struct verify_item {
    char key[IMPLEMENTATION_KEY];
    const struct node *node;
    struct plan *in; /* whose node it is */
};

struct verify_items {
    struct verify_item *list;
    size_t count;
};

/* Lists the implementations that the plan's chosen graph wants and that this device and driver have not run before.
 * Each gets the node that is checked in the least time: of the plan, or of `small` (the same network for few samples,
 * with its implementations chosen). `list` has the plan's launches. Free the items before the plans. */
tutti_status verify_choose(
    struct plan *plan, struct plan *small, const struct launch_list *list, struct verify_items *items);
void verify_items_free(struct verify_items *items);
/* *failed: at least one was put on the blacklist, so the choice must be made again. A failure of the check itself is a
 * failure of the implementation. */
tutti_status verify_implementations(struct device *device, const struct verify_items *items, bool *failed);
/* Checks the kernels of operations with a check of their own, unless they passed it on this device before. Fails if
 * they do not: there are no others. */
tutti_status verify_custom(struct plan *plan);
/* Puts the node's implementation on the blacklist. TUTTI_BUILD if it is the last one of its operation; the message
 * has the text that is not built (`source`) and the reason. */
tutti_status verify_refuse(struct plan *plan, const struct node *node, const char *source, const char *reason);
/* Appends the launches of that check, without buffers: for builder_prepare(). */
void verify_emit(const struct verify_items *items, struct launch_list *list);
/* Whether any node of the plan has an implementation that was never checked on this device and driver. */
bool verify_wanted(const struct plan *plan);

#endif
