/* Frozen parameters, groups, parameters that layers share, constants, and initial values that the caller gives. */
#include "tests/feeds.h"
#include "tests/train/folder.h"
#include "tests/train/reference.h"
#include "tests/train/test_devices.h"
#include "tests/train/training.h"
#include "tutti_finetune.h"
#include "tutti_inspect.h"
#include "tutti_steps.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STEPS = 3, WIDTH = 12, MOST = 1024 };
#define ROUNDING 2e-5

static void setup(void)
{
    data_make();
    folder_new();
}

/* Batch normalisation lies between frozen layers, so that its statistics alone are updated there; micro-batches change
 * them. */
static tutti_tensor build(tutti_network *network, bool normalises)
{
    tutti_tensor x = tutti_input(network, "images", TUTTI_SHAPE(2, 7, 7));
    x = tutti_conv2d(network, x, 4, 3, &(tutti_conv2d_options) { .name = "backbone.conv", .padding = 1 });
    if (normalises) x = tutti_batch_norm(network, x, &(tutti_batch_norm_options) { .name = "backbone.norm" });
    x = tutti_relu(network, x);
    x = tutti_dense(network, tutti_flatten(network, x), WIDTH, &(tutti_dense_options) { .name = "backbone.hidden" });
    x = tutti_dense(network, tutti_tanh(network, x), WIDTH, &(tutti_dense_options) { .name = "neck" });
    return tutti_dense(network, tutti_tanh(network, x), CLASSES, &(tutti_dense_options) { .name = "fc" });
}

static const char *const frozen[] = { "backbone.conv.weight", "backbone.conv.bias", "backbone.hidden.weight",
    "backbone.hidden.bias", "fc.bias", "backbone.norm.weight", "backbone.norm.bias" };
enum { FROZEN = sizeof(frozen) / sizeof(*frozen) };

static void compile(struct session *session, tutti_tensor output, tutti_training training)
{
    training.learning_rate = 0.05f;
    training.weight_decay = 0.01f;
    training.batch = STEP_SAMPLES;
    training.seed = 7;
    session->trainer = tutti_compile(session->network, output, &training);
    ck_assert_msg(session->trainer, "%s", tutti_message(NULL));
}

static void open_network(struct session *session, const struct way *way, bool freezes)
{
    *session = (struct session) { .runtime = session_runtime(way->devices, way->apart) };
    session->network = tutti_network_new(session->runtime);
    const tutti_tensor output = build(session->network, way->training.micro_batch == 0);
    if (freezes) {
        ASSERT_OK(tutti_freeze(session->network, "*"));
        ASSERT_OK(tutti_unfreeze(session->network, "neck.*"));
        ASSERT_OK(tutti_unfreeze(session->network, "fc.weigh?"));
    }
    tutti_training training = way->training;
    training.sync_batchnorm = way->training.micro_batch == 0;
    training.momentum = 0.9f;
    compile(session, output, training);
}

static int64_t elements_of(const tutti_network *network, const char *name)
{
    return network_find(network, name)->elements;
}

static void get(const struct session *session, const char *name, float *values)
{
    ASSERT_OK(tutti_get_parameter(session->trainer, name, values, elements_of(session->network, name)));
}

static void step(struct session *session, int number)
{
    const int first = number * STEP_SAMPLES;
    ASSERT_OK(
        tutti_train_step(session->trainer, FEED_PAIR(images + first * PIXELS, labels + first), STEP_SAMPLES, NULL));
}

/* The training is the same as one in which the caller writes their values back after each step. */
START_TEST(frozen_parameters_stay)
{
    static float first[FROZEN][8 * MOST], now[8 * MOST];
    struct session one, other;
    const struct way *way = &training_ways[_i];
    const int count = way->training.micro_batch == 0 ? FROZEN : FROZEN - 2;
    open_network(&one, &(struct way) { "0", false, way->training }, false);
    open_network(&other, way, true);
    for (int i = 0; i < count; i++) get(&other, frozen[i], first[i]);
    for (int number = 0; number < STEPS; number++) {
        for (int i = 0; i < count; i++)
            ASSERT_OK(tutti_set_parameter(one.trainer, frozen[i], first[i], elements_of(one.network, frozen[i])));
        step(&one, number);
        step(&other, number);
    }
    for (int i = 0; i < count; i++) {
        const size_t bytes = (size_t)elements_of(one.network, frozen[i]) * sizeof(float);
        ASSERT_OK(tutti_set_parameter(one.trainer, frozen[i], first[i], elements_of(one.network, frozen[i])));
        get(&other, frozen[i], now);
        ck_assert(memcmp(now, first[i], bytes) == 0);
        ck_assert_int_eq(
            tutti_get_gradient(other.trainer, frozen[i], now, elements_of(one.network, frozen[i])), TUTTI_INVALID);
    }
    close_to(&one, &other, ROUNDING);
    session_close(&one);
    session_close(&other);
}
END_TEST

