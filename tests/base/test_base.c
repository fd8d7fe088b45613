/* Statuses, logs, memory, text, random numbers, threads and files; no device is needed. */
#include <check.h>
#undef fail /* Check's name for something else */

#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/random.h"
#include "base/status.h"
#include "base/text.h"
#include "base/threads.h"

#include <dirent.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* With AddressSanitizer: an allocation that is far too large gives NULL, as it does without. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

/* ---- statuses and logs ---- */

static tutti_status step(int fails, int *cleaned)
{
    tutti_status status = TUTTI_OK;
    TRY(fails == 1 ? fail(TUTTI_FILE, "first %d", 7) : TUTTI_OK);
    if (fails == 2) FAIL(TUTTI_SHAPE, "second %s", "x");
done:
    (*cleaned)++;
    return status;
}

START_TEST(statuses_carry_messages)
{
    int cleaned = 0;
    ck_assert_int_eq(step(0, &cleaned), TUTTI_OK);
    ck_assert_int_eq(step(1, &cleaned), TUTTI_FILE);
    ck_assert_str_eq(status_message(), "first 7");
    ck_assert_int_eq(step(2, &cleaned), TUTTI_SHAPE);
    ck_assert_str_eq(status_message(), "second x");
    ck_assert_int_eq(cleaned, 3);
    ck_assert_int_eq(status_context(TUTTI_SHAPE, "layer '%s'", "fc"), TUTTI_SHAPE);
    ck_assert_str_eq(status_message(), "layer 'fc': second x");
    fail(TUTTI_FILE, "again: %s", status_message()); /* its own older message as an argument */
    ck_assert_str_eq(status_message(), "again: layer 'fc': second x");
}
END_TEST

START_TEST(internal_failures_name_their_place)
{
    fail(TUTTI_INTERNAL, "broken");
    ck_assert_ptr_nonnull(strstr(status_message(), "test_base.c:"));
    fail(TUTTI_FILE, "not broken");
    ck_assert_str_eq(status_message(), "not broken");
}
END_TEST

START_TEST(long_messages_are_cut)
{
    char *text = memory_new(100001, 1);
    memset(text, 'a', 100000);
    fail(TUTTI_FILE, "%s", text);
    size_t length = strlen(status_message());
    ck_assert(length > 1000 && length < 10000);
    status_context(TUTTI_FILE, "%s", text);
    ck_assert_uint_eq(strlen(status_message()), length);
    free(text);
}
END_TEST

static void *fail_elsewhere(void *argument)
{
    (void)argument;
    fail(TUTTI_FILE, "of the other thread");
    return NULL;
}

START_TEST(messages_belong_to_threads)
{
    pthread_t thread;
    fail(TUTTI_FILE, "mine");
    ck_assert_int_eq(pthread_create(&thread, NULL, fail_elsewhere, NULL), 0);
    pthread_join(thread, NULL);
    ck_assert_str_eq(status_message(), "mine");
}
END_TEST

static void count_line(void *user, tutti_log_level level, const char *line)
{
    (void)line;
    ((int *)user)[level]++;
}

START_TEST(logs_honour_their_level)
{
    int lines[5] = { 0 };
    struct log log;
    log_init(&log, TUTTI_LOG_INFO, count_line, lines);
    log_error(&log, "%d", 1);
    log_warn(&log, "%d", 2);
    log_info(&log, "%d", 3);
    log_debug(&log, "%d", 4);
    ck_assert_int_eq(lines[TUTTI_LOG_ERROR] + lines[TUTTI_LOG_WARN] + lines[TUTTI_LOG_INFO], 3);
    ck_assert_int_eq(lines[TUTTI_LOG_DEBUG], 0);
    setenv("TUTTI_LOG", "error", 1);
    log_init(&log, TUTTI_LOG_DEFAULT, count_line, lines);
    ck_assert_int_eq(log.level, TUTTI_LOG_ERROR);
    setenv("TUTTI_LOG", "nonsense", 1);
    log_init(&log, TUTTI_LOG_DEFAULT, NULL, NULL);
    ck_assert_int_eq(log.level, TUTTI_LOG_WARN);
    ck_assert_ptr_nonnull(log.write);
}
END_TEST

