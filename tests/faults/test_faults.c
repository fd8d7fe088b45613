/* Breaks one of two devices at every call that it makes while a training is built and in one of its steps, and expects
 * what a run gives that never had that device. Needs two devices of OpenCL (POCL_DEVICES="pthread pthread") and the
 * layer beside this file (OPENCL_LAYERS); prints a table of what was tried. */
#include "base/random.h"
#include "base/threads.h"
#include "train/trainer.h"

#include "tests/faults/layer.h" /* after the headers that choose OpenCL's version */
#include "tests/tolerance.h"

#include <dlfcn.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { STEPS = 4, BROKEN_STEP = 1, SAMPLES = 8, CLASSES = 5, PIXELS = 2 * 7 * 7 };

static const struct fault_layer *layer;
static float images[STEPS * SAMPLES * PIXELS];
static int32_t labels[STEPS * SAMPLES];
static int passed, failed;
/* For a step that takes a few ms; for building, without compiling, what takes some more. */
#define STEP_LIMIT_S 0.3
#define BUILD_LIMIT_S 1.5

#define NAME_OF(name, text) text,
static const char *const kind_names[] = { LAYER_KINDS(NAME_OF) "any" };
static const char *const action_names[] = { LAYER_ACTIONS(NAME_OF) };
#undef NAME_OF

/* ------------------------------------------------------------------------------------------------- sessions ---- */

struct session {
    tutti_runtime *runtime;
    tutti_network *network;
    tutti_trainer *trainer;
};

/* How a run ended. */
struct outcome {
    tutti_status status;
    long broken; /* calls */
    double losses[STEPS];
    float *parameters;
    int64_t count;
};

static int lost; /* devices, as the log tells */

static void count_lost(void *user, tutti_log_level level, const char *line)
{
    (void)user;
    if (level <= TUTTI_LOG_WARN && strstr(line, "is lost")) lost++;
}

/* No batch normalisation: its statistics would depend on the division of the batch. */
static tutti_tensor network_make(tutti_network *network)
{
    tutti_tensor x = tutti_input(network, "x", TUTTI_SHAPE(2, 7, 7));
    x = tutti_conv2d(network, x, 6, 3, &(tutti_conv2d_options) { .name = "conv", .padding = 1 });
    x = tutti_relu(network, x);
    x = tutti_max_pool(network, x, 2, NULL);
    x = tutti_flatten(network, x);
    x = tutti_dropout(network, x, 0.3f);
    return tutti_dense(network, x, CLASSES, &(tutti_dense_options) { .name = "fc" });
}

static tutti_status session_open(struct session *session, const char *devices)
{
    tutti_status status = TUTTI_OK;
    const tutti_runtime_options options = { .devices = devices, .log = count_lost };
    *session = (struct session) { .runtime = tutti_open(&options) };
    if (!session->runtime) FAIL(TUTTI_NO_DEVICE, "cannot open devices %s: %s", devices, status_message());
    session->network = tutti_network_new(session->runtime);
done:
    return status;
}

static tutti_status session_compile(struct session *session, tutti_sharing sharing, double build_limit_s)
{
    const tutti_training training = { .momentum = 0.9f,
        .learning_rate = 0.05f,
        .batch = SAMPLES,
        .seed = 7,
        .sharing = sharing,
        .build_limit_s = build_limit_s };
    const tutti_tensor output = network_make(session->network);
    session->trainer = tutti_compile(session->network, output, &training);
    return session->trainer ? TUTTI_OK : TUTTI_DEVICE;
}

static void session_close(struct session *session)
{
    tutti_trainer_free(session->trainer);
    tutti_network_free(session->network);
    tutti_close(session->runtime);
}

static tutti_status session_step(struct session *session, int step, double *loss)
{
    tutti_metrics metrics = { 0 };
    const int first = step * SAMPLES;
    const tutti_status status =
        tutti_train_step(session->trainer, images + first * PIXELS, labels + first, SAMPLES, &metrics);
    *loss = metrics.loss;
    return status == TUTTI_OK && metrics.samples != SAMPLES ? TUTTI_INTERNAL : status;
}

