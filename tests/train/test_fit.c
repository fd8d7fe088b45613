/* The loop over epochs: resuming, cancelling, the last small batch, sources that fail. */
#include "tests/feeds.h"
#include "tests/train/folder.h"
#include "tests/train/test_devices.h"
#include "tests/train/training.h"
#include "tutti_finetune.h"
#include "tutti_inspect.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void setup(void)
{
    data_make();
    folder_new();
}

/* Whether two files have the same bytes. */
static bool same_file(const char *a, const char *b)
{
    char command[300];
    snprintf(command, sizeof(command), "cmp -s '%s' '%s'", a, b);
    return system(command) == 0;
}

static tutti_status fit(struct session *session, tutti_fitting fitting)
{
    return tutti_fit(session->trainer, FEED_PAIR(images, labels), SAMPLES, &fitting);
}

static const tutti_training adam = { .optimizer = TUTTI_ADAM, .learning_rate = 0.01f };
static const tutti_training fp16 = { .optimizer = TUTTI_ADAM, .learning_rate = 0.01f, .precision = TUTTI_FP16 };

/* Half precision begins with a scale that steps are skipped for. */
static void open_scaled(struct session *session, const char *devices, enum kind kind, const tutti_training *training)
{
    session_open(session, devices, kind, training);
    if (session->trainer->state.loss_scale.on) session->trainer->state.loss_scale.scale = 0x1p24;
}

/* Stopped after 7 steps (in the second epoch), then after 2 more, then to the end; against never stopped. In the last
 * run the seed given when resuming is another one: the checkpoint's counts. */
START_TEST(resumed_equals_never_stopped)
{
    const char *const devices = _i % 2 ? "0,1" : "0";
    const tutti_training *const trainings[] = { NULL, &adam, &fp16 }, *const training = trainings[_i / 2];
    const enum kind kind = _i / 2 ? KIND_NORM : KIND_DROPOUT;
    struct session whole, part;
    open_scaled(&whole, devices, kind, training);
    ASSERT_OK(fit(&whole, (tutti_fitting) { .epochs = 3, .save = in_folder("whole") }));
    open_scaled(&part, devices, kind, training);
    ASSERT_OK(fit(&part, (tutti_fitting) { .epochs = 3, .steps = 7, .save = in_folder("part") }));
    session_close(&part);
    session_open(&part, devices, kind, training);
    ASSERT_OK(fit(
        &part, (tutti_fitting) { .epochs = 3, .steps = 2, .save = in_folder("part"), .resume = in_folder("part") }));
    ck_assert_int_eq(part.trainer->state.position.steps, 9);
    session_close(&part);
    tutti_training other = training ? *training : (tutti_training) { .momentum = 0.9f };
    other.seed = 1234;
    session_open(&part, devices, kind, &other);
    ASSERT_OK(fit(&part, (tutti_fitting) { .epochs = 3, .save = in_folder("part"), .resume = in_folder("part") }));
    same_bytes(&whole, &part);
    const struct loss_scale *scale = &part.trainer->state.loss_scale;
    if (part.runtime->devices[0].can.class == DEVICE_GPU) ck_assert_int_eq(scale->skipped > 0, scale->on);
    ck_assert(same_file(in_folder("whole.safetensors"), in_folder("part.safetensors")));
    ck_assert(same_file(in_folder("whole.state.safetensors"), in_folder("part.state.safetensors")));
    /* Nothing is left to do. */
    ASSERT_OK(fit(&part, (tutti_fitting) { .epochs = 3, .resume = in_folder("part") }));
    ck_assert_int_eq(part.trainer->state.position.steps, 15);
    session_close(&whole);
    session_close(&part);
}
END_TEST

/* Reports of progress. */
struct heard {
    struct session *session;
    int64_t cancel_at; /* step */
    int steps, epochs;
    tutti_progress last, end;
};

static int hear(void *user, const tutti_progress *progress)
{
    struct heard *heard = user;
    if (progress->end_of_epoch) {
        heard->epochs++;
        heard->end = *progress;
        return 0;
    }
    heard->steps++;
    heard->last = *progress;
    if (progress->total_steps == heard->cancel_at) tutti_cancel(heard->session->trainer);
    return 0;
}

