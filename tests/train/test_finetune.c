/* Trainings that begin from others: weights with another head, thawing, the range test of rates. */
#include "tests/feeds.h"
#include "tests/train/folder.h"
#include "tests/train/test_devices.h"
#include "tests/train/training.h"

#include "formats/safetensors.h"
#include "tutti_finetune.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void setup(void)
{
    data_make();
    folder_new();
}

static const tutti_training rules[] = {
    { .optimizer = TUTTI_SGD, .learning_rate = 0.02f, .momentum = 0.9f },
    { .optimizer = TUTTI_SGD, .learning_rate = 0.02f },
    { .optimizer = TUTTI_ADAM, .learning_rate = 0.01f },
    { .optimizer = TUTTI_ADAMW, .learning_rate = 0.01f, .weight_decay = 0.1f },
    { .optimizer = TUTTI_RMSPROP, .learning_rate = 0.005f, .momentum = 0.5f, .centered = true, .epsilon = 1e-2f },
    { .optimizer = TUTTI_NADAM, .learning_rate = 0.01f, .epsilon = 1e-3f },
};
enum { RULES = sizeof(rules) / sizeof(*rules) };

/* A trunk and a head, which is all that trains where `frozen`. */
struct tuning {
    struct session session;
    tutti_tensor output;
    tutti_training training;
};

static void compile(struct tuning *tuning)
{
    tuning->session.trainer = tutti_compile(tuning->session.network, tuning->output, &tuning->training);
    ck_assert_msg(tuning->session.trainer, "%s", tutti_message(NULL));
}

static void open_tuning(struct tuning *tuning, const char *devices, const char *prefix, int classes,
    const tutti_training *rule, bool frozen)
{
    *tuning = (struct tuning) { .training = *rule };
    tuning->session.runtime = session_runtime(devices, false);
    tutti_network *network = tuning->session.network = tutti_network_new(tuning->session.runtime);
    if (*prefix) tutti_scope_push(network, prefix);
    tutti_tensor x = tutti_input(network, "x", TUTTI_SHAPE(2, 7, 7));
    x = tutti_conv2d(network, x, 6, 3, &(tutti_conv2d_options) { .name = "trunk", .padding = 1 });
    x = tutti_batch_norm(network, x, &(tutti_batch_norm_options) { .name = "norm" });
    x = tutti_flatten(network, tutti_max_pool(network, tutti_relu(network, x), 2, NULL));
    tuning->output = tutti_dense(network, x, classes, &(tutti_dense_options) { .name = "head" });
    if (*prefix) tutti_scope_pop(network);
    if (frozen) ASSERT_OK(tutti_freeze(network, "[tn]*"));
    tuning->training.batch = STEP_SAMPLES;
    tuning->training.seed = 7;
    tuning->training.sharing = TUTTI_SHARES_EQUAL;
    compile(tuning);
}

static tutti_status fit(struct tuning *tuning, tutti_fitting fitting)
{
    return tutti_fit(tuning->session.trainer, FEED_PAIR(images, labels), SAMPLES, &fitting);
}

static void thaw(struct tuning *tuning)
{
    tutti_snapshot *snapshot = tutti_snapshot_take(tuning->session.trainer);
    ck_assert_msg(snapshot, "%s", tutti_message(NULL));
    tutti_trainer_free(tuning->session.trainer);
    ASSERT_OK(tutti_unfreeze(tuning->session.network, "*"));
    compile(tuning);
    ASSERT_OK(tutti_snapshot_restore(tuning->session.trainer, snapshot));
    tutti_snapshot_free(snapshot);
}

/* ------------------------------------------------------------------------------------------------- thawing ---- */

/* A training without a stop; and one stopped before the thaw, at it, with files saved on either side, and after
 * it. */
