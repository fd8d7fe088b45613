/* A network with two inputs learns what the same network learns from one input that holds both. */
#include "tests/feeds.h"
#include "tests/train/test_devices.h"
#include "tests/train/training.h"

#include <math.h>
#include <string.h>
#include <sys/mman.h>

enum { TABLE = 5, BOTH = PIXELS + TABLE, STEPS = 4 };
#define ROUNDING 2e-5

static float tables[SAMPLES * TABLE], both[SAMPLES * BOTH];

static void setup(void)
{
    data_make();
    for (int i = 0; i < SAMPLES; i++) {
        for (int j = 0; j < TABLE; j++) tables[i * TABLE + j] = images[i * PIXELS + j] - 0.5f;
        memcpy(both + i * BOTH, images + i * PIXELS, PIXELS * sizeof(float));
        memcpy(both + i * BOTH + PIXELS, tables + i * TABLE, TABLE * sizeof(float));
    }
}

static tutti_tensor two_inputs(tutti_network *network)
{
    const tutti_tensor x = tutti_input(network, "images", TUTTI_SHAPE(2, 7, 7));
    const tutti_tensor table = tutti_input(network, "table", TUTTI_SHAPE(TABLE));
    return tutti_concat(network, (tutti_tensor[]) { tutti_flatten(network, x), table }, 2, 0);
}

static tutti_tensor one_input(tutti_network *network)
{
    return tutti_input(network, "both", TUTTI_SHAPE(BOTH));
}

static void compile(struct session *session, tutti_tensor (*inputs)(tutti_network *), tutti_training training)
{
    training.momentum = 0.9f;
    training.learning_rate = 0.05f;
    training.batch = STEP_SAMPLES;
    training.seed = 7;
    session->network = tutti_network_new(session->runtime);
    tutti_tensor x = inputs(session->network);
    x = tutti_dense(session->network, x, 12, &(tutti_dense_options) { .name = "hidden" });
    x = tutti_dense(
        session->network, tutti_tanh(session->network, x), CLASSES, &(tutti_dense_options) { .name = "fc" });
    session->trainer = tutti_compile(session->network, x, &training);
    ck_assert_msg(session->trainer, "%s", tutti_message(NULL));
}

/* The feeds of a step, in another order than the inputs'. */
static void feed(tutti_feed *feeds, int step)
{
    const int first = step * STEP_SAMPLES;
    feeds[0] = (tutti_feed) { "targets", TUTTI_DTYPE_I32, labels + first };
    feeds[1] = (tutti_feed) { "table", TUTTI_DTYPE_F32, tables + first * TABLE };
    feeds[2] = (tutti_feed) { "images", TUTTI_DTYPE_F32, images + first * PIXELS };
}

/* Each step's samples are announced before, so that devices with memory of their own have them sent ahead. */
START_TEST(two_inputs_learn_as_one)
{
    const struct way *way = &training_ways[_i];
    struct session one = { .runtime = session_runtime("0", false) };
    struct session two = { .runtime = session_runtime(way->devices, way->apart) };
    compile(&one, one_input, training_ways[0].training);
    compile(&two, two_inputs, way->training);
    tutti_feed feeds[3];
    for (int step = 0; step < STEPS; step++) {
        const int first = step * STEP_SAMPLES;
        tutti_metrics left, right;
        feed(feeds, (step + 1) % STEPS);
        ASSERT_OK(tutti_train_prefetch(two.trainer, feeds, 3, STEP_SAMPLES));
        feed(feeds, step);
        ASSERT_OK(tutti_train_step(two.trainer, feeds, 3, STEP_SAMPLES, &right));
        ASSERT_OK(tutti_train_step(one.trainer, FEED_PAIR(both + first * BOTH, labels + first), STEP_SAMPLES, &left));
        ck_assert_double_eq_tol(right.loss, left.loss, 1e-5);
    }
    close_to(&one, &two, ROUNDING);
    float left[SAMPLES * CLASSES], right[SAMPLES * CLASSES];
    feed(feeds, 0);
    ASSERT_OK(tutti_infer(one.trainer, FEED_ONE(both), SAMPLES, FETCH_FIRST(one.trainer, left)));
    ASSERT_OK(tutti_infer(two.trainer, feeds + 1, 2, SAMPLES, FETCH_FIRST(two.trainer, right)));
    for (int i = 0; i < SAMPLES * CLASSES; i++) ck_assert_float_eq_tol(left[i], right[i], 1e-4f);
    session_close(&one);
    session_close(&two);
}
END_TEST

