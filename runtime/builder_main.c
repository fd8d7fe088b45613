/* tutti-build: the helper of runtime/builder.c. Reads programs and launches from its standard input, a socket, builds
 * each program and runs one small form of each launch, so that the driver compiles the kernel and keeps it on disk.
 * Buffers are fresh zeros that nobody sees. It ends when the socket does, and when a unit takes too long. */
#include "runtime/builder.h"
#include "runtime/processor.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { SOCKET = STDIN_FILENO, MOST_BYTES = 16 << 20, MOST_LAUNCHES = 4096, MOST_PLATFORMS = 32, MOST_DEVICES = 64 };
enum { MOST_WRITTEN = 256 << 20 }; /* bytes of one file, messages included */

struct helper {
    struct builder_limits limits;
    pid_t parent;
    atomic_int begun; /* seconds that the process had computed when it began with a unit; -1: it waits for one */
    cl_device_id device;
    cl_context context;
    cl_command_queue queue;
    size_t buffer_bytes; /* of each buffer: only pages that are touched cost anything */
};

static bool receive(void *data, size_t bytes)
{
    for (size_t got = 0; got < bytes;) {
        ssize_t count = recv(SOCKET, (char *)data + got, bytes - got, 0);
        if (count <= 0) return false;
        got += (size_t)count;
    }
    return true;
}

static bool answer(enum builder_answer what)
{
    const char byte = (char)what;
    return send(SOCKET, &byte, 1, MSG_NOSIGNAL) == 1;
}

static char *receive_text(uint32_t bytes)
{
    if (bytes == 0 || bytes > MOST_BYTES) return NULL;
    char *text = malloc(bytes);
    if (text && receive(text, bytes) && text[bytes - 1] == '\0') return text;
    free(text);
    return NULL;
}

/* Some drivers put spaces around their names, and the asker has trimmed them. */
static bool same_name(const char *found, const char *wanted)
{
    return strstr(found, wanted) != NULL;
}

static bool find_device(struct helper *helper, const struct builder_greeting *greeting)
{
    cl_platform_id platforms[MOST_PLATFORMS];
    cl_device_id devices[MOST_DEVICES];
    cl_uint platform_count = 0, device_count = 0;
    char name[1024];
    if (clGetPlatformIDs(MOST_PLATFORMS, platforms, &platform_count) != CL_SUCCESS) return false;
    for (cl_uint p = 0; p < platform_count && p < MOST_PLATFORMS; p++) {
        if (clGetPlatformInfo(platforms[p], CL_PLATFORM_NAME, sizeof(name), name, NULL) != CL_SUCCESS ||
            !same_name(name, greeting->platform) ||
            clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, MOST_DEVICES, devices, &device_count) != CL_SUCCESS)
            continue;
        for (cl_uint d = 0; d < device_count && d < MOST_DEVICES; d++) {
            helper->device = devices[d];
            if (clGetDeviceInfo(devices[d], CL_DEVICE_NAME, sizeof(name), name, NULL) == CL_SUCCESS &&
                same_name(name, greeting->device))
                return true;
        }
    }
    return false;
}

static bool helper_open(struct helper *helper, struct builder_greeting *greeting)
{
    cl_ulong most = 0;
    cl_int error;
    greeting->platform[BUILDER_NAME - 1] = greeting->device[BUILDER_NAME - 1] = '\0';
    if (memcmp(greeting->magic, BUILDER_MAGIC, sizeof(greeting->magic)) != 0 || !find_device(helper, greeting) ||
        clGetDeviceInfo(helper->device, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof(most), &most, NULL) != CL_SUCCESS)
        return false;
    helper->buffer_bytes = most < (cl_ulong)1 << 34 ? (size_t)most : (size_t)1 << 34;
    helper->context = clCreateContext(NULL, 1, &helper->device, NULL, NULL, &error);
    if (!helper->context) return false;
    helper->queue = clCreateCommandQueue(helper->context, helper->device, 0, &error);
    return helper->queue != NULL;
}

/* The buffers of one launch's arguments, released after it. */
static struct given {
    cl_mem buffer;
    void *memory;
} given[LAUNCH_ARGUMENTS];

