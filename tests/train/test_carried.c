/* State that stays on the device between inferences: tutti_carry. */
#include "tests/feeds.h"
#include "tests/train/test_devices.h"
#include "tests/train/training.h"

#include "base/random.h"
#include "tutti_sequences.h"
#include "tutti_steps.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TEXTS = 3, LENGTH = 7, WIDTH = 8, HEADS = 2, ROUNDS = 2 };

static const struct {
    const char *devices;
    bool apart;
    tutti_training training;
} ways[] = { { "0", false, { .batch = TEXTS } }, { "0", false, { .batch = 8, .step_limit_s = 60 } },
    { "0", true, { .batch = TEXTS } }, { "0,1", false, { .batch = 4 } }, { "0,1", true, { .batch = 4 } } };
enum { WAYS_TO_CARRY = sizeof(ways) / sizeof(*ways) };

static float texts[TEXTS * LENGTH * WIDTH];

static void make_texts(void)
{
    for (int i = 0; i < TEXTS * LENGTH * WIDTH; i++) texts[i] = (float)random_below(3, 0, (uint64_t)i, 2001) / 1000 - 1;
}

/* Position `t` of each text: [TEXTS][1, WIDTH]. */
static const float *symbols(int t)
{
    static float at[TEXTS * WIDTH];
    for (int n = 0; n < TEXTS; n++) memcpy(at + n * WIDTH, texts + (n * LENGTH + t) * WIDTH, WIDTH * sizeof(float));
    return at;
}

/* A network for whole texts, or one for a symbol and state, with an input for each carried output. */
struct model {
    tutti_network *network;
    tutti_tensor output, outputs[2], inputs[2];
    tutti_trainer *trainer;
};

static tutti_tensor input(struct model *model, int number, const char *name, tutti_shape shape)
{
    return model->inputs[number] = tutti_input(model->network, name, shape);
}

static void lstm(struct model *model, bool steps)
{
    tutti_network *network = model->network;
    tutti_tensor x = tutti_input(network, "x", TUTTI_SHAPE(steps ? 1 : LENGTH, WIDTH));
    tutti_recurrent_options options = { .name = "lstm" };
    if (steps) {
        (void)input(model, 0, "h", TUTTI_SHAPE(1, WIDTH));
        (void)input(model, 1, "c", TUTTI_SHAPE(1, WIDTH));
        options.initial_h = &model->inputs[0];
        options.initial_c = &model->inputs[1];
        options.last_h = &model->outputs[0];
        options.last_c = &model->outputs[1];
    }
    x = tutti_lstm(network, x, WIDTH, &options);
    model->output = tutti_dense(network, x, 5, &(tutti_dense_options) { .name = "out" });
}

/* The cache with the present row at the position that `place`, [LENGTH, 1], marks. */
static tutti_tensor put(struct model *model, int number, tutti_tensor row, tutti_tensor place)
{
    const tutti_tensor cache = input(model, number, number ? "values" : "keys", TUTTI_SHAPE(LENGTH, WIDTH));
    const tutti_tensor placed = tutti_op(model->network, "mul", (tutti_tensor[]) { place, row }, 2, NULL);
    return model->outputs[number] = tutti_add(model->network, cache, placed);
}

static void attention(struct model *model, bool steps)
{
    tutti_network *network = model->network;
    const tutti_tensor x = tutti_input(network, "x", TUTTI_SHAPE(steps ? 1 : LENGTH, WIDTH));
    const tutti_tensor q = tutti_dense(network, x, WIDTH, &(tutti_dense_options) { .name = "q" });
    tutti_tensor k = tutti_dense(network, x, WIDTH, &(tutti_dense_options) { .name = "k" });
    tutti_tensor v = tutti_dense(network, x, WIDTH, &(tutti_dense_options) { .name = "v" });
    tutti_attention_options options = { .heads = HEADS, .causal = !steps };
    tutti_tensor mask;
    if (steps) {
        const tutti_tensor place = tutti_input(network, "place", TUTTI_SHAPE(LENGTH, 1));
        k = put(model, 0, k, place);
        v = put(model, 1, v, place);
        mask = tutti_input(network, "mask", TUTTI_SHAPE(1, LENGTH));
        options.mask = &mask;
    }
    const tutti_tensor seen = tutti_attention(network, q, k, v, &options);
    model->output = tutti_dense(network, seen, 5, &(tutti_dense_options) { .name = "out" });
}

