/* Whole networks trained for some steps with the kernels of CPU-class devices, then with those of GPU-class devices,
 * from the same seed: the losses are the same up to rounding. With "layouts" as its argument, on a device with matrix
 * instructions: a residual network and one of depthwise convolutions with products rounded to bfloat16 and TF32, in the
 * plain layout, then with channels last. */
#include "tests/feeds.h"
#include <check.h>
#undef fail

#include "models/models.h"
#include "tutti.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A small image's features are one pixel, of which the pool before the classifier would make 49: 100 million weights
 * more. */
#define tutti_adaptive_average_pool(network, x, height, width) (x)
#define model_vgg16 small_vgg16
tutti_tensor small_vgg16(tutti_network *network, tutti_tensor x, int classes);
#include "models/vgg.c"
#undef tutti_adaptive_average_pool

enum { CLASSES = 10, BATCH = 4, STEPS = 3 };

/* Rounding errors of a step grow with each step that follows. */
#define LIMIT 1e-5

static const struct run {
    const char *name;
    tutti_tensor (*build)(tutti_network *network, tutti_tensor x, int classes);
    tutti_shape shape;
    bool normalised;
    float learning_rate;
} runs[] = {
    { "lenet", model_lenet, { 3, { 1, 28, 28 } }, false, 0.01f },
    { "resnet18", model_resnet18, { 3, { 3, 64, 64 } }, true, 0.0005f },
    { "mobilenet_v2", model_mobilenet_v2, { 3, { 3, 64, 64 } }, true, 0.0005f },
    { "vgg16", small_vgg16, { 3, { 3, 32, 32 } }, false, 0.01f },
};
enum { RUNS = sizeof(runs) / sizeof(runs[0]) };

#define GOOD(call) ck_assert_msg((call) == TUTTI_OK, "%s", tutti_message(NULL))

/* Numbers in [-1, 1), the same in each step. */
static float *make_inputs(const struct run *run)
{
    size_t count = (size_t)(BATCH * run->shape.sizes[0] * run->shape.sizes[1] * run->shape.sizes[2]);
    float *inputs = calloc(count, sizeof(float));
    ck_assert_ptr_nonnull(inputs);
    uint32_t state = 1;
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        inputs[i] = (float)(state >> 8) / (1 << 23) - 1;
    }
    return inputs;
}

/* Scales and biases for which every ReLU and ReLU6 after a batch normalisation passes its inputs on, as in make.py.
 * So rounding cannot flip any of them; normalisation over so few samples would turn a flip into a difference of
 * percents. */
static void keep_from_kinks(tutti_network *network, tutti_trainer *trainer)
{
    const char *name;
    tutti_shape shape;
    bool trained;
    for (int i = 0; tutti_parameter_info(network, i, &name, &shape, &trained) == TUTTI_OK; i++) {
        if (!trained || shape.rank != 1) continue;
        const bool scale = strstr(name, "weight") != NULL;
        float *values = calloc((size_t)shape.sizes[0], sizeof(float));
        ck_assert_ptr_nonnull(values);
        for (int64_t k = 0; k < shape.sizes[0]; k++) values[k] = scale ? 0.375f : 3;
        GOOD(tutti_set_parameter(trainer, name, values, shape.sizes[0]));
        free(values);
    }
}

static void train(const struct run *run, const char *class, tutti_precision precision, double losses[STEPS])
{
    static const int32_t targets[BATCH] = { 3, 7, 1, 4 };
    float *inputs = make_inputs(run);
    setenv("TUTTI_DEVICE_CLASS", class, 1);
    tutti_runtime *runtime = tutti_open(NULL);
    ck_assert_msg(runtime, "%s", tutti_message(NULL));
    tutti_network *network = tutti_network_new(runtime);
    tutti_tensor output = run->build(network, tutti_input(network, "x", run->shape), CLASSES);
    const tutti_training training = {
        .learning_rate = run->learning_rate, .batch = BATCH, .seed = 5, .precision = precision
    };
    tutti_trainer *trainer = tutti_compile(network, output, &training);
    ck_assert_msg(trainer, "%s", tutti_message(runtime));
    if (run->normalised) keep_from_kinks(network, trainer);
    for (int step = 0; step < STEPS; step++) {
        tutti_metrics metrics;
        GOOD(tutti_train_step(trainer, FEED_PAIR(inputs, targets), BATCH, &metrics));
        losses[step] = metrics.loss;
    }
    tutti_trainer_free(trainer);
    tutti_network_free(network);
    tutti_close(runtime);
    free(inputs);
}

START_TEST(test_losses)
{
    double cpu[STEPS], gpu[STEPS];
    train(&runs[_i], "cpu", TUTTI_FP32, cpu);
    train(&runs[_i], "gpu", TUTTI_FP32, gpu);
    for (int step = 0; step < STEPS; step++) {
        printf("%s, step %d: %.9g and %.9g\n", runs[_i].name, step, cpu[step], gpu[step]);
        ck_assert_msg(fabs(gpu[step] - cpu[step]) <= LIMIT * cpu[step],
            "%s, step %d: loss %.9g as a GPU, %.9g as a CPU", runs[_i].name, step, gpu[step], cpu[step]);
    }
    ck_assert_msg(cpu[STEPS - 1] < (1 - 100 * LIMIT) * cpu[0], "%s has learnt nothing", runs[_i].name);
}
END_TEST

