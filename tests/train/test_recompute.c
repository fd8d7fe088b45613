/* tutti_training.recompute: parameters come to the same numbers as without it, with less memory. */
#include "tests/feeds.h"
#include "tests/train/test_devices.h"
#include "tests/train/training.h"

#include "base/random.h"
#include "plan/plan.h"

enum { STEPS = 4, KINDS = KIND_POINTWISE + 1, LAYERS = 24, WIDTH = 32, ROWS = 64 };

static const struct division {
    const char *devices;
    tutti_training training;
} divisions[] = {
    { "0", { .momentum = 0.9f } },
    { "0", { .momentum = 0.9f, .micro_batch = 5 } },
    { "0,1", { .momentum = 0.9f } },
    { "0,1", { .momentum = 0.9f, .sync_batchnorm = true } },
};
enum { DIVISIONS = sizeof divisions / sizeof *divisions };

START_TEST(parameters_are_the_same)
{
    const struct division *division = &divisions[_i % DIVISIONS];
    const enum kind kind = (enum kind)(_i / DIVISIONS);
    tutti_training training = division->training;
    struct session plain, recomputed;
    session_open(&plain, division->devices, kind, &training);
    training.recompute = true;
    session_open(&recomputed, division->devices, kind, &training);
    session_steps(&plain, STEPS);
    session_steps(&recomputed, STEPS);
    close_to(&plain, &recomputed, 1e-6);
    session_close(&plain);
    session_close(&recomputed);
}
END_TEST

static float rows[ROWS * WIDTH], wanted[ROWS * WIDTH];

/* Layers with dropout: a copy that dropped other elements would change every gradient. */
static void open_deep(struct session *session, bool recompute)
{
    session->runtime = session_runtime("0", false);
    tutti_network *network = session->network = tutti_network_new(session->runtime);
    tutti_tensor x = tutti_input(network, "x", TUTTI_SHAPE(WIDTH));
    for (int i = 0; i < LAYERS; i++)
        x = tutti_dropout(network, tutti_tanh(network, tutti_dense(network, x, WIDTH, NULL)), 0.1f);
    session->trainer = tutti_compile(network, x,
        &(tutti_training) { .loss = TUTTI_MSE, .batch = ROWS, .learning_rate = 0.1f, .recompute = recompute });
    ck_assert_msg(session->trainer, "%s", tutti_message(NULL));
    for (int i = 0; i < STEPS; i++) ASSERT_OK(tutti_train_step(session->trainer, FEED_PAIR(rows, wanted), ROWS, NULL));
}

static size_t memory_of(const struct session *session)
{
    return session->trainer->replicas[0].plans.plans[0].plan->memory.arena_bytes;
}

START_TEST(deep_networks_need_less_memory)
{
    struct session plain, recomputed;
    for (int i = 0; i < ROWS * WIDTH; i++) {
        rows[i] = random_normal(1, 2, (uint64_t)i);
        wanted[i] = random_normal(1, 3, (uint64_t)i);
    }
    open_deep(&plain, false);
    open_deep(&recomputed, true);
    close_to(&plain, &recomputed, 1e-6);
    ck_assert_msg(2 * memory_of(&recomputed) < memory_of(&plain), "%zu bytes instead of %zu", memory_of(&recomputed),
        memory_of(&plain));
    session_close(&plain);
    session_close(&recomputed);
}
END_TEST

Suite *suite_recompute(void)
{
    Suite *suite = suite_create("recompute");
    TCase *cases = cases_new(suite, "recompute", data_make, NULL);
    add_cases(cases, parameters_are_the_same, KINDS * DIVISIONS);
    tcase_add_test(cases, deep_networks_need_less_memory);
    return suite;
}
