/* Random trainings: networks, optimizers, options and divisions of the batch that a seed chooses. For each seed
 *
 *   - one device ends like another division of the batch: two devices, micro-batches, other shares, samples and
 *     gradients that travel, or bfloat16 on the wire, within a tolerance;
 *   - a training that is stopped at a random step and resumed from its files, with a snapshot on the way and calls in
 *     between that change nothing, ends with the files of the undisturbed one, to the byte;
 *   - steps whose samples are announced and whose outputs are fetched end like plain ones, to the byte.
 *
 *   properties [--first SEED] [--count N]      seeds FIRST to FIRST + N - 1
 *   properties --seed SEED                     one of them, which is described */
#include "tests/feeds.h"
#include "tests/train/folder.h"
#include "tests/train/reference.h"
#include "tests/train/training.h"

#include "base/random.h"
#include "tutti_advanced.h"
#include "tutti_finetune.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH_OF = 8, DATA = 20, EPOCHS = 2, STEPS = 6, LONG = 6, FEATURES = 4, UNITS = 5 };
enum shape { SHAPE_DENSE, SHAPE_IMAGE, SHAPE_NORM, SHAPE_DROPOUT, SHAPE_SEQUENCE, SHAPES };

/* Settings that a seed chooses. */
struct property {
    uint64_t seed;
    enum shape shape;
    tutti_training training;
    bool bias_group, freezes;
    bool scheduled, test, no_shuffle;
    tutti_schedule schedule;
    int64_t patience, stop; /* the step at which it is stopped */
    int division, disturbance;
    uint64_t drawn;
};

static uint64_t draw(struct property *p, uint64_t below)
{
    return random_below(p->seed, 77, p->drawn++, below);
}

/* ------------------------------------------------------------------------------------------------ divisions ---- */

static const double fewer[] = { 1, 3 }, more[] = { 3, 1 };
static const tutti_advanced_options half = { .wire = TUTTI_BF16 };
static const struct split {
    const char *name, *devices;
    bool apart;
    int64_t micro_batch;
    const double *shares;
    const tutti_advanced_options *advanced;
    double tolerance;
} divisions[] = {
    { "micro-batches", "0", false, 4, NULL, NULL, 1e-3 },
    { "two devices", "0,1", false, 0, NULL, NULL, 1e-3 },
    { "a smaller and a larger share", "0,1", false, 0, fewer, NULL, 1e-3 },
    { "two devices with memory of their own", "0,1", true, 0, more, NULL, 1e-3 },
    { "one device with memory of its own", "0", true, 0, NULL, NULL, 1e-3 },
    { "two with micro-batches", "0,1", true, 2, NULL, NULL, 1e-3 },
    { "bfloat16 on the wire", "0,1", true, 0, NULL, &half, 5e-2 },
};
enum { DIVISIONS = sizeof(divisions) / sizeof(*divisions) };

/* ------------------------------------------------------------------------------------------------- choosing ---- */

static void choose_optimizer(struct property *p)
{
    tutti_training *t = &p->training;
    *t = reference_trainings[draw(p, REFERENCE_TRAININGS)];
    t->weight_decay = draw(p, 2) ? 0.05f : 0;
    if (draw(p, 3) == 0) t->clip_norm = draw(p, 2) ? 0.3f : INFINITY;
    if (draw(p, 2)) t->ema_decay = 0.75f;
}

static void choose_schedule(struct property *p)
{
    static const tutti_schedule schedules[] = { { .kind = TUTTI_SCHEDULE_COSINE, .warmup_steps = 2 },
        { .kind = TUTTI_SCHEDULE_STEP, .step_size = 1, .factor = 0.5f }, { .kind = TUTTI_SCHEDULE_ONE_CYCLE },
        { .kind = TUTTI_SCHEDULE_PLATEAU, .patience = 1 }, { .kind = TUTTI_SCHEDULE_CONSTANT, .warmup_epochs = 1 } };
    const uint64_t number = draw(p, 2 * sizeof(schedules) / sizeof(*schedules));
    p->scheduled = number < sizeof(schedules) / sizeof(*schedules);
    if (p->scheduled) p->schedule = schedules[number];
}

