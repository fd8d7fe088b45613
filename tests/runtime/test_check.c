#include "runtime_tests.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/status.h"
#include "runtime/check.h"
#include "runtime/tuning.h"
#include "runtime/verdicts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

START_TEST(devices_pass)
{
    struct device *device = device_begin();
    expect_ok(check_device(device));
    expect_ok(check_device(device));
    device_end(device);
}
END_TEST

START_TEST(verdicts_are_kept_on_disk)
{
    struct device *device = device_begin();
    ck_assert(!check_is_decided(device, "conv2d.direct"));
    ck_assert(!check_is_decided(device, "gemm.packed"));
    ck_assert(!check_is_decided(device, "never.answered"));
    check_passed(device, "conv2d.direct");
    blacklist_add(device, "gemm.packed", "element 3 is 4\nand should be 5");
    ck_assert_ptr_null(blacklist_reason(device, "conv2d.direct"));
    ck_assert_str_eq(blacklist_reason(device, "gemm.packed"), "element 3 is 4 and should be 5");
    blacklist_add(device, "gemm.packed", blacklist_reason(device, "gemm.packed")); /* its own text */
    device_end(device);
    ck_assert_int_eq(files_ending(".checks"), 1);

    device = device_begin();
    ck_assert_str_eq(blacklist_reason(device, "gemm.packed"), "element 3 is 4 and should be 5");
    ck_assert_ptr_null(blacklist_reason(device, "conv2d.direct"));
    ck_assert_ptr_null(blacklist_reason(device, "conv2d"));
    ck_assert(check_is_decided(device, "conv2d.direct"));
    ck_assert(check_is_decided(device, "gemm.packed"));
    ck_assert(!check_is_decided(device, "never.answered"));
    check_passed(device, "gemm.packed"); /* it works after all */
    ck_assert_ptr_null(blacklist_reason(device, "gemm.packed"));
    device_end(device);
}
END_TEST

START_TEST(measurements_are_kept_on_disk)
{
    struct device *device = device_begin();
    ck_assert(!tuning_is_measured(device, "conv2d/Nx2x3/n1"));
    tuning_keep(device, "conv2d/Nx2x3/n1", "direct 1.500 winograd 2.000");
    tuning_keep(device, "conv2d/Nx5x6/n4", "winograd 0.100");
    tuning_keep(device, "conv2d/Nx5x6/n4", "direct 0.090");
    device_end(device);
    ck_assert_int_eq(files_ending(".tuning"), 1);

    device = device_begin();
    ck_assert_str_eq(tuning_choice(device, TUNING_DEVICE, "conv2d/Nx2x3/n1"), "direct 1.500 winograd 2.000");
    ck_assert_str_eq(tuning_choice(device, TUNING_DEVICE, "conv2d/Nx5x6/n4"), "direct 0.090");
    ck_assert_ptr_null(tuning_choice(device, TUNING_USER, "conv2d/Nx5x6/n4"));
    ck_assert_ptr_null(tuning_choice(device, TUNING_DEVICE, "conv2d"));
    ck_assert(!tuning_is_measured(device, "conv2d/Nx5x6/n8")); /* but it is near enough to go by */
    ck_assert_str_eq(tuning_choice(device, TUNING_DEVICE, "conv2d/Nx5x6/n8"), "direct 0.090");
    ck_assert_ptr_null(tuning_choice(device, TUNING_DEVICE, "conv2d/Nx5x6/n9"));
    tuning_keep(device, "conv2d/Nx5x6/n6", "plain 1"); /* nearer to 8 than 4 is */
    ck_assert_str_eq(tuning_choice(device, TUNING_DEVICE, "conv2d/Nx5x6/n8"), "plain 1");
    device_end(device);
}
END_TEST

