#include "replica/device_update.h"

#include "replica/clip.h"
#include "replica/replica.h"
#include "runtime/builder.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>

/* --------------------------------------------------------------------------------------------------- making ---- */

static tutti_status make_statistics(struct replica *replica)
{
    tutti_status status = TUTTI_OK;
    struct device_update *update = &replica->update;
    struct statistic_row *rows = NULL;
    TRY(optimizer_statistics(replica->setup->optimizer, replica->setup->network, &rows, &update->statistic_count));
    if (update->statistic_count == 0) goto done;
    const size_t bytes = (size_t)update->statistic_count * sizeof(*rows);
    TRY(buffer_new(replica->device, bytes, &update->statistics));
    TRY(buffer_write(replica->device, update->statistics, 0, rows, bytes));
done:
    free(rows);
    return status;
}

static tutti_status make_groups(struct replica *replica)
{
    const struct optimizer *optimizer = replica->setup->optimizer;
    if (!optimizer->groups) return TUTTI_OK;
    return buffer_new(replica->device, optimizer->group_count * sizeof(*optimizer->groups), &replica->update.groups);
}

/* Not in the background: there, the caller may change the table meanwhile. */
static tutti_status write_groups(struct replica *replica)
{
    struct device_update *update = &replica->update;
    const struct optimizer *optimizer = replica->setup->optimizer;
    if (!update->groups) return TUTTI_OK;
    update->group_changes = optimizer->group_changes;
    return buffer_write(
        replica->device, update->groups, 0, optimizer->groups, optimizer->group_count * sizeof(*optimizer->groups));
}

static tutti_status make_launches(struct replica *replica, cl_mem gradients, struct launch_list *list)
{
    tutti_status status = TUTTI_OK;
    const struct device_update *update = &replica->update;
    const struct replica_setup *setup = replica->setup;
    const struct optimizer_buffers buffers = { .parameters = replica->parameters,
        .gradients = gradients,
        .states = { update->states[0], update->states[1], update->states[2], update->states[3] },
        .constants = update->constants,
        .losses = replica->losses,
        .statistics = update->statistics,
        .groups = update->groups,
        .norms = update->norms };
    launch_list_init(list, replica->device);
    optimizer_emit_check(setup->network, gradients, update->constants, list);
    optimizer_emit(setup->optimizer, setup->network, &buffers, update->statistic_count, list);
    TRY(launch_list_realise(list, NULL, NULL));
done:
    return status;
}

/* Warms the launches up with losses that are NaN, so that they update nothing. */
static tutti_status warm_up(struct replica *replica, struct launch_list *list)
{
    tutti_status status = TUTTI_OK;
    const struct step_constants constants = { .micro_batches = 1 };
    const float not_finite[2] = { NAN, 0 };
    TRY(buffer_write(replica->device, replica->update.constants, 0, &constants, sizeof(constants)));
    TRY(buffer_write(replica->device, replica->losses, 0, not_finite, sizeof(not_finite)));
    TRY(launch_list_warm_up(list));
done:
    return status;
}

static void free_buffers(struct device_update *update)
{
    for (int i = 0; i < OPTIMIZER_STATES; i++) buffer_free(&update->states[i]);
    launch_list_free(&update->list);
    buffer_free(&update->constants);
    buffer_free(&update->statistics);
    buffer_free(&update->groups);
    buffer_free(&update->norms);
}

tutti_status device_update_make(struct replica *replica)
{
    tutti_status status = TUTTI_OK;
    struct device_update *update = &replica->update;
    const struct replica_setup *setup = replica->setup;
    const size_t state_bytes = (size_t)setup->network->trained_floats * sizeof(float);
    if (update->constants) return TUTTI_OK; /* made before, but not adopted */
    for (int i = 0; i < optimizer_states(setup->optimizer); i++)
        TRY(buffer_new(replica->device, state_bytes, &update->states[i]));
    TRY(buffer_new(replica->device, sizeof(struct step_constants), &update->constants));
    TRY(make_statistics(replica));
    TRY(make_groups(replica));
    if (setup->optimizer->clip_norm > 0) TRY(buffer_new(replica->device, CLIP_NORMS * sizeof(float), &update->norms));
    TRY(make_launches(replica, gradients_buffer(&replica->gradients, false), &update->list));
    builder_prepare(&update->list, NULL, NULL);
done:
    if (status != TUTTI_OK) free_buffers(update);
    return status;
}