/* Devices receive them once: new values have to reach all. */
START_TEST(frozen_parameters_can_be_set)
{
    enum { BIASES = CLASSES };
    static float before[SAMPLES * CLASSES], after[SAMPLES * CLASSES];
    const float shift[BIASES] = { 1, -2, 3, -4, 5 };
    float bias[BIASES];
    struct session session;
    open_network(&session, &training_ways[_i], true);
    step(&session, 0);
    ASSERT_OK(tutti_infer(session.trainer, FEED_ONE(images), SAMPLES, FETCH_FIRST(session.trainer, before)));
    get(&session, "fc.bias", bias);
    for (int i = 0; i < BIASES; i++) bias[i] += shift[i];
    ASSERT_OK(tutti_set_parameter(session.trainer, "fc.bias", bias, BIASES));
    ASSERT_OK(tutti_infer(session.trainer, FEED_ONE(images), SAMPLES, FETCH_FIRST(session.trainer, after)));
    for (int i = 0; i < SAMPLES * CLASSES; i++) ck_assert_float_eq_tol(after[i], before[i] + shift[i % BIASES], 1e-4f);
    session_close(&session);
}
END_TEST

START_TEST(frozen_parameters_are_saved)
{
    char folder[] = "/tmp/tutti-frozen-XXXXXX", name[64], command[96];
    struct session one, other;
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(name, sizeof(name), "%s/saved", folder);
    open_network(&one, &training_ways[1], true);
    open_network(&other, &training_ways[0], true);
    step(&one, 0);
    static float bias[CLASSES] = { 1, 2, 3, 4, 5 };
    ASSERT_OK(tutti_set_parameter(one.trainer, "fc.bias", bias, CLASSES));
    ASSERT_OK(tutti_save(one.trainer, name));
    ASSERT_OK(tutti_resume(other.trainer, name));
    same_bytes(&one, &other);
    step(&one, 1);
    step(&other, 1);
    close_to(&one, &other, ROUNDING);
    snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    ck_assert_int_eq(system(command), 0);
    session_close(&one);
    session_close(&other);
}
END_TEST

/* ----------------------------------------------------------------------------------------------------- groups ---- */

enum { TENSORS = 4 };

/* Rate and decay of each parameter; weight decay is 0.01 unless a group sets another one. */
static const struct {
    const char *name;
    double factor, decay;
} tensors[TENSORS] = { { "in.weight", 0.5, 0.01 }, { "in.bias", 0.5, 0 }, { "fc.weight", 1, 0.01 },
    { "fc.bias", 3, 0.2 } };

static void open_groups(struct session *session, const struct way *way, const tutti_training *rule)
{
    *session = (struct session) { .runtime = session_runtime(way->devices, way->apart) };
    tutti_network *network = session->network = tutti_network_new(session->runtime);
    tutti_tensor x = tutti_flatten(network, tutti_input(network, "images", TUTTI_SHAPE(2, 7, 7)));
    x = tutti_tanh(network, tutti_dense(network, x, WIDTH, &(tutti_dense_options) { .name = "in" }));
    x = tutti_dense(network, x, CLASSES, &(tutti_dense_options) { .name = "fc" });
    tutti_group_options slow = { .size = sizeof(slow), .rate_factor = 0.5f },
                        free_of_decay = { .size = sizeof(slow), .rate_factor = 0.5f, .has_weight_decay = true },
                        fast = {
                            .size = sizeof(slow), .rate_factor = 3, .has_weight_decay = true, .weight_decay = 0.2f
                        };
    ASSERT_OK(tutti_group(network, "*", &fast));
    ASSERT_OK(tutti_group(network, "fc.weight", NULL));
    ASSERT_OK(tutti_group(network, "in.*", &slow));
    ASSERT_OK(tutti_group(network, "in.b*", &free_of_decay));
    tutti_training training = *rule;
    training.sharing = way->training.sharing;
    training.shares = way->training.shares;
    training.micro_batch = way->training.micro_batch;
    compile(session, x, training);
}

