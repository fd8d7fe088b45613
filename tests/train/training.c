#include "tests/train/training.h"
#include "tests/feeds.h"

#include "base/random.h"
#include "tutti_finetune.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const struct way training_ways[WAYS] = {
    { "0", false, { .sharing = TUTTI_SHARES_EQUAL } },
    { "0,1", false, { .sharing = TUTTI_SHARES_EQUAL } },
    { "0", true, { .sharing = TUTTI_SHARES_EQUAL, .micro_batch = 5 } },
    { "0,1", true, { .sharing = TUTTI_SHARES_EQUAL, .micro_batch = 3 } },
    { "0,1", false, { .sharing = TUTTI_SHARES_AUTO } },
};

float images[SAMPLES * PIXELS];
int32_t labels[SAMPLES];

void add_cases(TCase *cases, const TTest *test, int count)
{
    const char *tier = getenv("TUTTI_TESTS");
    const bool few = tier && !strcmp(tier, "few");
    for (int i = 0; i < count; i++)
        if (!few || i % 3 == 0 || i == count - 1) tcase_add_loop_test(cases, test, i, i + 1);
}

TCase *cases_new(Suite *suite, const char *name, void (*setup)(void), void (*teardown)(void))
{
    TCase *cases = tcase_create(name);
    tcase_add_checked_fixture(cases, setup, teardown);
    suite_add_tcase(suite, cases);
    return cases;
}

/* Each class has a pattern of its own, so that there is something to learn. */
void data_make(void)
{
    for (int i = 0; i < SAMPLES; i++) {
        labels[i] = (int32_t)random_below(3, 1, (uint64_t)i, CLASSES);
        for (int j = 0; j < PIXELS; j++)
            images[i * PIXELS + j] = random_normal(3, 2, (uint64_t)(i * PIXELS + j)) +
                random_normal(3, 3, (uint64_t)(labels[i] * PIXELS + j));
    }
}

static tutti_tensor norm_relu6(tutti_network *network, tutti_tensor x)
{
    return tutti_relu6(network, tutti_batch_norm(network, x, NULL));
}

static tutti_tensor network_apart(tutti_network *network)
{
    tutti_tensor x = tutti_input(network, "x", TUTTI_SHAPE(2, 7, 7)), shortcut;
    x = norm_relu6(network, tutti_conv2d(network, x, 24, 3, &(tutti_conv2d_options) { .padding = 1, .no_bias = true }));
    shortcut = x;
    x = norm_relu6(network, tutti_conv2d(network, x, 40, 1, &(tutti_conv2d_options) { .no_bias = true }));
    x = norm_relu6(network,
        tutti_conv2d(network, x, 40, 3, &(tutti_conv2d_options) { .padding = 1, .groups = 40, .no_bias = true }));
    x = tutti_conv2d(network, x, 24, 1, &(tutti_conv2d_options) { .no_bias = true });
    x = tutti_add(network, shortcut, tutti_batch_norm(network, x, NULL));
    x = tutti_flatten(network, tutti_global_average_pool(network, x));
    return tutti_dense(network, x, CLASSES, &(tutti_dense_options) { .name = "fc" });
}

static tutti_tensor network_pointwise(tutti_network *network)
{
    tutti_tensor x = tutti_input(network, "x", TUTTI_SHAPE(2, 7, 7));
    x = tutti_tanh(network, tutti_conv2d(network, x, 24, 1, NULL));
    x = tutti_tanh(network, tutti_conv2d(network, x, 40, 1, NULL));
    x = tutti_flatten(network, tutti_global_average_pool(network, x));
    x = tutti_tanh(network, tutti_dense(network, x, 33, NULL));
    return tutti_dense(network, x, CLASSES, &(tutti_dense_options) { .name = "fc" });
}

/* ------------------------------------------------------------------------------------------ residual blocks ---- */

static tutti_tensor norm(tutti_network *network, tutti_tensor x, const char *name)
{
    return tutti_batch_norm(network, x, &(tutti_batch_norm_options) { .name = name });
}

