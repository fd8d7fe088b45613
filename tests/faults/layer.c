/* A layer between a program and its OpenCL drivers that breaks chosen calls; see layer.h. Everything else goes straight
 * through: the table that the loader is given is the one below, with some entries replaced. */
#include "tests/opencl_layer.h" /* first: it says which OpenCL */

#include "tests/faults/layer.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

enum { DEVICES = 16, STALLS = 64, ORDERS = 8 };
#define LONGEST_GAP_S 0.05

/* ------------------------------------------------------------------------------------------------- steering ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
/* An order and its state. */
static struct slot {
    struct layer_order order;
    long calls[LAYER_KIND_COUNT + 1]; /* on its device, since it was given */
    bool lost, refused, slow;
    double busy_since;     /* a slow device's first command since it last rested; 0: none that was not waited for */
    cl_event latest;       /* a marker after its latest command, */
    double latest_at;      /* and when that was given */
    cl_ulong last_end;     /* when the device really completed what was last waited for; 0: not known, */
    double last_completed; /* and when its caller heard of it */
} slots[ORDERS];
static int slot_count;
static int ordered_device = -1; /* of the environment: its number */
static long broken, all_calls, all_broken;
static cl_program not_built; /* the last one whose build was failed */
static unsigned long let_go_count;
static cl_event stalls[STALLS]; /* user events that commands wait for */
static int stall_count;
static cl_device_id devices[DEVICES]; /* in the order of their contexts */
static int device_count;

static void let_go_locked(void)
{
    let_go_count++;
    for (int i = 0; i < stall_count; i++) {
        next->clSetUserEventStatus(stalls[i], CL_COMPLETE);
        next->clReleaseEvent(stalls[i]);
    }
    stall_count = 0;
    pthread_cond_broadcast(&changed);
}

static void let_go(void)
{
    pthread_mutex_lock(&lock);
    let_go_locked();
    pthread_mutex_unlock(&lock);
}

static void give(const struct layer_order *given)
{
    pthread_mutex_lock(&lock);
    let_go_locked();
    for (int i = 0; i < slot_count; i++)
        if (slots[i].latest) next->clReleaseEvent(slots[i].latest);
    memset(slots, 0, sizeof(slots));
    slots[0].order = given ? *given : (struct layer_order) { .action = LAYER_NONE };
    slot_count = 1;
    ordered_device = -1;
    not_built = NULL;
    broken = 0;
    pthread_mutex_unlock(&lock);
}

static void add(const struct layer_order *given)
{
    pthread_mutex_lock(&lock);
    if (slot_count < ORDERS)
        slots[slot_count++] = (struct slot) { .order = *given };
    else
        fprintf(stderr, "layer: no room for more than %d orders\n", ORDERS);
    pthread_mutex_unlock(&lock);
}

static long calls_of(enum layer_kind kind)
{
    pthread_mutex_lock(&lock);
    const long count = slots[0].calls[kind];
    pthread_mutex_unlock(&lock);
    return count;
}

static long broken_count(void)
{
    pthread_mutex_lock(&lock);
    const long count = broken;
    pthread_mutex_unlock(&lock);
    return count;
}

__attribute__((visibility("default")))
const struct fault_layer fault_layer = { give, add, let_go, calls_of, broken_count };

static void note_broken(void)
{
    pthread_mutex_lock(&lock);
    broken++;
    all_broken++;
    pthread_mutex_unlock(&lock);
}

static bool is_ordered(const struct slot *slot, cl_device_id device)
{
    if (ordered_device >= 0) return ordered_device < device_count && devices[ordered_device] == device;
    return !slot->order.device || slot->order.device == device;
}

/* What an order wants done with this call of its device. */
static enum layer_action judge_by(struct slot *slot, enum layer_kind kind)
{
    const struct layer_order *order = &slot->order;
    const long count = ++slot->calls[kind], any = ++slot->calls[LAYER_ANY];
    const bool now =
        order->at == (order->kind == LAYER_ANY ? any : count) && (order->kind == kind || order->kind == LAYER_ANY);
    const enum layer_action action = now ? order->action : LAYER_NONE;
    slot->lost |= action == LAYER_LOSE;
    slot->refused |= action == LAYER_REFUSE;
    slot->slow |= action == LAYER_SLOW;
    return slot->lost || (slot->refused && order->kind == kind) ? LAYER_FAIL : action;
}

