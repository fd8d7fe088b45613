#include "runtime_tests.h"

#include "base/memory.h"
#include "base/status.h"
#include "runtime/arguments.h"
#include "runtime/launch.h"
#include "runtime/memory.h"
#include "runtime/profile.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { ITEMS = 64 };

static struct device *device;
static struct launch_list list;
static cl_mem in, out;

static void list_begin(void)
{
    float sent[ITEMS];
    folder_begin();
    device = device_begin();
    launch_list_init(&list, device);
    expect_ok(buffer_new(device, sizeof(sent), &in));
    expect_ok(buffer_new(device, sizeof(sent), &out));
    for (int i = 0; i < ITEMS; i++) sent[i] = (float)i + 1;
    expect_ok(buffer_write(device, in, 0, sent, sizeof(sent)));
}

static void list_end(void)
{
    launch_list_free(&list);
    buffer_free(&in);
    buffer_free(&out);
    device_end(device);
    folder_end();
}

static struct launch *add(const char *kernel)
{
    struct launch *launch = launch_add(&list, "check", kernel, "-DN=%d", ITEMS);
    launch_buffer(launch, in);
    launch_buffer(launch, out);
    launch_grid(launch, 1, ITEMS, 1, 1, ITEMS, 1, 1);
    return launch;
}

static tutti_status realise(void)
{
    return launch_list_realise(&list, NULL, NULL);
}

START_TEST(lists_run_as_often_as_wanted)
{
    float got[ITEMS];
    add("check_copy");
    expect_ok(realise());
    expect_ok(realise()); /* nothing is left to do */
    for (int round = 0; round < 3; round++) {
        expect_ok(buffer_fill(device, out, 0, sizeof(got), 0x7fc00000));
        expect_ok(launch_list_enqueue(&list, 0, 1, NULL));
        expect_ok(buffer_read(device, out, 0, got, sizeof(got)));
        for (int i = 0; i < ITEMS; i++) ck_assert_float_eq(got[i], (float)i + 1);
    }
}
END_TEST

START_TEST(events_are_given)
{
    cl_event events[2];
    add("check_copy");
    add("check_copy");
    expect_ok(realise());
    expect_ok(launch_list_enqueue(&list, 0, 2, events));
    for (int i = 0; i < 2; i++) {
        expect_ok(event_wait(device, events[i]));
        clReleaseEvent(events[i]);
    }
}
END_TEST

START_TEST(numbers_that_do_not_fit_are_refused)
{
    struct launch *launch = add("check_copy");
    launch_int(launch, INT64_C(1) << 31);
    expect_failure(realise(), TUTTI_UNSUPPORTED, "argument 2");
    launch->fault = 0;
    launch->count = 2;
    launch_int(launch, -(INT64_C(1) << 31) - 1);
    expect_failure(realise(), TUTTI_UNSUPPORTED, "argument 2");
}
END_TEST

START_TEST(numbers_that_fit_are_passed)
{
    struct launch *launch = add("check_copy");
    launch_int(launch, (INT64_C(1) << 31) - 1);
    launch_int(launch, -(INT64_C(1) << 31));
    launch_long(launch, INT64_C(1) << 40);
    launch_float(launch, 0.5);
    ck_assert_int_eq(launch->fault, 0);
    ck_assert_int_eq(launch->arguments[2].value.i, 2147483647);
    ck_assert_int_eq(launch->arguments[3].value.i, -2147483647 - 1);
    ck_assert_uint_eq(launch->arguments[3].size, 4);
    ck_assert_uint_eq(launch->arguments[4].size, 8);
    ck_assert_float_eq(launch->arguments[5].value.f, 0.5f);
    expect_failure(realise(), TUTTI_INTERNAL, "has 2 arguments, but got 6");
}
END_TEST

/* Lists of arguments, of the kernel with the parameters (in, out) and of another one. */
#define IN_LIST(X) X##_FIRST(const global float *, in)
#define OUT_LIST(X) X##_BUFFER(global float *, out)
#define WIDE_LIST(X) X##_INT(width)
ARGUMENTS(in_list, IN_LIST)
ARGUMENTS(out_list, OUT_LIST)
ARGUMENTS(wide_list, WIDE_LIST)

START_TEST(lists_of_arguments_have_the_kernels_order)
{
    struct launch *launch = launch_add(&list, "check", "check_copy", "-cl-kernel-arg-info -DN=%d", ITEMS);
    launch_grid(launch, 1, ITEMS, 1, 1, ITEMS, 1, 1);
    ARGUMENTS_SET(launch, out_list, .out = out);
    ARGUMENTS_SET(launch, in_list, .in = in);
    expect_failure(realise(), TUTTI_INTERNAL, "argument 0 of 'check_copy' is 'in', but got 'out'");
    launch->count = 0;
    ARGUMENTS_SET(launch, in_list, .in = in);
    ARGUMENTS_SET(launch, out_list, .out = out);
    expect_ok(realise());
}
END_TEST

