#include "tests/chaos/run.h"

#include "train/coming.h"
#include "train/trainer.h"

#include "base/random.h"
#include "base/threads.h"
#include "tests/tolerance.h"

#include <dirent.h>
#include <dlfcn.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { CLASSES = 5, PIXELS = 2 * 7 * 7, MOST_PARAMETERS = 1 << 12, TRAINING_SEED = 7 };

/* A step takes a few milliseconds and a plan tens of them. Where a device hangs, the run waits that long; where none
 * does, a busy machine must not look like a device that hangs. */
#define HANG_STEP_S 1.5
#define HANG_BUILD_S 5.0
#define NO_HANG_S 300.0
/* A rank may do an undisturbed run, or end one whose devices hang, while the other one waits. */
#define HOST_LIMIT_S 90.0
/* What hung and was let go ends within that time. */
#define RETURN_S 20.0
/* Gradients that were rounded to 8 bits, for a dozen steps: measured 4e-2 in 3000 runs. */
#define BF16_TOLERANCE 0.1

static const struct fault_layer *layer;
static tutti_hosts *hosts; /* NULL: this process alone */
static tutti_status last;  /* how the last run ended */
static float images[SAMPLES * PIXELS];
static int32_t labels[SAMPLES];
static tutti_runtime *single, *runtimes[MEMORY_KINDS];
static char name[256];             /* of the checkpoint */
static char said[512], told[4096]; /* why a run failed, and its warnings */

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

/* ------------------------------------------------------------------------------------------------- the log ---- */

static int late; /* devices that took too long */
static bool nonsense;
static double patience;

static void listen(void *user, tutti_log_level level, const char *line)
{
    static const char *const never[] = { "-1 of", "(null)", " of 0", "0 of 3", " -1 " };
    (void)user;
    if (level > TUTTI_LOG_WARN) return;
    for (size_t i = 0; i < sizeof(never) / sizeof(*never); i++) nonsense |= strstr(line, never[i]) != NULL;
    late += strstr(line, "did not finish") != NULL;
    const size_t length = strlen(told);
    snprintf(told + length, sizeof(told) - length, "    %s\n", line);
}

const char *run_log(void)
{
    return told;
}

/* --------------------------------------------------------------------------------------------- the training ---- */

static tutti_tensor network_make(tutti_network *network, enum network kind)
{
    tutti_tensor x = tutti_input(network, "x", TUTTI_SHAPE(2, 7, 7));
    if (kind == DENSE) {
        x = tutti_dense(network, tutti_flatten(network, x), 12, &(tutti_dense_options) { .name = "hidden" });
        x = tutti_relu(network, x);
    } else {
        x = tutti_conv2d(network, x, 6, 3, &(tutti_conv2d_options) { .name = "conv", .padding = 1 });
        if (kind == NORM) x = tutti_batch_norm(network, x, NULL);
        x = tutti_relu(network, x);
        x = tutti_flatten(network, tutti_max_pool(network, x, 2, NULL));
        if (kind == DROPOUT) x = tutti_dropout(network, x, 0.3f);
    }
    return tutti_dense(network, x, CLASSES, &(tutti_dense_options) { .name = "fc" });
}

struct session {
    const struct chaos_case *it;
    tutti_network *network;
    tutti_trainer *trainer;
    double epoch_losses[EPOCHS + 1];
    int epochs;
};

static tutti_status compile(struct session *session, tutti_runtime *runtime)
{
    const struct chaos_case *it = session->it;
    const bool hangs = case_count(it, LAYER_HANG_CALL) + case_count(it, LAYER_HANG_DEVICE) > 0;
    const tutti_training training = { .momentum = 0.9f,
        .learning_rate = it->adam ? 0.01f : 0.05f,
        .optimizer = it->adam ? TUTTI_ADAM : TUTTI_SGD,
        .epsilon = it->adam ? 1e-2f : 0, /* else gradients that are nearly 0 decide by their sign */
        .batch = STEP_SAMPLES,
        .seed = TRAINING_SEED,
        .micro_batch = it->micro_batch,
        .sharing = it->mode == EQUAL ? TUTTI_SHARES_EQUAL : TUTTI_SHARES_AUTO,
        .shares = it->mode == GIVEN && runtime != single ? it->shares : NULL,
        .hosts = runtime == single ? NULL : hosts,
        .sync_batchnorm = it->network == NORM,
        .check_replicas = it->check_replicas,
        .wire = it->bf16 ? TUTTI_BF16 : TUTTI_FP32,
        .step_limit_s = hangs ? patience * HANG_STEP_S : NO_HANG_S,
        .build_limit_s = hangs ? patience * HANG_BUILD_S : NO_HANG_S };
    session->network = tutti_network_new(runtime);
    session->trainer = tutti_compile(session->network, network_make(session->network, it->network), &training);
    if (!session->trainer) return TUTTI_DEVICE;
    return TUTTI_OK;
}

