/* Schedules, clipping, averages of the parameters, the best epoch; on one and two devices,
 * and resumed to the same bytes. */
#include "tests/feeds.h"
#include "tests/train/folder.h"
#include "tests/train/test_devices.h"
#include "tests/train/training.h"

#include "formats/safetensors.h"

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

static void run(const char *format, const char *a, const char *b)
{
    char command[300];
    snprintf(command, sizeof(command), format, a, b);
    ck_assert_msg(system(command) == 0, "%s", command);
}

static void same_file(const char *a, const char *b)
{
    run("cmp '%s' '%s'", in_folder(a), in_folder(b));
}

/* ------------------------------------------------------------------------------------------------- clipping ---- */

/* The trained parameters, or their gradients; freed by free(). */
static float *read_all(struct session *session, bool gradients, int64_t *count)
{
    tutti_shape shape;
    const char *name;
    bool trained;
    float *values = NULL;
    *count = 0;
    for (int i = 0; tutti_parameter_info(session->network, i, &name, &shape, &trained) == TUTTI_OK; i++) {
        int64_t elements = 1;
        for (int j = 0; j < shape.rank; j++) elements *= shape.sizes[j];
        if (!trained) continue;
        values = realloc(values, (size_t)(*count + elements) * sizeof(*values));
        ck_assert_ptr_nonnull(values);
        ASSERT_OK(
            (gradients ? tutti_get_gradient : tutti_get_parameter)(session->trainer, name, values + *count, elements));
        *count += elements;
    }
    return values;
}

static void open_way(struct session *session, const struct way *way, enum kind kind, const tutti_training *training)
{
    if (way->training.sharing == TUTTI_SHARES_AUTO)
        session_open_automatic(session, way->devices, kind, training);
    else
        (way->apart ? session_open_apart : session_open)(session, way->devices, kind, training);
}

/* Compared with the gradients that the devices have. A large limit changes nothing, but also gives the norm. */
START_TEST(clips_by_the_norm)
{
    const struct way *way = &training_ways[_i / 2];
    tutti_training training = way->training;
    struct session session;
    int64_t count;
    double sum = 0;
    training.clip_norm = _i % 2 ? 0.05f : INFINITY;
    open_way(&session, way, KIND_NORM, &training);
    ck_assert(isnan(tutti_gradient_norm(session.trainer)));
    float *before = read_all(&session, false, &count);
    session_steps(&session, 1);
    float *after = read_all(&session, false, &count), *gradients = read_all(&session, true, &count);
    for (int64_t i = 0; i < count; i++) sum += (double)gradients[i] * gradients[i];
    const double norm = sqrt(sum), told = tutti_gradient_norm(session.trainer);
    ck_assert_msg(fabs(told - norm) <= 1e-5 * norm, "the norm is %.9g, but %.9g was told", norm, told);
    ck_assert(norm > 0.05);
    const double factor = _i % 2 ? 0.05 / norm : 1;
    for (int64_t i = 0; i < count; i++) {
        const double wanted = before[i] - 0.05 * factor * gradients[i];
        ck_assert_msg(fabs(after[i] - wanted) <= 1e-6 * (1 + fabs(wanted)), "%lld: %.9g, but %.9g", (long long)i,
            (double)after[i], wanted);
    }
    free(before);
    free(after);
    free(gradients);
    session_close(&session);
}
END_TEST

/* Gradients whose squares are not floats, of each scale: 3 and 4 times it. One device squares them itself, several have
 * the host do it. An infinite norm is refused. */
