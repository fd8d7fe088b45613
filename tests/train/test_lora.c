/* Low-rank adapters: tutti_lora(), and what tutti_save_adapter() and tutti_save_merged() write. */
#include "tests/feeds.h"
#include "tests/train/folder.h"
#include "tests/train/test_devices.h"
#include "tests/train/training.h"

#include "formats/safetensors.h"
#include "tutti_finetune.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HIDDEN = 13, RANK = 3 };
#define SCALE 2.5f /* alpha / rank */

/* Adapters by tutti_lora(), by layers of the caller's, or none. */
enum adapter_way { BY_LORA, BY_HAND, WITHOUT };

struct tuned {
    struct session session;
    tutti_tensor output;
};

static void setup(void)
{
    data_make();
    folder_new();
}

/* What tutti_lora() adds to y, written with public layers. */
static tutti_tensor by_hand(tutti_network *network, const char *layer, tutti_tensor x, tutti_tensor y, int64_t inputs,
    int64_t outputs, tutti_tensor factors[2])
{
    char name[64];
    if (factors[0].id < 0) {
        snprintf(name, sizeof(name), "%s.lora_A.weight", layer);
        factors[0] = tutti_parameter(
            network, name, TUTTI_SHAPE(RANK, inputs), &(tutti_parameter_options) { .fan_in = inputs, .fan_out = RANK });
        snprintf(name, sizeof(name), "%s.lora_B.weight", layer);
        factors[1] = tutti_parameter(
            network, name, TUTTI_SHAPE(outputs, RANK), &(tutti_parameter_options) { .init = TUTTI_INIT_ZEROS });
    }
    const tutti_tensor down =
        tutti_dense(network, x, RANK, &(tutti_dense_options) { .weight = &factors[0], .no_bias = true });
    const tutti_tensor up =
        tutti_dense(network, down, outputs, &(tutti_dense_options) { .weight = &factors[1], .no_bias = true });
    return tutti_add(network, y, tutti_op(network, "scale", &up, 1, "factor=2.5"));
}

/* A layer, one whose weight has a row for each input, one that is used twice, and a head. */
static void build(struct tuned *tuned, enum adapter_way way)
{
    tutti_network *network = tuned->session.network;
    tutti_tensor none[2] = { { -1 }, { -1 } }, twice[2] = { { -1 }, { -1 } }, turned[2] = { { -1 }, { -1 } };
    tutti_tensor x = tutti_flatten(network, tutti_input(network, "x", TUTTI_SHAPE(2, 7, 7)));
    tutti_tensor y = tutti_dense(network, x, HIDDEN, &(tutti_dense_options) { .name = "first" });
    if (way == BY_HAND) y = by_hand(network, "first", x, y, PIXELS, HIDDEN, none);
    x = tutti_tanh(network, y);
    const tutti_tensor weight = tutti_parameter(network, "turned.weight", TUTTI_SHAPE(HIDDEN, HIDDEN),
        &(tutti_parameter_options) { .init = TUTTI_INIT_GLOROT_UNIFORM, .fan_in = HIDDEN, .fan_out = HIDDEN });
    y = tutti_op(
        network, "matmul", (tutti_tensor[]) { tutti_reshape(network, x, TUTTI_SHAPE(1, HIDDEN)), weight }, 2, NULL);
    y = tutti_flatten(network, y);
    if (way == BY_HAND) y = by_hand(network, "turned", x, y, HIDDEN, HIDDEN, turned);
    x = tutti_tanh(network, y);
    const tutti_tensor shared = tutti_parameter(network, "shared.weight", TUTTI_SHAPE(HIDDEN, HIDDEN),
        &(tutti_parameter_options) { .fan_in = HIDDEN, .fan_out = HIDDEN });
    for (int i = 0; i < 2; i++) {
        y = tutti_dense(network, x, HIDDEN, &(tutti_dense_options) { .weight = &shared, .no_bias = true });
        if (way == BY_HAND) y = by_hand(network, "shared", x, y, HIDDEN, HIDDEN, twice);
        x = tutti_tanh(network, y);
    }
    tuned->output = tutti_dense(network, x, CLASSES, &(tutti_dense_options) { .name = "head" });
    if (way == BY_LORA) {
        const tutti_lora_options options = { .rank = RANK, .alpha = SCALE * RANK };
        ASSERT_OK(tutti_lora(network, "first.weight", &options));
        ASSERT_OK(tutti_lora(network, "turned.*", &options));
        ASSERT_OK(tutti_lora(network, "shared.*", &options));
    } else if (way == BY_HAND) {
        ASSERT_OK(tutti_freeze(network, "*"));
        ASSERT_OK(tutti_unfreeze(network, "*.lora_*"));
    }
    if (way != WITHOUT) ASSERT_OK(tutti_unfreeze(network, "head.*"));
}

