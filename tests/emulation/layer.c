/* A layer between a program and its OpenCL drivers with which devices have matrix instructions: it names the extension
 * that goes with them and puts emulated.cl into the kernels that use them. Told by the environment, which is looked at
 * in each call: EMULATED_MATRIX is the form (enum matrix_form), EMULATED_FAULT "build" or "result". Shuffles are not
 * emulated: kernels with some do not build, or EMULATED_SHUFFLE is "result", and they have wrong results.
 * EMULATED_GROUP is the most work-items that devices have in a group; larger groups are refused. */
#include "tests/opencl_layer.h" /* first: it says which OpenCL */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const extensions[] = {
    NULL,
    "cl_nv_device_attribute_query",
    "cl_amd_device_attribute_query",
    "cl_amd_device_attribute_query",
    "cl_intel_subgroup_matrix_multiply_accumulate",
    "cl_intel_subgroup_matrix_multiply_accumulate",
    "cl_nv_device_attribute_query",
};

#define SHUFFLE_EXTENSION "cl_khr_subgroup_shuffle_relative"

/* 0: none is emulated. */
static size_t form_wanted(void)
{
    const char *form = getenv("EMULATED_MATRIX");
    const size_t number = form ? strtoul(form, NULL, 10) : 0;
    return number < sizeof extensions / sizeof *extensions ? number : 0;
}

static int fault_wanted(void)
{
    const char *fault = getenv("EMULATED_FAULT");
    return !fault ? 0 : !strcmp(fault, "build") ? 1 : 2;
}

/* SIZE_MAX: as many as there are. */
static size_t group_wanted(void)
{
    const char *group = getenv("EMULATED_GROUP");
    return group ? strtoul(group, NULL, 10) : SIZE_MAX;
}

static cl_int lower_to_group(cl_int error, void *value)
{
    const size_t most = group_wanted();
    if (error == CL_SUCCESS && value && *(size_t *)value > most) *(size_t *)value = most;
    return error;
}

static CL_API_ENTRY cl_int CL_API_CALL get_kernel_work_group_info(
    cl_kernel kernel, cl_device_id device, cl_kernel_work_group_info name, size_t size, void *value, size_t *size_ret)
{
    const cl_int error = next->clGetKernelWorkGroupInfo(kernel, device, name, size, value, size_ret);
    return name == CL_KERNEL_WORK_GROUP_SIZE ? lower_to_group(error, value) : error;
}

static CL_API_ENTRY cl_int CL_API_CALL enqueue_kernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
    const size_t *offset, const size_t *global, const size_t *local, cl_uint count, const cl_event *waits,
    cl_event *event)
{
    size_t group = 1;
    for (cl_uint i = 0; local && i < dimensions; i++) group *= local[i];
    if (group > group_wanted()) return CL_INVALID_WORK_GROUP_SIZE;
    return next->clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global, local, count, waits, event);
}

static CL_API_ENTRY cl_int CL_API_CALL get_device_info(
    cl_device_id device, cl_device_info name, size_t size, void *value, size_t *size_ret)
{
    if (name == CL_DEVICE_MAX_WORK_GROUP_SIZE)
        return lower_to_group(next->clGetDeviceInfo(device, name, size, value, size_ret), value);
    const char *extension = getenv("EMULATED_SHUFFLE") ? SHUFFLE_EXTENSION : extensions[form_wanted()];
    size_t length = 0;
    if (name != CL_DEVICE_EXTENSIONS || !extension) return next->clGetDeviceInfo(device, name, size, value, size_ret);
    const cl_int error = next->clGetDeviceInfo(device, name, 0, NULL, &length);
    if (error != CL_SUCCESS || length == 0) return error;
    const size_t all = length + 1 + strlen(extension);
    if (size_ret) *size_ret = all;
    if (!value) return CL_SUCCESS;
    if (size < all || next->clGetDeviceInfo(device, name, length, value, NULL) != CL_SUCCESS) return CL_INVALID_VALUE;
    snprintf((char *)value + length - 1, size - length + 1, " %s", extension);
    return CL_SUCCESS;
}

/* The whole file, which the build names; NULL: it cannot be read. */
static char *read_emulation(void)
{
    FILE *file = fopen(EMULATED_TEXT, "r");
    char *text = NULL;
    size_t size = 0;
    if (!file) return NULL;
    const ssize_t got = getdelim(&text, &size, '\0', file);
    fclose(file);
    if (got > 0) return text;
    free(text);
    return NULL;
}

/* A kernel's text with the emulation before it and its memory among the kernel's own, if it has some. NULL: the text
 * stays as it is. */
static char *edited(const char *text)
{
    const char *kernel = strstr(text, "\nSUBGROUPS "), *memory = kernel ? strstr(kernel, "    local ") : NULL;
    char *emulation = kernel && form_wanted() ? read_emulation() : NULL, *all = NULL;
    if (!emulation) return NULL;
    const char *rest = memory ? memory : kernel;
    if (asprintf(&all, "#define EMULATED %zu\n#define FAULT %d\n%.*s\n%s%.*s%s\n%s", form_wanted(), fault_wanted(),
            (int)(kernel - text), text, emulation, (int)(rest - kernel), kernel, memory ? "EMULATED_MEMORY" : "",
            rest) < 0)
        all = NULL;
    free(emulation);
    return all;
}

/* Likewise a text with shuffles. */
static char *without_shuffles(const char *text)
{
    const char *fault = getenv("EMULATED_SHUFFLE");
    char *all = NULL;
    if (!strstr(text, "sub_group_shuffle_down(value") || (!fault && !form_wanted())) return NULL;
    if (asprintf(&all, "%s\n%s",
            fault && !strcmp(fault, "result") ? "#define sub_group_shuffle_down(value, step) (value)"
                                              : "#if SHUFFLE\n#error no shuffles here\n#endif",
            text) < 0)
        all = NULL;
    return all;
}

static CL_API_ENTRY cl_program CL_API_CALL create_program_with_source(
    cl_context context, cl_uint count, const char **texts, const size_t *lengths, cl_int *error)
{
    char *text = count == 1 && !lengths ? edited(texts[0]) : NULL;
    if (!text && count == 1 && !lengths) text = without_shuffles(texts[0]);
    const char *const given = text;
    cl_program program =
        next->clCreateProgramWithSource(context, count, text ? (const char **)&given : texts, lengths, error);
    free(text);
    return program;
}

static void layer_start(void)
{
    mine.clGetDeviceInfo = get_device_info;
    mine.clGetKernelWorkGroupInfo = get_kernel_work_group_info;
    mine.clEnqueueNDRangeKernel = enqueue_kernel;
    mine.clCreateProgramWithSource = create_program_with_source;
}
