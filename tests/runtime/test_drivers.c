/* Faults of drivers, made by the layer of tests/emulation/broken.c: they fail questions, are first called by two
 * threads at a time or in a child of fork(), and their compilers end, hang or fill the memory. */
#include "runtime_tests.h"

#include "base/memory.h"
#include "base/status.h"
#include "plan/plan.h"
#include "runtime/builder.h"
#include "runtime/discover.h"
#include "runtime/memory.h"
#include "tutti_advanced.h"
#include "tutti_finetune.h"
#include "tutti_inspect.h"
#include "tutti_scores.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- first calls ---- */

static pthread_barrier_t start;

static void *open_first(void *argument)
{
    (void)argument;
    pthread_barrier_wait(&start);
    tutti_runtime *runtime = tutti_open(&(tutti_runtime_options) { .cache_folder = "" });
    const bool good = runtime && tutti_device_count(runtime) > 0;
    tutti_close(runtime);
    return good ? runtime : NULL;
}

START_TEST(threads_may_open_first)
{
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one); /* where the first one is interrupted amid the driver's initialisation */
    ck_assert_int_eq(sched_setaffinity(0, sizeof(one), &one), 0);
    ck_assert_int_eq(pthread_barrier_init(&start, NULL, THREADS), 0);
    for (int i = 0; i < THREADS; i++) ck_assert_int_eq(pthread_create(&threads[i], NULL, open_first, NULL), 0);
    for (int i = 0; i < THREADS; i++) {
        void *good = NULL;
        ck_assert_int_eq(pthread_join(threads[i], &good), 0);
        ck_assert_ptr_nonnull(good);
    }
    pthread_barrier_destroy(&start);
}
END_TEST

/* ---- questions that fail ---- */

static const struct {
    const char *query, *name; /* what the line about it names */
    int devices;              /* in the list */
} questions[] = { { "type", "device 1", 2 }, { "memory", "device 1", 2 }, { "name", "unnamed device", 2 },
    { "platform", "Broken Platform", 2 }, { "list", "Broken Platform", 2 } };

START_TEST(what_fails_a_question_is_left_out)
{
    tutti_device_info *list = NULL;
    int count = 0;
    const bool device = strstr(questions[_i].name, "device") != NULL;
    setenv("POCL_DEVICES", "pthread pthread", 1);
    setenv("BROKEN_QUERY", questions[_i].query, 1);
    tutti_runtime *runtime = open_runtime(NULL);
    ck_assert_int_eq(tutti_device_count(runtime), device ? 1 : 2);
    ck_assert(logged(questions[_i].name) && logged("left out") && logged("CL_OUT_OF_HOST_MEMORY"));
    ck_assert(!logged("host's memory"));
    expect_ok(tutti_device_check(runtime, 0));
    tutti_close(runtime);
    expect_ok(tutti_devices_list(NULL, &list, &count));
    ck_assert_int_eq(count, questions[_i].devices);
    ck_assert(list[0].chosen && list[1].chosen == !device);
    if (device) ck_assert_ptr_nonnull(strstr(list[1].note, "CL_OUT_OF_HOST_MEMORY"));
    tutti_devices_free(list);
    if (!device) return;
    ck_assert_ptr_null(tutti_open(&(tutti_runtime_options) { .devices = "1", .log_level = TUTTI_LOG_ERROR }));
    expect_failure(TUTTI_DEVICE, TUTTI_DEVICE, "CL_OUT_OF_HOST_MEMORY");
}
END_TEST

/* ---- children of fork() ---- */

struct trained {
    tutti_runtime *runtime;
    tutti_network *network;
    tutti_tensor output;
    tutti_trainer *trainer;
    tutti_snapshot *snapshot;
    tutti_tuner *tuner;
};

static const tutti_training training = { .loss = TUTTI_MSE, .optimizer = TUTTI_SGD, .learning_rate = 0.1f, .batch = 4 };

static struct trained train(void)
{
    struct trained all = { .runtime = open_runtime(NULL) };
    all.network = tutti_network_new(all.runtime);
    all.output = tutti_dense(all.network, tutti_input(all.network, "x", TUTTI_SHAPE(3)), 2, NULL);
    all.trainer = tutti_compile(all.network, all.output, &training);
    ck_assert_msg(all.trainer != NULL, "%s", status_message());
    all.snapshot = tutti_snapshot_take(all.trainer);
    all.tuner = tutti_tuner_new(all.network, all.output, &training, 0);
    ck_assert(all.snapshot && all.tuner);
    return all;
}

