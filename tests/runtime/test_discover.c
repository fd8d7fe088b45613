#include "runtime_tests.h"

#include "base/status.h"
#include "runtime/discover.h"
#include "runtime/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- choosing, over devices that need not exist ---- */

enum { COUNT = 4 };

static void fill(struct found_device *found)
{
    static const struct {
        const char *name, *platform;
        enum device_class class;
        bool aside;
    } devices[COUNT] = {
        { "pthread-AMD EPYC", "Portable Computing Language", DEVICE_CPU, false },
        { "AMD EPYC 9V74", "Intel(R) OpenCL", DEVICE_CPU, true },
        { "NVIDIA GeForce RTX 3090", "NVIDIA CUDA", DEVICE_GPU, false },
        { "gfx1030", "AMD Accelerated Parallel Processing", DEVICE_GPU, false },
    };
    memset(found, 0, COUNT * sizeof(*found));
    for (int i = 0; i < COUNT; i++) {
        found[i].index = i;
        snprintf(found[i].can.name, sizeof(found[i].can.name), "%s", devices[i].name);
        snprintf(found[i].can.platform, sizeof(found[i].can.platform), "%s", devices[i].platform);
        found[i].can.class = devices[i].class;
        found[i].aside = devices[i].aside;
    }
}

static const struct {
    const char *choice, *chosen; /* one letter for each device; "": a failure */
} choices[] = {
    { NULL, "..xx" },
    { "", "..xx" },
    { "all", "x.xx" },
    { "ALL", "x.xx" },
    { "gpu", "..xx" },
    { "cpu", "x..." },
    { "cpu,gpu", "x.xx" },
    { "0", "x..." },
    { "1", ".x.." },
    { "0,2", "x.x." },
    { " 2 , 0 ,", "x.x." },
    { "2,2", "..x." },
    { "rtx", "..x." },
    { "RTX 3090", "..x." },
    { "epyc", "xx.." },
    { "intel", ".x.." },
    { "portable", "x..." },
    { "amd", "xx.x" },
    { "gfx1030,0", "x..x" },
    { "4", "" },
    { "3090", "" },
    { "-1", "" },
    { "0,7", "" },
    { "tpu", "" },
    { ",", "" },
    { "99999999999999999999", "" },
};

START_TEST(choices_name_devices)
{
    struct found_device found[COUNT];
    fill(found);
    for (int round = 0; round < 2; round++) { /* by argument, then by environment */
        const char *choice = choices[_i].choice;
        if (round == 1 && choice) setenv("TUTTI_DEVICES", choice, 1);
        tutti_status status = discover_choose(found, COUNT, round == 0 ? choice : NULL);
        if (!*choices[_i].chosen) {
            expect_failure(status, TUTTI_NO_DEVICE, "gfx1030");
            continue;
        }
        expect_ok(status);
        for (int i = 0; i < COUNT; i++)
            ck_assert_msg(
                found[i].chosen == (choices[_i].chosen[i] == 'x'), "'%s': device %d", choice ? choice : "default", i);
    }
}
END_TEST

START_TEST(without_gpu_the_cpu_is_the_default)
{
    struct found_device found[COUNT];
    fill(found);
    expect_ok(discover_choose(found, 2, NULL));
    ck_assert(found[0].chosen && !found[1].chosen);
    expect_failure(discover_choose(found, 2, "gpu"), TUTTI_NO_DEVICE, "'gpu'");
    ck_assert_ptr_nonnull(strstr(status_message(), "pthread-AMD EPYC"));
}
END_TEST

/* ---- real devices ---- */

START_TEST(finds_a_device_with_sane_capabilities)
{
    struct found_device *found = NULL;
    struct log log;
    int count = 0;
    log_init(&log, TUTTI_LOG_DEFAULT, NULL, NULL);
    expect_ok(discover(&log, &found, &count));
    ck_assert_int_ge(count, 1);
    for (int i = 0; i < count; i++) {
        const struct capabilities *can = &found[i].can;
        ck_assert_int_eq(found[i].index, i);
        ck_assert(*can->name && *can->platform && *can->driver && *can->version);
        ck_assert(can->vector_width == 16 || can->vector_width == 8 || can->vector_width == 4);
        ck_assert_int_ge(can->units, 1);
        ck_assert_uint_ge(can->local_bytes, 16384);
        ck_assert_uint_ge(can->group_max, 1);
        ck_assert(can->alignment >= 128 && (can->alignment & (can->alignment - 1)) == 0);
        ck_assert(can->allocation_max > 0 && can->allocation_max <= can->memory_bytes);
        ck_assert_int_eq(can->class, found[i].type & CL_DEVICE_TYPE_CPU ? DEVICE_CPU : DEVICE_GPU);
    }
    discover_free(found, count);
    discover_free(NULL, 0);
}
END_TEST

