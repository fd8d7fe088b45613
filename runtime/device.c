#include "runtime/device.h"

#include "base/clock.h"
#include "base/memory.h"
#include "runtime/discover.h"

#include <CL/cl_ext.h>
#include <ctype.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

/* Habits of drivers that no query tells. A new entry needs its reason, and a link where there is one. */
static const struct {
    const char *platform; /* how its name begins */
    unsigned quirks;
} quirk_table[] = {
    /* Measured, POCL 3.1: its own cache (POCL_CACHE_DIR) gives back a program in 22 ms. A binary of ours would take 2
     * ms, yet taking it compiles every kernel a second time, 250 ms each, for forms that are not the ones launched.
     * All of a process's compiling is done under one lock (its single LLVM context), kernels at their first launch.
     * The name of a program in its cache is the hash of its text after preprocessing, Clang's opencl-c.h included.
     * Every kernel is compiled three times, its work-items in loops around what lies between barriers: unrolled, a
     * tile's loads and products take 0.7 to 1.5 CPU seconds, as loops 0.4.
     * Kept in order, 1x1 convolutions take 4 to 5 % less time, direct ones 3 to 7 %. */
    { "Portable Computing Language",
        QUIRK_KEEPS_CACHE | QUIRK_BUILDS_SERIALLY | QUIRK_READS_HEADER | QUIRK_UNROLLS_LONG | QUIRK_LOADS_AHEAD },
    /* Keeps what it compiled in ~/.nv/ComputeCache. The build logs of driver 580 count 49168 bytes of local memory
     * for a kernel that has 49152, all that it allows, and it runs. */
    { "NVIDIA CUDA", QUIRK_KEEPS_CACHE | QUIRK_ADDS_LOCAL },
    /* Mesa 22.3: a kernel's largest group is said to be 32, the multiple that it prefers, yet 256 run. */
    { "rusticl", QUIRK_DENIES_GROUPS },
    /* Intel's CPU runtime 2026.2, asked to wait for some of the work in a queue, does all of it first. For some
     * processors it moves loads far ahead: in ResNet-18's kernels on an AMD EPYC 5697 instructions then touch vectors
     * on the stack, 3988 where loads stay in order. */
    { "Intel(R) OpenCL", QUIRK_WAITS_FOR_ALL | QUIRK_LOADS_AHEAD },
};

static unsigned quirks_of(const char *platform)
{
    unsigned quirks = 0;
    for (size_t i = 0; i < sizeof(quirk_table) / sizeof(quirk_table[0]); i++)
        if (!strncmp(platform, quirk_table[i].platform, strlen(quirk_table[i].platform)))
            quirks |= quirk_table[i].quirks;
    return quirks;
}

/* Some drivers put spaces around their names. */
static void trim(char *text)
{
    size_t begin = strspn(text, " \t\n"), length = strlen(text);
    while (length > begin && isspace((unsigned char)text[length - 1])) length--;
    memmove(text, text + begin, length - begin);
    text[length - begin] = '\0';
}

/* Reads a property that is a string of any length, cut to fit. */
static tutti_status device_text(cl_device_id id, cl_device_info what, char *text, size_t size)
{
    tutti_status status = TUTTI_OK;
    char *whole = NULL;
    size_t length = 0;
    CL_TRY(clGetDeviceInfo(id, what, 0, NULL, &length), "asking a device for a property (0x%x)", (unsigned)what);
    whole = memory_new(length + 1, 1);
    if (!whole) return TUTTI_NO_MEMORY;
    CL_TRY(clGetDeviceInfo(id, what, length, whole, NULL), "asking a device for a property (0x%x)", (unsigned)what);
    trim(whole);
    snprintf(text, size, "%s", whole);
done:
    free(whole);
    return status;
}

tutti_status platform_text(cl_platform_id platform, cl_platform_info what, char *text, size_t size)
{
    tutti_status status = TUTTI_OK;
    char *whole = NULL;
    size_t length = 0;
    CL_TRY(
        clGetPlatformInfo(platform, what, 0, NULL, &length), "asking a platform for a property (0x%x)", (unsigned)what);
    whole = memory_new(length + 1, 1);
    if (!whole) return TUTTI_NO_MEMORY;
    CL_TRY(clGetPlatformInfo(platform, what, length, whole, NULL), "asking a platform for a property (0x%x)",
        (unsigned)what);
    trim(whole);
    snprintf(text, size, "%s", whole);
done:
    free(whole);
    return status;
}

