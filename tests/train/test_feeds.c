/* A network with two inputs learns what the same network learns from one input that holds both. */
#include "tests/train/training.h"

#include <string.h>

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

static struct batch batch_at(int step)
{
    const int first = step * STEP_SAMPLES;
    return (struct batch) { .feeds = { { images + first * PIXELS, tables + first * TABLE, labels + first } },
        .samples = STEP_SAMPLES,
        .whole = STEP_SAMPLES };
}

static const struct way {
    const char *devices;
    bool apart;
    tutti_training training;
} ways[] = {
    { "0", false, { .sharing = TUTTI_SHARES_EQUAL } },
    { "0,1", false, { .sharing = TUTTI_SHARES_EQUAL } },
    { "0", true, { .sharing = TUTTI_SHARES_EQUAL } },
    { "0,1", true, { .sharing = TUTTI_SHARES_EQUAL, .micro_batch = 3 } },
    { "0,1", false, { .sharing = TUTTI_SHARES_AUTO } },
};

/* Each step's samples are announced before, so that devices with memory of their own have them sent ahead. */
START_TEST(two_inputs_learn_as_one)
{
    const struct way *way = &ways[_i];
    struct session one = { .runtime = session_runtime("0", false) };
    struct session two = { .runtime = session_runtime(way->devices, way->apart) };
    compile(&one, one_input, ways[0].training);
    compile(&two, two_inputs, way->training);
    for (int step = 0; step < STEPS; step++) {
        const struct batch batch = batch_at(step), next = batch_at((step + 1) % STEPS);
        struct replica_work sums;
        tutti_metrics metrics;
        trainer_announce(two.trainer, &next);
        ASSERT_OK(trainer_step(two.trainer, TUTTI_OK, &batch, &sums));
        ASSERT_OK(tutti_train_step(
            one.trainer, both + step * STEP_SAMPLES * BOTH, labels + step * STEP_SAMPLES, STEP_SAMPLES, &metrics));
        ck_assert_double_eq_tol(sums.loss / STEP_SAMPLES, metrics.loss, 1e-4);
    }
    close_to(&one, &two, ROUNDING);
    float left[SAMPLES * CLASSES], right[SAMPLES * CLASSES];
    const struct feeds feeds = batch_at(0).feeds;
    ASSERT_OK(tutti_infer(one.trainer, both, SAMPLES, left));
    ASSERT_OK(trainer_forward(two.trainer, PLAN_INFER, &feeds, SAMPLES, &(struct replica_work) { 0 }, right));
    for (int i = 0; i < SAMPLES * CLASSES; i++) ck_assert_float_eq_tol(left[i], right[i], 1e-4f);
    session_close(&one);
    session_close(&two);
}
END_TEST

START_TEST(one_array_is_not_enough)
{
    struct session two = { .runtime = session_runtime("0", false) };
    const tutti_source source = { .samples = SAMPLES };
    compile(&two, two_inputs, ways[0].training);
    ck_assert_int_eq(tutti_train_step(two.trainer, images, labels, 1, NULL), TUTTI_INVALID);
    ck_assert_msg(strstr(tutti_message(NULL), "2 inputs"), "%s", tutti_message(NULL));
    ck_assert_int_eq(tutti_fit_source(two.trainer, &source, NULL), TUTTI_INVALID);
    ck_assert_msg(strstr(tutti_message(NULL), "2 inputs"), "%s", tutti_message(NULL));
    session_close(&two);
}
END_TEST

Suite *suite_feeds(void);
Suite *suite_feeds(void)
{
    Suite *suite = suite_create("feeds");
    TCase *cases = cases_new(suite, "feeds", setup, NULL);
    add_cases(cases, two_inputs_learn_as_one, (int)(sizeof(ways) / sizeof(*ways)));
    tcase_add_test(cases, one_array_is_not_enough);
    return suite;
}
