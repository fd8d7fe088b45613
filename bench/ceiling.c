/* Measures the rate of a machine whose OpenCL devices compute at the same time: products of small matrices that lie
 * in caches, on each device alone and on all together, each driven by a thread of its own. Nothing is exchanged, so
 * training on these devices together cannot come nearer to the sum of their single rates. For bench/together.
 *
 *   ceiling SECONDS INDEX...    indexes as `tutti devices` has them; one line of JSON, in GFLOP/s:
 *                               {"alone": [...], "together": [...]} */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MOST = 64, ROWS = 8, WIDTH = 16, DEPTH = 256, ITEMS = 1024, REPEATS = 64 };

/* Each work-item: 8 rows by 16 columns of a product over a depth of 256, again and again. */
static const char *const source =
    "kernel void product(global const float *a, global const float16 *b, global float16 *c) {\n"
    "  const int item = get_global_id(0);\n"
    "  float16 s0 = 0, s1 = 0, s2 = 0, s3 = 0, s4 = 0, s5 = 0, s6 = 0, s7 = 0;\n"
    "  for (int r = 0; r < 64; r++)\n"
    "    for (int k = 0; k < 256; k++) {\n"
    "      const float16 x = b[k];\n"
    "      global const float *y = a + 8 * k;\n"
    "      s0 = fma(y[0], x, s0); s1 = fma(y[1], x, s1); s2 = fma(y[2], x, s2); s3 = fma(y[3], x, s3);\n"
    "      s4 = fma(y[4], x, s4); s5 = fma(y[5], x, s5); s6 = fma(y[6], x, s6); s7 = fma(y[7], x, s7);\n"
    "    }\n"
    "  c[item] = s0 + s1 + s2 + s3 + s4 + s5 + s6 + s7;\n"
    "}\n";

struct loop {
    cl_command_queue queue;
    cl_kernel kernel;
    double seconds, gflops;
};

static double clock_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void check(cl_int error, const char *what)
{
    if (error == CL_SUCCESS) return;
    fprintf(stderr, "ceiling: %s: OpenCL error %d\n", what, error);
    exit(1);
}

/* The index-th device over all platforms. */
static cl_device_id find(int index, cl_platform_id *platform)
{
    cl_platform_id platforms[MOST];
    cl_uint platform_count = 0;
    check(clGetPlatformIDs(MOST, platforms, &platform_count), "looking for platforms");
    for (cl_uint p = 0; p < platform_count; p++) {
        cl_device_id devices[MOST];
        cl_uint count = 0;
        if (clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, MOST, devices, &count) != CL_SUCCESS) continue;
        *platform = platforms[p];
        if (index < (int)count) return devices[index];
        index -= (int)count;
    }
    fprintf(stderr, "ceiling: there is no such device\n");
    exit(1);
}

static void loop_open(struct loop *loop, int index)
{
    cl_int error = CL_SUCCESS;
    cl_platform_id platform = NULL;
    cl_device_id device = find(index, &platform);
    const cl_context_properties properties[] = { CL_CONTEXT_PLATFORM, (cl_context_properties)platform, 0 };
    const size_t sizes[] = { ROWS * DEPTH * sizeof(float), WIDTH * DEPTH * sizeof(float),
        WIDTH * ITEMS * sizeof(float) };
    cl_context context = clCreateContext(properties, 1, &device, NULL, NULL, &error);
    check(error, "making a context");
    loop->queue = clCreateCommandQueue(context, device, 0, &error);
    check(error, "making a queue");
    const char *text = source;
    cl_program program = clCreateProgramWithSource(context, 1, &text, NULL, &error);
    check(error, "making a program");
    check(clBuildProgram(program, 1, &device, "", NULL, NULL), "building the program");
    loop->kernel = clCreateKernel(program, "product", &error);
    check(error, "making the kernel");
    for (cl_uint i = 0; i < 3; i++) {
        const float zero = 0;
        cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, sizes[i], NULL, &error);
        check(error, "making a buffer");
        check(clEnqueueFillBuffer(loop->queue, buffer, &zero, sizeof(zero), 0, sizes[i], 0, NULL, NULL), "filling");
        check(clSetKernelArg(loop->kernel, i, sizeof(buffer), &buffer), "setting an argument");
    }
}

static void *run(void *argument)
{
    struct loop *loop = argument;
    const size_t global = ITEMS, local = 1;
    const double start = clock_seconds();
    double products = 0, passed = 0;
    do {
        cl_event event = NULL;
        check(
            clEnqueueNDRangeKernel(loop->queue, loop->kernel, 1, NULL, &global, &local, 0, NULL, &event), "launching");
        check(clWaitForEvents(1, &event), "waiting");
        clReleaseEvent(event);
        products += ITEMS;
        passed = clock_seconds() - start;
    } while (passed < loop->seconds);
    loop->gflops = products * 2.0 * ROWS * WIDTH * DEPTH * REPEATS / passed / 1e9;
    return NULL;
}

static void print(const char *name, const struct loop *loops, int count)
{
    printf("\"%s\": [", name);
    for (int i = 0; i < count; i++) printf("%s%.2f", i ? ", " : "", loops[i].gflops);
    printf("]");
}

int main(int argc, char **argv)
{
    static struct loop loops[MOST];
    pthread_t threads[MOST];
    const int count = argc - 2;
    if (count < 1 || count > MOST || !(atof(argv[1]) > 0)) {
        fprintf(stderr, "use: ceiling SECONDS INDEX...\n");
        return 2;
    }
    for (int i = 0; i < count; i++) {
        loop_open(&loops[i], atoi(argv[i + 2]));
        run(&loops[i]); /* compiled on the way */
        loops[i].seconds = atof(argv[1]);
    }
    for (int i = 0; i < count; i++) run(&loops[i]);
    printf("{");
    print("alone", loops, count);
    printf(", ");
    for (int i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, run, &loops[i]) != 0) return 1;
    for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
    print("together", loops, count);
    printf("}\n");
    return 0;
}
