#include "runtime_tests.h"

#include "base/memory.h"
#include "base/process.h"
#include "base/status.h"
#include "runtime/program.h"
#include "runtime/store.h"
#include "runtime/tuning.h"
#include "runtime/verdicts.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PROCESSES = 2, THREADS = 2, ENTRIES = 25 };

struct writer {
    struct device device; /* an equal one: it asks the disk by itself */
    int process, thread;
};

static void name_entry(char name[32], int process, int thread, int number)
{
    snprintf(name, 32, "entry/%d/%d/%d", process, thread, number);
}

static void *write_entries(void *argument)
{
    struct writer *writer = argument;
    char name[32];
    for (int i = 0; i < ENTRIES; i++) {
        name_entry(name, writer->process, writer->thread, i);
        check_passed(&writer->device, name);
        tuning_keep(&writer->device, name, "direct 1.0");
    }
    return NULL;
}

static void write_in_threads(int process)
{
    struct device *device = device_begin();
    struct writer writers[THREADS];
    pthread_t threads[THREADS];
    for (int t = 0; t < THREADS; t++) {
        writers[t] = (struct writer) { *device, process, t };
        ck_assert_int_eq(pthread_create(&threads[t], NULL, write_entries, &writers[t]), 0);
    }
    for (int t = 0; t < THREADS; t++) {
        ck_assert_int_eq(pthread_join(threads[t], NULL), 0);
        stores_free(&writers[t].device);
        tuning_free(&writers[t].device);
    }
    device_end(device);
}

START_TEST(entries_written_at_one_time_are_all_kept)
{
    pid_t children[PROCESSES];
    char name[32];
    for (int p = 0; p < PROCESSES; p++) {
        children[p] = fork();
        ck_assert_int_ge(children[p], 0);
        if (children[p]) continue;
        write_in_threads(p);
        _exit(0);
    }
    for (int p = 0; p < PROCESSES; p++) {
        int state = 1;
        ck_assert_int_eq(waitpid(children[p], &state, 0), children[p]);
        ck_assert_int_eq(state, 0);
    }
    struct device *device = device_begin();
    for (int i = 0; i < PROCESSES * THREADS * ENTRIES; i++) {
        name_entry(name, i / ENTRIES / THREADS, i / ENTRIES % THREADS, i % ENTRIES);
        ck_assert_msg(check_is_decided(device, name), "the verdict of %s is lost", name);
        ck_assert_msg(tuning_is_measured(device, name), "the times of %s are lost", name);
    }
    device_end(device);
}
END_TEST

/* In a time that grows with their number, not with its square: 40,000 keys would take minutes. */
START_TEST(many_entries_are_found_fast)
{
    enum { MANY = 40000 };
    char name[32];
    for (int round = 0; round < 2; round++) {
        struct device *device = device_begin();
        struct timespec begin, end;
        clock_gettime(CLOCK_MONOTONIC, &begin);
        for (int i = 0; i < MANY; i++) {
            name_entry(name, i % 7, 0, i);
            if (round == 0) store_set(device, STORE_COMPILED, name, "");
            ck_assert_ptr_nonnull(store_get(device, STORE_COMPILED, name));
        }
        ck_assert_ptr_null(store_get(device, STORE_COMPILED, "entry/9/9/9"));
        store_save(device, STORE_COMPILED);
        clock_gettime(CLOCK_MONOTONIC, &end);
        ck_assert_int_lt(end.tv_sec - begin.tv_sec, 20);
        device_end(device);
    }
}
END_TEST

/* Two equal devices of one runtime: an entry that one of them removes is gone; of an entry that both changed, the
 * later change holds. */
START_TEST(later_changes_win)
{
    struct device *device = device_begin(), twin = *device;
    memset(twin.stores, 0, sizeof(twin.stores));
    store_set(device, STORE_CHECKS, "a", "1");
    store_set(device, STORE_CHECKS, "b", "1");
    store_save(device, STORE_CHECKS);
    const char *before = store_get(&twin, STORE_CHECKS, "a");
    store_set(&twin, STORE_CHECKS, "a", "2\nand more");
    store_set(&twin, STORE_CHECKS, "b", NULL);
    ck_assert_str_eq(before, "1"); /* still there */
    store_save(&twin, STORE_CHECKS);
    ck_assert_str_eq(store_get(device, STORE_CHECKS, "a"), "1");
    store_set(device, STORE_CHECKS, "c", "");
    store_save(device, STORE_CHECKS);
    ck_assert_str_eq(store_get(device, STORE_CHECKS, "a"), "2 and more");
    ck_assert_ptr_null(store_get(device, STORE_CHECKS, "b"));
    store_reload(&twin, STORE_CHECKS);
    ck_assert_str_eq(store_get(&twin, STORE_CHECKS, "c"), "");
    store_clear(&twin, STORE_CHECKS);
    ck_assert_ptr_null(store_get(&twin, STORE_CHECKS, "c"));
    stores_free(&twin);
    device_end(device);
    device = device_begin();
    ck_assert_ptr_null(store_get(device, STORE_CHECKS, "a"));
    device_end(device);
}
END_TEST