static struct property choose(uint64_t seed)
{
    struct property p = { .seed = seed };
    p.shape = (enum shape)draw(&p, SHAPES);
    choose_optimizer(&p);
    choose_schedule(&p);
    p.bias_group = draw(&p, 3) == 0;
    p.freezes = draw(&p, 3) == 0;
    p.no_shuffle = draw(&p, 2);
    p.test = draw(&p, 2);
    p.patience = draw(&p, 3) ? 0 : 2;
    p.division = (int)draw(&p, DIVISIONS);
    p.disturbance = (int)draw(&p, 6);
    p.stop = 1 + (int64_t)draw(&p, STEPS - 1);
    p.training.exact = draw(&p, 4) == 0;
    p.training.fetch_in_training = draw(&p, 2);
    p.training.batch = BATCH_OF;
    p.training.seed = 1 + draw(&p, 1000);
    p.training.sync_batchnorm = p.shape == SHAPE_NORM;
    p.training.sharing = TUTTI_SHARES_EQUAL;
    p.training.recompute = draw(&p, 3) == 0;
    if (p.shape == SHAPE_SEQUENCE) p.training.sequence = LONG;
    if (p.shape == SHAPE_NORM && divisions[p.division].micro_batch > 0) p.division = 1; /* of the whole batch */
    return p;
}

static void describe(const struct property *p)
{
    static const char *const shapes[] = { "dense", "image", "norm", "dropout", "sequence" };
    printf("seed %llu: %s, %s, momentum %g%s, decay %g, clip %g, ema %g, schedule %d, group %d, freeze %d, "
           "test %d, patience %lld, %s, stopped at step %lld, disturbance %d\n",
        (unsigned long long)p->seed, shapes[p->shape], tutti_optimizer_name(p->training.optimizer),
        (double)p->training.momentum, p->training.nesterov ? " (nesterov)" : "", (double)p->training.weight_decay,
        (double)p->training.clip_norm, (double)p->training.ema_decay, p->scheduled ? (int)p->schedule.kind : -1,
        p->bias_group, p->freezes, p->test, (long long)p->patience, divisions[p->division].name, (long long)p->stop,
        p->disturbance);
    fflush(stdout);
}

/* ------------------------------------------------------------------------------------------------- networks ---- */

static tutti_tensor build(tutti_network *network, enum shape shape)
{
    tutti_tensor x;
    if (shape == SHAPE_SEQUENCE) {
        x = tutti_input(network, "x", TUTTI_SHAPE(TUTTI_SEQUENCE, FEATURES));
        x = tutti_tanh(network, tutti_dense(network, x, UNITS, &(tutti_dense_options) { .name = "first" }));
        x = tutti_flatten(network, tutti_op(network, "reduce_mean", &x, 1, "axes=0"));
    } else if (shape == SHAPE_DENSE || shape == SHAPE_DROPOUT) {
        x = tutti_flatten(network, tutti_input(network, "x", TUTTI_SHAPE(2, 7, 7)));
        x = tutti_tanh(network, tutti_dense(network, x, UNITS, &(tutti_dense_options) { .name = "first" }));
        if (shape == SHAPE_DROPOUT) {
            x = tutti_dropout(network, x, 0.3f);
            x = tutti_add(network, x, tutti_op(network, "random_normal", &x, 1, "scale=0.1"));
        }
    } else {
        x = tutti_input(network, "x", TUTTI_SHAPE(2, 7, 7));
        x = tutti_conv2d(network, x, UNITS, 3, &(tutti_conv2d_options) { .name = "first", .stride = 2 });
        if (shape == SHAPE_NORM) x = tutti_batch_norm(network, x, &(tutti_batch_norm_options) { .name = "norm" });
        x = tutti_flatten(network, tutti_tanh(network, x));
    }
    return tutti_dense(network, x, CLASSES, &(tutti_dense_options) { .name = "last" });
}

