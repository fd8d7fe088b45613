#include "runtime/launch.h"

#include "base/memory.h"
#include "runtime/builder.h"
#include "runtime/memory.h"
#include "runtime/program.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void launch_list_init(struct launch_list *list, struct device *device)
{
    memset(list, 0, sizeof(*list));
    list->device = device;
}

void launch_list_free(struct launch_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        if (list->launches[i].kernel) clReleaseKernel(list->launches[i].kernel);
        free(list->launches[i].options);
        free(list->launches[i].state);
    }
    free(list->launches);
    free(list->meetings);
    list->launches = NULL;
    list->meetings = NULL;
    list->count = list->capacity = list->meeting_count = list->meeting_capacity = 0;
}

static struct launch *append(struct launch_list *list, const char *source, const char *name)
{
    if (list->status == TUTTI_OK) {
        void *array = list->launches;
        list->status = memory_grow(&array, &list->capacity, list->count + 1, sizeof(*list->launches));
        list->launches = array;
    }
    struct launch *launch = list->status == TUTTI_OK ? &list->launches[list->count] : &list->dummy;
    memset(launch, 0, sizeof(*launch));
    launch->source = source;
    launch->kernel_name = name;
    launch->node = -1;
    return launch;
}

struct launch *launch_add(struct launch_list *list, const char *source, const char *kernel, const char *options, ...)
{
    struct launch *launch = append(list, source, kernel);
    if (launch == &list->dummy) return launch;
    char text[1024];
    va_list arguments;
    va_start(arguments, options);
    int length = vsnprintf(text, sizeof(text), options, arguments);
    va_end(arguments);
    if (length < 0 || (size_t)length >= sizeof(text))
        list->status =
            fail(TUTTI_INTERNAL, "the build options of '%s' are longer than %zu bytes", source, sizeof(text) - 1);
    else if (!(launch->options = memory_copy_text(text)))
        list->status = TUTTI_NO_MEMORY;
    if (list->status != TUTTI_OK) return &list->dummy;
    list->count++;
    return launch;
}

struct launch *launch_add_call(
    struct launch_list *list, const char *name, tutti_status (*call)(struct device *, void *, cl_event *), void *state)
{
    struct launch *launch = append(list, "", name);
    if (launch == &list->dummy) {
        free(state); /* the list would have owned it */
        return launch;
    }
    launch->call = call;
    launch->state = state;
    list->count++;
    return launch;
}

void launch_meeting(struct launch_list *list, enum meeting_kind kind, cl_mem buffer, int64_t channels, int64_t stride)
{
    if (list->status != TUTTI_OK) return;
    void *array = list->meetings;
    list->status = memory_grow(&array, &list->meeting_capacity, list->meeting_count + 1, sizeof(*list->meetings));
    list->meetings = array;
    if (list->status != TUTTI_OK) return;
    list->meetings[list->meeting_count++] = (struct meeting) {
        .before = list->count, .kind = kind, .buffer = buffer, .channels = channels, .stride = stride
    };
}

int64_t meeting_floats(const struct meeting *meeting)
{
    return meeting->stride * (meeting->kind == MEETING_MOMENTS ? 3 : 2);
}

static struct launch_argument *argument_new(struct launch *launch)
{
    if (launch->count == LAUNCH_ARGUMENTS) {
        launch->fault = LAUNCH_ARGUMENTS + 1;
        return NULL;
    }
    return &launch->arguments[launch->count++];
}

void launch_buffer(struct launch *launch, cl_mem buffer)
{
    struct launch_argument *argument = argument_new(launch);
    if (argument)
        *argument =
            (struct launch_argument) { .kind = ARGUMENT_BUFFER, .size = sizeof(cl_mem), .value.buffer = buffer };
}

void launch_int(struct launch *launch, int64_t value)
{
    struct launch_argument *argument = argument_new(launch);
    if (!argument) return;
    if ((value < INT_MIN || value > INT_MAX) && !launch->fault) launch->fault = launch->count;
    *argument = (struct launch_argument) { .kind = ARGUMENT_BYTES, .size = sizeof(cl_int), .value.i = (int)value };
}

void launch_long(struct launch *launch, int64_t value)
{
    struct launch_argument *argument = argument_new(launch);
    if (argument)
        *argument = (struct launch_argument) { .kind = ARGUMENT_BYTES, .size = sizeof(cl_long), .value.l = value };
}

void launch_float(struct launch *launch, double value)
{
    struct launch_argument *argument = argument_new(launch);
    if (argument)
        *argument = (struct launch_argument) { .kind = ARGUMENT_BYTES, .size = sizeof(float), .value.f = (float)value };
}

void launch_local(struct launch *launch, size_t bytes)
{
    struct launch_argument *argument = argument_new(launch);
    if (argument) *argument = (struct launch_argument) { .kind = ARGUMENT_LOCAL, .size = bytes };
}

void launch_grid(
    struct launch *launch, int dimensions, size_t gx, size_t gy, size_t gz, size_t lx, size_t ly, size_t lz)
{
    const size_t global[3] = { gx, gy, gz }, local[3] = { lx, ly, lz };
    launch->dimensions = dimensions;
    for (int i = 0; i < 3; i++) {
        launch->global[i] = i < dimensions ? global[i] : 1;
        launch->local[i] = i < dimensions ? local[i] : 1;
    }
}

