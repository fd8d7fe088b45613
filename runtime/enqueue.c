/* Enqueues launches on their device, and warms a list of them up. */
#include "runtime/builder.h"
#include "runtime/launch.h"
#include "runtime/memory.h"
#include "runtime/program.h"

#include <string.h>

static tutti_status enqueue(struct launch *launch, struct device *device, cl_event *event)
{
    tutti_status status = TUTTI_OK;
    if (launch->call) return launch->call(device, launch->state, event);
    if (!launch->kernel) {
        CL_TRY(clFlush(device->queue), "sending work to device %d, '%s',", device->index, device->can.name);
        TRY(launch_realise(launch, device));
    }
    CL_TRY(clEnqueueNDRangeKernel(device->queue, launch->kernel, (cl_uint)launch->dimensions, NULL, launch->global,
               launch->local, 0, NULL, event),
        "launching '%s' on device %d, '%s',", launch->kernel_name, device->index, device->can.name);
done:
    return status;
}

tutti_status launch_list_enqueue(struct launch_list *list, size_t first, size_t last, cl_event *events)
{
    tutti_status status = TUTTI_OK;
    size_t i = first;
    for (size_t j = 0; events && j < last - first; j++) events[j] = NULL;
    for (; i < last; i++) TRY(enqueue(&list->launches[i], list->device, events ? &events[i - first] : NULL));
    CL_TRY(
        clFlush(list->device->queue), "sending work to device %d, '%s',", list->device->index, list->device->can.name);
done:
    for (size_t j = 0; status != TUTTI_OK && events && j < last - first; j++) {
        if (events[j]) clReleaseEvent(events[j]);
        events[j] = NULL;
    }
    return status;
}

static bool same_form(const struct launch *a, const struct launch *b)
{
    return !strcmp(a->source, b->source) && !strcmp(a->kernel_name, b->kernel_name) &&
        !strcmp(a->options, b->options) && !memcmp(a->local, b->local, sizeof(a->local)) &&
        launch_is_large(a) == launch_is_large(b);
}

static bool seen_before(const struct launch_list *list, size_t which)
{
    for (size_t i = 0; i < which; i++)
        if (!list->launches[i].call && same_form(&list->launches[i], &list->launches[which])) return true;
    return false;
}

tutti_status launch_list_warm_up(struct launch_list *list)
{
    tutti_status status = TUTTI_OK;
    const bool known = builder_knows(list); /* which says nothing about the programs of calls */
    for (size_t i = 0; i < list->count; i++)
        if (list->launches[i].call || (!known && !seen_before(list, i))) TRY(launch_list_enqueue(list, i, i + 1, NULL));
    TRY(device_wait(list->device));
    if (known) return TUTTI_OK;
    programs_save(list->device);
    builder_note(list);
done:
    return status;
}
