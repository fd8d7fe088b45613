#include "runtime/opencl.h"

#include "base/numbers.h"

#include <stdarg.h>
#include <stdio.h>

/* What an error means for the user: which status it becomes, and what to do about it. */
static const struct {
    cl_int error;
    const char *name;
    tutti_status status;
    const char *advice;
} errors[] = {
    { -1, "CL_DEVICE_NOT_FOUND", TUTTI_NO_DEVICE, "the platform has no such device: see 'tutti devices'" },
    { -2, "CL_DEVICE_NOT_AVAILABLE", TUTTI_DEVICE_LOST,
        "the device is in use or has failed: close other programs that use it, then see 'tutti devices --check'" },
    { -3, "CL_COMPILER_NOT_AVAILABLE", TUTTI_BUILD,
        "the driver was installed without its compiler: install the complete driver" },
    { -4, "CL_MEM_OBJECT_ALLOCATION_FAILURE", TUTTI_DEVICE_MEMORY,
        "the device's memory is full: lower the batch or the micro-batch, or close other programs that use the "
        "device" },
    { -5, "CL_OUT_OF_RESOURCES", TUTTI_DEVICE_RESOURCES,
        "the device ran out of memory or a kernel was stopped: lower the batch, or see 'tutti devices --check'" },
    { -6, "CL_OUT_OF_HOST_MEMORY", TUTTI_DEVICE, /* drivers say so of much that is theirs alone */
        "the driver lacks memory, or reports another fault so: close other programs, or update the driver" },
    { -7, "CL_PROFILING_INFO_NOT_AVAILABLE", TUTTI_DEVICE, "the driver does not measure times" },
    { -8, "CL_MEM_COPY_OVERLAP", TUTTI_INTERNAL, NULL },
    { -9, "CL_IMAGE_FORMAT_MISMATCH", TUTTI_INTERNAL, NULL },
    { -10, "CL_IMAGE_FORMAT_NOT_SUPPORTED", TUTTI_INTERNAL, NULL },
    { -11, "CL_BUILD_PROGRAM_FAILURE", TUTTI_BUILD, "the driver's compiler refused a kernel: try a newer driver" },
    { -12, "CL_MAP_FAILURE", TUTTI_DEVICE_MEMORY, "the host could not reach the device's memory: lower the batch" },
    { -13, "CL_MISALIGNED_SUB_BUFFER_OFFSET", TUTTI_INTERNAL, NULL },
    { -14, "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST", TUTTI_DEVICE_LOST,
        "a kernel or copy failed on the device: see the system's log, then 'tutti devices --check'" },
    { -15, "CL_COMPILE_PROGRAM_FAILURE", TUTTI_BUILD, "the driver's compiler refused a kernel: try a newer driver" },
    { -16, "CL_LINKER_NOT_AVAILABLE", TUTTI_BUILD,
        "the driver was installed without its compiler: install the complete driver" },
    { -17, "CL_LINK_PROGRAM_FAILURE", TUTTI_BUILD, "the driver's compiler refused a kernel: try a newer driver" },
    { -18, "CL_DEVICE_PARTITION_FAILED", TUTTI_NO_DEVICE,
        "this device cannot be split into so many parts: change TUTTI_SUB_DEVICES" },
    { -19, "CL_KERNEL_ARG_INFO_NOT_AVAILABLE", TUTTI_INTERNAL, NULL },
    { -30, "CL_INVALID_VALUE", TUTTI_DEVICE, NULL },
    { -31, "CL_INVALID_DEVICE_TYPE", TUTTI_INTERNAL, NULL },
    { -32, "CL_INVALID_PLATFORM", TUTTI_NO_PLATFORM, "the driver disappeared: see 'tutti devices'" },
    { -33, "CL_INVALID_DEVICE", TUTTI_NO_DEVICE, "the device disappeared: see 'tutti devices'" },
    { -34, "CL_INVALID_CONTEXT", TUTTI_DEVICE_LOST, "the device failed earlier: see the system's log" },
    { -35, "CL_INVALID_QUEUE_PROPERTIES", TUTTI_DEVICE, "the driver has no in-order queue that measures times" },
    { -36, "CL_INVALID_COMMAND_QUEUE", TUTTI_DEVICE_LOST, "the device failed earlier: see the system's log" },
    { -37, "CL_INVALID_HOST_PTR", TUTTI_INTERNAL, NULL },
    { -38, "CL_INVALID_MEM_OBJECT", TUTTI_INTERNAL, NULL },
    { -39, "CL_INVALID_IMAGE_FORMAT_DESCRIPTOR", TUTTI_INTERNAL, NULL },
    { -40, "CL_INVALID_IMAGE_SIZE", TUTTI_INTERNAL, NULL },
    { -41, "CL_INVALID_SAMPLER", TUTTI_INTERNAL, NULL },
    { -42, "CL_INVALID_BINARY", TUTTI_BUILD, "the cached program was made by another driver: remove the cache folder" },
    { -43, "CL_INVALID_BUILD_OPTIONS", TUTTI_BUILD,
        "the driver's compiler does not know an option: try a newer driver" },
    { -44, "CL_INVALID_PROGRAM", TUTTI_INTERNAL, NULL },
    { -45, "CL_INVALID_PROGRAM_EXECUTABLE", TUTTI_BUILD, "the driver's compiler refused a kernel: try a newer driver" },
    { -46, "CL_INVALID_KERNEL_NAME", TUTTI_INTERNAL, NULL },
    { -47, "CL_INVALID_KERNEL_DEFINITION", TUTTI_INTERNAL, NULL },
    { -48, "CL_INVALID_KERNEL", TUTTI_INTERNAL, NULL },
    { -49, "CL_INVALID_ARG_INDEX", TUTTI_INTERNAL, NULL },
    { -50, "CL_INVALID_ARG_VALUE", TUTTI_INTERNAL, NULL },
    { -51, "CL_INVALID_ARG_SIZE", TUTTI_INTERNAL, NULL },
    { -52, "CL_INVALID_KERNEL_ARGS", TUTTI_INTERNAL, NULL },
    { -53, "CL_INVALID_WORK_DIMENSION", TUTTI_INTERNAL, NULL },
    { -54, "CL_INVALID_WORK_GROUP_SIZE", TUTTI_DEVICE, "the device supports only smaller work-groups for this kernel" },
    { -55, "CL_INVALID_WORK_ITEM_SIZE", TUTTI_DEVICE, "the device supports only smaller work-groups" },
    { -56, "CL_INVALID_GLOBAL_OFFSET", TUTTI_INTERNAL, NULL },
    { -57, "CL_INVALID_EVENT_WAIT_LIST", TUTTI_INTERNAL, NULL },
    { -58, "CL_INVALID_EVENT", TUTTI_INTERNAL, NULL },
    { -59, "CL_INVALID_OPERATION", TUTTI_DEVICE, NULL },
    { -60, "CL_INVALID_GL_OBJECT", TUTTI_INTERNAL, NULL },
    { -61, "CL_INVALID_BUFFER_SIZE", TUTTI_DEVICE_MEMORY,
        "one buffer is larger than the device allows: lower the batch or the micro-batch" },
    { -62, "CL_INVALID_MIP_LEVEL", TUTTI_INTERNAL, NULL },
    { -63, "CL_INVALID_GLOBAL_WORK_SIZE", TUTTI_INTERNAL, NULL },
    { -64, "CL_INVALID_PROPERTY", TUTTI_DEVICE, NULL },
    { -68, "CL_INVALID_DEVICE_PARTITION_COUNT", TUTTI_NO_DEVICE,
        "the device has too few compute units: lower TUTTI_SUB_DEVICES" },
    { -1001, "CL_PLATFORM_NOT_FOUND_KHR", TUTTI_NO_PLATFORM,
        "no OpenCL driver is installed: install your device's, or for the CPU 'apt-get install pocl-opencl-icd'; each "
        "driver has a file in /etc/OpenCL/vendors" },
    { -9999, "NVIDIA: illegal read or write by a kernel", TUTTI_DEVICE_LOST,
        "please report this with the output of 'tutti devices --check'" },
};

static size_t find_error(cl_int error)
{
    size_t i = 0;
    while (i < sizeof(errors) / sizeof(errors[0]) && errors[i].error != error) i++;
    return i;
}

const char *opencl_error_name(cl_int error)
{
    if (error == CL_SUCCESS) return "CL_SUCCESS";
    size_t i = find_error(error);
    return i < sizeof(errors) / sizeof(errors[0]) ? errors[i].name : "an error unknown to OpenCL";
}

tutti_status opencl_fail(cl_int error, const char *file, int line, const char *what, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, what);
    number_print_list(text, sizeof(text), what, arguments);
    va_end(arguments);
    size_t i = find_error(error);
    bool known = i < sizeof(errors) / sizeof(errors[0]);
    const char *advice = known ? errors[i].advice : NULL;
    return status_fail(known ? errors[i].status : TUTTI_DEVICE, file, line, "%s failed with %s (%d)%s%s", text,
        opencl_error_name(error), (int)error, advice ? ": " : "", advice ? advice : "");
}
