#include "runtime_tests.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/status.h"
#include "runtime/check.h"
#include "runtime/program.h"
#include "runtime/source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

START_TEST(texts_are_embedded)
{
    const char *text = source_find("check")->text;
    ck_assert_ptr_nonnull(text);
    ck_assert_ptr_nonnull(strstr(text, "check_copy"));
    ck_assert_ptr_null(strstr(text, "#include"));
    ck_assert_ptr_null(source_find("none"));
}
END_TEST

static void count_built(void *user, int built, int total)
{
    int *calls = user;
    (*calls)++;
    ck_assert_int_eq(built, *calls);
    ck_assert_int_eq(total, 3);
}

START_TEST(equal_programs_are_built_once)
{
    struct device *device = device_begin();
    static const struct program_request requests[] = { { "check", "-DA=1" }, { "check", "-DA=2" }, { "check", "-DA=1" },
        { "check", NULL }, { "check", "" } };
    cl_kernel kernel;
    int calls = 0;
    expect_ok(program_build_all(device, requests, 5, count_built, &calls));
    ck_assert_int_eq(calls, 3);
    expect_ok(program_build_all(device, requests, 5, count_built, &calls));
    ck_assert_int_eq(calls, 3);
    expect_ok(program_kernel(device, &requests[1], "check_copy", &kernel));
    clReleaseKernel(kernel);
    device_end(device);
}
END_TEST

START_TEST(failed_builds_say_what_and_where)
{
    struct device *device = device_begin();
    const struct program_request good = { "check", "-DA=1" }, bad = { "check", "-Dfloat=nonsense" };
    cl_kernel kernel = NULL;
    expect_failure(program_build_all(device, &bad, 1, NULL, NULL), TUTTI_BUILD, "'check'");
    ck_assert_ptr_nonnull(strstr(status_message(), device->can.name));
    ck_assert_ptr_nonnull(strstr(status_message(), "nonsense"));
    ck_assert_ptr_nonnull(strstr(status_message(), "error:"));
    const struct program_request both[] = { good, bad };
    expect_failure(program_build_all(device, both, 2, NULL, NULL), TUTTI_BUILD, "nonsense"); /* of whichever thread */
    expect_failure(program_kernel(device, &good, "none", &kernel), TUTTI_INTERNAL, "'none'");
    const struct program_request missing = { "none", "" };
    expect_failure(program_kernel(device, &missing, "x", &kernel), TUTTI_INTERNAL, "'none'");
    device_end(device);
}
END_TEST

/* ---- the cache on disk, which POCL is made to use here ---- */

static struct device *cached_device_begin(void)
{
    struct device *device = device_begin();
    device->quirks &= ~(unsigned)QUIRK_KEEPS_CACHE;
    return device;
}

/* Builds, runs and keeps; whether the program came from the cache. */
static bool use(void)
{
    struct device *device = cached_device_begin();
    expect_ok(check_device(device)); /* wrong numbers would fail here */
    bool loaded = logged("loaded 'check'");
    programs_save(device);
    device_end(device);
    return loaded;
}

START_TEST(programs_are_kept_on_disk)
{
    ck_assert(!use());
    ck_assert_int_eq(files_ending(".program"), 1);
    ck_assert(use());
    ck_assert_int_eq(files_ending(".program"), 1);
    ck_assert_int_eq(files_ending(".tmp"), 0);
}
END_TEST

static void overwrite(const char *path, const void *data, size_t size)
{
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(data, 1, size, file), size);
    ck_assert_int_eq(fclose(file), 0);
}

