#include "tests/faults/training.h"
#include "tests/feeds.h"

#include "base/clock.h"
#include "base/random.h"

#include "parallel/rebalance.h"
#include "tests/tolerance.h"
#include "tutti_advanced.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FEW = 3 };      /* calls of each kind that are broken where the environment has TUTTI_TESTS=few */
#define CLIP_NORM 0.5f /* gradients' norms are larger */

const struct fault_layer *layer;
struct reports reports;
struct outcome reference;
long counted[LAYER_KIND_COUNT + 1];
/* Seconds: several times what the device that does not hang takes, on a busy machine. */
static const double build_limits[PHASES] = { [PHASE_BUILD] = 1.5, [PHASE_WARM] = 5 };

float images[STEPS * SAMPLES * PIXELS];
int32_t labels[STEPS * SAMPLES];
static int passed, failed;
static double started;

#define NAME_OF(name, text) text,
static const char *const kind_names[] = { LAYER_KINDS(NAME_OF) "any" };
static const char *const action_names[] = { LAYER_ACTIONS(NAME_OF) };
#undef NAME_OF
#define TEXT_OF(name, text, title) text,
#define TITLE_OF(name, text, title) title,
static const char *const phase_names[] = { PHASES_OF(TEXT_OF) };
static const char *const phase_titles[] = { PHASES_OF(TITLE_OF) };

/* ------------------------------------------------------------------------------------------------- sessions ---- */

static void listen(void *user, tutti_log_level level, const char *line)
{
    (void)user;
    if (level > TUTTI_LOG_WARN) return;
    reports.warnings++;
    for (const char *c = line; *c; c++) reports.lines += *c == '\n' && c[1];
    reports.lost += strstr(line, "is lost") != NULL;
    reports.left_out += strstr(line, "is left out") != NULL;
    reports.halved += strstr(line, "computes at most") != NULL;
    reports.set_aside += strstr(line, "are not used on") != NULL;
    snprintf(reports.last, sizeof(reports.last), "%s", line);
}

/* Without `norm` no batch normalisation: its statistics would depend on the division of the batch. */
static tutti_tensor network_make(tutti_network *network, bool norm)
{
    tutti_tensor x = tutti_input(network, "x", TUTTI_SHAPE(2, 7, 7));
    x = tutti_conv2d(network, x, 6, 3, &(tutti_conv2d_options) { .name = "conv", .padding = 1 });
    if (norm) x = tutti_batch_norm(network, x, NULL);
    x = tutti_relu(network, x);
    x = tutti_max_pool(network, x, 2, NULL);
    x = tutti_flatten(network, x);
    x = tutti_dropout(network, x, 0.3f);
    return tutti_dense(network, x, CLASSES, &(tutti_dense_options) { .name = "fc" });
}

tutti_status session_open(struct session *session, const char *devices, const char *cache_folder)
{
    tutti_status status = TUTTI_OK;
    const tutti_runtime_options options = { .devices = devices, .cache_folder = cache_folder, .log = listen };
    *session = (struct session) { .runtime = tutti_open(&options) };
    if (!session->runtime) FAIL(TUTTI_NO_DEVICE, "cannot open devices %s: %s", devices, status_message());
done:
    return status;
}

/* With clipping and so on. */
static tutti_trainer *clipping_compile(tutti_network *network, tutti_tensor output, tutti_training *training)
{
    static const float weights[CLASSES] = { 1, 0.5f, 2, 0.25f, 1.5f };
    const tutti_tensor targets = tutti_input_typed(network, "targets", TUTTI_DTYPE_I32, NULL, 0);
    const tutti_tensor loss = tutti_cross_entropy(network, output, targets,
        &(tutti_loss_options) { .label_smoothing = 0.1f, .class_weights = weights, .class_weight_count = CLASSES });
    training->losses = &loss;
    training->loss_count = 1;
    training->micro_batch = SAMPLES / 4;
    training->clip_norm = CLIP_NORM;
    training->ema_decay = 0.5f;
    return tutti_compile(network, output, training);
}

