/* Two CPUs in one training, of which one computes bf16 dot products and the other one cannot: with
 * --precision bf16 each rounds as its processor does, and the shares alone decide who computes which sample. */
#include "tests/feeds.h"
#include "tests/train/folder.h"
#include "tests/train/test_devices.h"
#include "tests/train/training.h"
#include "tutti_inspect.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Limits relative to the largest gradient. SAME: both sides have the same products; ROUNDED: one side has products of
 * rounded numbers. Products of up to 8 rows are summed in another order (gemm_skinny). A gradient that is stored as
 * bfloat16 afterwards and lies between two such numbers may be rounded to the other one: that is seen in one step of
 * twenty, and makes 1.4e-5. */
#define SAME 5e-5
#define ROUNDED 4e-4
#define SUMS 2e-6 /* of a loss */

enum { STEPS = 5, DOTS = 0, FLOATS = 1, EPOCHS = 3, ALL_STEPS = 15 /* of three epochs */ };

static tutti_runtime *runtime; /* NULL: devices of GPU class, which multiply in other ways */
/* The first device has 9 samples and more: products of fewer rows are floats on both (gemm_skinny). */
static const double shares[][2] = { { 3, 1 }, { 5, 3 }, { 1, 0 }, { 0, 1 } };

/* Lets C compute bf16 dot products, as any processor can; then denies it to the second device. */
static void setup(void)
{
    data_make();
    folder_new();
    ck_assert_int_eq(setenv("TUTTI_BF16_DOTS", "plain", 1), 0);
    ck_assert_int_eq(setenv("TUTTI_VECTOR_WIDTH", "16", 1), 0);
    runtime = tutti_open(&(tutti_runtime_options) { .devices = "0,1" });
    ck_assert_int_eq(unsetenv("TUTTI_BF16_DOTS"), 0);
    ck_assert_int_eq(unsetenv("TUTTI_VECTOR_WIDTH"), 0);
    ck_assert_msg(runtime, "%s", tutti_message(NULL));
    ck_assert_int_eq(runtime->count, 2);
    if (runtime->devices[0].can.class == DEVICE_GPU) {
        tutti_close(runtime);
        runtime = NULL;
        return;
    }
    struct bf16_ability *of = runtime->devices[FLOATS].can.bf16;
    ck_assert_int_eq(of[COMPUTE_BF16].form, BF16_PLAIN);
    for (int i = 0; i < COMPUTE_TYPES; i++) of[i] = (struct bf16_ability) { BF16_NONE, "the test denies it" };
}

static void teardown(void)
{
    tutti_close(runtime);
    folder_remove();
}

static void open_with(struct session *session, const double *given, uint64_t seed)
{
    const tutti_training training = { .momentum = 0.9f, .precision = TUTTI_BF16, .shares = given, .seed = seed };
    session->runtime = runtime;
    session_compile(session, KIND_POINTWISE, &training);
    ck_assert_msg(session->trainer, "%s", tutti_message(NULL));
}

/* The runtime is the case's. */
static void close_single(struct session *session)
{
    tutti_trainer_free(session->trainer);
    tutti_network_free(session->network);
}

static void copy_parameters(struct session *from, struct session *to)
{
    const char *name;
    tutti_shape shape;
    for (int i = 0; tutti_parameter_info(from->network, i, &name, &shape, NULL) == TUTTI_OK; i++) {
        int64_t elements = 1;
        for (int j = 0; j < shape.rank; j++) elements *= shape.sizes[j];
        float *values = malloc((size_t)elements * sizeof(float));
        ck_assert_ptr_nonnull(values);
        ASSERT_OK(tutti_get_parameter(from->trainer, name, values, elements));
        ASSERT_OK(tutti_set_parameter(to->trainer, name, values, elements));
        free(values);
    }
}

/* A step of one device from another training's parameters, on a batch of which it sees the labels from `begin` to
 * before `end` alone: losses of the others are 0. So its gradients are divided by the samples of the whole batch, as in
 * the group, before they are rounded. Returns its loss. */
