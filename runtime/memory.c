#include "runtime/memory.h"

#include "base/memory.h"
#include "base/threads.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static tutti_status queue_wait(struct device *device, cl_command_queue queue)
{
    tutti_status status = TUTTI_OK;
    cl_event event = NULL;
    CL_TRY(clEnqueueMarkerWithWaitList(queue, 0, NULL, &event), "waiting for '%s'", device->can.name);
    CL_TRY(clFlush(queue), "sending work to '%s'", device->can.name);
    TRY(event_wait(device, event));
done:
    if (event) clReleaseEvent(event);
    return status;
}

tutti_status device_wait(struct device *device)
{
    const cl_command_queue queues[] = { device->queue, device->exchange_queue, device->prefetch_queue };
    tutti_status status = TUTTI_OK;
    for (size_t i = 0; i < sizeof(queues) / sizeof(queues[0]); i++) {
        const tutti_status one = queues[i] ? queue_wait(device, queues[i]) : TUTTI_OK;
        if (status == TUTTI_OK) status = one;
    }
    return status;
}

/* Waits for the event of a command that was just enqueued, and releases it. */
static tutti_status finish(struct device *device, cl_event event)
{
    tutti_status status = event_wait(device, event);
    clReleaseEvent(event);
    return status;
}

/* Pages of 2 MiB instead of 4 KiB: large buffers on a CPU are read up to 20 % faster, and touched first 3 times faster.
 * Many that are smaller than a page, as the arenas of small networks, also have more pages than the CPU keeps at hand.
 */
enum { HUGE_PAGE = 2 << 20, HUGE_FROM = 1 << 20, TOUCH_BYTES = 16 << 20 };

struct mapping {
    void *memory;
    size_t bytes;
};

static void CL_CALLBACK mapping_free(cl_mem buffer, void *argument)
{
    (void)buffer;
    struct mapping *mapping = argument;
    munmap(mapping->memory, mapping->bytes);
    free(mapping);
}

/* A range of fresh memory. Its pages come into being as zeros when they are first touched. Most of that time is the
 * system's clearing, so all cores do it. */
struct touching {
    volatile char *memory;
    size_t bytes;
};

static void touch(void *argument, int task)
{
    enum { PAGE = 4096 };
    const struct touching *touching = argument;
    size_t start = (size_t)task * TOUCH_BYTES, end = start + TOUCH_BYTES;
    for (size_t at = start; at < end && at < touching->bytes; at += PAGE) touching->memory[at] = 0;
}

static void touch_all(const struct device *device, void *memory, size_t bytes)
{
    struct thread_pool *pool = NULL;
    struct touching touching = { memory, bytes };
    if (thread_pool_new(&pool, device->runtime->threads) != TUTTI_OK) return; /* they are touched later, then */
    thread_pool_run(pool, (int)divide_up((int64_t)bytes, TOUCH_BYTES), touch, &touching);
    thread_pool_free(pool);
}

/* Makes a buffer of zeros over the host's own memory in huge pages; NULL where that cannot be had: an ordinary one
 * then does. */
static cl_mem allocate_huge(struct device *device, size_t bytes, cl_mem_flags flags)
{
    cl_int error = CL_SUCCESS;
    struct mapping *mapping = memory_new(1, sizeof(*mapping));
    if (!mapping) return NULL;
    mapping->bytes = size_round_up(bytes, HUGE_PAGE) + HUGE_PAGE;
    mapping->memory = mmap(NULL, mapping->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping->memory == MAP_FAILED) {
        free(mapping);
        return NULL;
    }
    char *start = (char *)mapping->memory + (HUGE_PAGE - (uintptr_t)mapping->memory % HUGE_PAGE) % HUGE_PAGE;
    (void)!madvise(start, size_round_up(bytes, HUGE_PAGE), MADV_HUGEPAGE); /* a kernel without them gives small ones */
    touch_all(device, start, bytes);
    cl_mem buffer = clCreateBuffer(
        device->context, (flags & ~(cl_mem_flags)CL_MEM_ALLOC_HOST_PTR) | CL_MEM_USE_HOST_PTR, bytes, start, &error);
    if (buffer && clSetMemObjectDestructorCallback(buffer, mapping_free, mapping) == CL_SUCCESS) return buffer;
    if (buffer) clReleaseMemObject(buffer);
    munmap(mapping->memory, mapping->bytes);
    free(mapping);
    return NULL;
}

