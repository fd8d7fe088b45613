#include "replica/gradients.h"

#include "base/memory.h"
#include "replica/arena_launch.h"
#include "replica/replica.h"

#include <stdlib.h>

/* ----------------------------------------------------------------------------------------------- launches ---- */

void gradients_emit_add(const tutti_network *network, cl_mem sum, cl_mem gradients, struct launch_list *list)
{
    struct launch *launch = arena_launch(list, "optimizer", "gradients_add", "");
    launch_buffer(launch, sum);
    launch_buffer(launch, gradients);
    launch_long(launch, network->total_floats);
    arena_launch_range(launch, list->device, network->total_floats);
    launch_work(launch, (double)network->total_floats, 12 * (double)network->total_floats);
}

void gradients_emit_bf16(cl_mem gradients, cl_mem wire, int64_t first, int64_t count, struct launch_list *list)
{
    struct launch *launch = arena_launch(list, "wire", "gradients_to_bf16", "");
    launch_buffer(launch, gradients);
    launch_buffer(launch, wire);
    launch_long(launch, first);
    launch_long(launch, count);
    arena_launch_range(launch, list->device, count);
    launch_work(launch, (double)count, 6 * (double)count);
}

/* -------------------------------------------------------------------------------------------- on the device ---- */

tutti_status gradients_open(struct replica *replica)
{
    const size_t bytes = (size_t)replica->setup->network->total_floats * sizeof(float);
    return buffer_new(replica->device, bytes, &replica->transfer.gradients);
}

tutti_status gradients_make_sum(struct replica *replica)
{
    tutti_status status = TUTTI_OK;
    struct gradient_transfer *transfer = &replica->transfer;
    const tutti_network *network = replica->setup->network;
    TRY(buffer_new(replica->device, (size_t)network->total_floats * sizeof(float), &transfer->sum));
    launch_list_init(&transfer->add, replica->device);
    gradients_emit_add(network, transfer->sum, transfer->gradients, &transfer->add);
    TRY(launch_list_realise(&transfer->add, NULL, NULL));
    TRY(launch_list_warm_up(&transfer->add));
    TRY(gradient_transport(replica)->build(replica, NULL));
    transfer->sum_made = true;
done:
    return status;
}

void gradients_drop_sum(struct replica *replica)
{
    struct gradient_transfer *transfer = &replica->transfer;
    transfer->sum_made = false;
    launch_list_free(&transfer->add);
    launch_list_free(&transfer->copied.sum_to_wire);
    buffer_free(&transfer->sum);
}

bool gradients_have_sum(const struct gradient_transfer *transfer)
{
    return transfer->sum_made;
}

cl_mem gradients_buffer(const struct gradient_transfer *transfer, bool sum)
{
    return sum ? transfer->sum : transfer->gradients;
}

tutti_status gradients_add_up(struct replica *replica, int64_t micro_batch)
{
    tutti_status status = TUTTI_OK;
    struct gradient_transfer *transfer = &replica->transfer;
    if (micro_batch > 0) return launch_list_enqueue(&transfer->add, 0, transfer->add.count, NULL);
    CL_TRY(clEnqueueCopyBuffer(replica->device->queue, transfer->gradients, transfer->sum, 0, 0,
               (size_t)replica->setup->network->total_floats * sizeof(float), 0, NULL, NULL),
        "copying gradients on '%s'", replica->device->can.name);
done:
    return status;
}

void gradients_note_work(struct gradient_transfer *transfer, bool sum)
{
    transfer->last_is_sum = sum;
}

void gradients_note_step(struct gradient_transfer *transfer, bool has_part)
{
    transfer->has_last = has_part;
}

cl_mem gradients_last(const struct gradient_transfer *transfer)
{
    return transfer->has_last ? gradients_buffer(transfer, transfer->last_is_sum) : NULL;
}

void gradients_free_buffers(struct replica *replica)
{
    launch_list_free(&replica->transfer.add);
    buffer_free(&replica->transfer.gradients);
    buffer_free(&replica->transfer.sum);
}

/* -------------------------------------------------------------------------------------------------- leaving ---- */

bool gradients_are_expected(const struct gradient_transfer *transfer)
{
    return transfer->delivery_count == 0 || transfer->arrived < transfer->delivery_count;
}

bool gradients_mapped_parameters(const struct gradient_transfer *transfer)
{
    return transfer->mapped.parameters_mapped;
}

const struct gradient_transport *gradient_transport(const struct replica *replica)
{
    return replica->device->can.unified ? &gradients_mapped : &gradients_copied;
}

tutti_status gradients_add(struct replica *replica, const struct bucket_delivery *delivery)
{
    struct gradient_transfer *transfer = &replica->transfer;
    void *array = transfer->deliveries;
    const tutti_status status =
        memory_grow(&array, &transfer->delivery_capacity, transfer->delivery_count + 1, sizeof(*transfer->deliveries));
    if (status != TUTTI_OK) {
        clReleaseEvent(delivery->event);
        return status;
    }
    watchdog_lock(replica->setup->watchdog); /* the exchange looks at those that arrived */
    transfer->deliveries = array;
    transfer->deliveries[transfer->delivery_count++] = *delivery;
    watchdog_unlock(replica->setup->watchdog);
    return TUTTI_OK;
}

tutti_status gradients_await(struct replica *replica)
{
    tutti_status status = TUTTI_OK;
    struct gradient_transfer *transfer = &replica->transfer;
    for (size_t i = 0; i < transfer->delivery_count; i++) {
        const cl_event event = transfer->deliveries[i].event;
        const bool last = i + 1 == transfer->delivery_count;
        TRY(last ? event_wait(replica->device, event) : event_wait_amid(replica->device, event));
        watchdog_lock(replica->setup->watchdog);
        transfer->arrived = i + 1;
        watchdog_notify(replica->setup->watchdog);
        watchdog_unlock(replica->setup->watchdog);
    }
done:
    return status;
}

void gradients_reset(struct replica *replica)
{
    struct gradient_transfer *transfer = &replica->transfer;
    for (size_t i = 0; i < transfer->delivery_count; i++)
        if (transfer->deliveries[i].event) clReleaseEvent(transfer->deliveries[i].event);
    transfer->delivery_count = transfer->arrived = 0;
}

void gradients_free(struct replica *replica)
{
    free(replica->transfer.deliveries);
    free(replica->transfer.mapped.mappings);
}
