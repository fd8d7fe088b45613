#include "tests/chaos/session.h"
#include "tests/feeds.h"

#include "base/random.h"
#include "parallel/ranks.h"
#include "tutti_advanced.h"
#include "tutti_hosts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A step takes a few milliseconds and a plan tens of them. Where a device hangs, the run waits that long; where none
 * does, a busy machine must not look like a device that hangs. */
#define HANG_STEP_S 1.5
#define HANG_BUILD_S 5.0
#define NO_HANG_S 300.0
/* A rank may do an undisturbed run, or end one whose devices hang, while the other one waits. */
#define HOST_LIMIT_S 90.0
/* Where gradients are rounded: parameters move so little that a rounding error changes hardly any later gradient. */
#define SMALL_RATE 2e-4f

float images[SAMPLES * PIXELS];
int32_t labels[SAMPLES];
tutti_hosts *hosts;
char checkpoint[256];
double patience = 1;
struct reports reports;

static tutti_advanced_options advanced; /* of the training */
static tutti_runtime *single, *runtimes[MEMORY_KINDS];
/* By network and optimizer; the last kind for runs whose gradients are rounded. */
static struct reference references[NETWORKS][3];

/* ------------------------------------------------------------------------------------------------- devices ---- */

static void listen(void *user, tutti_log_level level, const char *line)
{
    static const char *const never[] = { "-1 of", "(null)", " of 0", "0 of 3", " -1 " };
    (void)user;
    if (level > TUTTI_LOG_WARN) return;
    for (size_t i = 0; i < sizeof(never) / sizeof(*never); i++) reports.nonsense |= strstr(line, never[i]) != NULL;
    reports.late += strstr(line, "did not finish") != NULL;
    const size_t length = strlen(reports.lines);
    snprintf(reports.lines + length, sizeof(reports.lines) - length, "    %s\n", line);
}

tutti_runtime *session_runtime(enum memory_kind memory)
{
    if (runtimes[memory]) return runtimes[memory];
    runtimes[memory] = tutti_open(&(tutti_runtime_options) { .devices = "0,1,2", .log = listen });
    for (int i = 0; runtimes[memory] && i < DEVICES; i++) {
        struct device *device = &runtimes[memory]->devices[i];
        if (memory == OWN || (memory == MIXED && i == 1)) device->can.unified = device->host_cpu = false;
    }
    return runtimes[memory];
}

static void data_make(void)
{
    for (int i = 0; i < SAMPLES; i++) {
        labels[i] = (int32_t)random_below(3, 1, (uint64_t)i, CLASSES);
        for (int j = 0; j < PIXELS; j++)
            images[i * PIXELS + j] = random_normal(3, 2, (uint64_t)(i * PIXELS + j)) +
                random_normal(3, 3, (uint64_t)(labels[i] * PIXELS + j));
    }
}

static int read_samples(
    void *user, const int64_t *indices, int64_t count, const tutti_buffer *buffers, int buffer_count)
{
    float *inputs = buffers[0].data;
    int32_t *targets = buffers[1].data;
    (void)user, (void)buffer_count;
    for (int64_t i = 0; i < count; i++) {
        memcpy(inputs + i * PIXELS, images + indices[i] * PIXELS, PIXELS * sizeof(float));
        targets[i] = labels[indices[i]];
    }
    return 0;
}

tutti_source session_source(void)
{
    return (tutti_source) { .samples = SAMPLES, .read = read_samples };
}

int session_rank(void)
{
    return hosts ? hosts->rank : 0;
}

const char *sessions_begin(const char *name, int ranks)
{
    snprintf(checkpoint, sizeof(checkpoint), "%s", name);
    data_make();
    if (ranks > 1) {
        hosts = tutti_hosts_open(&(tutti_hosts_options) { .limit_s = HOST_LIMIT_S });
        if (tutti_hosts_count(hosts) != ranks) return "two ranks are needed, started by mpirun";
    }
    single = tutti_open(&(tutti_runtime_options) { .devices = "0", .log = listen });
    return single ? NULL : status_message();
}