void launch_tasks(struct launch *launch, size_t x, size_t y, size_t z)
{
    launch_grid(launch, 3, x, y, z, 1, 1, 1);
}

void launch_work(struct launch *launch, double flops, double bytes)
{
    launch->flops = flops;
    launch->bytes = bytes;
}

static tutti_status sizes_check(const struct launch *launch, const struct device *device)
{
    const char *name = launch->kernel_name;
    if (launch->dimensions < 1 || launch->dimensions > 3)
        return fail(TUTTI_INTERNAL, "the launch of '%s' has no sizes", name);
    size_t group = 1;
    for (int i = 0; i < launch->dimensions; i++) {
        size_t global = launch->global[i], local = launch->local[i];
        if (local == 0 || global == 0 || global % local != 0)
            return fail(TUTTI_INTERNAL, "the launch of '%s' has %zu work-items in groups of %zu in dimension %d", name,
                global, local, i);
        if (!size_multiply(group, local, &group)) return fail(TUTTI_INTERNAL, "the work-group of '%s' overflows", name);
    }
    if (group > device->can.group_max)
        return fail(TUTTI_UNSUPPORTED, "'%s' needs work-groups of %zu and '%s' allows %zu", name, group,
            device->can.name, device->can.group_max);
    return TUTTI_OK;
}

/* Of the launch, before anything is built. POCL says how much local memory it has and then checks nothing. */
static tutti_status launch_check(const struct launch *launch, const struct device *device)
{
    if (launch->fault > LAUNCH_ARGUMENTS)
        return fail(TUTTI_INTERNAL, "'%s' has more than %d arguments", launch->kernel_name, LAUNCH_ARGUMENTS);
    if (launch->fault)
        return fail(TUTTI_UNSUPPORTED, "argument %d of '%s' exceeds 32 bits: lower the batch or the micro-batch",
            launch->fault - 1, launch->kernel_name);
    size_t local = 0;
    for (int i = 0; i < launch->count; i++) {
        const struct launch_argument *argument = &launch->arguments[i];
        if (argument->kind != ARGUMENT_LOCAL) continue;
        if (argument->size == 0 || !size_add(local, argument->size, &local))
            return fail(TUTTI_INTERNAL, "argument %d of '%s' has no size of local memory", i, launch->kernel_name);
    }
    if (local > device->can.local_bytes)
        return fail(TUTTI_UNSUPPORTED, "'%s' needs %zu bytes of local memory and '%s' has %zu", launch->kernel_name,
            local, device->can.name, device->can.local_bytes);
    return sizes_check(launch, device);
}

/* What only the built kernel tells: its own local memory, and the largest group that its registers allow. */
static tutti_status kernel_check(const struct launch *launch, const struct device *device)
{
    tutti_status status = TUTTI_OK;
    cl_ulong local = 0;
    size_t group_max = 0;
    size_t group = launch->local[0] * launch->local[1] * launch->local[2];
    CL_TRY(clGetKernelWorkGroupInfo(
               launch->kernel, device->id, CL_KERNEL_WORK_GROUP_SIZE, sizeof(group_max), &group_max, NULL),
        "asking for the largest group of '%s'", launch->kernel_name);
    if (group > group_max)
        FAIL(TUTTI_UNSUPPORTED, "'%s' needs work-groups of %zu and '%s' runs it in groups of at most %zu",
            launch->kernel_name, group, device->can.name, group_max);
    /* Local arguments are set by now, so they are counted in this. */
    CL_TRY(clGetKernelWorkGroupInfo(launch->kernel, device->id, CL_KERNEL_LOCAL_MEM_SIZE, sizeof(local), &local, NULL),
        "asking for the local memory of '%s'", launch->kernel_name);
    if (local > device->can.local_bytes)
        FAIL(TUTTI_UNSUPPORTED, "'%s' needs %zu bytes of local memory and '%s' has %zu", launch->kernel_name,
            (size_t)local, device->can.name, device->can.local_bytes);
done:
    return status;
}

static tutti_status arguments_set(const struct launch *launch, const struct device *device)
{
    tutti_status status = TUTTI_OK;
    cl_uint expected = 0;
    CL_TRY(clGetKernelInfo(launch->kernel, CL_KERNEL_NUM_ARGS, sizeof(expected), &expected, NULL),
        "asking for the arguments of '%s'", launch->kernel_name);
    if ((int)expected != launch->count)
        FAIL(TUTTI_INTERNAL, "'%s' takes %u arguments and was given %d", launch->kernel_name, expected, launch->count);
    for (int i = 0; i < launch->count; i++) {
        const struct launch_argument *argument = &launch->arguments[i];
        const void *given = argument->instead ? (const void *)&argument->instead : &argument->value;
        const void *value = argument->kind == ARGUMENT_LOCAL ? NULL : given;
        CL_TRY(clSetKernelArg(launch->kernel, (cl_uint)i, argument->size, value), "setting argument %d of '%s' on '%s'",
            i, launch->kernel_name, device->can.name);
    }
done:
    return status;
}