static tutti_status session_compile(struct session *session, tutti_sharing sharing, double build_limit_s)
{
    tutti_training training = { .momentum = 0.9f,
        .learning_rate = 0.05f,
        .batch = SAMPLES,
        .seed = 7,
        .sharing = sharing,
        .advanced = &(tutti_advanced_options) { .wire = session->wire },
        .sync_batchnorm = session->norm,
        .build_limit_s = build_limit_s };
    const tutti_tensor output = network_make(session->network, session->norm);
    session->trainer = session->clipping ? clipping_compile(session->network, output, &training)
                                         : tutti_compile(session->network, output, &training);
    return session->trainer ? TUTTI_OK : TUTTI_DEVICE;
}

void session_close(struct session *session)
{
    tutti_trainer_free(session->trainer);
    tutti_network_free(session->network);
    tutti_close(session->runtime);
}

tutti_status session_step(struct session *session, int step, double *loss)
{
    tutti_metrics metrics = { 0 };
    const int first = step * SAMPLES, next = first + SAMPLES;
    tutti_status status = TUTTI_OK;
    if (session->ahead && step + 1 < STEPS)
        status = tutti_train_prefetch(session->trainer, FEED_PAIR(images + next * PIXELS, labels + next), SAMPLES);
    if (status == TUTTI_OK)
        status =
            tutti_train_step(session->trainer, FEED_PAIR(images + first * PIXELS, labels + first), SAMPLES, &metrics);
    *loss = metrics.loss;
    if (status == TUTTI_OK && session->clipping && !(tutti_gradient_norm(session->trainer) > CLIP_NORM))
        status = fail(TUTTI_INTERNAL, "there was nothing to clip: this test shows nothing");
    return status == TUTTI_OK && metrics.samples != SAMPLES ? TUTTI_INTERNAL : status;
}

static float *outcome_more(struct outcome *outcome, int64_t floats)
{
    outcome->parameters = realloc(outcome->parameters, (size_t)(outcome->count + floats) * sizeof(float));
    if (!outcome->parameters) abort();
    outcome->count += floats;
    return outcome->parameters + outcome->count - floats;
}

tutti_status session_parameters(struct session *session, struct outcome *outcome)
{
    const tutti_trainer *trainer = session->trainer;
    const int ema = optimizer_ema_state(&trainer->optimizer);
    const char *name;
    tutti_shape shape;
    outcome->count = 0;
    for (int i = 0; tutti_parameter_info(session->network, i, &name, &shape, NULL) == TUTTI_OK; i++) {
        int64_t elements = 1;
        for (int j = 0; j < shape.rank; j++) elements *= shape.sizes[j];
        const tutti_status status =
            tutti_get_parameter(session->trainer, name, outcome_more(outcome, elements), elements);
        if (status != TUTTI_OK) return status;
    }
    if (ema < 0) return TUTTI_OK;
    const int64_t floats = trainer->network->trained_floats;
    memcpy(outcome_more(outcome, floats), trainer->store->master.states[ema], (size_t)floats * sizeof(float));
    return TUTTI_OK;
}

void revive(tutti_trainer *trainer, int device)
{
    struct replica *replica = &trainer->replicas[device];
    struct worker *worker = &replica->worker;
    if (worker->abandoned) {
        pthread_join(worker->thread, NULL);
        worker->abandoned = worker->stop = false;
        replica_end_attempt(replica);
        if (worker_thread(worker) != TUTTI_OK) abort();
    }
    trainer->members.states[device] = MEMBER_PRESENT;
}

void leave_single(struct session *session, int device)
{
    tutti_trainer *trainer = session->trainer;
    for (int i = 0; i < trainer->count; i++) trainer->balance.wanted[i] = i == device ? SAMPLES : 0;
    rebalance_start(trainer);
    while (!background_is_done(&trainer->replicas[device])) nanosleep(&(struct timespec) { .tv_nsec = 1000000 }, NULL);
}

/* ------------------------------------------------------------------------------------------------- breaking ---- */