void sessions_end(void)
{
    checkpoint_remove();
    for (int i = 0; i < MEMORY_KINDS; i++) tutti_close(runtimes[i]);
    tutti_close(single);
    tutti_hosts_close(hosts);
}

/* ------------------------------------------------------------------------------------------------ sessions ---- */

/* Where gradients are rounded, the network has no kinks: a value that a rounding error moves across one changes a
 * gradient by much more. */
static tutti_tensor network_make(tutti_network *network, const struct chaos_case *it)
{
    const enum network kind = it->network;
    tutti_tensor (*const activate)(tutti_network *, tutti_tensor) = it->bf16 ? tutti_tanh : tutti_relu;
    tutti_tensor (*const pool)(tutti_network *, tutti_tensor, int64_t, const tutti_pool_options *) =
        it->bf16 ? tutti_average_pool : tutti_max_pool;
    tutti_tensor x = tutti_input(network, "x", TUTTI_SHAPE(2, 7, 7));
    if (kind == DENSE) {
        x = tutti_dense(network, tutti_flatten(network, x), 12, &(tutti_dense_options) { .name = "hidden" });
        x = activate(network, x);
    } else {
        x = tutti_conv2d(network, x, 6, 3, &(tutti_conv2d_options) { .name = "conv", .padding = 1 });
        if (kind == NORM) x = tutti_batch_norm(network, x, NULL);
        x = activate(network, x);
        x = tutti_flatten(network, pool(network, x, 2, NULL));
        if (kind == DROPOUT) x = tutti_dropout(network, x, 0.3f);
    }
    return tutti_dense(network, x, CLASSES, &(tutti_dense_options) { .name = "fc" });
}

static void add_sharing(const struct chaos_case *it, tutti_training *training)
{
    const bool hangs = case_count(it, LAYER_HANG_CALL) + case_count(it, LAYER_HANG_DEVICE) > 0;
    training->micro_batch = it->micro_batch;
    training->sharing = it->mode == EQUAL ? TUTTI_SHARES_EQUAL : TUTTI_SHARES_AUTO;
    training->shares = it->mode == GIVEN ? it->shares : NULL;
    training->hosts = hosts;
    advanced =
        (tutti_advanced_options) { .check_replicas = it->check_replicas, .wire = it->bf16 ? TUTTI_BF16 : TUTTI_FP32 };
    training->advanced = &advanced;
    training->step_limit_s = hangs ? patience * HANG_STEP_S : NO_HANG_S;
    training->build_limit_s = hangs ? patience * HANG_BUILD_S : NO_HANG_S;
}

tutti_status session_compile(struct session *session, tutti_runtime *runtime)
{
    const struct chaos_case *it = session->it;
    tutti_training training = { .momentum = 0.9f,
        .learning_rate = it->adam ? 0.01f
            : it->bf16            ? SMALL_RATE
                                  : 0.05f,
        .optimizer = it->adam ? TUTTI_ADAM : TUTTI_SGD,
        .epsilon = it->adam ? 1e-2f : 0, /* else gradients that are nearly 0 decide by their sign */
        .batch = STEP_SAMPLES,
        .seed = 7,
        .sync_batchnorm = it->network == NORM };
    if (runtime) add_sharing(it, &training);
    session->network = tutti_network_new(runtime ? runtime : single);
    session->trainer = tutti_compile(session->network, network_make(session->network, it), &training);
    return session->trainer ? TUTTI_OK : TUTTI_DEVICE;
}

void session_close(struct session *session)
{
    tutti_trainer_free(session->trainer);
    tutti_network_free(session->network);
    session->trainer = NULL;
    session->network = NULL;
}

void session_note(struct session *session, const tutti_progress *progress)
{
    if (progress->end_of_epoch && progress->epoch <= EPOCHS)
        session->losses[progress->epoch - 1] = progress->train.loss;
}