/* ---- memory and text ---- */

START_TEST(sizes_do_not_overflow)
{
    size_t result = 5;
    ck_assert(!size_multiply(SIZE_MAX / 2, 3, &result));
    ck_assert(!size_multiply(SIZE_MAX, SIZE_MAX, &result));
    ck_assert(!size_add(SIZE_MAX, 1, &result));
    ck_assert_uint_eq(result, 5);
    ck_assert(size_multiply(SIZE_MAX, 1, &result) && result == SIZE_MAX);
    ck_assert(size_multiply(SIZE_MAX, 0, &result) && result == 0);
    ck_assert(size_add(SIZE_MAX - 1, 1, &result) && result == SIZE_MAX);
    ck_assert_ptr_null(memory_new(SIZE_MAX / 2, 16));
    ck_assert_ptr_nonnull(strstr(status_message(), "more than"));
    ck_assert_ptr_null(memory_new(SIZE_MAX / 16, 8)); /* addressable, yet not there */
    ck_assert_uint_eq(size_round_up(0, 64), 0);
    ck_assert_uint_eq(size_round_up(65, 64), 128);
    ck_assert_int_eq(divide_up(7, 3), 3);
}
END_TEST

START_TEST(arrays_grow_zeroed)
{
    void *array = NULL;
    size_t capacity = 0;
    for (size_t i = 0; i < 1000; i++) {
        ck_assert_int_eq(memory_grow(&array, &capacity, i + 1, sizeof(int)), TUTTI_OK);
        ck_assert_int_eq(((int *)array)[i], 0);
        ((int *)array)[i] = (int)i + 1;
    }
    for (size_t i = 0; i < 1000; i++) ck_assert_int_eq(((int *)array)[i], (int)i + 1);
    size_t before = capacity;
    ck_assert_int_eq(memory_grow(&array, &capacity, SIZE_MAX / 2, sizeof(int)), TUTTI_NO_MEMORY);
    ck_assert_uint_eq(capacity, before);
    free(array);
}
END_TEST

START_TEST(nearest_names)
{
    static const char *const names[] = { "epochs", "resnet18", "resnet50", "vgg16", "vit_b_16", "lr", "learning",
        NULL };
    static const struct {
        const char *text, *nearest;
    } cases[] = { { "epoch", "epochs" }, { "ehpocs", "epochs" }, { "epcohs", "epochs" }, { "ResNet-18", "resnet18" },
        { "resnet34", "resnet18" }, { "vgg", "vgg16" }, { "vit", "vit_b_16" }, { "l", NULL }, { "lrr", "lr" },
        { "learn", "learning" }, { "sleep", NULL }, { "", NULL }, { "eval", NULL }, { "learning-rate", "learning" } };
    char longer[200];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *found = text_nearest(cases[i].text, names);
        ck_assert_msg(found == cases[i].nearest || (found && cases[i].nearest && !strcmp(found, cases[i].nearest)),
            "%s: %s", cases[i].text, found ? found : "none");
    }
    memset(longer, 'a', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    ck_assert_ptr_null(text_nearest(longer, names));
    ck_assert_ptr_null(text_nearest("abc", (const char *const[]) { longer, NULL }));
    ck_assert_str_eq(text_suggest("epoch", names).text, "; did you mean epochs?");
    ck_assert_str_eq(text_suggest("sleep", names).text, "");
}
END_TEST

START_TEST(texts_grow)
{
    struct text text = { 0 };
    for (int i = 0; i < 5000; i++) text_append(&text, "%d,", i % 10);
    ck_assert_uint_eq(text.size, 10000);
    char *taken = text_take(&text);
    ck_assert_uint_eq(strlen(taken), 10000);
    ck_assert_ptr_null(text.data);
    free(taken);
    taken = text_take(&text);
    ck_assert_str_eq(taken, "");
    free(taken);
    text_free(&text);
}
END_TEST

