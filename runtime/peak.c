#include "runtime/peak.h"

#include "base/memory.h"
#include "runtime/launch.h"
#include "runtime/memory.h"
#include "runtime/profile.h"

#include <math.h>

enum {
    REPEATS = 5,
    CHAINS = 12, /* as clkernels/peak.cl */
    GROUP = 64,
    GROUPS_PER_UNIT = 32,
    TASKS_PER_UNIT = 8,
    ROUNDS = 1 << 16,
};
#define STREAM_BYTES ((size_t)256 << 20) /* beyond any cache */
#define LEAST_BYTES ((size_t)1 << 20)

static size_t items_of(const struct device *device)
{
    size_t units = device->can.units > 0 ? (size_t)device->can.units : 1;
    return device->can.class == DEVICE_CPU ? units * TASKS_PER_UNIT : units * GROUPS_PER_UNIT * GROUP;
}

static struct launch *add(struct launch_list *list, const char *kernel, size_t items)
{
    const struct capabilities *can = &list->device->can;
    struct launch *launch = launch_add(list, "peak", kernel, "%s", "");
    size_t group = can->class == DEVICE_CPU || can->group_max < GROUP ? 1 : GROUP;
    launch_grid(launch, 1, items, 1, 1, group, 1, 1);
    return launch;
}

static void add_stream(struct launch_list *list, const char *kernel, cl_mem in, cl_mem out, size_t bytes, size_t moved)
{
    size_t items = items_of(list->device), floats = bytes / sizeof(float);
    struct launch *launch = add(list, kernel, items);
    launch_buffer(launch, in);
    launch_buffer(launch, out);
    launch_long(launch, (int64_t)floats);
    launch_long(launch, (int64_t)size_round_up((floats + items - 1) / items, GROUP));
    launch_work(launch, 0, (double)moved);
}

static void best_rates(const struct launch_list *list, struct peak *peak)
{
    *peak = (struct peak) { 0, 0 };
    for (size_t i = 0; i < list->count; i++) {
        double seconds = list->launches[i].fastest;
        if (!(seconds > 0)) continue;
        peak->flops = fmax(peak->flops, list->launches[i].flops / seconds);
        peak->bytes = fmax(peak->bytes, list->launches[i].bytes / seconds);
    }
}

tutti_status peak_measure(struct device *device, struct peak *peak)
{
    tutti_status status = TUTTI_OK;
    cl_mem in = NULL, out = NULL;
    struct launch_list list;
    launch_list_init(&list, device);
    size_t items = items_of(device), bytes = device->can.memory_bytes / 8;
    if (bytes > device->can.allocation_max) bytes = device->can.allocation_max;
    if (bytes > STREAM_BYTES) bytes = STREAM_BYTES;
    bytes = bytes / LEAST_BYTES * LEAST_BYTES;
    if (bytes < items * sizeof(float))
        FAIL(TUTTI_DEVICE_MEMORY, "the device does not have enough memory to measure its bandwidth");
    TRY(buffer_new(device, bytes, &in));
    TRY(buffer_new(device, bytes, &out));
    struct launch *launch = add(&list, "peak_arithmetic", items);
    launch_buffer(launch, out);
    launch_int(launch, ROUNDS);
    launch_float(launch, 0.5);
    launch_float(launch, 0.25);
    launch_work(launch, 2.0 * CHAINS * ROUNDS * device->can.vector_width * (double)items, 0);
    add_stream(&list, "peak_copy", in, out, bytes, 2 * bytes);
    add_stream(&list, "peak_read", in, out, bytes, bytes);
    TRY(launch_list_realise(&list, NULL, NULL));
    TRY(launch_list_warm_up(&list));
    TRY(profile_fastest(&list, REPEATS));
    best_rates(&list, peak);
done:
    launch_list_free(&list);
    buffer_free(&in);
    buffer_free(&out);
    return status;
}