bool device_has_extension(cl_device_id id, const char *name)
{
    size_t length = 0;
    if (clGetDeviceInfo(id, CL_DEVICE_EXTENSIONS, 0, NULL, &length) != CL_SUCCESS || length == 0) return false;
    char *all = calloc(1, length + 1);
    if (!all || clGetDeviceInfo(id, CL_DEVICE_EXTENSIONS, length, all, NULL) != CL_SUCCESS) {
        free(all);
        return false;
    }
    bool found = false;
    char *rest = all;
    for (char *word; !found && (word = strtok_r(rest, " ", &rest));) found = !strcmp(word, name);
    free(all);
    return found;
}

/* Reads the number of floats in a vector of the CPU-class kernels: as many as a register of the device holds, among
 * the widths that the kernels know. */
static tutti_status vector_width_read(cl_device_id id, int *width)
{
    tutti_status status = TUTTI_OK;
    cl_uint native = 0, preferred = 0;
    CL_TRY(clGetDeviceInfo(id, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT, sizeof(native), &native, NULL),
        "asking for the vector width");
    CL_TRY(clGetDeviceInfo(id, CL_DEVICE_PREFERRED_VECTOR_WIDTH_FLOAT, sizeof(preferred), &preferred, NULL),
        "asking for the vector width");
    cl_uint most = native > preferred ? native : preferred;
    *width = most >= 16 ? 16 : most >= 8 ? 8 : 4;
    const char *forced = getenv("TUTTI_VECTOR_WIDTH");
    if (!forced || !*forced) goto done;
    if (strcmp(forced, "16") && strcmp(forced, "8") && strcmp(forced, "4"))
        FAIL(TUTTI_INVALID, "TUTTI_VECTOR_WIDTH is '%s': set it to 16, 8 or 4, or unset it", forced);
    *width = atoi(forced);
done:
    return status;
}

static tutti_status class_read(cl_device_type type, enum device_class *class)
{
    *class = type & CL_DEVICE_TYPE_CPU ? DEVICE_CPU : DEVICE_GPU;
    const char *forced = getenv("TUTTI_DEVICE_CLASS");
    if (!forced || !*forced) return TUTTI_OK;
    if (!strcasecmp(forced, "cpu"))
        *class = DEVICE_CPU;
    else if (!strcasecmp(forced, "gpu"))
        *class = DEVICE_GPU;
    else
        return fail(TUTTI_INVALID, "TUTTI_DEVICE_CLASS is '%s': set it to cpu or gpu, or unset it", forced);
    return TUTTI_OK;
}

/* Optimisation is most of the time of a build. Tests of what kernels compute do without it. */
static tutti_status optimisation_read(struct capabilities *can)
{
    const char *wanted = getenv("TUTTI_OPTIMISE");
    if (!wanted || !*wanted) return TUTTI_OK;
    if (!strcasecmp(wanted, "off"))
        can->unoptimised = UNOPTIMISED_ALL;
    else if (!strcasecmp(wanted, "products"))
        can->unoptimised = UNOPTIMISED_BUT_PRODUCTS;
    else if (!strcasecmp(wanted, "cpu"))
        can->unoptimised = can->class == DEVICE_CPU ? UNOPTIMISED_NONE : UNOPTIMISED_ALL;
    else
        return fail(TUTTI_INVALID, "TUTTI_OPTIMISE is '%s': set it to off, products or cpu, or unset it", wanted);
    return TUTTI_OK;
}