/* Decides what is done with a call of this kind on this device; *error: that of a call that fails. FAIL and LOSE are
 * counted as broken. If several orders apply to one call, the first one holds. */
static enum layer_action judge(cl_device_id device, enum layer_kind kind, cl_int *error)
{
    enum layer_action action = LAYER_NONE;
    pthread_mutex_lock(&lock);
    all_calls++;
    *error = CL_SUCCESS;
    for (int i = 0; i < slot_count; i++) {
        if (!is_ordered(&slots[i], device)) continue;
        const enum layer_action wanted = judge_by(&slots[i], kind);
        if (action != LAYER_NONE) continue;
        action = wanted;
        if (wanted == LAYER_FAIL) *error = slots[i].order.code ? slots[i].order.code : CL_OUT_OF_RESOURCES;
    }
    if (action == LAYER_FAIL) {
        broken++;
        all_broken++;
    }
    pthread_mutex_unlock(&lock);
    return action;
}

/* Does not return until it is let go. */
static void hang(void)
{
    note_broken();
    pthread_mutex_lock(&lock);
    const unsigned long now = let_go_count;
    while (let_go_count == now) pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

/* ----------------------------------------------------------------------------------------- whose call is it ---- */

static cl_device_id device_of_context(cl_context context)
{
    cl_device_id all[DEVICES] = { NULL };
    next->clGetContextInfo(context, CL_CONTEXT_DEVICES, sizeof(all), all, NULL);
    return all[0]; /* Tutti makes a context for each device */
}

static cl_device_id device_of_queue(cl_command_queue queue)
{
    cl_device_id device = NULL;
    next->clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof(device), &device, NULL);
    return device;
}

/* Programs, kernels and buffers belong to a context, and each context here has one device. */
#define DEVICE_OF(object, type, query, name)                        \
    static cl_device_id device_of_##object(type object)             \
    {                                                               \
        cl_context context = NULL;                                  \
        next->query(object, name, sizeof(context), &context, NULL); \
        return device_of_context(context);                          \
    }
DEVICE_OF(program, cl_program, clGetProgramInfo, CL_PROGRAM_CONTEXT)
DEVICE_OF(kernel, cl_kernel, clGetKernelInfo, CL_KERNEL_CONTEXT)
DEVICE_OF(buffer, cl_mem, clGetMemObjectInfo, CL_MEM_CONTEXT)

static cl_device_id device_of_event(cl_event event)
{
    cl_command_queue queue = NULL;
    next->clGetEventInfo(event, CL_EVENT_COMMAND_QUEUE, sizeof(queue), &queue, NULL);
    return queue ? device_of_queue(queue) : NULL;
}

/* -------------------------------------------------------------------------------------------- wrong numbers ---- */

/* Changes words that differ from `before` (NULL: all) and are likely to be floats. A small integer or a packed index
 * read as a float is far below 1e-6; if it were changed, a kernel could leave its buffers. */
static bool corrupt(enum layer_action action, void *data, const void *before, size_t bytes)
{
    bool any = false;
    for (size_t i = 0; i + sizeof(float) <= bytes; i += sizeof(float)) {
        float value;
        memcpy(&value, (char *)data + i, sizeof(value));
        if (before && !memcmp((char *)data + i, (const char *)before + i, sizeof(value))) continue;
        if (!(fabsf(value) >= 1e-6f && fabsf(value) <= 1e6f)) continue;
        value = action == LAYER_NAN ? NAN : -1.5f * value;
        memcpy((char *)data + i, &value, sizeof(value));
        any = true;
    }
    return any;
}

static size_t size_of(cl_mem buffer)
{
    size_t bytes = 0;
    next->clGetMemObjectInfo(buffer, CL_MEM_SIZE, sizeof(bytes), &bytes, NULL);
    return bytes;
}

