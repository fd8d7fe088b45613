/* The passes of plan/: each takes a graph that is valid and leaves one that is. */
#ifndef PLAN_PASSES_H
#define PLAN_PASSES_H

#include "plan/types.h"

/* Appends the loss and its targets; sets the plan's values. */
tutti_status pass_loss(struct plan *plan);
/* Inference: nodes become what their operations say (struct operation). */
tutti_status pass_inference(struct plan *plan);
/* Appends the gradient of everything that the parameters need. */
tutti_status pass_gradient(struct plan *plan);
/* Fusions: the patterns of layers/ (graph/pattern.h), until no one matches. */
tutti_status pass_rewrite(struct plan *plan);
struct pattern;
/* One of them at every node that it matches; whether the graph changed. Dropped nodes stay until edit_compact(). */
bool rewrite_by(struct plan *plan, const struct pattern *pattern);
/* Drops nodes whose outputs nobody uses. */
tutti_status pass_sweep(struct plan *plan);
/* Implementation of every node, layouts of every value, `reorder` nodes at the edges. */
tutti_status pass_choose(struct plan *plan);
/* Whether a graph behind pass_choose with values whose channels are last is worth its reorders. */
bool channels_last_pays(const struct plan *plan);
/* Chains of generated kernels become one kernel each. */
tutti_status pass_compose(struct plan *plan);
/* Which values are stored as bfloat16, where the options ask for it. */
tutti_status pass_storage(struct plan *plan);

/* The designs of what was chosen, behind all other passes. */
tutti_status pass_design(struct plan *plan);
/* Puts into the explanation of the choices what the implementations remark on the final form of their nodes. */
tutti_status pass_remark(struct plan *plan);
/* The design of an implementation that has one, made where the plan has no such problem yet; NULL: no memory. Before a
 * node has its final form, too: fusions do not change it. */
const void *plan_design(struct plan *plan, const struct problem *problem, const struct implementation *implementation);
void plan_designs_free(struct plan *plan);
/* The same, the caller's to free. */
void *design_new(const struct problem *problem, const struct implementation *implementation);

/* Why an implementation is not for this problem: it is forced away, on the device's blacklist, or does not take it;
 * NULL: it is. */
const char *implementation_refusal(
    const struct plan *plan, const struct problem *problem, const struct implementation *implementation);
/* The implementation that a tuning table names (runtime/tuning.h), else the first of the operation's list that is not
 * refused; NULL with a message where there is none. */
const struct implementation *choose_implementation(const struct plan *plan, const struct node *node);

/* Where everything lies. */
struct memory_plan {
    struct memory_slot {
        enum { SLOT_NONE, SLOT_ARENA, SLOT_PARAMETER, SLOT_GRADIENT, SLOT_ALIAS } kind;
        struct place place; /* arena */
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
