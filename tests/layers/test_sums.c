/* Sums of some million equal numbers are good to the last places, wherever kernels add up: a chain of additions would
 * be off by 1e-4 and more. Gradients are those of an L1 loss, -1 / elements for each. */
#include <check.h>
#undef fail /* base/status.h has its own */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "runtime/device.h"
#include "runtime/matrix.h"
#include "tests/layers/device_suite.h"
#include "tutti.h"
#include "tutti_sequences.h"

enum { TERMS = 500009, SIDE_H = 709, SIDE_W = 719, SIDE = SIDE_H * SIDE_W };
static const double limit = 6e-7, limit_of_products = 1e-6;
/* Weight gradients of convolutions on GPU-class devices, whose chains are longer than on CPUs. PyTorch 2.15 is off by
 * 6e-3. */
static const double limit_of_chains = 4.4e-6;
/* On GPU-class devices, sums of fewer terms than TILE_LONG: a part of at most 12,800 is one chain. */
static const double limit_of_parts = 3e-4;
static const float value = 0.1f;

static tutti_runtime *runtime;

static tutti_tensor rows(tutti_network *n, int64_t width)
{
    return tutti_input(n, "x", TUTTI_SHAPE(TERMS, width));
}
static tutti_tensor image(tutti_network *n, int64_t channels)
{
    return tutti_input(n, "x", TUTTI_SHAPE(channels, SIDE_H, SIDE_W));
}
static tutti_tensor parameter(tutti_network *n, int64_t width)
{
    return tutti_parameter(n, "p", TUTTI_SHAPE(width), &(tutti_parameter_options) { .init = TUTTI_INIT_ZEROS });
}

static tutti_tensor dense(tutti_network *n)
{
    return tutti_dense(n, rows(n, 1), 3, &(tutti_dense_options) { .name = "l" });
}
static tutti_tensor dense_wide(tutti_network *n)
{
    return tutti_dense(n, rows(n, 2), 19, &(tutti_dense_options) { .name = "l" });
}
static tutti_tensor add(tutti_network *n)
{
    return tutti_add(n, rows(n, 3), parameter(n, 3));
}
static tutti_tensor scale(tutti_network *n)
{
    return tutti_mul(n, rows(n, 3), parameter(n, 3));
}
static tutti_tensor layer_norm(tutti_network *n)
{
    return tutti_layer_norm(n, "l", rows(n, 17), 0);
}
static tutti_tensor batch_norm(tutti_network *n)
{
    return tutti_batch_norm(n, image(n, 3), &(tutti_batch_norm_options) { .name = "l" });
}
static tutti_tensor conv2d(tutti_network *n)
{
    return tutti_conv2d(n, image(n, 3), 2, 1, &(tutti_conv2d_options) { .name = "l" });
}
static tutti_tensor wide_dense(tutti_network *n)
{
    return tutti_dense(n, rows(n, 9), 10, &(tutti_dense_options) { .name = "l" });
}
static tutti_tensor products(tutti_network *n, int64_t width)
{
    const tutti_tensor x = rows(n, width);
    return tutti_matmul(n, NULL, x, x, true, false);
}
static tutti_tensor dot(tutti_network *n)
{
    return products(n, 1);
}
static tutti_tensor gram(tutti_network *n)
{
    return products(n, 10);
}
static tutti_tensor row_by_row(tutti_network *n)
{
    const tutti_tensor x = rows(n, 2);
    const tutti_tensor one = tutti_op(n, "slice", &x, 1, "axes=-1 starts=0 ends=1");
    return tutti_matmul(n, NULL, tutti_reshape(n, one, TUTTI_SHAPE(1, TERMS)), x, false, false);
}
static tutti_tensor row_by_rows(tutti_network *n)
{
    const tutti_tensor x = tutti_input(n, "x", TUTTI_SHAPE(2, TERMS));
    return tutti_matmul(n, NULL, x, x, false, true);
}
/* TERMS times the number 0. */
static tutti_tensor zeros_of(tutti_network *n, tutti_tensor x)
{
    return tutti_op(n, "argmax", &x, 1, "axis=-1 keepdims=0");
}
static tutti_tensor embedding(tutti_network *n)
{
    return tutti_embedding(n, "l", tutti_input_typed(n, "ids", TUTTI_DTYPE_I32, (int64_t[]) { TERMS }, 1), 1, 19);
}
static tutti_tensor gather(tutti_network *n)
{
    const tutti_tensor operands[] = { parameter(n, 1), zeros_of(n, rows(n, 2)) };
    return tutti_op(n, "gather", operands, 2, "axis=0");
}
static tutti_tensor scatter(tutti_network *n)
{
    const tutti_tensor x = rows(n, 2), column = tutti_op(n, "slice", &x, 1, "axes=-1 starts=0 ends=1");
    const tutti_tensor updates = tutti_reshape(n, column, TUTTI_SHAPE(TERMS));
    const tutti_tensor one = tutti_op(n, "slice", &updates, 1, "axes=-1 starts=0 ends=1");
    const tutti_tensor operands[] = { one, zeros_of(n, x), updates };
    return tutti_op(n, "scatter_elements", operands, 3, "axis=-1 reduction=add");
}
static tutti_tensor mean(tutti_network *n)
{
    const tutti_tensor x = rows(n, 2);
    return tutti_op(n, "reduce_mean", &x, 1, "axes=-2 keepdims=0");
}
static tutti_tensor pool(tutti_network *n)
{
    return tutti_global_average_pool(n, image(n, 2));
}
static tutti_tensor window(tutti_network *n)
{
    const tutti_tensor x = image(n, 2);
    char text[64];
    snprintf(text, sizeof text, "kernel_shape=%d,%d", SIDE_H, SIDE_W);
    return tutti_op(n, "average_pool", &x, 1, text);
}
static tutti_tensor softmax(tutti_network *n)
{
    return tutti_softmax(n, tutti_input(n, "x", TUTTI_SHAPE(1, TERMS)));
}
static tutti_tensor running(tutti_network *n)
{
    const tutti_tensor x = rows(n, 2), y = tutti_op(n, "cumsum", &x, 1, "axis=-2");
    return tutti_op(n, "slice", &y, 1, "axes=-2 starts=-1 ends=2147483647");
}