static tutti_trainer *compile(const struct model *model, bool steps, const tutti_training *given)
{
    tutti_training training = *given;
    const tutti_carry carries[] = { { model->outputs[0], model->inputs[0] }, { model->outputs[1], model->inputs[1] } };
    training.loss = TUTTI_LOSS_NONE;
    if (steps) {
        training.outputs = model->outputs;
        training.output_count = 2;
        training.carries = carries;
        training.carry_count = 2;
    }
    return tutti_compile(model->network, model->output, &training);
}

static void open_model(
    struct model *model, tutti_runtime *runtime, bool attends, bool steps, const tutti_training *training)
{
    *model = (struct model) { .network = tutti_network_new(runtime) };
    (attends ? attention : lstm)(model, steps);
    model->trainer = compile(model, steps, training);
    ck_assert_msg(model->trainer, "%s", tutti_message(NULL));
}

static void close_model(struct model *model)
{
    tutti_trainer_free(model->trainer);
    tutti_network_free(model->network);
}

static void copy_parameters(const struct model *from, const struct model *to)
{
    const char *name;
    tutti_shape shape;
    static float values[4 * WIDTH * WIDTH];
    for (int i = 0; tutti_parameter_info(from->network, i, &name, &shape, NULL) == TUTTI_OK; i++) {
        const int64_t count = network_find(from->network, name)->elements;
        ASSERT_OK(tutti_get_parameter(from->trainer, name, values, count));
        ASSERT_OK(tutti_set_parameter(to->trainer, name, values, count));
    }
}

/* Infers position `t` of the first `samples` texts. */
static tutti_status step(const struct model *model, bool attends, int t, int64_t samples, float *outputs)
{
    float place[TEXTS * LENGTH], mask[TEXTS * LENGTH];
    for (int i = 0; i < TEXTS * LENGTH; i++) {
        place[i] = (float)(i % LENGTH == t);
        mask[i] = i % LENGTH > t ? -1e9f : 0;
    }
    const tutti_feed feeds[] = { { "x", TUTTI_DTYPE_F32, symbols(t) }, { "place", TUTTI_DTYPE_F32, place },
        { "mask", TUTTI_DTYPE_F32, mask } };
    return tutti_infer(model->trainer, feeds, attends ? 3 : 1, samples, FETCH_ONE(model->output, outputs));
}

/* Symbol by symbol, with the state on the device, as all at once; and again after a reset, with fewer texts. */
START_TEST(steps_are_the_whole)
{
    const int way = _i / 2;
    const bool attends = _i % 2;
    struct model whole, steps;
    float wanted[TEXTS * LENGTH * 5], found[TEXTS * 5];
    tutti_runtime *runtime = session_runtime(ways[way].devices, ways[way].apart);
    make_texts();
    open_model(&whole, runtime, attends, false, &(tutti_training) { .batch = TEXTS });
    open_model(&steps, runtime, attends, true, &ways[way].training);
    copy_parameters(&whole, &steps);
    ASSERT_OK(tutti_infer(whole.trainer, FEED_ONE(texts), TEXTS, FETCH_ONE(whole.output, wanted)));
    for (int round = 0; round < ROUNDS; round++) {
        const int64_t samples = TEXTS - round;
        for (int t = 0; t < LENGTH; t++) {
            ASSERT_OK(step(&steps, attends, t, samples, found));
            for (int i = 0; i < samples * 5; i++)
                ck_assert_float_eq_tol(found[i], wanted[(i / 5 * LENGTH + t) * 5 + i % 5], 1e-6f);
        }
        fails_with(step(&steps, attends, 0, 1, found), TUTTI_INVALID, "tutti_reset_carried()");
        ASSERT_OK(tutti_reset_carried(steps.trainer));
    }
    close_model(&whole);
    close_model(&steps);
}
END_TEST