static void open_tuned(struct tuned *tuned, const char *devices, enum adapter_way way)
{
    *tuned = (struct tuned) { .session.runtime = session_runtime(devices, false) };
    tuned->session.network = tutti_network_new(tuned->session.runtime);
    build(tuned, way);
    tuned->session.trainer = tutti_compile(tuned->session.network, tuned->output,
        &(tutti_training) {
            .learning_rate = 0.1f, .momentum = 0.9f, .batch = STEP_SAMPLES, .seed = 7, .sharing = TUTTI_SHARES_EQUAL });
    ck_assert_msg(tuned->session.trainer, "%s", tutti_message(NULL));
}

/* Calls `use` for every parameter of a network that the other has, too. */
static void each_parameter(
    struct tuned *of, struct tuned *in, void (*use)(struct tuned *in, const char *name, float *values, int64_t count))
{
    const char *name;
    tutti_shape shape;
    float values[HIDDEN * PIXELS];
    int found = 0;
    for (int i = 0; tutti_parameter_info(of->session.network, i, &name, &shape, NULL) == TUTTI_OK; i++) {
        int64_t count = 1;
        for (int axis = 0; axis < shape.rank; axis++) count *= shape.sizes[axis];
        ASSERT_OK(tutti_get_parameter(of->session.trainer, name, values, count));
        if (!network_find(in->session.network, name)) continue;
        use(in, name, values, count);
        found++;
    }
    ck_assert_int_ge(found, 6);
}

static void set(struct tuned *in, const char *name, float *values, int64_t count)
{
    ASSERT_OK(tutti_set_parameter(in->session.trainer, name, values, count));
}

static void is_close(struct tuned *in, const char *name, float *values, int64_t count)
{
    float found[HIDDEN * PIXELS];
    ASSERT_OK(tutti_get_parameter(in->session.trainer, name, found, count));
    for (int64_t i = 0; i < count; i++)
        ck_assert_msg(fabsf(found[i] - values[i]) <= 2e-6f, "%s[%d] is %g and %g", name, (int)i, (double)values[i],
            (double)found[i]);
}

static void infer(struct tuned *tuned, float outputs[SAMPLES * CLASSES])
{
    ASSERT_OK(tutti_infer(tuned->session.trainer, FEED_ONE(images), SAMPLES, FETCH_ONE(tuned->output, outputs)));
}

static void same_outputs(struct tuned *a, struct tuned *b, float tolerance)
{
    static float found[SAMPLES * CLASSES], wanted[SAMPLES * CLASSES];
    infer(a, found);
    infer(b, wanted);
    for (int i = 0; i < SAMPLES * CLASSES; i++) ck_assert_float_eq_tol(found[i], wanted[i], tolerance);
}

static const char *const ways[] = { "0", "0,1" };
enum { DEVICES = sizeof(ways) / sizeof(*ways) };

/* It begins as the network without adapters, and trains as layers that the caller adds. */
START_TEST(lora_trains_as_layers)
{
    struct tuned lora, hand, plain;
    open_tuned(&lora, ways[_i], BY_LORA);
    open_tuned(&hand, ways[_i], BY_HAND);
    open_tuned(&plain, ways[_i], WITHOUT);
    const int64_t factors = RANK * (PIXELS + HIDDEN + 4 * HIDDEN), head = CLASSES * (HIDDEN + 1);
    ck_assert_int_eq(tutti_network_parameters(lora.session.network), factors + head);
    each_parameter(&lora, &plain, set);
    each_parameter(&lora, &hand, set);
    same_outputs(&lora, &plain, 1e-6f);
    session_steps(&lora.session, 6);
    session_steps(&hand.session, 6);
    each_parameter(&lora, &hand, is_close);
    same_outputs(&lora, &hand, 1e-5f);
    static float found[SAMPLES * CLASSES], before[SAMPLES * CLASSES];
    float moved = 0;
    infer(&lora, found);
    infer(&plain, before);
    for (int i = 0; i < SAMPLES * CLASSES; i++) moved = fmaxf(moved, fabsf(found[i] - before[i]));
    ck_assert_float_gt(moved, 0.05f);
    session_close(&lora.session);
    session_close(&hand.session);
    session_close(&plain.session);
}
END_TEST

