/* Runs one node by itself on made-up data, for the first-use check and the measured choice. */
#ifndef PLAN_TRIAL_H
#define PLAN_TRIAL_H

#include "graph/operation.h"
#include "runtime/launch.h"

struct trial {
    struct device *device;
    struct problem problem; /* with the layouts and types that the implementation wants */
    struct value inputs[GRAPH_MAX_INPUTS], outputs[GRAPH_MAX_OUTPUTS];
    void *design; /* the problem's */
    struct operands operands;
    struct launch_list list;
    size_t prepared; /* launches at its beginning whose results stay good while the parameters do */
};

/* Sets the node's problem without the fusions that not every implementation takes. */
struct plan;
void trial_problem(const struct plan *plan, struct node *node, struct problem *problem);
/* Like trial_problem(), but keeps the fusions that leave the first output unchanged on a trial's data: statistics of
 * it, masks and gates that the data open. So the kernels are mostly those of the plan. */
void trial_problem_in_plan(const struct plan *plan, struct node *node, struct problem *problem);
/* Makes buffers for the problem's values, which no other trial shares, and the implementation's launches, built and
 * ready. The problem is one of the above. trial_free() is needed also after a failure. */
tutti_status trial_make(struct device *device, const struct problem *problem,
    const struct implementation *implementation, struct trial *trial);
/* Appends the launches that trial_make() would make, without buffers: to be compiled ahead. */
void trial_emit(const struct problem *problem, const struct implementation *implementation, struct launch_list *list);
/* Runs the launches once and waits. */
tutti_status trial_run(struct trial *trial);
/* Runs the launches of a step so many times, and waits. */
tutti_status trial_repeat(struct trial *trial, int times);
/* Compares the outputs of both, which have run. TUTTI_WRONG_RESULT, with the difference, if more than rounding
 * separates them. */
tutti_status trial_compare(struct trial *trial, struct trial *reference);
/* Compares the outputs of the trial, which has run, with those that the interpreter computes for a problem of the
 * same node. TUTTI_WRONG_RESULT, with the difference, unless they are the same up to rounding. */
struct thread_pool;
tutti_status trial_check(struct trial *trial, const struct problem *problem, struct thread_pool *threads);
/* Frees everything but the outputs, which trial_compare() reads. */
void trial_keep_outputs(struct trial *trial);
void trial_free(struct trial *trial);

#endif
