#include "runtime_tests.h"

#include "base/memory.h"
#include "base/status.h"
#include "runtime/memory.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

START_TEST(buffers_hold_what_is_written)
{
    struct device *device = device_begin();
    static const size_t sizes[] = { 1, 3, 4, 5, 4096, 5 << 20 }; /* the last in huge pages */
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        size_t bytes = sizes[i];
        unsigned char *sent = memory_new(bytes, 1), *got = memory_new(bytes, 1);
        cl_mem buffer;
        expect_ok(buffer_new(device, bytes, &buffer));
        memset(got, 1, bytes);
        expect_ok(buffer_read(device, buffer, 0, got, bytes));
        ck_assert_mem_eq(got, sent, bytes); /* zeroed */
        for (size_t j = 0; j < bytes; j++) sent[j] = (unsigned char)(j * 7 + j / 256);
        expect_ok(buffer_write(device, buffer, 0, sent, bytes));
        expect_ok(buffer_read(device, buffer, 0, got, bytes));
        ck_assert_mem_eq(got, sent, bytes);
        expect_ok(buffer_fill(device, buffer, 0, bytes, 0x01020304));
        expect_ok(buffer_read(device, buffer, 0, got, bytes));
        for (size_t j = 0; j < bytes; j++) sent[j] = (unsigned char)(4 - j % 4);
        ck_assert_mem_eq(got, sent, bytes);
        buffer_free(&buffer);
        ck_assert_ptr_null(buffer);
        buffer_free(&buffer);
        free(sent);
        free(got);
    }
    device_end(device);
}
END_TEST

START_TEST(arenas_are_cut_where_they_are_told)
{
    struct device *device = device_begin();
    struct arena *arena = NULL;
    cl_mem first, second;
    float value = 7, got = 0;
    size_t step = device->can.alignment;
    expect_ok(arena_new(device, (size_t[]) { 16 * step, 6 << 20 }, 2, &arena));
    ck_assert_uint_eq(arena_bytes(arena), 16 * step + (6 << 20));
    expect_ok(arena_cut(arena, (struct arena_position) { 1, 3 * step }, step, &first));
    expect_ok(arena_cut(arena, (struct arena_position) { 1, 0 }, 6 << 20, &second));
    expect_ok(buffer_write(device, first, 4, &value, 4));
    expect_ok(buffer_read(device, second, 3 * step + 4, &got, 4));
    ck_assert_float_eq(got, value);
    buffer_free(&first);
    buffer_free(&second);
    expect_failure(arena_cut(arena, (struct arena_position) { 0, 4 }, 4, &first), TUTTI_INTERNAL, "aligned");
    expect_failure(
        arena_cut(arena, (struct arena_position) { 0, 15 * step }, step + 1, &first), TUTTI_INTERNAL, "outside");
    expect_failure(arena_cut(arena, (struct arena_position) { 0, SIZE_MAX - 3 }, 8, &first), TUTTI_INTERNAL, "outside");
    expect_failure(arena_cut(arena, (struct arena_position) { 2, 0 }, 4, &first), TUTTI_INTERNAL, "slab 2");
    arena->users++;
    arena_free(arena);
    expect_ok(arena_cut(arena, (struct arena_position) { 0, 0 }, 4, &first)); /* one user is left */
    buffer_free(&first);
    arena_free(arena);
    arena_free(NULL);
    device_end(device);
}
END_TEST

START_TEST(memory_limits_hold)
{
    tutti_runtime *runtime = open_runtime(&(tutti_runtime_options) { .memory_limit = 1 << 20 });
    struct device *device = &runtime->devices[0];
    struct arena *arena = NULL;
    cl_mem buffer;
    ck_assert_uint_eq(device->can.memory_bytes, 1 << 20);
    ck_assert_uint_le(device->can.allocation_max, 1 << 20);
    expect_failure(buffer_new(device, (1 << 20) + 1, &buffer), TUTTI_DEVICE_MEMORY, "lower the batch");
    ck_assert_ptr_null(buffer);
    expect_failure(
        arena_new(device, (size_t[]) { 1 << 19, 1 << 19, 1 }, 3, &arena), TUTTI_DEVICE_MEMORY, "1048577 bytes");
    expect_failure(arena_new(device, (size_t[]) { SIZE_MAX, 2 }, 2, &arena), TUTTI_DEVICE_MEMORY, "overflow");
    ck_assert_ptr_null(arena);
    expect_ok(arena_new(device, (size_t[]) { 1 << 19, 1 << 19 }, 2, &arena));
    arena_free(arena);
    tutti_close(runtime);
}
END_TEST

START_TEST(a_buffer_that_no_device_has_is_refused)
{
    struct device *device = device_begin();
    cl_mem buffer;
    expect_failure(buffer_new(device, (size_t)1 << 60, &buffer), TUTTI_DEVICE_MEMORY, device->can.name);
    device_end(device);
}
END_TEST

START_TEST(staging_can_be_read_and_written)
{
    struct device *device = device_begin();
    struct staging staging;
    cl_mem buffer;
    expect_ok(staging_new(device, 8 << 20, &staging));
    expect_ok(buffer_new(device, 8 << 20, &buffer));
    memset(staging.pointer, 5, staging.bytes);
    expect_ok(buffer_write(device, buffer, 0, staging.pointer, staging.bytes));
    memset(staging.pointer, 0, staging.bytes);
    expect_ok(buffer_read(device, buffer, 0, staging.pointer, staging.bytes));
    for (size_t i = 0; i < staging.bytes; i += 4095) ck_assert_int_eq(((char *)staging.pointer)[i], 5);
    staging_free(&staging);
    ck_assert_ptr_null(staging.pointer);
    staging_free(&staging);
    buffer_free(&buffer);
    device_end(device);
}
END_TEST

