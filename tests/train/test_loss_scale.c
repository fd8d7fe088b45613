/* The scale of losses by itself: how it changes, and what a checkpoint makes of it. */
#include "tests/train/test_train.h"

#include "parallel/loss_scale.h"

static void updates(struct loss_scale *loss_scale, int count)
{
    for (int i = 0; i < count; i++) loss_scale_updated(loss_scale);
}

START_TEST(halves_and_doubles)
{
    struct loss_scale s;
    loss_scale_init(&s, true);
    ck_assert(s.scale == 65536);
    updates(&s, 1999);
    ck_assert(s.scale == 65536);
    loss_scale_skipped(&s);
    ck_assert(s.scale == 32768 && s.skipped == 1);
    updates(&s, 1999);
    ck_assert(s.scale == 32768); /* in a row */
    updates(&s, 1);
    ck_assert(s.scale == 65536);
    updates(&s, 2000 * 20);
    ck_assert(s.scale == LOSS_SCALE_MOST);
    while (loss_scale_can_fall(&s)) loss_scale_skipped(&s);
    ck_assert(s.scale == 1 && s.skipped == 25);
    updates(&s, 2000);
    ck_assert(s.scale == 2);
}
END_TEST

START_TEST(stays_where_it_is_not_wanted)
{
    struct loss_scale s;
    struct step_constants constants = { .gradient_weight = 0.1f };
    loss_scale_init(&s, false);
    updates(&s, 5000);
    ck_assert(!loss_scale_can_fall(&s));
    loss_scale_constants(&s, &constants);
    ck_assert(constants.gradient_weight == 0.1f && constants.unscale == 1);
}
END_TEST

START_TEST(is_taken_back)
{
    struct loss_scale s;
    struct step_constants constants = { .gradient_weight = 1.0f / 3 };
    loss_scale_init(&s, true);
    loss_scale_constants(&s, &constants);
    ck_assert(
        constants.gradient_weight == 65536 * (1.0f / 3) && constants.gradient_weight * constants.unscale == 1.0f / 3);
}
END_TEST

/* The steps that were skipped count for the optimizer, in any precision; the scale is that of such a training. */
START_TEST(resumes)
{
    const struct loss_scale scaled = { .on = true, .scale = 128, .good = 5, .skipped = 9 }, plain = { .scale = 1 };
    struct loss_scale s;
    loss_scale_init(&s, true);
    loss_scale_resume(&s, &scaled);
    ck_assert(s.on && s.scale == 128 && s.good == 5 && s.skipped == 9);
    loss_scale_resume(&s, &plain);
    ck_assert(s.on && s.scale == 128 && s.skipped == 0);
    loss_scale_init(&s, false);
    loss_scale_resume(&s, &scaled);
    ck_assert(!s.on && s.scale == 1 && s.skipped == 9);
}
END_TEST

Suite *suite_loss_scale(void)
{
    Suite *suite = suite_create("loss_scale");
    TCase *cases = tcase_create("loss_scale");
    tcase_add_test(cases, halves_and_doubles);
    tcase_add_test(cases, stays_where_it_is_not_wanted);
    tcase_add_test(cases, is_taken_back);
    tcase_add_test(cases, resumes);
    suite_add_tcase(suite, cases);
    return suite;
}
