/* An OpenCL layer that breaks the launches of one kernel, for the tests of `tutti tune`: TUNE_KERNEL is the kernel's
 * name, TUNE_FAULT what becomes of its launches: hang, crash, wrong (they do nothing) or slow. */
#include "tests/opencl_layer.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static CL_API_ENTRY cl_int CL_API_CALL enqueue(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
    const size_t *offset, const size_t *global, const size_t *local, cl_uint waits, const cl_event *wait,
    cl_event *event)
{
    const char *name = getenv("TUNE_KERNEL"), *fault = getenv("TUNE_FAULT");
    char kernel_name[128] = "";
    (void)next->clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, sizeof(kernel_name), kernel_name, NULL);
    if (name && fault && !strcmp(kernel_name, name)) {
        if (!strcmp(fault, "hang")) sleep(10000);
        if (!strcmp(fault, "crash")) abort();
        if (!strcmp(fault, "wrong") && !event) return CL_SUCCESS;
        if (!strcmp(fault, "slow")) nanosleep(&(struct timespec) { .tv_nsec = 30000000 }, NULL);
    }
    return next->clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global, local, waits, wait, event);
}

static void layer_start(void)
{
    mine.clEnqueueNDRangeKernel = enqueue;
}