/* Changes words in the device's memory; `before` as in corrupt(). */
static void corrupt_buffer(
    enum layer_action action, cl_command_queue queue, cl_mem buffer, size_t offset, size_t bytes, const void *before)
{
    void *data = malloc(bytes);
    if (data && !next->clEnqueueReadBuffer(queue, buffer, CL_TRUE, offset, bytes, data, 0, NULL, NULL) &&
        corrupt(action, data, before, bytes) &&
        !next->clEnqueueWriteBuffer(queue, buffer, CL_TRUE, offset, bytes, data, 0, NULL, NULL))
        note_broken();
    free(data);
}

/* Buffers, and which of them kernels were given: what a launch wrote is found by comparing them before and after. */
struct argument {
    cl_kernel kernel;
    cl_uint index;
    cl_mem buffer;
};
static struct known_buffer {
    cl_mem buffer;
    int references; /* the program's own; a driver has some, too, while commands use the buffer */
} * buffers;
static struct argument *arguments;
static size_t buffer_count, argument_count;

static void note_buffer(cl_mem buffer)
{
    if (!buffer) return;
    pthread_mutex_lock(&lock);
    struct known_buffer *grown = realloc(buffers, (buffer_count + 1) * sizeof(*buffers));
    if (grown) {
        buffers = grown;
        buffers[buffer_count++] = (struct known_buffer) { buffer, 1 };
    }
    pthread_mutex_unlock(&lock);
}

/* A buffer that the program has released for the last time is forgotten. */
static void count_references(cl_mem buffer, int more)
{
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < buffer_count; i++) {
        if (buffers[i].buffer != buffer) continue;
        buffers[i].references += more;
        if (buffers[i].references == 0) buffers[i--] = buffers[--buffer_count];
    }
    pthread_mutex_unlock(&lock);
}

static void note_argument(cl_kernel kernel, cl_uint index, size_t size, const void *value)
{
    struct argument argument = { kernel, index, NULL };
    if (size == sizeof(cl_mem) && value) memcpy(&argument.buffer, value, sizeof(cl_mem));
    pthread_mutex_lock(&lock);
    size_t i = 0;
    while (i < argument_count && (arguments[i].kernel != kernel || arguments[i].index != index)) i++;
    struct argument *grown = i < argument_count ? arguments : realloc(arguments, (i + 1) * sizeof(*arguments));
    if (grown) {
        arguments = grown;
        arguments[i] = argument; /* not the buffer before it, which may be freed */
        if (i == argument_count) argument_count++;
    }
    pthread_mutex_unlock(&lock);
}

static void forget_kernel(cl_kernel kernel)
{
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < argument_count; i++)
        if (arguments[i].kernel == kernel) arguments[i--] = arguments[--argument_count];
    pthread_mutex_unlock(&lock);
}

static int buffers_of(cl_kernel kernel, cl_mem *found, int most)
{
    int count = 0;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < argument_count; i++) {
        if (arguments[i].kernel != kernel) continue;
        bool known = false;
        for (size_t j = 0; j < buffer_count; j++) known |= buffers[j].buffer == arguments[i].buffer;
        for (int j = 0; j < count; j++) known &= found[j] != arguments[i].buffer;
        if (known && count < most) found[count++] = arguments[i].buffer;
    }
    pthread_mutex_unlock(&lock);
    return count;
}

/* ------------------------------------------------------------------------------------------------- slowness ---- */

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static bool is_complete(cl_event event)
{
    cl_int state = CL_QUEUED;
    return !next->clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(state), &state, NULL) &&
        state <= CL_COMPLETE;
}

/* Whether a device has had nothing to do for longer than a host takes between two commands of one step. Work that
 * nobody waited for, such as filling a new buffer, does not go on while the device rests. */
static bool rests(const struct slot *slot)
{
    return slot->busy_since == 0 ||
        (slot->latest && seconds() - slot->latest_at > LONGEST_GAP_S && is_complete(slot->latest));
}