static bool give_buffer(struct helper *helper, cl_kernel kernel, cl_uint number)
{
    struct given *one = &given[number];
    cl_int error;
    one->memory =
        mmap(NULL, helper->buffer_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (one->memory == MAP_FAILED) one->memory = NULL;
    if (!one->memory) return false;
    one->buffer = clCreateBuffer(
        helper->context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, helper->buffer_bytes, one->memory, &error);
    return one->buffer && clSetKernelArg(kernel, number, sizeof(cl_mem), &one->buffer) == CL_SUCCESS;
}

static bool give_argument(
    struct helper *helper, cl_kernel kernel, cl_uint number, const struct builder_argument *argument)
{
    if (argument->kind == ARGUMENT_BUFFER && argument->size) return give_buffer(helper, kernel, number);
    if (argument->kind == ARGUMENT_BUFFER) return clSetKernelArg(kernel, number, sizeof(cl_mem), NULL) == CL_SUCCESS;
    if (argument->kind == ARGUMENT_LOCAL) return clSetKernelArg(kernel, number, argument->size, NULL) == CL_SUCCESS;
    return argument->size <= sizeof(argument->value) &&
        clSetKernelArg(kernel, number, argument->size, &argument->value) == CL_SUCCESS;
}

static void take_back(const struct helper *helper)
{
    for (int i = 0; i < LAUNCH_ARGUMENTS; i++) {
        if (given[i].buffer) clReleaseMemObject(given[i].buffer);
        if (given[i].memory) munmap(given[i].memory, helper->buffer_bytes);
        given[i] = (struct given) { 0 };
    }
}

static bool run(struct helper *helper, cl_program program, const struct builder_launch *launch)
{
    cl_int error;
    size_t global[3], local[3];
    if (launch->dimensions < 1 || launch->dimensions > 3 || launch->arguments < 0 ||
        launch->arguments > LAUNCH_ARGUMENTS || launch->kernel[BUILDER_NAME - 1])
        return false;
    for (int i = 0; i < 3; i++) global[i] = (size_t)launch->global[i], local[i] = (size_t)launch->local[i];
    cl_kernel kernel = clCreateKernel(program, launch->kernel, &error);
    if (!kernel) return false;
    bool good = true;
    for (int i = 0; i < launch->arguments && good; i++)
        good = give_argument(helper, kernel, (cl_uint)i, &launch->argument[i]);
    good = good &&
        clEnqueueNDRangeKernel(
            helper->queue, kernel, (cl_uint)launch->dimensions, NULL, global, local, 0, NULL, NULL) == CL_SUCCESS;
    good = clFinish(helper->queue) == CL_SUCCESS && good;
    clReleaseKernel(kernel);
    take_back(helper);
    return good;
}

static bool build(
    struct helper *helper, const char *text, const char *options, const struct builder_launch *launches, uint32_t count)
{
    cl_int error;
    cl_program program = clCreateProgramWithSource(helper->context, 1, &text, NULL, &error);
    if (!program) return false;
    bool good = clBuildProgram(program, 1, &helper->device, options, NULL, NULL) == CL_SUCCESS;
    for (uint32_t i = 0; i < count && good; i++) good = run(helper, program, &launches[i]);
    clReleaseProgram(program);
    return good;
}

static double processor_seconds(void)
{
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (double)used.tv_sec + 1e-9 * (double)used.tv_nsec;
}

/* Returns whether something arrives in time. */
static bool wait_for_unit(void)
{
    struct pollfd socket = { .fd = SOCKET, .events = POLLIN };
    return poll(&socket, 1, 1000 * BUILDER_IDLE_S) == 1;
}

/* Builds one unit; false when there is nothing more to be done. */
static bool serve(struct helper *helper)
{
    struct builder_unit unit;
    alarm(0);
    atomic_store(&helper->begun, -1);
    if (!wait_for_unit() || !receive(&unit, sizeof(unit)) || unit.launches > MOST_LAUNCHES) return false;
    atomic_store(&helper->begun, (int)processor_seconds());
    alarm(BUILDER_WAITING * helper->limits.seconds); /* ends this process: a kernel may hang the compiler */
    char *text = receive_text(unit.text_bytes), *options = receive_text(unit.options_bytes);
    struct builder_launch *launches = calloc(unit.launches + 1, sizeof(*launches));
    bool good = text && options && launches && receive(launches, unit.launches * sizeof(*launches));
    if (good) good = answer(build(helper, text, options, launches, unit.launches) ? BUILDER_DONE : BUILDER_FAILED);
    free(text);
    free(options);
    free(launches);
    return good;
}

static size_t resident_pages(void)
{
    size_t size, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file) return 0;
    if (fscanf(file, "%zu %zu", &size, &resident) != 2) resident = 0;
    fclose(file);
    return resident;
}

/* Ends the process when its parent has ended (the parent's thread may end: the system's signal for that would not tell
 * them apart), when it holds more memory than it may, or has computed longer for a unit. The system's limits on
 * addresses or data would count memory that buffers reserve and never touch. Elapsed time says little on a machine
 * with other work. */
static void *watch(void *argument)
{
    const struct helper *helper = argument;
    const size_t pages = ((size_t)helper->limits.mebibytes << 20) / (size_t)sysconf(_SC_PAGESIZE);
    while (true) {
        if (getppid() != helper->parent) _exit(0);
        if (resident_pages() > pages) _exit(BUILDER_OUT_OF_MEMORY);
        const int begun = atomic_load(&helper->begun);
        if (begun >= 0 && processor_seconds() > begun + (int)helper->limits.seconds + 1) _exit(BUILDER_OUT_OF_TIME);
        nanosleep(&(struct timespec) { .tv_nsec = 20000000 }, NULL);
    }
}

/* Sets the limits of files and core dumps, and starts the watch over memory, time and the parent. */
static bool set_limits(struct helper *helper)
{
    const struct rlimit written = { .rlim_cur = MOST_WRITTEN, .rlim_max = MOST_WRITTEN }, core = { 0 };
    pthread_t thread;
    return setrlimit(RLIMIT_FSIZE, &written) == 0 && setrlimit(RLIMIT_CORE, &core) == 0 &&
        pthread_create(&thread, NULL, watch, helper) == 0;
}

/* Closes whatever the embedding program had open. */
static void close_others(void)
{
#ifdef SYS_close_range
    if (syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, 0) == 0) return;
#endif
    for (int file = STDERR_FILENO + 1; file < sysconf(_SC_OPEN_MAX); file++) close(file);
}

int main(void)
{
    struct helper helper = { .begun = -1, .parent = getppid() };
    struct builder_greeting greeting;
    close_others();
    alarm(BUILDER_PATIENCE_S);
    if (!receive(&greeting, sizeof(greeting))) {
        fputs("tutti-build compiles kernels ahead; the library starts it, users do not\n", stderr);
        return 2;
    }
    helper.limits = greeting.limits;
    (void)processor_tiles_refusal(); /* the system permits tiles to each process that asks: exec() takes them back */
    if (!set_limits(&helper) || !helper_open(&helper, &greeting) || !answer(BUILDER_READY)) return 1;
    while (serve(&helper)) continue;
    _exit(0); /* taking the driver down takes time, and nothing of it is needed */
}
