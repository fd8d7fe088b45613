/* One training step of whole networks against PyTorch's in double precision: the loss, every gradient, the running
 * statistics, and the updated parameters. make.py recorded the files, and describes their contents. */
#include "tests/feeds.h"
#include <check.h>
#undef fail

#include "tests/golden/golden.h"
#include "tests/tolerance.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Another order of sums, and Winograd's transforms (tests/tolerance.h), lose more than PyTorch does: measured 4.3
 * times at the most. If PyTorch happens to be exact for an array, the rounding errors of a sum are still allowed; the
 * longest sum is over the batch's first images. */
#define ERRORS_OF_PYTORCH 10.0
#define ROUNDING tolerance(TOLERANCE_SUM, GOLDEN_BATCH * 32 * 32)
#define LEARNING_RATE 0.0625f

/* ------------------------------------------------------------------------------------------------ comparison ---- */

/* Counts what is too far off, and says so. */
static int compare(const struct array *want, const float *got)
{
    double squares = 0, projection = 0, size = (double)want->size;
    double limit = ERRORS_OF_PYTORCH * want->off + ROUNDING * want->norm;
    double limit_sample = ERRORS_OF_PYTORCH * want->off_most + ROUNDING * want->norm / sqrt(size);
    int wrong = 0;
    uint32_t hash = name_hash("projection ", want->name);
    for (int64_t i = 0; i < want->size; i++) {
        squares += (double)got[i] * got[i];
        projection += got[i] * uniform(hash, i);
    }
    if (!(fabs(sqrt(squares) - want->norm) <= limit) || !(fabs(projection - want->projection) <= limit)) {
        fprintf(stderr, "%s of %s: norm %.9g and projection %.9g, not %.9g and %.9g (limit %.2g)\n", want->kind,
            want->name, sqrt(squares), projection, want->norm, want->projection, limit);
        wrong++;
    }
    for (int i = 0; i < want->samples && !wrong; i++) {
        const int64_t position = golden_position(want, i);
        double limit_here = limit_sample + ROUNDING * fabs(want->sample[i]);
        if (fabs(got[position] - want->sample[i]) <= limit_here) continue;
        fprintf(stderr, "%s of %s: element %" PRId64 " is %.9g, not %.9g (limit %.2g)\n", want->kind, want->name,
            position, (double)got[position], want->sample[i], limit_here);
        wrong++;
    }
    return wrong;
}

struct step {
    tutti_runtime *runtime;
    tutti_network *network;
    tutti_trainer *trainer;
};

#define GOOD(call) ck_assert_msg((call) == TUTTI_OK, "%s", tutti_message(NULL))

static struct step prepare(const struct golden *golden)
{
    struct step step = { .runtime = tutti_open(NULL) };
    ck_assert_msg(step.runtime, "%s", tutti_message(NULL));
    step.network = tutti_network_new(step.runtime);
    tutti_tensor output = golden->build(step.network, tutti_input(step.network, "x", golden->shape), CLASSES);
    tutti_training training = { .learning_rate = LEARNING_RATE, .batch = GOLDEN_BATCH };
    const tutti_tensor loss = golden->pixels ? golden_loss(step.network, golden, output) : output;
    if (golden->pixels) training.losses = &loss, training.loss_count = 1;
    step.trainer = tutti_compile(step.network, output, &training);
    ck_assert_msg(step.trainer, "%s", tutti_message(step.runtime));
    const char *name;
    tutti_shape shape;
    bool trained;
    for (int i = 0; tutti_parameter_info(step.network, i, &name, &shape, &trained) == TUTTI_OK; i++) {
        int64_t count = golden_elements(&shape);
        float *values = calloc((size_t)count, sizeof(float));
        for (int64_t k = 0; k < count; k++) values[k] = (float)golden_initial(golden, name, &shape, k);
        GOOD(tutti_set_parameter(step.trainer, name, values, count));
        free(values);
    }
    return step;
}

