#include "replica/uploads.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

tutti_status uploads_write(struct uploads *uploads, const struct device *device, cl_command_queue queue, cl_mem buffer,
    size_t offset, const void *data, size_t bytes, cl_event *event)
{
    tutti_status status = TUTTI_OK;
    void *array = uploads->events;
    if (bytes == 0) return TUTTI_OK;
    TRY(memory_grow(&array, &uploads->capacity, uploads->count + 1, sizeof(*uploads->events)));
    uploads->events = array;
    CL_TRY(
        clEnqueueWriteBuffer(queue, buffer, CL_FALSE, offset, bytes, data, 0, NULL, &uploads->events[uploads->count]),
        "writing %zu bytes to '%s'", bytes, device->can.name);
    if (event) *event = uploads->events[uploads->count];
    uploads->count++;
    uploads->bytes += bytes;
done:
    return status;
}

size_t uploads_count(const struct uploads *uploads)
{
    return uploads->count;
}

const cl_event *uploads_event(const struct uploads *uploads, size_t number)
{
    return &uploads->events[number];
}

size_t uploads_bytes(const struct uploads *uploads)
{
    return uploads->bytes;
}

double event_seconds(cl_event event)
{
    cl_ulong start = 0, end = 0;
    if (clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof(start), &start, NULL) != CL_SUCCESS ||
        clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof(end), &end, NULL) != CL_SUCCESS)
        return 0;
    return end > start ? 1e-9 * (double)(end - start) : 0;
}

double uploads_seconds(const struct uploads *uploads, size_t count)
{
    double seconds = 0;
    for (size_t i = 0; i < count; i++) seconds += event_seconds(uploads->events[i]);
    return seconds;
}

void uploads_reset(struct uploads *uploads)
{
    for (size_t i = 0; i < uploads->count; i++) clReleaseEvent(uploads->events[i]);
    uploads->count = uploads->bytes = 0;
}

tutti_status uploads_stage(struct uploads *uploads, struct device *device, size_t bytes)
{
    if (uploads->staging.bytes >= bytes) return TUTTI_OK;
    uploads_free_staging(uploads);
    return staging_new(device, bytes, &uploads->staging);
}

void *uploads_staging(const struct uploads *uploads)
{
    return uploads->staging.pointer;
}

void uploads_free_staging(struct uploads *uploads)
{
    if (uploads->staging.buffer) staging_free(&uploads->staging);
    memset(&uploads->staging, 0, sizeof(uploads->staging));
}

void uploads_free(struct uploads *uploads)
{
    free(uploads->events);
}