START_TEST(numbers_that_do_not_fit_are_named)
{
    struct launch *launch = add("check_copy");
    ARGUMENTS_SET(launch, wide_list, .width = INT64_C(1) << 31);
    expect_failure(realise(), TUTTI_UNSUPPORTED, "argument 2, width of 'check_copy' exceeds 32 bits");
}
END_TEST

START_TEST(too_many_arguments_are_refused)
{
    struct launch *launch = add("check_copy");
    for (int i = 0; i < LAUNCH_ARGUMENTS; i++) launch_int(launch, i);
    ck_assert_int_eq(launch->count, LAUNCH_ARGUMENTS);
    expect_failure(realise(), TUTTI_INTERNAL, "more than");
}
END_TEST

START_TEST(too_much_local_memory_is_refused)
{
    struct launch *launch = add("check_local");
    launch_local(launch, device->can.local_bytes + 1);
    expect_failure(realise(), TUTTI_UNSUPPORTED, "local memory");
    launch->count--;
    launch_local(launch, 0);
    expect_failure(realise(), TUTTI_INTERNAL, "local memory");
    launch->count--;
    launch_local(launch, SIZE_MAX);
    launch_local(launch, 2);
    expect_failure(realise(), TUTTI_INTERNAL, "local memory");
    launch->count -= 2;
    launch_local(launch, ITEMS * sizeof(float));
    expect_ok(realise());
}
END_TEST

START_TEST(impossible_sizes_are_refused)
{
    static const struct {
        size_t global[3], local[3];
        tutti_status status;
        const char *part;
    } cases[] = {
        { { 0, 1, 1 }, { 1, 1, 1 }, TUTTI_INTERNAL, "0 work-items" },
        { { 64, 1, 1 }, { 0, 1, 1 }, TUTTI_INTERNAL, "groups of 0" },
        { { 64, 10, 1 }, { 1, 4, 1 }, TUTTI_INTERNAL, "dimension 1" },
        { { 1 << 20, 1, 1 }, { 1 << 20, 1, 1 }, TUTTI_UNSUPPORTED, "work-groups of 1048576" },
        { { (size_t)1 << 40, (size_t)1 << 40, 1 }, { (size_t)1 << 40, (size_t)1 << 40, 1 }, TUTTI_INTERNAL,
            "can be counted" },
    };
    struct launch *launch = add("check_copy");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const size_t *g = cases[i].global, *l = cases[i].local;
        launch_grid(launch, 3, g[0], g[1], g[2], l[0], l[1], l[2]);
        expect_failure(realise(), cases[i].status, cases[i].part);
    }
    launch->dimensions = 0;
    expect_failure(realise(), TUTTI_INTERNAL, "no sizes");
}
END_TEST

START_TEST(failures_while_appending_are_kept)
{
    char *options = memory_new(5000, 1);
    memset(options, 'x', 4999);
    struct launch *dummy = launch_add(&list, "check", "check_copy", "-D%s", options);
    ck_assert_ptr_nonnull(dummy);
    for (int i = 0; i < 3 * LAUNCH_ARGUMENTS; i++) launch_int(dummy, i); /* harmless */
    add("check_copy");
    launch_add_call(&list, "call", NULL, memory_new(1, 1));
    ck_assert_uint_eq(list.count, 0);
    expect_failure(realise(), TUTTI_INTERNAL, "options");
    free(options);
}
END_TEST

static tutti_status count_call(struct device *on, void *state, cl_event *event)
{
    ck_assert_ptr_eq(on, device);
    (*(int *)state)++;
    if (event) ck_assert_int_eq(clEnqueueMarkerWithWaitList(on->queue, 0, NULL, event), CL_SUCCESS);
    return *(int *)state < 4 ? TUTTI_OK : fail(TUTTI_DEVICE, "the fourth call");
}

START_TEST(calls_are_launches_too)
{
    cl_event events[2];
    int *calls = memory_new(1, sizeof(int));
    add("check_copy");
    launch_add_call(&list, "count", count_call, calls);
    expect_ok(realise());
    expect_ok(launch_list_enqueue(&list, 0, 2, NULL));
    expect_ok(launch_list_warm_up(&list));
    expect_ok(profile_run(&list));
    ck_assert_int_eq(*calls, 3);
    expect_failure(launch_list_enqueue(&list, 0, 2, events), TUTTI_DEVICE, "the fourth call");
    ck_assert_ptr_null(events[0]); /* released */
    ck_assert_ptr_null(events[1]);
    expect_ok(device_wait(device));
}
END_TEST

