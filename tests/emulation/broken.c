/* A layer between a program and its OpenCL drivers that breaks what a driver does by itself: it fails questions about
 * the second device of a platform, adds a platform that fails, and ends, hangs or fills the memory of a process in
 * the compiler. It reads the environment in each call, so that helper processes are affected, too:
 *
 *   BROKEN_QUERY   name, type or memory: this question about the second device fails;
 *                  platform, list: another platform fails to count or to list its devices
 *   BROKEN_BUILD   abort, loop or allocate: what clBuildProgram() does with programs that have the mark
 *   BROKEN_LAUNCH  the same of the first launch of a kernel of such a program
 *   BROKEN_MARK    a part of the program's options or text
 *   BROKEN_COUNT   a file to which each program built gets a byte appended, by any process */
#include "tests/opencl_layer.h" /* first: it says which OpenCL */

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEVICES = 16, BLOCK = 16 << 20 };

static cl_device_id second;
static struct _cl_icd_dispatch *dispatch = &mine; /* a platform is known to the loader by what it begins with */

static bool is(const char *variable, const char *word)
{
    const char *value = getenv(variable);
    return value && !strcmp(value, word);
}

static bool adds_platform(void)
{
    return is("BROKEN_QUERY", "platform") || is("BROKEN_QUERY", "list");
}

static bool is_added(cl_platform_id platform)
{
    return (void *)platform == (void *)&dispatch;
}

static CL_API_ENTRY cl_int CL_API_CALL get_platforms(cl_uint count, cl_platform_id *platforms, cl_uint *found)
{
    cl_uint all = 0;
    cl_int error = next->clGetPlatformIDs(0, NULL, &all);
    if (error == CL_SUCCESS && platforms) error = next->clGetPlatformIDs(count < all ? count : all, platforms, NULL);
    if (error != CL_SUCCESS) return error;
    if (adds_platform() && platforms && count > all) platforms[all] = (cl_platform_id)(void *)&dispatch;
    if (found) *found = all + adds_platform();
    return CL_SUCCESS;
}

static CL_API_ENTRY cl_int CL_API_CALL get_platform_info(
    cl_platform_id platform, cl_platform_info name, size_t size, void *value, size_t *size_ret)
{
    static const char text[] = "Broken Platform";
    if (!is_added(platform)) return next->clGetPlatformInfo(platform, name, size, value, size_ret);
    if (value && size < sizeof(text)) return CL_INVALID_VALUE;
    if (value) memcpy(value, text, sizeof(text));
    if (size_ret) *size_ret = sizeof(text);
    return CL_SUCCESS;
}

static CL_API_ENTRY cl_int CL_API_CALL get_devices(
    cl_platform_id platform, cl_device_type type, cl_uint count, cl_device_id *devices, cl_uint *found)
{
    if (is_added(platform)) {
        if (is("BROKEN_QUERY", "platform") || devices) return CL_OUT_OF_HOST_MEMORY;
        if (found) *found = 1;
        return CL_SUCCESS;
    }
    cl_uint all = 0;
    const cl_int error = next->clGetDeviceIDs(platform, type, count, devices, &all);
    if (error == CL_SUCCESS && devices && count > 1 && all > 1) second = devices[1];
    if (found) *found = all;
    return error;
}

static CL_API_ENTRY cl_int CL_API_CALL get_device_info(
    cl_device_id device, cl_device_info name, size_t size, void *value, size_t *size_ret)
{
    const cl_device_info wanted = is("BROKEN_QUERY", "name") ? CL_DEVICE_NAME
        : is("BROKEN_QUERY", "type")                         ? CL_DEVICE_TYPE
        : is("BROKEN_QUERY", "memory")                       ? CL_DEVICE_GLOBAL_MEM_SIZE
                                                             : 0;
    if (second && device == second && name == wanted) return CL_OUT_OF_HOST_MEMORY;
    return next->clGetDeviceInfo(device, name, size, value, size_ret);
}

/* ---- the compiler ---- */

static bool holds(cl_program program, cl_program_info what, const char *mark)
{
    size_t size = 0;
    bool found = false;
    if (next->clGetProgramInfo(program, what, 0, NULL, &size) || size == 0) return false;
    char *text = calloc(1, size + 1);
    if (text && !next->clGetProgramInfo(program, what, size, text, NULL)) found = strstr(text, mark) != NULL;
    free(text);
    return found;
}

static bool is_marked(cl_program program, const char *options)
{
    const char *mark = getenv("BROKEN_MARK");
    return mark && ((options && strstr(options, mark)) || holds(program, CL_PROGRAM_SOURCE, mark));
}

static void misbehave(const char *variable)
{
    if (is(variable, "abort")) {
        fputs("LLVM ERROR: the layer gives up\nStack dump:\n", stderr);
        abort();
    }
    for (volatile bool on = is(variable, "loop"); on;) continue;
    while (is(variable, "allocate")) {
        char *block = malloc(BLOCK);
        if (block) memset(block, 1, BLOCK);
        usleep(1000);
    }
}

static void count_build(void)
{
    const char *path = getenv("BROKEN_COUNT");
    const int file = path ? open(path, O_WRONLY | O_CREAT | O_APPEND, 0600) : -1;
    if (file < 0) return;
    if (write(file, "b", 1) != 1) fputs("broken: cannot count\n", stderr);
    close(file);
}

static CL_API_ENTRY cl_int CL_API_CALL build_program(cl_program program, cl_uint count, const cl_device_id *devices,
    const char *options, void(CL_CALLBACK *notify)(cl_program, void *), void *user)
{
    count_build();
    if (getenv("BROKEN_BUILD") && is_marked(program, options)) misbehave("BROKEN_BUILD");
    return next->clBuildProgram(program, count, devices, options, notify, user);
}

static bool is_kernel_marked(cl_kernel kernel, cl_command_queue queue)
{
    cl_program program = NULL;
    cl_device_id device = NULL;
    char options[2048] = "";
    if (next->clGetKernelInfo(kernel, CL_KERNEL_PROGRAM, sizeof(program), &program, NULL) ||
        next->clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof(device), &device, NULL))
        return false;
    next->clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_OPTIONS, sizeof(options), options, NULL);
    return is_marked(program, options);
}

static CL_API_ENTRY cl_int CL_API_CALL enqueue_kernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
    const size_t *offset, const size_t *global, const size_t *local, cl_uint wait_count, const cl_event *wait,
    cl_event *event)
{
    if (getenv("BROKEN_LAUNCH") && is_kernel_marked(kernel, queue)) misbehave("BROKEN_LAUNCH");
    return next->clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global, local, wait_count, wait, event);
}

static void layer_start(void)
{
    mine.clGetPlatformIDs = get_platforms;
    mine.clGetPlatformInfo = get_platform_info;
    mine.clGetDeviceIDs = get_devices;
    mine.clGetDeviceInfo = get_device_info;
    mine.clBuildProgram = build_program;
    mine.clEnqueueNDRangeKernel = enqueue_kernel;
}
