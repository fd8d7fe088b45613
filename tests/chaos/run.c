#include "tests/chaos/run.h"
#include "tests/feeds.h"

#include "base/clock.h"
#include "parallel/background_all.h"
#include "parallel/repartition.h"
#include "tests/chaos/session.h"

#include "parallel/faults.h"
#include "parallel/rebalance.h"
#include "tests/tolerance.h"

#include <dirent.h>
#include <dlfcn.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Time within which a call that hung ends after it was let go. */
#define RETURN_S 20.0
/* Tolerance relative to the largest change of a parameter, where gradients are rounded to 8 bits. Rounding was seen
 * to change parameters by 1.4e-3, a sample that is lost once by 5e-2. */
#define BF16_TOLERANCE 5e-3

static const struct fault_layer *layer;
static tutti_status last; /* how the last run ended */
static char said[512];    /* why it failed */

__attribute__((format(printf, 1, 2))) static const char *say(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(said, sizeof(said), format, arguments);
    va_end(arguments);
    return said;
}

static void sleep_s(double seconds)
{
    const struct timespec time = { .tv_sec = (time_t)seconds, .tv_nsec = (long)(1e9 * (seconds - floor(seconds))) };
    nanosleep(&time, NULL);
}

/* --------------------------------------------------------------------------------------------- disturbances ---- */

static void give_faults(const struct session *session, const tutti_runtime *runtime, int step)
{
    for (int i = 0; i < session->it->fault_count; i++) {
        const struct fault *fault = &session->it->faults[i];
        struct layer_order order = fault->order;
        if (fault->step != step || fault->rank != session_rank()) continue;
        if (fault->victim != ALL_DEVICES) order.device = runtime->devices[fault->victim].id;
        layer->add(&order);
    }
}

/* As balance.c would ask for it: lost devices get nothing, others no more than they take. */
static bool want(tutti_trainer *trainer, const struct change *change)
{
    struct balance *balance = &trainer->balance;
    struct share shares[DEVICES];
    int64_t parts[DEVICES];
    double sum = 0;
    for (int i = 0; i < DEVICES; i++) {
        const bool there = !replica_is_lost(&trainer->replicas[i]) && balance->devices[i].limit > 0;
        shares[i] = (struct share) { there ? (double)change->weights[i] : 0, balance->devices[i].limit };
        sum += shares[i].weight;
    }
    if (sum == 0 || shares_divide(shares, DEVICES, balance->batch, parts) != TUTTI_OK) return false;
    if (!memcmp(parts, balance->parts, sizeof(parts))) return false;
    memcpy(balance->wanted, parts, sizeof(parts));
    return true;
}

static void begin_change(tutti_trainer *trainer, const struct change *change)
{
    if (!trainer->rebalance || rebalance_is_changing(trainer) || repartition_keeps_shares(trainer) ||
        !want(trainer, change))
        return;
    for (int i = 0; i < DEVICES; i++) trainer->balance.devices[i].tried = true; /* no other changes than these */
    rebalance_start(trainer);
    const double start = clock_seconds();
    while (1e3 * (clock_seconds() - start) < change->wait_ms && !background_all_done(trainer)) sleep_s(0.001);
}

/* A device that is left out is probed after a twentieth of a second. */
static void rest(tutti_trainer *trainer)
{
    if (!trainer->rebalance) return;
    trainer->balance.settled = true;
    sleep_s(0.02);
}

static int progress_disturbed(void *user, const tutti_progress *progress)
{
    struct session *session = user;
    const struct chaos_case *it = session->it;
    const int step = (int)progress->total_steps;
    session_note(session, progress);
    if (progress->end_of_epoch) return 0;
    give_faults(session, session->trainer->network->runtime, step);
    for (int i = 0; i < it->change_count; i++)
        if (it->changes[i].step == step) begin_change(session->trainer, &it->changes[i]);
    if (it->mode == PROBED) rest(session->trainer);
    return 0;
}

/* ------------------------------------------------------------------------------------------------ judgement ---- */

static bool is_documented(const struct chaos_case *it, tutti_status status)
{
    return is_device_fault(status) || (status == TUTTI_NOT_FINITE && case_count(it, LAYER_NAN) > 0);
}

/* A run with a device that is neither broken nor hangs must end well, and no such device may be lost. If two devices
 * give wrong numbers one after the other, the training may look as if it diverged. */