START_TEST(opens_and_lists)
{
    tutti_device_info info, *list = NULL;
    int count = 0;
    tutti_runtime *runtime = open_runtime(NULL);
    ck_assert_int_ge(tutti_device_count(runtime), 1);
    expect_ok(tutti_device_get(runtime, 0, &info));
    expect_ok(tutti_devices_list(NULL, &list, &count));
    ck_assert_int_ge(count, tutti_device_count(runtime));
    ck_assert_str_eq(list[info.index].name, info.name);
    ck_assert(list[info.index].chosen);
    ck_assert(!strcmp(info.device_class, "cpu") || !strcmp(info.device_class, "gpu"));
    expect_failure(tutti_device_get(runtime, count, &info), TUTTI_NO_DEVICE, "position");
    expect_failure(tutti_device_get(runtime, -1, &info), TUTTI_NO_DEVICE, "position");
    expect_failure(tutti_device_get(NULL, 0, &info), TUTTI_INVALID, "tutti_open");
    tutti_devices_free(list);
    tutti_close(runtime);
    tutti_close(NULL);
}
END_TEST

START_TEST(two_devices_of_a_platform_are_two)
{
    setenv("POCL_DEVICES", "pthread pthread", 1);
    tutti_runtime *runtime = open_runtime(&(tutti_runtime_options) { .devices = "portable" });
    ck_assert_int_eq(tutti_device_count(runtime), 2);
    ck_assert_int_ne(runtime->devices[0].index, runtime->devices[1].index);
    expect_ok(tutti_device_check(runtime, 0));
    expect_ok(tutti_device_check(runtime, 1));
    tutti_close(runtime);
}
END_TEST

START_TEST(sub_devices_are_devices)
{
    setenv("POCL_MAX_PTHREAD_COUNT", "2", 1); /* two compute units on any machine */
    setenv("TUTTI_SUB_DEVICES", "2", 1);
    tutti_runtime *runtime = open_runtime(&(tutti_runtime_options) { .devices = "portable" });
    ck_assert_int_eq(tutti_device_count(runtime), 2);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(runtime->devices[i].can.units, 1);
        expect_ok(tutti_device_check(runtime, i));
    }
    tutti_close(runtime);
}
END_TEST

static void expect_refused(const char *variable, const char *value, tutti_status wanted)
{
    struct found_device *found = NULL;
    struct log log;
    int count = 0;
    log_init(&log, TUTTI_LOG_DEFAULT, NULL, NULL);
    setenv(variable, value, 1);
    expect_failure(discover(&log, &found, &count), wanted, variable);
    ck_assert_ptr_null(found);
    unsetenv(variable);
}

START_TEST(wrong_settings_are_named)
{
    expect_refused("TUTTI_SUB_DEVICES", "two", TUTTI_INVALID);
    expect_refused("TUTTI_SUB_DEVICES", "-1", TUTTI_INVALID);
    expect_refused("TUTTI_SUB_DEVICES", "1000", TUTTI_NO_DEVICE);
    expect_refused("TUTTI_DEVICE_CLASS", "tpu", TUTTI_INVALID);
    expect_refused("TUTTI_VECTOR_WIDTH", "12", TUTTI_INVALID);
    expect_refused("TUTTI_VECTOR_WIDTH", "16x", TUTTI_INVALID);
}
END_TEST

/* Checks the options for the width and the class; wanted NULL: there are none for either. */
static void expect_options(const struct device *device, const char *source, const char *wanted)
{
    char *options = program_options(device, &(struct program_request) { source, "-DH=3" });
    ck_assert_ptr_nonnull(options);
    ck_assert_msg(strstr(options, wanted ? wanted : " -DH=3") != NULL, "%s: %s", source, options);
    ck_assert_msg(!strstr(options, "-DV=") == !(wanted && strstr(wanted, "-DV=")), "%s: %s", source, options);
    ck_assert_msg(!strstr(options, "TUTTI_GPU") == !(wanted && strstr(wanted, "TUTTI_GPU")), "%s: %s", source, options);
    free(options);
}

START_TEST(class_and_width_can_be_forced)
{
    setenv("TUTTI_DEVICE_CLASS", "gpu", 1);
    setenv("TUTTI_VECTOR_WIDTH", "8", 1);
    tutti_runtime *runtime = open_runtime(&(tutti_runtime_options) { .devices = "gpu" });
    ck_assert_int_eq(runtime->devices[0].can.class, DEVICE_GPU);
    ck_assert_int_eq(runtime->devices[0].can.vector_width, 8);
    expect_ok(tutti_device_check(runtime, 0));
    expect_options(&runtime->devices[0], "generated", "-DV=8 -DTUTTI_GPU=1");
    expect_options(&runtime->devices[0], "pool_cpu", "-DV=8");
    expect_options(&runtime->devices[0], "conv2d_pack_gpu", NULL);
    tutti_close(runtime);
    setenv("TUTTI_DEVICE_CLASS", "CPU", 1);
    runtime = open_runtime(&(tutti_runtime_options) { .devices = "cpu" });
    ck_assert_int_eq(runtime->devices[0].can.class, DEVICE_CPU);
    tutti_close(runtime);
}
END_TEST

