/* While a device with its own memory computes a step, the samples of the next step are uploaded: through page-locked
 * staging, by a separate queue, into a separate buffer, from which the next step copies them on the device. No upload
 * is in progress between two steps. Without room for the buffer, or after a failure, the next step sends its samples
 * itself, and reports the failure if it persists. */
#include "replica/prefetch.h"

#include "replica/replica_setup.h"
#include "replica/run.h"

#include <string.h>

bool prefetch_has(const struct replica *replica, uint64_t number, int64_t offset, int64_t samples)
{
    const struct prefetch *prefetch = &replica->prefetch;
    return number > 0 && prefetch->number == number && prefetch->offset == offset && prefetch->samples == samples;
}

static bool wanted(const struct replica *replica, const struct replica_work *work)
{
    return work->next.number > 0 && !replica->device->can.unified && work->samples <= replica->capacity &&
        !prefetch_has(replica, work->next.number, work->offset, work->samples);
}

static tutti_status make_room(struct replica *replica, size_t bytes)
{
    tutti_status status = TUTTI_OK;
    struct prefetch *prefetch = &replica->prefetch;
    if (prefetch->bytes >= bytes) return TUTTI_OK;
    prefetch_free(replica);
    if (replica_memory(replica) + bytes > replica->device->can.memory_bytes)
        FAIL(TUTTI_DEVICE_MEMORY, "there is not enough memory for the samples of a second step");
    TRY(device_open_queue(replica->device, &replica->device->prefetch_queue));
    TRY(buffer_new(replica->device, bytes, &prefetch->buffer));
    prefetch->bytes = bytes;
done:
    return status;
}

void prefetch_reserve(struct replica *replica, const struct replica_work *work)
{
    if (!wanted(replica, work)) return;
    const struct bound_sizes most = { work->samples, replica->setup->longest };
    if (make_room(replica, arrays_bytes(replica->setup->feeds, most)) != TUTTI_OK) prefetch_free(replica);
}

tutti_status prefetch_take(struct replica *replica, const struct plan *plan, int feed, int64_t offset, int64_t samples)
{
    tutti_status status = TUTTI_OK;
    const struct array_list *list = replica->setup->feeds;
    const struct prefetch *prefetch = &replica->prefetch;
    const int64_t length = plan->options.sizes.length;
    const size_t sample = arrays_sample_bytes(list, feed, length);
    const size_t from =
        arrays_offset(list, feed, (struct bound_sizes) { prefetch->samples, length }) + (size_t)offset * sample;
    CL_TRY(clEnqueueCopyBuffer(replica->device->queue, prefetch->buffer, plan_buffer(plan, plan->feeds[feed]), from, 0,
               (size_t)samples * sample, 0, NULL, NULL),
        "copying samples on '%s'", replica->device->can.name);
done:
    return status;
}

static tutti_status send(struct replica *replica, const struct replica_work *work)
{
    tutti_status status = TUTTI_OK;
    struct prefetch *prefetch = &replica->prefetch;
    const struct array_list *list = replica->setup->feeds;
    unsigned char *staging = uploads_staging(&replica->uploads);
    TRY(worker_guard_or_fail(&replica->worker));
    const struct arrays next = arrays_from(list, &work->next.feeds, work->offset);
    (void)arrays_pack(list, &next, work->samples, staging);
    worker_unguard(&replica->worker);
    TRY(uploads_write(&replica->uploads, replica->device, replica->device->prefetch_queue, prefetch->buffer, 0, staging,
        arrays_bytes(list, (struct bound_sizes) { work->samples, next.length }), &prefetch->sent));
    CL_TRY(clFlush(replica->device->prefetch_queue), "sending samples to '%s'", replica->device->can.name);
done:
    return status;
}

void prefetch_send(struct replica *replica, const struct replica_work *work, cl_event samples_taken)
{
    struct prefetch *prefetch = &replica->prefetch;
    prefetch->sent = NULL;
    if (!wanted(replica, work) || !prefetch->buffer) return;
    prefetch->number = 0;
    if (event_wait_amid(replica->device, samples_taken) == TUTTI_OK) (void)send(replica, work);
}

void prefetch_wait(struct replica *replica, const struct replica_work *work)
{
    struct prefetch *prefetch = &replica->prefetch;
    if (!prefetch->sent || event_wait(replica->device, prefetch->sent) != TUTTI_OK) return;
    prefetch->number = work->next.number;
    prefetch->offset = work->offset;
    prefetch->samples = work->samples;
}

void prefetch_free(struct replica *replica)
{
    buffer_free(&replica->prefetch.buffer);
    replica->prefetch.bytes = 0; /* each by itself: a thread that makes a plan may read this meanwhile */
    replica->prefetch.number = 0;
    replica->prefetch.sent = NULL;
}