#define READ(what, value) \
    CL_TRY(clGetDeviceInfo(id, what, sizeof(value), &(value), NULL), "asking '%s' for " #what, can->name)

static tutti_status sizes_read(cl_device_id id, size_t memory_limit, struct capabilities *can)
{
    tutti_status status = TUTTI_OK;
    cl_uint units = 0, alignment = 0;
    cl_ulong local = 0, allocation = 0, memory = 0;
    cl_bool unified = CL_FALSE;
    cl_device_local_mem_type local_type = CL_GLOBAL;
    READ(CL_DEVICE_MAX_COMPUTE_UNITS, units);
    READ(CL_DEVICE_MEM_BASE_ADDR_ALIGN, alignment);
    READ(CL_DEVICE_LOCAL_MEM_SIZE, local);
    READ(CL_DEVICE_LOCAL_MEM_TYPE, local_type);
    READ(CL_DEVICE_MAX_MEM_ALLOC_SIZE, allocation);
    READ(CL_DEVICE_GLOBAL_MEM_SIZE, memory);
    READ(CL_DEVICE_MAX_WORK_GROUP_SIZE, can->group_max);
    READ(CL_DEVICE_HOST_UNIFIED_MEMORY, unified);
    can->units = units > 0 ? (int)units : 1;
    can->local_bytes = (size_t)local;
    can->local_dedicated = local_type == CL_LOCAL;
    can->memory_bytes = memory_limit && memory_limit < memory ? memory_limit : (size_t)memory;
    can->allocation_max = allocation < can->memory_bytes ? (size_t)allocation : can->memory_bytes;
    can->alignment =
        alignment / 8 > 128 ? alignment / 8 : 128; /* two lines of a cache, whatever the driver is content with */
    can->unified = unified;
done:
    return status;
}

/* Reads the name under which devices share tuning tables: for CPUs the class and the vector's width, for others the
 * name that the vendor's compiler has for the chip where the driver tells it, else the device's own name. */
static void architecture_read(cl_device_id id, cl_device_type type, struct capabilities *can)
{
    cl_uint major = 0, minor = 0;
    const size_t size = sizeof(can->architecture);
    if (type & CL_DEVICE_TYPE_CPU)
        snprintf(can->architecture, size, "%s-%d", can->class == DEVICE_CPU ? "cpu" : "gpu", can->vector_width);
    else if (device_has_extension(id, "cl_nv_device_attribute_query") &&
        clGetDeviceInfo(id, CL_DEVICE_COMPUTE_CAPABILITY_MAJOR_NV, sizeof(major), &major, NULL) == CL_SUCCESS &&
        clGetDeviceInfo(id, CL_DEVICE_COMPUTE_CAPABILITY_MINOR_NV, sizeof(minor), &minor, NULL) == CL_SUCCESS)
        snprintf(can->architecture, size, "sm_%u%u", (unsigned)major, (unsigned)minor);
    else /* AMD's is the chip's, with features after a colon */
        snprintf(can->architecture, size, "%.*s", (int)strcspn(can->name, ":"), can->name);
}

tutti_status capabilities_read(cl_platform_id platform, cl_device_id id, size_t memory_limit, struct capabilities *can)
{
    tutti_status status = TUTTI_OK;
    cl_device_type type = 0;
    memset(can, 0, sizeof(*can));
    TRY(device_text(id, CL_DEVICE_NAME, can->name, sizeof(can->name)));
    TRY(platform_text(platform, CL_PLATFORM_NAME, can->platform, sizeof(can->platform)));
    TRY(device_text(id, CL_DEVICE_VENDOR, can->vendor, sizeof(can->vendor)));
    TRY(device_text(id, CL_DRIVER_VERSION, can->driver, sizeof(can->driver)));
    TRY(device_text(id, CL_DEVICE_VERSION, can->version, sizeof(can->version)));
    READ(CL_DEVICE_TYPE, type);
    TRY(class_read(type, &can->class));
    TRY(optimisation_read(can));
    TRY(vector_width_read(id, &can->vector_width));
    TRY(sizes_read(id, memory_limit, can));
    architecture_read(id, type, can);
    can->half = device_has_extension(id, "cl_khr_fp16");
    can->subgroups = device_has_extension(id, "cl_khr_subgroups") || device_has_extension(id, "cl_intel_subgroups");
done:
    return status;
}

tutti_status device_open(struct device *device, const struct found_device *found)
{
    tutti_status status = TUTTI_OK;
    cl_int error = CL_SUCCESS;
    const cl_context_properties properties[] = { CL_CONTEXT_PLATFORM, (cl_context_properties)found->platform, 0 };
    device->index = found->index;
    device->platform = found->platform;
    device->can = found->can;
    device->host_cpu = (found->type & CL_DEVICE_TYPE_CPU) && found->can.unified;
    device->quirks = quirks_of(found->can.platform);
    CL_TRY(clRetainDevice(found->id), "opening device %d, '%s',", found->index, found->can.name);
    device->id = found->id;
    device->context = clCreateContext(properties, 1, &device->id, NULL, NULL, &error);
    CL_TRY(error, "opening device %d, '%s',", found->index, found->can.name);
    device->queue = clCreateCommandQueue(device->context, device->id, CL_QUEUE_PROFILING_ENABLE, &error);
    CL_TRY(error, "creating the queue of device %d, '%s',", found->index, found->can.name);
done:
    if (status != TUTTI_OK) device_close(device);
    return status;
}

tutti_status device_open_queue(struct device *device, cl_command_queue *queue)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* two trainers may want it first */
    tutti_status status = TUTTI_OK;
    cl_int error = CL_SUCCESS;
    pthread_mutex_lock(&lock);
    if (*queue) goto done;
    *queue = clCreateCommandQueue(device->context, device->id, CL_QUEUE_PROFILING_ENABLE, &error);
    CL_TRY(error, "creating another queue of device %d, '%s',", device->index, device->can.name);
done:
    pthread_mutex_unlock(&lock);
    return status;
}