static const char *judge_status(const struct session *session, tutti_status status)
{
    const struct chaos_case *it = session->it;
    const unsigned victims = case_victims(it, session_rank());
    const bool diverges = status == TUTTI_NOT_FINITE && case_count(it, LAYER_NAN) > 1;
    if (reports.nonsense) return "a warning has no sense";
    if (status != TUTTI_OK && !is_documented(it, status))
        return say("it ended with %s, which is not documented: %s", tutti_status_name(status), status_message());
    if (status != TUTTI_OK && !case_may_fail(it) && !diverges)
        return say("a device was left, and it ended with %s: %s", tutti_status_name(status), status_message());
    for (int i = 0; session->trainer && i < DEVICES; i++)
        if (replica_is_lost(&session->trainer->replicas[i]) && !(victims & 1u << i))
            return say("device %d is healthy and lost", i);
    return NULL;
}

static double limit_of(const struct chaos_case *it)
{
    return it->bf16 ? BF16_TOLERANCE : tolerance(TOLERANCE_DIVISION, 0);
}

static const char *compare(const struct chaos_case *it, const struct parameters *found, const struct parameters *wanted,
    const struct reference *reference)
{
    return parameters_compare(found, wanted, it->bf16 ? &reference->start : NULL, limit_of(it));
}

static const char *judge_end(struct session *session, const struct reference *reference)
{
    const double limit = limit_of(session->it);
    static struct parameters found;
    if (parameters_get(session, &found) != TUTTI_OK) return say("no parameters at the end: %s", status_message());
    for (int i = 0; i < EPOCHS; i++)
        if (!(fabs(session->losses[i] - reference->losses[i]) <= limit * fabs(reference->losses[i])))
            return say("the loss of epoch %d is %.9g, not %.9g", i + 1, session->losses[i], reference->losses[i]);
    return compare(session->it, &found, &reference->end, reference);
}

/* Continues from the checkpoint, on another device, to the end of the undisturbed run. */
static const char *judge_checkpoint(const struct chaos_case *it, const struct reference *reference)
{
    static struct parameters found;
    static char text[600];
    if (session_resume(it, &found) != TUTTI_OK) return say("its checkpoint is of no use: %s", status_message());
    const char *difference = compare(it, &found, &reference->epoch_later, reference);
    if (!difference) return NULL;
    snprintf(text, sizeof(text), "resumed from its checkpoint, %s", difference);
    return text;
}

/* -------------------------------------------------------------------------------------------------- threads ---- */

static int thread_count(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/task");
    if (!folder) return 0;
    for (const struct dirent *entry; (entry = readdir(folder));) count += entry->d_name[0] != '.';
    closedir(folder);
    return count;
}

static bool all_returned(tutti_trainer *trainer)
{
    bool all = true;
    watchdog_lock(&trainer->watchdog);
    for (int i = 0; i < trainer->count; i++) all &= worker_is_idle_locked(&trainer->replicas[i].worker);
    watchdog_unlock(&trainer->watchdog);
    return all;
}

/* Calls that hung go on before or after their trainer is closed. */
static const char *end_session(struct session *session, int threads)
{
    const bool first = session->it->closes_first;
    const double start = clock_seconds();
    if (!first) layer->give(NULL);
    while (!first && session->trainer && !all_returned(session->trainer) && clock_seconds() - start < RETURN_S)
        sleep_s(0.001);
    const double begun = clock_seconds();
    session_close(session);
    const double closed_s = clock_seconds() - begun;
    layer->give(NULL);
    while (thread_count() > threads && clock_seconds() - begun < RETURN_S) sleep_s(0.002);
    if (thread_count() > threads) return say("%d threads are left, not %d", thread_count(), threads);
    return closed_s < RETURN_S ? NULL : say("closing it took %.0f s", closed_s);
}

/* ------------------------------------------------------------------------------------------------- the runs ---- */

static tutti_status train(struct session *session, tutti_runtime *runtime)
{
    const tutti_source test = session_source();
    const tutti_fitting fitting = { .epochs = EPOCHS,
        .save = checkpoint,
        .test = session->it->evaluates ? &test : NULL,
        .progress = progress_disturbed,
        .user = session };
    tutti_status status = TUTTI_OK;
    give_faults(session, runtime, BUILDING);
    TRY(session_compile(session, runtime));
    TRY(tutti_fit(session->trainer, FEED_PAIR(images, labels), SAMPLES, &fitting));
done:
    return status;
}

/* No device trains alone in this case, so that the newest parameters are always on the host. */
static bool host_has_all(const struct chaos_case *it)
{
    return it->mode == EQUAL || it->mode == GIVEN;
}

static const char *judge(struct session *session, const struct reference *reference, tutti_status status)
{
    const char *text = judge_status(session, status);
    if (!text && status == TUTTI_OK) text = judge_end(session, reference);
    if (session_rank() > 0) return text;
    if (!text && status == TUTTI_OK && !checkpoint_exists()) text = "it ended well without a checkpoint";
    if (!text && strstr(status_message(), "saved after step") && status != TUTTI_OK && !checkpoint_exists())
        text = "the checkpoint it tells of is not there";
    if (!text && session->trainer && is_device_fault(status) && host_has_all(session->it) &&
        !strstr(status_message(), "saved after step"))
        text = say("the host had the parameters, and nothing was saved: %s", status_message());
    return text;
}