/* What is read is written to another trainer, which goes on from there. */
START_TEST(states_are_read_and_written)
{
    struct model one, other;
    float state[2][TEXTS * WIDTH], wanted[TEXTS * 5], found[TEXTS * 5], zeros[TEXTS * WIDTH] = { 0 };
    tutti_runtime *runtime = session_runtime(ways[_i].devices, ways[_i].apart);
    make_texts();
    open_model(&one, runtime, false, true, &ways[_i].training);
    open_model(&other, runtime, false, true, &ways[0].training);
    copy_parameters(&one, &other);
    fails_with(tutti_get_carried(one.trainer, one.inputs[0], state[0], TEXTS), TUTTI_INVALID, "has not begun");
    for (int t = 0; t < 3; t++) ASSERT_OK(step(&one, false, t, TEXTS, found));
    for (int i = 0; i < 2; i++) {
        ASSERT_OK(tutti_get_carried(one.trainer, one.inputs[i], state[i], TEXTS));
        ASSERT_OK(tutti_set_carried(other.trainer, other.inputs[i], state[i], TEXTS));
    }
    ASSERT_OK(step(&one, false, 3, TEXTS, wanted));
    ASSERT_OK(step(&other, false, 3, TEXTS, found));
    ck_assert_mem_eq(found, wanted, sizeof(found));
    ASSERT_OK(tutti_reset_carried(one.trainer));
    ASSERT_OK(tutti_set_carried(one.trainer, one.inputs[1], state[1], TEXTS));
    ASSERT_OK(tutti_get_carried(one.trainer, one.inputs[0], state[0], TEXTS));
    ck_assert_mem_eq(state[0], zeros, sizeof(zeros));
    fails_with(tutti_set_carried(one.trainer, one.inputs[0], zeros, 2), TUTTI_INVALID, "is of 3 samples");
    fails_with(tutti_get_carried(one.trainer, one.output, zeros, TEXTS), TUTTI_INVALID, "not an input of");
    fails_with(tutti_set_carried(one.trainer, one.inputs[0], NULL, TEXTS), TUTTI_INVALID, "NULL");
    close_model(&one);
    close_model(&other);
}
END_TEST

/* A cache whose rows are replaced at a position: in place, unless `reads` makes another layer read it as it was. */
static void open_cache(struct model *model, tutti_runtime *runtime, bool reads, const tutti_training *training)
{
    *model = (struct model) { .network = tutti_network_new(runtime) };
    tutti_network *network = model->network;
    const tutti_tensor x = tutti_input(network, "x", TUTTI_SHAPE(1, WIDTH));
    const tutti_tensor at = tutti_input_typed(network, "at", TUTTI_DTYPE_I32, (int64_t[]) { 1, 1 }, 2);
    const tutti_tensor cache = input(model, 0, "cache", TUTTI_SHAPE(LENGTH, WIDTH));
    const tutti_tensor inputs[] = { cache, at, x };
    const tutti_tensor written = tutti_op(network, "scatter_nd", inputs, 3, NULL);
    tutti_training options = *training;
    options.loss = TUTTI_LOSS_NONE;
    options.outputs = &written;
    options.output_count = 1;
    options.carries = &(tutti_carry) { written, cache };
    options.carry_count = 1;
    model->output = reads ? tutti_add(network, written, cache) : tutti_op(network, "scale", &written, 1, "factor=2");
    model->outputs[0] = written;
    model->trainer = tutti_compile(network, model->output, &options);
    ck_assert_msg(model->trainer, "%s", tutti_message(NULL));
}

START_TEST(rows_of_a_cache_are_replaced)
{
    const int way = _i / 2;
    const bool reads = _i % 2;
    struct model model;
    float found[TEXTS * LENGTH * WIDTH], cache[TEXTS * LENGTH * WIDTH], wanted[TEXTS * LENGTH * WIDTH] = { 0 };
    make_texts();
    open_cache(&model, session_runtime(ways[way].devices, ways[way].apart), reads, &ways[way].training);
    for (int t = 0; t < LENGTH; t++) {
        const int32_t at[TEXTS] = { t, t, t };
        const tutti_feed feeds[] = { { "x", TUTTI_DTYPE_F32, symbols(t) }, { "at", TUTTI_DTYPE_I32, at } };
        const tutti_fetch fetches[] = { { model.output, TUTTI_DTYPE_F32, found },
            { model.outputs[0], TUTTI_DTYPE_F32, cache } };
        ASSERT_OK(tutti_infer(model.trainer, feeds, 2, TEXTS, fetches, 2));
        for (int i = 0; i < TEXTS * LENGTH * WIDTH; i++) {
            const bool now = i / WIDTH % LENGTH == t;
            const float before = wanted[i];
            if (now) wanted[i] = texts[i];
            ck_assert_float_eq(cache[i], wanted[i]);
            ck_assert_float_eq(found[i], reads ? wanted[i] + before : 2 * wanted[i]);
        }
    }
    ASSERT_OK(tutti_get_carried(model.trainer, model.inputs[0], found, TEXTS));
    ck_assert_mem_eq(found, wanted, sizeof(wanted));
    if (way == 0) ck_assert_int_eq(model.trainer->replicas[0].carried.in_place[0], !reads);
    close_model(&model);
}
END_TEST

