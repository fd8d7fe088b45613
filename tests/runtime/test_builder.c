/* Helper processes that compile ahead: what they do, and that nothing depends on them. */
#include "runtime_tests.h"

#include "base/memory.h"
#include "base/status.h"
#include "runtime/builder.h"
#include "runtime/memory.h"
#include "runtime/processor.h"
#include "runtime/program.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PROGRAMS = 6, ITEMS = 64 };

/* Programs that no other test builds, with one kernel each. */
static void make_launches(struct device *device, struct launch_list *list, cl_mem in, cl_mem out)
{
    launch_list_init(list, device);
    for (int i = 0; i < PROGRAMS; i++) {
        struct launch *launch = launch_add(list, "check", "check_copy", "-DBUILDER=%d", i);
        launch_buffer(launch, in);
        launch_buffer(launch, out);
        launch_grid(launch, 1, ITEMS, 1, 1, ITEMS, 1, 1);
    }
}

/* The driver compiles what helpers did not; each kernel does its work. */
static void run_launches(struct device *device)
{
    cl_mem in = NULL, out = NULL;
    struct launch_list list;
    float sent[ITEMS], got[ITEMS];
    for (int i = 0; i < ITEMS; i++) sent[i] = (float)i;
    expect_ok(buffer_new(device, sizeof(sent), &in));
    expect_ok(buffer_new(device, sizeof(sent), &out));
    make_launches(device, &list, in, out);
    expect_ok(buffer_write(device, in, 0, sent, sizeof(sent)));
    expect_ok(launch_list_realise(&list, NULL, NULL));
    expect_ok(launch_list_warm_up(&list));
    expect_ok(launch_list_enqueue(&list, 0, list.count, NULL)); /* kernels that are known were not warmed up */
    expect_ok(buffer_read(device, out, 0, got, sizeof(got)));
    ck_assert_mem_eq(sent, got, sizeof(sent));
    launch_list_free(&list);
    buffer_free(&in);
    buffer_free(&out);
}

static int descriptors(void)
{
    int count = 0;
    DIR *all = opendir("/proc/self/fd");
    ck_assert_ptr_nonnull(all);
    while (readdir(all)) count++;
    closedir(all);
    return count;
}

static int progress_calls;

static void on_progress(void *user, int built, int total)
{
    (void)user;
    ck_assert_int_eq(built, ++progress_calls);
    ck_assert_int_eq(total, PROGRAMS);
}

/* Neither alive nor dead. */
static void expect_no_child(void)
{
    errno = 0;
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
    ck_assert_int_eq(errno, ECHILD);
}

/* With stand-ins for buffers, as plans do; nothing may be left of the helpers afterwards. */
static void prepare(struct device *device)
{
    struct launch_list list;
    const int before = descriptors();
    progress_calls = 0;
    make_launches(device, &list, (cl_mem)(uintptr_t)1, (cl_mem)(uintptr_t)2);
    builder_prepare(&list, on_progress, NULL);
    launch_list_free(&list);
    ck_assert_int_eq(descriptors(), before);
    expect_no_child();
}

/* A shell script in the test's folder as the helper. */
static void use_script(const char *text)
{
    char *path = memory_format("%s/helper", folder());
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fprintf(file, "#!/bin/sh\n%s\n", text);
    fclose(file);
    ck_assert_int_eq(chmod(path, 0700), 0);
    ck_assert_int_eq(setenv("TUTTI_HELPER", path, 1), 0);
    free(path);
}

static struct device *begin(int threads)
{
    tutti_runtime *runtime = open_runtime(&(tutti_runtime_options) { .threads = threads });
    builder_keep(runtime, false);
    return &runtime->devices[0];
}

START_TEST(helpers_compile_ahead)
{
    struct device *device = begin(3);
    struct launch_list list;
    prepare(device);
    ck_assert_int_eq(progress_calls, PROGRAMS);
    ck_assert(logged("6 of 6 programs were compiled ahead by 3 helper processes"));
    run_launches(device);
    make_launches(device, &list, NULL, NULL);
    ck_assert(builder_knows(&list));
    list.launches[0].local[0] = ITEMS / 2;
    ck_assert(!builder_knows(&list));
    launch_list_free(&list);
    prepare(device);
    ck_assert_int_eq(progress_calls, 0);
    device_end(device);
    ck_assert_int_eq(files_ending(".compiled"), 1);
}
END_TEST

/* The processes that this thread has started. */
static void read_children(char text[200])
{
    FILE *file = fopen("/proc/thread-self/children", "r");
    ck_assert_ptr_nonnull(file);
    text[fread(text, 1, 199, file)] = '\0';
    fclose(file);
}