START_TEST(clips_far_from_one)
{
    static const float scales[] = { 1e-30f, 1e-24f, 3e-12f, 1, 2e11f, 3e12f, 1e19f, 6e37f, 8e37f, 8.1e37f };
    static const float rows[] = { 3, 4, 3, 4 }, zeros[] = { 0, 0 }, before[] = { -1e-9f, -1e-9f }; /* so is the loss */
    const float scale = scales[_i / 2];
    const bool finite = (double)scale * 5 < 3.4e38;
    struct session session = { .runtime = session_runtime(_i % 2 ? "0,1" : "0", false) };
    tutti_network *network = session.network = tutti_network_new(session.runtime);
    const tutti_tensor x = tutti_input(network, "x", TUTTI_SHAPE(2));
    const tutti_tensor y = tutti_dense(network, x, 1, &(tutti_dense_options) { .name = "l", .no_bias = true });
    const int64_t sizes[] = { 1 };
    const tutti_tensor targets = tutti_input_typed(network, "targets", TUTTI_DTYPE_F32, sizes, 1);
    const tutti_tensor loss = tutti_l1(network, y, targets, NULL);
    float after[2];
    ASSERT_OK(tutti_set_initial(network, "l.weight", before, 2));
    tutti_trainer *trainer = session.trainer = tutti_compile(network, y,
        &(tutti_training) { .learning_rate = 1,
            .batch = 2,
            .clip_norm = 0.5f,
            .losses = &loss,
            .loss_count = 1,
            .loss_weights = &scale,
            .sharing = TUTTI_SHARES_EQUAL });
    ck_assert_msg(trainer != NULL, "%s", tutti_message(NULL));
    const tutti_feed feeds[] = { { "x", TUTTI_DTYPE_F32, rows, 0 }, { "targets", TUTTI_DTYPE_F32, zeros, 0 } };
    const tutti_status status = tutti_train_step(trainer, feeds, 2, 2, NULL);
    ASSERT_OK(tutti_get_parameter(trainer, "l.weight", after, 2));
    if (finite) {
        ck_assert_msg(status == TUTTI_OK, "%g: %s", (double)scale, tutti_message(NULL));
        const double norm = (double)scale * 5, told = (double)tutti_gradient_norm(trainer);
        ck_assert_msg(fabs(told / norm - 1) < 1e-6, "the norm is %.9g, but %.9g was told", norm, told);
        for (int i = 0; i < 2; i++) {
            const double factor = norm > 0.5 ? 0.5 / (norm + 1e-6) : 1;
            const double wanted = (double)before[i] + factor * (double)(scale * rows[i]);
            ck_assert_msg(
                fabs((double)after[i] - wanted) < 1e-6, "%g: %.9g, not %.9g", (double)scale, (double)after[i], wanted);
        }
    } else {
        fails_with(status, TUTTI_NOT_FINITE, "gradients");
        ck_assert(after[0] == before[0] && after[1] == before[1]);
    }
    session_close(&session);
}
END_TEST

static const tutti_training steered = {
    .optimizer = TUTTI_ADAM, .learning_rate = 0.01f, .epsilon = 1e-3f, .clip_norm = 0.5f, .ema_decay = 0.8f
};

/* Any division of the batch ends with the same parameters and averages, up to rounding. */
START_TEST(any_division_does_the_same)
{
    struct session one, other;
    const struct way *way = &training_ways[_i + 1];
    tutti_training training = way->training, first = steered;
    first.sharing = TUTTI_SHARES_EQUAL;
    training.optimizer = steered.optimizer;
    training.learning_rate = steered.learning_rate;
    training.epsilon = steered.epsilon;
    training.clip_norm = steered.clip_norm;
    training.ema_decay = steered.ema_decay;
    session_open(&one, "0", KIND_PLAIN, &first);
    open_way(&other, way, KIND_PLAIN, &training);
    float a[STEP_SAMPLES * CLASSES], b[STEP_SAMPLES * CLASSES];
    for (int turn = 0; turn < 3; turn++) {
        session_steps(&one, 2);
        session_steps(&other, 2);
        const double norm = tutti_gradient_norm(one.trainer);
        ck_assert(fabs(tutti_gradient_norm(other.trainer) - norm) <= 1e-4 * norm);
        ASSERT_OK(tutti_infer(one.trainer, FEED_ONE(images), STEP_SAMPLES, FETCH_FIRST(one.trainer, a)));
        ASSERT_OK(tutti_infer(other.trainer, FEED_ONE(images), STEP_SAMPLES, FETCH_FIRST(other.trainer, b)));
        for (int i = 0; i < STEP_SAMPLES * CLASSES; i++) ck_assert(fabsf(a[i] - b[i]) < 1e-4f);
    }
    close_to(&one, &other, 1e-4);
    session_close(&one);
    session_close(&other);
}
END_TEST

/* Micro-batches that are equally large: running means are the mean of theirs, which is that of the whole batch. */
START_TEST(micro_batches_share_running_means)
{
    enum { CHANNELS = 6 };
    float means[2][CHANNELS];
    for (int i = 0; i < 2; i++) {
        struct session session;
        const tutti_training training = { .micro_batch = i ? STEP_SAMPLES / 4 : 0 };
        session_open(&session, "0", KIND_NORM, &training);
        session_steps(&session, 1);
        ASSERT_OK(tutti_get_parameter(session.trainer, "bn.running_mean", means[i], CHANNELS));
        session_close(&session);
    }
    for (int i = 0; i < CHANNELS; i++) ck_assert_float_eq_tol(means[0][i], means[1][i], 1e-6f);
}
END_TEST

/* ------------------------------------------------------------------------------------------------- averages ---- */

