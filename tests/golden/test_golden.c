/* One training step of whole networks against PyTorch's in double precision: the loss, every gradient, the running
 * statistics, and the updated parameters. make.py recorded the files, and says what stands in them. */
#include "tests/feeds.h"
#include <check.h>
#undef fail

#include "models/models.h"
#include "tests/golden/numbers.h"
#include "tests/tolerance.h"
#include "tutti.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* PyTorch's dropout draws other numbers than ours (tests/layers compares that); the recorded networks have none. */
#define tutti_dropout(network, x, probability) (x)
#define model_mobilenet_v2 golden_mobilenet_v2
tutti_tensor golden_mobilenet_v2(tutti_network *network, tutti_tensor x, int classes);
#include "models/mobilenet_v2.c"

enum { CLASSES = 10, BATCH = 4, MAX_SAMPLES = 32, NAME_BYTES = 128 };

/* Another order of sums, and Winograd's transforms (tests/tolerance.h), lose more than PyTorch does: measured 4.3 times
 * at the most. An array that PyTorch happens to hit exactly still gets the rounding errors of a sum, the longest of
 * which goes over the batch's first images. */
#define ERRORS_OF_PYTORCH 10.0
#define ROUNDING tolerance(TOLERANCE_SUM, BATCH * 32 * 32)
#define LEARNING_RATE 0.0625f

struct golden {
    const char *name;
    tutti_tensor (*build)(tutti_network *network, tutti_tensor x, int classes);
    tutti_shape shape;
    double shift; /* of biases, and the inputs' name: see make.py */
    const char *inputs;
    bool smooth;
};

static const struct golden cases[] = {
    { "mlp", model_mlp, { 3, { 1, 28, 28 } }, 0, "input 84", false },
    { "mlp_smooth", model_mlp, { 3, { 1, 28, 28 } }, 0, "input 84", true },
    { "lenet", model_lenet, { 3, { 1, 28, 28 } }, 0, "input 156", false },
    { "lenet_smooth", model_lenet, { 3, { 1, 28, 28 } }, 0, "input 156", true },
    { "resnet18", model_resnet18, { 3, { 3, 64, 64 } }, 1.5, "input 68", false },
    { "resnet18_smooth", model_resnet18, { 3, { 3, 64, 64 } }, 1.5, "input 68", true },
    { "mobilenet_v2", golden_mobilenet_v2, { 3, { 3, 64, 64 } }, 2.5, "input 153", false },
    { "mobilenet_v2_smooth", golden_mobilenet_v2, { 3, { 3, 64, 64 } }, 2.5, "input 153", true },
};
enum { CASES = sizeof(cases) / sizeof(cases[0]) };

/* --------------------------------------------------------------------------- initial values, as make.py has them ----
 */

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && !strcmp(text + length - tail, end);
}

static int64_t elements(const tutti_shape *shape)
{
    int64_t count = 1;
    for (int i = 0; i < shape->rank; i++) count *= shape->sizes[i];
    return count;
}

static double initial(const struct golden *golden, const char *name, const tutti_shape *shape, int64_t index)
{
    bool smooth = golden->smooth;
    double value = uniform(name_hash("", name), index);
    if (ends_with(name, "running_mean")) return 0;
    if (ends_with(name, "running_var")) return 1;
    if (shape->rank > 1) {
        double fan_in = (double)(elements(shape) / shape->sizes[0]);
        return value * exp2(nearbyint(log2(sqrt(6 / fan_in)))) / (smooth ? 8 : 1);
    }
    if (ends_with(name, "weight")) return smooth ? 0.375 + value / 32 : 1 + value / 4;
    return smooth ? 3 + value / 16 : golden->shift + value / 4;
}

/* ------------------------------------------------------------------------------------------------ comparison ---- */

struct array {
    char kind[16], name[NAME_BYTES];
    int64_t size;
    double norm, projection, off, off_most;
    int samples;
    double sample[MAX_SAMPLES];
};