/* *zeros: whether the buffer is known to hold zeros. */
static tutti_status allocate(struct device *device, size_t bytes, cl_mem_flags flags, cl_mem *buffer, bool *zeros)
{
    tutti_status status = TUTTI_OK;
    cl_int error = CL_SUCCESS;
    *buffer = NULL;
    if (bytes > device->can.allocation_max)
        FAIL(TUTTI_DEVICE_MEMORY,
            "a buffer of %zu bytes is needed, but device %d, '%s', allocates at most %zu: lower the batch or the "
            "micro-batch",
            bytes, device->index, device->can.name, device->can.allocation_max);
    if (device->host_cpu && bytes >= HUGE_FROM) *buffer = allocate_huge(device, bytes, flags);
    *zeros = *buffer != NULL;
    if (*buffer) return TUTTI_OK;
    *buffer = clCreateBuffer(device->context, flags, bytes ? bytes : 4, NULL, &error);
    CL_TRY(error, "allocating %zu bytes on device %d, '%s',", bytes, device->index, device->can.name);
done:
    if (status != TUTTI_OK) *buffer = NULL;
    return status;
}

tutti_status buffer_fill(struct device *device, cl_mem buffer, size_t offset, size_t bytes, uint32_t pattern)
{
    tutti_status status = TUTTI_OK;
    cl_event event = NULL;
    size_t whole = bytes / 4 * 4;
    if (whole > 0) {
        CL_TRY(clEnqueueFillBuffer(device->queue, buffer, &pattern, 4, offset, whole, 0, NULL, &event),
            "filling %zu bytes on '%s'", bytes, device->can.name);
        TRY(finish(device, event));
    }
    if (bytes > whole) TRY(buffer_write(device, buffer, offset + whole, &pattern, bytes - whole));
done:
    return status;
}

/* Turns a lack of resources into a lack of memory, both where memory is allocated and where it is first touched,
 * which is when some drivers allocate it. */
static tutti_status lack_of_memory(tutti_status status)
{
    return status == TUTTI_DEVICE_RESOURCES ? TUTTI_DEVICE_MEMORY : status;
}

tutti_status buffer_new(struct device *device, size_t bytes, cl_mem *buffer)
{
    tutti_status status = TUTTI_OK;
    bool zeros;
    TRY(allocate(device, bytes, CL_MEM_READ_WRITE, buffer, &zeros));
    if (!zeros) TRY(buffer_fill(device, *buffer, 0, bytes, 0));
done:
    if (status != TUTTI_OK) buffer_free(buffer);
    return lack_of_memory(status);
}

void buffer_free(cl_mem *buffer)
{
    if (*buffer) clReleaseMemObject(*buffer);
    *buffer = NULL;
}

tutti_status buffer_cut(struct device *device, cl_mem parent, size_t offset, size_t bytes, cl_mem *buffer)
{
    tutti_status status = TUTTI_OK;
    cl_int error = CL_SUCCESS;
    const cl_buffer_region region = { offset, bytes ? bytes : 4 };
    *buffer = NULL;
    if (offset % device->can.alignment != 0)
        FAIL(TUTTI_INTERNAL, "a sub-buffer at byte %zu is not aligned to %zu", offset, device->can.alignment);
    *buffer = clCreateSubBuffer(parent, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region, &error);
    CL_TRY(error, "creating a sub-buffer of %zu bytes at %zu on '%s'", bytes, offset, device->can.name);
done:
    if (status != TUTTI_OK) *buffer = NULL;
    return status;
}

tutti_status buffer_write(struct device *device, cl_mem buffer, size_t offset, const void *data, size_t bytes)
{
    tutti_status status = TUTTI_OK;
    cl_event event = NULL;
    if (bytes == 0) return TUTTI_OK;
    CL_TRY(clEnqueueWriteBuffer(device->queue, buffer, CL_FALSE, offset, bytes, data, 0, NULL, &event),
        "writing %zu bytes to '%s'", bytes, device->can.name);
    TRY(finish(device, event));
done:
    return status;
}

tutti_status buffer_read(struct device *device, cl_mem buffer, size_t offset, void *data, size_t bytes)
{
    tutti_status status = TUTTI_OK;
    cl_event event = NULL;
    if (bytes == 0) return TUTTI_OK;
    CL_TRY(clEnqueueReadBuffer(device->queue, buffer, CL_FALSE, offset, bytes, data, 0, NULL, &event),
        "reading %zu bytes from '%s'", bytes, device->can.name);
    TRY(finish(device, event));
done:
    return status;
}