static void release(struct trained *all)
{
    tutti_tuner_free(all->tuner);
    tutti_snapshot_free(all->snapshot);
    tutti_trainer_free(all->trainer);
    tutti_network_free(all->network);
    tutti_close(all->runtime);
}

static int wrong; /* calls that were not refused */

static void expect_refusal(const char *call, tutti_status status)
{
    if (status == TUTTI_UNSUPPORTED && strstr(status_message(), "fork()") && strstr(status_message(), "tutti_open()"))
        return;
    fprintf(stderr, "%s: %s: %s\n", call, tutti_status_name(status), status_message());
    wrong++;
}
#define REFUSES(call) (alarm(20), status_set(TUTTI_OK, ""), expect_refusal(#call, (call)))
#define REFUSES_OBJECT(call) \
    (alarm(20), status_set(TUTTI_OK, ""), expect_refusal(#call, (call) ? TUTTI_OK : TUTTI_UNSUPPORTED))

static int read_none(void *user, const int64_t *indices, int64_t count, const tutti_buffer *buffers, int buffer_count)
{
    (void)user, (void)indices, (void)count, (void)buffers, (void)buffer_count;
    return 0;
}

static void steps_in_child(const struct trained *all)
{
    float x[12] = { 0 }, y[8] = { 0 };
    tutti_metrics metrics;
    const tutti_feed feeds[] = { { "x", TUTTI_DTYPE_F32, x }, { "targets", TUTTI_DTYPE_F32, y } };
    const tutti_fetch fetch = { .tensor = all->output, .data = y };
    const tutti_source source = { .samples = 4, .read = read_none };
    tutti_rate_result rates = { .size = sizeof(rates) };
    tutti_scores *scores = tutti_scores_new(NULL);
    REFUSES(tutti_train_step(all->trainer, feeds, 2, 4, &metrics));
    REFUSES(tutti_train_fetch(all->trainer, feeds, 2, 4, &fetch, 1, &metrics));
    REFUSES(tutti_train_prefetch(all->trainer, feeds, 2, 4));
    REFUSES(tutti_fit(all->trainer, feeds, 2, 4, &(tutti_fitting) { .epochs = 1 }));
    REFUSES(tutti_fit_source(all->trainer, &source, &(tutti_fitting) { .epochs = 1 }));
    REFUSES(tutti_evaluate(all->trainer, feeds, 2, 4, &metrics));
    REFUSES(tutti_evaluate_source(all->trainer, &source, &metrics));
    if (scores) REFUSES(tutti_evaluate_scores(all->trainer, &source, scores, &metrics));
    REFUSES(tutti_infer(all->trainer, feeds, 1, 4, &fetch, 1));
    REFUSES(tutti_find_rate(all->trainer, &source, NULL, &rates));
    tutti_scores_free(scores);
}

static void ignore_launch(void *user, const tutti_launch *launch)
{
    (void)user, (void)launch;
}

static void others_in_child(const struct trained *all)
{
    float values[6] = { 0 };
    tutti_device_info *list = NULL;
    int count = 0;
    tutti_device_peaks peaks = { .size = sizeof(peaks) };
    tutti_match_result match = { 0 };
    tutti_trial trial = { 0 };
    REFUSES_OBJECT(tutti_open(NULL));
    REFUSES(tutti_devices_list(NULL, &list, &count));
    REFUSES(tutti_device_check(all->runtime, 0));
    REFUSES(tutti_device_measure(all->runtime, 0, &peaks));
    REFUSES_OBJECT(tutti_compile(all->network, all->output, &training));
    REFUSES(tutti_get_parameter(all->trainer, "dense_0.weight", values, 6));
    REFUSES(tutti_set_parameter(all->trainer, "dense_0.weight", values, 6));
    REFUSES(tutti_get_gradient(all->trainer, "dense_0.weight", values, 6));
    REFUSES(tutti_save(all->trainer, "/tmp/none"));
    REFUSES(tutti_save_weights(all->trainer, "/tmp/none"));
    REFUSES(tutti_load_weights(all->trainer, "/tmp/none"));
    REFUSES(tutti_load_matching(all->trainer, "/tmp/none", NULL, &match));
    REFUSES(tutti_resume(all->trainer, "/tmp/none"));
    REFUSES_OBJECT(tutti_snapshot_take(all->trainer));
    REFUSES(tutti_snapshot_restore(all->trainer, all->snapshot));
    REFUSES_OBJECT(tutti_explain(all->trainer, 0, false));
    REFUSES_OBJECT(tutti_profile(all->trainer, 0, NULL));
    REFUSES(tutti_launches(all->trainer, 0, false, ignore_launch, NULL));
    REFUSES_OBJECT(tutti_tuner_new(all->network, all->output, &training, 0));
    REFUSES(tutti_tuner_refer(all->tuner, 0));
    REFUSES(tutti_tuner_try(all->tuner, 0, &trial));
}

START_TEST(children_of_fork_are_told)
{
    struct trained all = train();
    int how = 0;
    const pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        steps_in_child(&all);
        others_in_child(&all);
        alarm(20);
        release(&all); /* returns, and frees what is not a driver's */
        _exit(wrong != 0);
    }
    ck_assert_int_eq(waitpid(child, &how, 0), child);
    ck_assert_msg(WIFEXITED(how) && WEXITSTATUS(how) == 0, "the child ended with 0x%x", (unsigned)how);
    release(&all);
}
END_TEST

/* A process that has not used devices may fork: its child uses them. */
START_TEST(children_before_the_first_use_work)
{
    int how = 0;
    const pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        alarm(60);
        struct trained all = train();
        release(&all);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &how, 0), child);
    ck_assert_int_eq(how, 0);
    struct trained all = train();
    release(&all);
}
END_TEST

