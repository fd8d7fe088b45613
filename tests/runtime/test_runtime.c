/* The runtime: devices, memory, programs, launches and checks, on POCL. */
#include "runtime_tests.h"

#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char path[64];
static struct text lines;

const char *folder(void)
{
    return path;
}

void folder_begin(void)
{
    strcpy(path, "/tmp/tutti-runtime-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(path));
}

void folder_end(void)
{
    char command[128];
    snprintf(command, sizeof(command), "rm -rf '%s'", path);
    ck_assert_int_eq(system(command), 0);
    text_free(&lines);
}

static bool ends(const char *name, const char *ending)
{
    size_t length = strlen(name), wanted = strlen(ending);
    return length >= wanted && !strcmp(name + length - wanted, ending);
}

int files_ending(const char *ending)
{
    int count = 0;
    DIR *directory = opendir(path);
    ck_assert_ptr_nonnull(directory);
    for (struct dirent *entry; (entry = readdir(directory));) count += ends(entry->d_name, ending);
    closedir(directory);
    return count;
}

char *file_ending(const char *ending)
{
    char *found = NULL;
    DIR *directory = opendir(path);
    ck_assert_ptr_nonnull(directory);
    for (struct dirent *entry; !found && (entry = readdir(directory));)
        if (ends(entry->d_name, ending)) found = memory_format("%s/%s", path, entry->d_name);
    closedir(directory);
    ck_assert_msg(found != NULL, "no file ends with %s", ending);
    return found;
}

static void keep_line(void *user, tutti_log_level level, const char *line)
{
    (void)user;
    (void)level;
    text_append(&lines, "%s\n", line);
}

bool logged(const char *part)
{
    return lines.data && strstr(lines.data, part);
}

tutti_runtime *open_runtime(const tutti_runtime_options *options)
{
    tutti_runtime_options all = options ? *options : (tutti_runtime_options) { 0 };
    if (!all.cache_folder) all.cache_folder = path;
    all.log = keep_line;
    all.log_level = TUTTI_LOG_DEBUG;
    text_free(&lines);
    tutti_runtime *runtime = tutti_open(&all);
    ck_assert_msg(runtime != NULL, "%s", tutti_message(NULL));
    return runtime;
}

struct device *device_begin(void)
{
    return &open_runtime(NULL)->devices[0];
}

void device_end(struct device *device)
{
    tutti_close(device->runtime);
}

void expect_ok(tutti_status status)
{
    ck_assert_msg(status == TUTTI_OK, "%s: %s", tutti_status_name(status), status_message());
}

void expect_failure(tutti_status found, tutti_status wanted, const char *part)
{
    const char *message = status_message();
    ck_assert_msg(
        found == wanted, "%s where %s is right: %s", tutti_status_name(found), tutti_status_name(wanted), message);
    ck_assert_msg(!strchr(message, '\n'), "more than one line: %s", message);
    ck_assert_msg(strstr(message, part) != NULL, "'%s' is not in '%s'", part, message);
}

/* What takes its verdicts from the clock, or all else: the argument is `timed` or missing. */
static SRunner *runner_new(bool timed)
{
    static Suite *(*const timed_suites[])(void) = { builder_suite, memory_suite, program_suite, store_suite };
    static Suite *(*const other_suites[])(void) = { discover_suite, launch_suite, check_suite, drivers_suite };
    SRunner *runner = srunner_create(NULL);
    for (int i = 0; i < 4; i++) srunner_add_suite(runner, (timed ? timed_suites : other_suites)[i]());
    return runner;
}

int main(int argc, char **argv)
{
    static const char *const variables[] = { "TUTTI_LOG", "TUTTI_DEVICES", "TUTTI_DEVICE_CLASS", "TUTTI_VECTOR_WIDTH",
        "TUTTI_SUB_DEVICES", "POCL_DEVICES" };
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) unsetenv(variables[i]);
    setenv("TUTTI_BF16_DOTS", "off", 1); /* what is counted is compiled on each processor */
    SRunner *runner = runner_new(argc > 1 && !strcmp(argv[1], "timed"));
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