static tutti_tensor conv_norm(tutti_network *network, tutti_tensor x, int channels, int kernel, int stride)
{
    const tutti_conv2d_options options = { .stride = stride, .padding = kernel / 2, .no_bias = true };
    return tutti_batch_norm(network, tutti_conv2d(network, x, channels, kernel, &options), NULL);
}

/* One of each part of resnet18: few and odd numbers of channels for the tiles, stride, shortcuts, poolings. */
static tutti_tensor small_resnet(tutti_network *network, tutti_tensor x, int classes)
{
    x = tutti_relu(network, conv_norm(network, x, 20, 7, 2));
    x = tutti_max_pool(network, x, 3, &(tutti_pool_options) { .stride = 2, .padding = 1 });
    tutti_tensor y = conv_norm(network, tutti_relu(network, conv_norm(network, x, 20, 3, 1)), 20, 3, 1);
    x = tutti_relu(network, tutti_add(network, x, y));
    y = conv_norm(network, tutti_relu(network, conv_norm(network, x, 36, 3, 2)), 36, 3, 1);
    x = tutti_relu(network, tutti_add(network, y, conv_norm(network, x, 36, 1, 2)));
    x = tutti_conv2d(network, x, 24, 1, NULL);
    x = tutti_average_pool(network, x, 2, &(tutti_pool_options) { .stride = 1 });
    x = tutti_adaptive_average_pool(network, x, 2, 3);
    x = tutti_flatten(network, tutti_global_average_pool(network, x));
    return tutti_dense(network, x, classes, NULL);
}

static tutti_tensor inverted_residual(tutti_network *network, tutti_tensor x, int inputs, int outputs, int stride)
{
    const int hidden = 3 * inputs;
    const tutti_conv2d_options depthwise = { .stride = stride, .padding = 1, .groups = hidden, .no_bias = true };
    tutti_tensor y = tutti_relu6(network, conv_norm(network, x, hidden, 1, 1));
    y = tutti_relu6(network, tutti_batch_norm(network, tutti_conv2d(network, y, hidden, 3, &depthwise), NULL));
    y = conv_norm(network, y, outputs, 1, 1);
    return stride == 1 && inputs == outputs ? tutti_add(network, x, y) : y;
}

/* One of each part of mobilenet_v2. */
static tutti_tensor small_mobilenet(tutti_network *network, tutti_tensor x, int classes)
{
    x = tutti_relu6(network, conv_norm(network, x, 12, 3, 2));
    x = inverted_residual(network, x, 12, 20, 2);
    x = inverted_residual(network, x, 20, 20, 1);
    x = tutti_relu6(network, conv_norm(network, x, 36, 1, 1));
    x = tutti_flatten(network, tutti_global_average_pool(network, x));
    return tutti_dense(network, x, classes, NULL);
}

static const struct run layered[] = {
    { "small resnet", small_resnet, { 3, { 3, 30, 34 } }, true, 0.0005f },
    { "small mobilenet_v2", small_mobilenet, { 3, { 3, 30, 34 } }, true, 0.0005f },
};
enum { LAYERED = sizeof layered / sizeof *layered };

/* Sums in another order may round an operand to the other neighbour: a part in 256 of it, or in 2048. */
static const struct rounded {
    tutti_precision precision;
    double limit;
} rounded[] = { { TUTTI_BF16, 1e-3 }, { TUTTI_TF32, 1e-4 } };
enum { ROUNDED = sizeof rounded / sizeof *rounded };

/* The named implementations for each convolution. */
static void force(const char *name)
{
    char all[240];
    snprintf(all, sizeof all, "conv2d=%s,conv2d_data_gradient=%s,conv2d_weight_gradient=%s", name, name, name);
    setenv("TUTTI_IMPLEMENTATION", all, 1);
}

START_TEST(test_layouts)
{
    double plain[STEPS], last[STEPS];
    const struct run *run = &layered[_i / ROUNDED];
    const struct rounded *by = &rounded[_i % ROUNDED];
    force("implicit_gemm_matrix|depthwise_gpu");
    train(run, "gpu", by->precision, plain);
    force("channels_last|depthwise_channels_last");
    train(run, "gpu", by->precision, last);
    for (int step = 0; step < STEPS; step++) {
        printf("%s, step %d: %.9g and %.9g\n", run->name, step, plain[step], last[step]);
        ck_assert_msg(fabs(last[step] - plain[step]) <= by->limit * plain[step],
            "%s, step %d: loss %.9g with channels last, %.9g in the plain layout", run->name, step, last[step],
            plain[step]);
    }
    ck_assert_msg(last[STEPS - 1] < (1 - 5 * by->limit) * last[0], "%s has learnt nothing", run->name);
}
END_TEST

int main(int argc, char **argv)
{
    const bool layouts = argc > 1 && !strcmp(argv[1], "layouts");
    Suite *suite = suite_create("classes");
    TCase *test_case = tcase_create("losses");
    tcase_set_timeout(test_case, 900);
    if (layouts)
        tcase_add_loop_test(test_case, test_layouts, 0, LAYERED * ROUNDED);
    else
        tcase_add_loop_test(test_case, test_losses, 0, RUNS);
    suite_add_tcase(suite, test_case);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