/* Without padding, so that every tap meets as many pixels. */
struct convolution {
    int64_t channels, h, w, kernels;
    int side, stride, groups;
};
static tutti_tensor convolve(tutti_network *n, const struct convolution *c)
{
    const tutti_conv2d_options options = { .name = "l", .stride = c->stride, .groups = c->groups };
    const tutti_tensor x = tutti_input(n, "x", TUTTI_SHAPE(c->channels, c->h, c->w));
    return tutti_conv2d(n, x, c->kernels, c->side, &options);
}
#define PLANE SIDE_H, SIDE_W
#define ROW 1, TERMS
#define COLUMN TERMS, 1

static const struct {
    const char *name;
    tutti_tensor (*build)(tutti_network *network);
    const char *parameter; /* whose gradient is compared; NULL: the output is */
    double want, pixels;   /* `pixels`: elements of x */
    bool product;
    const char *implementation;     /* on CPU class; NULL: any */
    struct convolution convolution; /* in place of `build` */
} cases[] = {
    { "dense bias", dense, "l.bias", 1.0 / 3, TERMS },
    { "wide dense bias", dense_wide, "l.bias", 1.0 / 19, 2.0 * TERMS },
    { "parameter added over rows", add, "p", 1.0 / 3, 3.0 * TERMS },
    { "factor of rows", scale, "p", 0.1f / 3.0, 3.0 * TERMS },
    { "layer norm bias", layer_norm, "l.bias", 1.0 / 17, 17.0 * TERMS },
    { "batch norm bias", batch_norm, "l.bias", 1.0 / 3, 3.0 * SIDE },
    { "conv2d bias", conv2d, "l.bias", 1.0 / 2, 3.0 * SIDE },
    { "dense weight", dense, "l.weight", 0.1f / 3.0, TERMS, true },
    { "wide dense weight", wide_dense, "l.weight", 0.1f / 10.0, 9.0 * TERMS, true },
    { "direct weights of an image", NULL, "l.weight", 0.1f / 2.0, 3.0 * SIDE, true, "direct",
        { 3, PLANE, 2, 3, 1, 1 } },
    { "direct weights", NULL, "l.weight", 0.1f / 17.0, 16.0 * SIDE, true, "direct", { 16, PLANE, 17, 3, 1, 1 } },
    { "pointwise weights", NULL, "l.weight", 0.1f / 17.0, 16.0 * SIDE, true, "pointwise", { 16, PLANE, 17, 1, 1, 1 } },
    { "direct weights of 1x1", NULL, "l.weight", 0.1f / 17.0, 16.0 * SIDE, true, "direct", { 16, PLANE, 17, 1, 1, 1 } },
    { "winograd weights", NULL, "l.weight", 0.1f / 17.0, 16.0 * SIDE, true, "winograd", { 16, PLANE, 17, 3, 1, 1 } },
    { "winograd weights by rows", NULL, "l.weight", 0.1f / 8.0, 3.0 * SIDE, true, "winograd_rows",
        { 3, PLANE, 8, 7, 2, 1 } },
    { "grouped weights", NULL, "l.weight", 0.1f / 6.0, 4.0 * SIDE, true, "grouped", { 4, PLANE, 6, 3, 1, 2 } },
    { "depthwise weights", NULL, "l.weight", 0.1f / 8.0, 8.0 * SIDE, true, "depthwise", { 8, PLANE, 8, 3, 1, 8 } },
    { "plain weights", NULL, "l.weight", 0.1f, SIDE, true, "plain", { 1, PLANE, 1, 3, 1, 1 } },
    { "depthwise weights of a row", NULL, "l.weight", 0.1f / 8.0, 8.0 * TERMS, true, "depthwise",
        { 8, ROW, 8, 1, 1, 8 } },
    { "depthwise weights of a column", NULL, "l.weight", 0.1f / 8.0, 8.0 * TERMS, true, "depthwise",
        { 8, COLUMN, 8, 1, 1, 8 } },
    { "grouped weights of a row", NULL, "l.weight", 0.1f / 4.0, 4.0 * TERMS, true, "grouped", { 4, ROW, 4, 1, 1, 2 } },
    { "pointwise weights of a row", NULL, "l.weight", 0.1f / 16.0, 16.0 * TERMS, true, "pointwise",
        { 16, ROW, 16, 1, 1, 1 } },
    { "direct weights of a column", NULL, "l.weight", 0.1f / 16.0, 16.0 * TERMS, true, "direct",
        { 16, COLUMN, 16, 1, 1, 1 } },
    { "direct weights of an image's row", NULL, "l.weight", 0.1f / 3.0, 3.0 * TERMS, true, "direct",
        { 3, ROW, 3, 1, 1, 1 } },
    { "weights by pairs", NULL, "l.weight", 0.1f / 17.0, 16.0 * SIDE, true, "bf16", { 16, PLANE, 17, 3, 1, 1 } },
    { "weights of a row by pairs", NULL, "l.weight", 0.1f / 16.0, 16.0 * TERMS, true, "bf16",
        { 16, ROW, 16, 1, 1, 1 } },
    { "weights of a column by pairs", NULL, "l.weight", 0.1f / 16.0, 16.0 * TERMS, true, "bf16",
        { 16, COLUMN, 16, 1, 1, 1 } },
    { "weights of an image by pairs", NULL, "l.weight", 0.1f / 16.0, 3.0 * SIDE, true, "bf16_image",
        { 3, PLANE, 16, 3, 1, 1 } },
    { "weights of an image's rows by pairs", NULL, "l.weight", 0.1f / 16.0, 3.0 * 50 * 10001, true, "bf16_image",
        { 3, 50, 10001, 16, 1, 1, 1 } },
    { "dot product", dot, NULL, (double)0.1f * 0.1f * TERMS, TERMS, true },
    { "gram matrix", gram, NULL, (double)0.1f * 0.1f * TERMS, 10.0 * TERMS, true },
    { "row by matrix", row_by_row, NULL, (double)0.1f * 0.1f * TERMS, 2.0 * TERMS, true },
    { "rows by rows", row_by_rows, NULL, (double)0.1f * 0.1f * TERMS, 2.0 * TERMS, true },
    { "embedding", embedding, "l.weight", 1.0 / 19, TERMS },
    { "gather", gather, "p", 1.0, 2.0 * TERMS },
    { "scatter", scatter, NULL, (double)0.1f * (TERMS + 1), 2.0 * TERMS },
    { "reduce_mean", mean, NULL, 0.1f, 2.0 * TERMS },
    { "global average pool", pool, NULL, 0.1f, 2.0 * SIDE },
    { "average pool", window, NULL, 0.1f, 2.0 * SIDE },
    { "softmax", softmax, NULL, 1.0 / TERMS, TERMS },
    { "cumsum", running, NULL, 0.1f * (double)TERMS, 2.0 * TERMS },
};

