/* Gradients of a device that shares the host's memory: mapped, which copies nothing. The parameters of the same range
 * are mapped too, and the exchange writes the new ones there. */
#include "base/memory.h"
#include "replica/replica.h"

static size_t device_bytes(const struct replica *replica)
{
    (void)replica;
    return 0;
}

static tutti_status nothing(struct replica *replica, const struct plan *plan)
{
    (void)replica;
    (void)plan;
    return TUTTI_OK;
}

static tutti_status map(struct replica *replica, cl_mem buffer, cl_map_flags flags, int64_t first, int64_t count,
    cl_event *event, float **pointer)
{
    tutti_status status = TUTTI_OK;
    cl_int error = CL_SUCCESS;
    struct replica_gradients *gradients = &replica->gradients;
    void *array = gradients->mapped.mappings;
    TRY(memory_grow(
        &array, &gradients->mapped.capacity, gradients->mapped.count + 1, sizeof(*gradients->mapped.mappings)));
    gradients->mapped.mappings = array;
    *pointer = clEnqueueMapBuffer(replica->device->queue, buffer, CL_FALSE, flags, (size_t)first * sizeof(float),
        (size_t)count * sizeof(float), 0, NULL, event, &error);
    CL_TRY(error, "mapping memory of '%s'", replica->device->can.name);
    gradients->mapped.mappings[gradients->mapped.count++] = (struct mapping) { buffer, *pointer };
done:
    return status;
}

/* Maps the gradients and, if wanted, the parameters, where the exchange writes the new ones. Launches enqueued
 * between this and unmap() neither write these gradients nor read these parameters. The queue is in order, so the event
 * of the second mapping is that of both. */
static tutti_status send_range(struct replica *replica, const struct bucket_request *request)
{
    tutti_status status = TUTTI_OK;
    const int64_t first = request->first, count = request->count;
    struct bucket_delivery delivery = { .first = first, .count = count };
    float *data = NULL;
    if (request->map_parameters) {
        replica->gradients.mapped.parameters_mapped = true;
        TRY(map(
            replica, replica->parameters, CL_MAP_WRITE_INVALIDATE_REGION, first, count, NULL, &delivery.parameters));
    }
    const cl_mem buffer = gradients_buffer(&replica->gradients, request->sum);
    TRY(map(replica, buffer, CL_MAP_READ, first, count, &delivery.event, &data));
    delivery.data = data;
    status = gradients_append_delivery(replica, &delivery);
done:
    return status;
}

static tutti_status mapped_send_bucket(struct replica *replica, const struct bucket_request *request)
{
    tutti_status status = TUTTI_OK;
    TRY(send_range(replica, request));
    CL_TRY(clFlush(replica->device->queue), "sending work to '%s'", replica->device->can.name);
done:
    return status;
}

static tutti_status unmap(struct replica *replica)
{
    tutti_status status = TUTTI_OK;
    struct replica_gradients *gradients = &replica->gradients;
    if (gradients->mapped.parameters_mapped) plan_cache_invalidate(&replica->plans);
    gradients->mapped.parameters_mapped = false;
    while (gradients->mapped.count > 0) {
        const struct mapping *mapping = &gradients->mapped.mappings[--gradients->mapped.count];
        CL_TRY(clEnqueueUnmapMemObject(replica->device->queue, mapping->buffer, mapping->pointer, 0, NULL, NULL),
            "unmapping memory of '%s'", replica->device->can.name);
    }
done:
    return status;
}

static void free_all(struct replica *replica)
{
    (void)unmap(replica); /* nobody can handle a failure any more */
}

const struct gradient_transport gradients_mapped = {
    .can_map_parameters = true,
    .device_bytes = device_bytes,
    .build = nothing,
    .prepare = nothing,
    .send_bucket = mapped_send_bucket,
    .send_all = send_range,
    .unmap = unmap,
    .free = free_all,
};