static double step_single(struct session *alone, struct session *from, int first, int begin, int end)
{
    int32_t seen[STEP_SAMPLES];
    tutti_metrics metrics = { 0 };
    for (int i = 0; i < STEP_SAMPLES; i++) seen[i] = i >= begin && i < end ? labels[first + i] : -1;
    copy_parameters(from, alone);
    ASSERT_OK(tutti_train_step(alone->trainer, FEED_PAIR(images + first * PIXELS, seen), STEP_SAMPLES, &metrics));
    return metrics.loss;
}

/* The largest difference of `found` from the sum of two devices' gradients, relative to the largest of `found`. */
static double distance(const struct session *found, const struct session *bf16, const struct session *floats)
{
    int64_t count, other;
    float *f = session_gradients(found, &count), *p = session_gradients(bf16, &other),
          *q = session_gradients(floats, &other);
    double largest = 0, most = 0;
    ck_assert_int_eq(count, other);
    for (int64_t i = 0; i < count; i++) {
        largest = fmax(largest, fabs((double)f[i]));
        most = fmax(most, fabs((double)f[i] - (double)p[i] - (double)q[i]));
    }
    ck_assert(largest > 0 && isfinite(most));
    free(f);
    free(p);
    free(q);
    return most / largest;
}

/* Every step of the group is the sum of what each device makes of its part, which is the first part for the first
 * device. It is not what the devices make of each other's parts. */
START_TEST(each_device_rounds_its_own_part)
{
    if (!runtime) return;
    const double *given = shares[_i];
    struct session group, bf16, floats, start;
    open_with(&group, given, 0);
    open_with(&start, given, 0); /* holds the parameters before a step */
    open_with(&bf16, (const double[]) { 1, 0 }, 0);
    open_with(&floats, (const double[]) { 0, 1 }, 0);
    const int part = (int)(STEP_SAMPLES * given[0] / (given[0] + given[1]));
    for (int step = 0; step < STEPS; step++) {
        const int first = step * STEP_SAMPLES % (SAMPLES - STEP_SAMPLES);
        tutti_metrics metrics = { 0 };
        copy_parameters(&group, &start);
        ASSERT_OK(tutti_train_step(
            group.trainer, FEED_PAIR(images + first * PIXELS, labels + first), STEP_SAMPLES, &metrics));
        const double of_bf16 = step_single(&bf16, &start, first, 0, part),
                     of_floats = step_single(&floats, &start, first, part, STEP_SAMPLES);
        ck_assert_double_lt(distance(&group, &bf16, &floats), SAME);
        ck_assert_double_eq_tol(metrics.loss, of_bf16 + of_floats, SUMS);
        step_single(&floats, &start, first, 0, part);
        step_single(&bf16, &start, first, part, STEP_SAMPLES);
        ck_assert_double_gt(distance(&group, &bf16, &floats), ROUNDED);
    }
    tutti_device_report report;
    ASSERT_OK(tutti_report(group.trainer, DOTS, &report));
    ck_assert_int_eq(report.share, part);
    close_single(&group);
    close_single(&bf16);
    close_single(&floats);
    close_single(&start);
}
END_TEST

static void fit(struct session *session, int64_t steps, const char *save, const char *resume)
{
    const tutti_fitting fitting = { .epochs = EPOCHS, .steps = steps, .save = save, .resume = resume };
    ASSERT_OK(tutti_fit(session->trainer, FEED_PAIR(images, labels), SAMPLES, &fitting));
}

/* Fails unless two checkpoints are the same bytes. */
static void same_files(const char *a, const char *b)
{
    char command[500];
    for (int state = 0; state < 2; state++) {
        const char *end = state ? ".state.safetensors" : ".safetensors";
        snprintf(command, sizeof command, "cmp '%s%s' '%s%s'", a, end, b, end);
        ck_assert_msg(system(command) == 0, "%s", command);
    }
}

