/* The optimizer on the device of a sole replica, which updates its parameters itself. */
#ifndef REPLICA_DEVICE_UPDATE_H
#define REPLICA_DEVICE_UPDATE_H

#include "replica/optimizer.h"

struct replica;

struct device_update {
    cl_mem states[OPTIMIZER_STATES];
    cl_mem constants;          /* of the step */
    cl_mem statistics, groups; /* the optimizer's tables */
    cl_mem norms;              /* if gradients are clipped */
    int statistic_count;
    struct launch_list list, sum_list; /* update from the gradients; from their sum over micro-batches */
    bool made;
    uint64_t group_changes; /* of the optimizer's table, as the device has it */
    uint32_t check;         /* read after an update: 0 if all gradients, and their norm if there is one, are finite */
    float norm;             /* of the gradients, read likewise, if they are clipped */
};

/* Make the update in two steps; the first may run in parallel with other work, and reads nothing that calls between two
 * steps change. Nothing is made twice. After the second, device_update_is_made(). */
tutti_status device_update_make(struct replica *replica);
tutti_status device_update_warm_up(struct replica *replica);
/* Builds the launches that update from the sum of micro-batches, if the update is made; frees them. */
tutti_status device_update_build_sum_launches(struct replica *replica);
void device_update_free_sum_launches(struct replica *replica);
void device_update_free(struct replica *replica);
bool device_update_is_made(const struct replica *replica);
/* NULL: there is no such state, or it is not made. */
cl_mem device_update_state(const struct replica *replica, int state);

/* Enqueues the update, the last launches of a step. `summed`: from the sum over micro-batches. */
tutti_status device_update_enqueue(struct replica *replica, bool summed, const struct step_constants *constants);
/* Enqueues the read of what the update found: whether its gradients are finite, and their norm. *event completes with
 * it. */
tutti_status device_update_enqueue_read(struct replica *replica, cl_event *event);
/* After that read: returns whether gradients or their norm are not finite. The update is then skipped, as it is if a
 * loss is not finite, which the caller sees by the losses. */
bool device_update_not_finite(const struct replica *replica);
float device_update_norm(const struct replica *replica); /* of the gradients; NaN if they are not clipped */

#endif