START_TEST(thawed_and_resumed)
{
    const char *const devices = _i % 2 ? "0,1" : "0";
    const tutti_training *rule = &rules[_i / 2];
    struct tuning whole, part;
    open_tuning(&whole, devices, "", CLASSES, rule, true);
    ASSERT_OK(fit(&whole, (tutti_fitting) { .epochs = 3, .pause_after = 1 }));
    thaw(&whole);
    ASSERT_OK(fit(&whole, (tutti_fitting) { .epochs = 3 }));

    const tutti_fitting to_pause = { .epochs = 3, .pause_after = 1, .save = in_folder("part") };
    open_tuning(&part, devices, "", CLASSES, rule, true);
    tutti_fitting stopped = to_pause;
    stopped.steps = 2;
    ASSERT_OK(fit(&part, stopped));
    session_close(&part.session);
    open_tuning(&part, devices, "", CLASSES, rule, true);
    tutti_fitting again = to_pause;
    again.resume = in_folder("part");
    ASSERT_OK(fit(&part, again));
    tutti_checkpoint_info info = { .size = sizeof(info) };
    ASSERT_OK(tutti_checkpoint_read(in_folder("part"), &info));
    ck_assert(info.epochs == 1 && info.samples == 0 && info.steps == 5);
    session_close(&part.session);
    for (int i = 0; i < 3; i++) { /* the first one thaws */
        open_tuning(&part, devices, "", CLASSES, rule, false);
        ASSERT_OK(tutti_resume(part.session.trainer, in_folder("part")));
        if (i == 1) ASSERT_OK(fit(&part, (tutti_fitting) { .epochs = 3, .steps = 3 }));
        if (i == 2) ASSERT_OK(fit(&part, (tutti_fitting) { .epochs = 3 }));
        ASSERT_OK(tutti_save(part.session.trainer, in_folder("part")));
        if (i < 2) session_close(&part.session);
    }
    ck_assert_int_eq(part.session.trainer->state.position.steps, 15);
    same_bytes(&whole.session, &part.session);
    session_close(&part.session);
    session_close(&whole.session);
}
END_TEST

/* Parameters that trained before keep their momentum; Adam's bias correction counts from the thaw. */
START_TEST(states_after_a_thaw)
{
    const tutti_training *rule = &rules[_i];
    const bool counts =
        rule->optimizer == TUTTI_ADAM || rule->optimizer == TUTTI_ADAMW || rule->optimizer == TUTTI_NADAM;
    struct tuning tuning;
    open_tuning(&tuning, "0", "", CLASSES, rule, true);
    ASSERT_OK(fit(&tuning, (tutti_fitting) { .epochs = 2, .pause_after = 1 }));
    thaw(&tuning);
    const struct parameter_store *store = tuning.session.trainer->store;
    const struct optimizer_arrays master = parameters_master(store);
    const tutti_network *network = tuning.session.network;
    for (size_t i = 0; i < network->parameter_count; i++) {
        const struct parameter *p = &network->parameters[i];
        if (p->kind != PARAMETER_TRAINED || !master.states[0]) continue;
        double sum = 0;
        for (int64_t j = 0; j < p->elements; j++) sum += fabs((double)master.states[0][p->offset + j]);
        const bool kept = !counts && !strncmp(p->name, "head", 4);
        ck_assert_msg((sum > 0) == kept, "%s: %g", p->name, sum);
    }
    ck_assert_int_eq(tuning.session.trainer->state.loss_scale.skipped, counts ? 5 : 0);
    session_close(&tuning.session);
}
END_TEST

START_TEST(snapshots_of_other_networks)
{
    struct tuning a, b;
    open_tuning(&a, "0", "", CLASSES, &rules[0], false);
    open_tuning(&b, "0", "", CLASSES + 1, &rules[0], false);
    tutti_snapshot *snapshot = tutti_snapshot_take(a.session.trainer);
    ck_assert_ptr_nonnull(snapshot);
    fails_with(tutti_snapshot_restore(b.session.trainer, snapshot), TUTTI_MISMATCH, "'head.weight'");
    fails_with(tutti_snapshot_restore(NULL, snapshot), TUTTI_INVALID, "NULL");
    ck_assert_ptr_null(tutti_snapshot_take(NULL));
    tutti_snapshot_free(NULL);
    tutti_snapshot_free(snapshot);
    session_close(&a.session);
    session_close(&b.session);
}
END_TEST

/* ------------------------------------------------------------------------------------------------- weights ---- */

struct matches {
    int count[5];
    char other[64];
};

static void on_match(
    void *user, tutti_match match, const char *name, const tutti_shape *in_file, const tutti_shape *in_network)
{
    struct matches *matches = user;
    matches->count[match]++;
    if (match == TUTTI_MATCH_SHAPE) {
        ck_assert(in_file->rank == in_network->rank && in_file->sizes[0] != in_network->sizes[0]);
        snprintf(matches->other, sizeof(matches->other), "%s", name);
    }
    ck_assert((match == TUTTI_MATCH_MISSING) == !in_file && (match == TUTTI_MATCH_UNUSED) == !in_network);
}