static void begin_work(cl_device_id device)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < slot_count; i++) {
        struct slot *slot = &slots[i];
        if (!slot->slow || !is_ordered(slot, device) || !rests(slot)) continue;
        slot->busy_since = seconds();
        slot->last_end = 0;
    }
    pthread_mutex_unlock(&lock);
}

static void note_latest(cl_command_queue queue)
{
    cl_device_id device = device_of_queue(queue);
    pthread_mutex_lock(&lock);
    for (int i = 0; i < slot_count; i++) {
        struct slot *slot = &slots[i];
        if (!slot->slow || !is_ordered(slot, device)) continue;
        if (slot->latest) next->clReleaseEvent(slot->latest);
        if (next->clEnqueueMarkerWithWaitList(queue, 0, NULL, &slot->latest)) slot->latest = NULL;
        slot->latest_at = seconds();
    }
    pthread_mutex_unlock(&lock);
}

static cl_ulong end_of(cl_event event)
{
    cl_ulong end = 0;
    if (event && next->clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof(end), &end, NULL)) end = 0;
    return end;
}

/* Time at which the caller of a slow device may learn that work has ended. After the first wait for work that was
 * enqueued together, further waits are for work that was done meanwhile, at the times that the device itself
 * reports. */
static double completion(struct slot *slot, double now, cl_ulong end)
{
    double completed = now;
    if (slot->busy_since > 0)
        completed = now + (slot->order.factor - 1) * (now - slot->busy_since);
    else if (slot->last_end > 0 && end > slot->last_end)
        completed = slot->last_completed + slot->order.factor * 1e-9 * (double)(end - slot->last_end);
    slot->busy_since = 0;
    slot->last_end = end;
    slot->last_completed = completed;
    return completed;
}

static void end_work(cl_device_id device, cl_event event)
{
    pthread_mutex_lock(&lock);
    const double now = seconds();
    double completed = now;
    for (int i = 0; i < slot_count; i++)
        if (slots[i].slow && is_ordered(&slots[i], device))
            completed = fmax(completed, completion(&slots[i], now, end_of(event)));
    pthread_mutex_unlock(&lock);
    const double wait = completed - now;
    if (wait > 0) nanosleep(&(struct timespec) { (time_t)wait, (long)(1e9 * (wait - floor(wait))) }, NULL);
}

/* ------------------------------------------------------------------------------------ calls that make things ---- */

/* Judges a call that is not a command of a queue. True: it is to fail; *error: that of the call, if it has one. */
static bool fails(cl_device_id device, enum layer_kind kind, cl_int *error)
{
    cl_int code;
    const enum layer_action action = judge(device, kind, &code);
    if (action == LAYER_HANG_CALL) hang();
    if (action != LAYER_FAIL) return false;
    if (error) *error = code;
    return true;
}

static cl_context CL_API_CALL create_context(const cl_context_properties *properties, cl_uint count,
    const cl_device_id *ids, void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *), void *user,
    cl_int *error)
{
    pthread_mutex_lock(&lock);
    bool known = count != 1 || device_count == DEVICES;
    for (int i = 0; i < device_count; i++) known |= devices[i] == ids[0];
    if (!known) devices[device_count++] = ids[0];
    pthread_mutex_unlock(&lock);
    if (fails(ids[0], LAYER_OPEN, error)) return NULL;
    return next->clCreateContext(properties, count, ids, notify, user, error);
}

static cl_command_queue CL_API_CALL create_queue(
    cl_context context, cl_device_id device, cl_command_queue_properties properties, cl_int *error)
{
    if (fails(device, LAYER_OPEN, error)) return NULL;
    return next->clCreateCommandQueue(context, device, properties, error);
}

static cl_program CL_API_CALL create_program(
    cl_context context, cl_uint count, const char **strings, const size_t *lengths, cl_int *error)
{
    if (fails(device_of_context(context), LAYER_PROGRAM, error)) return NULL;
    return next->clCreateProgramWithSource(context, count, strings, lengths, error);
}

