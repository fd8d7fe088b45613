#include "train/gradients.h"

#include <stdlib.h>

#include "base/memory.h"
#include "train/trainer.h"

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
    watch_lock(&replica->trainer->watch); /* the exchange looks at those that arrived */
    port->arrivals = array;
    port->arrivals[port->arrival_count++] = *arrival;
    watch_unlock(&replica->trainer->watch);
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
        watch_lock(&replica->trainer->watch);
        port->arrived = i + 1;
        watch_tell(&replica->trainer->watch);
        watch_unlock(&replica->trainer->watch);
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
    free(replica->port.mappings);
}