static void session_close(struct session *session)
{
    tutti_trainer_free(session->trainer);
    tutti_network_free(session->network);
    session->trainer = NULL;
    session->network = NULL;
}

struct parameters {
    int64_t count;
    float values[MOST_PARAMETERS];
};

static tutti_status parameters_get(const struct session *session, struct parameters *parameters)
{
    const char *title;
    tutti_shape shape;
    parameters->count = 0;
    for (int i = 0; tutti_parameter_info(session->network, i, &title, &shape, NULL) == TUTTI_OK; i++) {
        int64_t elements = 1;
        for (int j = 0; j < shape.rank; j++) elements *= shape.sizes[j];
        if (parameters->count + elements > MOST_PARAMETERS) return fail(TUTTI_INTERNAL, "too many parameters");
        const tutti_status status =
            tutti_get_parameter(session->trainer, title, parameters->values + parameters->count, elements);
        if (status != TUTTI_OK) return status;
        parameters->count += elements;
    }
    return TUTTI_OK;
}

/* NULL, or the difference. */
static const char *compare(const struct parameters *found, const struct parameters *wanted, double limit)
{
    double largest = 0;
    if (found->count != wanted->count) return "the number of parameters is another one";
    for (int64_t i = 0; i < wanted->count; i++) largest = fmax(largest, fabs((double)wanted->values[i]));
    for (int64_t i = 0; i < wanted->count; i++)
        if (!(fabs((double)found->values[i] - wanted->values[i]) <= limit * largest))
            return say("parameter %lld is %.9g, not %.9g (off by %.1e of the largest)", (long long)i, found->values[i],
                wanted->values[i], fabs((double)found->values[i] - wanted->values[i]) / largest);
    return NULL;
}

static void end_of_epoch(struct session *session, const tutti_progress *progress)
{
    if (progress->end_of_epoch && progress->epoch <= EPOCHS)
        session->epoch_losses[progress->epoch - 1] = progress->train.loss;
}

static void progress_alone(void *user, const tutti_progress *progress)
{
    end_of_epoch(user, progress);
}

/* From the checkpoint, to which another epoch is added: its optimizer's states count, too. */
static tutti_status finish(const struct chaos_case *it, struct parameters *parameters)
{
    struct session session = { .it = it };
    const tutti_fitting fitting = { .epochs = EPOCHS + 1, .resume = name };
    tutti_status status = TUTTI_OK;
    TRY(compile(&session, single));
    TRY(tutti_fit(session.trainer, images, labels, SAMPLES, &fitting));
    TRY(parameters_get(&session, parameters));
done:
    session_close(&session);
    return status;
}

/* -------------------------------------------------------------------------------------- the undisturbed run ---- */

/* On the first device alone. */
struct reference {
    bool made;
    double epoch_losses[EPOCHS + 1];
    struct parameters end, epoch_later;
};
static struct reference references[NETWORKS][2];

static void remove_checkpoint(void)
{
    static const char *const ends[] = { ".safetensors", ".state.safetensors" };
    char path[300];
    if (run_rank() > 0) return; /* rank 0 has it */
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof(path), "%s%s", name, ends[i]);
        (void)remove(path);
    }
}

static bool checkpoint_exists(void)
{
    char path[300];
    snprintf(path, sizeof(path), "%s.state.safetensors", name);
    return access(path, F_OK) == 0;
}

static tutti_status reference_make(const struct chaos_case *like, struct reference *reference)
{
    const struct chaos_case it = { .ranks = 1, .network = like->network, .adam = like->adam };
    struct session session = { .it = &it };
    tutti_fitting fitting = { .epochs = EPOCHS, .progress = progress_alone, .user = &session };
    tutti_status status = TUTTI_OK;
    TRY(compile(&session, single));
    TRY(tutti_fit(session.trainer, images, labels, SAMPLES, &fitting));
    TRY(parameters_get(&session, &reference->end));
    memcpy(reference->epoch_losses, session.epoch_losses, sizeof(session.epoch_losses));
    session_close(&session);
    fitting.epochs = EPOCHS + 1;
    TRY(compile(&session, single));
    TRY(tutti_fit(session.trainer, images, labels, SAMPLES, &fitting));
    TRY(parameters_get(&session, &reference->epoch_later));
    reference->made = true;
done:
    session_close(&session);
    return status;
}

static const struct reference *reference_of(const struct chaos_case *it)
{
    struct reference *reference = &references[it->network][it->adam];
    if (!reference->made && reference_make(it, reference) != TUTTI_OK) return NULL;
    return reference;
}

/* --------------------------------------------------------------------------------------------- disturbances ---- */

