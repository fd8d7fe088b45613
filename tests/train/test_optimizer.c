/* The rules on the host against their definition in double precision, over several steps. */
#include "tests/train/reference.h"
#include "tests/train/test_train.h"

#include "base/memory.h"
#include "base/random.h"
#include "replica/optimizer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TRAINED = 150016, STATISTICS = 192, TOTAL = TRAINED + STATISTICS, STEPS = 5 };

static struct parameter parameters[3] = {
    { .name = "weight", .elements = TRAINED, .offset = 0 },
    { .name = "mean", .elements = 100, .offset = TRAINED, .kind = PARAMETER_STATISTIC, .momentum = 0.1f },
    { .name = "variance", .elements = 60, .offset = TRAINED + 128, .kind = PARAMETER_STATISTIC, .momentum = 0.3f },
};
static const tutti_network network = {
    .parameters = parameters, .parameter_count = 3, .trained_floats = TRAINED, .total_floats = TOTAL
};

static const tutti_training rules[] = {
    { .optimizer = TUTTI_SGD, .learning_rate = 0.1f },
    { .optimizer = TUTTI_SGD, .learning_rate = 0.1f, .weight_decay = 0.01f },
    { .optimizer = TUTTI_SGD, .learning_rate = 0.1f, .momentum = 0.9f, .weight_decay = 0.01f },
    { .optimizer = TUTTI_SGD, .learning_rate = 0.1f, .momentum = 0.9f, .nesterov = true },
    { .optimizer = TUTTI_ADAM, .learning_rate = 0.01f },
    { .optimizer = TUTTI_ADAM, .learning_rate = 0.01f, .weight_decay = 0.1f, .beta1 = 0.8f, .epsilon = 1e-3f },
    { .optimizer = TUTTI_ADAMW, .learning_rate = 0.01f, .weight_decay = 0.1f },
    { .optimizer = TUTTI_RMSPROP, .learning_rate = 0.01f },
    { .optimizer = TUTTI_RMSPROP, .learning_rate = 0.01f, .momentum = 0.9f, .weight_decay = 0.1f, .beta2 = 0.9f },
    { .optimizer = TUTTI_RMSPROP, .learning_rate = 0.01f, .centered = true, .epsilon = 1e-3f },
    { .optimizer = TUTTI_RMSPROP, .learning_rate = 0.01f, .centered = true, .momentum = 0.8f, .epsilon = 1e-3f },
    { .optimizer = TUTTI_ADAGRAD, .learning_rate = 0.1f },
    { .optimizer = TUTTI_ADAGRAD, .learning_rate = 0.1f, .weight_decay = 0.1f, .epsilon = 1e-3f },
    { .optimizer = TUTTI_NADAM, .learning_rate = 0.01f },
    { .optimizer = TUTTI_NADAM, .learning_rate = 0.01f, .weight_decay = 0.1f, .beta1 = 0.8f, .epsilon = 1e-3f },
    { .optimizer = TUTTI_ADAM, .learning_rate = 0.01f, .amsgrad = true, .beta2 = 0.5f },
    { .optimizer = TUTTI_ADAMW, .learning_rate = 0.01f, .amsgrad = true, .beta2 = 0.5f, .weight_decay = 0.1f },
    { .optimizer = TUTTI_LION, .learning_rate = 0.01f },
    { .optimizer = TUTTI_LION, .learning_rate = 0.01f, .weight_decay = 0.1f, .beta1 = 0.8f, .beta2 = 0.95f },
};
enum { RULES = sizeof(rules) / sizeof(*rules) };

/* The group of the floats from i on; neighbours sometimes belong to one group. */
static struct optimizer_group group_at(const tutti_training *t, size_t i)
{
    static const struct optimizer_group groups[] = { { 0.5f, 0.03f }, { 0.5f, 0.03f }, { 2, 0 } };
    const size_t block = i / PARAMETER_ALIGNMENT;
    return block % 5 < 3 ? groups[block % 5] : (struct optimizer_group) { 1, t->weight_decay };
}

static float gradient_at(int step, size_t i)
{
    return random_normal(5, (uint32_t)step, i);
}

/* One element after all steps. */
static double expected(const tutti_training *t, size_t i, double p, bool grouped)
{
    struct reference r = { .p = p };
    const struct optimizer_group group = grouped ? group_at(t, i) : (struct optimizer_group) { 1, t->weight_decay };
    for (int step = 1; step <= STEPS; step++)
        reference_update(
            &r, t, gradient_at(step, i), (double)group.rate_factor * t->learning_rate, group.weight_decay, step);
    return r.p;
}

static void train(const tutti_training *training, int threads, float *p, bool grouped)
{
    static struct optimizer_group groups[TRAINED / PARAMETER_ALIGNMENT];
    struct thread_pool *pool;
    struct optimizer optimizer;
    float *states[OPTIMIZER_STATES], *g = memory_new(TOTAL, sizeof(float));
    for (int i = 0; i < OPTIMIZER_STATES; i++) ck_assert_ptr_nonnull(states[i] = memory_new(TRAINED, sizeof(float)));
    ck_assert_ptr_nonnull(g);
    ck_assert_int_eq(optimizer_init(&optimizer, training), TUTTI_OK);
    for (size_t i = 0; i < TRAINED; i += PARAMETER_ALIGNMENT) groups[i / PARAMETER_ALIGNMENT] = group_at(training, i);
    if (grouped) optimizer.groups = groups;
    ck_assert_int_eq(thread_pool_new(&pool, threads), TUTTI_OK);
    for (int step = 1; step <= STEPS; step++) {
        struct step_constants constants = { 0 };
        for (size_t i = 0; i < TOTAL; i++) g[i] = 4 * gradient_at(step, i);
        optimizer_constants(&optimizer, optimizer.learning_rate, step - 1, &constants);
        constants.unscale = 0.25f;
        const struct host_update rule = { &optimizer, &network, &constants };
        optimizer_update(&rule, pool, p, g, states);
    }
    thread_pool_free(pool);
    free(g);
    for (int i = 0; i < OPTIMIZER_STATES; i++) free(states[i]);
}