static int64_t elements_of(const tutti_network *network, tutti_tensor tensor)
{
    tutti_shape shape;
    int64_t elements = 1;
    ck_assert(tutti_shape_of(network, tensor, &shape) == TUTTI_OK);
    for (int i = 0; i < shape.rank; i++) elements *= shape.sizes[i];
    return elements;
}

static float *filled(int64_t count, float with)
{
    float *values = memory_new((size_t)count, sizeof *values);
    ck_assert(values != NULL);
    for (int64_t i = 0; i < count; i++) values[i] = with;
    return values;
}

static bool is_gpu(void)
{
    return runtime->devices[0].can.class == DEVICE_GPU;
}

static bool by_bf16(const char *implementation)
{
    return implementation && strstr(implementation, "bf16");
}

static void compare(int number, const float *got, int64_t count)
{
    const char *name = cases[number].name, *implementation = cases[number].implementation;
    const bool convolution = implementation && !by_bf16(implementation), chains = convolution && is_gpu();
    const bool parts = chains && cases[number].convolution.stride > 1; /* a quarter of the pixels */
    const double want = cases[number].want,
                 most = parts                  ? limit_of_parts
        : chains                               ? limit_of_chains
        : convolution || cases[number].product ? limit_of_products
                                               : limit;
    for (int64_t i = 0; i < count; i++)
        ck_assert_msg(fabs((double)got[i] / want - 1) < most, "%s: %lld is off by %g", name, (long long)i,
            (double)got[i] / want - 1);
}