static tutti_status session_parameters(struct session *session, struct outcome *outcome)
{
    const char *name;
    tutti_shape shape;
    outcome->count = 0;
    for (int i = 0; tutti_parameter_info(session->network, i, &name, &shape, NULL) == TUTTI_OK; i++) {
        int64_t elements = 1;
        for (int j = 0; j < shape.rank; j++) elements *= shape.sizes[j];
        outcome->parameters = realloc(outcome->parameters, (size_t)(outcome->count + elements) * sizeof(float));
        if (!outcome->parameters) abort();
        const tutti_status status =
            tutti_get_parameter(session->trainer, name, outcome->parameters + outcome->count, elements);
        if (status != TUTTI_OK) return status;
        outcome->count += elements;
    }
    return TUTTI_OK;
}

/* ----------------------------------------------------------------------------------------------------- cases ---- */

/* A step of two devices; of two that are taken for ones with memory of their own; one of the device that trains alone;
 * making all that is needed for a training. */
enum phase { PHASE_STEP, PHASE_APART, PHASE_ALONE, PHASE_BUILD, PHASES };
static const char *const phase_names[] = { "training", "training with memory of its own", "training alone",
    "building" };

/* Columns of the table: actions, and a call that fails for want of memory. */
enum { NO_MEMORY = LAYER_ACTION_COUNT, COLUMNS };

struct fault {
    enum phase phase;
    int victim; /* which of the two devices */
    struct layer_order order;
};

static bool is_hang(const struct fault *fault)
{
    return fault->order.action == LAYER_HANG_CALL || fault->order.action == LAYER_HANG_DEVICE;
}

/* Where a training began, so that one session serves many cases. */
struct snapshot {
    float *parameters, *state;
    struct position position;
    int64_t capacity[2];
};

static void *copy_of(const void *data, size_t bytes)
{
    void *copy = malloc(bytes);
    if (!copy) abort();
    return memcpy(copy, data, bytes);
}

static struct snapshot snapshot_take(const struct session *session)
{
    const tutti_trainer *trainer = session->trainer;
    return (struct snapshot) {
        .parameters = copy_of(trainer->parameters, (size_t)trainer->network->total_floats * sizeof(float)),
        .state = copy_of(trainer->states[0], (size_t)trainer->network->trained_floats * sizeof(float)),
        .position = trainer->position,
        .capacity = { trainer->replicas[0].capacity, trainer->replicas[1].capacity },
    };
}

/* A device that hung was let go: its thread comes back, and ends because nobody waits for it any more. */
static void revive(struct replica *replica)
{
    if (replica->abandoned) {
        pthread_join(replica->thread, NULL);
        replica->abandoned = replica->stop = false;
        replica_forget(replica);
        if (replica_thread(replica) != TUTTI_OK) abort();
    }
    replica->lost = false;
}

/* The devices were never really lost: the layer is. */
static void snapshot_restore(const struct snapshot *snapshot, struct session *session)
{
    tutti_trainer *trainer = session->trainer;
    memcpy(trainer->parameters, snapshot->parameters, (size_t)trainer->network->total_floats * sizeof(float));
    memcpy(trainer->states[0], snapshot->state, (size_t)trainer->network->trained_floats * sizeof(float));
    trainer->position = snapshot->position;
    for (int i = 0; i < trainer->count; i++) {
        revive(&trainer->replicas[i]);
        trainer->replicas[i].capacity = snapshot->capacity[i];
    }
    trainer_changed(trainer);
}

static long counted[LAYER_KIND_COUNT + 1]; /* of the last broken step or building */

static void take_counts(void)
{
    for (int kind = 0; kind <= LAYER_KIND_COUNT; kind++) counted[kind] = layer->calls((enum layer_kind)kind);
}

static void give(const struct session *session, const struct fault *fault)
{
    struct layer_order order = fault->order;
    order.device = session->runtime->devices[fault->victim].id;
    layer->give(&order);
}

/* All steps; an order is taken back after the step that it breaks. */
static tutti_status train(struct session *session, const struct fault *fault, struct outcome *outcome)
{
    tutti_status status = TUTTI_OK;
    for (int step = 0; step < STEPS; step++) {
        const bool breaks = step == BROKEN_STEP && fault && fault->phase != PHASE_BUILD;
        if (breaks) give(session, fault);
        status = session_step(session, step, &outcome->losses[step]);
        if (breaks) {
            take_counts();
            outcome->broken = layer->broken();
            layer->give(NULL);
        }
        if (status != TUTTI_OK) goto done;
    }
    TRY(session_parameters(session, outcome));
done:
    return status;
}

