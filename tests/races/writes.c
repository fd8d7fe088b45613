/* A layer for oclgrind: a write of the host to a buffer writes the rest of that buffer, too.
 *
 * oclgrind (21.10, Uninitialized::hostMemoryStore) treats each write of the host as the first one to a buffer of that
 * size: it forgets what was written before, or was filled in steps of a pattern. Buffers of these tests are filled
 * with NaN first, so results show if a kernel reads memory that was never computed; oclgrind checks local and private
 * memory. */
#include "tests/opencl_layer.h"

#include <stdlib.h>

/* The buffer that a sub-buffer is part of. */
static cl_mem root_of(cl_mem buffer)
{
    cl_mem parent = NULL;
    next->clGetMemObjectInfo(buffer, CL_MEM_ASSOCIATED_MEMOBJECT, sizeof parent, &parent, NULL);
    return parent ? parent : buffer;
}

static cl_int write_again(cl_command_queue queue, cl_mem buffer)
{
    const cl_mem root = root_of(buffer);
    size_t bytes = 0;
    cl_int error = next->clGetMemObjectInfo(root, CL_MEM_SIZE, sizeof bytes, &bytes, NULL);
    void *all = error == CL_SUCCESS ? malloc(bytes) : NULL;
    if (!all) return error == CL_SUCCESS ? CL_OUT_OF_HOST_MEMORY : error;
    error = next->clEnqueueReadBuffer(queue, root, CL_TRUE, 0, bytes, all, 0, NULL, NULL);
    if (error == CL_SUCCESS) error = next->clEnqueueWriteBuffer(queue, root, CL_TRUE, 0, bytes, all, 0, NULL, NULL);
    free(all);
    return error;
}

static cl_int CL_API_CALL fill(cl_command_queue queue, cl_mem buffer, const void *pattern, size_t size, size_t offset,
    size_t bytes, cl_uint count, const cl_event *waits, cl_event *event)
{
    const cl_int error = next->clEnqueueFillBuffer(queue, buffer, pattern, size, offset, bytes, count, waits, event);
    return error == CL_SUCCESS ? write_again(queue, buffer) : error;
}

static cl_int CL_API_CALL write(cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset, size_t bytes,
    const void *data, cl_uint count, const cl_event *waits, cl_event *event)
{
    const cl_int error = next->clEnqueueWriteBuffer(queue, buffer, blocking, offset, bytes, data, count, waits, event);
    return error == CL_SUCCESS ? write_again(queue, buffer) : error;
}

static void layer_start(void)
{
    mine.clEnqueueFillBuffer = fill;
    mine.clEnqueueWriteBuffer = write;
}