/* What computes the weight gradients of convolutions on CPU class. */
static void choose_implementation(const char *implementation)
{
    char text[64];
    unsetenv("TUTTI_IMPLEMENTATION");
    if (!implementation || is_gpu()) return;
    snprintf(text, sizeof text, "conv2d_weight_gradient=%s", implementation);
    ck_assert(setenv("TUTTI_IMPLEMENTATION", text, 1) == 0);
}

START_TEST(test_gradient_or_output)
{
    const char *name = cases[_i].name;
    if (by_bf16(cases[_i].implementation) && (is_gpu() || bf16_refusal(&runtime->devices[0].can, COMPUTE_FP32))) return;
    tutti_network *network = tutti_network_new(runtime);
    const tutti_tensor y = cases[_i].build ? cases[_i].build(network) : convolve(network, &cases[_i].convolution);
    const bool trains = cases[_i].parameter != NULL;
    float *x = filled((int64_t)cases[_i].pixels, value);
    tutti_shape shape = { 0 };
    ck_assert_msg(tutti_shape_of(network, y, &shape) == TUTTI_OK, "%s: %s", name, tutti_message(NULL));
    const int64_t elements = elements_of(network, y);
    tutti_training training = { .loss = TUTTI_LOSS_NONE, .batch = 1, .learning_rate = 1 };
    if (trains) {
        const tutti_tensor targets = tutti_input_typed(network, "targets", TUTTI_DTYPE_F32, shape.sizes, shape.rank);
        const tutti_tensor loss = tutti_l1(network, y, targets, NULL);
        const tutti_tensor p = tutti_find_parameter(network, cases[_i].parameter);
        const int64_t count = elements_of(network, p);
        float *zeros = filled(count, 0), *got = filled(count, 0), *t = filled(elements, 1000);
        training.losses = &loss;
        training.loss_count = 1;
        ck_assert(tutti_set_initial(network, cases[_i].parameter, zeros, count) == TUTTI_OK);
        choose_implementation(cases[_i].implementation);
        tutti_trainer *trainer = tutti_compile(network, y, &training);
        choose_implementation(NULL);
        ck_assert_msg(trainer != NULL, "%s: %s", name, tutti_message(NULL));
        int32_t *ids = memory_new(TERMS, sizeof *ids);
        ck_assert(ids != NULL);
        const tutti_feed feeds[] = { { "targets", TUTTI_DTYPE_F32, t, 0 },
            cases[_i].build == embedding ? (tutti_feed) { "ids", TUTTI_DTYPE_I32, ids, 0 }
                                         : (tutti_feed) { "x", TUTTI_DTYPE_F32, x, 0 } };
        ck_assert_msg(tutti_train_step(trainer, feeds, 2, 1, NULL) == TUTTI_OK, "%s: %s", name, tutti_message(NULL));
        ck_assert(tutti_get_parameter(trainer, cases[_i].parameter, got, count) == TUTTI_OK);
        compare(_i, got, count);
        tutti_trainer_free(trainer);
        free(zeros);
        free(got);
        free(ids);
        free(t);
    } else {
        float *got = filled(elements, 0);
        tutti_trainer *trainer = tutti_compile(network, y, &training);
        ck_assert_msg(trainer != NULL, "%s: %s", name, tutti_message(NULL));
        const tutti_feed feed = { "x", TUTTI_DTYPE_F32, x, 0 };
        const tutti_fetch fetch = { y, TUTTI_DTYPE_F32, got };
        ck_assert_msg(tutti_infer(trainer, &feed, 1, 1, &fetch, 1) == TUTTI_OK, "%s: %s", name, tutti_message(NULL));
        compare(_i, got, elements);
        tutti_trainer_free(trainer);
        free(got);
    }
    free(x);
    tutti_network_free(network);
}
END_TEST