/* A trial in another process says nothing until that process has ended. */
START_TEST(trials_count_when_their_process_has_ended)
{
    int ready[2];
    char byte = 0;
    ck_assert_int_eq(pipe(ready), 0);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        check_trial_begins(device_begin(), "matrix/trial");
        if (write(ready[1], "r", 1) == 1) pause();
        _exit(1);
    }
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    struct device *device = device_begin();
    const bool decided = check_is_decided(device, "matrix/trial");
    const char *reason = blacklist_reason(device, "matrix/trial");
    check_passed(device, "another");
    ck_assert_int_eq(kill(child, SIGKILL), 0);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    ck_assert(!decided && !reason);
    ck_assert_str_eq(blacklist_reason(device, "matrix/trial"), "its check was started and did not end");
    device_end(device);
    device = device_begin();
    ck_assert(check_is_decided(device, "matrix/trial"));
    device_end(device);
}
END_TEST

/* The parent waits for it only after the next process has asked. */
START_TEST(trials_count_although_nobody_has_waited_for_their_process)
{
    siginfo_t info;
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        check_trial_begins(device_begin(), "matrix/trial");
        _exit(1);
    }
    ck_assert_int_eq(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
    struct device *device = device_begin();
    const char *reason = blacklist_reason(device, "matrix/trial");
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    ck_assert_ptr_nonnull(reason);
    ck_assert_str_eq(reason, "its check was started and did not end");
    device_end(device);
}
END_TEST

static tutti_status succeed(struct device *device, const char *name, const void *unused)
{
    (void)unused;
    check_trial_begins(device, name);
    return TUTTI_OK;
}

/* A process begins a trial that another one has passed meanwhile, and ends within it. */
START_TEST(verdicts_are_worth_more_than_trials)
{
    int go[2];
    char byte = 0;
    ck_assert_int_eq(pipe(go), 0);
    struct device *device = device_begin();
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        const bool decided = check_is_decided(device, "matrix/trial"); /* reads the file */
        if (read(go[0], &byte, 1) == 1) check_trial_begins(device, "matrix/trial");
        _exit(decided);
    }
    ck_assert_ptr_null(check_trial(device, "matrix/trial", succeed, NULL));
    device_end(device);
    ck_assert_int_eq(write(go[1], "g", 1), 1);
    int state = 1;
    ck_assert_int_eq(waitpid(child, &state, 0), child);
    ck_assert_int_eq(state, 0);
    device = device_begin();
    ck_assert(check_is_decided(device, "matrix/trial"));
    ck_assert_ptr_null(blacklist_reason(device, "matrix/trial"));
    device_end(device);
}
END_TEST

enum { STARTED = 6, TRIALS = 12 };

/* Some are long, so that other processes meet their markers. */
static tutti_status take_time(struct device *device, const char *name, const void *process)
{
    check_trial_begins(device, name);
    const long ms = (name[strlen(name) - 1] + 3 * *(const int *)process) % 5;
    nanosleep(&(struct timespec) { .tv_nsec = 1000000 * ms }, NULL);
    return TUTTI_OK;
}

/* Returns how many trials were refused. */
static int refused_trials(int process)
{
    int refused = 0;
    char name[32];
    struct device *device = device_begin();
    for (int i = 0; i < TRIALS; i++) {
        snprintf(name, sizeof(name), "matrix/trial/%d", i);
        refused += check_trial(device, name, take_time, &process) != NULL;
    }
    device_end(device);
    return refused;
}

START_TEST(processes_that_start_together_pass_their_trials)
{
    pid_t children[STARTED];
    int go[2], state = 1;
    char byte;
    ck_assert_int_eq(pipe(go), 0);
    for (int p = 0; p < STARTED; p++) {
        children[p] = fork();
        ck_assert_int_ge(children[p], 0);
        if (children[p]) continue;
        close(go[1]);
        _exit(read(go[0], &byte, 1) == 0 ? refused_trials(p) : 255); /* the pipe's end: all are there */
    }
    close(go[1]);
    for (int p = 0; p < STARTED; p++) {
        ck_assert_int_eq(waitpid(children[p], &state, 0), children[p]);
        ck_assert_msg(state == 0, "process %d of %d ends with state %d", p, STARTED, state);
    }
    ck_assert_int_eq(refused_trials(0), 0);
}
END_TEST