static tutti_metrics train(const struct step *step, const struct golden *golden)
{
    int64_t count = GOLDEN_BATCH * golden_elements(&golden->shape), labels = GOLDEN_BATCH * golden_labels(golden);
    float *inputs = calloc((size_t)count, sizeof(float));
    int32_t *targets = calloc((size_t)labels, sizeof(int32_t));
    tutti_metrics metrics;
    for (int64_t i = 0; i < count; i++) inputs[i] = (float)uniform(name_hash("", golden->inputs), i);
    for (int64_t i = 0; i < labels; i++) targets[i] = golden_target(i);
    GOOD(tutti_train_step(step->trainer, FEED_PAIR(inputs, targets), GOLDEN_BATCH, &metrics));
    free(inputs);
    free(targets);
    return metrics;
}

/* The step of plain SGD that the gradient means. */
static int compare_update(const struct step *step, const struct golden *golden, const char *name, const float *gradient)
{
    const char *found = NULL;
    tutti_shape shape;
    bool trained;
    int i = 0;
    while (tutti_parameter_info(step->network, i++, &found, &shape, &trained) == TUTTI_OK && strcmp(found, name)) { }
    int64_t count = golden_elements(&shape);
    float *values = calloc((size_t)count, sizeof(float));
    GOOD(tutti_get_parameter(step->trainer, name, values, count));
    int wrong = 0;
    for (int64_t k = 0; k < count && !wrong; k++) {
        double before = golden_initial(golden, name, &shape, k), change = LEARNING_RATE * (double)gradient[k];
        wrong = !(fabs(values[k] - (before - change)) <= 2.4e-7 * (fabs(before) + fabs(change)));
    }
    if (wrong) fprintf(stderr, "%s was not updated by its gradient\n", name);
    free(values);
    return wrong;
}

START_TEST(test_step)
{
    const struct golden *golden = &cases[_i];
    double loss;
    int correct, arrays, wrong = 0, trained = 0;
    FILE *file = golden_open(golden, &loss, &correct, &arrays);
    struct step step = prepare(golden);
    tutti_metrics metrics = train(&step, golden);
    for (int i = 0; i < arrays; i++) {
        struct array want;
        golden_read(file, &want);
        float *got = calloc((size_t)want.size, sizeof(float));
        bool gradient = !strcmp(want.kind, "gradient");
        GOOD(gradient ? tutti_get_gradient(step.trainer, want.name, got, want.size)
                      : tutti_get_parameter(step.trainer, want.name, got, want.size));
        wrong += compare(&want, got);
        if (gradient) wrong += compare_update(&step, golden, want.name, got);
        trained += gradient;
        free(got);
    }
    fclose(file);
    ck_assert_msg(fabs(metrics.loss - loss) <= 1e-5 * loss, "loss %.9g, not %.9g", metrics.loss, loss);
    ck_assert_int_eq((int)lrint(metrics.accuracy * metrics.counted * (double)golden_labels(golden)), correct);
    ck_assert_int_gt(trained, 0);
    ck_assert_msg(wrong == 0, "%d of %s's %d arrays are wrong", wrong, golden->name, arrays);
    tutti_trainer_free(step.trainer);
    tutti_network_free(step.network);
    tutti_close(step.runtime);
}
END_TEST

static bool is_chosen(int number, int count, char **words)
{
    bool named = false;
    for (int i = 1; i < count; i++) named |= !strcmp(words[i], cases[number].name);
    return named || count < 2 || (isdigit((unsigned char)*words[1]) && (number / 2 + number) % 2 == atoi(words[1]));
}

/* Arguments are names of cases. With 0 or 1 as the argument, each network runs once, smooth or as it is; the other
 * number selects the other form. Networks with only one case are divided between the two numbers. */
int main(int count, char **words)
{
    Suite *suite = suite_create("golden");
    TCase *test_case = tcase_create("steps");
    tcase_set_timeout(test_case, 900);
    for (int i = 0; i < CASES; i++)
        if (is_chosen(i, count, words)) tcase_add_loop_test(test_case, test_step, i, i + 1);
    suite_add_tcase(suite, test_case);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