static void check_averages(struct session *session, const float *wanted)
{
    struct safetensors *file = NULL;
    const char *name;
    bool trained;
    ASSERT_OK(tutti_save_weights(session->trainer, in_folder("averages")));
    ASSERT_OK(safetensors_open(in_folder("averages"), &file));
    for (int i = 0; tutti_parameter_info(session->network, i, &name, NULL, &trained) == TUTTI_OK; i++) {
        if (!trained) continue;
        const struct safetensors_tensor *tensor = safetensors_find(file, name);
        const float *found = tensor->data;
        for (size_t j = 0; j < tensor->bytes / sizeof(float); j++, wanted++)
            ck_assert_msg(fabsf(found[j] - *wanted) < 1e-6f, "%s %zu: %.9g, but %.9g", name, j, (double)found[j],
                (double)*wanted);
    }
    safetensors_close(file);
}

/* Parameters go on as without averages; evaluating in between changes nothing. */
START_TEST(averages_follow)
{
    const char *const devices = _i ? "0,1" : "0";
    const tutti_training training = { .momentum = 0.9f, .ema_decay = 0.75f };
    struct session session, plain;
    int64_t count;
    session_open(&session, devices, KIND_NORM, &training);
    session_open(&plain, devices, KIND_NORM, NULL);
    float *averages = read_all(&session, false, &count);
    for (int step = 0; step < 4; step++) {
        session_steps(&session, 1);
        session_steps(&plain, 1);
        float *parameters = read_all(&session, false, &count);
        for (int64_t i = 0; i < count; i++) averages[i] += 0.25f * (parameters[i] - averages[i]);
        free(parameters);
        tutti_metrics metrics;
        if (step % 2) ASSERT_OK(tutti_evaluate(session.trainer, FEED_PAIR(images, labels), SAMPLES, &metrics));
        check_averages(&session, averages);
    }
    same_bytes(&session, &plain);
    /* Values that are set begin anew. */
    ASSERT_OK(tutti_load_weights(session.trainer, in_folder("averages")));
    check_averages(&session, averages);
    float *loaded = read_all(&session, false, &count);
    check_averages(&session, loaded);
    free(loaded);
    free(averages);
    session_close(&session);
    session_close(&plain);
}
END_TEST

/* ------------------------------------------------------------------------------------------------- resuming ---- */

struct heard {
    tutti_trainer *trainer;
    float rates[128];
    int steps, epochs;
};

static int hear(void *user, const tutti_progress *progress)
{
    struct heard *heard = user;
    if (progress->end_of_epoch) heard->epochs++;
    if (progress->end_of_epoch) return 0;
    ck_assert_int_lt(heard->steps, 128);
    heard->rates[heard->steps++] = tutti_learning_rate(heard->trainer);
    return 0;
}

static tutti_status fit(struct session *session, tutti_fitting fitting, struct heard *heard)
{
    fitting.progress = hear;
    fitting.user = heard;
    heard->trainer = session->trainer;
    return tutti_fit(session->trainer, FEED_PAIR(images, labels), SAMPLES, &fitting);
}

static const tutti_schedule schedules[] = { { .kind = TUTTI_SCHEDULE_COSINE, .warmup_steps = 3 },
    { .kind = TUTTI_SCHEDULE_PLATEAU, .factor = 0.5f, .patience = 1 } };

/* Stopped within the second epoch, at its end, and then not; in a process that begins anew each time. */
START_TEST(resumed_equals_never_stopped)
{
    const char *const devices = _i % 2 ? "0,1" : "0";
    const int64_t stops[] = { 7, 3, 0 };
    tutti_fitting fitting = {
        .epochs = 4, .save = in_folder("whole"), .save_best = true, .patience = 3, .schedule = &schedules[_i / 2]
    };
    struct session whole, part;
    struct heard all = { 0 }, parts = { 0 };
    session_open(&whole, devices, KIND_DROPOUT, &steered);
    ASSERT_OK(fit(&whole, fitting, &all));
    fitting.save = in_folder("part");
    for (int i = 0; i < 3; i++) {
        session_open(&part, devices, KIND_DROPOUT, &steered);
        fitting.steps = stops[i];
        ASSERT_OK(fit(&part, fitting, &parts));
        fitting.resume = fitting.save;
        if (i < 2) session_close(&part);
    }
    same_bytes(&whole, &part);
    same_file("whole.safetensors", "part.safetensors");
    same_file("whole.state.safetensors", "part.state.safetensors");
    same_file("whole.best.safetensors", "part.best.safetensors");
    ck_assert_int_eq(all.steps, parts.steps);
    ck_assert_mem_eq(all.rates, parts.rates, sizeof(all.rates));
    if (_i / 2 == 0) ck_assert(all.rates[0] < all.rates[3] && all.rates[3] > all.rates[19]);
    ck_assert(tutti_learning_rate(part.trainer) == steered.learning_rate);
    session_close(&whole);
    session_close(&part);
}
END_TEST