static const char *run(const struct chaos_case *it, const struct reference *reference, tutti_runtime *runtime)
{
    struct session session = { .it = it };
    const int threads = thread_count();
    layer->give(NULL);
    last = train(&session, runtime);
    const char *text = judge(&session, reference, last);
    const char *end = end_session(&session, threads);
    if (!text) text = end;
    if (!text && session_rank() == 0 && checkpoint_exists()) text = judge_checkpoint(it, reference);
    return text;
}

const char *run_case(const struct chaos_case *it, double factor)
{
    patience = factor;
    reports = (struct reports) { 0 };
    const struct reference *reference = session_reference(it);
    if (!reference) return say("no undisturbed run: %s", status_message());
    tutti_runtime *runtime = session_runtime(it->memory);
    if (!runtime) return say("three devices are needed: %s", status_message());
    checkpoint_remove();
    const double start = clock_seconds();
    const char *text = run(it, reference, runtime);
    const double seconds = clock_seconds() - start;
    if (!text && seconds > patience * RUN_LIMIT_S) text = say("it took %.0f s", seconds);
    return text;
}

const char *run_log(void)
{
    return reports.lines;
}

int run_rank(void)
{
    return session_rank();
}

bool runs_go_on(void)
{
    return !hosts || last == TUTTI_OK;
}

bool run_may_be_late(const struct chaos_case *it)
{
    return reports.late > 0 && case_count(it, LAYER_HANG_CALL) + case_count(it, LAYER_HANG_DEVICE) > 0;
}

/* ------------------------------------------------------------------------------------------------ beginning ---- */

/* The loader has loaded it at the first call of OpenCL. */
static const struct fault_layer *find_layer(void)
{
    const char *path = getenv("OPENCL_LAYERS");
    void *library = path ? dlopen(path, RTLD_NOW | RTLD_NOLOAD) : NULL;
    return library ? dlsym(library, "fault_layer") : NULL;
}

const char *runs_begin(const char *name, int ranks)
{
    const char *text = sessions_begin(name, ranks);
    if (text) return text;
    layer = find_layer();
    return layer ? NULL : "the layer is not loaded: OPENCL_LAYERS has to name it and the loader to know layers";
}

static const char *run_without_faults(const struct chaos_case *it)
{
    static char text[1600];
    char what[1024];
    const char *found = run_case(it, 1);
    if (!found) return NULL;
    case_describe(it, what, sizeof(what));
    snprintf(text, sizeof(text), "%s: %s", what, found);
    return text;
}

/* Each device with 1 to 8 samples, and alone. */
static const char *warm_up(struct chaos_case it)
{
    static const int64_t parts[][DEVICES] = { { 8, 0, 0 }, { 0, 8, 0 }, { 0, 0, 8 }, { 7, 1, 0 }, { 1, 0, 7 },
        { 0, 7, 1 }, { 6, 2, 0 }, { 2, 0, 6 }, { 0, 6, 2 }, { 5, 3, 0 }, { 3, 0, 5 }, { 0, 5, 3 }, { 4, 4, 0 },
        { 0, 4, 4 } };
    const char *text = NULL;
    const int count = it.memory == SHARED && !it.adam ? (int)(sizeof(parts) / sizeof(*parts)) : DEVICES;
    it.mode = AUTO;
    it.evaluates = true;
    for (int i = 0; i < count && !text; i += it.change_count) {
        it.change_count = count - i < MOST_CHANGES ? count - i : MOST_CHANGES;
        for (int j = 0; j < it.change_count; j++) {
            it.changes[j] = (struct change) { .step = 1 + 3 * j, .wait_ms = 1000000 };
            memcpy(it.changes[j].weights, parts[i + j], sizeof(parts[0]));
        }
        text = run_without_faults(&it);
    }
    return text;
}

const char *runs_warm_up(void)
{
    const char *text = NULL;
    for (int network = 0; network < NETWORKS && !text; network++) {
        struct chaos_case it = { .ranks = 1, .network = (enum network)network };
        text = warm_up(it);
        it.memory = OWN;
        it.bf16 = true;
        if (!text) text = warm_up(it);
        it.adam = true;
        it.bf16 = false;
        it.micro_batch = it.network == NORM ? 0 : 3;
        if (!text) text = warm_up(it);
    }
    return text;
}

void runs_end(void)
{
    sessions_end();
}