/* No device is slower or faster than these limits. */
START_TEST(peaks_are_measured)
{
    struct peak peak;
    expect_ok(peak_measure(device, &peak));
    ck_assert_msg(peak.flops > 1e8 && peak.flops < 1e16, "%g FLOP/s", peak.flops);
    ck_assert_msg(peak.bytes > 1e8 && peak.bytes < 1e14, "%g B/s", peak.bytes);
    ck_assert_double_eq_tol(profile_floor(3 * peak.flops, peak.bytes, &peak), 3, 1e-12);
    ck_assert_double_eq_tol(profile_floor(peak.flops, 5 * peak.bytes, &peak), 5, 1e-12);
    ck_assert_double_eq(profile_floor(1, 1, &(struct peak) { 0, 0 }), 0);
}
END_TEST

START_TEST(profiles_have_times)
{
    char *path = memory_format("%s/trace.json", folder());
    const struct profile_label labels[] = { { "layer \"one\"\n\\", "conv2d", "direct" } };
    const struct peak peak = { 4e9, 1e9 };
    for (int i = 0; i < 5; i++) launch_work(add("check_functions"), 1000, 2000);
    list.launches[0].node = 0;
    expect_ok(realise());
    expect_ok(launch_list_warm_up(&list));
    expect_ok(profile_fastest(&list, 3));
    for (int i = 0; i < 5; i++) {
        ck_assert(list.launches[i].fastest > 0 && list.launches[i].fastest <= list.launches[i].seconds);
        ck_assert(list.launches[i].seconds > 0 && list.launches[i].seconds < 1);
        if (i > 0)
            ck_assert(list.launches[i].begin >= list.launches[i - 1].begin + list.launches[i - 1].seconds - 1e-9);
    }
    expect_ok(profile_trace(&list, labels, &peak, path));
    json_error_t error;
    json_t *trace = json_load_file(path, 0, &error);
    ck_assert_msg(trace != NULL, "%s", error.text);
    json_t *events = json_object_get(trace, "traceEvents");
    ck_assert_uint_eq(json_array_size(events), 6);
    json_t *event = json_array_get(events, 1);
    ck_assert_str_eq(json_string_value(json_object_get(event, "name")), "check_functions");
    json_t *work = json_object_get(event, "args");
    ck_assert_str_eq(json_string_value(json_object_get(work, "layer")), labels[0].layer);
    ck_assert_str_eq(json_string_value(json_object_get(work, "operation")), "conv2d");
    ck_assert_str_eq(json_string_value(json_object_get(work, "implementation")), "direct");
    ck_assert_double_eq(json_number_value(json_object_get(work, "FLOP")), 1000);
    ck_assert_double_eq(json_number_value(json_object_get(work, "bytes")), 2000);
    ck_assert_double_eq_tol(
        json_number_value(json_object_get(work, "fastest_us")), 1e6 * list.launches[0].fastest, 1e-3);
    ck_assert_double_eq(json_number_value(json_object_get(json_object_get(trace, "otherData"), "GB/s")), 1);
    json_decref(trace);
    expect_failure(profile_trace(&list, NULL, &peak, "/none/trace.json"), TUTTI_FILE, "/none/trace.json");
    free(path);
}
END_TEST

Suite *launch_suite(void)
{
    Suite *suite = suite_create("launch");
    TCase *tests = tcase_create("launch");
    tcase_add_checked_fixture(tests, list_begin, list_end);
    tcase_add_test(tests, lists_run_as_often_as_wanted);
    tcase_add_test(tests, events_are_given);
    tcase_add_test(tests, numbers_that_do_not_fit_are_refused);
    tcase_add_test(tests, numbers_that_fit_are_passed);
    tcase_add_test(tests, lists_of_arguments_have_the_kernels_order);
    tcase_add_test(tests, numbers_that_do_not_fit_are_named);
    tcase_add_test(tests, too_many_arguments_are_refused);
    tcase_add_test(tests, too_much_local_memory_is_refused);
    tcase_add_test(tests, impossible_sizes_are_refused);
    tcase_add_test(tests, failures_while_appending_are_kept);
    tcase_add_test(tests, calls_are_launches_too);
    tcase_add_test(tests, peaks_are_measured);
    tcase_add_test(tests, profiles_have_times);
    suite_add_tcase(suite, tests);
    return suite;
}