static void give_faults(const struct session *session, const tutti_runtime *runtime, int step)
{
    for (int i = 0; i < session->it->fault_count; i++) {
        const struct fault *fault = &session->it->faults[i];
        struct layer_order order = fault->order;
        if (fault->step != step || fault->rank != run_rank()) continue;
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
        const bool there = !trainer->replicas[i].lost && balance->devices[i].limit > 0;
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
    if (!trainer->adaption || adapt_is_changing(trainer) || coming_holds(trainer) || !want(trainer, change)) return;
    for (int i = 0; i < DEVICES; i++) trainer->balance.devices[i].tried = true; /* no other changes than these */
    adapt_change(trainer);
    const double start = clock_seconds();
    while (1e3 * (clock_seconds() - start) < change->wait_ms && !background_all_done(trainer)) sleep_s(0.001);
}

/* A device that is left out is probed after a twentieth of a second. */
static void rest(tutti_trainer *trainer)
{
    if (!trainer->adaption) return;
    trainer->balance.settled = true;
    sleep_s(0.02);
}

static void progress_disturbed(void *user, const tutti_progress *progress)
{
    struct session *session = user;
    const struct chaos_case *it = session->it;
    const int step = (int)progress->total_steps;
    end_of_epoch(session, progress);
    if (progress->end_of_epoch) return;
    give_faults(session, session->trainer->runtime, step);
    for (int i = 0; i < it->change_count; i++)
        if (it->changes[i].step == step) begin_change(session->trainer, &it->changes[i]);
    if (it->mode == PROBED) rest(session->trainer);
}

/* ------------------------------------------------------------------------------------------------ judgement ---- */

static bool is_documented(const struct chaos_case *it, tutti_status status)
{
    return is_device_fault(status) || (status == TUTTI_NOT_FINITE && case_count(it, LAYER_NAN) > 0);
}

/* A run with a device that is neither broken nor hangs must end well, and no such device may be lost. Two devices with
 * wrong numbers one after the other are what a training is that diverges. */
static const char *judge_status(const struct chaos_case *it, const struct session *session, tutti_status status)
{
    const unsigned victims = case_victims(it, run_rank());
    const bool diverges = status == TUTTI_NOT_FINITE && case_count(it, LAYER_NAN) > 1;
    if (nonsense) return "a warning has no sense";
    if (status != TUTTI_OK && !is_documented(it, status))
        return say("it ended with %s, which is not documented: %s", tutti_status_name(status), status_message());
    if (status != TUTTI_OK && !case_may_fail(it) && !diverges)
        return say("a device was left, and it ended with %s: %s", tutti_status_name(status), status_message());
    for (int i = 0; session->trainer && i < DEVICES; i++)
        if (session->trainer->replicas[i].lost && !(victims & 1u << i)) return say("device %d is healthy and lost", i);
    return NULL;
}

static const char *judge_end(struct session *session, const struct reference *reference, double limit)
{
    static struct parameters found;
    if (parameters_get(session, &found) != TUTTI_OK) return say("no parameters at the end: %s", status_message());
    for (int i = 0; i < EPOCHS; i++)
        if (!(fabs(session->epoch_losses[i] - reference->epoch_losses[i]) <= limit * fabs(reference->epoch_losses[i])))
            return say(
                "the loss of epoch %d is %.9g, not %.9g", i + 1, session->epoch_losses[i], reference->epoch_losses[i]);
    return compare(&found, &reference->end, limit);
}

/* Goes on from it, on another device, to where the undisturbed run came. */
static const char *judge_checkpoint(const struct chaos_case *it, const struct reference *reference, double limit)
{
    static struct parameters found;
    static char text[600];
    const struct chaos_case alone = { .ranks = 1, .network = it->network, .adam = it->adam };
    if (finish(&alone, &found) != TUTTI_OK) return say("its checkpoint is of no use: %s", status_message());
    const char *difference = compare(&found, &reference->epoch_later, limit);
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
    pthread_mutex_lock(&trainer->lock);
    for (int i = 0; i < trainer->count; i++) all &= !trainer->replicas[i].busy;
    pthread_mutex_unlock(&trainer->lock);
    return all;
}

/* What hung goes on before or after its trainer is closed. */
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

static tutti_status open_devices(enum memory_kind memory)
{
    if (runtimes[memory]) return TUTTI_OK;
    runtimes[memory] = tutti_open(&(tutti_runtime_options) { .devices = "0,1,2", .log = listen });
    if (!runtimes[memory]) return TUTTI_NO_DEVICE;
    for (int i = 0; i < DEVICES; i++) {
        struct device *device = &runtimes[memory]->devices[i];
        if (memory == OWN || (memory == MIXED && i == 1)) device->can.unified = device->host_memory = false;
    }
    return TUTTI_OK;
}

static int read_samples(void *user, const int64_t *indices, int64_t count, float *inputs, void *targets)
{
    (void)user;
    for (int64_t i = 0; i < count; i++) {
        memcpy(inputs + i * PIXELS, images + indices[i] * PIXELS, PIXELS * sizeof(float));
        memcpy((int32_t *)targets + i, labels + indices[i], sizeof(int32_t));
    }
    return 0;
}

static tutti_status train(struct session *session, tutti_runtime *runtime)
{
    const tutti_source test = { .samples = SAMPLES, .read = read_samples };
    const tutti_fitting fitting = { .epochs = EPOCHS,
        .save = name,
        .test = session->it->evaluates ? &test : NULL,
        .progress = progress_disturbed,
        .user = session };
    tutti_status status = TUTTI_OK;
    give_faults(session, runtime, BUILDING);
    TRY(compile(session, runtime));
    TRY(tutti_fit(session->trainer, images, labels, SAMPLES, &fitting));
done:
    return status;
}

static const char *judge(struct session *session, const struct reference *reference, tutti_status status)
{
    const struct chaos_case *it = session->it;
    const double limit = it->bf16 ? BF16_TOLERANCE : tolerance(TOLERANCE_DIVISION, 0);
    const char *text = judge_status(it, session, status);
    if (!text && status == TUTTI_OK) text = judge_end(session, reference, limit);
    if (run_rank() > 0) return text;
    if (!text && status == TUTTI_OK && !checkpoint_exists()) text = "it ended well without a checkpoint";
    if (!text && strstr(status_message(), "saved after step") && status != TUTTI_OK && !checkpoint_exists())
        text = "the checkpoint it tells of is not there";
    return text;
}

const char *run_case(const struct chaos_case *it, double factor)
{
    struct session session = { .it = it };
    patience = factor;
    told[0] = '\0';
    nonsense = false;
    late = 0;
    const struct reference *reference = reference_of(it);
    if (!reference) return say("no undisturbed run: %s", status_message());
    if (open_devices(it->memory) != TUTTI_OK) return say("three devices are needed: %s", status_message());
    remove_checkpoint();
    const int threads = thread_count();
    const double start = clock_seconds();
    layer->give(NULL);
    const tutti_status status = train(&session, runtimes[it->memory]);
    last = status;
    const char *text = judge(&session, reference, status);
    const char *end = end_session(&session, threads);
    if (!text) text = end;
    if (!text && run_rank() == 0 && checkpoint_exists())
        text = judge_checkpoint(it, reference, it->bf16 ? BF16_TOLERANCE : tolerance(TOLERANCE_DIVISION, 0));
    const double seconds = clock_seconds() - start;
    if (!text && seconds > patience * RUN_LIMIT_S) text = say("it took %.0f s", seconds);
    return text;
}

int run_rank(void)
{
    return hosts ? hosts->rank : 0;
}

bool runs_go_on(void)
{
    return !hosts || last == TUTTI_OK;
}

bool run_may_be_late(const struct chaos_case *it)
{
    return late > 0 && case_count(it, LAYER_HANG_CALL) + case_count(it, LAYER_HANG_DEVICE) > 0;
}

/* ------------------------------------------------------------------------------------------------ beginning ---- */

static void data_make(void)
{
    for (int i = 0; i < SAMPLES; i++) {
        labels[i] = (int32_t)random_below(3, 1, (uint64_t)i, CLASSES);
        for (int j = 0; j < PIXELS; j++)
            images[i * PIXELS + j] = random_normal(3, 2, (uint64_t)(i * PIXELS + j)) +
                random_normal(3, 3, (uint64_t)(labels[i] * PIXELS + j));
    }
}

/* The loader has loaded it at the first call of OpenCL. */
static const struct fault_layer *find_layer(void)
{
    const char *path = getenv("OPENCL_LAYERS");
    void *library = path ? dlopen(path, RTLD_NOW | RTLD_NOLOAD) : NULL;
    return library ? dlsym(library, "fault_layer") : NULL;
}

const char *runs_begin(const char *checkpoint, int ranks)
{
    snprintf(name, sizeof(name), "%s", checkpoint);
    data_make();
    if (ranks > 1) {
        hosts = tutti_hosts_open(&(tutti_hosts_options) { .limit_s = HOST_LIMIT_S });
        if (tutti_hosts_count(hosts) != ranks) return "two ranks are needed, started by mpirun";
    }
    single = tutti_open(&(tutti_runtime_options) { .devices = "0", .log = listen });
    if (!single) return status_message();
    layer = find_layer();
    if (!layer) return "the layer is not loaded: OPENCL_LAYERS has to name it and the loader to know layers";
    return NULL;
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
    remove_checkpoint();
    for (int i = 0; i < MEMORY_KINDS; i++) tutti_close(runtimes[i]);
    tutti_close(single);
    tutti_hosts_close(hosts);
}