/* With a rate of nearly 0 nothing gets better: the first epoch is the best one. */
START_TEST(stops_without_progress)
{
    const tutti_training training = { .learning_rate = 1e-30f };
    struct session session;
    struct heard heard = { 0 };
    session_open(&session, _i ? "0,1" : "0", KIND_PLAIN, &training);
    const tutti_fitting fitting = {
        .epochs = 9, .save = in_folder("a"), .save_best = true, .patience = 2, .no_shuffle = true
    };
    ASSERT_OK(fit(&session, fitting, &heard));
    ck_assert_int_eq(heard.epochs, 3);
    ck_assert_int_eq(session.trainer->state.position.best.epoch, 1);
    same_file("a.safetensors", "a.best.safetensors");
    tutti_fitting again = fitting;
    again.resume = again.save;
    ASSERT_OK(fit(&session, again, &heard));
    ck_assert_int_eq(heard.epochs, 3);
    session_close(&session);
}
END_TEST

/* Patience counts epochs that it has judged: not those of a phase without it, whether or not the best weights were
 * saved there. */
START_TEST(patience_begins_later)
{
    const tutti_training training = { .learning_rate = 1e-30f };
    struct session session;
    struct heard heard = { 0 };
    session_open(&session, "0", KIND_PLAIN, &training);
    tutti_fitting without = { .epochs = 3, .save = in_folder("a"), .save_best = _i, .no_shuffle = true };
    ASSERT_OK(fit(&session, without, &heard));
    const tutti_fitting with = { .epochs = 20, .resume = in_folder("a"), .patience = 2, .no_shuffle = true };
    heard.epochs = 0;
    ASSERT_OK(fit(&session, with, &heard));
    ck_assert_int_eq(heard.epochs, _i ? 2 : 3); /* with the best one known, no later one is better */
    session_close(&session);
    /* Phases in one process: with patience, without, with it again. */
    session_open(&session, "0", KIND_PLAIN, &training);
    tutti_fitting phase = { .epochs = 20, .pause_after = 2, .patience = 3, .no_shuffle = true };
    ASSERT_OK(fit(&session, phase, &heard));
    phase.pause_after = 6;
    phase.patience = 0;
    ASSERT_OK(fit(&session, phase, &heard));
    phase.pause_after = 0;
    phase.patience = 3;
    heard.epochs = 0;
    ASSERT_OK(fit(&session, phase, &heard));
    ck_assert_int_eq(heard.epochs, 3);
    session_close(&session);
}
END_TEST

START_TEST(refuses)
{
    static const tutti_training bad[] = { { .clip_norm = -1 }, { .clip_norm = NAN }, { .ema_decay = 1 },
        { .ema_decay = -0.5f }, { .ema_decay = NAN } };
    struct session session;
    struct heard heard = { 0 };
    session_open(&session, "0", KIND_PLAIN, &steered);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        ck_assert_ptr_null(
            tutti_compile(session.network, (tutti_tensor) { session.trainer->objective.outputs[0] }, &bad[i]));
    fails_with(fit(&session, (tutti_fitting) { .save_best = true }, &heard), TUTTI_INVALID, "tutti_fitting.save");
    fails_with(fit(&session, (tutti_fitting) { .patience = -1 }, &heard), TUTTI_INVALID, "patience");
    const tutti_schedule long_warmup = { .kind = TUTTI_SCHEDULE_COSINE, .warmup_steps = 5 };
    fails_with(fit(&session, (tutti_fitting) { .schedule = &long_warmup }, &heard), TUTTI_INVALID, "warm-up");
    ASSERT_OK(tutti_save(session.trainer, in_folder("averaged")));
    session_close(&session);
    tutti_training plain = steered;
    plain.ema_decay = 0;
    session_open(&session, "0", KIND_PLAIN, &plain);
    fails_with(tutti_resume(session.trainer, in_folder("averaged")), TUTTI_MISMATCH, "EMA");
    session_close(&session);
    ck_assert(isnan(tutti_learning_rate(NULL)) && isnan(tutti_gradient_norm(NULL)));
}
END_TEST

Suite *suite_schedules(void)
{
    Suite *suite = suite_create("schedules");
    TCase *cases = cases_new(suite, "schedules", setup, folder_remove);
    add_cases(cases, clips_by_the_norm, 2 * WAYS);
    add_cases(cases, clips_far_from_one, 2 * 10);
    add_cases(cases, any_division_does_the_same, WAYS - 1);
    tcase_add_test(cases, micro_batches_share_running_means);
    add_cases(cases, averages_follow, 2);
    add_cases(cases, resumed_equals_never_stopped, 4);
    add_cases(cases, stops_without_progress, 2);
    tcase_add_loop_test(cases, patience_begins_later, 0, 2);
    tcase_add_test(cases, refuses);
    return suite;
}