/* A folder that is not there is noticed before anything is trained. */
START_TEST(nowhere_to_save)
{
    struct session session;
    struct heard heard = { .session = &session };
    session_open(&session, "0", KIND_DROPOUT, NULL);
    const tutti_fitting fitting = { .save = in_folder("no/a"), .progress = hear, .user = &heard };
    ck_assert_int_eq(fit(&session, fitting), TUTTI_FILE);
    ck_assert_msg(strstr(tutti_message(NULL), "no/a"), "%s", tutti_message(NULL));
    ck_assert_int_eq(heard.steps, 0);
    session_close(&session);
}
END_TEST

/* Takes the folder of the checkpoint away in the first epoch; puts it back in the last one. */
static int move_folder(void *user, const tutti_progress *progress)
{
    const int64_t *back = user;
    if (progress->end_of_epoch || progress->step != 1) return 0;
    if (progress->epoch == 1) ck_assert_int_eq(rename(in_folder("here"), in_folder("there")), 0);
    if (progress->epoch == *back) ck_assert_int_eq(rename(in_folder("there"), in_folder("here")), 0);
    return 0;
}

/* Saves that fail at the end of an epoch: training goes on. The last one decides. */
START_TEST(saves_that_fail)
{
    enum { EPOCHS = 3 };
    struct session session, again;
    int64_t back = _i ? EPOCHS : EPOCHS + 1;
    char name[128];
    snprintf(name, sizeof(name), "%s", in_folder("here/a"));
    ck_assert_int_eq(mkdir(in_folder("here"), 0700), 0);
    session_open(&session, "0", KIND_DROPOUT, NULL);
    const tutti_fitting fitting = { .epochs = EPOCHS, .save = name, .progress = move_folder, .user = &back };
    ck_assert_int_eq(fit(&session, fitting), _i ? TUTTI_OK : TUTTI_FILE);
    ck_assert_int_eq(session.trainer->state.position.epoch, EPOCHS);
    if (_i) {
        session_open(&again, "0", KIND_DROPOUT, NULL);
        ASSERT_OK(tutti_resume(again.trainer, name));
        same_bytes(&session, &again);
        session_close(&again);
    }
    session_close(&session);
}
END_TEST

START_TEST(cancelled_and_resumed)
{
    struct session whole, part;
    struct heard heard = { .session = &part, .cancel_at = 8 };
    session_open(&whole, "0", KIND_DROPOUT, NULL);
    ASSERT_OK(fit(&whole, (tutti_fitting) { .epochs = 2 }));
    session_open(&part, "0", KIND_DROPOUT, NULL);
    const tutti_fitting fitting = { .epochs = 2, .save = in_folder("part"), .progress = hear, .user = &heard };
    ck_assert_int_eq(fit(&part, fitting), TUTTI_CANCELLED);
    ck_assert_msg(strstr(tutti_message(NULL), "after step 8"), "%s", tutti_message(NULL));
    ck_assert_int_eq(heard.steps, 8);
    ck_assert_int_eq(heard.epochs, 1);
    ASSERT_OK(fit(&part, (tutti_fitting) { .epochs = 2, .resume = in_folder("part") }));
    same_bytes(&whole, &part);
    session_close(&whole);
    session_close(&part);
}
END_TEST

static int end_at_eighth(void *user, const tutti_progress *progress)
{
    (void)user;
    return progress->total_steps == 8;
}

/* A number that progress() returns ends the training as tutti_cancel() does. */
START_TEST(ended_by_progress)
{
    struct session whole, part;
    session_open(&whole, _i ? "0,1" : "0", KIND_PLAIN, NULL);
    ASSERT_OK(fit(&whole, (tutti_fitting) { .epochs = 2 }));
    session_open(&part, _i ? "0,1" : "0", KIND_PLAIN, NULL);
    const tutti_fitting fitting = { .epochs = 2, .save = in_folder("ended"), .progress = end_at_eighth };
    fails_with(fit(&part, fitting), TUTTI_CANCELLED, "after step 8");
    ASSERT_OK(fit(&part, (tutti_fitting) { .epochs = 2, .resume = in_folder("ended") }));
    same_bytes(&whole, &part);
    session_close(&whole);
    session_close(&part);
}
END_TEST

