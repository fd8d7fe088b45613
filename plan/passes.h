/* The passes of plan/: each takes a valid graph and leaves a valid graph. */
#ifndef PLAN_PASSES_H
#define PLAN_PASSES_H

#include "plan/types.h"

/* Appends the loss and its targets; sets the plan's values. */
tutti_status pass_loss(struct plan *plan);
/* Inference: replaces nodes by the inference forms that their operations define (struct operation). */
tutti_status pass_inference(struct plan *plan);
/* Applies the forward patterns of layers/ (graph/pattern.h). */
tutti_status pass_combine(struct plan *plan);
/* Marks the values of the forward graph of which pass_gradient() will append the gradient: those before `count`. */
void gradient_mark(const struct plan *plan, bool *needed, size_t count);
/* Appends the gradient of everything that the parameters need. */
tutti_status pass_gradient(struct plan *plan);
/* Fusions: applies the patterns of layers/ (graph/pattern.h) until none matches. */
tutti_status pass_rewrite(struct plan *plan);
/* Where the options ask for it: computes forward values again before backward nodes read them, instead of keeping them.
 */
tutti_status pass_recompute(struct plan *plan);
struct pattern;
/* Applies one pattern wherever it matches; returns whether the graph changed. Dropped nodes stay until
 * edit_compact(). */
bool rewrite_by(struct plan *plan, const struct pattern *pattern);
/* Sets the types of parameters that are stored in fewer bits, and inserts nodes that make floats of them where no
 * kernel reads them so. */
tutti_status pass_stored(struct plan *plan);
/* Drops nodes whose outputs nobody uses. */
tutti_status pass_sweep(struct plan *plan);
/* Chooses the implementation of every node and the layout of every value; inserts `reorder` nodes between layouts. */
tutti_status pass_select(struct plan *plan);
/* Whether the values with channels last are worth the reorders that they need, in a graph after pass_select(). */
bool channels_last_pays(const struct plan *plan);
/* Joins each chain of generated kernels into one kernel. */
tutti_status pass_compose(struct plan *plan);
/* Chooses the values that are stored as bfloat16, where the options ask for it. */
tutti_status pass_storage(struct plan *plan);

/* Makes the designs of the chosen implementations, after all other passes. */
tutti_status pass_design(struct plan *plan);
/* Adds the implementations' remarks on the final form of their nodes to the explanation of the choices. */
tutti_status pass_remark(struct plan *plan);
/* Returns the design of an implementation that has one; makes it where the plan has no such problem yet. NULL: no
 * memory. An implementation with statistics() can be asked before the node has its final form: fusions do not change
 * its design. */
const void *plan_design(struct plan *plan, const struct problem *problem, const struct implementation *implementation);
void plan_designs_free(struct plan *plan);
/* Makes the design of a problem, which the caller frees. */
void *design_new(const struct problem *problem, const struct implementation *implementation);

/* Why an implementation is rejected: excluded by plan_options.force or TUTTI_IMPLEMENTATION, blacklisted on the
 * device, or unsupported for this problem. NULL: accepted. */
const char *implementation_refusal(
    const struct plan *plan, const struct problem *problem, const struct implementation *implementation);
/* Returns the implementation that a tuning table names (runtime/tuning.h), else the first in the operation's list
 * that accepts the problem, one that is passed over only where there is no other; NULL with a message where there is
 * none. */
const struct implementation *choose_implementation(const struct plan *plan, const struct node *node);

/* The memory of values, of prepared data and of the workspace. */
struct memory_plan {
    struct memory_slot {
        enum { SLOT_NONE, SLOT_ARENA, SLOT_PARAMETER, SLOT_GRADIENT, SLOT_ALIAS } kind;
        struct arena_position position; /* arena */
        size_t bytes;
        int alias;                /* value whose memory this is */
    } * slots;                    /* per value */
    struct memory_slot *prepared; /* per node */
    struct memory_slot workspace;
    size_t *slabs; /* sizes */
    int slab_count;
};
tutti_status pass_memory(struct plan *plan, struct memory_plan *memory);
void memory_plan_free(struct memory_plan *memory);

#endif