/* Stopped in the second epoch and continued from the file, against never stopped. Other shares are another training. */
START_TEST(resumed_equals_never_stopped)
{
    if (!runtime) return;
    struct session whole, part, other;
    char names[3][200];
    for (int i = 0; i < 3; i++)
        snprintf(names[i], sizeof names[i], "%s", in_folder((const char *[]) { "whole", "part", "other" }[i]));
    open_with(&whole, shares[0], 0);
    fit(&whole, 0, names[0], NULL);
    open_with(&part, shares[0], 0);
    fit(&part, 7, names[1], NULL);
    close_single(&part);
    open_with(&part, shares[0], 1234); /* the checkpoint's seed counts */
    fit(&part, 0, names[1], names[1]);
    ck_assert_int_eq(part.trainer->state.position.steps, ALL_STEPS);
    same_bytes(&whole, &part);
    same_files(names[0], names[1]);
    open_with(&other, shares[1], 0);
    fit(&other, 0, names[2], NULL);
    int64_t count;
    float *left = session_parameters(&whole, &count), *right = session_parameters(&other, &count);
    ck_assert_int_ne(memcmp(left, right, (size_t)count * sizeof(float)), 0);
    free(left);
    free(right);
    close_single(&whole);
    close_single(&part);
    close_single(&other);
}
END_TEST

/* A hash of numbers up to 999, as a row of a table: values that wait for the second gather, and the hash itself. */
static tutti_tensor hashed_rows(tutti_network *network)
{
    const float factor = 61, buckets = 4096;
    const tutti_tensor by = tutti_constant(network, NULL, TUTTI_SHAPE(1), &factor);
    const tutti_tensor modulus = tutti_constant(network, NULL, TUTTI_SHAPE(1), &buckets);
    const tutti_tensor x = tutti_input(network, "x", TUTTI_SHAPE(31));
    tutti_tensor hash = x;
    for (int i = 0; i < 12; i++) {
        hash = tutti_op(network, "mul", (tutti_tensor[]) { hash, by }, 2, NULL);
        hash = tutti_op(network, "fmod", (tutti_tensor[]) { hash, modulus }, 2, NULL);
        hash = tutti_op(network, "fmod", (tutti_tensor[]) { tutti_add(network, hash, x), modulus }, 2, NULL);
    }
    const tutti_tensor table = tutti_parameter(network, "table", TUTTI_SHAPE(4096, 3), NULL);
    return tutti_op(network, "gather", (tutti_tensor[]) { table, hash }, 2, "axis=0");
}

START_TEST(indices_are_not_rounded)
{
    enum { COUNT = 5 };
    static float x[COUNT * 31], found[2][COUNT * 31 * 3];
    if (!runtime) return;
    for (int i = 0; i < COUNT * 31; i++) x[i] = (float)(i * 37 % 1000);
    for (int i = 0; i < 2; i++) {
        tutti_network *network = tutti_network_new(runtime);
        const tutti_tensor rows = hashed_rows(network);
        tutti_trainer *trainer = tutti_compile(network, rows,
            &(tutti_training) {
                .loss = TUTTI_LOSS_NONE, .precision = i ? TUTTI_BF16 : TUTTI_FP32, .seed = 3, .batch = COUNT });
        ck_assert_msg(trainer, "%s", tutti_message(NULL));
        ASSERT_OK(tutti_infer(trainer, FEED_ONE(x), COUNT, FETCH_ONE(rows, found[i])));
        tutti_trainer_free(trainer);
        tutti_network_free(network);
    }
    ck_assert_int_eq(memcmp(found[0], found[1], sizeof(found[0])), 0);
}
END_TEST

Suite *suite_bf16(void)
{
    Suite *suite = suite_create("bf16");
    TCase *cases = cases_new(suite, "bf16", setup, teardown);
    tcase_add_loop_test(cases, each_device_rounds_its_own_part, 0, sizeof shares / sizeof *shares);
    tcase_add_test(cases, resumed_equals_never_stopped);
    tcase_add_test(cases, indices_are_not_rounded);
    return suite;
}
