/* Dropout inside attention: its mean is what inference gives, and it does not depend on the devices. */
#include "tests/feeds.h"
#include "tests/train/test_devices.h"
#include "tests/train/training.h"

#include "base/random.h"
#include "tutti_sequences.h"

#include <math.h>
#include <string.h>

enum { LENGTH = 6, WIDTH = 4, SIZE = LENGTH * WIDTH, TEXTS = 16, STEPS = 60 };
static const float probability = 0.25f;
static float texts[TEXTS * SIZE], wanted[TEXTS * SIZE];

/* Normal numbers; `same`: each sample is the first one. */
static void make(bool same)
{
    for (int i = 0; i < TEXTS * SIZE; i++) {
        texts[i] = random_normal(1, 2, (uint64_t)(same ? i % SIZE : i));
        wanted[i] = random_normal(1, 3, (uint64_t)i);
    }
}

static tutti_tensor compile(struct session *session, const struct way *way, float dropout)
{
    tutti_training training = way->training;
    session->runtime = session_runtime(way->devices, way->apart);
    tutti_network *network = session->network = tutti_network_new(session->runtime);
    const tutti_tensor x = tutti_input(network, "x", TUTTI_SHAPE(LENGTH, WIDTH)),
                       values = tutti_dense(network, x, WIDTH, NULL),
                       y = tutti_attention(network, x, x, values,
                           &(tutti_attention_options) { .heads = 2, .causal = true, .dropout = dropout });
    training.batch = TEXTS;
    training.loss = TUTTI_MSE;
    training.seed = 3;
    training.learning_rate = 0.1f;
    training.fetch_in_training = true;
    session->trainer = tutti_compile(network, y, &training);
    ck_assert_msg(session->trainer, "%s", tutti_message(NULL));
    return y;
}

START_TEST(devices_drop_the_same)
{
    struct session one, other;
    make(false);
    (void)compile(&one, &training_ways[0], probability);
    (void)compile(&other, &training_ways[_i], probability);
    for (int i = 0; i < 3; i++) {
        ASSERT_OK(tutti_train_step(one.trainer, FEED_PAIR(texts, wanted), TEXTS, NULL));
        ASSERT_OK(tutti_train_step(other.trainer, FEED_PAIR(texts, wanted), TEXTS, NULL));
    }
    close_to(&one, &other, 2e-5);
    session_close(&one);
    session_close(&other);
}
END_TEST

/* Outputs are sums of values, of magnitudes up to `largest`, weighted by probabilities whose sum is 1. */
static void check_mean(const float *inferred, const double *sums, double count, double largest)
{
    const double deviation = largest * sqrt((double)probability / (1 - (double)probability) / count);
    for (int i = 0; i < SIZE; i++) {
        const double found = sums[i] / count;
        ck_assert_msg(fabs(found - (double)inferred[i]) < 5 * deviation, "element %d: %g, not %g within %g", i, found,
            (double)inferred[i], 5 * deviation);
    }
}

START_TEST(mean_is_what_inference_gives)
{
    static float trained[TEXTS * SIZE], dropped[TEXTS * SIZE], whole[TEXTS * SIZE];
    struct session session, plain;
    double sums[SIZE] = { 0 }, largest = 0;
    make(true);
    const tutti_tensor y = compile(&session, &training_ways[0], probability), z = compile(&plain, &training_ways[0], 0);
    ASSERT_OK(tutti_infer(session.trainer, FEED_ONE(texts), TEXTS, FETCH_ONE(y, dropped)));
    ASSERT_OK(tutti_infer(plain.trainer, FEED_ONE(texts), TEXTS, FETCH_ONE(z, whole)));
    ck_assert_mem_eq(dropped, whole, sizeof(whole));
    ASSERT_OK(tutti_set_learning_rate(session.trainer, 0));
    for (int step = 0; step < STEPS; step++) {
        ASSERT_OK(tutti_train_fetch(session.trainer, FEED_PAIR(texts, wanted), TEXTS, FETCH_ONE(y, trained), NULL));
        for (int i = 0; i < TEXTS * SIZE; i++) {
            sums[i % SIZE] += (double)trained[i];
            largest = fmax(largest, fabs((double)trained[i]));
        }
        ck_assert(memcmp(trained, trained + SIZE, SIZE * sizeof(*trained)) != 0);
    }
    check_mean(whole, sums, TEXTS * STEPS, largest);
    session_close(&session);
    session_close(&plain);
}
END_TEST

Suite *suite_attention_drops(void)
{
    Suite *suite = suite_create("attention_drops");
    TCase *cases = cases_new(suite, "attention_drops", NULL, NULL);
    tcase_add_loop_test(cases, devices_drop_the_same, 1, WAYS);
    tcase_add_test(cases, mean_is_what_inference_gives);
    return suite;
}