static cl_program CL_API_CALL create_binary(cl_context context, cl_uint count, const cl_device_id *ids,
    const size_t *lengths, const unsigned char **binaries, cl_int *states, cl_int *error)
{
    if (fails(device_of_context(context), LAYER_PROGRAM, error)) return NULL;
    return next->clCreateProgramWithBinary(context, count, ids, lengths, binaries, states, error);
}

static cl_int CL_API_CALL build_program(cl_program program, cl_uint count, const cl_device_id *ids, const char *options,
    void(CL_CALLBACK *notify)(cl_program, void *), void *user)
{
    cl_int error;
    if (fails(device_of_program(program), LAYER_BUILD, &error)) {
        pthread_mutex_lock(&lock);
        not_built = program;
        pthread_mutex_unlock(&lock);
        return error;
    }
    return next->clBuildProgram(program, count, ids, options, notify, user);
}

static cl_int CL_API_CALL program_info(
    cl_program program, cl_program_info what, size_t size, void *value, size_t *size_ret)
{
    cl_int error;
    if (fails(device_of_program(program), LAYER_QUERY, &error)) return error;
    return next->clGetProgramInfo(program, what, size, value, size_ret);
}

static cl_int CL_API_CALL build_info(
    cl_program program, cl_device_id device, cl_program_build_info what, size_t size, void *value, size_t *size_ret)
{
    static const char log[] = "1 warning generated.\n\n" LAYER_LOG "\n  kernel void f()\n  ^\n";
    cl_int error;
    if (fails(device, LAYER_QUERY, &error)) return error;
    pthread_mutex_lock(&lock);
    const bool mine_to_tell = program == not_built && what == CL_PROGRAM_BUILD_LOG;
    pthread_mutex_unlock(&lock);
    if (!mine_to_tell) return next->clGetProgramBuildInfo(program, device, what, size, value, size_ret);
    if (value && size < sizeof(log)) return CL_INVALID_VALUE;
    if (value) memcpy(value, log, sizeof(log));
    if (size_ret) *size_ret = sizeof(log);
    return CL_SUCCESS;
}

static cl_kernel CL_API_CALL create_kernel(cl_program program, const char *name, cl_int *error)
{
    if (fails(device_of_program(program), LAYER_KERNEL, error)) return NULL;
    cl_kernel kernel = next->clCreateKernel(program, name, error);
    if (kernel) forget_kernel(kernel); /* another one was at this address */
    return kernel;
}

static cl_int CL_API_CALL set_argument(cl_kernel kernel, cl_uint index, size_t size, const void *value)
{
    cl_int error;
    if (fails(device_of_kernel(kernel), LAYER_ARGUMENT, &error)) return error;
    note_argument(kernel, index, size, value);
    return next->clSetKernelArg(kernel, index, size, value);
}

static cl_int CL_API_CALL kernel_info(cl_kernel kernel, cl_kernel_info what, size_t size, void *value, size_t *size_ret)
{
    cl_int error;
    if (fails(device_of_kernel(kernel), LAYER_QUERY, &error)) return error;
    return next->clGetKernelInfo(kernel, what, size, value, size_ret);
}

static cl_int CL_API_CALL group_info(
    cl_kernel kernel, cl_device_id device, cl_kernel_work_group_info what, size_t size, void *value, size_t *size_ret)
{
    cl_int error;
    if (fails(device_of_kernel(kernel), LAYER_QUERY, &error)) return error;
    return next->clGetKernelWorkGroupInfo(kernel, device, what, size, value, size_ret);
}

static cl_mem CL_API_CALL create_buffer(cl_context context, cl_mem_flags flags, size_t bytes, void *host, cl_int *error)
{
    if (fails(device_of_context(context), LAYER_ALLOCATE, error)) return NULL;
    cl_mem buffer = next->clCreateBuffer(context, flags, bytes, host, error);
    note_buffer(buffer);
    return buffer;
}

static cl_mem CL_API_CALL create_sub_buffer(
    cl_mem parent, cl_mem_flags flags, cl_buffer_create_type type, const void *region, cl_int *error)
{
    if (fails(device_of_buffer(parent), LAYER_CUT, error)) return NULL;
    cl_mem buffer = next->clCreateSubBuffer(parent, flags, type, region, error);
    note_buffer(buffer);
    return buffer;
}