static void open_property(struct session *session, const struct property *p, const struct split *division)
{
    tutti_training training = p->training;
    session->runtime = session_runtime(division ? division->devices : "0", division && division->apart);
    session->network = tutti_network_new(session->runtime);
    const tutti_tensor output = build(session->network, p->shape);
    if (p->bias_group)
        ASSERT_OK(tutti_group(session->network, "*.bias",
            &(tutti_group_options) { .rate_factor = 0.5f, .has_weight_decay = true, .weight_decay = 0.01f }));
    if (p->freezes) ASSERT_OK(tutti_freeze(session->network, "first.weight"));
    if (division) {
        training.micro_batch = division->micro_batch;
        training.shares = division->shares;
        training.advanced = division->advanced;
    }
    session->trainer = tutti_compile(session->network, output, &training);
    ck_assert_msg(session->trainer, "%s", tutti_message(NULL));
}

/* ------------------------------------------------------------------------------------------------- training ---- */

static int read_some(void *user, const int64_t *indices, int64_t count, const tutti_buffer *buffers, int buffer_count)
{
    (void)user, (void)buffer_count;
    const size_t bytes = buffers[0].bytes;
    for (int64_t i = 0; i < count; i++) {
        memcpy((unsigned char *)buffers[0].data + (size_t)i * bytes, images + indices[i] * PIXELS, bytes);
        ((int32_t *)buffers[1].data)[i] = labels[indices[i]];
    }
    return 0;
}
static const tutti_source source = { .samples = DATA, .read = read_some };
static const tutti_source test_source = { .samples = 12, .read = read_some };

/* Calls that leave a training as it is. */
static void disturb(const struct property *p, struct session *session)
{
    float output[BATCH_OF * CLASSES];
    tutti_trainer *t = session->trainer;
    switch (p->disturbance) {
    case 0: ASSERT_OK(tutti_evaluate_source(t, &test_source, NULL)); break;
    case 1: ASSERT_OK(tutti_infer(t, FEED_ONE(images), BATCH_OF, FETCH_FIRST(t, output))); break;
    case 2: ASSERT_OK(tutti_save_weights(t, in_folder("w.safetensors"))); break;
    case 3: ASSERT_OK(tutti_get_parameter(t, "last.bias", output, CLASSES)); break;
    case 4: fails_with(tutti_train_step(t, FEED_PAIR(images, labels), BATCH_OF + 1, NULL), TUTTI_INVALID, ""); break;
    default: tutti_snapshot_free(tutti_snapshot_take(t));
    }
}

struct disturbed {
    const struct property *property;
    struct session *session;
    bool disturbs;
};

static int on_step(void *user, const tutti_progress *progress)
{
    struct disturbed *disturbed = user;
    if (!disturbed->disturbs || progress->end_of_epoch || disturbed->property->disturbance == 4) return 0;
    disturb(disturbed->property, disturbed->session);
    return 0;
}

static void train(const struct property *p, struct session *session, int64_t steps, const char *save,
    const char *resume, bool disturbs)
{
    struct disturbed disturbed = { p, session, disturbs };
    const tutti_fitting fitting = { .epochs = EPOCHS,
        .steps = steps,
        .no_shuffle = p->no_shuffle,
        .test = p->test ? &test_source : NULL,
        .save = in_folder(save),
        .resume = resume ? in_folder(resume) : NULL,
        .schedule = p->scheduled ? &p->schedule : NULL,
        .patience = p->patience,
        .progress = on_step,
        .user = &disturbed };
    ASSERT_OK(tutti_fit_source(session->trainer, &source, &fitting));
}

static void same_files(const char *a, const char *b)
{
    char command[300];
    snprintf(command, sizeof(command), "cmp -s '%s/%s' '%s/%s'", test_folder, a, test_folder, b);
    ck_assert_msg(system(command) == 0, "%s and %s differ", a, b);
}

static void same_checkpoints(const char *a, const char *b)
{
    char left[64], right[64];
    static const char *const ends[] = { ".safetensors", ".state.safetensors" };
    for (int i = 0; i < 2; i++) {
        snprintf(left, sizeof(left), "%s%s", a, ends[i]);
        snprintf(right, sizeof(right), "%s%s", b, ends[i]);
        same_files(left, right);
    }
}

/* --------------------------------------------------------------------------------------------- properties ---- */

/* One device, and the division; the undisturbed training is saved as "whole". */
static void divided(const struct property *p, const struct split *division)
{
    struct session one, other;
    open_property(&one, p, NULL);
    open_property(&other, p, division);
    train(p, &one, 0, "one", NULL, false);
    train(p, &other, 0, "whole", NULL, false);
    if (p->patience == 0 && p->schedule.kind != TUTTI_SCHEDULE_PLATEAU) /* which rounding may decide */
        close_to(&one, &other, division->tolerance);
    session_close(&one);
    session_close(&other);
}