static void *begun_with;
static int64_t begun;

static void note_epoch(void *user, int64_t epoch)
{
    begun_with = user;
    begun = begun * 10 + epoch + 1;
}

START_TEST(epochs_of_arrays_begin_with_user)
{
    struct session session;
    int user;
    session_open(&session, "0", KIND_PLAIN, NULL);
    ASSERT_OK(fit(&session, (tutti_fitting) { .epochs = 2, .begin_epoch = note_epoch, .user = &user }));
    ck_assert_ptr_eq(begun_with, &user);
    ck_assert_int_eq(begun, 12);
    session_close(&session);
}
END_TEST

/* A fit that has ended cannot be cancelled, and the next one is not cancelled in its place. */
START_TEST(cancelled_after_its_end)
{
    struct session session;
    session_open(&session, "0", 0, &adam);
    ck_assert_int_eq(fit(&session, (tutti_fitting) { .epochs = 1 }), TUTTI_OK);
    tutti_cancel(session.trainer);
    ck_assert_int_eq(fit(&session, (tutti_fitting) { .epochs = 1 }), TUTTI_OK);
    session_close(&session);
}
END_TEST

/* 70 samples in batches of 16: four whole ones and one of 6. */
START_TEST(last_small_batch_counts)
{
    struct session session;
    struct heard heard = { .session = &session };
    session_open(&session, _i ? "0,1" : "0", KIND_PLAIN, NULL);
    const tutti_fitting fitting = { .epochs = 2, .no_shuffle = true, .progress = hear, .user = &heard };
    ASSERT_OK(fit(&session, fitting));
    ck_assert_int_eq(heard.steps, 10);
    ck_assert_int_eq(heard.epochs, 2);
    ck_assert_int_eq(heard.last.step, 5);
    ck_assert_int_eq(heard.last.steps_in_epoch, 5);
    ck_assert_int_eq(heard.end.train.samples, SAMPLES);
    ck_assert_int_eq(heard.end.epoch, 2);
    ck_assert_int_eq(heard.end.test.samples, 0);
    int64_t samples = 0;
    for (int i = 0; i <= _i; i++) {
        tutti_device_report report;
        ASSERT_OK(tutti_report(session.trainer, i, &report));
        samples += report.samples;
        ck_assert_double_gt(report.samples_per_s, 0);
    }
    ck_assert_int_eq(samples, 2 * SAMPLES);
    session_close(&session);
}
END_TEST

/* The epoch's metrics are those of its steps; the same steps by hand end in the same bytes. */
START_TEST(epoch_is_its_steps)
{
    struct session fitted, stepped;
    struct heard heard = { .session = &fitted };
    session_open(&fitted, "0", KIND_DROPOUT, NULL);
    session_open(&stepped, "0", KIND_DROPOUT, NULL);
    ASSERT_OK(fit(&fitted, (tutti_fitting) { .no_shuffle = true, .progress = hear, .user = &heard }));
    double loss = 0, correct = 0;
    for (int first = 0; first < SAMPLES; first += STEP_SAMPLES) {
        const int64_t samples = SAMPLES - first < STEP_SAMPLES ? SAMPLES - first : STEP_SAMPLES;
        tutti_metrics metrics;
        ASSERT_OK(
            tutti_train_step(stepped.trainer, FEED_PAIR(images + first * PIXELS, labels + first), samples, &metrics));
        loss += metrics.loss * (double)samples;
        correct += metrics.accuracy * (double)samples;
    }
    same_bytes(&fitted, &stepped);
    ck_assert_double_eq_tol(heard.end.train.loss, loss / SAMPLES, 1e-9);
    ck_assert_double_eq_tol(heard.end.train.accuracy, correct / SAMPLES, 1e-9);
    session_close(&fitted);
    session_close(&stepped);
}
END_TEST

static int dawdle(void *user, const tutti_progress *progress)
{
    (void)user;
    (void)progress;
    nanosleep(&(struct timespec) { .tv_nsec = 3000000 }, NULL); /* the reader gets ahead */
    return 0;
}

