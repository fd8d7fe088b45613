/* Learning rates against those of PyTorch's schedulers (schedules.py), and the best of epochs. */
#include "tests/train/schedules.h"
#include "tests/train/test_train.h"

#include "train/schedule.h"

#include <math.h>
#include <stddef.h>

enum { STEPS = 20, EPOCH = 2 };

static const struct series {
    const double *rates;
    tutti_schedule schedule;
} all_series[] = {
    { cosine, { .kind = TUTTI_SCHEDULE_COSINE, .lowest = 0.01f } },
    { cosine_warm, { .kind = TUTTI_SCHEDULE_COSINE, .warmup_steps = 4 } },
    { cosine_warm, { .kind = TUTTI_SCHEDULE_COSINE, .warmup_epochs = 2 } },
    { stairs, { .kind = TUTTI_SCHEDULE_STEP, .step_size = 2, .factor = 0.5f } },
    { one_cycle, { .kind = TUTTI_SCHEDULE_ONE_CYCLE } },
    { one_cycle_half, { .kind = TUTTI_SCHEDULE_ONE_CYCLE, .warmup_steps = 10 } },
};
enum { SERIES = sizeof(all_series) / sizeof(*all_series) };

static void is_near(double found, double wanted, int step)
{
    ck_assert_msg(
        fabs(found - wanted) <= 1e-7 * fabs(wanted), "step %d: %.9g, but PyTorch has %.9g", step, found, wanted);
}

START_TEST(rates_are_pytorchs)
{
    struct schedule schedule;
    ck_assert_int_eq(schedule_open(&schedule, &all_series[_i].schedule, STEPS, EPOCH), TUTTI_OK);
    for (int step = 0; step < STEPS; step++)
        is_near(schedule_rate(&schedule, 0.1, step, 0), all_series[_i].rates[step], step);
}
END_TEST

START_TEST(plateau_is_pytorchs)
{
    const tutti_schedule options = { .kind = TUTTI_SCHEDULE_PLATEAU, .factor = 0.25f, .patience = 2, .lowest = 0.001f };
    struct schedule schedule;
    struct plateau plateau = { 0 };
    ck_assert_int_eq(schedule_open(&schedule, &options, STEPS, 1), TUTTI_OK);
    for (int step = 0; step < STEPS; step++) {
        is_near(schedule_rate(&schedule, 0.1, step, plateau.reductions), plateau_rates[step], step);
        plateau_judge(&plateau, &schedule, plateau_losses[step]);
    }
    ck_assert_int_gt(plateau.reductions, 1);
}
END_TEST

/* A rate after the end of the training, where --epochs were lowered, stays the last one. */
START_TEST(stays_after_its_end)
{
    struct schedule schedule;
    for (int i = 0; i < SERIES; i++) {
        ck_assert_int_eq(schedule_open(&schedule, &all_series[i].schedule, STEPS, EPOCH), TUTTI_OK);
        const double rate = schedule_rate(&schedule, 0.1, 10 * STEPS, 0);
        ck_assert(rate >= 0 && rate <= 0.1);
    }
    ck_assert_int_eq(schedule_open(&schedule, NULL, INT64_MAX, 1), TUTTI_OK);
    ck_assert(schedule_rate(&schedule, 0.1, INT64_MAX - 1, 0) == 0.1);
}
END_TEST

START_TEST(refuses)
{
    static const tutti_schedule bad[] = { { .kind = (tutti_schedule_kind)7 }, { .steps = -2 }, { .warmup_steps = -1 },
        { .warmup_epochs = -1 }, { .warmup_steps = 1, .warmup_epochs = 1 }, { .warmup_steps = STEPS },
        { .warmup_epochs = INT64_MAX }, { .step_size = INT64_MAX }, { .factor = 1 }, { .factor = -0.5f },
        { .factor = NAN }, { .lowest = -1 }, { .lowest = INFINITY }, { .patience = -1 } };
    struct schedule schedule;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        ck_assert_msg(schedule_open(&schedule, &bad[i], STEPS, EPOCH) == TUTTI_INVALID, "number %zu", i);
}
END_TEST

START_TEST(best_is_by_accuracy_then_loss)
{
    struct best best = { 0 };
    const tutti_metrics good = { .loss = 0.5, .accuracy = 0.9 }, lower = { .loss = 0.4, .accuracy = 0.9 },
                        worse = { .loss = 0.1, .accuracy = 0.8 }, plain = { .loss = 0.5, .accuracy = NAN },
                        less = { .loss = 0.4, .accuracy = NAN }, none = { .loss = NAN, .accuracy = 1 };
    ck_assert(!best_is_beaten(&best, &none));
    ck_assert(best_is_beaten(&best, &good));
    best = best_of(&good, 3);
    ck_assert(best.epoch == 3 && best.loss == 0.5 && best.accuracy == 0.9);
    ck_assert(!best_is_beaten(&best, &good) && !best_is_beaten(&best, &worse) && best_is_beaten(&best, &lower));
    best = best_of(&plain, 1);
    ck_assert(best.accuracy == -1 && !best_is_beaten(&best, &plain) && best_is_beaten(&best, &less));
}
END_TEST

Suite *suite_schedule(void)
{
    Suite *suite = suite_create("schedule");
    TCase *cases = tcase_create("schedule");
    tcase_add_loop_test(cases, rates_are_pytorchs, 0, SERIES);
    tcase_add_test(cases, plateau_is_pytorchs);
    tcase_add_test(cases, stays_after_its_end);
    tcase_add_test(cases, refuses);
    tcase_add_test(cases, best_is_by_accuracy_then_loss);
    suite_add_tcase(suite, cases);
    return suite;
}