/* Compiles, with a fault on the way or without one. */
static tutti_status build(struct session *session, const struct fault *fault, struct outcome *outcome)
{
    tutti_status status = TUTTI_OK;
    session->network = tutti_network_new(session->runtime);
    const bool alone = fault && fault->phase == PHASE_ALONE;
    if (fault && !alone) give(session, fault);
    status = session_compile(
        session, alone ? TUTTI_SHARES_AUTO : TUTTI_SHARES_EQUAL, !alone && fault && is_hang(fault) ? BUILD_LIMIT_S : 0);
    if (fault && !alone) {
        take_counts();
        outcome->broken = layer->broken();
        layer->give(NULL);
    }
    return status;
}

/* NULL, or what is different. */
static const char *difference(const struct outcome *found, const struct outcome *wanted)
{
    static char text[160];
    const double limit = tolerance(TOLERANCE_DIVISION, 0);
    double largest = 0;
    if (found->count != wanted->count) return "the number of parameters differs";
    for (int step = 0; step < STEPS; step++)
        if (!(fabs(found->losses[step] - wanted->losses[step]) <= limit * fabs(wanted->losses[step]))) {
            snprintf(text, sizeof(text), "the loss of step %d is %.9g, not %.9g", step + 1, found->losses[step],
                wanted->losses[step]);
            return text;
        }
    for (int64_t i = 0; i < wanted->count; i++) largest = fmax(largest, fabs(wanted->parameters[i]));
    for (int64_t i = 0; i < wanted->count; i++)
        if (!(fabs((double)found->parameters[i] - wanted->parameters[i]) <= limit * largest)) {
            snprintf(text, sizeof(text), "parameter %lld is %.9g, not %.9g", (long long)i, found->parameters[i],
                wanted->parameters[i]);
            return text;
        }
    return NULL;
}

/* ----------------------------------------------------------------------------------------------------- table ---- */

struct cell {
    long tried, survived;
};
static struct cell table[PHASES][LAYER_KIND_COUNT][COLUMNS];

static int column_of(const struct layer_order *order)
{
    return order->code == CL_MEM_OBJECT_ALLOCATION_FAILURE ? NO_MEMORY : (int)order->action;
}

static void print_table(enum phase phase, const char *title)
{
    static const int columns[] = { LAYER_FAIL, LAYER_LOSE, NO_MEMORY, LAYER_NAN, LAYER_HANG_CALL, LAYER_HANG_DEVICE };
    printf("\n%s: tried/survived\n%-10s", title, "");
    for (size_t i = 0; i < sizeof(columns) / sizeof(*columns); i++)
        printf(" %12s", columns[i] == NO_MEMORY ? "no memory" : action_names[columns[i]]);
    printf("\n");
    for (int kind = 0; kind < LAYER_KIND_COUNT; kind++) {
        long any = 0;
        for (int column = 0; column < COLUMNS; column++) any += table[phase][kind][column].tried;
        if (!any) continue;
        printf("%-10s", kind_names[kind]);
        for (size_t i = 0; i < sizeof(columns) / sizeof(*columns); i++) {
            const struct cell *cell = &table[phase][kind][columns[i]];
            char text[32] = "-";
            if (cell->tried) snprintf(text, sizeof(text), "%ld/%ld", cell->tried, cell->survived);
            printf(" %12s", text);
        }
        printf("\n");
    }
}

/* Two devices, whose trainers serve all broken steps; the first one's runtime serves all broken buildings. */
static struct session pair, apart;
static struct snapshot before, before_apart;
static struct outcome reference; /* of a run on the first device alone */

static void judge(const struct fault *fault, const struct outcome *outcome, const char *text)
{
    const struct layer_order *order = &fault->order;
    struct cell *cell = &table[fault->phase][order->kind][column_of(order)];
    if (outcome->broken == 0 && !text) return; /* there was nothing to break */
    cell->tried++;
    cell->survived += !text;
    *(text ? &failed : &passed) += 1;
    if (!text) return;
    printf("FAILED: %s of %s %ld on device %d (code %d) while %s: %s\n", action_names[order->action],
        kind_names[order->kind], order->at, fault->victim, (int)order->code, phase_names[fault->phase], text);
}