START_TEST(broken_cache_files_cost_only_time)
{
    ck_assert(!use());
    char *path = file_ending(".program");
    unsigned char *data = NULL;
    size_t size = 0;
    ck_assert_int_eq(file_read(path, (size_t)1 << 30, &data, &size), TUTTI_OK);
    const size_t places[] = { 0, 8, 16, 24, 40, 80, size / 2, size - 1 };
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        data[places[i]] ^= 0x40;
        overwrite(path, data, size);
        ck_assert_msg(!use(), "a changed byte at %zu was not noticed", places[i]);
        data[places[i]] ^= 0x40;
    }
    const size_t lengths[] = { 0, 1, 60, size / 2, size - 1 };
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        overwrite(path, data, lengths[i]);
        ck_assert_msg(!use(), "a file cut to %zu bytes was not noticed", lengths[i]);
    }
    ck_assert(use()); /* each was mended */
    free(data);
    free(path);
}
END_TEST

START_TEST(a_file_of_another_program_is_not_taken)
{
    struct device *device = cached_device_begin();
    const struct program_request other = { "check", "-DOTHER=1" };
    expect_ok(program_build_all(device, &other, 1, NULL, NULL));
    programs_save(device);
    device_end(device);
    char *path = file_ending(".program"), *kept = memory_format("%s/kept", folder());
    ck_assert_int_eq(rename(path, kept), 0);
    free(path);
    ck_assert(!use());
    path = file_ending(".program");
    ck_assert_int_eq(rename(kept, path), 0);
    ck_assert(!use());
    free(path);
    free(kept);
}
END_TEST

START_TEST(an_unwritable_cache_costs_only_time)
{
    char *file = memory_format("%s/file", folder()), *inside = memory_format("%s/file/cache", folder());
    overwrite(file, "x", 1);
    for (int i = 0; i < 2; i++) {
        tutti_runtime *runtime =
            open_runtime(&(tutti_runtime_options) { .cache_folder = i == 0 ? inside : "/proc/tutti" });
        runtime->devices[0].quirks &= ~(unsigned)QUIRK_KEEPS_CACHE;
        expect_ok(check_device(&runtime->devices[0]));
        programs_save(&runtime->devices[0]);
        tutti_close(runtime);
    }
    free(file);
    free(inside);
}
END_TEST

START_TEST(without_a_folder_nothing_is_kept)
{
    setenv("HOME", folder(), 1);
    tutti_runtime *runtime = open_runtime(&(tutti_runtime_options) { .cache_folder = "" });
    ck_assert_ptr_null(runtime->cache_folder);
    runtime->devices[0].quirks &= ~(unsigned)QUIRK_KEEPS_CACHE;
    expect_ok(check_device(&runtime->devices[0]));
    programs_save(&runtime->devices[0]);
    tutti_close(runtime);
    ck_assert_int_eq(files_ending(".program"), 0);
    unsetenv("TUTTI_CACHE_DIR");
    unsetenv("XDG_CACHE_HOME");
    runtime = tutti_open(NULL);
    ck_assert_ptr_nonnull(runtime);
    ck_assert_ptr_nonnull(strstr(runtime->cache_folder, "/.cache/tutti"));
    tutti_close(runtime);
    setenv("XDG_CACHE_HOME", "/x", 1);
    runtime = tutti_open(NULL);
    ck_assert_ptr_nonnull(runtime);
    ck_assert_str_eq(runtime->cache_folder, "/x/tutti");
    tutti_close(runtime);
}
END_TEST

Suite *program_suite(void)
{
    Suite *suite = suite_create("program");
    TCase *tests = tcase_create("program");
    tcase_add_checked_fixture(tests, folder_begin, folder_end);
    tcase_add_test(tests, texts_are_embedded);
    tcase_add_test(tests, equal_programs_are_built_once);
    tcase_add_test(tests, failed_builds_say_what_and_where);
    tcase_add_test(tests, programs_are_kept_on_disk);
    tcase_add_test(tests, broken_cache_files_cost_only_time);
    tcase_add_test(tests, a_file_of_another_program_is_not_taken);
    tcase_add_test(tests, an_unwritable_cache_costs_only_time);
    tcase_add_test(tests, without_a_folder_nothing_is_kept);
    suite_add_tcase(suite, tests);
    return suite;
}