bool is_hang(const struct fault *fault)
{
    return fault->order.action == LAYER_HANG_CALL || fault->order.action == LAYER_HANG_DEVICE;
}

int column_of(const struct layer_order *order)
{
    if (order->action != LAYER_FAIL) return (int)order->action;
    return order->code == CL_MEM_OBJECT_ALLOCATION_FAILURE ? NO_MEMORY
        : order->code == CL_OUT_OF_RESOURCES               ? NO_RESOURCES
                                                           : LAYER_FAIL;
}

void take_counts(void)
{
    for (int kind = 0; kind <= LAYER_KIND_COUNT; kind++) counted[kind] = layer->calls((enum layer_kind)kind);
}

void give(const struct session *session, const struct fault *fault)
{
    struct layer_order order = fault->order;
    order.device = session->runtime->devices[fault->victim].id;
    layer->give(&order);
}

/* An order holds from the first to the last of these steps; -1 is building. */
struct span {
    int first, last;
};

static struct span broken_steps(enum phase phase)
{
    static const struct span spans[PHASES] = { [PHASE_STEP] = { BROKEN_STEP, BROKEN_STEP },
        [PHASE_APART] = { BROKEN_STEP, BROKEN_STEP },
        [PHASE_WIRE] = { BROKEN_STEP, BROKEN_STEP },
        [PHASE_AHEAD] = { BROKEN_STEP, BROKEN_STEP },
        [PHASE_SYNC] = { BROKEN_STEP, BROKEN_STEP },
        [PHASE_CLIPPING] = { BROKEN_STEP, BROKEN_STEP },
        [PHASE_TOUCH] = { 0, 0 },
        [PHASE_SINGLE] = { BROKEN_STEP, BROKEN_STEP },
        [PHASE_CLIPPING_SINGLE] = { BROKEN_STEP, BROKEN_STEP },
        [PHASE_BUILD] = { -1, -1 },
        [PHASE_CLIPPING_BUILD] = { -1, -1 },
        [PHASE_WARM] = { -1, 0 }, /* programs are loaded during the first step, too */
        [PHASE_KEPT] = { -1, 0 },
        [PHASE_FIRST] = { -1, -1 },
        [PHASE_COLD] = { -1, 0 },
        [PHASE_OPEN] = { -1, -1 } };
    return spans[phase];
}

static void take_back(struct outcome *outcome)
{
    take_counts();
    outcome->broken = layer->broken();
    layer->give(NULL);
}

tutti_status train(struct session *session, const struct fault *fault, struct outcome *outcome)
{
    tutti_status status = TUTTI_OK;
    session->trainer->watchdog.step_limit_s = fault && is_hang(fault) ? HANG_LIMIT_S : STEP_LIMIT_S;
    for (int step = 0; step < STEPS; step++) {
        if (fault && step == broken_steps(fault->phase).first) give(session, fault);
        status = session_step(session, step, &outcome->losses[step]);
        if (fault && step == broken_steps(fault->phase).last) take_back(outcome);
        if (status != TUTTI_OK) goto done;
    }
    TRY(session_parameters(session, outcome));
done:
    return status;
}

tutti_status build(struct session *session, const struct fault *fault, struct outcome *outcome)
{
    tutti_status status = TUTTI_OK;
    session->network = tutti_network_new(session->runtime);
    const bool single = fault && (fault->phase == PHASE_SINGLE || fault->phase == PHASE_CLIPPING_SINGLE);
    const bool breaks = fault && broken_steps(fault->phase).first < 0;
    if (breaks) give(session, fault);
    status = session_compile(session, single ? TUTTI_SHARES_AUTO : TUTTI_SHARES_EQUAL,
        breaks && is_hang(fault) ? build_limits[fault->phase] : 0);
    if (breaks && (status != TUTTI_OK || broken_steps(fault->phase).last < 0)) take_back(outcome);
    return status;
}

bool tests_are_few(void)
{
    const char *tier = getenv("TUTTI_TESTS");
    return tier && !strcmp(tier, "few");
}