/* Batches that have been read are announced, which changes no byte; none is left announced after the end. */
START_TEST(batches_are_announced)
{
    struct session shared, apart;
    session_open(&shared, "0,1", KIND_DROPOUT, NULL);
    session_open_apart(&apart, "0,1", KIND_DROPOUT, NULL);
    const tutti_fitting fitting = { .epochs = 2, .steps = 8, .progress = dawdle };
    ASSERT_OK(fit(&shared, fitting));
    ASSERT_OK(fit(&apart, fitting));
    ck_assert_uint_gt(apart.trainer->lookahead.announced, 0);
    ck_assert(apart.trainer->lookahead.expected.number == 0 && apart.trainer->lookahead.next.number == 0);
    same_bytes(&shared, &apart);
    session_close(&shared);
    session_close(&apart);
}
END_TEST

static int read_images(void *user, const int64_t *indices, int64_t count, const tutti_buffer *buffers, int buffer_count)
{
    const int64_t *fail_at = user;
    float *inputs = buffers[0].data;
    int32_t *targets = buffers[1].data;
    if (buffer_count != 2) return 4;
    for (int64_t i = 0; i < count; i++) {
        if (fail_at && indices[i] == *fail_at) return 3;
        memcpy(inputs + i * PIXELS, images + indices[i] * PIXELS, PIXELS * sizeof(float));
        targets[i] = labels[indices[i]];
    }
    return 0;
}

START_TEST(learns_and_tests)
{
    struct session session;
    struct heard heard = { .session = &session };
    const tutti_source source = { .samples = SAMPLES, .read = read_images };
    session_open(&session, _i ? "0,1" : "0", KIND_NORM, NULL);
    const tutti_fitting fitting = { .epochs = 12, .test = &source, .progress = hear, .user = &heard };
    ASSERT_OK(tutti_fit_source(session.trainer, &source, &fitting));
    ck_assert_int_eq(heard.end.test.samples, SAMPLES);
    ck_assert_double_gt(heard.end.test.accuracy, 0.9);
    tutti_metrics metrics;
    ASSERT_OK(tutti_evaluate_source(session.trainer, &source, &metrics));
    ck_assert_double_eq(metrics.loss, heard.end.test.loss);
    ASSERT_OK(tutti_evaluate(session.trainer, FEED_PAIR(images, labels), SAMPLES, &metrics));
    ck_assert_double_eq_tol(metrics.loss, heard.end.test.loss, 1e-9);
    session_close(&session);
}
END_TEST

/* In bfloat16, a network learns what it learns in floats, with less memory where values are stored so; and its
 * checkpoint is one of floats, which both go on from. */
START_TEST(learns_as_well_in_bf16)
{
    struct session sessions[2];
    size_t bytes[2];
    tutti_metrics metrics[2], loaded;
    for (int i = 0; i < 2; i++) {
        session_open(
            &sessions[i], "0", KIND_APART, &(tutti_training) { .momentum = 0.9f, .precision = (tutti_precision)i });
        ASSERT_OK(fit(&sessions[i], (tutti_fitting) { .epochs = 15, .save = in_folder(i ? "bf16" : "fp32") }));
        ASSERT_OK(tutti_evaluate(sessions[i].trainer, FEED_PAIR(images, labels), SAMPLES, &metrics[i]));
        ck_assert_double_gt(metrics[i].accuracy, 0.9);
        bytes[i] = sessions[i].trainer->replicas[0].plans.plans[0].plan->memory.arena_bytes;
    }
    const bool stores = sessions[0].runtime->devices[0].can.class == DEVICE_CPU; /* others round operands of products */
    ck_assert(stores ? bytes[1] < bytes[0] : bytes[1] == bytes[0]);
    ck_assert(!same_file(in_folder("fp32.safetensors"), in_folder("bf16.safetensors")));
    ASSERT_OK(tutti_resume(sessions[0].trainer, in_folder("bf16")));
    same_bytes(&sessions[0], &sessions[1]);
    ASSERT_OK(tutti_evaluate(sessions[0].trainer, FEED_PAIR(images, labels), SAMPLES, &loaded));
    ck_assert_double_eq_tol(loaded.loss, metrics[1].loss, 0.02);
    ASSERT_OK(tutti_save(sessions[0].trainer, in_folder("again")));
    ck_assert(same_file(in_folder("again.safetensors"), in_folder("bf16.safetensors")));
    ASSERT_OK(tutti_resume(sessions[1].trainer, in_folder("fp32")));
    session_close(&sessions[0]);
    session_close(&sessions[1]);
}
END_TEST