/* ---- compilers ---- */

enum { ITEMS = 64 };
#define ANY_BUFFER ((cl_mem)(uintptr_t)1)

/* Programs that no other test builds; those before the last have a mark that the layer knows. */
static void make_launches(struct device *device, struct launch_list *list, int count, cl_mem buffer)
{
    launch_list_init(list, device);
    for (int i = 0; i < count; i++) {
        struct launch *launch = launch_add(list, "check", "check_copy", "-DDRIVERS=%d%d", (int)getpid(), i);
        launch_buffer(launch, buffer);
        launch_buffer(launch, buffer);
        launch_grid(launch, 1, ITEMS, 1, 1, ITEMS, 1, 1);
    }
}

static void mark(int program)
{
    char text[48];
    snprintf(text, sizeof(text), "-DDRIVERS=%d%d", (int)getpid(), program);
    setenv("BROKEN_MARK", text, 1);
}

static const struct {
    const char *variable, *what, *reason;
} deaths[] = {
    { "BROKEN_BUILD", "abort", "died of signal 6 (Aborted): LLVM ERROR: the layer gives up" },
    { "BROKEN_BUILD", "loop", "did not end within 1 seconds" },
    { "BROKEN_BUILD", "allocate", "took more than 700 MiB of memory" },
    { "BROKEN_LAUNCH", "abort", "died of signal 6 (Aborted): LLVM ERROR: the layer gives up" },
    { "BROKEN_LAUNCH", "loop", "did not end within 1 seconds" },
    { "BROKEN_LAUNCH", "allocate", "took more than 700 MiB of memory" },
};

static void look_for(void *user, const char *kernels, const char *reason)
{
    *(bool *)user |= strstr(kernels, "compiler/check/") && strstr(reason, "the driver's compiler");
}

/* The program costs a helper and is refused, in this process and the next; the others are built. */
START_TEST(compilers_that_die_cost_a_program)
{
    struct launch_list list;
    builder_set_limits(
        (struct builder_limits) { .seconds = strcmp(deaths[_i].what, "loop") ? 60 : 1, .mebibytes = 700 });
    setenv(deaths[_i].variable, deaths[_i].what, 1);
    mark(0);
    for (int process = 0; process < 2; process++) {
        struct device *device = &open_runtime(&(tutti_runtime_options) { .threads = 1 })->devices[0];
        make_launches(device, &list, 3, ANY_BUFFER);
        if (process == 0) builder_prepare(&list, NULL, NULL);
        const char *reason = builder_refusal(device, &list.launches[0]);
        ck_assert_msg(reason && strstr(reason, deaths[_i].reason), "%s", reason ? reason : "not refused");
        for (size_t i = 1; i < list.count; i++) ck_assert_ptr_null(builder_refusal(device, &list.launches[i]));
        expect_failure(launch_list_realise(&list, NULL, NULL), TUTTI_BUILD, deaths[_i].reason);
        launch_list_free(&list);
        bool told = false;
        expect_ok(tutti_device_refusals(device->runtime, 0, look_for, &told));
        ck_assert(told);
        device_end(device);
    }
    ck_assert_int_eq(tutti_device_refusals(NULL, 0, look_for, NULL), TUTTI_INVALID);
}
END_TEST