/* Every optimizer, in every way, against double precision from the steps' own gradients; the rate changes on the way.
 */
START_TEST(groups_have_rates_and_decays)
{
    static struct reference kept[TENSORS][2 * MOST];
    static float values[2 * MOST];
    const tutti_training *rule = &reference_trainings[_i % REFERENCE_TRAININGS];
    struct session session;
    open_groups(&session, &training_ways[_i / REFERENCE_TRAININGS], rule);
    memset(kept, 0, sizeof(kept));
    for (int k = 0; k < TENSORS; k++) {
        get(&session, tensors[k].name, values);
        for (int64_t i = 0; i < elements_of(session.network, tensors[k].name); i++) kept[k][i].p = values[i];
    }
    for (int number = 0; number < STEPS; number++) {
        const float rate = number == 0 ? 0.05f : 0.02f;
        if (number == 1) ASSERT_OK(tutti_set_learning_rate(session.trainer, rate));
        step(&session, number);
        for (int k = 0; k < TENSORS; k++) {
            const int64_t count = elements_of(session.network, tensors[k].name);
            ASSERT_OK(tutti_get_gradient(session.trainer, tensors[k].name, values, count));
            for (int64_t i = 0; i < count; i++)
                reference_update(
                    &kept[k][i], rule, values[i], (double)rate * tensors[k].factor, tensors[k].decay, number + 1);
            get(&session, tensors[k].name, values);
            for (int64_t i = 0; i < count; i++)
                ck_assert_msg(fabs(values[i] - kept[k][i].p) < 2e-6 * (1 + fabs(kept[k][i].p)),
                    "step %d, %s[%d] is %.9g, and must be %.9g", number, tensors[k].name, (int)i, (double)values[i],
                    kept[k][i].p);
        }
    }
    session_close(&session);
}
END_TEST

static uint64_t memory_of(const struct session *session)
{
    tutti_device_report report;
    ASSERT_OK(tutti_report(session->trainer, 0, &report));
    return report.memory_bytes;
}

/* A float2 for each 256 floats, which the device's memory is told to hold; and none where nothing is grouped. */
START_TEST(groups_take_memory)
{
    struct session session;
    uint64_t bytes[2];
    for (int grouped = 0; grouped < 2; grouped++) {
        session = (struct session) { .runtime = session_runtime("0", false) };
        session.network = tutti_network_new(session.runtime);
        const tutti_tensor output = build(session.network, true);
        const tutti_group_options options = { .rate_factor = grouped ? 0.5f : 1 };
        ASSERT_OK(tutti_group(session.network, "fc.*", &options));
        compile(&session, output, (tutti_training) { .momentum = 0.9f });
        bytes[grouped] = memory_of(&session);
        ck_assert(grouped == (session.trainer->optimizer.groups != NULL));
        if (grouped) {
            const int64_t blocks = session.network->trained_floats / PARAMETER_ALIGNMENT;
            ck_assert_uint_eq(bytes[1] - bytes[0], (uint64_t)blocks * 2 * sizeof(float));
        }
        session_close(&session);
    }
}
END_TEST