START_TEST(source_that_fails)
{
    struct session session;
    int64_t fail_at = 40;
    const tutti_source source = { .samples = SAMPLES, .read = read_images, .user = &fail_at };
    session_open(&session, "0", KIND_PLAIN, NULL);
    ck_assert_int_eq(tutti_fit_source(session.trainer, &source, NULL), TUTTI_FILE);
    session_close(&session);
}
END_TEST

static int read_nothing(
    void *user, const int64_t *indices, int64_t count, const tutti_buffer *buffers, int buffer_count)
{
    (void)indices, (void)count, (void)buffers, (void)buffer_count;
    return (int)tutti_fail(TUTTI_FORMAT, user);
}

/* Another thread reads than the one that gets the message. */
START_TEST(source_that_tells_why)
{
    struct session session;
    static char why[] = "part 3 of the data is cut off";
    const tutti_source source = { .samples = SAMPLES, .read = read_nothing, .user = why };
    session_open(&session, "0", KIND_PLAIN, NULL);
    fails_with(tutti_fit_source(session.trainer, &source, NULL), TUTTI_FILE, why);
    fails_with(tutti_evaluate_source(session.trainer, &source, NULL), TUTTI_FILE, why);
    ck_assert_int_eq(tutti_last_status(), TUTTI_FILE);
    ck_assert_int_eq(tutti_fail(TUTTI_MISMATCH, NULL), TUTTI_MISMATCH);
    ck_assert_str_eq(tutti_message(NULL), tutti_status_text(TUTTI_MISMATCH));
    session_close(&session);
}
END_TEST

/* NaN in the data: training stops at that step, and the checkpoint of the epoch before is as it was. */
START_TEST(not_a_number_keeps_the_checkpoint)
{
    struct session session;
    session_open(&session, _i ? "0,1" : "0", KIND_PLAIN, NULL);
    ASSERT_OK(fit(&session, (tutti_fitting) { .save = in_folder("good"), .no_shuffle = true }));
    images[20 * PIXELS] = INFINITY; /* an infinite input makes the loss NaN or infinite, by its sign */
    ck_assert_int_eq(fit(&session,
                         (tutti_fitting) {
                             .epochs = 2, .save = in_folder("good"), .resume = in_folder("good"), .no_shuffle = true }),
        TUTTI_NOT_FINITE);
    ck_assert_msg(strstr(tutti_message(NULL), "at step 7"), "%s", tutti_message(NULL));
    ASSERT_OK(tutti_resume(session.trainer, in_folder("good")));
    ck_assert_int_eq(session.trainer->state.position.steps, 5);
    session_close(&session);
}
END_TEST

START_TEST(checkpoint_of_another_network)
{
    struct session a, b;
    session_open(&a, "0", KIND_PLAIN, NULL);
    session_open(&b, "0", KIND_NORM, NULL);
    ASSERT_OK(tutti_save(a.trainer, in_folder("a")));
    ck_assert_int_eq(tutti_resume(b.trainer, in_folder("a")), TUTTI_MISMATCH);
    ck_assert_msg(strstr(tutti_message(NULL), "bn."), "%s", tutti_message(NULL));
    ck_assert_int_eq(tutti_load_weights(b.trainer, in_folder("a.safetensors")), TUTTI_MISMATCH);
    ASSERT_OK(tutti_save_weights(b.trainer, in_folder("b.safetensors")));
    ck_assert_int_eq(tutti_load_weights(a.trainer, in_folder("b.safetensors")), TUTTI_MISMATCH);
    ASSERT_OK(tutti_load_weights(b.trainer, in_folder("b.safetensors")));
    ck_assert_int_eq(tutti_save(a.trainer, in_folder("no/a")), TUTTI_FILE);
    session_close(&a);
    session_close(&b);
}
END_TEST