/* More terms than one part of a product has, even if all parts that a device's units keep busy share them. */
START_TEST(test_long_product)
{
    enum { MANY = 10000019 };
    tutti_network *network = tutti_network_new(runtime);
    const tutti_tensor x = tutti_input(network, "x", TUTTI_SHAPE(MANY, 1));
    const tutti_tensor y = tutti_matmul(network, NULL, x, x, true, false);
    tutti_trainer *trainer = tutti_compile(network, y, &(tutti_training) { .loss = TUTTI_LOSS_NONE, .batch = 1 });
    ck_assert_msg(trainer != NULL, "%s", tutti_message(NULL));
    float *terms = filled(MANY, value), got;
    const tutti_feed feed = { "x", TUTTI_DTYPE_F32, terms, 0 };
    const tutti_fetch fetch = { y, TUTTI_DTYPE_F32, &got };
    ck_assert_msg(tutti_infer(trainer, &feed, 1, 1, &fetch, 1) == TUTTI_OK, "%s", tutti_message(NULL));
    const double off = fabs((double)got / ((double)value * (double)value * MANY) - 1);
    ck_assert_msg(off < limit_of_products, "it is off by %g", off);
    tutti_trainer_free(trainer);
    tutti_network_free(network);
    free(terms);
}
END_TEST

/* Loss and accuracy of more labels than floats count. */
START_TEST(test_labels)
{
    enum { LABELS = (1 << 24) + 1003 };
    tutti_network *network = tutti_network_new(runtime);
    const int64_t sizes[] = { LABELS };
    const tutti_tensor x = tutti_input(network, "x", TUTTI_SHAPE(1, LABELS));
    const tutti_tensor y = tutti_add(network, x, parameter(network, 1));
    const tutti_tensor labels = tutti_input_typed(network, "labels", TUTTI_DTYPE_I32, sizes, 1);
    const tutti_tensor loss = tutti_cross_entropy(network, y, labels, NULL);
    tutti_trainer *trainer =
        tutti_compile(network, y, &(tutti_training) { .losses = &loss, .loss_count = 1, .batch = 1 });
    ck_assert_msg(trainer != NULL, "%s", tutti_message(NULL));
    float *logits = filled(LABELS, value);
    int32_t *truth = memory_new(LABELS, sizeof *truth);
    ck_assert(truth != NULL);
    const tutti_feed feeds[] = { { "x", TUTTI_DTYPE_F32, logits, 0 }, { "labels", TUTTI_DTYPE_I32, truth, 0 } };
    tutti_metrics metrics;
    ck_assert_msg(tutti_evaluate(trainer, feeds, 2, 1, &metrics) == TUTTI_OK, "%s", tutti_message(NULL));
    ck_assert_msg(fabs(metrics.accuracy - 1) < limit, "accuracy %.9g", metrics.accuracy);
    tutti_trainer_free(trainer);
    tutti_network_free(network);
    free(logits);
    free(truth);
}
END_TEST

static int chosen = -1; /* the number of the only case; -1: all */

static void add_tests(TCase *tcase)
{
    const int count = sizeof cases / sizeof *cases, first = chosen < 0 ? 0 : chosen;
    tcase_add_loop_test(tcase, test_gradient_or_output, first, chosen < 0 ? count : first + 1);
    if (chosen < 0) tcase_add_test(tcase, test_long_product);
    if (chosen < 0) tcase_add_test(tcase, test_labels);
}

int main(int argc, char **argv)
{
    if (argc > 1) chosen = atoi(argv[1]);
    return device_suite_run("sums", "0", &runtime, add_tests);
}