/* Names in the file and in the network are equal, but for prefixes of wrappers on either side. */
START_TEST(weights_with_another_head)
{
    const char *const prefixes[] = { "", "module", "model.module" };
    struct tuning old, new;
    struct matches matches = { 0 };
    tutti_match_result result = { .size = sizeof(result) };
    float from[6], to[6];
    char name[64];
    open_tuning(&old, "0", prefixes[_i % 3], CLASSES + 2, &rules[0], false);
    ASSERT_OK(fit(&old, (tutti_fitting) { .epochs = 1 }));
    ASSERT_OK(tutti_save_weights(old.session.trainer, in_folder("w.safetensors")));
    open_tuning(&new, "0", prefixes[_i / 3], CLASSES, &rules[0], false);
    const tutti_match_options options = { .report = on_match, .user = &matches };
    ASSERT_OK(tutti_load_matching(new.session.trainer, in_folder("w.safetensors"), &options, &result));
    ck_assert(result.loaded == 6 && result.missing == 0 && result.unused == 0 && result.other == 2);
    ck_assert(matches.count[TUTTI_MATCH_LOADED] == 6 && matches.count[TUTTI_MATCH_SHAPE] == 2);
    ck_assert_msg(strstr(matches.other, "head.bias"), "%s", matches.other);
    ck_assert(
        result.loaded_elements == 6 * 2 * 9 + 6 + 4 * 6 && result.elements == result.loaded_elements + 55 * CLASSES);
    snprintf(name, sizeof(name), "%s%snorm.running_mean", prefixes[_i % 3], *prefixes[_i % 3] ? "." : "");
    ASSERT_OK(tutti_get_parameter(old.session.trainer, name, from, 6));
    snprintf(name, sizeof(name), "%s%snorm.running_mean", prefixes[_i / 3], *prefixes[_i / 3] ? "." : "");
    ASSERT_OK(tutti_get_parameter(new.session.trainer, name, to, 6));
    ck_assert(memcmp(from, to, sizeof(to)) == 0 && to[0] != 0);
    session_close(&old.session);
    session_close(&new.session);
}
END_TEST

/* Half precision, integers, what is missing and what is not wanted; a file of which nothing fits changes nothing. */
START_TEST(weights_of_other_types)
{
    static const uint16_t halves[6] = { 0x3c00, 0xc000 }, brains[6] = { 0x3f80, 0xc000 };
    static const int32_t numbers[6];
    struct safetensors_tensor tensors[] = {
        { .name = "norm.weight", .type = SAFETENSORS_F16, .rank = 1, .sizes = { 6 }, .data = halves },
        { .name = "norm.bias", .type = SAFETENSORS_BF16, .rank = 1, .sizes = { 6 }, .data = brains },
        { .name = "norm.running_var", .type = SAFETENSORS_I32, .rank = 1, .sizes = { 6 }, .data = numbers },
        { .name = "norm.num_batches_tracked", .type = SAFETENSORS_I32, .rank = 0, .data = numbers },
        { .name = "other", .type = SAFETENSORS_I32, .rank = 1, .sizes = { 6 }, .data = numbers },
    };
    struct tuning tuning;
    struct matches matches = { 0 };
    float values[6];
    const tutti_match_options options = { .report = on_match, .user = &matches };
    open_tuning(&tuning, "0,1", "", CLASSES, &rules[0], true);
    ASSERT_OK(safetensors_save(in_folder("t"), tensors, 5, NULL, 0));
    ASSERT_OK(tutti_load_matching(tuning.session.trainer, in_folder("t"), &options, NULL));
    ck_assert(matches.count[TUTTI_MATCH_LOADED] == 2 && matches.count[TUTTI_MATCH_TYPE] == 1);
    ck_assert(matches.count[TUTTI_MATCH_MISSING] == 5 && matches.count[TUTTI_MATCH_UNUSED] == 1);
    const char *const names[] = { "norm.weight", "norm.bias" };
    for (int i = 0; i < 2; i++) {
        ASSERT_OK(tutti_get_parameter(tuning.session.trainer, names[i], values, 6));
        ck_assert(values[0] == 1 && values[1] == -2 && values[2] == 0);
    }
    ASSERT_OK(safetensors_save(in_folder("u"), tensors + 2, 3, NULL, 0));
    fails_with(
        tutti_load_matching(tuning.session.trainer, in_folder("u"), NULL, NULL), TUTTI_MISMATCH, "none of the 3");
    fails_with(tutti_load_matching(tuning.session.trainer, in_folder("v"), NULL, NULL), TUTTI_FILE, "");
    fails_with(tutti_load_matching(tuning.session.trainer, NULL, NULL, NULL), TUTTI_INVALID, "NULL");
    session_close(&tuning.session);
}
END_TEST