START_TEST(bad_fittings)
{
    struct session session;
    session_open(&session, "0", KIND_PLAIN, NULL);
    ck_assert_int_eq(fit(&session, (tutti_fitting) { .batch = STEP_SAMPLES + 1 }), TUTTI_INVALID);
    ck_assert_int_eq(fit(&session, (tutti_fitting) { .epochs = -1 }), TUTTI_INVALID);
    ck_assert_int_eq(
        tutti_fit(session.trainer, FEED_PAIR(images, labels), 5, NULL), TUTTI_INVALID); /* fewer than a batch */
    ck_assert_msg(strstr(tutti_message(NULL), "larger than the data"), "%s", tutti_message(NULL));
    ck_assert_int_eq(tutti_fit(session.trainer, FEED_PAIR(images, labels), 0, NULL), TUTTI_INVALID);
    ck_assert_int_eq(fit(&session, (tutti_fitting) { .resume = in_folder("nothing") }), TUTTI_FILE);
    session_close(&session);
}
END_TEST

/* ----------------------------------------------------------------------------------------------- callbacks ---- */

/* A call that a callback of a fit makes at its third step. */
struct within {
    tutti_trainer *trainer;
    const tutti_snapshot *snapshot;
    int number; /* of the call */
    int steps;
    tutti_status status;
    bool cancels_before, cancels_after;
};

static int read_first(void *user, const int64_t *indices, int64_t count, const tutti_buffer *buffers, int buffer_count)
{
    (void)user, (void)buffer_count;
    for (int64_t i = 0; i < count; i++) {
        memcpy((float *)buffers[0].data + i * PIXELS, images + indices[i] * PIXELS, PIXELS * sizeof(float));
        ((int32_t *)buffers[1].data)[i] = labels[indices[i]];
    }
    return 0;
}

static tutti_status call(const struct within *within)
{
    const tutti_source source = { .samples = SAMPLES, .read = read_first };
    tutti_rate_result result = { .size = sizeof(result) };
    tutti_trainer *t = within->trainer;
    float output[STEP_SAMPLES * CLASSES];
    switch (within->number) {
    case 0: return tutti_fit(t, FEED_PAIR(images, labels), SAMPLES, NULL);
    case 1: return tutti_fit_source(t, &source, NULL);
    case 2: return tutti_train_step(t, FEED_PAIR(images, labels), STEP_SAMPLES, NULL);
    case 3: return tutti_train_prefetch(t, FEED_PAIR(images, labels), STEP_SAMPLES);
    case 4: return tutti_find_rate(t, &source, NULL, &result);
    case 5: return tutti_resume(t, "m");
    case 6: return tutti_snapshot_restore(t, within->snapshot);
    case 7: return tutti_evaluate(t, FEED_PAIR(images, labels), SAMPLES, NULL);
    case 8: return tutti_evaluate_source(t, &source, NULL);
    case 9: return tutti_save(t, in_folder("within"));
    default: return tutti_infer(t, FEED_ONE(images), STEP_SAMPLES, FETCH_FIRST(t, output));
    }
}
enum { REFUSED = 7, CALLS = 11 };

static int on_progress(void *user, const tutti_progress *progress)
{
    struct within *within = user;
    if (progress->end_of_epoch || ++within->steps != 3) return 0;
    if (within->cancels_before) tutti_cancel(within->trainer);
    within->status = call(within);
    if (within->cancels_after) tutti_cancel(within->trainer);
    return 0;
}

/* Calls that would train or move the trainer's position are refused; after none of them is the outer training another
 * one. */
START_TEST(calls_within_a_fit)
{
    struct session session, plain;
    const char *const devices = _i % 2 ? "0,1" : "0";
    session_open(&session, devices, KIND_DROPOUT, NULL);
    session_open(&plain, devices, KIND_DROPOUT, NULL);
    tutti_snapshot *snapshot = tutti_snapshot_take(session.trainer);
    struct within within = { .trainer = session.trainer, .snapshot = snapshot, .number = _i / 2 };
    ASSERT_OK(fit(&session, (tutti_fitting) { .epochs = 2, .progress = on_progress, .user = &within }));
    ASSERT_OK(fit(&plain, (tutti_fitting) { .epochs = 2 }));
    ck_assert_int_eq(within.steps, 10);
    ck_assert_int_eq(within.status, within.number < REFUSED ? TUTTI_INVALID : TUTTI_OK);
    same_bytes(&session, &plain);
    tutti_snapshot_free(snapshot);
    session_close(&session);
    session_close(&plain);
}
END_TEST