void try_all(void (*try)(const struct fault *), struct fault fault, long most)
{
    if (tests_are_few() && most > FEW) most = FEW;
    const struct layer_order order = fault.order;
    long calls[LAYER_KIND_COUNT];
    fault.order = (struct layer_order) { .kind = LAYER_ANY };
    try(&fault);
    memcpy(calls, counted, sizeof(calls));
    for (int kind = 0; kind < LAYER_KIND_COUNT; kind++) {
        const long count = calls[kind] < most ? calls[kind] : most;
        for (long i = 0; i < count; i++) {
            fault.order = order;
            fault.order.kind = (enum layer_kind)kind;
            fault.order.at = 1 + (count > 1 ? i * (calls[kind] - 1) / (count - 1) : 0);
            try(&fault);
        }
    }
}

tutti_status outcome_single(const struct session *kind, struct outcome *outcome)
{
    tutti_status status = TUTTI_OK;
    struct session one = { 0 };
    TRY(session_open(&one, "0", NULL));
    one.norm = kind->norm;
    one.clipping = kind->clipping;
    TRY(build(&one, NULL, outcome));
    TRY(train(&one, NULL, outcome));
done:
    session_close(&one);
    return status;
}

tutti_status reference_make(void)
{
    return outcome_single(&(struct session) { .norm = false }, &reference);
}

const char *difference(const struct outcome *found, const struct outcome *wanted)
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

void judge(const struct fault *fault, const struct outcome *outcome, const char *text)
{
    const struct layer_order *order = &fault->order;
    if (order->kind == LAYER_ANY && !text) return; /* calls were counted */
    if (outcome->broken == 0 && !text) return;     /* there was nothing to break */
    if (order->kind != LAYER_ANY) {
        struct cell *cell = &table[fault->phase][order->kind][column_of(order)];
        cell->tried++;
        cell->survived += !text;
    }
    *(text ? &failed : &passed) += 1;
    if (!text) return;
    printf("FAILED: %s of %s %ld on device %d (code %d) while %s: %s\n", action_names[order->action],
        kind_names[order->kind], order->at, fault->victim, (int)order->code, phase_names[fault->phase], text);
}

void expect(const char *what, const char *text)
{
    if (text) printf("FAILED: %s: %s\n", what, text);
    *(text ? &failed : &passed) += 1;
}

static const char *column_name(int column)
{
    return column == NO_MEMORY ? "no memory" : column == NO_RESOURCES ? "no resources" : action_names[column];
}

/* Only rows and columns in which something was tried. */
void print_table(enum phase phase)
{
    bool columns[COLUMNS] = { false }, rows[LAYER_KIND_COUNT] = { false };
    for (int kind = 0; kind < LAYER_KIND_COUNT; kind++)
        for (int column = 0; column < COLUMNS; column++)
            if (table[phase][kind][column].tried) rows[kind] = columns[column] = true;
    printf("\n%s: tried/survived\n%-10s", phase_titles[phase], "");
    for (int column = 0; column < COLUMNS; column++)
        if (columns[column]) printf(" %12s", column_name(column));
    printf("\n");
    for (int kind = 0; kind < LAYER_KIND_COUNT; kind++) {
        if (!rows[kind]) continue;
        printf("%-10s", kind_names[kind]);
        for (int column = 0; column < COLUMNS; column++) {
            const struct cell *cell = &table[phase][kind][column];
            char text[32] = "-";
            if (cell->tried) snprintf(text, sizeof(text), "%ld/%ld", cell->tried, cell->survived);
            if (columns[column]) printf(" %12s", text);
        }
        printf("\n");
    }
}

/* ------------------------------------------------------------------------------------------------ beginning ---- */

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

bool tests_begin(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    layer = find_layer();
    data_make();
    started = clock_seconds();
    if (layer) return true;
    printf("the layer is not loaded: OPENCL_LAYERS has to name it and the loader to know layers\n"
           "0 passed, 1 failed\n");
    return false;
}

int tests_end(void)
{
    printf("\n%.0f s\n%d passed, %d failed\n", clock_seconds() - started, passed, failed);
    return failed ? 1 : 0;
}
