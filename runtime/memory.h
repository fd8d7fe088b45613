/* Device memory: an arena is one or more slabs, each at most the largest allocation. On CPUs they are cut into
 * sub-buffers, which may overlap. On GPU-class devices values take whole slabs, in turns: NVIDIA's driver 580 hangs in
 * clCreateSubBuffer and crashes in clReleaseMemObject where sub-buffers overlap in part. */
#ifndef RUNTIME_MEMORY_H
#define RUNTIME_MEMORY_H

#include "runtime/device.h"

#include <stdatomic.h>

struct arena {
    struct device *device;
    cl_mem *slabs;
    size_t *sizes;
    int count;
    atomic_int users; /* plans that share it, one of them perhaps being made by another thread */
};

/* A position in an arena. */
struct arena_position {
    int slab;
    size_t offset;
};

/* Allocates and touches one slab per size (each at most can.allocation_max). */
tutti_status arena_new(struct device *device, const size_t *sizes, int count, struct arena **arena);
void arena_free(struct arena *arena); /* drops one user; frees with the last. Takes NULL */
size_t arena_bytes(const struct arena *arena);
bool arena_is_whole(const struct device *device);
/* The slab itself where arenas are whole and the offset is 0, else a sub-buffer, at a multiple of can.alignment; the
 * caller releases it. bytes may be any. */
tutti_status arena_cut(struct arena *arena, struct arena_position position, size_t bytes, cl_mem *buffer);

/* A plain buffer (parameters, gradients, staging). contents may be NULL: zeroed. */
tutti_status buffer_new(struct device *device, size_t bytes, cl_mem *buffer);
void buffer_free(cl_mem *buffer); /* takes a pointer to NULL; sets NULL */
tutti_status buffer_cut(struct device *device, cl_mem parent, size_t offset, size_t bytes, cl_mem *buffer);
/* Blocking copies; wait by event. */
tutti_status buffer_write(struct device *device, cl_mem buffer, size_t offset, const void *data, size_t bytes);
tutti_status buffer_read(struct device *device, cl_mem buffer, size_t offset, void *data, size_t bytes);
/* Fills with a repeated 4-byte pattern (tests poison with NaN). */
tutti_status buffer_fill(struct device *device, cl_mem buffer, size_t offset, size_t bytes, uint32_t pattern);
/* Waits until all that was enqueued is done: by an event, never by clFinish alone. */
tutti_status device_wait(struct device *device);

/* Page-locked host memory for uploads and downloads; pointer stays mapped until freed. */
struct staging {
    struct device *device;
    cl_mem buffer;
    void *pointer;
    size_t bytes;
};
tutti_status staging_new(struct device *device, size_t bytes, struct staging *staging);
void staging_free(struct staging *staging);

#endif