START_TEST(waiting_ends)
{
    struct device *device = device_begin();
    expect_ok(device_wait(device));
    device->host_cpu = false; /* the way that sleeps */
    expect_ok(device_wait(device));
    device->host_cpu = true;
    (void)wait_patience(10);
    expect_ok(device_wait(device));
    device_end(device);
}
END_TEST

static void *complete_later(void *event)
{
    nanosleep(&(struct timespec) { .tv_nsec = 400000000 }, NULL);
    clSetUserEventStatus(event, CL_COMPLETE);
    return NULL;
}

static double seconds_of(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* What this thread did while it waited for an event that completes 0.4 seconds later. */
struct waiting {
    double seconds, busy;
    long wakes;
};

static struct waiting wait_for_later(struct device *device, tutti_status (*wait)(struct device *, cl_event))
{
    cl_int error = CL_SUCCESS;
    cl_event later = clCreateUserEvent(device->context, &error), marker = NULL;
    pthread_t thread;
    struct rusage before, after;
    ck_assert_int_eq(error, CL_SUCCESS);
    ck_assert_int_eq(clEnqueueMarkerWithWaitList(device->queue, 1, &later, &marker), CL_SUCCESS);
    const double start = seconds_of(CLOCK_MONOTONIC), used = seconds_of(CLOCK_THREAD_CPUTIME_ID);
    ck_assert_int_eq(getrusage(RUSAGE_THREAD, &before), 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, complete_later, later), 0);
    expect_ok(wait(device, marker));
    ck_assert_int_eq(getrusage(RUSAGE_THREAD, &after), 0);
    const struct waiting found = { seconds_of(CLOCK_MONOTONIC) - start, seconds_of(CLOCK_THREAD_CPUTIME_ID) - used,
        after.ru_nvcsw - before.ru_nvcsw };
    pthread_join(thread, NULL);
    ck_assert_double_ge(found.seconds, 0.4);
    clReleaseEvent(marker);
    clReleaseEvent(later);
    return found;
}

/* A thread that waits for a device that is not this CPU leaves the core to others. A busy loop would take all of it;
 * the wait takes a twentieth, and less if the machine is busy. */
START_TEST(waiting_leaves_the_core)
{
    struct device *device = device_begin();
    device->host_cpu = false;
    const struct waiting found = wait_for_later(device, event_wait);
    ck_assert_msg(found.busy < 0.3 * found.seconds, "%g of %g seconds", found.busy, found.seconds);
    device_end(device);
}
END_TEST

/* On a CPU that computes on, each time the waiting thread wakes up interrupts the work: 0.4 seconds are some 135 looks
 * at the event where the driver cannot be asked to wait for it, 870 at the pace of a wait for the end. */
START_TEST(waiting_amid_work_seldom_wakes)
{
    struct device *device = device_begin();
    device->host_cpu = true;
    device->quirks &= ~(unsigned)QUIRK_WAITS_FOR_ALL;
    const long asked = wait_for_later(device, event_wait_amid).wakes;
    device->quirks |= QUIRK_WAITS_FOR_ALL;
    const long looked = wait_for_later(device, event_wait_amid).wakes;
    ck_assert_int_le(asked, 40);
    ck_assert_int_le(looked, 300);
    device_end(device);
}
END_TEST

struct other_wait {
    struct device *device;
    cl_event event;
};

static void *wait_without_patience(void *argument)
{
    const struct other_wait *wait = argument;
    return event_wait(wait->device, wait->event) == TUTTI_OK ? argument : NULL;
}

START_TEST(patience_runs_out)
{
    struct device *device = device_begin();
    cl_int error = CL_SUCCESS;
    cl_event never = clCreateUserEvent(device->context, &error), marker = NULL; /* stands for a kernel that hangs */
    ck_assert_int_eq(error, CL_SUCCESS);
    ck_assert_int_eq(clEnqueueMarkerWithWaitList(device->queue, 1, &never, &marker), CL_SUCCESS);
    (void)wait_patience(0.05);
    /* Another thread, which trains meanwhile, goes on waiting. */
    pthread_t other;
    ck_assert_int_eq(pthread_create(&other, NULL, wait_without_patience, &(struct other_wait) { device, marker }), 0);
    expect_failure(event_wait(device, marker), TUTTI_DEVICE_LOST, device->can.name);
    ck_assert_int_eq(clSetUserEventStatus(never, CL_COMPLETE), CL_SUCCESS);
    expect_ok(event_wait(device, marker));
    void *waited = NULL;
    ck_assert_int_eq(pthread_join(other, &waited), 0);
    ck_assert_ptr_nonnull(waited);
    clReleaseEvent(marker);
    clReleaseEvent(never);
    device_end(device);
}
END_TEST

Suite *memory_suite(void)
{
    Suite *suite = suite_create("memory");
    TCase *tests = tcase_create("memory");
    tcase_add_checked_fixture(tests, folder_begin, folder_end);
    tcase_add_test(tests, buffers_hold_what_is_written);
    tcase_add_test(tests, arenas_are_cut_where_they_are_told);
    tcase_add_test(tests, memory_limits_hold);
    tcase_add_test(tests, a_buffer_that_no_device_has_is_refused);
    tcase_add_test(tests, staging_can_be_read_and_written);
    tcase_add_test(tests, waiting_ends);
    tcase_add_test(tests, waiting_leaves_the_core);
    tcase_add_test(tests, waiting_amid_work_seldom_wakes);
    tcase_add_test(tests, patience_runs_out);
    suite_add_tcase(suite, tests);
    return suite;
}