tutti_status device_update_warm_up(struct replica *replica)
{
    tutti_status status = TUTTI_OK;
    TRY(write_groups(replica));
    TRY(warm_up(replica, &replica->update.list));
    replica->update.made = true;
    if (gradients_have_sum(&replica->gradients))
        TRY(device_update_build_sum_launches(replica)); /* micro-batches came first */
done:
    return status;
}

tutti_status device_update_build_sum_launches(struct replica *replica)
{
    tutti_status status = TUTTI_OK;
    struct device_update *update = &replica->update;
    if (!update->made) return TUTTI_OK;
    TRY(make_launches(replica, gradients_buffer(&replica->gradients, true), &update->sum_list));
    TRY(warm_up(replica, &update->sum_list));
done:
    return status;
}

void device_update_free_sum_launches(struct replica *replica)
{
    launch_list_free(&replica->update.sum_list);
}

void device_update_free(struct replica *replica)
{
    free_buffers(&replica->update);
    device_update_free_sum_launches(replica);
}

bool device_update_is_made(const struct replica *replica)
{
    return replica->update.made;
}

cl_mem device_update_state(const struct replica *replica, int state)
{
    return replica->update.states[state];
}

/* ------------------------------------------------------------------------------------------------- updating ---- */

/* Sends the table of groups if the caller has changed it. */
static tutti_status send_groups(struct replica *replica)
{
    struct device_update *update = &replica->update;
    const struct optimizer *optimizer = replica->setup->optimizer;
    if (!update->groups || update->group_changes == optimizer->group_changes) return TUTTI_OK;
    const tutti_status status = uploads_write(&replica->uploads, replica->device, replica->device->queue,
        update->groups, 0, optimizer->groups, optimizer->group_count * sizeof(*optimizer->groups), NULL);
    if (status == TUTTI_OK) update->group_changes = optimizer->group_changes;
    return status;
}

tutti_status device_update_enqueue(struct replica *replica, bool summed, const struct step_constants *constants)
{
    tutti_status status = TUTTI_OK;
    struct device_update *update = &replica->update;
    struct launch_list *list = summed ? &update->sum_list : &update->list;
    TRY(uploads_write(&replica->uploads, replica->device, replica->device->queue, update->constants, 0, constants,
        sizeof(*constants), NULL));
    TRY(send_groups(replica));
    versions_mark_partial(&replica->versions, true);
    TRY(launch_list_enqueue(list, 0, list->count, NULL));
    plan_cache_invalidate(&replica->plans);
done:
    return status;
}

tutti_status device_update_enqueue_read(struct replica *replica, cl_event *event)
{
    tutti_status status = TUTTI_OK;
    struct device_update *update = &replica->update;
    update->norm = NAN;
    if (update->norms)
        CL_TRY(clEnqueueReadBuffer(replica->device->queue, update->norms, CL_FALSE, 0, sizeof(update->norm),
                   &update->norm, 0, NULL, NULL),
            "reading the norm of gradients from '%s'", replica->device->can.name);
    CL_TRY(clEnqueueReadBuffer(replica->device->queue, update->constants, CL_FALSE,
               offsetof(struct step_constants, not_finite), sizeof(update->check), &update->check, 0, NULL, event),
        "reading the check of gradients from '%s'", replica->device->can.name);
done:
    return status;
}

bool device_update_not_finite(const struct replica *replica)
{
    return replica->update.check != 0;
}

float device_update_norm(const struct replica *replica)
{
    return replica->update.norm;
}