static tutti_trainer *two_towers(tutti_network *network, const char *first, const char *second)
{
    const tutti_tensor x = tutti_input(network, "x", TUTTI_SHAPE(2));
    const tutti_tensor a = tutti_dense(network, x, 2, &(tutti_dense_options) { .name = first, .no_bias = true });
    const tutti_tensor b = tutti_dense(network, a, 2, &(tutti_dense_options) { .name = second, .no_bias = true });
    tutti_trainer *trainer = tutti_compile(network, b, &(tutti_training) { .loss = TUTTI_MSE, .batch = 1 });
    ck_assert_msg(trainer, "%s", tutti_message(NULL));
    return trainer;
}

/* Names that differ only in prefixes which are ignored: each parameter gets its own array, or the file is refused. */
START_TEST(prefixes_that_distinguish)
{
    static const struct {
        const char *parameters[2], *arrays[2];
        bool works;
    } cases[] = {
        { { "bert.x", "roberta.x" }, { "module.roberta.x.weight", "module.bert.x.weight" }, true },
        { { "x", "transformer.x" }, { "transformer.x.weight", "x.weight" }, true },
        { { "x", "transformer.x" }, { "x.weight", "other" }, false },
        { { "x", "y" }, { "bert.x.weight", "roberta.x.weight" }, false },
    };
    const float first[] = { 1, 2, 3, 4 }, second[] = { 5, 6, 7, 8 };
    const struct safetensors_tensor tensors[] = {
        { .name = cases[_i].arrays[0], .type = SAFETENSORS_F32, .rank = 2, .sizes = { 2, 2 }, .data = second },
        { .name = cases[_i].arrays[1], .type = SAFETENSORS_F32, .rank = 2, .sizes = { 2, 2 }, .data = first },
    };
    float values[4], before[4];
    char names[2][64];
    tutti_runtime *runtime = session_runtime("0", false);
    tutti_network *network = tutti_network_new(runtime);
    tutti_trainer *trainer = two_towers(network, cases[_i].parameters[0], cases[_i].parameters[1]);
    for (int i = 0; i < 2; i++) snprintf(names[i], sizeof(names[i]), "%s.weight", cases[_i].parameters[i]);
    ASSERT_OK(safetensors_save(in_folder("p"), tensors, 2, NULL, 0));
    ASSERT_OK(tutti_get_parameter(trainer, names[0], before, 4));
    const tutti_status status = tutti_load_matching(trainer, in_folder("p"), NULL, NULL);
    if (cases[_i].works)
        ASSERT_OK(status);
    else
        fails_with(status, TUTTI_MISMATCH, "but for prefixes");
    ASSERT_OK(tutti_get_parameter(trainer, names[0], values, 4));
    ck_assert_int_eq(memcmp(values, cases[_i].works ? first : before, sizeof(values)), 0);
    ASSERT_OK(tutti_get_parameter(trainer, names[1], values, 4));
    if (cases[_i].works) ck_assert_int_eq(memcmp(values, second, sizeof(values)), 0);
    tutti_trainer_free(trainer);
    tutti_network_free(network);
}
END_TEST

/* ------------------------------------------------------------------------------------------------ averages ---- */

static void snapshot_into(struct tuning *from, struct tuning *to)
{
    tutti_snapshot *snapshot = tutti_snapshot_take(from->session.trainer);
    ck_assert_msg(snapshot, "%s", tutti_message(NULL));
    ASSERT_OK(tutti_snapshot_restore(to->session.trainer, snapshot));
    tutti_snapshot_free(snapshot);
}