/* The user's table: sections of other devices, patterns, refusals, and lines that are none. */
START_TEST(tables_are_read)
{
    char path[256], table[1024];
    struct device *device = device_begin();
    const char *name = device->can.name, *architecture = device->can.architecture;
    ck_assert_str_ne(architecture, "");
    snprintf(table, sizeof(table),
        "conv2d/a/n1 nowhere\n# a comment\n[class cpu]\nconv2d/* of_class\nconv2d/b/n1 of_class_b\n\n[architecture "
        "%s]\r\nconv2d/b/n1 of_architecture 1 of_class_b 2\r\n[device %s]\n conv2d/c/n1   of_device 3\nconv2d/c/n1 "
        "!direct "
        "it hangs\nword\n[device x%s]\nconv2d/d/n1 of_another\n[\n[x\n[device]\nconv2d/e/n1 of_nobody",
        architecture, name, name);
    device_end(device);
    snprintf(path, sizeof(path), "%s/user.txt", folder());
    ck_assert_int_eq(file_write(path, table, strlen(table)), TUTTI_OK);
    setenv("TUTTI_TUNING", path, 1);
    device = device_begin();
    const char *const said[][2] = { { "conv2d/a/n1", "of_class" }, { "conv2d/b/n1", "of_architecture 1 of_class_b 2" },
        { "conv2d/c/n1", "of_device 3" }, { "conv2d/d/n1", "of_class" }, { "conv2d/e/n1", "of_class" } };
    for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++)
        ck_assert_str_eq(tuning_choice(device, TUNING_USER, said[i][0]), said[i][1]);
    ck_assert_ptr_null(tuning_choice(device, TUNING_USER, "dense/a/n1"));
    ck_assert_ptr_null(tuning_choice(device, TUNING_CLASS, "conv2d/a/n1")); /* it is the user's, whatever the section */
    ck_assert_str_eq(tuning_refusal(device, "conv2d/c/n2", "direct"), "it hangs");
    ck_assert_ptr_null(tuning_refusal(device, "conv2d/c/n2", "dir"));
    ck_assert_ptr_null(tuning_refusal(device, "conv2d/b/n1", "direct"));
    device_end(device);
    setenv("TUTTI_TUNING", "off", 1);
    device = device_begin();
    ck_assert_ptr_null(tuning_choice(device, TUNING_USER, "conv2d/a/n1"));
    device_end(device);
    setenv("TUTTI_TUNING", "/dev/null", 1); /* as before */
}
END_TEST

START_TEST(verdicts_hold_for_one_class)
{
    struct device *device = device_begin();
    blacklist_add(device, "plain", "wrong");
    device_end(device);
    setenv("TUTTI_DEVICE_CLASS", "gpu", 1);
    device = device_begin();
    ck_assert_ptr_null(blacklist_reason(device, "plain"));
    device_end(device);
}
END_TEST

START_TEST(broken_files_are_read_as_far_as_they_go)
{
    struct device *device = device_begin();
    check_passed(device, "one");
    device_end(device);
    char *path = file_ending(".checks");
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    static const char content[] = "nonsense\n\n\n   \n one\nfailed\ntwo failed it is wrong\nthree passed\nfour "
                                  "trying\nfive trying 1 x\nsix fail\n\xff\xfe\0\x01 rest";
    ck_assert_uint_eq(fwrite(content, 1, sizeof(content), file), sizeof(content));
    ck_assert_int_eq(fclose(file), 0);
    device = device_begin();
    ck_assert(!check_is_decided(device, "one"));
    ck_assert_ptr_nonnull(blacklist_reason(device, "two"));
    ck_assert(check_is_decided(device, "three"));
    ck_assert(!check_is_decided(device, "four"));
    ck_assert_ptr_nonnull(blacklist_reason(device, "five"));
    ck_assert(!check_is_decided(device, "six"));
    check_passed(device, "seven");
    device_end(device);
    device = device_begin();
    ck_assert(check_is_decided(device, "three") && check_is_decided(device, "seven"));
    device_end(device);
    free(path);
}
END_TEST

START_TEST(verdicts_hold_without_a_disk)
{
    static const char *const folders[] = { "", "/proc/tutti" };
    for (int i = 0; i < 2; i++) {
        tutti_runtime *runtime = open_runtime(&(tutti_runtime_options) { .cache_folder = folders[i] });
        struct device *device = &runtime->devices[0];
        ck_assert(!check_is_decided(device, "one"));
        blacklist_add(device, "one", "wrong");
        check_passed(device, "two");
        ck_assert_str_eq(blacklist_reason(device, "one"), "wrong");
        ck_assert(check_is_decided(device, "two"));
        tutti_close(runtime);
    }
}
END_TEST

Suite *check_suite(void)
{
    Suite *suite = suite_create("check");
    TCase *tests = tcase_create("check");
    tcase_add_checked_fixture(tests, folder_begin, folder_end);
    tcase_add_test(tests, devices_pass);
    tcase_add_test(tests, verdicts_are_kept_on_disk);
    tcase_add_test(tests, measurements_are_kept_on_disk);
    tcase_add_test(tests, tables_are_read);
    tcase_add_test(tests, verdicts_hold_for_one_class);
    tcase_add_test(tests, broken_files_are_read_as_far_as_they_go);
    tcase_add_test(tests, verdicts_hold_without_a_disk);
    suite_add_tcase(suite, tests);
    return suite;
}