START_TEST(rule_as_defined)
{
    const tutti_training *training = &rules[_i % RULES];
    const bool grouped = _i >= RULES;
    float *p = memory_new(TOTAL, sizeof(float)), *again = memory_new(TOTAL, sizeof(float));
    for (size_t i = 0; i < TOTAL; i++) p[i] = again[i] = random_normal(5, 0, i);
    train(training, 1, p, grouped);
    train(training, 3, again, grouped);
    ck_assert_msg(memcmp(p, again, TOTAL * sizeof(float)) == 0, "the number of threads changes the result");
    for (size_t i = 0; i < TRAINED; i++) {
        const double wanted = expected(training, i, random_normal(5, 0, i), grouped);
        /* Each step rounds a few times at the size of a parameter, at most about 5 here. */
        ck_assert_msg(
            fabs(p[i] - wanted) < STEPS * 8e-7 * 5, "rule %d, element %zu: %.9g, not %.9g", _i, i, p[i], wanted);
    }
    free(p);
    free(again);
}
END_TEST

START_TEST(running_statistics)
{
    float *p = memory_new(TOTAL, sizeof(float));
    for (size_t i = 0; i < TOTAL; i++) p[i] = random_normal(5, 0, i);
    train(&rules[0], 2, p, true);
    for (int which = 1; which < 3; which++)
        for (int64_t j = 0; j < parameters[which].elements; j++) {
            const size_t i = (size_t)(parameters[which].offset + j);
            double wanted = random_normal(5, 0, i);
            for (int step = 1; step <= STEPS; step++)
                wanted += parameters[which].momentum * (gradient_at(step, i) - wanted);
            ck_assert_msg(fabs(p[i] - wanted) < 1e-5, "statistic %zu: %.9g, not %.9g", i, p[i], wanted);
        }
    ck_assert_msg(p[TRAINED + 110] == random_normal(5, 0, TRAINED + 110), "something between parameters was changed");
    free(p);
}
END_TEST

/* A table where some parameter has a rate or a decay of its own, and none where all settings are the training's. */
START_TEST(groups_become_a_table)
{
    struct parameter some[] = {
        { .elements = 300, .offset = 0, .rate_factor = 0.5f },
        { .elements = 5, .offset = 512, .has_weight_decay = true, .weight_decay = 0.25f },
        { .elements = 256, .offset = 0, .kind = PARAMETER_FROZEN, .rate_factor = 3 },
        { .elements = 257, .offset = 768 },
    };
    static const struct optimizer_group wanted[] = { { 0.5f, 0.125f }, { 0.5f, 0.125f }, { 1, 0.25f }, { 1, 0.125f },
        { 1, 0.125f } };
    tutti_network has = { .parameters = some, .parameter_count = 4, .trained_floats = 1280, .total_floats = 1280 };
    const struct optimizer optimizer = { .weight_decay = 0.125f };
    struct optimizer_group *groups;
    size_t count;
    ck_assert_int_eq(optimizer_groups(&optimizer, &has, &groups, &count), TUTTI_OK);
    ck_assert_uint_eq(count, 5);
    ck_assert(memcmp(groups, wanted, sizeof(wanted)) == 0);
    free(groups);
    some[0].rate_factor = 1;
    some[1].weight_decay = 0.125f;
    ck_assert_int_eq(optimizer_groups(&optimizer, &has, &groups, &count), TUTTI_OK);
    ck_assert(!groups && count == 0);
}
END_TEST

START_TEST(refused_options_name_the_optimizers_that_have_them)
{
    struct optimizer optimizer;
    ck_assert_int_eq(
        optimizer_init(&optimizer, &(tutti_training) { .optimizer = TUTTI_LION, .amsgrad = true }), TUTTI_INVALID);
    ck_assert_str_eq(
        tutti_message(NULL), "amsgrad is set, but the optimizer is lion: those with this option are adam, adamw");
    ck_assert_int_eq(
        optimizer_init(&optimizer, &(tutti_training) { .optimizer = TUTTI_SGD, .centered = true }), TUTTI_INVALID);
    ck_assert_str_eq(
        tutti_message(NULL), "centered is set, but the optimizer is sgd: those with this option are rmsprop");
}
END_TEST

START_TEST(bad_options)
{
    static const tutti_training bad[] = { { .learning_rate = -1 }, { .learning_rate = NAN },
        { .learning_rate = INFINITY }, { .momentum = 1 }, { .momentum = -0.1f }, { .nesterov = true },
        { .weight_decay = -1 }, { .beta1 = 1 }, { .beta2 = 2 }, { .epsilon = -1 }, { .optimizer = (tutti_optimizer)77 },
        { .centered = true }, { .amsgrad = true } };
    struct optimizer optimizer;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        ck_assert_msg(optimizer_init(&optimizer, &bad[i]) == TUTTI_INVALID, "case %zu was taken", i);
}
END_TEST

Suite *suite_optimizer(void)
{
    Suite *suite = suite_create("optimizer");
    TCase *cases = tcase_create("optimizer");
    tcase_add_loop_test(cases, rule_as_defined, 0, 2 * RULES);
    tcase_add_test(cases, groups_become_a_table);
    tcase_add_test(cases, running_statistics);
    tcase_add_test(cases, refused_options_name_the_optimizers_that_have_them);
    tcase_add_test(cases, bad_options);
    suite_add_tcase(suite, cases);
    return suite;
}