/* Stopped and resumed in a new trainer, at its end from a snapshot that was taken before it went on. */
static void resumed(const struct property *p, const struct split *division)
{
    struct session session;
    open_property(&session, p, division);
    train(p, &session, p->stop, "part", NULL, true);
    if (p->drawn % 2) disturb(p, &session);
    session_close(&session);
    open_property(&session, p, division);
    train(p, &session, 1, "part", "part", false);
    tutti_snapshot *snapshot = tutti_snapshot_take(session.trainer);
    ck_assert_msg(snapshot, "%s", tutti_message(NULL));
    train(p, &session, 0, "part", NULL, true);
    if (session.trainer->state.position.steps > 0 && p->seed % 2) {
        session_close(&session);
        open_property(&session, p, division);
    }
    ASSERT_OK(tutti_snapshot_restore(session.trainer, snapshot));
    tutti_snapshot_free(snapshot);
    train(p, &session, 0, "part", NULL, false);
    same_checkpoints("whole", "part");
    session_close(&session);
}

/* Steps one by one on batches of several sizes and lengths. */
static void stepped(const struct property *p, const struct split *division)
{
    struct session plain, announced;
    float output[BATCH_OF * CLASSES];
    open_property(&plain, p, division);
    open_property(&announced, p, division);
    for (int step = 0; step < 4; step++) {
        const int64_t samples = step == 2 ? BATCH_OF / 2 : BATCH_OF;
        const int64_t length = p->shape == SHAPE_SEQUENCE ? (step % 2 ? LONG : LONG / 2) : 0;
        const float *x = images + step * BATCH_OF * PIXELS;
        tutti_feed feeds[] = { { "x", TUTTI_DTYPE_F32, x, length },
            { "targets", TUTTI_DTYPE_I32, labels + step * BATCH_OF, 0 } };
        tutti_feed next[] = { { "x", TUTTI_DTYPE_F32, x + BATCH_OF * PIXELS, length },
            { "targets", TUTTI_DTYPE_I32, labels + (step + 1) * BATCH_OF, 0 } };
        ASSERT_OK(tutti_train_step(plain.trainer, feeds, 2, samples, NULL));
        if (step < 3) ASSERT_OK(tutti_train_prefetch(announced.trainer, next, 2, BATCH_OF));
        if (p->training.fetch_in_training)
            ASSERT_OK(
                tutti_train_fetch(announced.trainer, feeds, 2, samples, FETCH_FIRST(announced.trainer, output), NULL));
        else
            ASSERT_OK(tutti_train_step(announced.trainer, feeds, 2, samples, NULL));
        if (step == 1) disturb(p, &announced);
    }
    same_bytes(&plain, &announced);
    session_close(&plain);
    session_close(&announced);
}

static uint64_t first = 1, last = 300;
static bool tells;

START_TEST(trainings_of_a_seed)
{
    const struct property p = choose(first + (uint64_t)_i);
    const struct split *division = &divisions[p.division];
    if (tells) describe(&p);
    divided(&p, division);
    resumed(&p, division);
    stepped(&p, division);
}
END_TEST

static void setup(void)
{
    folder_new();
}

int main(int count, char **words)
{
    for (int i = 1; i + 1 < count; i += 2) {
        const uint64_t number = strtoull(words[i + 1], NULL, 10);
        if (!strcmp(words[i], "--seed")) first = last = number;
        if (!strcmp(words[i], "--first")) first = number, last = number + 299;
        if (!strcmp(words[i], "--count")) last = first + number - 1;
        tells |= !strcmp(words[i], "--seed");
    }
    data_make();
    Suite *suite = suite_create("properties");
    TCase *cases =
        cases_new(suite, "a failed case, counted from 0, is seed --first + its number", setup, folder_remove);
    tcase_add_loop_test(cases, trainings_of_a_seed, 0, (int)(last - first + 1));
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK);
    sessions_share_runtimes();
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    sessions_end();
    return failed ? 1 : 0;
}