static cl_int CL_API_CALL retain_buffer(cl_mem buffer)
{
    count_references(buffer, 1);
    return next->clRetainMemObject(buffer);
}

static cl_int CL_API_CALL release_buffer(cl_mem buffer)
{
    count_references(buffer, -1);
    return next->clReleaseMemObject(buffer);
}

/* ------------------------------------------------------------------------------------ calls that queues take ---- */

/* A command's call: what is to be done with it, and what it has to wait for. */
struct command {
    cl_command_queue queue;
    enum layer_action action;
    cl_int error;
    cl_uint wait_count;
    cl_event *waits, stall;
};

static void stall(struct command *command, cl_command_queue queue)
{
    cl_context context = NULL;
    cl_int error = CL_SUCCESS;
    next->clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof(context), &context, NULL);
    command->stall = next->clCreateUserEvent(context, &error);
    if (error != CL_SUCCESS) {
        fprintf(stderr, "layer: no user event (%d), so no hanging device\n", (int)error);
        return;
    }
    command->waits[command->wait_count++] = command->stall;
    pthread_mutex_lock(&lock);
    if (stall_count < STALLS) stalls[stall_count++] = command->stall;
    broken++;
    all_broken++;
    pthread_mutex_unlock(&lock);
}

/* False where the call is to return at once. */
static bool begin(
    struct command *command, cl_command_queue queue, enum layer_kind kind, cl_uint count, const cl_event *waits)
{
    cl_device_id device = device_of_queue(queue);
    *command = (struct command) { .queue = queue, .wait_count = count };
    command->action = judge(device, kind, &command->error);
    if (command->action == LAYER_HANG_CALL) hang();
    if (command->action == LAYER_FAIL) return false;
    command->waits = calloc(count + 1, sizeof(cl_event));
    if (!command->waits) abort();
    if (count) memcpy(command->waits, waits, count * sizeof(cl_event));
    if (command->action == LAYER_HANG_DEVICE) stall(command, queue);
    begin_work(device);
    return true;
}

static const cl_event *waits_of(const struct command *command)
{
    return command->wait_count ? command->waits : NULL;
}

static cl_int end(struct command *command, cl_int error)
{
    note_latest(command->queue);
    free(command->waits);
    return error;
}

static bool is_wrong(const struct command *command)
{
    return command->action == LAYER_NAN || command->action == LAYER_FINITE;
}

static cl_int CL_API_CALL fill(cl_command_queue queue, cl_mem buffer, const void *pattern, size_t size, size_t offset,
    size_t bytes, cl_uint count, const cl_event *waits, cl_event *event)
{
    struct command c;
    if (!begin(&c, queue, LAYER_FILL, count, waits)) return c.error;
    cl_int error =
        next->clEnqueueFillBuffer(queue, buffer, pattern, size, offset, bytes, c.wait_count, waits_of(&c), event);
    if (is_wrong(&c) && !error) corrupt_buffer(c.action, queue, buffer, offset, bytes, NULL);
    return end(&c, error);
}

static cl_int CL_API_CALL copy(cl_command_queue queue, cl_mem from, cl_mem to, size_t from_offset, size_t to_offset,
    size_t bytes, cl_uint count, const cl_event *waits, cl_event *event)
{
    struct command c;
    if (!begin(&c, queue, LAYER_COPY, count, waits)) return c.error;
    cl_int error =
        next->clEnqueueCopyBuffer(queue, from, to, from_offset, to_offset, bytes, c.wait_count, waits_of(&c), event);
    if (is_wrong(&c) && !error) corrupt_buffer(c.action, queue, to, to_offset, bytes, NULL);
    return end(&c, error);
}