/* A block of residual networks: two convolutions and a shortcut, which is a convolution if the size changes. */
static tutti_tensor residual(tutti_network *network, tutti_tensor x, const char *name, int64_t channels, int64_t stride)
{
    tutti_conv2d_options options = { .padding = 1, .stride = stride, .no_bias = true };
    tutti_tensor shortcut = x;
    tutti_scope_push(network, name);
    x = norm(network, tutti_conv2d(network, x, channels, 3, &options), "mixed");
    options.stride = 1;
    x = norm(network, tutti_conv2d(network, tutti_relu(network, x), channels, 3, &options), "kept");
    if (stride > 1) {
        options = (tutti_conv2d_options) { .stride = stride, .no_bias = true };
        shortcut = norm(network, tutti_conv2d(network, shortcut, channels, 1, &options), "shortcut");
    }
    tutti_scope_pop(network);
    return tutti_relu(network, tutti_add(network, x, shortcut));
}

static tutti_tensor network_residual(tutti_network *network)
{
    tutti_tensor x = tutti_input(network, "x", TUTTI_SHAPE(2, 7, 7));
    x = tutti_conv2d(network, x, 16, 3, &(tutti_conv2d_options) { .padding = 1, .no_bias = true });
    x = tutti_relu(network, norm(network, x, "first"));
    x = residual(network, residual(network, x, "same", 16, 1), "smaller", 37, 2);
    x = tutti_flatten(network, x);
    x = tutti_relu(network, norm(network, tutti_dense(network, x, 19, NULL), "mixed"));
    return tutti_dense(network, x, CLASSES, &(tutti_dense_options) { .name = "fc" });
}

static bool ends_with(const char *text, const char *end)
{
    const size_t length = strlen(text), size = strlen(end);
    return length >= size && strcmp(text + length - size, end) == 0;
}

/* Normalised values are shifted away from the kinks of the activations, where rounding would decide about a gradient:
 * all are positive, but for every other channel of the layers named "mixed", whose values are all negative. */
static void shift_from_kinks(struct session *session)
{
    const char *name;
    tutti_shape shape;
    for (int i = 0; tutti_parameter_info(session->network, i, &name, &shape, NULL) == TUTTI_OK; i++) {
        float shifts[37];
        const bool mixed = ends_with(name, "mixed.bias");
        if (!mixed && !ends_with(name, "kept.bias") && !ends_with(name, "first.bias")) continue;
        for (int c = 0; c < shape.sizes[0]; c++) shifts[c] = mixed && c % 2 ? -5 : 5;
        ASSERT_OK(tutti_set_parameter(session->trainer, name, shifts, shape.sizes[0]));
    }
}

static tutti_tensor network_siamese(tutti_network *network)
{
    const tutti_tensor x = tutti_input(network, "x", TUTTI_SHAPE(2, 7, 7));
    tutti_tensor y = tutti_conv2d(network, x, 6, 3, &(tutti_conv2d_options) { .name = "conv", .padding = 1 });
    y = tutti_relu(
        network, tutti_batch_norm(network, y, &(tutti_batch_norm_options) { .name = "bn", .momentum = 0.7f }));
    const tutti_tensor weight = tutti_find_parameter(network, "bn.weight"),
                       bias = tutti_find_parameter(network, "bn.bias"),
                       mean = tutti_find_parameter(network, "bn.running_mean"),
                       var = tutti_find_parameter(network, "bn.running_var");
    y = tutti_conv2d(network, y, 6, 3, &(tutti_conv2d_options) { .name = "second", .padding = 1 });
    y = tutti_batch_norm(network, y,
        &(tutti_batch_norm_options) { .weight = &weight, .bias = &bias, .running_mean = &mean, .running_var = &var });
    y = tutti_flatten(network, tutti_relu(network, y));
    return tutti_dense(network, y, CLASSES, &(tutti_dense_options) { .name = "fc" });
}