static tutti_status break_down(struct device *device, void *state, cl_event *event)
{
    (void)state, (void)event;
    return fail(TUTTI_DEVICE, "the test broke '%s'", device->can.name);
}

/* Makes the plans of the device fail from now on; plans that are made later work. */
static void break_device(const struct model *model)
{
    for (int i = 0; i < PLAN_CACHE_PLANS; i++) {
        struct plan *plan = model->trainer->replicas[0].plans.plans[i].plan;
        if (plan) plan->launches.launches[plan->launches.count - 1].call = break_down;
    }
}

/* A device that fails gives an error, and no other one goes on without the state; the only one goes on with it. */
START_TEST(devices_fail_with_the_state)
{
    struct model broken, whole;
    float wanted[TEXTS * 5], found[TEXTS * 5];
    const bool only = _i;
    tutti_runtime *runtime = tutti_open(&(tutti_runtime_options) { .devices = only ? "0" : "0,1" });
    ck_assert_msg(runtime, "%s", tutti_message(NULL));
    make_texts();
    open_model(&broken, runtime, false, true, &(tutti_training) { .batch = TEXTS });
    open_model(&whole, runtime, false, true, &(tutti_training) { .batch = TEXTS });
    copy_parameters(&whole, &broken);
    for (int t = 0; t < 2; t++) {
        ASSERT_OK(step(&whole, false, t, TEXTS, wanted));
        ASSERT_OK(step(&broken, false, t, TEXTS, found));
    }
    break_device(&broken);
    const tutti_status status = only ? TUTTI_DEVICE : TUTTI_DEVICE_LOST;
    fails_with(step(&broken, false, 2, TEXTS, found), status, only ? "the test broke" : "lost with the state");
    if (!only) fails_with(step(&broken, false, 2, TEXTS, found), status, "lost with the state");
    if (!only) fails_with(tutti_get_carried(broken.trainer, broken.inputs[0], found, TEXTS), status, "is lost");
    if (only) plan_cache_drop(&broken.trainer->replicas[0].plans); /* the device works again */
    if (!only) {
        ASSERT_OK(tutti_reset_carried(broken.trainer)); /* on the other device */
        for (int t = 0; t < 2; t++) ASSERT_OK(step(&broken, false, t, TEXTS, found));
    }
    for (int t = 2; t < 4; t++) {
        ASSERT_OK(step(&whole, false, t, TEXTS, wanted));
        ASSERT_OK(step(&broken, false, t, TEXTS, found));
        for (int i = 0; i < TEXTS * 5; i++) ck_assert_float_eq_tol(found[i], wanted[i], 1e-6f);
    }
    close_model(&broken);
    close_model(&whole);
    tutti_close(runtime);
}
END_TEST

static void refused(const struct model *model, tutti_carry carry, const char *message)
{
    const tutti_training training = {
        .loss = TUTTI_LOSS_NONE, .outputs = model->outputs, .output_count = 2, .carries = &carry, .carry_count = 1
    };
    ck_assert_ptr_null(tutti_compile(model->network, model->output, &training));
    ck_assert_msg(strstr(tutti_message(NULL), message) != NULL, "%s", tutti_message(NULL));
}

