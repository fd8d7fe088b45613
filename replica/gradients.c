#include "replica/gradients.h"

#include "base/memory.h"
#include "replica/arena_launch.h"
#include "replica/replica.h"

#include <stdlib.h>

/* ----------------------------------------------------------------------------------------------- launches ---- */

void gradients_emit_add(const tutti_network *network, cl_mem sum, cl_mem gradients, struct launch_list *list)
{
    struct launch *launch = arena_launch(list, "arena", "gradients_add", "");
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
    return buffer_new(replica->device, bytes, &replica->gradients.buffer);
}

tutti_status gradients_make_sum(struct replica *replica)
{
    tutti_status status = TUTTI_OK;
    struct replica_gradients *gradients = &replica->gradients;
    const tutti_network *network = replica->setup->network;
    TRY(buffer_new(replica->device, (size_t)network->total_floats * sizeof(float), &gradients->sum));
    launch_list_init(&gradients->add, replica->device);
    gradients_emit_add(network, gradients->sum, gradients->buffer, &gradients->add);
    TRY(launch_list_realise(&gradients->add, NULL, NULL));
    TRY(launch_list_warm_up(&gradients->add));
    TRY(gradient_transport(replica)->build(replica, NULL));
    gradients->sum_made = true;
done:
    return status;
}

void gradients_drop_sum(struct replica *replica)
{
    struct replica_gradients *gradients = &replica->gradients;
    gradients->sum_made = false;
    launch_list_free(&gradients->add);
    launch_list_free(&gradients->copied.sum_to_wire);
    buffer_free(&gradients->sum);
}

bool gradients_have_sum(const struct replica_gradients *gradients)
{
    return gradients->sum_made;
}

cl_mem gradients_buffer(const struct replica_gradients *gradients, bool sum)
{
    return sum ? gradients->sum : gradients->buffer;
}

tutti_status gradients_accumulate(struct replica *replica, int64_t micro_batch)
{
    tutti_status status = TUTTI_OK;
    struct replica_gradients *gradients = &replica->gradients;
    if (micro_batch > 0) return launch_list_enqueue(&gradients->add, 0, gradients->add.count, NULL);
    CL_TRY(clEnqueueCopyBuffer(replica->device->queue, gradients->buffer, gradients->sum, 0, 0,
               (size_t)replica->setup->network->total_floats * sizeof(float), 0, NULL, NULL),
        "copying gradients on '%s'", replica->device->can.name);
done:
    return status;
}

void gradients_note_work(struct replica_gradients *gradients, bool sum)
{
    gradients->last_is_sum = sum;
}

void gradients_note_step(struct replica_gradients *gradients, bool has_part)
{
    gradients->has_last = has_part;
}

cl_mem gradients_last(const struct replica_gradients *gradients)
{
    return gradients->has_last ? gradients_buffer(gradients, gradients->last_is_sum) : NULL;
}

void gradients_free_buffers(struct replica *replica)
{
    launch_list_free(&replica->gradients.add);
    buffer_free(&replica->gradients.buffer);
    buffer_free(&replica->gradients.sum);
}

/* -------------------------------------------------------------------------------------------------- leaving ---- */

bool gradients_are_expected(const struct replica_gradients *gradients)
{
    return gradients->delivery_count == 0 || gradients->arrived < gradients->delivery_count;
}

tutti_status gradients_unmap(struct replica *replica)
{
    const struct gradient_transport *transport = gradient_transport(replica);
    return transport->unmap ? transport->unmap(replica) : TUTTI_OK;
}

bool gradients_mapped_parameters(const struct replica_gradients *gradients)
{
    return gradients->mapped.parameters_mapped;
}

const struct gradient_transport *gradient_transport(const struct replica *replica)
{
    return replica->device->can.unified ? &gradients_mapped : &gradients_copied;
}

tutti_status gradients_append_delivery(struct replica *replica, const struct bucket_delivery *delivery)
{
    struct replica_gradients *gradients = &replica->gradients;
    void *array = gradients->deliveries;
    const tutti_status status = memory_grow(
        &array, &gradients->delivery_capacity, gradients->delivery_count + 1, sizeof(*gradients->deliveries));
    if (status != TUTTI_OK) {
        clReleaseEvent(delivery->event);
        return status;
    }
    watchdog_lock(replica->setup->watchdog); /* the exchange looks at those that arrived */
    gradients->deliveries = array;
    gradients->deliveries[gradients->delivery_count++] = *delivery;
    watchdog_unlock(replica->setup->watchdog);
    return TUTTI_OK;
}

tutti_status gradients_await(struct replica *replica)
{
    tutti_status status = TUTTI_OK;
    struct replica_gradients *gradients = &replica->gradients;
    for (size_t i = 0; i < gradients->delivery_count; i++) {
        const cl_event event = gradients->deliveries[i].event;
        const bool last = i + 1 == gradients->delivery_count;
        TRY(last ? event_wait(replica->device, event) : event_wait_amid(replica->device, event));
        watchdog_lock(replica->setup->watchdog);
        gradients->arrived = i + 1;
        watchdog_notify(replica->setup->watchdog);
        watchdog_unlock(replica->setup->watchdog);
    }
done:
    return status;
}

void gradients_reset(struct replica *replica)
{
    struct replica_gradients *gradients = &replica->gradients;
    for (size_t i = 0; i < gradients->delivery_count; i++)
        if (gradients->deliveries[i].event) clReleaseEvent(gradients->deliveries[i].event);
    gradients->delivery_count = gradients->arrived = 0;
}

void gradients_free(struct replica *replica)
{
    free(replica->gradients.deliveries);
    free(replica->gradients.mapped.mappings);
}