static cl_int CL_API_CALL write(cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset, size_t bytes,
    const void *data, cl_uint count, const cl_event *waits, cl_event *event)
{
    struct command c;
    if (!begin(&c, queue, LAYER_WRITE, count, waits)) return c.error;
    cl_int error =
        next->clEnqueueWriteBuffer(queue, buffer, blocking, offset, bytes, data, c.wait_count, waits_of(&c), event);
    if (is_wrong(&c) && !error) corrupt_buffer(c.action, queue, buffer, offset, bytes, NULL);
    return end(&c, error);
}

static cl_int CL_API_CALL read_buffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset,
    size_t bytes, void *data, cl_uint count, const cl_event *waits, cl_event *event)
{
    struct command c;
    if (!begin(&c, queue, LAYER_READ, count, waits)) return c.error;
    cl_int error = next->clEnqueueReadBuffer(
        queue, buffer, is_wrong(&c) ? CL_TRUE : blocking, offset, bytes, data, c.wait_count, waits_of(&c), event);
    if (is_wrong(&c) && !error && corrupt(c.action, data, NULL, bytes)) note_broken();
    return end(&c, error);
}

static void *CL_API_CALL map(cl_command_queue queue, cl_mem buffer, cl_bool blocking, cl_map_flags flags, size_t offset,
    size_t bytes, cl_uint count, const cl_event *waits, cl_event *event, cl_int *error_ret)
{
    struct command c;
    cl_int error = CL_SUCCESS;
    if (!begin(&c, queue, LAYER_MAP, count, waits)) {
        if (error_ret) *error_ret = c.error;
        return NULL;
    }
    void *data = next->clEnqueueMapBuffer(queue, buffer, is_wrong(&c) ? CL_TRUE : blocking, flags, offset, bytes,
        c.wait_count, waits_of(&c), event, &error);
    if (is_wrong(&c) && !error && corrupt(c.action, data, NULL, bytes)) note_broken();
    if (error_ret) *error_ret = end(&c, error);
    return data;
}

static cl_int CL_API_CALL unmap(
    cl_command_queue queue, cl_mem buffer, void *data, cl_uint count, const cl_event *waits, cl_event *event)
{
    struct command c;
    if (!begin(&c, queue, LAYER_UNMAP, count, waits)) return c.error;
    return end(&c, next->clEnqueueUnmapMemObject(queue, buffer, data, c.wait_count, waits_of(&c), event));
}

/* The launch alone, with its buffers read before and after. */
enum { LAUNCH_BUFFERS = 32 };

static cl_int launch_wrong(const struct command *c, cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
    const size_t *offset, const size_t *global, const size_t *local, cl_event *event)
{
    cl_mem found[LAUNCH_BUFFERS];
    void *before[LAUNCH_BUFFERS];
    const int count = buffers_of(kernel, found, LAUNCH_BUFFERS);
    for (int i = 0; i < count; i++) {
        before[i] = malloc(size_of(found[i]));
        if (!before[i]) abort();
        next->clEnqueueReadBuffer(queue, found[i], CL_TRUE, 0, size_of(found[i]), before[i], 0, NULL, NULL);
    }
    const cl_int error = next->clEnqueueNDRangeKernel(
        queue, kernel, dimensions, offset, global, local, c->wait_count, waits_of(c), event);
    for (int i = 0; i < count; i++) {
        if (!error) corrupt_buffer(c->action, queue, found[i], 0, size_of(found[i]), before[i]);
        free(before[i]);
    }
    return error;
}

static cl_int CL_API_CALL launch(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const size_t *offset,
    const size_t *global, const size_t *local, cl_uint count, const cl_event *waits, cl_event *event)
{
    struct command c;
    if (!begin(&c, queue, LAYER_LAUNCH, count, waits)) return c.error;
    return end(&c,
        is_wrong(&c) ? launch_wrong(&c, queue, kernel, dimensions, offset, global, local, event)
                     : next->clEnqueueNDRangeKernel(
                           queue, kernel, dimensions, offset, global, local, c.wait_count, waits_of(&c), event));
}

static cl_int CL_API_CALL marker(cl_command_queue queue, cl_uint count, const cl_event *waits, cl_event *event)
{
    struct command c;
    if (!begin(&c, queue, LAYER_MARKER, count, waits)) return c.error;
    return end(&c, next->clEnqueueMarkerWithWaitList(queue, c.wait_count, waits_of(&c), event));
}