static void read_array(FILE *file, struct array *array)
{
    int read = fscanf(file, "%15s %127s %" SCNd64 " %lf %lf %lf %lf %d", array->kind, array->name, &array->size,
        &array->norm, &array->projection, &array->off, &array->off_most, &array->samples);
    ck_assert_msg(read == 8 && array->samples <= MAX_SAMPLES, "a golden file is damaged near %s", array->name);
    for (int i = 0; i < array->samples; i++) ck_assert_int_eq(fscanf(file, "%lf", &array->sample[i]), 1);
}

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
        int64_t position = want->size > want->samples ? i * want->size / want->samples : i;
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
    step.trainer =
        tutti_compile(step.network, output, &(tutti_training) { .learning_rate = LEARNING_RATE, .batch = BATCH });
    ck_assert_msg(step.trainer, "%s", tutti_message(step.runtime));
    const char *name;
    tutti_shape shape;
    bool trained;
    for (int i = 0; tutti_parameter_info(step.network, i, &name, &shape, &trained) == TUTTI_OK; i++) {
        int64_t count = elements(&shape);
        float *values = calloc((size_t)count, sizeof(float));
        for (int64_t k = 0; k < count; k++) values[k] = (float)initial(golden, name, &shape, k);
        GOOD(tutti_set_parameter(step.trainer, name, values, count));
        free(values);
    }
    return step;
}

static tutti_metrics train(const struct step *step, const struct golden *golden)
{
    int64_t count = BATCH * elements(&golden->shape);
    float *inputs = calloc((size_t)count, sizeof(float));
    int32_t targets[BATCH];
    tutti_metrics metrics;
    for (int64_t i = 0; i < count; i++) inputs[i] = (float)uniform(name_hash("", golden->inputs), i);
    for (int i = 0; i < BATCH; i++) targets[i] = (int32_t)(golden_bits(name_hash("", "target"), i) % CLASSES);
    GOOD(tutti_train_step(step->trainer, FEED_PAIR(inputs, targets), BATCH, &metrics));
    free(inputs);
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
    int64_t count = elements(&shape);
    float *values = calloc((size_t)count, sizeof(float));
    GOOD(tutti_get_parameter(step->trainer, name, values, count));
    int wrong = 0;
    for (int64_t k = 0; k < count && !wrong; k++) {
        double before = initial(golden, name, &shape, k), change = LEARNING_RATE * (double)gradient[k];
        wrong = !(fabs(values[k] - (before - change)) <= 2.4e-7 * (fabs(before) + fabs(change)));
    }
    if (wrong) fprintf(stderr, "%s was not updated by its gradient\n", name);
    free(values);
    return wrong;
}

START_TEST(test_step)
{
    const struct golden *golden = &cases[_i];
    char path[1024];
    snprintf(path, sizeof(path), "%s/tests/golden/%s.txt", getenv("TUTTI_SOURCE"), golden->name);
    FILE *file = fopen(path, "r");
    ck_assert_msg(file != NULL, "%s cannot be opened", path);
    double loss;
    int correct, arrays, wrong = 0, trained = 0;
    ck_assert_int_eq(fscanf(file, "loss %lf correct %d arrays %d", &loss, &correct, &arrays), 3);
    struct step step = prepare(golden);
    tutti_metrics metrics = train(&step, golden);
    for (int i = 0; i < arrays; i++) {
        struct array want;
        read_array(file, &want);
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
    ck_assert_int_eq((int)lrint(metrics.accuracy * BATCH), correct);
    ck_assert_int_gt(trained, 0);
    ck_assert_msg(wrong == 0, "%d of %s's %d arrays are wrong", wrong, golden->name, arrays);
    tutti_trainer_free(step.trainer);
    tutti_network_free(step.network);
    tutti_close(step.runtime);
}
END_TEST

/* 0 or 1 as its argument: each network once, smooth or as it is, the other way round for the other number. */
int main(int count, char **words)
{
    Suite *suite = suite_create("golden");
    TCase *test_case = tcase_create("steps");
    tcase_set_timeout(test_case, 900);
    for (int i = 0; i < CASES; i++)
        if (count < 2 || (i / 2 + i) % 2 == atoi(words[1])) tcase_add_loop_test(test_case, test_step, i, i + 1);
    suite_add_tcase(suite, test_case);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