static tutti_tensor network_make(tutti_network *network, enum kind kind)
{
    if (kind == KIND_SIAMESE) return network_siamese(network);
    if (kind == KIND_APART) return network_apart(network);
    if (kind == KIND_RESIDUAL) return network_residual(network);
    if (kind == KIND_POINTWISE) return network_pointwise(network);
    tutti_tensor x = tutti_input(network, "x", TUTTI_SHAPE(2, 7, 7));
    if (kind == KIND_WIDE) {
        x = tutti_dense(network, tutti_flatten(network, x), 10800, &(tutti_dense_options) { .name = "wide" });
        x = tutti_dense(network, tutti_relu(network, x), 100, &(tutti_dense_options) { .name = "narrow" });
        x = tutti_batch_norm(network, x, &(tutti_batch_norm_options) { .name = "bn" });
        return tutti_dense(network, tutti_relu(network, x), CLASSES, &(tutti_dense_options) { .name = "fc" });
    }
    x = tutti_conv2d(network, x, 6, 3, &(tutti_conv2d_options) { .name = "conv", .padding = 1 });
    if (kind == KIND_NORM) x = tutti_batch_norm(network, x, &(tutti_batch_norm_options) { .name = "bn" });
    x = tutti_relu(network, x);
    x = tutti_max_pool(network, x, 2, NULL);
    x = tutti_flatten(network, x);
    if (kind == KIND_DROPOUT || kind == KIND_GROUPS) x = tutti_dropout(network, x, 0.3f);
    x = tutti_dense(network, x, CLASSES, &(tutti_dense_options) { .name = "fc" });
    if (kind == KIND_GROUPS) {
        ASSERT_OK(tutti_group(network, "conv.*", &(tutti_group_options) { .rate_factor = 0.5f }));
        ASSERT_OK(tutti_group(network, "*.bias",
            &(tutti_group_options) { .rate_factor = 2, .has_weight_decay = true, .weight_decay = 0.1f }));
    }
    return x;
}

/* ------------------------------------------------------------------------------------------------ runtimes ---- */

static struct {
    const char *devices;
    bool apart;
    tutti_runtime *runtime;
} shared[8];
static int shared_count;
static bool sharing;

void sessions_share_runtimes(void)
{
    sharing = true;
}

void sessions_end(void)
{
    while (shared_count > 0) tutti_close(shared[--shared_count].runtime);
}

static bool is_shared(const tutti_runtime *runtime)
{
    for (int i = 0; i < shared_count; i++)
        if (shared[i].runtime == runtime) return true;
    return false;
}

static tutti_runtime *runtime_open(const char *devices, bool apart)
{
    tutti_runtime *runtime = tutti_open(&(tutti_runtime_options) { .devices = devices });
    ck_assert_msg(runtime, "%s", tutti_message(NULL));
    for (int i = 0; apart && i < runtime->count; i++) {
        runtime->devices[i].can.unified = false;
        runtime->devices[i].host_cpu = false; /* or a plan reads samples from staging, not from a copy */
    }
    return runtime;
}

tutti_runtime *session_runtime(const char *devices, bool apart)
{
    for (int i = 0; i < shared_count; i++)
        if (shared[i].apart == apart && !strcmp(shared[i].devices, devices)) return shared[i].runtime;
    tutti_runtime *runtime = runtime_open(devices, apart);
    if (!sharing) return runtime;
    ck_assert_int_lt(shared_count, (int)(sizeof(shared) / sizeof(*shared)));
    shared[shared_count].devices = devices;
    shared[shared_count].apart = apart;
    shared[shared_count++].runtime = runtime;
    return runtime;
}

/* ------------------------------------------------------------------------------------------------ sessions ---- */

static void compile(struct session *session, enum kind kind, const tutti_training *training, tutti_sharing shares)
{
    tutti_training filled = training ? *training : (tutti_training) { .momentum = 0.9f };
    if (filled.learning_rate == 0) filled.learning_rate = 0.05f;
    if (filled.batch == 0) filled.batch = STEP_SAMPLES;
    if (filled.seed == 0) filled.seed = 7;
    filled.sharing = shares;
    session->network = tutti_network_new(session->runtime);
    ck_assert_ptr_nonnull(session->network);
    const tutti_tensor output = network_make(session->network, kind);
    session->trainer = tutti_compile(session->network, output, &filled);
    if (session->trainer && kind == KIND_RESIDUAL) shift_from_kinks(session);
}

void session_compile(struct session *session, enum kind kind, const tutti_training *training)
{
    compile(session, kind, training, TUTTI_SHARES_EQUAL);
}