static void prepare_one(struct device *device, int program)
{
    struct launch_list list;
    make_launches(device, &list, (cl_mem)(uintptr_t)1, (cl_mem)(uintptr_t)2);
    const size_t all = list.count;
    list.launches += program;
    list.count = 1;
    builder_prepare(&list, NULL, NULL);
    list.launches -= program;
    list.count = all;
    launch_list_free(&list);
}

/* A helper that is kept builds what the next call wants; one that died meanwhile is replaced. */
START_TEST(kept_helpers_serve_again)
{
    struct device *device = begin(1);
    char first[200], second[200];
    builder_keep(device->runtime, true);
    prepare_one(device, 0);
    read_children(first);
    ck_assert_int_gt(atoi(first), 0);
    prepare_one(device, 1);
    read_children(second);
    ck_assert_str_eq(first, second);
    ck_assert_int_eq(kill(atoi(first), SIGKILL), 0);
    ck_assert_int_eq(waitid(P_PID, (id_t)atoi(first), &(siginfo_t) { 0 }, WEXITED | WNOWAIT), 0);
    prepare_one(device, 2);
    read_children(second);
    ck_assert_str_ne(first, second);
    ck_assert_int_gt(atoi(second), 0);
    builder_keep(device->runtime, false);
    expect_no_child();
    struct launch_list list;
    make_launches(device, &list, NULL, NULL);
    list.count = 3;
    ck_assert(builder_knows(&list));
    list.count = PROGRAMS;
    launch_list_free(&list);
    device_end(device);
}
END_TEST

/* One helper serves all that tutti_open() and tutti_compile() build, and ends with the latter. */
START_TEST(compiling_leaves_no_helper)
{
    tutti_runtime *runtime = open_runtime(&(tutti_runtime_options) { .threads = 1 });
    char opened[200];
    prepare_one(&runtime->devices[0], 0);
    read_children(opened);
    ck_assert_int_gt(atoi(opened), 0);
    tutti_network *network = tutti_network_new(runtime);
    const tutti_tensor y = tutti_dense(network, tutti_input(network, "x", TUTTI_SHAPE(3)), 5, NULL);
    tutti_trainer *trainer = tutti_compile(network, y, &(tutti_training) { .loss = TUTTI_MSE });
    ck_assert_msg(trainer, "%s", tutti_message(NULL));
    expect_no_child();
    ck_assert(logged("compiled ahead by 1 helper processes"));
    tutti_trainer_free(trainer);
    tutti_network_free(network);
    tutti_close(runtime);
}
END_TEST

/* The system permits them to a process that asks, and exec() takes that back. Without AMX, nothing is tested. */
START_TEST(helpers_run_kernels_with_tiles)
{
    if (processor_tiles_refusal()) return;
    ck_assert_int_eq(unsetenv("TUTTI_BF16_DOTS"), 0);
    struct device *device = begin(2);
    const struct bf16_ability *ability = &device->can.bf16[COMPUTE_BF16];
    ck_assert_msg(ability->form == BF16_TILES, "%s", ability->refusal ? ability->refusal : "not by tiles");
    device_end(device);
}
END_TEST

START_TEST(known_kernels_are_known_to_the_next_process)
{
    struct device *device = begin(2);
    struct launch_list list;
    run_launches(device);
    device_end(device);
    device = begin(2);
    make_launches(device, &list, NULL, NULL);
    ck_assert(builder_knows(&list));
    launch_list_free(&list);
    device_end(device);
}
END_TEST

/* A thread of the device loads them, whether or not anybody asks for them, and stops when the device ends. */
START_TEST(known_programs_are_loaded_ahead)
{
    const struct program_request last = { "check", "-DBUILDER=5" };
    struct device *device = begin(2);
    struct launch_list list;
    make_launches(device, &list, NULL, NULL);
    builder_load(&list); /* nothing is known yet */
    poll(NULL, 0, 50);
    ck_assert(program_seconds(device, &last) == 0);
    launch_list_free(&list);
    run_launches(device);
    device_end(device);
    for (int wait = 0; wait < 3; wait++) {
        device = begin(2);
        make_launches(device, &list, NULL, NULL);
        builder_load(&list);
        launch_list_free(&list);
        for (int tries = 0; wait == 1 && tries < 6000 && program_seconds(device, &last) == 0; tries++)
            poll(NULL, 0, 10);
        if (wait == 1) ck_assert(program_seconds(device, &last) > 0);
        if (wait > 0) run_launches(device);
        device_end(device);
    }
}
END_TEST

/* A kernel that damages a helper's memory, and a program that does not build, harm only the helper. The first one is
 * not built in this process. */