START_TEST(wrong_states_are_refused)
{
    struct model model;
    float outputs[TEXTS * 5];
    make_texts();
    open_model(&model, session_runtime("0", false), false, true, &(tutti_training) { .batch = 2, .micro_batch = 1 });
    refused(&model, (tutti_carry) { model.outputs[0], model.outputs[1] }, "not an input");
    refused(&model, (tutti_carry) { model.inputs[0], model.inputs[1] }, "not an output of this trainer");
    refused(&model, (tutti_carry) { model.output, model.inputs[0] }, "different shapes");
    ck_assert_ptr_null(tutti_compile(model.network, model.output,
        &(tutti_training) { .loss = TUTTI_MSE,
            .outputs = model.outputs,
            .output_count = 2,
            .carries = &(tutti_carry) { model.outputs[0], model.inputs[0] },
            .carry_count = 1 }));
    ck_assert_ptr_nonnull(strstr(tutti_message(NULL), "carries no state"));
    ck_assert_ptr_null(
        tutti_compile(model.network, model.output, &(tutti_training) { .loss = TUTTI_LOSS_NONE, .carry_count = 1 }));
    ck_assert_ptr_nonnull(strstr(tutti_message(NULL), "carry_count is 1: pass that many pairs"));
    ck_assert_ptr_null(
        tutti_compile(model.network, model.output, &(tutti_training) { .loss = TUTTI_LOSS_NONE, .carry_count = -1 }));
    ck_assert_ptr_nonnull(strstr(tutti_message(NULL), "carry_count is -1: it must be from 0 to"));
    fails_with(step(&model, false, 0, TEXTS, outputs), TUTTI_INVALID, "at most tutti_training.batch, 2");
    fails_with(step(&model, false, 0, 2, outputs), TUTTI_INVALID, "at once");
    ASSERT_OK(step(&model, false, 0, 1, outputs));
    const tutti_feed feeds[] = { { "x", TUTTI_DTYPE_F32, symbols(0) }, { "h", TUTTI_DTYPE_F32, texts } };
    fails_with(
        tutti_infer(model.trainer, feeds, 2, 1, FETCH_ONE(model.output, outputs)), TUTTI_INVALID, "no feed does");
    struct model plain;
    open_model(&plain, session_runtime("0", false), false, false, &(tutti_training) { .batch = 2 });
    fails_with(tutti_reset_carried(plain.trainer), TUTTI_INVALID, "carries nothing");
    close_model(&plain);
    close_model(&model);
}
END_TEST

/* x becomes 2 x. */
START_TEST(all_inputs_are_carried)
{
    float state[2 * WIDTH], outputs[2 * WIDTH];
    tutti_network *network = tutti_network_new(session_runtime(ways[_i].devices, ways[_i].apart));
    const tutti_tensor x = tutti_input(network, "x", TUTTI_SHAPE(WIDTH)),
                       y = tutti_op(network, "scale", &x, 1, "factor=2");
    tutti_training training = ways[_i].training;
    training.loss = TUTTI_LOSS_NONE;
    training.carries = &(tutti_carry) { y, x };
    training.carry_count = 1;
    tutti_trainer *trainer = tutti_compile(network, y, &training);
    ck_assert_msg(trainer, "%s", tutti_message(NULL));
    for (int i = 0; i < 2 * WIDTH; i++) state[i] = (float)i;
    ASSERT_OK(tutti_set_carried(trainer, x, state, 2));
    for (int t = 0; t < 3; t++) ASSERT_OK(tutti_infer(trainer, NULL, 0, 2, FETCH_ONE(y, outputs)));
    for (int i = 0; i < 2 * WIDTH; i++) ck_assert_float_eq_tol(outputs[i], 8 * (float)i, 1e-4f);
    fails_with(tutti_infer(trainer, FEED_ONE(state), 2, FETCH_ONE(y, outputs)), TUTTI_INVALID, "no feed does");
    fails_with(tutti_infer(trainer, NULL, -1, 2, FETCH_ONE(y, outputs)), TUTTI_INVALID, "no array is fed");
    tutti_trainer_free(trainer);
    tutti_network_free(network);
}
END_TEST

Suite *suite_carried(void)
{
    Suite *suite = suite_create("carried");
    TCase *cases = cases_new(suite, "carried", NULL, NULL);
    tcase_add_loop_test(cases, steps_are_the_whole, 0, 2 * WAYS_TO_CARRY);
    add_cases(cases, states_are_read_and_written, WAYS_TO_CARRY);
    add_cases(cases, rows_of_a_cache_are_replaced, 2 * WAYS_TO_CARRY);
    add_cases(cases, devices_fail_with_the_state, 2);
    add_cases(cases, all_inputs_are_carried, WAYS_TO_CARRY);
    tcase_add_test(cases, wrong_states_are_refused);
    return suite;
}
