/* Training on devices whose work-groups are small, as tests/emulation makes them: the parameters are those of the
 * same devices without that limit. Kernels of GPU-class devices; one work-item is a group on CPU-class ones. */
#include "tests/train/training.h"

#include "tests/tolerance.h"
#include "tutti_advanced.h"

#include <stdlib.h>

enum { STEPS = 3 };

/* A runtime that is open keeps its devices' limit, so that both lists of launches are made under their own. */
static void open_limited(struct session *session, const char *most, const char *devices, const tutti_training *training)
{
    ck_assert_int_eq(most ? setenv("EMULATED_GROUP", most, 1) : unsetenv("EMULATED_GROUP"), 0);
    session_open_apart(session, devices, KIND_NORM, training);
    ck_assert(!most || session->runtime->devices[0].can.group_max == strtoul(most, NULL, 10));
    session_steps(session, STEPS);
}

static void expect_same(const char *devices, const tutti_training *training)
{
    static const char *const classes[] = { "cpu", "gpu" };
    for (int c = 0; c < 2; c++) {
        struct session all, few;
        ck_assert_int_eq(setenv("TUTTI_DEVICE_CLASS", classes[c], 1), 0);
        open_limited(&all, NULL, devices, training);
        open_limited(&few, "64", devices, training);
        close_to(&all, &few, tolerance(TOLERANCE_DIVISION, 0));
        session_close(&few);
        session_close(&all);
    }
}

START_TEST(small_groups_train_by_momentum)
{
    expect_same("0", &(tutti_training) { .momentum = 0.9f });
}
END_TEST

/* In micro-batches. With a small epsilon, Adam makes large steps of gradients that are rounding errors. */
START_TEST(small_groups_train_by_adam)
{
    expect_same(
        "0", &(tutti_training) { .optimizer = TUTTI_ADAM, .epsilon = 0.1f, .learning_rate = 0.01f, .micro_batch = 8 });
}
END_TEST

START_TEST(small_groups_round_gradients)
{
    expect_same(
        "0,1", &(tutti_training) { .momentum = 0.9f, .advanced = &(tutti_advanced_options) { .wire = TUTTI_BF16 } });
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("groups");
    TCase *test = tcase_create("groups");
    data_make();
    tcase_add_test(test, small_groups_train_by_momentum);
    tcase_add_test(test, small_groups_train_by_adam);
    tcase_add_test(test, small_groups_round_gradients);
    suite_add_tcase(suite, test);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
