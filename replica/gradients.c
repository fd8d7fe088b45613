#include "replica/gradients.h"

#include "base/memory.h"
#include "replica/replica.h"
#include "replica/replica_setup.h"

#include <stdlib.h>

/* -------------------------------------------------------------------------------------------- on the device ---- */

tutti_status gradients_open(struct replica *replica)
{
    const size_t bytes = (size_t)replica->setup->network->total_floats * sizeof(float);
    return buffer_new(replica->device, bytes, &replica->port.gradients);
}

tutti_status gradients_make_sum(struct replica *replica)
{
    tutti_status status = TUTTI_OK;
    struct gradient_port *port = &replica->port;
    const tutti_network *network = replica->setup->network;
    TRY(buffer_new(replica->device, (size_t)network->total_floats * sizeof(float), &port->sum));
    launch_list_init(&port->add, replica->device);
    optimizer_emit_add(network, port->sum, port->gradients, &port->add);
    TRY(launch_list_realise(&port->add, NULL, NULL));
    TRY(launch_list_warm_up(&port->add));
    TRY(gradient_way(replica)->build(replica, NULL));
    port->sum_made = true;
done:
    return status;
}

void gradients_drop_sum(struct replica *replica)
{
    struct gradient_port *port = &replica->port;
    port->sum_made = false;
    launch_list_free(&port->add);
    launch_list_free(&port->copied.sum_to_wire);
    buffer_free(&port->sum);
}

bool gradients_have_sum(const struct gradient_port *port)
{
    return port->sum_made;
}

cl_mem gradients_buffer(const struct gradient_port *port, bool sum)
{
    return sum ? port->sum : port->gradients;
}

tutti_status gradients_add_up(struct replica *replica, int64_t micro_batch)
{
    tutti_status status = TUTTI_OK;
    struct gradient_port *port = &replica->port;
    if (micro_batch > 0) return launch_list_enqueue(&port->add, 0, port->add.count, NULL);
    CL_TRY(clEnqueueCopyBuffer(replica->device->queue, port->gradients, port->sum, 0, 0,
               (size_t)replica->setup->network->total_floats * sizeof(float), 0, NULL, NULL),
        "copying gradients on '%s'", replica->device->can.name);
done:
    return status;
}

void gradients_note_work(struct gradient_port *port, bool sum)
{
    port->last_is_sum = sum;
}

void gradients_note_step(struct gradient_port *port, bool has_part)
{
    port->has_last = has_part;
}

cl_mem gradients_last(const struct gradient_port *port)
{
    return port->has_last ? gradients_buffer(port, port->last_is_sum) : NULL;
}

void gradients_free_buffers(struct replica *replica)
{
    launch_list_free(&replica->port.add);
    buffer_free(&replica->port.gradients);
    buffer_free(&replica->port.sum);
}

/* -------------------------------------------------------------------------------------------------- leaving ---- */

bool gradients_are_expected(const struct gradient_port *port)
{
    return port->arrival_count == 0 || port->arrived < port->arrival_count;
}

bool gradients_are_exposed(const struct gradient_port *port)
{
    return port->mapped.exposed;
}

const struct gradient_way *gradient_way(const struct replica *replica)
{
    return replica->device->can.unified ? &gradients_mapped : &gradients_copied;
}

tutti_status gradients_add(struct replica *replica, const struct arrival *arrival)
{
    struct gradient_port *port = &replica->port;
    void *array = port->arrivals;
    const tutti_status status =
        memory_grow(&array, &port->arrival_capacity, port->arrival_count + 1, sizeof(*port->arrivals));
    if (status != TUTTI_OK) {
        clReleaseEvent(arrival->event);
        return status;
    }
    watchdog_lock(replica->setup->watchdog); /* the exchange looks at those that arrived */
    port->arrivals = array;
    port->arrivals[port->arrival_count++] = *arrival;
    watchdog_unlock(replica->setup->watchdog);
    return TUTTI_OK;
}

tutti_status gradients_await(struct replica *replica)
{
    tutti_status status = TUTTI_OK;
    struct gradient_port *port = &replica->port;
    for (size_t i = 0; i < port->arrival_count; i++) {
        const cl_event event = port->arrivals[i].event;
        const bool last = i + 1 == port->arrival_count;
        TRY(last ? event_wait(replica->device, event) : event_wait_amid(replica->device, event));
        watchdog_lock(replica->setup->watchdog);
        port->arrived = i + 1;
        watchdog_notify(replica->setup->watchdog);
        watchdog_unlock(replica->setup->watchdog);
    }
done:
    return status;
}

void gradients_forget(struct replica *replica)
{
    struct gradient_port *port = &replica->port;
    for (size_t i = 0; i < port->arrival_count; i++)
        if (port->arrivals[i].event) clReleaseEvent(port->arrivals[i].event);
    port->arrival_count = port->arrived = 0;
}

void gradients_free(struct replica *replica)
{
    free(replica->port.arrivals);
    free(replica->port.mapped.mappings);
}