/* Waits until only this library refers to the queue. A thread of the driver may still hold an event that is complete,
 * and each event holds its queue. POCL's thread then reads the device from the event, although a sub-device's last
 * release has freed it. */
static void wait_for_references(cl_command_queue queue)
{
    enum { TRIES = 1000 };
    cl_uint references = 0;
    for (int i = 0; i < TRIES; i++) {
        if (clGetCommandQueueInfo(queue, CL_QUEUE_REFERENCE_COUNT, sizeof(references), &references, NULL) !=
                CL_SUCCESS ||
            references <= 1)
            return;
        nanosleep(&(struct timespec) { .tv_nsec = 100000 }, NULL);
    }
}

static void close_queue(cl_command_queue *queue)
{
    if (!*queue) return;
    wait_for_references(*queue);
    clReleaseCommandQueue(*queue);
    *queue = NULL;
}

void device_close(struct device *device)
{
    close_queue(&device->prefetch_queue);
    close_queue(&device->exchange_queue);
    close_queue(&device->queue);
    if (device->context) clReleaseContext(device->context);
    if (device->id) clReleaseDevice(device->id);
    device->context = NULL;
    device->id = NULL;
}

/* How late a wait that sleeps may end. Each query of the event wakes the thread up, which takes 20 to 30 us of a core
 * on a virtual machine. */
struct lateness {
    double part; /* of the time waited */
    double most; /* seconds */
};
/* For waits after which nothing else is to be done. Measured for 10 ms: these steps end 1.1 % late for 7.3 % of a
 * core; steps of a tenth, at most 1 ms, end 4.4 % late for 4.9 %. For 200 ms these steps end 0.2 % late for 4.3 %. */
static const struct lateness at_the_end = { 1.0 / 32, 0.5e-3 };
/* For waits while the device has more to do: on a CPU each query interrupts it. */
static const struct lateness amid = { 1.0 / 8, 4e-3 };

static _Thread_local double patience;

double wait_patience(double seconds)
{
    const double before = patience;
    patience = seconds;
    return before;
}

/* Sleeps in steps that grow with the time waited. False where patience ran out. */
static bool sleep_until_done(cl_event event, const struct lateness *lateness)
{
    double start = clock_seconds(), waited = 0;
    cl_int state = CL_QUEUED;
    while (clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(state), &state, NULL) == CL_SUCCESS &&
        state > CL_COMPLETE) {
        if (patience > 0 && waited > patience) return false;
        const double step = fmin(fmax(waited * lateness->part, 20e-6), lateness->most);
        nanosleep(&(struct timespec) { .tv_nsec = (long)(1e9 * step) }, NULL);
        waited = clock_seconds() - start;
    }
    return true;
}

static tutti_status sleep_first(struct device *device, cl_event event, const struct lateness *lateness)
{
    tutti_status status = TUTTI_OK;
    CL_TRY(clFlush(device->queue), "sending work to device %d, '%s',", device->index, device->can.name);
    if (!sleep_until_done(event, lateness))
        FAIL(TUTTI_DEVICE_LOST, "device %d, '%s', did not finish its work within %g seconds: see the system's log",
            device->index, device->can.name, patience);
done:
    return status;
}

/* Tells whether the driver waits in a busy loop, on a core that a CPU device would use. Drivers of other devices than
 * this CPU do: NVIDIA's (https://github.com/openmm/openmm/issues/1541), Intel's for graphics
 * (https://github.com/intel/compute-runtime/issues/343, 363). None is trusted not to. */
static bool waits_badly(const struct device *device)
{
    return !device->host_cpu || patience > 0;
}

tutti_status event_wait_amid(struct device *device, cl_event event)
{
    tutti_status status = TUTTI_OK;
    if (waits_badly(device) || (device->quirks & QUIRK_WAITS_FOR_ALL)) TRY(sleep_first(device, event, &amid));
    status = event_wait(device, event);
done:
    return status;
}

tutti_status event_wait(struct device *device, cl_event event)
{
    tutti_status status = TUTTI_OK;
    if (waits_badly(device)) TRY(sleep_first(device, event, &at_the_end));
    cl_int error = clWaitForEvents(1, &event), state = CL_COMPLETE;
    if (error == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST &&
        clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(state), &state, NULL) == CL_SUCCESS &&
        state < 0)
        error = state; /* what really happened */
    CL_TRY(error, "waiting for device %d, '%s',", device->index, device->can.name);
done:
    return status;
}
