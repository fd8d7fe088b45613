#include "replica/carried.h"

#include "replica/replica.h"

int carried_find(const struct carry_list *list, int feed)
{
    for (int i = 0; i < list->count; i++)
        if (list->items[i].feed == feed) return i;
    return -1;
}

static tutti_status make(struct replica *replica, int item, int64_t samples)
{
    tutti_status status = TUTTI_OK;
    struct carried *carried = &replica->carried;
    const size_t bytes = (size_t)samples * replica->setup->carries->items[item].bytes;
    buffer_free(&carried->now[item]);
    buffer_free(&carried->next[item]);
    TRY(buffer_new(replica->device, bytes, &carried->now[item])); /* zeros */
done:
    return status;
}

tutti_status carried_prepare(struct replica *replica, int64_t samples)
{
    tutti_status status = TUTTI_OK;
    if (replica->carried.samples == samples) return TUTTI_OK;
    for (int i = 0; i < replica->setup->carries->count; i++) TRY(make(replica, i, samples));
done:
    return status;
}

tutti_status carried_keep(struct replica *replica, int output, cl_mem from, int64_t samples)
{
    tutti_status status = TUTTI_OK;
    const struct carry_list *list = replica->setup->carries;
    struct carried *carried = &replica->carried;
    for (int i = 0; i < list->count; i++) {
        const size_t bytes = (size_t)samples * list->items[i].bytes;
        if (list->items[i].output != output) continue;
        carried->in_place[i] = from == carried->now[i];
        if (carried->in_place[i]) continue;
        if (!carried->next[i]) TRY(buffer_new(replica->device, bytes, &carried->next[i]));
        CL_TRY(clEnqueueCopyBuffer(replica->device->queue, from, carried->next[i], 0, 0, bytes, 0, NULL, NULL),
            "keeping an output on '%s'", replica->device->can.name);
    }
done:
    return status;
}

void carried_advance(struct replica *replica, int64_t samples)
{
    struct carried *carried = &replica->carried;
    for (int i = 0; i < replica->setup->carries->count; i++) {
        const cl_mem now = carried->now[i];
        if (carried->in_place[i]) continue;
        carried->now[i] = carried->next[i];
        carried->next[i] = now;
    }
    carried->samples = samples;
}

tutti_status carried_access(struct replica *replica, void *argument)
{
    tutti_status status = TUTTI_OK;
    struct carried_access *access = argument;
    worker_allow(&replica->worker, worker_step_limit(&replica->worker, replica->setup->batch));
    if (access->writes) {
        TRY(carried_prepare(replica, access->samples));
        replica->carried.samples = 0; /* if it fails */
        TRY(buffer_write(replica->device, replica->carried.now[access->item], 0, access->values, access->bytes));
        replica->carried.samples = access->samples;
    } else {
        TRY(buffer_read(replica->device, replica->carried.now[access->item], 0, access->values, access->bytes));
    }
done:
    return status;
}

void carried_reset(struct replica *replica)
{
    replica->carried.samples = 0;
}

void carried_free(struct replica *replica)
{
    for (int i = 0; i < PLAN_MAX_FEEDS; i++) {
        buffer_free(&replica->carried.now[i]);
        buffer_free(&replica->carried.next[i]);
    }
}
