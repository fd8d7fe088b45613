/* Storing floats as bfloat16 and loading them, by the kernel that does nothing else (reorder): every upper half, with
 * lower halves around each boundary of rounding, in whole vectors and one by one. */
#include <check.h>
#undef fail /* base/status.h has its own */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "runtime/launch.h"
#include "runtime/memory.h"
#include "tests/layers/device_suite.h"

enum { UPPER = 1 << 16, QUIET = 0x40, INFINITE = 0x7f80, TAIL = 3 };
static const uint32_t lower[] = { 0, 1, 0x7fff, 0x8000, 0x8001, 0xffff };
enum { LOWER = sizeof lower / sizeof *lower };

static tutti_runtime *runtime;

static void check(tutti_status status, const char *what)
{
    ck_assert_msg(status == TUTTI_OK, "%s: %s", what, tutti_message(NULL));
}

/* One image of V channels: in one layout a pixel's V numbers lie together, in the other a channel's pixels do. */
static void reorder(struct device *device, bool to_blocked, const char *types, const void *from, size_t from_bytes,
    void *to, size_t to_bytes, int64_t pixels)
{
    cl_mem x = NULL, y = NULL;
    struct launch_list list;
    launch_list_init(&list, device);
    check(buffer_new(device, from_bytes, &x), "buffer");
    check(buffer_new(device, to_bytes, &y), "buffer");
    check(buffer_write(device, x, 0, from, from_bytes), "write");
    struct launch *launch =
        launch_add(&list, "reorder", "vectors", "-DTO_BLOCKED=%d -DTYPE=uint %s", to_blocked, types);
    launch_buffer(launch, x);
    launch_buffer(launch, y);
    launch_int(launch, device->can.vector_width);
    launch_int(launch, pixels);
    launch_int(launch, pixels);
    launch_tasks(launch, 1, 1, 1);
    check(launch_list_realise(&list, NULL, NULL), "build");
    check(launch_list_enqueue(&list, 0, list.count, NULL), "run");
    check(buffer_read(device, y, 0, to, to_bytes), "read");
    launch_list_free(&list);
    buffer_free(&x);
    buffer_free(&y);
}

static double value_of(uint32_t upper)
{
    if ((upper & 0x7fff) == INFINITE) return ldexp(upper & 0x8000 ? -1 : 1, 128); /* where the next number would be */
    uint32_t bits = upper << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

/* The nearest of the two numbers around a finite float. */
static uint32_t rounded(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    uint32_t below = bits >> 16, above = below + 1; /* by magnitude */
    double down = fabs((double)value - value_of(below)), up = fabs(value_of(above) - (double)value);
    if (down == 0) return below;
    if (down == up) return below & 1 ? above : below;
    return down < up ? below : above;
}

static void check_stored(uint32_t bits, uint32_t got)
{
    if ((bits & 0x7fffffff) > 0x7f800000) {
        ck_assert_msg(
            (got & 0x7fff) > INFINITE && (got & QUIET) && got >> 15 == bits >> 31, "NaN %08x became %04x", bits, got);
        return;
    }
    uint32_t want = (bits & 0x7fffffff) == 0x7f800000 ? bits >> 16 : rounded(bits);
    ck_assert_msg(got == want, "%08x became %04x, and must be %04x", bits, got, want);
}

START_TEST(stores_round_to_the_nearest)
{
    struct device *device = &runtime->devices[_i];
    int64_t width = device->can.vector_width, pixels = UPPER * LOWER / width + TAIL, count = pixels * width;
    uint32_t *from = memory_new((size_t)count, sizeof *from);
    uint16_t *to = memory_new((size_t)count, sizeof *to);
    for (int64_t i = 0; i < count; i++) from[i] = (uint32_t)(i / LOWER % UPPER) << 16 | lower[i % LOWER];
    reorder(device, true, "-DOUT0_TYPE=bf16", from, (size_t)count * 4, to, (size_t)count * 2, pixels);
    for (int64_t i = 0; i < count; i++) check_stored(from[i], to[i % pixels * width + i / pixels]);
    free(from);
    free(to);
}
END_TEST

START_TEST(loads_are_exact)
{
    struct device *device = &runtime->devices[_i];
    int64_t width = device->can.vector_width, pixels = UPPER / width + TAIL, count = pixels * width;
    uint16_t *from = memory_new((size_t)count, sizeof *from);
    uint32_t *to = memory_new((size_t)count, sizeof *to);
    for (int64_t i = 0; i < count; i++) from[i] = (uint16_t)i;
    reorder(device, false, "-DIN0_TYPE=bf16", from, (size_t)count * 2, to, (size_t)count * 4, pixels);
    for (int64_t i = 0; i < count; i++) {
        uint32_t want = (uint32_t)from[i] << 16, got = to[i % width * pixels + i / width];
        bool nan = (want & 0x7fffffff) > 0x7f800000;
        ck_assert_msg(got == want || (nan && (got & 0x7fffffff) > 0x7f800000), "%04x became %08x", from[i], got);
    }
    free(from);
    free(to);
}
END_TEST

static void add_tests(TCase *cases)
{
    tcase_add_loop_test(cases, stores_round_to_the_nearest, 0, runtime->count);
    tcase_add_loop_test(cases, loads_are_exact, 0, runtime->count);
}

int main(void)
{
    return device_suite_run("bf16", "all", &runtime, add_tests);
}