static void try_step(const struct fault *fault)
{
    struct outcome outcome = { .status = TUTTI_OK };
    struct session *session = fault->phase == PHASE_APART ? &apart : &pair;
    snapshot_restore(fault->phase == PHASE_APART ? &before_apart : &before, session);
    outcome.status = train(session, fault, &outcome);
    const char *text = outcome.status ? status_message() : difference(&outcome, &reference);
    const struct replica *victim = &session->trainer->replicas[fault->victim];
    const bool no_memory = column_of(&fault->order) == NO_MEMORY && outcome.broken > 0;
    if (!text && no_memory && (victim->lost || victim->capacity >= before.capacity[fault->victim]))
        text = "the device was not kept with fewer samples at once";
    judge(fault, &outcome, text);
    free(outcome.parameters);
}

static void try_build(const struct fault *fault)
{
    struct outcome outcome = { .status = TUTTI_OK };
    struct session session = { .runtime = pair.runtime };
    outcome.status = build(&session, fault, &outcome);
    if (outcome.status == TUTTI_OK) outcome.status = train(&session, fault, &outcome);
    judge(fault, &outcome, outcome.status ? status_message() : difference(&outcome, &reference));
    free(outcome.parameters);
    session.runtime = NULL;
    session_close(&session);
}

/* The victim is the one device that trains, as if the other had been left out. */
static void leave_alone(struct session *session, int device)
{
    tutti_trainer *trainer = session->trainer;
    for (int i = 0; i < trainer->count; i++) trainer->balance.wanted[i] = i == device ? SAMPLES : 0;
    adapt_change(trainer);
    while (!background_is_done(&trainer->replicas[device])) nanosleep(&(struct timespec) { .tv_nsec = 1000000 }, NULL);
}

static void try_alone(const struct fault *fault)
{
    struct outcome outcome = { .status = TUTTI_OK };
    struct session session = { .runtime = pair.runtime };
    const char *text = NULL;
    outcome.status = build(&session, fault, &outcome);
    if (outcome.status == TUTTI_OK) {
        leave_alone(&session, fault->victim);
        session.trainer->step_limit_s = STEP_LIMIT_S;
        session.trainer->replicas[fault->victim].pace_s = STEP_LIMIT_S; /* else its first steps may take long */
        outcome.status = train(&session, fault, &outcome);
    }
    text = outcome.status ? status_message() : difference(&outcome, &reference);
    if (!text && !session.trainer->works[fault->victim].update) text = "the device did not train alone";
    judge(fault, &outcome, text);
    free(outcome.parameters);
    if (session.trainer) revive(&session.trainer->replicas[fault->victim]);
    session.runtime = NULL;
    session_close(&session);
}

/* Each call of each kind in turn; of more than `most` calls of a kind, so many that lie evenly. */
static void try_all(enum phase phase, int victim, enum layer_action action, int code, long most)
{
    static void (*const tries[])(const struct fault *) = { try_step, try_step, try_alone, try_build };
    void (*const try)(const struct fault *) = tries[phase];
    struct fault fault = { .phase = phase, .victim = victim, .order = { .kind = LAYER_ANY } };
    long calls[LAYER_KIND_COUNT];
    try(&fault);
    memcpy(calls, counted, sizeof(calls));
    for (int kind = 0; kind < LAYER_KIND_COUNT; kind++) {
        const long count = calls[kind] < most ? calls[kind] : most;
        for (long i = 0; i < count; i++) {
            fault.order = (struct layer_order) { .kind = (enum layer_kind)kind,
                .at = 1 + (count > 1 ? i * (calls[kind] - 1) / (count - 1) : 0),
                .action = action,
                .code = code };
            try(&fault);
        }
    }
}

/* A device gets other parameters than it was sent, finite ones: by option it is noticed, lost, and its step done again;
 * without, they are in the sum. */
static const char *wrong_parameters(int victim, bool check, struct outcome *outcome)
{
    const struct fault fault = {
        .phase = PHASE_APART, .victim = victim, .order = { .kind = LAYER_WRITE, .at = 1, .action = LAYER_FINITE }
    }; /* a step's first write is theirs */
    snapshot_restore(&before_apart, &apart);
    apart.trainer->check_replicas = check;
    outcome->status = train(&apart, &fault, outcome);
    apart.trainer->check_replicas = false;
    if (outcome->status != TUTTI_OK) return status_message();
    if (outcome->broken != 1) return "the parameters were not made wrong";
    const char *text = difference(outcome, &reference);
    if (!check) return text ? NULL : "the wrong parameters did no harm, so this test shows nothing";
    if (!text && !apart.trainer->replicas[victim].lost) return "the device was not lost";
    return text;
}