START_TEST(bad_programs_hurt_nobody)
{
    struct device *device = begin(2);
    struct launch_list list;
    launch_list_init(&list, device);
    for (int i = 0; i < PROGRAMS; i++) {
        struct launch *launch =
            launch_add(&list, "check", i == 1 ? "none" : "check_copy", i == 0 ? "-Dfloat=nonsense" : "-DBAD=%d", i);
        if (i != 2) launch_buffer(launch, (cl_mem)(uintptr_t)1); /* NULL: the kernel crashes */
        if (i == 2) launch_buffer(launch, NULL);
        launch_buffer(launch, (cl_mem)(uintptr_t)1);
        launch_grid(launch, 1, ITEMS, 1, 1, ITEMS, 1, 1);
    }
    builder_prepare(&list, NULL, NULL);
    for (int i = 0; i < PROGRAMS; i++) ck_assert_int_eq(builder_refusal(device, &list.launches[i]) != NULL, i == 2);
    launch_list_free(&list);
    run_launches(device);
    device_end(device);
}
END_TEST

static const char *const strange_helpers[] = { "exit 0", "exit 3", "kill -9 $$", "printf r; exit 0", "printf xyz >&0",
    "printf rr >&0; sleep 1", "head -c 200 >/dev/null; exec <&-" };

START_TEST(strange_helpers_cost_time_only)
{
    use_script(strange_helpers[_i]);
    struct device *device = begin(2);
    prepare(device);
    run_launches(device);
    device_end(device);
}
END_TEST

START_TEST(no_helper_is_fine)
{
    static const char *const choices[] = { "off", "/nowhere/at/all", "/" };
    ck_assert_int_eq(setenv("TUTTI_HELPER", choices[_i], 1), 0);
    struct device *device = begin(2);
    prepare(device);
    ck_assert_int_eq(progress_calls, 0);
    run_launches(device);
    device_end(device);
}
END_TEST

static int ends[2]; /* of a pipe that children would inherit */

/* While helpers run, with our own end closed: the pipe is closed for good when none of them has it. */
static void expect_closed(void *user, int built, int total)
{
    struct pollfd wait = { .fd = ends[0], .events = POLLIN };
    (void)user;
    if (built < total) return;
    close(ends[1]);
    ck_assert_int_eq(poll(&wait, 1, 10000), 1);
    ck_assert(wait.revents & POLLHUP);
    progress_calls++;
}

START_TEST(open_files_are_not_inherited)
{
    struct device *device = begin(2);
    struct launch_list list;
    ck_assert_int_eq(pipe(ends), 0);
    make_launches(device, &list, (cl_mem)(uintptr_t)1, (cl_mem)(uintptr_t)2);
    builder_prepare(&list, expect_closed, NULL);
    ck_assert_int_eq(progress_calls, 1);
    launch_list_free(&list);
    close(ends[0]);
    device_end(device);
}
END_TEST

/* The embedding program may ignore its children's ends and block signals. */
START_TEST(signals_are_not_inherited)
{
    struct sigaction ignored = { .sa_handler = SIG_IGN }, before;
    sigset_t all, mask;
    /* The C library itself ignores two real-time signals. */
    use_script("test \"$(grep -cE 'Sig(Blk:.0000000000000000|Ign:.0000000[01][08]0000000)' /proc/self/status)\" = 2 && "
               "touch \"$0\".found");
    struct device *device = begin(2);
    sigfillset(&all);
    ck_assert_int_eq(sigaction(SIGCHLD, &ignored, &before), 0);
    ck_assert_int_eq(pthread_sigmask(SIG_SETMASK, &all, &mask), 0);
    prepare(device);
    ck_assert_int_eq(pthread_sigmask(SIG_SETMASK, &mask, NULL), 0);
    ck_assert_int_eq(sigaction(SIGCHLD, &before, NULL), 0);
    ck_assert_int_eq(files_ending(".found"), 1);
    device_end(device);
}
END_TEST

Suite *builder_suite(void)
{
    Suite *suite = suite_create("builder");
    TCase *tests = tcase_create("builder");
    tcase_add_checked_fixture(tests, folder_begin, folder_end);
    tcase_add_test(tests, helpers_compile_ahead);
    tcase_add_test(tests, kept_helpers_serve_again);
    tcase_add_test(tests, compiling_leaves_no_helper);
    tcase_add_test(tests, helpers_run_kernels_with_tiles);
    tcase_add_test(tests, known_kernels_are_known_to_the_next_process);
    tcase_add_test(tests, known_programs_are_loaded_ahead);
    tcase_add_test(tests, bad_programs_hurt_nobody);
    tcase_add_loop_test(
        tests, strange_helpers_cost_time_only, 0, (int)(sizeof(strange_helpers) / sizeof(strange_helpers[0])));
    tcase_add_loop_test(tests, no_helper_is_fine, 0, 3);
    tcase_add_test(tests, open_files_are_not_inherited);
    tcase_add_test(tests, signals_are_not_inherited);
    suite_add_tcase(suite, tests);
    return suite;
}