/* A network whose first choice kills the compiler is trained with another one, and is told why. */
START_TEST(compilers_that_die_cost_an_implementation)
{
    setenv("BROKEN_BUILD", "abort", 1);
    setenv("BROKEN_MARK", "gemm_skinny_dot(", 1);
    struct trained all = train();
    char *why = tutti_explain(all.trainer, 0, false);
    ck_assert_ptr_nonnull(why);
    ck_assert_msg(strstr(why, "the layer gives up") != NULL, "%s", why);
    ck_assert(logged("are not used on device 0"));
    free(why);
    release(&all);
}
END_TEST

static long builds(const char *path)
{
    struct stat file;
    return stat(path, &file) == 0 ? (long)file.st_size : 0;
}

/* Tutti's cache is warm and the driver's is cold: helpers fill the driver's once, however often is compiled. */
START_TEST(the_driver_is_asked_once)
{
    char *driver = memory_format("%s/pocl", folder()), *count = memory_format("%s/count", folder());
    char *clear = memory_format("rm -rf '%s' && mkdir '%s'", driver, driver);
    setenv("POCL_CACHE_DIR", driver, 1);
    struct device *device = device_begin();
    struct launch_list list;
    make_launches(device, &list, 6, ANY_BUFFER);
    builder_prepare(&list, NULL, NULL);
    ck_assert(builder_knows(&list));
    launch_list_free(&list);
    device_end(device);
    ck_assert_int_eq(system(clear), 0);
    setenv("BROKEN_COUNT", count, 1);
    device = device_begin();
    make_launches(device, &list, 6, ANY_BUFFER);
    for (int compile = 0; compile < 3; compile++) {
        builder_prepare(&list, NULL, NULL);
        ck_assert_int_eq(builds(count), 7); /* by the helpers, and the one that the driver was asked for */
    }
    launch_list_free(&list);
    device_end(device);
    free(driver);
    free(count);
    free(clear);
}
END_TEST

/* A driver's compiler that cannot wait for its linker aborts: helpers compile, or it is refused. */
START_TEST(ignored_children_are_no_reason_to_abort)
{
    struct launch_list list;
    cl_mem buffer = NULL;
    signal(SIGCHLD, SIG_IGN);
    struct device *device = device_begin();
    expect_ok(buffer_new(device, ITEMS * sizeof(float), &buffer));
    make_launches(device, &list, 1, buffer);
    expect_ok(launch_list_realise(&list, NULL, NULL));
    launch_list_free(&list);
    setenv("TUTTI_HELPER", "off", 1);
    make_launches(device, &list, 2, buffer);
    expect_failure(launch_list_realise(&list, NULL, NULL), TUTTI_UNSUPPORTED, "SIGCHLD");
    launch_list_free(&list);
    buffer_free(&buffer);
    device_end(device);
    signal(SIGCHLD, SIG_DFL);
}
END_TEST

Suite *drivers_suite(void)
{
    Suite *suite = suite_create("drivers");
    TCase *tests = tcase_create("drivers");
    tcase_add_checked_fixture(tests, folder_begin, folder_end);
    tcase_add_loop_test(tests, threads_may_open_first, 0, 3);
    tcase_add_loop_test(tests, what_fails_a_question_is_left_out, 0, sizeof(questions) / sizeof(questions[0]));
    tcase_add_test(tests, children_of_fork_are_told);
    tcase_add_test(tests, children_before_the_first_use_work);
    tcase_add_loop_test(tests, compilers_that_die_cost_a_program, 0, sizeof(deaths) / sizeof(deaths[0]));
    tcase_add_test(tests, compilers_that_die_cost_an_implementation);
    tcase_add_test(tests, the_driver_is_asked_once);
    tcase_add_test(tests, ignored_children_are_no_reason_to_abort);
    suite_add_tcase(suite, tests);
    return suite;
}