static void try_wrong_parameters(int victim, bool check)
{
    struct outcome outcome = { .status = TUTTI_OK };
    const char *text = wrong_parameters(victim, check, &outcome);
    if (text) printf("FAILED: wrong parameters on device %d, %s check: %s\n", victim, check ? "with" : "without", text);
    *(text ? &failed : &passed) += 1;
    free(outcome.parameters);
}

/* All devices fail for good in a step: what the steps before gave is saved, and another run goes on from there. */
static void lose_all(void *user, const tutti_progress *progress)
{
    (void)user;
    if (progress->total_steps == BROKEN_STEP)
        layer->give(&(struct layer_order) { .kind = LAYER_LAUNCH, .at = 3, .action = LAYER_LOSE });
}

static tutti_status save_and_resume(const char *name, struct outcome *outcome)
{
    tutti_status status = TUTTI_OK;
    struct session later = { 0 };
    tutti_fitting fitting = { .no_shuffle = true, .save = name, .progress = lose_all };
    snapshot_restore(&before, &pair);
    status = tutti_fit(pair.trainer, images, labels, STEPS * SAMPLES, &fitting);
    layer->give(NULL);
    if (!is_device_fault(status)) FAIL(TUTTI_INTERNAL, "the run without devices ended with status %d", status);
    if (!strstr(status_message(), ", saved after step 1:"))
        FAIL(TUTTI_INTERNAL, "the message does not tell of the checkpoint: %s", status_message());
    fitting = (tutti_fitting) { .no_shuffle = true, .resume = name };
    TRY(session_open(&later, "0"));
    TRY(build(&later, NULL, outcome));
    TRY(tutti_fit(later.trainer, images, labels, STEPS * SAMPLES, &fitting));
    memcpy(outcome->losses, reference.losses, sizeof(outcome->losses)); /* tutti_fit gives their mean alone */
    TRY(session_parameters(&later, outcome));
done:
    session_close(&later);
    return status;
}

static void try_no_device_left(void)
{
    char folder[] = "/tmp/tutti-faults-XXXXXX", name[64], command[64];
    struct outcome outcome = { .status = TUTTI_OK };
    if (!mkdtemp(folder)) abort();
    snprintf(name, sizeof(name), "%s/saved", folder);
    snprintf(command, sizeof(command), "rm -r '%s'", folder);
    const char *text = save_and_resume(name, &outcome) ? status_message() : difference(&outcome, &reference);
    if (text) printf("FAILED: no device left: %s\n", text);
    *(text ? &failed : &passed) += 1;
    if (system(command)) printf("cannot remove %s\n", folder);
    free(outcome.parameters);
}

/* ------------------------------------------------------------------------------------------------------ main ---- */

static void data_make(void)
{
    for (int i = 0; i < STEPS * SAMPLES; i++) {
        labels[i] = (int32_t)random_below(3, 1, (uint64_t)i, CLASSES);
        for (int j = 0; j < PIXELS; j++)
            images[i * PIXELS + j] = random_normal(3, 2, (uint64_t)(i * PIXELS + j)) +
                random_normal(3, 3, (uint64_t)(labels[i] * PIXELS + j));
    }
}

/* The layer that the loader has loaded; it does so at the first call of OpenCL. */
static const struct fault_layer *find_layer(void)
{
    const char *path = getenv("OPENCL_LAYERS");
    tutti_device_info *list = NULL;
    int count = 0;
    if (!path || tutti_devices_list(NULL, &list, &count) != TUTTI_OK) return NULL;
    tutti_devices_free(list);
    void *library = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    return library ? dlsym(library, "fault_layer") : NULL;
}

/* Two devices, which are trained without faults first. */
static tutti_status make_pair(struct session *session, bool own_memory, struct snapshot *snapshot)
{
    tutti_status status = TUTTI_OK;
    struct outcome two = { .status = TUTTI_OK };
    TRY(session_open(session, "0,1"));
    for (int i = 0; i < 2; i++) session->runtime->devices[i].can.unified &= !own_memory;
    TRY(build(session, NULL, &two));
    *snapshot = snapshot_take(session);
    session->trainer->step_limit_s = STEP_LIMIT_S;
    TRY(train(session, NULL, &two));
    const char *text = difference(&two, &reference);
    if (text) FAIL(TUTTI_INTERNAL, "without faults: %s", text);
done:
    free(two.parameters);
    return status;
}