/* Whole epochs over arrays are the same steps. */
START_TEST(fit_takes_any_number_of_inputs)
{
    struct session steps = { .runtime = session_runtime("0", false) }, fitted = { .runtime = steps.runtime };
    compile(&steps, two_inputs, training_ways[0].training);
    compile(&fitted, two_inputs, training_ways[0].training);
    tutti_feed feeds[3];
    for (int step = 0; step < STEPS; step++) {
        feed(feeds, step);
        ASSERT_OK(tutti_train_step(steps.trainer, feeds, 3, STEP_SAMPLES, NULL));
    }
    feed(feeds, 0);
    ASSERT_OK(tutti_fit(fitted.trainer, feeds, 3, STEPS * STEP_SAMPLES, &(tutti_fitting) { .no_shuffle = true }));
    same_bytes(&steps, &fitted);
    session_close(&fitted);
    session_close(&steps);
}
END_TEST

static const struct wrong {
    tutti_feed feeds[4];
    int count;
    const char *message;
} wrongs[] = {
    { { { "images", TUTTI_DTYPE_F32, images }, { "table", TUTTI_DTYPE_F32, tables } }, 2, "\"targets\" is not fed" },
    { { { "images", TUTTI_DTYPE_F32, images }, { "images", TUTTI_DTYPE_F32, images } }, 2, "fed twice" },
    { { { "image", TUTTI_DTYPE_F32, images } }, 1, "feed 0 is for input \"image\", but" },
    { { { NULL, TUTTI_DTYPE_F32, images }, { NULL, TUTTI_DTYPE_F32, tables }, { NULL, TUTTI_DTYPE_I32, labels },
          { NULL, TUTTI_DTYPE_I32, labels } },
        4, "feed 3 has no name, so it is for the input at its position, but the network has only 3 inputs" },
    { { { "images", TUTTI_DTYPE_U8, images } }, 1, "has type u8, but the input has type f32" },
    { { { "images", (tutti_dtype)99, images } }, 1, "does not exist" },
    { { { "images", TUTTI_DTYPE_F32, NULL } }, 1, "NULL" },
    { { { 0 } }, 0, "no array is fed" },
};

START_TEST(feeds_are_checked)
{
    const struct wrong *wrong = &wrongs[_i];
    struct session two = { .runtime = session_runtime("0", false) };
    compile(&two, two_inputs, training_ways[0].training);
    fails_with(tutti_train_step(two.trainer, wrong->feeds, wrong->count, 1, NULL), TUTTI_INVALID, wrong->message);
    session_close(&two);
}
END_TEST

static tutti_tensor others[2];

/* The first output, and so the loss, depends on the images alone; each of the others on an input of its own. */
static tutti_tensor with_others(tutti_network *network)
{
    others[0] = tutti_input(network, "table", TUTTI_SHAPE(TABLE));
    const tutti_tensor number = tutti_input_typed(network, "number", TUTTI_DTYPE_I32, (int64_t[]) { 1 }, 1);
    others[1] = tutti_cast(network, number, TUTTI_DTYPE_F32);
    for (int i = 0; i < 2; i++) others[i] = tutti_tanh(network, others[i]);
    return tutti_flatten(network, tutti_input(network, "images", TUTTI_SHAPE(2, 7, 7)));
}