static tutti_status without_memory(struct device *device, const char *name, const void *unused)
{
    (void)unused;
    check_trial_begins(device, name);
    return fail(TUTTI_DEVICE_MEMORY, "none is left");
}

START_TEST(trials_without_memory_are_made_again)
{
    struct device *device = device_begin();
    ck_assert_ptr_nonnull(check_trial(device, "matrix/trial", without_memory, NULL));
    ck_assert_ptr_null(store_get(device, STORE_CHECKS, "matrix/trial"));
    device_end(device);
}
END_TEST

START_TEST(trials_on_other_hosts_count_after_a_time)
{
    char process[PROCESS_TEXT], text[PROCESS_TEXT + 64];
    struct device *device = device_begin();
    const long long now = (long long)time(NULL);
    snprintf(text, sizeof(text), "trying %lld elsewhere 1 1", now);
    store_set(device, STORE_CHECKS, "new", text);
    snprintf(text, sizeof(text), "trying %lld elsewhere 1 1", now - 86400);
    store_set(device, STORE_CHECKS, "old", text);
    process_describe(process);
    snprintf(text, sizeof(text), "trying %lld %s0", now, process); /* its number was given away again */
    store_set(device, STORE_CHECKS, "reused", text);
    ck_assert(!check_is_decided(device, "new"));
    ck_assert_ptr_nonnull(blacklist_reason(device, "old"));
    ck_assert_ptr_nonnull(blacklist_reason(device, "reused"));
    device_end(device);
}
END_TEST

START_TEST(folders_that_others_can_write_to_are_not_used)
{
    struct device *device = device_begin();
    check_passed(device, "one");
    device_end(device);
    ck_assert_int_eq(chmod(folder(), 0777), 0);
    device = device_begin();
    ck_assert_ptr_null(device->runtime->cache_folder);
    ck_assert(logged("the cache folder is not used: other users may write to"));
    ck_assert(!check_is_decided(device, "one"));
    device_end(device);
    ck_assert_int_eq(chmod(folder(), 0700), 0);
    if (geteuid() == 0) { /* another user's */
        ck_assert_int_eq(chown(folder(), 12345, 12345), 0);
        device = device_begin();
        ck_assert_ptr_null(device->runtime->cache_folder);
        ck_assert(logged("belongs to another user"));
        device_end(device);
        ck_assert_int_eq(chown(folder(), 0, 0), 0);
    }
    device = device_begin();
    ck_assert(check_is_decided(device, "one"));
    device_end(device);
}
END_TEST

START_TEST(files_that_others_can_write_to_are_not_used)
{
    const struct program_request request = { "check", "-DSTORE" };
    cl_kernel kernel = NULL;
    struct device *device = device_begin();
    device->quirks &= ~(unsigned)QUIRK_KEEPS_CACHE;
    check_passed(device, "one");
    expect_ok(program_kernel(device, &request, "check_copy", &kernel));
    clReleaseKernel(kernel);
    programs_save(device);
    device_end(device);
    char *paths[] = { file_ending(".checks"), file_ending(".program") };
    for (int i = 0; i < 2; i++) ck_assert_int_eq(chmod(paths[i], 0666), 0);
    device = device_begin();
    device->quirks &= ~(unsigned)QUIRK_KEEPS_CACHE;
    ck_assert(!check_is_decided(device, "one"));
    expect_ok(program_kernel(device, &request, "check_copy", &kernel));
    clReleaseKernel(kernel);
    ck_assert(logged("built 'check'"));
    check_passed(device, "two"); /* the file is made anew */
    device_end(device);
    device = device_begin();
    ck_assert(check_is_decided(device, "two"));
    device_end(device);
    for (int i = 0; i < 2; i++) free(paths[i]);
}
END_TEST

Suite *store_suite(void)
{
    Suite *suite = suite_create("store");
    TCase *tests = tcase_create("store");
    tcase_add_checked_fixture(tests, folder_begin, folder_end);
    tcase_add_test(tests, entries_written_at_one_time_are_all_kept);
    tcase_add_test(tests, many_entries_are_found_fast);
    tcase_add_test(tests, later_changes_win);
    tcase_add_test(tests, trials_count_when_their_process_has_ended);
    tcase_add_test(tests, trials_count_although_nobody_has_waited_for_their_process);
    tcase_add_test(tests, verdicts_are_worth_more_than_trials);
    tcase_add_test(tests, processes_that_start_together_pass_their_trials);
    tcase_add_test(tests, trials_without_memory_are_made_again);
    tcase_add_test(tests, trials_on_other_hosts_count_after_a_time);
    tcase_add_test(tests, folders_that_others_can_write_to_are_not_used);
    tcase_add_test(tests, files_that_others_can_write_to_are_not_used);
    suite_add_tcase(suite, tests);
    return suite;
}