/* Trained parameters keep their values, whichever of two optimizers has averages, a momentum or neither. */
START_TEST(snapshots_between_optimizers)
{
    static const tutti_training optimizers[] = { { .momentum = 0.9f }, { .ema_decay = 0.9f },
        { .momentum = 0.9f, .ema_decay = 0.9f }, { .optimizer = TUTTI_ADAM, .ema_decay = 0.9f },
        { .nesterov = false } };
    enum { COUNT = sizeof(optimizers) / sizeof(*optimizers) };
    struct tuning from, to;
    float output[STEP_SAMPLES * CLASSES], other[STEP_SAMPLES * CLASSES];
    open_tuning(&from, _i % 2 ? "0,1" : "0", "", CLASSES, &optimizers[_i / 2 % COUNT], false);
    open_tuning(&to, _i % 2 ? "0,1" : "0", "", CLASSES, &optimizers[_i / 2 / COUNT], false);
    session_steps(&from.session, 3);
    ASSERT_OK(tutti_infer(from.session.trainer, FEED_ONE(images), STEP_SAMPLES, FETCH_ONE(from.output, output)));
    snapshot_into(&from, &to);
    same_bytes(&from.session, &to.session);
    ASSERT_OK(tutti_infer(to.session.trainer, FEED_ONE(images), STEP_SAMPLES, FETCH_ONE(to.output, other)));
    if (from.training.ema_decay == to.training.ema_decay) ck_assert_mem_eq(output, other, sizeof(output));
    if (_i / 2 % COUNT == _i / 2 / COUNT) {
        session_steps(&from.session, 1);
        session_steps(&to.session, 1);
        close_to(&from.session, &to.session, 1e-5);
    }
    session_close(&from.session);
    session_close(&to.session);
}
END_TEST

/* Frozen on the way, by a snapshot: parameters keep what they have learnt, which is not their average. */
START_TEST(averages_and_freezing)
{
    const tutti_training training = { .learning_rate = 0.02f, .momentum = 0.9f, .ema_decay = 0.9f };
    struct tuning tuning;
    int64_t count;
    open_tuning(&tuning, _i ? "0,1" : "0", "", CLASSES, &training, false);
    session_steps(&tuning.session, 3);
    float *before = session_parameters(&tuning.session, &count);
    tutti_snapshot *snapshot = tutti_snapshot_take(tuning.session.trainer);
    ck_assert_ptr_nonnull(snapshot);
    tutti_trainer_free(tuning.session.trainer);
    ASSERT_OK(tutti_freeze(tuning.session.network, "[tn]*"));
    compile(&tuning);
    ASSERT_OK(tutti_snapshot_restore(tuning.session.trainer, snapshot));
    tutti_snapshot_free(snapshot);
    float *after = session_parameters(&tuning.session, &count);
    ck_assert_mem_eq(before, after, (size_t)count * sizeof(*before));
    free(before);
    free(after);
    session_close(&tuning.session);
}
END_TEST

/* Parameters that the file lacks keep what they have learnt and their averages. */
START_TEST(averages_and_other_weights)
{
    const tutti_training training = { .learning_rate = 0.02f, .momentum = 0.9f, .ema_decay = 0.9f };
    static const float zeros[6] = { 0 };
    const struct safetensors_tensor tensor = {
        .name = "norm.bias", .type = SAFETENSORS_F32, .rank = 1, .sizes = { 6 }, .data = zeros, .bytes = sizeof(zeros)
    };
    struct tuning loaded, set;
    float output[STEP_SAMPLES * CLASSES], other[STEP_SAMPLES * CLASSES];
    open_tuning(&loaded, _i ? "0,1" : "0", "", CLASSES, &training, false);
    open_tuning(&set, _i ? "0,1" : "0", "", CLASSES, &training, false);
    session_steps(&loaded.session, 3);
    session_steps(&set.session, 3);
    ASSERT_OK(safetensors_save(in_folder("t"), &tensor, 1, NULL, 0));
    ASSERT_OK(tutti_load_matching(loaded.session.trainer, in_folder("t"), NULL, NULL));
    ASSERT_OK(tutti_set_parameter(set.session.trainer, "norm.bias", zeros, 6));
    same_bytes(&loaded.session, &set.session);
    ASSERT_OK(tutti_infer(loaded.session.trainer, FEED_ONE(images), STEP_SAMPLES, FETCH_ONE(loaded.output, output)));
    ASSERT_OK(tutti_infer(set.session.trainer, FEED_ONE(images), STEP_SAMPLES, FETCH_ONE(set.output, other)));
    ck_assert_mem_eq(output, other, sizeof(output));
    session_close(&loaded.session);
    session_close(&set.session);
}
END_TEST