/* The run that never had the second device, and the sessions of two that the cases share. */
static tutti_status prepare(void)
{
    tutti_status status = TUTTI_OK;
    struct session one = { 0 };
    TRY(session_open(&one, "0"));
    TRY(build(&one, NULL, &reference));
    TRY(train(&one, NULL, &reference));
    TRY(make_pair(&pair, false, &before));
    TRY(make_pair(&apart, true, &before_apart));
done:
    session_close(&one);
    return status;
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    layer = find_layer();
    if (!layer) {
        printf("the layer is not loaded: OPENCL_LAYERS has to name it and the loader to know layers\n"
               "0 passed, 1 failed\n");
        return 1;
    }
    data_make();
    const double start = clock_seconds();
    if (prepare() != TUTTI_OK) {
        printf("%s\n0 passed, 1 failed\n", status_message());
        return 1;
    }
    for (int victim = 0; victim < 2; victim++) {
        try_all(PHASE_STEP, victim, LAYER_FAIL, CL_INVALID_COMMAND_QUEUE, LONG_MAX);
        try_all(PHASE_STEP, victim, LAYER_FAIL, CL_OUT_OF_RESOURCES, LONG_MAX);
        try_all(PHASE_STEP, victim, LAYER_LOSE, CL_DEVICE_NOT_AVAILABLE, LONG_MAX);
    }
    try_all(PHASE_STEP, 1, LAYER_FAIL, CL_MEM_OBJECT_ALLOCATION_FAILURE, LONG_MAX);
    try_all(PHASE_BUILD, 1, LAYER_FAIL, CL_MEM_OBJECT_ALLOCATION_FAILURE, LONG_MAX);
    for (int victim = 0; victim < 2; victim++) {
        try_all(PHASE_APART, victim, LAYER_FAIL, CL_OUT_OF_RESOURCES, LONG_MAX);
        try_all(PHASE_APART, victim, LAYER_NAN, 0, LONG_MAX);
    }
    try_all(PHASE_APART, 1, LAYER_LOSE, CL_DEVICE_NOT_AVAILABLE, LONG_MAX);
    try_all(PHASE_APART, 1, LAYER_FAIL, CL_MEM_OBJECT_ALLOCATION_FAILURE, LONG_MAX);
    try_all(PHASE_APART, 0, LAYER_HANG_CALL, 0, LONG_MAX);
    try_all(PHASE_APART, 1, LAYER_HANG_DEVICE, 0, LONG_MAX);
    try_all(PHASE_STEP, 1, LAYER_NAN, 0, LONG_MAX);
    try_all(PHASE_STEP, 0, LAYER_NAN, 0, LONG_MAX);
    try_all(PHASE_STEP, 1, LAYER_HANG_CALL, 0, LONG_MAX);
    try_all(PHASE_STEP, 1, LAYER_HANG_DEVICE, 0, LONG_MAX);
    try_all(PHASE_ALONE, 0, LAYER_FAIL, CL_INVALID_COMMAND_QUEUE, LONG_MAX);
    try_all(PHASE_ALONE, 1, LAYER_LOSE, CL_DEVICE_NOT_AVAILABLE, LONG_MAX);
    try_all(PHASE_ALONE, 0, LAYER_HANG_CALL, 0, LONG_MAX);
    try_all(PHASE_ALONE, 1, LAYER_HANG_DEVICE, 0, LONG_MAX);
    try_all(PHASE_BUILD, 1, LAYER_FAIL, CL_OUT_OF_RESOURCES, LONG_MAX);
    try_all(PHASE_BUILD, 1, LAYER_LOSE, CL_DEVICE_NOT_AVAILABLE, LONG_MAX);
    try_all(PHASE_BUILD, 1, LAYER_HANG_CALL, 0, 1);
    for (int victim = 0; victim < 2; victim++) {
        try_wrong_parameters(victim, true);
        try_wrong_parameters(victim, false);
    }
    try_no_device_left();
    print_table(PHASE_STEP, "One training step");
    print_table(PHASE_APART, "A step of devices with memory of their own");
    print_table(PHASE_ALONE, "A step of one device alone, the other being left out");
    print_table(PHASE_BUILD, "Building");
    session_close(&pair);
    session_close(&apart);
    printf("\n%.0f s\n%d passed, %d failed\n", clock_seconds() - start, passed, failed);
    return failed ? 1 : 0;
}