START_TEST(merged_weights_compute_the_same)
{
    struct tuned lora, plain;
    open_tuned(&lora, ways[_i], BY_LORA);
    open_tuned(&plain, "0", WITHOUT);
    session_steps(&lora.session, 5);
    ASSERT_OK(tutti_save_merged(lora.session.trainer, in_folder("merged.safetensors")));
    ASSERT_OK(tutti_load_weights(plain.session.trainer, in_folder("merged.safetensors")));
    same_outputs(&lora, &plain, 1e-5f);
    session_close(&lora.session);
    session_close(&plain.session);
}
END_TEST

static void check_config(void)
{
    json_t *config = json_load_file(in_folder("adapter/adapter_config.json"), 0, NULL);
    ck_assert_ptr_nonnull(config);
    ck_assert_str_eq(json_string_value(json_object_get(config, "peft_type")), "LORA");
    ck_assert_int_eq(json_integer_value(json_object_get(config, "r")), RANK);
    ck_assert_double_eq(json_number_value(json_object_get(config, "lora_alpha")), (double)(SCALE * RANK));
    ck_assert_int_eq((int)json_array_size(json_object_get(config, "target_modules")), 3);
    ck_assert_str_eq(json_string_value(json_array_get(json_object_get(config, "modules_to_save"), 0)), "head");
    ck_assert_int_eq((int)json_array_size(json_object_get(config, "modules_to_save")), 1);
    json_decref(config);
}

START_TEST(adapters_are_saved_alone)
{
    struct tuned lora, other;
    struct safetensors *file;
    tutti_match_result result = { .size = sizeof(result) };
    open_tuned(&lora, ways[_i], BY_LORA);
    open_tuned(&other, "0", BY_LORA);
    session_steps(&lora.session, 4);
    ASSERT_OK(tutti_save_adapter(lora.session.trainer, in_folder("adapter")));
    ASSERT_OK(tutti_save_adapter(lora.session.trainer, in_folder("adapter"))); /* replaces it */
    check_config();
    ASSERT_OK(safetensors_open(in_folder("adapter/adapter_model.safetensors"), &file));
    ck_assert_int_eq(safetensors_count(file), 8);
    const struct safetensors_tensor *down = safetensors_find(file, "base_model.model.turned.lora_A.weight");
    ck_assert_ptr_nonnull(down);
    ck_assert_int_eq(down->sizes[0], RANK);
    ck_assert_ptr_nonnull(safetensors_find(file, "base_model.model.head.bias"));
    safetensors_close(file);
    ASSERT_OK(
        tutti_load_matching(other.session.trainer, in_folder("adapter/adapter_model.safetensors"), NULL, &result));
    ck_assert_int_eq(result.loaded, 8);
    ck_assert_int_eq(result.unused, 0);
    same_outputs(&lora, &other, 1e-6f);
    session_close(&lora.session);
    session_close(&other.session);
}
END_TEST

/* With dropout; a checkpoint continues to the same bytes. */
START_TEST(lora_resumes)
{
    struct tuned a, b;
    struct tuned *const both[] = { &a, &b };
    for (int i = 0; i < 2; i++) {
        struct tuned *tuned = both[i];
        *tuned = (struct tuned) { .session.runtime = session_runtime("0", false) };
        tutti_network *network = tuned->session.network = tutti_network_new(tuned->session.runtime);
        tutti_tensor x = tutti_flatten(network, tutti_input(network, "x", TUTTI_SHAPE(2, 7, 7)));
        x = tutti_tanh(network, tutti_dense(network, x, HIDDEN, NULL));
        tuned->output = tutti_dense(network, x, CLASSES, NULL);
        ASSERT_OK(tutti_lora(network, "*", &(tutti_lora_options) { .dropout = 0.5f }));
        tuned->session.trainer = tutti_compile(
            network, tuned->output, &(tutti_training) { .optimizer = TUTTI_ADAM, .batch = STEP_SAMPLES, .seed = 3 });
        ck_assert_msg(tuned->session.trainer, "%s", tutti_message(NULL));
    }
    session_steps(&a.session, 3);
    ASSERT_OK(tutti_save(a.session.trainer, in_folder("half")));
    ASSERT_OK(tutti_resume(b.session.trainer, in_folder("half")));
    session_steps(&a.session, 1);
    session_steps(&b.session, 1);
    same_bytes(&a.session, &b.session);
    session_close(&a.session);
    session_close(&b.session);
}
END_TEST

