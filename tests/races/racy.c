/* Faults that oclgrind has to find, one in each kernel; the last kernel has none. Proves that the test can fail.
 * Prints the name of each kernel that it runs: racy. */
#define CL_TARGET_OPENCL_VERSION 120
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <stdio.h>
#include <string.h>

enum { ITEMS = 8 };

static const char *const text = "kernel void race(global float *to) {"
                                "    local float shared[8];"
                                "    const int i = get_local_id(0);"
                                "    shared[i] = i;"
                                "    to[i] = shared[7 - i];" /* without a barrier */
                                "}"
                                "kernel void outside(global float *to) { to[get_global_id(0) + 1] = 1; }"
                                "kernel void unwritten(global float *to) {"
                                "    local float shared[8];"
                                "    const int i = get_local_id(0);"
                                "    if (i) shared[i] = i;"
                                "    barrier(CLK_LOCAL_MEM_FENCE);"
                                "    to[i] = shared[7 - i];"
                                "}"
                                "kernel void clean(global float *to) {"
                                "    local float shared[8];"
                                "    const int i = get_local_id(0);"
                                "    shared[i] = i;"
                                "    barrier(CLK_LOCAL_MEM_FENCE);"
                                "    to[i] = shared[7 - i];"
                                "}";

static int run(cl_command_queue queue, cl_program program, cl_mem to, const char *name)
{
    const size_t items = ITEMS;
    cl_int error = CL_SUCCESS;
    cl_kernel kernel = clCreateKernel(program, name, &error);
    if (error == CL_SUCCESS) error = clSetKernelArg(kernel, 0, sizeof to, &to);
    if (error == CL_SUCCESS) error = clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, &items, 0, NULL, NULL);
    if (error == CL_SUCCESS) error = clFinish(queue);
    if (kernel) clReleaseKernel(kernel);
    printf("%s: %d\n", name, error);
    return error != CL_SUCCESS;
}

int main(void)
{
    static const char *const kernels[] = { "race", "outside", "unwritten", "clean" };
    cl_platform_id platform;
    cl_device_id device;
    cl_int error = clGetPlatformIDs(1, &platform, NULL);
    if (error == CL_SUCCESS) error = clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL);
    if (error != CL_SUCCESS) return fprintf(stderr, "racy: no device: %d\n", error), 1;
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
    cl_command_queue queue = context ? clCreateCommandQueue(context, device, 0, &error) : NULL;
    cl_mem to = queue ? clCreateBuffer(context, CL_MEM_READ_WRITE, ITEMS * sizeof(float), NULL, &error) : NULL;
    const char *source = text;
    cl_program program = to ? clCreateProgramWithSource(context, 1, &source, NULL, &error) : NULL;
    if (program) error = clBuildProgram(program, 1, &device, "-cl-std=CL1.2", NULL, NULL);
    if (error != CL_SUCCESS) return fprintf(stderr, "racy: cannot be built: %d\n", error), 1;
    int failed = 0;
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) failed |= run(queue, program, to, kernels[i]);
    clReleaseProgram(program);
    clReleaseMemObject(to);
    clReleaseCommandQueue(queue);
    clReleaseContext(context);
    return failed;
}