static tutti_status limits_check(const struct device *device, const size_t *sizes, int count)
{
    size_t total = 0;
    for (int i = 0; i < count; i++)
        if (!size_add(total, sizes[i], &total))
            return fail(TUTTI_DEVICE_MEMORY, "the sum of the slabs' sizes overflows");
    if (total > device->can.memory_bytes)
        return fail(TUTTI_DEVICE_MEMORY,
            "%zu bytes are needed, but device %d, '%s', has only %zu: lower the batch or the micro-batch", total,
            device->index, device->can.name, device->can.memory_bytes);
    return TUTTI_OK;
}

tutti_status arena_new(struct device *device, const size_t *sizes, int count, struct arena **made)
{
    tutti_status status = TUTTI_OK;
    struct arena *arena = memory_new(1, sizeof(*arena));
    if (!arena) return TUTTI_NO_MEMORY;
    arena->device = device;
    arena->users = 1;
    arena->slabs = memory_new((size_t)count, sizeof(*arena->slabs));
    arena->sizes = memory_new((size_t)count, sizeof(*arena->sizes));
    if (!arena->slabs || !arena->sizes) {
        status = TUTTI_NO_MEMORY;
        goto done;
    }
    TRY(limits_check(device, sizes, count));
    for (; arena->count < count; arena->count++) {
        /* Filled at once: memory that does not exist after all is noticed here and not in a step. */
        TRY(buffer_new(device, sizes[arena->count], &arena->slabs[arena->count]));
        arena->sizes[arena->count] = sizes[arena->count];
    }
    *made = arena;
    return TUTTI_OK;
done:
    arena_free(arena);
    return status;
}

void arena_free(struct arena *arena)
{
    if (!arena || atomic_fetch_sub(&arena->users, 1) > 1) return;
    for (int i = 0; i < arena->count; i++) buffer_free(&arena->slabs[i]);
    free(arena->slabs);
    free(arena->sizes);
    free(arena);
}

size_t arena_bytes(const struct arena *arena)
{
    size_t total = 0;
    for (int i = 0; i < arena->count; i++) total += arena->sizes[i];
    return total;
}

bool arena_is_whole(const struct device *device)
{
    return device->can.class == DEVICE_GPU;
}

static tutti_status share_slab(struct arena *arena, int slab, cl_mem *buffer)
{
    tutti_status status = TUTTI_OK;
    CL_TRY(clRetainMemObject(arena->slabs[slab]), "sharing a slab of '%s'", arena->device->can.name);
    *buffer = arena->slabs[slab];
done:
    return status;
}

tutti_status arena_cut(struct arena *arena, struct arena_position position, size_t bytes, cl_mem *buffer)
{
    *buffer = NULL;
    size_t end;
    if (position.slab < 0 || position.slab >= arena->count || !size_add(position.offset, bytes, &end) ||
        end > arena->sizes[position.slab])
        return fail(TUTTI_INTERNAL, "%zu bytes at %zu lie outside of slab %d", bytes, position.offset, position.slab);
    if (arena_is_whole(arena->device) && position.offset == 0) return share_slab(arena, position.slab, buffer);
    return buffer_cut(arena->device, arena->slabs[position.slab], position.offset, bytes, buffer);
}

tutti_status staging_new(struct device *device, size_t bytes, struct staging *staging)
{
    tutti_status status = TUTTI_OK;
    cl_event event = NULL;
    cl_int error = CL_SUCCESS;
    bool zeros = false;
    *staging = (struct staging) { .device = device, .bytes = bytes };
    TRY(allocate(device, bytes, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, &staging->buffer, &zeros));
    staging->pointer = clEnqueueMapBuffer(device->queue, staging->buffer, CL_FALSE, CL_MAP_READ | CL_MAP_WRITE, 0,
        bytes ? bytes : 4, 0, NULL, &event, &error);
    CL_TRY(error, "mapping %zu bytes of '%s'", bytes, device->can.name);
    TRY(finish(device, event));
    if (!zeros) memset(staging->pointer, 0, bytes);
done:
    if (status != TUTTI_OK) staging_free(staging);
    return lack_of_memory(status);
}

void staging_free(struct staging *staging)
{
    cl_event event = NULL;
    if (staging->pointer &&
        clEnqueueUnmapMemObject(staging->device->queue, staging->buffer, staging->pointer, 0, NULL, &event) ==
            CL_SUCCESS)
        (void)finish(staging->device, event); /* nobody is left who could use a failure */
    buffer_free(&staging->buffer);
    *staging = (struct staging) { 0 };
}