/* With fixed shares, the result has the same bytes as without the interruption. */
START_TEST(groups_are_resumed)
{
    char folder[] = "/tmp/tutti-groups-XXXXXX", name[64], command[96];
    struct session one, other;
    const bool automatic = training_ways[_i].training.sharing == TUTTI_SHARES_AUTO;
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(name, sizeof(name), "%s/saved", folder);
    open_groups(&one, &training_ways[_i], &reference_trainings[REFERENCE_TRAININGS - 1]);
    open_groups(&other, &training_ways[_i], &reference_trainings[REFERENCE_TRAININGS - 1]);
    step(&one, 0);
    ASSERT_OK(tutti_save(one.trainer, name));
    ASSERT_OK(tutti_resume(other.trainer, name));
    for (int number = 1; number < STEPS; number++) {
        step(&one, number);
        step(&other, number);
    }
    if (automatic)
        close_to(&one, &other, ROUNDING);
    else
        same_bytes(&one, &other);
    snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    ck_assert_int_eq(system(command), 0);
    session_close(&one);
    session_close(&other);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------- sharing ---- */

/* Two layers of one shape; `shared`: they have one weight, and one bias. */
static void open_pair(struct session *session, const struct way *way, bool shared)
{
    *session = (struct session) { .runtime = session_runtime(way->devices, way->apart) };
    tutti_network *network = session->network = tutti_network_new(session->runtime);
    tutti_tensor x = tutti_flatten(network, tutti_input(network, "images", TUTTI_SHAPE(2, 7, 7)));
    x = tutti_tanh(network, tutti_dense(network, x, WIDTH, &(tutti_dense_options) { .name = "in" }));
    x = tutti_tanh(network, tutti_dense(network, x, WIDTH, &(tutti_dense_options) { .name = "a" }));
    const tutti_tensor weight = tutti_find_parameter(network, "a.weight"),
                       bias = tutti_find_parameter(network, "a.bias");
    tutti_dense_options again = { .name = "b" };
    if (shared) again.weight = &weight, again.bias = &bias;
    x = tutti_tanh(network, tutti_dense(network, x, WIDTH, &again));
    x = tutti_dense(network, x, CLASSES, &(tutti_dense_options) { .name = "fc" });
    static float values[WIDTH * WIDTH];
    for (int i = 0; i < WIDTH * WIDTH; i++) values[i] = 0.3f * (images[i] - 0.1f);
    static const char *const given[] = { "a.weight", "a.bias", "fc.weight", "fc.bias", "b.weight", "b.bias" };
    for (int i = 0; i < (shared ? 4 : 6); i++)
        ASSERT_OK(tutti_set_initial(network, given[i], values, elements_of(network, given[i])));
    compile(session, x, way->training);
    float found[WIDTH * WIDTH];
    get(session, "a.weight", found);
    ck_assert(memcmp(found, values, sizeof(found)) == 0);
}

static void gradient(const struct session *session, const char *name, float *values)
{
    ASSERT_OK(tutti_get_gradient(session->trainer, name, values, elements_of(session->network, name)));
}

START_TEST(shared_parameters_sum_their_gradients)
{
    static const char *const ends[] = { "weight", "bias" };
    struct session apart, shared;
    open_pair(&apart, &training_ways[0], false);
    open_pair(&shared, &training_ways[_i], true);
    ck_assert_ptr_null(network_find(shared.network, "b.weight"));
    ck_assert_int_eq(
        tutti_network_parameters(apart.network) - tutti_network_parameters(shared.network), WIDTH * WIDTH + WIDTH);
    step(&apart, 0);
    step(&shared, 0);
    for (int end = 0; end < 2; end++) {
        float a[WIDTH * WIDTH], b[WIDTH * WIDTH], both[WIDTH * WIDTH];
        char name[2][16];
        for (int i = 0; i < 2; i++) snprintf(name[i], sizeof(name[i]), "%c.%s", 'a' + i, ends[end]);
        gradient(&apart, name[0], a);
        gradient(&apart, name[1], b);
        gradient(&shared, name[0], both);
        for (int i = 0; i < elements_of(shared.network, name[0]); i++)
            ck_assert_float_eq_tol(both[i], a[i] + b[i], 1e-6f);
    }
    session_close(&apart);
    session_close(&shared);
}
END_TEST

/* On any devices the same training. */
START_TEST(shared_parameters_train)
{
    struct session one, other;
    open_pair(&one, &training_ways[0], true);
    open_pair(&other, &training_ways[_i], true);
    for (int number = 0; number < STEPS; number++) {
        step(&one, number);
        step(&other, number);
    }
    close_to(&one, &other, ROUNDING);
    session_close(&one);
    session_close(&other);
}
END_TEST

/* -------------------------------------------------------------------------------------------------- constants ---- */

static const float slopes[2] = { 0.5f, -2 };
static int32_t whole_shifts[7] = { -3, 2, 0, 1, -1, 4, -2 };

/* Images become slope[channel] (x + shift[column]) by constants; or the images that are fed are such ones. */
static void open_constant(struct session *session, const struct way *way, bool constants)
{
    *session = (struct session) { .runtime = session_runtime(way->devices, way->apart) };
    tutti_network *network = session->network = tutti_network_new(session->runtime);
    tutti_tensor x = tutti_input(network, "images", TUTTI_SHAPE(2, 7, 7));
    if (constants) {
        float copied[2] = { slopes[0], slopes[1] };
        const int64_t columns[] = { 7 };
        const tutti_tensor slope = tutti_constant(network, "fc.weight", TUTTI_SHAPE(2, 1, 1), copied),
                           whole = tutti_constant_typed(network, NULL, TUTTI_DTYPE_I32, columns, 1, whole_shifts),
                           shift = tutti_cast(network, whole, TUTTI_DTYPE_F32);
        copied[0] = 77;
        x = tutti_mul(network,
            tutti_op(network, "sub", (tutti_tensor[]) { x, tutti_op(network, "neg", &shift, 1, NULL) }, 2, NULL),
            slope);
    }
    x = tutti_dense(network, tutti_flatten(network, x), WIDTH, &(tutti_dense_options) { .name = "in" });
    x = tutti_tanh(network, x);
    x = tutti_dense(network, x, CLASSES, &(tutti_dense_options) { .name = "fc" });
    ASSERT_OK(tutti_freeze(network, "in.bias"));
    tutti_training training = way->training;
    training.momentum = 0.9f;
    compile(session, x, training);
}

static void shift_images(void)
{
    for (int i = 0; i < SAMPLES * PIXELS; i++)
        images[i] = slopes[i / 49 % 2] * (images[i] + (float)whole_shifts[i % 7]);
}

/* The first way trains on shifted images without constants; and a resumed training needs none in its files. */
START_TEST(constants_are_inputs)
{
    char folder[] = "/tmp/tutti-constant-XXXXXX", name[64], command[96];
    struct session one, other, resumed;
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(name, sizeof(name), "%s/saved", folder);
    open_constant(&other, &training_ways[_i], true);
    open_constant(&resumed, &training_ways[_i], true);
    for (int number = 0; number < STEPS; number++) step(&other, number);
    ASSERT_OK(tutti_save(other.trainer, name));
    ASSERT_OK(tutti_resume(resumed.trainer, name));
    same_bytes(&other, &resumed);
    step(&other, 0);
    step(&resumed, 0);
    close_to(&other, &resumed, ROUNDING);
    session_close(&resumed);
    shift_images();
    open_constant(&one, &training_ways[0], false);
    for (int number = 0; number <= STEPS; number++) step(&one, number % STEPS);
    close_to(&one, &other, ROUNDING);
    ASSERT_OK(tutti_load_weights(one.trainer, strcat(name, ".safetensors")));
    snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    ck_assert_int_eq(system(command), 0);
    session_close(&one);
    session_close(&other);
}
END_TEST

static tutti_tensor op(tutti_network *network, const char *name, tutti_tensor a, const char *attributes)
{
    return tutti_op(network, name, &a, 1, attributes);
}

/* Results of operations on constants are added to an input of zeros. A dense layer with a constant weight follows, so
 * that a training learns nothing but a bias. */
START_TEST(constants_go_through_operations)
{
    static const char *const chains[][3] = { { "relu", "reshape", "shape=2,3" },
        { "transpose", "reshape", "shape=2,3" }, { "softmax", "transpose", "perm=1,0" }, { "exp", "transpose", NULL } };
    static const float values[6] = { -1, 2, 0.5f, -3, 1, 0.25f };
    float y[12] = { 0 };
    const float x[12] = { 0 };
    struct session session = { .runtime = session_runtime("0", false) };
    tutti_network *network = session.network = tutti_network_new(session.runtime);
    const tutti_tensor c = tutti_constant(network, "c", TUTTI_SHAPE(3, 2), values);
    tutti_tensor out = tutti_input(network, "x", TUTTI_SHAPE(2, 3));
    tutti_tensor one = op(network, chains[_i][0], c, NULL);
    one = op(network, chains[_i][1], one, chains[_i][2]);
    one = tutti_add(network, one, op(network, "reduce_max", c, "axes=0,1 keepdims=0"));
    out = tutti_flatten(network, tutti_add(network, out, one));
    const tutti_tensor w = tutti_constant(network, "w", TUTTI_SHAPE(1, 6), values);
    tutti_tensor z = tutti_op(network, "dense", (tutti_tensor[]) { out, w }, 2, NULL);
    z = tutti_add(network, z, tutti_parameter(network, "bias", TUTTI_SHAPE(1), NULL));
    compile(&session, z, (tutti_training) { .loss = TUTTI_MSE, .outputs = &out, .output_count = 1 });
    ASSERT_OK(tutti_train_step(session.trainer, FEED_PAIR(x, y), 2, NULL));
    const tutti_fetch fetch = { out, TUTTI_DTYPE_F32, y };
    for (int again = 0; again < 2; again++) ASSERT_OK(tutti_infer(session.trainer, FEED_ONE(x), 2, &fetch, 1));
    for (int i = 0; i < 6; i++) {
        const int r = i / 3, k = i % 3, across = 2 * k + r;
        const double soft = exp(values[across]) / (exp(values[2 * k]) + exp(values[2 * k + 1]));
        const double wanted[] = { fmaxf(values[i], 0), values[across], soft, exp(values[across]) };
        ck_assert_double_eq_tol((double)y[i], wanted[_i] + 2, 1e-6 * (3 + fabs(wanted[_i])));
        ck_assert(y[i] == y[6 + i]);
    }
    session_close(&session);
}
END_TEST

START_TEST(constants_are_no_parameters)
{
    struct session session;
    float values[2];
    const char *name;
    open_constant(&session, &training_ways[0], true);
    for (int i = 0; i < 4; i++) {
        ASSERT_OK(tutti_parameter_info(session.network, i, &name, NULL, NULL));
        ck_assert_str_ne(name, "constant");
    }
    fails_with(tutti_parameter_info(session.network, 4, NULL, NULL, NULL), TUTTI_INVALID, "has 4 parameters");
    fails_with(tutti_get_parameter(session.trainer, "constant", values, 2), TUTTI_INVALID, "'constant'");
    ck_assert_int_eq(elements_of(session.network, "fc.weight"), WIDTH * CLASSES);
    session_close(&session);
}
END_TEST

/* ----------------------------------------------------------------------------------------------------- errors ---- */

START_TEST(wrong_calls_are_reported)
{
    struct session session;
    float values[CLASSES] = { 0 };
    open_network(&session, &training_ways[0], false);
    tutti_network *network = session.network;
    fails_with(tutti_freeze(network, "fc.*"), TUTTI_INVALID, "a trainer uses this network");
    fails_with(tutti_set_initial(network, "fc.bias", values, CLASSES), TUTTI_INVALID, "a trainer uses this network");
    fails_with(tutti_group(network, "fc.bias", NULL), TUTTI_INVALID, "a trainer uses this network");
    tutti_trainer_free(session.trainer);
    session.trainer = NULL;
    fails_with(tutti_freeze(network, "head.*"), TUTTI_INVALID, "'head.*'");
    fails_with(tutti_freeze(network, NULL), TUTTI_INVALID, "no name");
    fails_with(tutti_group(network, "head.*", NULL), TUTTI_INVALID, "'head.*'");
    tutti_group_options group = { .size = sizeof(group), .rate_factor = -1 };
    fails_with(tutti_group(network, "*", &group), TUTTI_INVALID, "rate_factor is -1");
    group = (tutti_group_options) { .size = sizeof(group), .weight_decay = 0.1f };
    fails_with(tutti_group(network, "*", &group), TUTTI_INVALID, "has_weight_decay is false");
    group = (tutti_group_options) { .size = sizeof(group), .has_weight_decay = true, .weight_decay = NAN };
    fails_with(tutti_group(network, "*", &group), TUTTI_INVALID, "weight_decay is nan");
    fails_with(tutti_set_initial(network, "fc.bias", values, 3), TUTTI_INVALID, "'fc.bias' has 5 elements");
    fails_with(tutti_set_initial(network, "fc.bias", NULL, CLASSES), TUTTI_INVALID, "NULL");
    fails_with(tutti_set_initial(network, "fc.b", values, CLASSES), TUTTI_INVALID, "'fc.b'");
    const tutti_tensor weight = tutti_find_parameter(network, "fc.weight");
    fails_with(tutti_compile(network, weight, NULL) ? TUTTI_OK : TUTTI_INVALID, TUTTI_INVALID, "is a parameter");
    fails_with(tutti_compile(network, (tutti_tensor) { 0 }, NULL) ? TUTTI_OK : TUTTI_INVALID, TUTTI_INVALID,
        "the loss depends on no parameter");
    ASSERT_OK(tutti_freeze(network, "*"));
    fails_with(tutti_compile(network, (tutti_tensor) { 0 }, NULL) ? TUTTI_OK : TUTTI_INVALID, TUTTI_INVALID,
        "no parameters to train");
    session_close(&session);
}
END_TEST

/* Arguments that a builder refuses. */
static const struct wrong {
    tutti_status status;
    const char *message;
} wrongs[] = {
    { TUTTI_INVALID, "the parameter 'w' as its input" },
    { TUTTI_SHAPE, "another shape than this layer's weight" },
    { TUTTI_INVALID, "which depends on the samples" },
    { TUTTI_INVALID, "'nothing'" },
    { TUTTI_INVALID, "two parameters have the name w" },
    { TUTTI_SHAPE, "0 dimensions" },
    { TUTTI_SHAPE, "constant k has 0 dimensions" },
    { TUTTI_INVALID, "values of constant k are NULL" },
    { TUTTI_INVALID, "constant k has type 5" },
    { TUTTI_SHAPE, "constant would have size 0 in dimension 1" },
    { TUTTI_INVALID, "which is not of float32" },
    { TUTTI_SHAPE, "parameter v has 2 dimensions at NULL" },
    { TUTTI_SHAPE, "reshape: the shape has 9 sizes" },
    { TUTTI_INVALID, "running_mean is 'w', which is not a running statistic" },
    { TUTTI_INVALID, "weight is 'bn.running_var', which is a running statistic" },
    { TUTTI_INVALID, "the constant 'k' as its input" },
};

static void build_wrong(tutti_network *network, int number)
{
    const float values[4] = { 0 };
    tutti_tensor k;
    const tutti_tensor x = tutti_input(network, "x", TUTTI_SHAPE(4)),
                       w = tutti_parameter(network, "w", TUTTI_SHAPE(3, 4), NULL);
    switch (number) {
    case 0: tutti_relu(network, w); break;
    case 1: tutti_dense(network, x, 4, &(tutti_dense_options) { .weight = &w }); break;
    case 2: tutti_dense(network, x, 3, &(tutti_dense_options) { .weight = &x }); break;
    case 3: tutti_find_parameter(network, "nothing"); break;
    case 4: tutti_parameter(network, "w", TUTTI_SHAPE(1), NULL); break;
    case 5: tutti_parameter(network, "v", (tutti_shape) { 0 }, NULL); break;
    case 6: tutti_constant(network, "k", (tutti_shape) { 0 }, values); break;
    case 7: tutti_constant(network, "k", TUTTI_SHAPE(4), NULL); break;
    case 8: tutti_constant_typed(network, "k", TUTTI_DTYPE_U8, (int64_t[]) { 4 }, 1, values); break;
    case 9: tutti_constant(network, NULL, TUTTI_SHAPE(4, 0), values); break;
    case 11: tutti_parameter_sized(network, "v", NULL, 2, NULL); break;
    case 12: tutti_reshape_sized(network, x, (int64_t[9]) { 4 }, 9); break;
    case 13: tutti_batch_norm(network, x, &(tutti_batch_norm_options) { .running_mean = &w }); break;
    case 14:
        tutti_batch_norm(network, x, &(tutti_batch_norm_options) { .name = "bn" });
        k = tutti_find_parameter(network, "bn.running_var");
        tutti_batch_norm(network, x, &(tutti_batch_norm_options) { .weight = &k });
        break;
    case 15: tutti_relu(network, tutti_constant(network, "k", TUTTI_SHAPE(4), values)); break;
    default:
        k = tutti_constant_typed(network, "k", TUTTI_DTYPE_I32, (int64_t[]) { 1, 4 }, 2, values);
        tutti_dense(network, x, 1, &(tutti_dense_options) { .weight = &k });
    }
}

START_TEST(wrong_parameters_are_reported)
{
    tutti_runtime *runtime = session_runtime("0", false);
    tutti_network *network = tutti_network_new(runtime);
    build_wrong(network, _i);
    fails_with(tutti_network_status(network), wrongs[_i].status, wrongs[_i].message);
    tutti_network_free(network);
}
END_TEST

/* A parameter of one number scales an input that is joined twenty times: the gradients are known. */
START_TEST(scalars_train)
{
    enum { JOINED = 20, SIZE = 3 };
    static float gradient[STEP_SAMPLES * SIZE];
    const struct way *way = &training_ways[_i];
    const float value = 1.5f;
    float scale, found, sum = 0, factors = 0;
    tutti_tensor parts[JOINED];
    struct session session = { .runtime = session_runtime(way->devices, way->apart) };
    tutti_network *network = session.network = tutti_network_new(session.runtime);
    const tutti_tensor x = tutti_input(network, "x", TUTTI_SHAPE(SIZE));
    const tutti_tensor s = tutti_parameter_sized(network, "scale", NULL, 0,
        &(tutti_parameter_options) { .size = sizeof(tutti_parameter_options), .values = &value });
    const tutti_tensor scaled = tutti_mul(network, x, s);
    for (int i = 0; i < JOINED; i++) {
        const float factor = (float)(i + 1) / 8;
        parts[i] = tutti_mul(network, scaled, tutti_constant(network, NULL, TUTTI_SHAPE(1), &factor));
        factors += factor;
    }
    const tutti_tensor joined = tutti_concat(network, parts, JOINED, 0), loss = tutti_mean(network, joined, NULL);
    tutti_training training = way->training;
    training.batch = STEP_SAMPLES;
    training.learning_rate = 0.25f;
    training.losses = &loss;
    training.loss_count = 1;
    training.gradient_inputs = &x;
    training.gradient_input_count = 1;
    session.trainer = tutti_compile(network, joined, &training);
    ck_assert_msg(session.trainer, "%s", tutti_message(NULL));
    const char *name;
    tutti_shape shape;
    ASSERT_OK(tutti_parameter_info(network, 0, &name, &shape, NULL));
    ck_assert(!strcmp(name, "scale") && shape.rank == 0);
    for (int i = 0; i < STEP_SAMPLES * SIZE; i++) sum += images[i] / (STEP_SAMPLES * SIZE);
    const tutti_feed feed = { "x", TUTTI_DTYPE_F32, images };
    ASSERT_OK(tutti_backward(session.trainer, &feed, 1, STEP_SAMPLES, NULL));
    ASSERT_OK(tutti_get_gradient(session.trainer, "scale", &found, 1));
    ck_assert_float_eq_tol(found, sum * factors / JOINED, 1e-5f);
    ASSERT_OK(tutti_get_input_gradient(session.trainer, x, gradient, STEP_SAMPLES * SIZE));
    for (int i = 0; i < STEP_SAMPLES * SIZE; i++)
        ck_assert_float_eq_tol(gradient[i], value * factors / (JOINED * SIZE * STEP_SAMPLES), 1e-6f);
    ASSERT_OK(tutti_train_step(session.trainer, &feed, 1, STEP_SAMPLES, NULL));
    ASSERT_OK(tutti_get_parameter(session.trainer, "scale", &scale, 1));
    ck_assert_float_eq_tol(scale, value - 0.25f * found, 1e-5f);
    ASSERT_OK(tutti_save(session.trainer, in_folder("scalar")));
    ASSERT_OK(tutti_set_parameter(session.trainer, "scale", &value, 1));
    ASSERT_OK(tutti_resume(session.trainer, in_folder("scalar")));
    ASSERT_OK(tutti_get_parameter(session.trainer, "scale", &found, 1));
    ck_assert_float_eq(found, scale);
    session_close(&session);
}
END_TEST

Suite *suite_parameters(void)
{
    Suite *suite = suite_create("parameters");
    TCase *cases = cases_new(suite, "parameters", setup, folder_remove);
    add_cases(cases, frozen_parameters_stay, WAYS);
    add_cases(cases, frozen_parameters_can_be_set, WAYS);
    tcase_add_test(cases, frozen_parameters_are_saved);
    add_cases(cases, shared_parameters_sum_their_gradients, WAYS);
    add_cases(cases, shared_parameters_train, WAYS);
    add_cases(cases, groups_have_rates_and_decays, WAYS * REFERENCE_TRAININGS);
    add_cases(cases, groups_are_resumed, WAYS);
    tcase_add_test(cases, groups_take_memory);
    add_cases(cases, constants_are_inputs, WAYS);
    tcase_add_loop_test(cases, constants_go_through_operations, 0, 4);
    tcase_add_test(cases, constants_are_no_parameters);
    add_cases(cases, scalars_train, WAYS);
    tcase_add_test(cases, wrong_calls_are_reported);
    tcase_add_loop_test(cases, wrong_parameters_are_reported, 0, (int)(sizeof(wrongs) / sizeof(*wrongs)));
    return suite;
}