static cl_int CL_API_CALL flush(cl_command_queue queue)
{
    cl_int error;
    if (fails(device_of_queue(queue), LAYER_FLUSH, &error)) return error;
    return next->clFlush(queue);
}

static cl_int CL_API_CALL finish(cl_command_queue queue)
{
    cl_int error;
    if (fails(device_of_queue(queue), LAYER_FLUSH, &error)) return error;
    error = next->clFinish(queue);
    end_work(device_of_queue(queue), NULL);
    return error;
}

static cl_int CL_API_CALL wait_for(cl_uint count, const cl_event *events)
{
    cl_int error;
    cl_device_id device = count ? device_of_event(events[0]) : NULL;
    if (fails(device, LAYER_WAIT, &error)) return error;
    error = next->clWaitForEvents(count, events);
    end_work(device, count ? events[count - 1] : NULL);
    return error;
}

/* -------------------------------------------------------------------------------------------------- loading ---- */

static void report(void)
{
    fprintf(stderr, "layer: %ld calls, %ld of them broken\n", all_calls, all_broken);
}

static int number_of(const char *variable, const char *const *names, int count)
{
    const char *wanted = getenv(variable);
    for (int i = 0; wanted && i < count; i++)
        if (!strcasecmp(names[i], wanted)) return i;
    if (wanted) fprintf(stderr, "layer: %s is '%s', which it does not know\n", variable, wanted);
    return count;
}

static void read_environment(void)
{
#define LAYER_NAME_OF(name, text) text,
    static const char *const kinds[] = { LAYER_KINDS(LAYER_NAME_OF) };
    static const char *const actions[] = { LAYER_ACTIONS(LAYER_NAME_OF) };
#undef LAYER_NAME_OF
    const char *device = getenv("LAYER_DEVICE"), *at = getenv("LAYER_AT"), *error = getenv("LAYER_CODE"),
               *factor = getenv("LAYER_FACTOR");
    const int action = number_of("LAYER_ACTION", actions, LAYER_ACTION_COUNT);
    if (action == LAYER_ACTION_COUNT) return;
    ordered_device = device ? atoi(device) : -1;
    slot_count = 1;
    slots[0].order = (struct layer_order) { .kind = (enum layer_kind)number_of("LAYER_KIND", kinds, LAYER_KIND_COUNT),
        .at = at ? atol(at) : 1,
        .action = (enum layer_action)action,
        .code = error ? atoi(error) : 0,
        .factor = factor ? atof(factor) : 1 };
}

static void replace_entries(void)
{
    mine.clCreateContext = create_context;
    mine.clCreateCommandQueue = create_queue;
    mine.clCreateProgramWithSource = create_program;
    mine.clCreateProgramWithBinary = create_binary;
    mine.clBuildProgram = build_program;
    mine.clGetProgramInfo = program_info;
    mine.clGetProgramBuildInfo = build_info;
    mine.clCreateKernel = create_kernel;
    mine.clSetKernelArg = set_argument;
    mine.clGetKernelInfo = kernel_info;
    mine.clGetKernelWorkGroupInfo = group_info;
    mine.clCreateBuffer = create_buffer;
    mine.clCreateSubBuffer = create_sub_buffer;
    mine.clRetainMemObject = retain_buffer;
    mine.clReleaseMemObject = release_buffer;
    mine.clEnqueueFillBuffer = fill;
    mine.clEnqueueCopyBuffer = copy;
    mine.clEnqueueWriteBuffer = write;
    mine.clEnqueueReadBuffer = read_buffer;
    mine.clEnqueueMapBuffer = map;
    mine.clEnqueueUnmapMemObject = unmap;
    mine.clEnqueueNDRangeKernel = launch;
    mine.clEnqueueMarkerWithWaitList = marker;
    mine.clFlush = flush;
    mine.clFinish = finish;
    mine.clWaitForEvents = wait_for;
}

static void layer_start(void)
{
    replace_entries();
    read_environment();
    atexit(report);
}