static void expect_loops(const struct device *device, bool wanted)
{
    char *options = program_options(device, &(struct program_request) { "gemm_tiled", NULL });
    ck_assert_ptr_nonnull(options);
    ck_assert_msg(!strstr(options, " -DUNROLL_GPU= ") == !wanted, "%s", options);
    free(options);
}

START_TEST(tiles_stay_loops_on_a_cpu_as_gpu)
{
    setenv("TUTTI_DEVICE_CLASS", "gpu", 1);
    tutti_runtime *runtime = open_runtime(NULL);
    struct device *device = &runtime->devices[0];
    expect_loops(device, true);
    device->host_cpu = false; /* a GPU of the same driver */
    expect_loops(device, false);
    device->host_cpu = true;
    device->quirks &= ~(unsigned)QUIRK_UNROLLS_LONG;
    expect_loops(device, false);
    tutti_close(runtime);
}
END_TEST

START_TEST(no_platform_is_explained)
{
    tutti_device_info *list = NULL;
    int count = 1;
    setenv("OCL_ICD_VENDORS", folder(), 1);
    ck_assert_ptr_null(tutti_open(NULL));
    expect_failure(TUTTI_NO_PLATFORM, TUTTI_NO_PLATFORM, "pocl-opencl-icd");
    expect_ok(tutti_devices_list(NULL, &list, &count));
    ck_assert_int_eq(count, 0);
    ck_assert_ptr_null(list);
}
END_TEST

START_TEST(wrong_options_are_refused)
{
    ck_assert_ptr_null(tutti_open(&(tutti_runtime_options) { .devices = "tpu" }));
    expect_failure(TUTTI_NO_DEVICE, TUTTI_NO_DEVICE, "'tpu'");
    ck_assert_ptr_null(tutti_open(&(tutti_runtime_options) { .threads = -1 }));
    expect_failure(TUTTI_INVALID, TUTTI_INVALID, "-1 threads");
    ck_assert_ptr_null(tutti_open(&(tutti_runtime_options) { .log_level = 9 }));
    expect_failure(TUTTI_INVALID, TUTTI_INVALID, "log level 9");
}
END_TEST

START_TEST(several_runtimes_live_together)
{
    tutti_runtime *first = open_runtime(NULL), *second = open_runtime(NULL);
    expect_ok(tutti_device_check(first, 0));
    expect_ok(tutti_device_check(second, 0));
    tutti_close(first);
    expect_ok(tutti_device_check(second, 0));
    tutti_close(second);
}
END_TEST

START_TEST(statuses_have_names_and_sentences)
{
    ck_assert_str_eq(tutti_version(), "0.2.0");
    ck_assert_str_eq(tutti_status_name(TUTTI_DEVICE_LOST), "TUTTI_DEVICE_LOST");
    ck_assert_str_eq(tutti_status_text(TUTTI_OK), "success");
    for (int i = 0; i <= TUTTI_INTERNAL; i++) ck_assert_str_ne(tutti_status_name((tutti_status)i), "TUTTI_UNKNOWN");
    ck_assert_str_eq(tutti_status_name((tutti_status)999), "TUTTI_UNKNOWN");
    ck_assert_ptr_nonnull(tutti_status_text((tutti_status)-1));
}
END_TEST

Suite *discover_suite(void)
{
    Suite *suite = suite_create("discover");
    TCase *tests = tcase_create("discover");
    tcase_add_checked_fixture(tests, folder_begin, folder_end);
    tcase_add_loop_test(tests, choices_name_devices, 0, sizeof(choices) / sizeof(choices[0]));
    tcase_add_test(tests, without_gpu_the_cpu_is_the_default);
    tcase_add_test(tests, finds_a_device_with_sane_capabilities);
    tcase_add_test(tests, opens_and_lists);
    tcase_add_test(tests, two_devices_of_a_platform_are_two);
    tcase_add_test(tests, sub_devices_are_devices);
    tcase_add_test(tests, wrong_settings_are_named);
    tcase_add_test(tests, class_and_width_can_be_forced);
    tcase_add_test(tests, tiles_stay_loops_on_a_cpu_as_gpu);
    tcase_add_test(tests, no_platform_is_explained);
    tcase_add_test(tests, wrong_options_are_refused);
    tcase_add_test(tests, several_runtimes_live_together);
    tcase_add_test(tests, statuses_have_names_and_sentences);
    suite_add_tcase(suite, tests);
    return suite;
}