void session_try(
    struct session *session, const tutti_runtime_options *options, enum kind kind, const tutti_training *training)
{
    session->runtime = tutti_open(options);
    ck_assert_msg(session->runtime, "%s", tutti_message(NULL));
    session_compile(session, kind, training);
}

static void open_on(struct session *session, tutti_runtime *runtime, enum kind kind, const tutti_training *training,
    tutti_sharing shares)
{
    session->runtime = runtime;
    compile(session, kind, training, shares);
    ck_assert_msg(session->trainer, "%s", tutti_message(NULL));
}

void session_open(struct session *session, const char *devices, enum kind kind, const tutti_training *training)
{
    open_on(session, session_runtime(devices, false), kind, training, TUTTI_SHARES_EQUAL);
}

void session_open_apart(struct session *session, const char *devices, enum kind kind, const tutti_training *training)
{
    open_on(session, session_runtime(devices, true), kind, training, TUTTI_SHARES_EQUAL);
}

void session_open_automatic(
    struct session *session, const char *devices, enum kind kind, const tutti_training *training)
{
    open_on(session, session_runtime(devices, false), kind, training, TUTTI_SHARES_AUTO);
}

void session_open_automatic_apart(
    struct session *session, const char *devices, enum kind kind, const tutti_training *training)
{
    open_on(session, session_runtime(devices, true), kind, training, TUTTI_SHARES_AUTO);
}

void session_close(struct session *session)
{
    tutti_trainer_free(session->trainer);
    tutti_network_free(session->network);
    if (!is_shared(session->runtime)) tutti_close(session->runtime);
}

void session_steps(struct session *session, int steps)
{
    for (int step = 0; step < steps; step++) {
        const int first = step * STEP_SAMPLES % (SAMPLES - STEP_SAMPLES);
        ASSERT_OK(
            tutti_train_step(session->trainer, FEED_PAIR(images + first * PIXELS, labels + first), STEP_SAMPLES, NULL));
    }
}

typedef tutti_status (*getter)(tutti_trainer *trainer, const char *name, float *values, int64_t count);

static float *collected(const struct session *session, getter get, int64_t *count)
{
    float *values = NULL;
    const char *name;
    tutti_shape shape;
    *count = 0;
    for (int i = 0; tutti_parameter_info(session->network, i, &name, &shape, NULL) == TUTTI_OK; i++) {
        int64_t elements = 1;
        for (int j = 0; j < shape.rank; j++) elements *= shape.sizes[j];
        values = realloc(values, (size_t)(*count + elements) * sizeof(float));
        ck_assert_ptr_nonnull(values);
        ASSERT_OK(get(session->trainer, name, values + *count, elements));
        *count += elements;
    }
    ck_assert_int_gt(*count, 0);
    return values;
}

float *session_parameters(const struct session *session, int64_t *count)
{
    return collected(session, tutti_get_parameter, count);
}

float *session_gradients(const struct session *session, int64_t *count)
{
    return collected(session, tutti_get_gradient, count);
}

void same_bytes(struct session *a, struct session *b)
{
    int64_t count, other;
    float *left = session_parameters(a, &count), *right = session_parameters(b, &other);
    ck_assert_int_eq(count, other);
    for (int64_t i = 0; i < count; i++)
        ck_assert_msg(memcmp(&left[i], &right[i], sizeof(float)) == 0, "parameter %lld is %.9g and %.9g", (long long)i,
            left[i], right[i]);
    free(left);
    free(right);
}

void close_to(struct session *a, struct session *b, double tolerance)
{
    int64_t count, other;
    float *left = session_parameters(a, &count), *right = session_parameters(b, &other);
    double largest = 0;
    ck_assert_int_eq(count, other);
    for (int64_t i = 0; i < count; i++) largest = fmax(largest, fabs(left[i]));
    for (int64_t i = 0; i < count; i++)
        ck_assert_msg(fabs(left[i] - right[i]) <= tolerance * largest, "parameter %lld is %.9g and %.9g", (long long)i,
            left[i], right[i]);
    free(left);
    free(right);
}

void fails_with(tutti_status status, tutti_status wanted, const char *message)
{
    ck_assert_int_eq(status, wanted);
    ck_assert_msg(strstr(tutti_message(NULL), message), "\"%s\" is not in: %s", message, tutti_message(NULL));
}