/* A weight that something else reads, too, has no adapter, which would not be added there: merged weights would compute
 * something else. */
START_TEST(shared_weights_have_no_adapter)
{
    tutti_runtime *runtime = session_runtime("0", false);
    for (int turned = 0; turned < 2; turned++) {
        tutti_network *network = tutti_network_new(runtime);
        const tutti_tensor x = tutti_input(network, "x", TUTTI_SHAPE(HIDDEN));
        const tutti_tensor weight = tutti_parameter(network, "tied.weight", TUTTI_SHAPE(HIDDEN, HIDDEN), NULL);
        const tutti_tensor both[] = { weight, x };
        tutti_tensor y =
            turned ? tutti_reshape(network, x, TUTTI_SHAPE(1, HIDDEN)) : tutti_op(network, "gather", both, 2, "axis=0");
        if (turned) y = tutti_matmul(network, NULL, y, weight, false, false);
        y = tutti_dense(network, y, HIDDEN, &(tutti_dense_options) { .weight = &weight, .no_bias = true });
        fails_with(tutti_lora(network, "tied*", NULL), TUTTI_INVALID, "is used otherwise, too");
        y = tutti_dense(network, y, 3, &(tutti_dense_options) { .name = "head", .no_bias = true });
        ASSERT_OK(tutti_lora(network, "*", NULL));
        ck_assert_int_eq(tutti_network_parameters(network), 8 * (HIDDEN + 3));
        tutti_network_free(network);
    }
}
END_TEST

START_TEST(wrong_uses_are_refused)
{
    struct tuned lora, plain;
    struct session *session = &lora.session;
    open_tuned(&lora, "0", BY_LORA);
    open_tuned(&plain, "0", WITHOUT);
    fails_with(tutti_lora(session->network, "*", NULL), TUTTI_INVALID, "a trainer uses this network");
    tutti_trainer_free(session->trainer);
    session->trainer = NULL;
    fails_with(tutti_lora(session->network, "shared*", NULL), TUTTI_INVALID, "has an adapter already");
    fails_with(tutti_lora(session->network, "nothing", NULL), TUTTI_INVALID, "no dense layer");
    fails_with(tutti_lora(session->network, "head.bias", NULL), TUTTI_INVALID, "no dense layer");
    fails_with(tutti_lora(session->network, "", NULL), TUTTI_INVALID, "pattern is empty");
    fails_with(tutti_lora(session->network, "head*", &(tutti_lora_options) { .rank = -1 }), TUTTI_INVALID, "the rank");
    fails_with(
        tutti_lora(session->network, "head*", &(tutti_lora_options) { .dropout = 1 }), TUTTI_INVALID, "the dropout");
    fails_with(tutti_lora(session->network, "head*", &(tutti_lora_options) { .alpha = -1 }), TUTTI_INVALID, "alpha of");
    fails_with(tutti_save_adapter(plain.session.trainer, in_folder("none")), TUTTI_INVALID, "has no adapter");
    fails_with(tutti_save_merged(plain.session.trainer, in_folder("none")), TUTTI_INVALID, "has no adapter");
    session_close(session);
    session_close(&plain.session);
}
END_TEST

Suite *suite_lora(void)
{
    Suite *suite = suite_create("lora");
    TCase *cases = cases_new(suite, "lora", setup, folder_remove);
    tcase_add_loop_test(cases, lora_trains_as_layers, 0, DEVICES);
    tcase_add_loop_test(cases, merged_weights_compute_the_same, 0, DEVICES);
    tcase_add_loop_test(cases, adapters_are_saved_alone, 0, DEVICES);
    tcase_add_test(cases, lora_resumes);
    tcase_add_test(cases, shared_weights_have_no_adapter);
    tcase_add_test(cases, wrong_uses_are_refused);
    return suite;
}