/* Any read of an array that a call does not need ends the program. */
START_TEST(feeds_that_are_not_needed_are_not_read)
{
    const struct way *way = &training_ways[_i];
    float table[STEP_SAMPLES * TABLE], number[STEP_SAMPLES];
    void *hidden = mmap(NULL, sizeof(tables), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert(hidden != MAP_FAILED);
    struct session session = { .runtime = session_runtime(way->devices, way->apart) };
    tutti_training training = way->training;
    training.outputs = others;
    training.output_count = 2;
    compile(&session, with_others, training);
    const tutti_feed trains[] = { { "number", TUTTI_DTYPE_I64, hidden }, { "images", TUTTI_DTYPE_F32, images },
        { "targets", TUTTI_DTYPE_I32, labels }, { "table", TUTTI_DTYPE_F32, hidden } };
    for (int step = 0; step < 2; step++) {
        ASSERT_OK(tutti_train_prefetch(session.trainer, trains, 4, STEP_SAMPLES));
        ASSERT_OK(tutti_train_step(session.trainer, trains, 4, STEP_SAMPLES, NULL));
    }
    ASSERT_OK(tutti_fit(session.trainer, trains, 4, STEPS * STEP_SAMPLES, &(tutti_fitting) { .no_shuffle = true }));
    ASSERT_OK(tutti_evaluate(session.trainer, trains, 4, STEP_SAMPLES, NULL));
    const tutti_feed infers[] = { { "number", TUTTI_DTYPE_I32, labels }, { "images", TUTTI_DTYPE_F32, images },
        { "targets", TUTTI_DTYPE_I32, hidden }, { "table", TUTTI_DTYPE_F32, tables } };
    const tutti_fetch fetches[] = { { others[0], TUTTI_DTYPE_F32, table }, { others[1], TUTTI_DTYPE_F32, number } };
    ASSERT_OK(tutti_infer(session.trainer, infers, 4, STEP_SAMPLES, fetches, 2));
    for (int i = 0; i < STEP_SAMPLES; i++) ck_assert_float_eq_tol(number[i], tanhf((float)labels[i]), 1e-5f);
    session_close(&session);
    munmap(hidden, sizeof(tables));
}
END_TEST

/* A device that reads samples where the caller has them must not do so for these. */
START_TEST(an_output_may_be_an_input)
{
    float flat[STEP_SAMPLES * PIXELS] = { 0 };
    struct session session = { .runtime = session_runtime("0", false) };
    session.network = tutti_network_new(session.runtime);
    const tutti_tensor x = tutti_input(session.network, "images", TUTTI_SHAPE(2, 7, 7));
    const tutti_tensor y = tutti_flatten(session.network, x);
    session.trainer =
        tutti_compile(session.network, y, &(tutti_training) { .loss = TUTTI_LOSS_NONE, .batch = STEP_SAMPLES });
    ck_assert_msg(session.trainer, "%s", tutti_message(NULL));
    const tutti_feed feed = { "images", TUTTI_DTYPE_F32, images };
    const tutti_fetch fetch = { y, TUTTI_DTYPE_F32, flat };
    ck_assert_int_eq(tutti_infer(session.trainer, &feed, 1, STEP_SAMPLES, &fetch, 1), TUTTI_OK);
    ck_assert_mem_eq(flat, images, sizeof flat);
    session_close(&session);
}
END_TEST

Suite *suite_feeds(void)
{
    Suite *suite = suite_create("feeds");
    TCase *cases = cases_new(suite, "feeds", setup, NULL);
    add_cases(cases, two_inputs_learn_as_one, WAYS);
    tcase_add_test(cases, fit_takes_any_number_of_inputs);
    add_cases(cases, feeds_that_are_not_needed_are_not_read, WAYS);
    tcase_add_test(cases, an_output_may_be_an_input);
    add_cases(cases, feeds_are_checked, (int)(sizeof(wrongs) / sizeof(*wrongs)));
    return suite;
}