static struct program_request request_of(const struct launch *launch)
{
    return (struct program_request) { .source = launch->source, .options = launch->options };
}

/* Waits for the launch's program where it is being loaded. */
static tutti_status realise(struct launch *launch, struct device *device)
{
    tutti_status status = TUTTI_OK;
    const struct program_request request = request_of(launch);
    TRY(program_kernel(device, &request, launch->kernel_name, &launch->kernel));
    TRY(arguments_set(launch, device));
    TRY(kernel_check(launch, device));
done:
    return status;
}

tutti_status launch_redirect(struct launch *launch, int k, cl_mem buffer)
{
    tutti_status status = TUTTI_OK;
    struct launch_argument *argument = &launch->arguments[k];
    argument->instead = buffer;
    const cl_mem *given = buffer ? &argument->instead : &argument->value.buffer;
    if (launch->kernel)
        CL_TRY(clSetKernelArg(launch->kernel, (cl_uint)k, sizeof(*given), given), "setting argument %d of '%s'", k,
            launch->kernel_name);
done:
    return status;
}

tutti_status launch_list_realise(
    struct launch_list *list, void (*progress)(void *user, int built, int total), void *user)
{
    tutti_status status = list->status;
    if (status != TUTTI_OK) return status;
    int requested = 0;
    struct program_request *requests = memory_new(list->count, sizeof(*requests));
    if (!requests) return TUTTI_NO_MEMORY;
    for (size_t i = 0; i < list->count; i++) {
        if (list->launches[i].call) continue;
        TRY(launch_check(&list->launches[i], list->device));
        requests[requested++] = request_of(&list->launches[i]);
    }
    if (programs_are_loading(list->device) && builder_knows(list)) goto done;
    TRY(program_build_all(list->device, requests, requested, progress, user));
    for (size_t i = 0; i < list->count; i++)
        if (!list->launches[i].call && !list->launches[i].kernel) TRY(realise(&list->launches[i], list->device));
done:
    free(requests);
    return status;
}

static tutti_status enqueue(struct launch *launch, struct device *device, cl_event *event)
{
    tutti_status status = TUTTI_OK;
    if (launch->call) return launch->call(device, launch->state, event);
    if (!launch->kernel) {
        CL_TRY(clFlush(device->queue), "sending work to device %d, '%s',", device->index, device->can.name);
        TRY(realise(launch, device));
    }
    CL_TRY(clEnqueueNDRangeKernel(device->queue, launch->kernel, (cl_uint)launch->dimensions, NULL, launch->global,
               launch->local, 0, NULL, event),
        "launching '%s' on device %d, '%s',", launch->kernel_name, device->index, device->can.name);
done:
    return status;
}

tutti_status launch_list_enqueue(struct launch_list *list, size_t first, size_t last, cl_event *events)
{
    tutti_status status = TUTTI_OK;
    size_t i = first;
    for (size_t j = 0; events && j < last - first; j++) events[j] = NULL;
    for (; i < last; i++) TRY(enqueue(&list->launches[i], list->device, events ? &events[i - first] : NULL));
    CL_TRY(
        clFlush(list->device->queue), "sending work to device %d, '%s',", list->device->index, list->device->can.name);
done:
    for (size_t j = 0; status != TUTTI_OK && events && j < last - first; j++) {
        if (events[j]) clReleaseEvent(events[j]);
        events[j] = NULL;
    }
    return status;
}

enum { LARGE = 65536 };

bool launch_is_large(const struct launch *launch)
{
    return launch->global[0] >= LARGE || launch->global[1] >= LARGE || launch->global[2] >= LARGE;
}

static bool same_form(const struct launch *a, const struct launch *b)
{
    return !strcmp(a->source, b->source) && !strcmp(a->kernel_name, b->kernel_name) &&
        !strcmp(a->options, b->options) && !memcmp(a->local, b->local, sizeof(a->local)) &&
        launch_is_large(a) == launch_is_large(b);
}

static bool seen_before(const struct launch_list *list, size_t which)
{
    for (size_t i = 0; i < which; i++)
        if (!list->launches[i].call && same_form(&list->launches[i], &list->launches[which])) return true;
    return false;
}

void launch_smallest(const struct launch *launch, uint64_t global[3])
{
    bool large = launch_is_large(launch);
    for (int i = 0; i < 3; i++) {
        bool keep = large && launch->global[i] >= LARGE;
        global[i] = keep ? size_round_up(LARGE, launch->local[i]) : launch->local[i];
        large &= !keep;
    }
}

tutti_status launch_list_warm_up(struct launch_list *list)
{
    tutti_status status = TUTTI_OK;
    if (builder_knows(list)) return TUTTI_OK;
    for (size_t i = 0; i < list->count; i++)
        if (list->launches[i].call || !seen_before(list, i)) TRY(launch_list_enqueue(list, i, i + 1, NULL));
    TRY(device_wait(list->device));
    programs_save(list->device);
    builder_note(list);
done:
    return status;
}
