#include "runtime/launch.h"

#include "base/invariant.h"
#include "base/memory.h"
#include "base/numbers.h"

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
        (list->launches[i].release ? list->launches[i].release : free)(list->launches[i].state);
    }
    free(list->launches);
    free(list->sync_points);
    list->launches = NULL;
    list->sync_points = NULL;
    list->count = list->capacity = list->sync_point_count = list->sync_point_capacity = 0;
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
    int length = number_print_list(text, sizeof(text), options, arguments);
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

void launch_sync(struct launch_list *list, enum sync_kind kind, cl_mem buffer, int64_t channels, int64_t stride)
{
    if (list->status != TUTTI_OK) return;
    void *array = list->sync_points;
    list->status =
        memory_grow(&array, &list->sync_point_capacity, list->sync_point_count + 1, sizeof(*list->sync_points));
    list->sync_points = array;
    if (list->status != TUTTI_OK) return;
    list->sync_points[list->sync_point_count++] = (struct sync_point) {
        .before = list->count, .kind = kind, .buffer = buffer, .channels = channels, .stride = stride
    };
}

int64_t sync_floats(const struct sync_point *point)
{
    return point->stride * (point->kind == SYNC_MOMENTS ? 3 : 2);
}

static struct launch_argument *argument_new(struct launch *launch)
{
    if (launch->count == LAUNCH_ARGUMENTS) {
        launch->fault = LAUNCH_ARGUMENTS + 1;
        return NULL;
    }
    return &launch->arguments[launch->count++];
}

static struct launch_argument *argument_add(struct launch *launch, const struct launch_argument *argument)
{
    struct launch_argument *place = argument_new(launch);
    if (place) *place = *argument;
    return place;
}

struct launch_argument *launch_buffer(struct launch *launch, cl_mem buffer)
{
    return argument_add(
        launch, &(struct launch_argument) { .kind = ARGUMENT_BUFFER, .size = sizeof(cl_mem), .value.buffer = buffer });
}

struct launch_argument *launch_int(struct launch *launch, int64_t value)
{
    struct launch_argument *place = argument_add(
        launch, &(struct launch_argument) { .kind = ARGUMENT_BYTES, .size = sizeof(cl_int), .value.i = (int)value });
    if ((value < INT_MIN || value > INT_MAX) && !launch->fault) launch->fault = launch->count;
    return place;
}

struct launch_argument *launch_long(struct launch *launch, int64_t value)
{
    return argument_add(
        launch, &(struct launch_argument) { .kind = ARGUMENT_BYTES, .size = sizeof(cl_long), .value.l = value });
}

struct launch_argument *launch_float(struct launch *launch, double value)
{
    return argument_add(
        launch, &(struct launch_argument) { .kind = ARGUMENT_BYTES, .size = sizeof(float), .value.f = (float)value });
}

struct launch_argument *launch_local(struct launch *launch, size_t bytes)
{
    return argument_add(launch, &(struct launch_argument) { .kind = ARGUMENT_LOCAL, .size = bytes });
}

void launch_name(struct launch_argument *argument, const char *name)
{
    if (argument) argument->name = name;
}

void launch_buffers(struct launch *launch, const cl_mem *buffers, size_t count)
{
    for (size_t i = 0; i < count; i++) launch_buffer(launch, buffers[i]);
}

void launch_ints(struct launch *launch, const int64_t *values, size_t count)
{
    for (size_t i = 0; i < count; i++) launch_int(launch, values[i]);
}

void launch_grid(
    struct launch *launch, int dimensions, size_t gx, size_t gy, size_t gz, size_t lx, size_t ly, size_t lz)
{
    const size_t global[3] = { gx, gy, gz }, local[3] = { lx, ly, lz };
    launch->dimensions = dimensions;
    for (int i = 0; i < 3; i++) {
        launch->global[i] = i < dimensions ? global[i] : 1;
        launch->local[i] = i < dimensions ? local[i] : 1;
        INVARIANT(launch->local[i] > 0 && launch->global[i] % launch->local[i] == 0);
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

enum { LARGE = 65536 };

bool launch_is_large(const struct launch *launch)
{
    return launch->global[0] >= LARGE || launch->global[1] >= LARGE || launch->global[2] >= LARGE;
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