/* A fit is cancelled before or after what its callback evaluates. */
START_TEST(cancelled_around_an_evaluation)
{
    struct session session;
    session_open(&session, "0", KIND_PLAIN, NULL);
    struct within within = {
        .trainer = session.trainer, .number = 7 + _i / 2, .cancels_before = _i % 2, .cancels_after = !(_i % 2)
    };
    const tutti_fitting fitting = { .epochs = 2, .progress = on_progress, .user = &within };
    ck_assert_int_eq(fit(&session, fitting), TUTTI_CANCELLED);
    ck_assert_int_eq(within.steps, 3);
    ck_assert_int_eq(within.status, within.number == 8 && within.cancels_before ? TUTTI_CANCELLED : TUTTI_OK);
    ASSERT_OK(fit(&session, (tutti_fitting) { .epochs = 1 })); /* and that one alone */
    session_close(&session);
}
END_TEST

static int64_t wide_labels[SAMPLES], other_labels[SAMPLES];

static tutti_feed wide_feed(const int64_t *targets)
{
    return (tutti_feed) { "targets", TUTTI_DTYPE_I64, targets };
}

static int evaluate_others(void *user, const tutti_progress *progress)
{
    (void)progress;
    const struct session *session = user;
    const tutti_feed feeds[] = { { NULL, TUTTI_DTYPE_F32, images }, wide_feed(other_labels) };
    ASSERT_OK(tutti_evaluate(session->trainer, feeds, 2, SAMPLES, NULL));
    return 0;
}

/* Class numbers of 64 bits are copied; a call within the training has other ones, which the training does not get. */
START_TEST(keeps_its_wide_targets)
{
    struct session narrow, wide;
    const tutti_feed feeds[] = { { NULL, TUTTI_DTYPE_F32, images }, wide_feed(wide_labels) };
    for (int i = 0; i < SAMPLES; i++) {
        wide_labels[i] = labels[i];
        other_labels[i] = (labels[i] + 1) % CLASSES;
    }
    session_open(&narrow, "0", KIND_PLAIN, NULL);
    ASSERT_OK(fit(&narrow, (tutti_fitting) { .epochs = 2 }));
    session_open(&wide, "0", KIND_PLAIN, NULL);
    const tutti_fitting fitting = { .epochs = 2, .progress = evaluate_others, .user = &wide };
    ASSERT_OK(tutti_fit(wide.trainer, feeds, 2, SAMPLES, &fitting));
    same_bytes(&narrow, &wide);
    session_close(&narrow);
    session_close(&wide);
}
END_TEST

Suite *suite_fit(void)
{
    Suite *suite = suite_create("fit");
    TCase *cases = cases_new(suite, "fit", setup, folder_remove);
    add_cases(cases, resumed_equals_never_stopped, 6);
    tcase_add_test(cases, nowhere_to_save);
    add_cases(cases, saves_that_fail, 2);
    tcase_add_test(cases, cancelled_and_resumed);
    add_cases(cases, ended_by_progress, 2);
    tcase_add_test(cases, epochs_of_arrays_begin_with_user);
    tcase_add_test(cases, cancelled_after_its_end);
    add_cases(cases, last_small_batch_counts, 2);
    tcase_add_test(cases, epoch_is_its_steps);
    add_cases(cases, learns_and_tests, 2);
    tcase_add_test(cases, keeps_its_wide_targets);
    tcase_add_test(cases, source_that_fails);
    tcase_add_test(cases, source_that_tells_why);
    add_cases(cases, not_a_number_keeps_the_checkpoint, 2);
    tcase_add_test(cases, checkpoint_of_another_network);
    tcase_add_test(cases, bad_fittings);
    tcase_add_test(cases, batches_are_announced);
    tcase_add_test(cases, learns_as_well_in_bf16);
    add_cases(cases, calls_within_a_fit, 2 * CALLS);
    add_cases(cases, cancelled_around_an_evaluation, 4);
    return suite;
}