tutti_status parameters_get(const struct session *session, struct parameters *parameters)
{
    const char *name;
    tutti_shape shape;
    bool trained;
    parameters->count = 0;
    for (int i = 0; tutti_parameter_info(session->network, i, &name, &shape, &trained) == TUTTI_OK; i++) {
        int64_t elements = 1;
        for (int j = 0; j < shape.rank; j++) elements *= shape.sizes[j];
        if (parameters->count + elements > MOST_PARAMETERS) return fail(TUTTI_INTERNAL, "too many parameters");
        const tutti_status status =
            tutti_get_parameter(session->trainer, name, parameters->values + parameters->count, elements);
        if (status != TUTTI_OK) return status;
        for (int64_t j = 0; j < elements; j++) parameters->trained[parameters->count + j] = trained;
        parameters->count += elements;
    }
    return TUTTI_OK;
}

const char *parameters_compare(
    const struct parameters *found, const struct parameters *wanted, const struct parameters *from, double limit)
{
    static char text[160];
    double largest = 0;
    if (found->count != wanted->count) return "the number of parameters is another one";
    for (int64_t i = 0; i < wanted->count; i++)
        if (!from || from->trained[i])
            largest = fmax(largest, fabs((double)wanted->values[i] - (from ? from->values[i] : 0)));
    for (int64_t i = 0; i < wanted->count; i++) {
        const double off = fabs((double)found->values[i] - wanted->values[i]);
        if (off <= limit * largest) continue;
        snprintf(text, sizeof(text), "parameter %lld is %.9g, not %.9g (off by %.1e of the largest%s)", (long long)i,
            found->values[i], wanted->values[i], off / largest, from ? " change" : "");
        return text;
    }
    return NULL;
}

/* -------------------------------------------------------------------------------------- the undisturbed run ---- */

static int progress_single(void *user, const tutti_progress *progress)
{
    session_note(user, progress);
    return 0;
}

/* losses and start: of the epochs, and the parameters before the first one; or NULL. */
static tutti_status train_single(const struct chaos_case *it, int64_t epochs, const char *resume, double *losses,
    struct parameters *start, struct parameters *parameters)
{
    tutti_status status = TUTTI_OK;
    struct session session = { .it = it };
    const tutti_fitting fitting = { .epochs = epochs, .resume = resume, .progress = progress_single, .user = &session };
    TRY(session_compile(&session, NULL));
    if (start) TRY(parameters_get(&session, start));
    TRY(tutti_fit(session.trainer, FEED_PAIR(images, labels), SAMPLES, &fitting));
    TRY(parameters_get(&session, parameters));
    if (losses) memcpy(losses, session.losses, sizeof(session.losses));
done:
    session_close(&session);
    return status;
}

const struct reference *session_reference(const struct chaos_case *it)
{
    struct reference *reference = &references[it->network][it->adam ? 1 : it->bf16 ? 2 : 0];
    if (reference->made) return reference;
    reference->made =
        train_single(it, EPOCHS, NULL, reference->losses, &reference->start, &reference->end) == TUTTI_OK &&
        train_single(it, EPOCHS + 1, NULL, NULL, NULL, &reference->epoch_later) == TUTTI_OK;
    return reference->made ? reference : NULL;
}

tutti_status session_resume(const struct chaos_case *it, struct parameters *parameters)
{
    return train_single(it, EPOCHS + 1, checkpoint, NULL, NULL, parameters);
}

void checkpoint_remove(void)
{
    static const char *const ends[] = { ".safetensors", ".state.safetensors" };
    char path[300];
    if (session_rank() > 0) return; /* rank 0 has it */
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof(path), "%s%s", checkpoint, ends[i]);
        (void)remove(path);
    }
}

bool checkpoint_exists(void)
{
    char path[300];
    snprintf(path, sizeof(path), "%s.state.safetensors", checkpoint);
    return access(path, F_OK) == 0;
}