/* ---- random numbers ---- */

/* The known answers that come with Random123, the library of the paper (kat_vectors). */
START_TEST(philox_gives_the_known_answers)
{
    static const struct {
        uint32_t counter[4], key[2], out[4];
    } known[] = {
        { { 0, 0, 0, 0 }, { 0, 0 }, { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
        { { ~0u, ~0u, ~0u, ~0u }, { ~0u, ~0u }, { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
        { { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 }, { 0xa4093822, 0x299f31d0 },
            { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } },
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        uint32_t out[4];
        philox4x32(known[i].key, known[i].counter, out);
        ck_assert_mem_eq(out, known[i].out, sizeof(out));
    }
}
END_TEST

START_TEST(random_numbers_have_their_moments)
{
    enum { COUNT = 200000 };
    double uniform = 0, normal = 0, squares = 0;
    bool in_range = true;
    for (uint64_t i = 0; i < COUNT; i++) {
        float u = random_uniform(3, RANDOM_WEIGHTS, i);
        double n = (double)random_normal(3, RANDOM_WEIGHTS, i);
        in_range &= u >= 0 && u < 1 && isfinite(n);
        uniform += (double)u / COUNT;
        normal += n / COUNT;
        squares += n * n / COUNT;
    }
    ck_assert(in_range);
    /* Five standard deviations of each mean. */
    ck_assert_double_eq_tol(uniform, 0.5, 5 * 0.2887 / sqrt(COUNT));
    ck_assert_double_eq_tol(normal, 0, 5 / sqrt(COUNT));
    ck_assert_double_eq_tol(squares, 1, 5 * sqrt(2.0 / COUNT));
}
END_TEST

/* Compared with the C library's functions: equal as floats, except where rounding goes the other way. */
START_TEST(normal_numbers_are_the_same_one_by_one_and_together)
{
    enum { COUNT = 70001, FIRST = 0xfffffff0 };
    static float numbers[COUNT + 1];
    numbers[COUNT] = -7;
    random_normals(3, RANDOM_WEIGHTS, FIRST, COUNT, numbers);
    ck_assert(numbers[COUNT] == -7);
    for (uint64_t i = 0; i < COUNT; i++) {
        const uint64_t index = FIRST + i;
        const uint32_t key[2] = { 3, 0 }, counter[4] = { (uint32_t)index, (uint32_t)(index >> 32), RANDOM_WEIGHTS, 1 };
        uint32_t bits[4];
        philox4x32(key, counter, bits);
        const double root = sqrt(-2 * log(((double)bits[0] + 1) * 0x1p-32));
        const double expected = root * cos(6.283185307179586 * ((double)bits[1] * 0x1p-32));
        ck_assert(numbers[i] == random_normal(3, RANDOM_WEIGHTS, index));
        ck_assert_double_eq_tol((double)numbers[i], expected, 6e-8 * fabs(expected) + 1e-14);
    }
}
END_TEST

START_TEST(random_numbers_depend_on_all_their_arguments)
{
    ck_assert_uint_eq(random_bits(1, 2, 3), random_bits(1, 2, 3));
    ck_assert_uint_ne(random_bits(1, 2, 3), random_bits(2, 2, 3));
    ck_assert_uint_ne(random_bits(1, 2, 3), random_bits(1 + (1ull << 32), 2, 3));
    ck_assert_uint_ne(random_bits(1, 2, 3), random_bits(1, 3, 3));
    ck_assert_uint_ne(random_bits(1, 2, 3), random_bits(1, 2, 4));
    ck_assert_uint_ne(random_bits(1, 2, 3), random_bits(1, 2, 3 + (1ull << 40)));
}
END_TEST

START_TEST(random_below_stays_below)
{
    int counts[7] = { 0 };
    bool below = true;
    for (uint64_t i = 0; i < 70000; i++) {
        uint64_t value = random_below(5, RANDOM_SHUFFLE, i, 7);
        below &= value < 7 && random_below(5, RANDOM_SHUFFLE, i, 1) == 0;
        below &= random_below(5, RANDOM_SHUFFLE, i, 1ull << 63) < 1ull << 63;
        if (value < 7) counts[value]++;
    }
    ck_assert(below);
    for (int i = 0; i < 7; i++) ck_assert_int_le(abs(counts[i] - 10000), 500); /* five standard deviations: 463 */
}
END_TEST

/* ---- threads ---- */

struct tally {
    atomic_int calls[1000];
    atomic_int total;
};

static void tally_task(void *argument, int task)
{
    struct tally *tally = argument;
    atomic_fetch_add(&tally->calls[task], 1);
    atomic_fetch_add(&tally->total, 1);
}

START_TEST(pools_do_each_task_once)
{
    for (int threads = 1; threads <= 9; threads += 4) {
        struct thread_pool *pool;
        ck_assert_int_eq(thread_pool_new(&pool, threads), TUTTI_OK);
        ck_assert_int_eq(thread_pool_size(pool), threads);
        for (int round = 0; round < 300; round++) {
            static struct tally tally;
            memset(&tally, 0, sizeof(tally));
            int tasks = round * 7 % 1000;
            thread_pool_run(pool, tasks, tally_task, &tally);
            ck_assert_int_eq(tally.total, tasks);
            bool once = true;
            for (int i = 0; i < 1000; i++) once &= tally.calls[i] == (i < tasks);
            ck_assert(once);
        }
        thread_pool_free(pool);
    }
}
END_TEST

START_TEST(pools_have_a_default_size)
{
    struct thread_pool *pool;
    ck_assert_int_eq(thread_pool_new(&pool, 0), TUTTI_OK);
    ck_assert_int_eq(thread_pool_size(pool), processor_count());
    ck_assert_int_ge(processor_count(), 1);
    thread_pool_free(pool);
    thread_pool_free(NULL);
}
END_TEST

/* ---- files ---- */

static char folder[64];

static const char *in_folder(const char *name)
{
    static char path[256];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static int files_in_folder(void)
{
    int count = 0;
    DIR *directory = opendir(folder);
    ck_assert_ptr_nonnull(directory);
    for (struct dirent *entry; (entry = readdir(directory));) count += entry->d_name[0] != '.';
    closedir(directory);
    return count;
}

static void folder_begin(void)
{
    strcpy(folder, "/tmp/tutti-base-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void folder_end(void)
{
    char command[128];
    snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    ck_assert_int_eq(system(command), 0);
}

static tutti_status write_file(const char *path, const void *data, size_t size)
{
    struct atomic_file *file;
    tutti_status status = atomic_file_open(&file, path);
    if (status != TUTTI_OK) return status;
    status = atomic_file_write(file, data, size);
    if (status == TUTTI_OK) return atomic_file_commit(file);
    atomic_file_abandon(file);
    return status;
}

static void expect_content(const char *path, const char *content)
{
    unsigned char *data = NULL;
    size_t size = 0;
    ck_assert_msg(file_read(path, 1000, &data, &size) == TUTTI_OK, "%s", status_message());
    ck_assert_uint_eq(size, strlen(content));
    ck_assert_mem_eq(data, content, size);
    free(data);
}

static void expect_message(tutti_status found, tutti_status wanted, const char *part)
{
    ck_assert_msg(found == wanted, "status %d where %d is right: %s", (int)found, (int)wanted, status_message());
    ck_assert_msg(strstr(status_message(), part) != NULL, "'%s' is not in '%s'", part, status_message());
}

/* Renaming would replace it: /dev/null became a file. */
START_TEST(a_pipe_is_not_replaced)
{
    struct stat info;
    const char *path = in_folder("pipe");
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    expect_message(write_file(path, "x", 1), TUTTI_FILE, "pipe");
    ck_assert_int_eq(lstat(path, &info), 0);
    ck_assert(S_ISFIFO(info.st_mode));
}
END_TEST

START_TEST(files_appear_whole)
{
    struct atomic_file *file;
    const char *path = in_folder("a");
    ck_assert_int_eq(atomic_file_open(&file, path), TUTTI_OK);
    ck_assert_int_eq(atomic_file_write(file, "one ", 4), TUTTI_OK);
    ck_assert_int_eq(atomic_file_flush(file), TUTTI_OK);
    ck_assert_int_ne(access(path, F_OK), 0); /* not before it is complete */
    ck_assert_int_eq(atomic_file_write(file, "two", 3), TUTTI_OK);
    ck_assert_int_eq(atomic_file_commit(file), TUTTI_OK);
    expect_content(path, "one two");
    ck_assert_int_eq(write_file(path, "", 0), TUTTI_OK);
    expect_content(path, "");
    ck_assert_int_eq(files_in_folder(), 1);
}
END_TEST

/* A temporary file is swept when its lock is gone, wherever its writer ran; its name differs in each run. */
START_TEST(temporary_files_belong_to_who_locks_them)
{
    struct atomic_file *file;
    char first[512], target[256];
    snprintf(target, sizeof(target), "%s", in_folder("target"));
    ck_assert_int_eq(write_file(target, "old", 3), TUTTI_OK);
    snprintf(first, sizeof(first), "%s.%ld-0.tmp", in_folder("a"), (long)getpid()); /* a name that could be foreseen */
    ck_assert_int_eq(symlink(target, first), 0);
    snprintf(first, sizeof(first), "%s.%ld-1.tmp", in_folder("a"), (long)getpid());
    ck_assert_int_eq(symlink(target, first), 0);
    ck_assert_int_eq(atomic_file_open(&file, in_folder("a")), TUTTI_OK);
    ck_assert_int_eq(atomic_file_write(file, "new", 3), TUTTI_OK);
    expect_content(target, "old");
    ck_assert_int_eq(files_in_folder(), 4);
    atomic_file_sweep(in_folder("a"));
    ck_assert_int_eq(files_in_folder(), 4); /* its writer lives */
    ck_assert_int_eq(write_file(in_folder("a.0123456789abcdef.tmp"), "left", 4), TUTTI_OK);
    atomic_file_sweep(in_folder("a"));
    ck_assert_int_eq(files_in_folder(), 4); /* what nobody has locked is gone */
    ck_assert_int_eq(atomic_file_commit(file), TUTTI_OK);
    expect_content(in_folder("a"), "new");
}
END_TEST

/* Threads and processes alike; a holder that is killed lets go. */
START_TEST(locks_have_one_holder)
{
    struct file_lock *lock, *second;
    int ready[2], state;
    char byte;
    ck_assert_int_eq(file_lock_take(&lock, in_folder("lock"), 0), TUTTI_OK);
    expect_message(file_lock_take(&second, in_folder("lock"), 0.02), TUTTI_FILE, in_folder("lock"));
    file_lock_release(lock);
    file_lock_release(NULL);
    ck_assert_int_eq(files_in_folder(), 0);
    ck_assert_int_eq(pipe(ready), 0);
    const pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        if (file_lock_take(&lock, in_folder("lock"), 0) == TUTTI_OK && write(ready[1], "r", 1) == 1) pause();
        _exit(1);
    }
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    ck_assert_int_eq(file_lock_take(&lock, in_folder("lock"), 0), TUTTI_FILE);
    ck_assert_int_eq(kill(child, SIGKILL), 0);
    ck_assert_int_eq(waitpid(child, &state, 0), child);
    ck_assert_int_eq(file_lock_take(&lock, in_folder("lock"), 0), TUTTI_OK);
    file_lock_release(lock);
    ck_assert_int_eq(symlink("target", in_folder("lock")), 0);
    ck_assert_int_eq(file_lock_take(&lock, in_folder("lock"), 0), TUTTI_FILE); /* not followed */
    expect_message(file_lock_take(&lock, in_folder("no/lock"), 0), TUTTI_FILE, in_folder("no/lock"));
}
END_TEST

START_TEST(abandoned_files_leave_nothing)
{
    struct atomic_file *file;
    ck_assert_int_eq(write_file(in_folder("a"), "old", 3), TUTTI_OK);
    ck_assert_int_eq(atomic_file_open(&file, in_folder("a")), TUTTI_OK);
    ck_assert_int_eq(atomic_file_write(file, "new", 3), TUTTI_OK);
    atomic_file_abandon(file);
    atomic_file_abandon(NULL);
    expect_content(in_folder("a"), "old");
    ck_assert_int_eq(files_in_folder(), 1);
}
END_TEST

START_TEST(a_full_disk_keeps_the_older_file)
{
    static char large[1 << 20];
    struct atomic_file *file;
    ck_assert_int_eq(write_file(in_folder("a"), "old", 3), TUTTI_OK);
    signal(SIGXFSZ, SIG_IGN); /* then a write beyond the limit fails in the middle, as on a full disk */
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &(struct rlimit) { 1 << 16, 1 << 16 }), 0);
    expect_message(write_file(in_folder("a"), large, sizeof(large)), TUTTI_FILE, in_folder("a"));
    expect_content(in_folder("a"), "old");
    ck_assert_int_eq(files_in_folder(), 1);
    /* A caller that ignores the write's status gets the failure from the commit. */
    ck_assert_int_eq(atomic_file_open(&file, in_folder("a")), TUTTI_OK);
    ck_assert_int_eq(atomic_file_write(file, large, sizeof(large)), TUTTI_FILE);
    expect_message(atomic_file_commit(file), TUTTI_FILE, in_folder("a"));
    expect_content(in_folder("a"), "old");
    ck_assert_int_eq(files_in_folder(), 1);
}
END_TEST

START_TEST(a_read_only_folder_is_refused)
{
    ck_assert_int_eq(write_file(in_folder("a"), "old", 3), TUTTI_OK);
    ck_assert_int_eq(chmod(folder, 0555), 0);
    if (geteuid() == 0) ck_assert_int_eq(seteuid(65534), 0); /* root may write anywhere */
    expect_message(write_file(in_folder("a"), "new", 3), TUTTI_FILE, in_folder("a"));
    expect_message(folder_make(in_folder("b/c")), TUTTI_FILE, folder);
    expect_content(in_folder("a"), "old");
    ck_assert_int_eq(files_in_folder(), 1);
    if (getuid() == 0) ck_assert_int_eq(seteuid(0), 0);
    ck_assert_int_eq(chmod(folder, 0755), 0);
}
END_TEST

START_TEST(paths_that_do_not_exist_are_refused)
{
    unsigned char *data = NULL;
    size_t size = 0;
    expect_message(write_file(in_folder("none/a"), "x", 1), TUTTI_FILE, "none/a");
    expect_message(write_file("/proc/tutti", "x", 1), TUTTI_FILE, "/proc/tutti");
    expect_message(file_read(in_folder("none"), 10, &data, &size), TUTTI_FILE, "none");
    expect_message(file_read(folder, 10, &data, &size), TUTTI_FILE, folder);
    ck_assert_ptr_null(data);
}
END_TEST

START_TEST(reads_are_limited)
{
    unsigned char *data = NULL;
    size_t size = 0;
    ck_assert_int_eq(write_file(in_folder("a"), "123456", 6), TUTTI_OK);
    expect_message(file_read(in_folder("a"), 5, &data, &size), TUTTI_FORMAT, in_folder("a"));
    ck_assert_ptr_null(data);
    ck_assert_int_eq(file_read(in_folder("a"), 6, &data, &size), TUTTI_OK);
    ck_assert_uint_eq(size, 6);
    free(data);
    expect_message(
        file_read("/dev/zero", 1 << 20, &data, &size), TUTTI_FORMAT, "/dev/zero"); /* says that it is empty */
}
END_TEST

/* A common end does not make names alike. */
START_TEST(near_paths_are_found)
{
    static const char *const files[] = { "flowers.csv", "m.safetensors", "m.state.safetensors", "lenet.safetensors" };
    static const struct {
        const char *path, *end, *nearest;
    } cases[] = { { "flower.csv", NULL, "flowers.csv" }, { "flowers", NULL, "flowers.csv" }, { "none.csv", NULL, NULL },
        { "lenett", ".safetensors", "lenet.safetensors" },
        { "lenett.safetensors", ".safetensors", "lenet.safetensors" }, { "other.safetensors", ".safetensors", NULL },
        { "flowers", ".safetensors", NULL } };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        ck_assert_int_eq(file_write(in_folder(files[i]), "x", 1), TUTTI_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char path[200], wanted[200] = "";
        snprintf(path, sizeof path, "%s/%s", folder, cases[i].path);
        if (cases[i].nearest) snprintf(wanted, sizeof wanted, "; did you mean %s/%s?", folder, cases[i].nearest);
        ck_assert_str_eq(path_suggest(path, cases[i].end).text, wanted);
    }
    ck_assert_str_eq(path_suggest("/nonexistent/a", NULL).text, "");
}
END_TEST

START_TEST(folders_are_made_with_those_above)
{
    ck_assert_int_eq(folder_make(in_folder("b/c/d")), TUTTI_OK);
    ck_assert_int_eq(folder_make(in_folder("b/c/d")), TUTTI_OK);
    ck_assert_int_eq(folder_make(in_folder("b/c/d/e/")), TUTTI_OK);
    ck_assert_int_eq(write_file(in_folder("b/c/d/x"), "x", 1), TUTTI_OK);
    expect_message(folder_make(in_folder("b/c/d/x")), TUTTI_FILE, "b/c/d/x");
    expect_message(folder_make(in_folder("b/c/d/x/y")), TUTTI_FILE, "b/c/d/x");
    ck_assert_int_eq(folder_make("/"), TUTTI_OK);
    ck_assert_int_ne(folder_make(""), TUTTI_OK);
}
END_TEST

static TCase *basics(void)
{
    TCase *tests = tcase_create("basics");
    tcase_add_test(tests, statuses_carry_messages);
    tcase_add_test(tests, internal_failures_name_their_place);
    tcase_add_test(tests, long_messages_are_cut);
    tcase_add_test(tests, messages_belong_to_threads);
    tcase_add_test(tests, logs_honour_their_level);
    tcase_add_test(tests, sizes_do_not_overflow);
    tcase_add_test(tests, arrays_grow_zeroed);
    tcase_add_test(tests, texts_grow);
    tcase_add_test(tests, nearest_names);
    tcase_add_test(tests, philox_gives_the_known_answers);
    tcase_add_test(tests, random_numbers_have_their_moments);
    tcase_add_test(tests, normal_numbers_are_the_same_one_by_one_and_together);
    tcase_add_test(tests, random_numbers_depend_on_all_their_arguments);
    tcase_add_test(tests, random_below_stays_below);
    tcase_add_test(tests, pools_do_each_task_once);
    tcase_add_test(tests, pools_have_a_default_size);
    return tests;
}

static TCase *files(void)
{
    TCase *tests = tcase_create("files");
    tcase_add_checked_fixture(tests, folder_begin, folder_end);
    tcase_add_test(tests, a_pipe_is_not_replaced);
    tcase_add_test(tests, files_appear_whole);
    tcase_add_test(tests, temporary_files_belong_to_who_locks_them);
    tcase_add_test(tests, abandoned_files_leave_nothing);
    tcase_add_test(tests, locks_have_one_holder);
    tcase_add_test(tests, a_full_disk_keeps_the_older_file);
    tcase_add_test(tests, a_read_only_folder_is_refused);
    tcase_add_test(tests, paths_that_do_not_exist_are_refused);
    tcase_add_test(tests, reads_are_limited);
    tcase_add_test(tests, folders_are_made_with_those_above);
    tcase_add_test(tests, near_paths_are_found);
    return tests;
}

int main(void)
{
    unsetenv("TUTTI_LOG");
    Suite *suite = suite_create("base");
    suite_add_tcase(suite, basics());
    suite_add_tcase(suite, files());
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