/* --------------------------------------------------------------------------------------------------- rates ---- */

static int read_data(void *user, const int64_t *indices, int64_t count, const tutti_buffer *buffers, int buffer_count)
{
    (void)user;
    (void)buffer_count;
    for (int64_t i = 0; i < count; i++) {
        memcpy((float *)buffers[0].data + i * PIXELS, images + indices[i] * PIXELS, PIXELS * sizeof(float));
        ((int32_t *)buffers[1].data)[i] = labels[indices[i]];
    }
    return 0;
}
static const tutti_source source = { .samples = SAMPLES, .read = read_data };

static void free_result(tutti_rate_result *result)
{
    free(result->rates);
    free(result->losses);
    free(result->smoothed);
}

/* A useful rate is suggested, and the training that follows is the one without the test. */
START_TEST(range_test)
{
    const char *const devices = _i % 2 ? "0,1" : "0";
    const tutti_training *rule = &rules[_i / 2];
    struct tuning tested, untested;
    tutti_rate_result result = { .size = sizeof(result) };
    open_tuning(&tested, devices, "", CLASSES, rule, false);
    open_tuning(&untested, devices, "", CLASSES, rule, false);
    ASSERT_OK(tutti_find_rate(tested.session.trainer, &source, NULL, &result));
    ck_assert(result.count > 30 && result.count <= 100);
    ck_assert(fabs(result.rates[0] / 1e-7 - 1) < 1e-6);
    for (int i = 1; i < result.count; i++) ck_assert(result.rates[i] > result.rates[i - 1]);
    ck_assert_msg(result.valley > 1e-6 && result.valley < 1, "%g", result.valley);
    ck_assert_msg(result.steepest > 1e-6 && result.steepest < 5, "%g", result.steepest);
    free_result(&result);
    same_bytes(&tested.session, &untested.session);
    ASSERT_OK(fit(&tested, (tutti_fitting) { .epochs = 1 }));
    ASSERT_OK(fit(&untested, (tutti_fitting) { .epochs = 1 }));
    same_bytes(&tested.session, &untested.session);
    session_close(&tested.session);
    session_close(&untested.session);
}
END_TEST

START_TEST(range_test_refuses)
{
    struct tuning tuning;
    tutti_rate_result result = { .size = sizeof(result) };
    open_tuning(&tuning, "0", "", CLASSES, &rules[0], false);
    tutti_trainer *trainer = tuning.session.trainer;
    const tutti_rate_options bad[] = { { .low = -1 }, { .low = 1, .high = 0.5 }, { .low = NAN }, { .steps = 9 },
        { .steps = 1001 }, { .batch = STEP_SAMPLES + 1 } };
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        fails_with(tutti_find_rate(trainer, &source, &bad[i], &result), TUTTI_INVALID, "");
    fails_with(tutti_find_rate(trainer, NULL, NULL, &result), TUTTI_INVALID, "NULL");
    fails_with(tutti_find_rate(trainer, &source, NULL, NULL), TUTTI_INVALID, "NULL");
    tutti_cancel(trainer);
    fails_with(tutti_find_rate(trainer, &source, NULL, &result), TUTTI_CANCELLED, "cancelled");
    session_close(&tuning.session);
}
END_TEST

Suite *suite_finetune(void)
{
    Suite *suite = suite_create("finetune");
    TCase *cases = cases_new(suite, "finetune", setup, folder_remove);
    add_cases(cases, thawed_and_resumed, 2 * RULES);
    add_cases(cases, states_after_a_thaw, RULES);
    tcase_add_test(cases, snapshots_of_other_networks);
    add_cases(cases, weights_with_another_head, 9);
    tcase_add_test(cases, weights_of_other_types);
    tcase_add_loop_test(cases, prefixes_that_distinguish, 0, 4);
    add_cases(cases, snapshots_between_optimizers, 2 * 5 * 5);
    tcase_add_loop_test(cases, averages_and_freezing, 0, 2);
    tcase_add_loop_test(cases, averages_and_other_weights, 0, 2);
    add_cases(cases, range_test, 2 * RULES);
    tcase_add_test(cases, range_test_refuses);
    return suite;
}
