/* Measured choices of kernels, profiles and times. */
#include "tests/feeds.h"
#include "tests/train/test_devices.h"
#include "tests/train/training.h"
#include "tutti_advanced.h"
#include "tutti_inspect.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Sums in another order differ in the last bits; a few steps make them a few more. */
#define ROUNDING 2e-5

/* Whether the plan says of any layer that it was chosen by measurement. */
static bool chosen_by_measurement(const struct session *session)
{
    char *text = tutti_explain(session->trainer, 0, false);
    ck_assert_ptr_nonnull(text);
    const bool found = strstr(text, "by the device's table, in ms: ") != NULL;
    free(text);
    return found;
}

/* More than one matrix product accepts a batch of 8. The next process uses the measurements, too. Measured choices
 * round no more than those by rule, so the result is close to the run by rule. */
START_TEST(measured_choices_are_kept)
{
    char folder[] = "/tmp/tutti-tune-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(folder));
    const tutti_runtime_options options = { .devices = "0", .cache_folder = folder };
    struct session rule, tuned, later;
    session_try(&rule, &options, KIND_PLAIN, &(tutti_training) { .batch = 8 });
    ck_assert(!chosen_by_measurement(&rule));
    session_try(&tuned, &options, KIND_PLAIN, &(tutti_training) { .batch = 8, .tune = true });
    ck_assert(chosen_by_measurement(&tuned));
    session_try(&later, &options, KIND_PLAIN, &(tutti_training) { .batch = 8 });
    ck_assert(chosen_by_measurement(&later));
    struct session *const all[] = { &rule, &tuned, &later };
    for (int i = 0; i < 3; i++)
        for (int step = 0; step < 3; step++)
            ASSERT_OK(
                tutti_train_step(all[i]->trainer, FEED_PAIR(images + 8 * step * PIXELS, labels + 8 * step), 8, NULL));
    close_to(&rule, &tuned, ROUNDING);
    same_bytes(&tuned, &later);
    for (int i = 0; i < 3; i++) session_close(all[i]);
    char command[64];
    snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    ck_assert_int_eq(system(command), 0);
}
END_TEST

struct heard {
    int launches, layers; /* of conv */
    double seconds;
};

static void hear(void *user, const tutti_launch *launch)
{
    struct heard *heard = user;
    heard->launches++;
    heard->layers += launch->layer == 0;
    heard->seconds += launch->seconds;
    ck_assert(*launch->operation && *launch->kernel);
}

/* Profiling runs the plan again, with the parameters that the step has updated. */
START_TEST(profiles_change_nothing)
{
    enum { FLOATS = 6 * 2 * 3 * 3 };
    struct session session;
    float gradient[FLOATS], after[FLOATS];
    const char *name = "conv.weight";
    session_open(&session, _i ? "0,1" : "0", KIND_NORM, NULL);
    session_steps(&session, 1);
    ASSERT_OK(tutti_get_gradient(session.trainer, name, gradient, FLOATS));
    int64_t count;
    float *const parameters = session_parameters(&session, &count);
    for (int d = 0; d < session.runtime->count; d++) {
        char *text = tutti_profile(session.trainer, d, NULL);
        ck_assert_msg(text != NULL, "%s", tutti_message(NULL));
        free(text);
        struct heard heard = { 0 }, timed = { 0 };
        ASSERT_OK(tutti_launches(session.trainer, d, false, hear, &heard));
        ASSERT_OK(tutti_launches(session.trainer, d, true, hear, &timed));
        ck_assert(heard.launches > 0 && heard.layers > 0 && heard.seconds <= 0);
        ck_assert(timed.launches == heard.launches && timed.seconds > 0);
    }
    ck_assert_int_eq(tutti_launches(session.trainer, session.runtime->count, false, hear, NULL), TUTTI_INVALID);
    ASSERT_OK(tutti_get_gradient(session.trainer, name, after, FLOATS));
    ck_assert(memcmp(gradient, after, sizeof(gradient)) == 0);
    float *const later = session_parameters(&session, &count);
    ck_assert(memcmp(parameters, later, (size_t)count * sizeof(float)) == 0);
    free(later);
    free(parameters);
    session_close(&session);
}
END_TEST

/* Callers whose header is older or newer than the library: their structs are shorter or longer. */
START_TEST(times_have_the_callers_size)
{
    struct session session;
    struct {
        size_t size;
        int64_t steps;
        double next;
    } shorter = { .size = offsetof(tutti_device_times, step_s), .next = -1 };
    struct {
        tutti_device_times known;
        double next;
    } longer = { .known.size = sizeof(longer), .next = -1 };
    session_open(&session, "0", KIND_PLAIN, NULL);
    session_steps(&session, 2);
    ASSERT_OK(tutti_report_times(session.trainer, 0, (void *)&shorter));
    ck_assert(shorter.steps == 2 && shorter.next == -1 && shorter.size == offsetof(tutti_device_times, step_s));
    ASSERT_OK(tutti_report_times(session.trainer, 0, (void *)&longer));
    ck_assert(longer.known.steps == 2 && longer.known.settled && longer.next == -1);
    ck_assert(longer.known.step_s > 0 && longer.known.size == sizeof(longer));
    longer.known.size = 3;
    fails_with(tutti_report_times(session.trainer, 0, &longer.known), TUTTI_INVALID, "tutti_device_times.size is 3");
    session_close(&session);
}
END_TEST

START_TEST(candidates_have_the_callers_size)
{
    struct session session;
    struct {
        size_t size;
        const char *problem, *layer, *next;
    } shorter = { .size = offsetof(tutti_candidate, kernel), .next = "kept" };
    struct {
        tutti_candidate known;
        const char *next;
    } longer = { .known.size = sizeof(longer), .next = "kept" };
    session_open(&session, "0", KIND_PLAIN, NULL);
    const tutti_tensor output = { session.trainer->objective.outputs[0] };
    tutti_tuner *tuner = tutti_tuner_new(session.network, output, &(tutti_training) { .batch = 8 }, 0);
    ck_assert_msg(tuner, "%s", tutti_message(NULL));
    ASSERT_OK(tutti_tuner_candidate(tuner, 0, (void *)&shorter));
    ck_assert_str_eq(shorter.next, "kept");
    ASSERT_OK(tutti_tuner_candidate(tuner, 0, (void *)&longer));
    ck_assert_ptr_eq(longer.known.problem, shorter.problem);
    ck_assert_ptr_eq(longer.known.layer, shorter.layer);
    ck_assert(longer.known.present && longer.known.uses > 0 && longer.known.size == sizeof(longer));
    ck_assert_str_eq(longer.next, "kept");
    longer.known.size = 3;
    fails_with(tutti_tuner_candidate(tuner, 0, &longer.known), TUTTI_INVALID, "tutti_candidate.size is 3");
    tutti_tuner_free(tuner);
    session_close(&session);
}
END_TEST

void measuring_alone(TCase *cases)
{
    tcase_add_test(cases, measured_choices_are_kept);
    add_cases(cases, profiles_change_nothing, 2);
    tcase_add_test(cases, times_have_the_callers_size);
    tcase_add_test(cases, candidates_have_the_callers_size);
}
