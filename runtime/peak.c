#include "runtime/peak.h"

#include "base/memory.h"
#include "runtime/launch.h"
#include "runtime/memory.h"
#include "runtime/profile.h"

#include <math.h>
#include <stdlib.h>

enum {
    REPEATS = 5,
    CHAINS = 12, /* as clkernels/peak.cl */
    GROUP = 64,
    GROUPS_PER_UNIT = 32,
    TASKS_PER_UNIT = 8,
    ROUNDS = 1 << 16,
    PAIR_CHAINS = 12, /* as clkernels/peak_bf16_cpu.cl, as are the steps */
    PAIR_STEPS = 4,
    PAIR_LANES = 16,
    TILE_WORDS = 256,
    TILES_OF_UNIT = 4, /* tiles of sums in a unit, 2 x 2; and its tiles of operands, 2 + 2 along the sum */
    TILE_SUMS = 256,
    TILE_DEPTH = 32,
};
#define ONES 0x3f803f80u                 /* two bfloat16 numbers */
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

static tutti_status run(struct launch_list *list)
{
    tutti_status status = TUTTI_OK;
    TRY(launch_list_realise(list, NULL, NULL));
    TRY(launch_list_warm_up(list));
    TRY(profile_fastest(list, REPEATS));
done:
    return status;
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
    TRY(run(&list));
    best_rates(&list, peak);
done:
    launch_list_free(&list);
    buffer_free(&in);
    buffer_free(&out);
    return status;
}

/* Returns the form by which the device computes bf16 dot products. All types have the same, unless the trial of one
 * failed. */
static enum bf16_form form_of(const struct device *device)
{
    enum bf16_form form = BF16_NONE;
    for (int compute = COMPUTE_BF16; compute >= COMPUTE_FP32 && !form; compute--) form = device->can.bf16[compute].form;
    return form;
}

/* Number of products that a task computes. */
static double products_of(enum bf16_form form)
{
    const double round =
        form == BF16_TILES ? PAIR_STEPS * TILES_OF_UNIT * TILE_SUMS * TILE_DEPTH : PAIR_CHAINS * PAIR_LANES * 2;
    return ROUNDS * round;
}

/* Checks that all products were computed: else their rate would mean nothing. */
static tutti_status check_products(struct device *device, cl_mem out, size_t items, double products)
{
    tutti_status status = TUTTI_OK;
    float *found = memory_new(items, sizeof *found);
    if (!found) return TUTTI_NO_MEMORY;
    TRY(buffer_read(device, out, 0, found, items * sizeof *found));
    for (size_t i = 0; i < items; i++)
        if ((double)found[i] != products)
            FAIL(TUTTI_WRONG_RESULT, "the sum of %.0f products of ones is %.9g", products, (double)found[i]);
done:
    free(found);
    return status;
}

tutti_status peak_measure_bf16(struct device *device, double *flops)
{
    const enum bf16_form form = form_of(device);
    const size_t items = items_of(device), bytes = items * sizeof(float),
                 ones_bytes = (size_t)PAIR_STEPS * TILES_OF_UNIT * TILE_WORDS * sizeof(uint32_t);
    tutti_status status = TUTTI_OK;
    cl_mem ones = NULL, out = NULL;
    struct launch_list list;
    *flops = 0;
    if (device->can.class != DEVICE_CPU || form == BF16_NONE) return TUTTI_OK;
    launch_list_init(&list, device);
    TRY(buffer_new(device, ones_bytes, &ones));
    TRY(buffer_fill(device, ones, 0, ones_bytes, ONES));
    TRY(buffer_new(device, bytes, &out));
    struct launch *launch = launch_add(&list, "peak_bf16_cpu", "peak_bf16", "-DBF16_FORM=%d", (int)form);
    launch_buffer(launch, ones);
    launch_buffer(launch, out);
    launch_local(launch, (size_t)TILES_OF_UNIT * TILE_SUMS * sizeof(float));
    launch_int(launch, ROUNDS);
    launch_tasks(launch, items, 1, 1);
    launch_work(launch, 2 * products_of(form) * (double)items, 0);
    TRY(run(&list));
    TRY(check_products(device, out, items, products_of(form)));
    struct peak peak;
    best_rates(&list, &peak);
    *flops = peak.flops;
done:
    launch_list_free(&list);
    buffer_free(&ones);
    buffer_free(&out);
    return status;
}
