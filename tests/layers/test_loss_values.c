/* The losses at the edges: NaN and infinite logits, ignored and impossible labels, ties, one class, many samples, no
 * gradient wanted; dropout's mask and random numbers when a batch is divided. Every implementation, on every device and
 * class. */
#include "base/memory.h"
#include "layers/layers.h"
#include "layers/loss/loss.h"
#include "runtime/memory.h"
#include "tests/layers/ctc_values.h"
#include "tests/layers/device_suite.h"
#include "tests/layers/soft_values.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#undef fail

enum { NOT_A_NUMBER = 0x7fc00000 };

static void check(tutti_status status, const char *what)
{
    ck_assert_msg(status == TUTTI_OK, "%s: %s", what, tutti_message(NULL));
}

static cl_mem buffer_of(struct device *device, const void *data, size_t bytes)
{
    cl_mem buffer = NULL;
    check(buffer_new(device, bytes, &buffer), "buffer");
    if (data)
        check(buffer_write(device, buffer, 0, data, bytes), "write");
    else
        check(buffer_fill(device, buffer, 0, bytes, NOT_A_NUMBER), "fill");
    return buffer;
}

/* One operation on its own: data for each of its inputs, room for its outputs (NULL: not wanted). */
struct direct {
    const struct operation *operation;
    const void *attributes;
    int input_count, output_count;
    enum value_type types[4];
    tutti_shape shapes[4];
    bool batched[4];
    const void *data[4];
    float *outputs[2];
};

static size_t bytes_of(const struct value *value)
{
    return 4 * (size_t)value_elements(value);
}

static void run_one(
    struct device *device, const struct implementation *implementation, struct problem *problem, const struct direct *d)
{
    struct operands operands = { 0 };
    struct launch_list list;
    launch_list_init(&list, device);
    for (int i = 0; i < d->input_count; i++)
        operands.inputs[i] = buffer_of(device, d->data[i], bytes_of(problem->inputs[i]));
    for (int i = 0; i < d->output_count; i++)
        if (d->outputs[i]) operands.outputs[i] = buffer_of(device, NULL, bytes_of(problem->outputs[i]));
    const size_t workspace = implementation->workspace ? implementation->workspace(problem) : 0;
    if (workspace) operands.workspace = buffer_of(device, NULL, workspace);
    implementation->emit(problem, &operands, &list);
    check(launch_list_realise(&list, NULL, NULL), implementation->name);
    check(launch_list_enqueue(&list, 0, list.count, NULL), implementation->name);
    for (int i = 0; i < d->output_count; i++)
        if (d->outputs[i])
            check(buffer_read(device, operands.outputs[i], 0, d->outputs[i], bytes_of(problem->outputs[i])), "read");
    launch_list_free(&list);
    for (int i = 0; i < d->input_count; i++) buffer_free(&operands.inputs[i]);
    for (int i = 0; i < d->output_count; i++) buffer_free(&operands.outputs[i]);
    buffer_free(&operands.workspace);
}

static tutti_runtime *runtime;

/* Calls `verify` after the operation ran, for every device and implementation. */
static void run(const struct direct *d, void (*verify)(const struct direct *d, const char *where))
{
    int done = 0;
    for (int n = 0; n < runtime->count; n++) {
        struct device *device = &runtime->devices[n];
        struct graph graph;
        graph_init(&graph);
        int inputs[4];
        for (int i = 0; i < d->input_count; i++)
            inputs[i] = graph_value(&graph, ROLE_INPUT, d->types[i], d->shapes[i], d->batched[i], NULL);
        ck_assert_int_ne(graph_append(&graph, d->operation, d->attributes, inputs, d->input_count, -1), NO_VALUE);
        struct problem problem = { .node = graph_last(&graph), .device = &device->can, .training = true };
        for (int i = 0; i < d->input_count; i++) problem.inputs[i] = graph_at(&graph, inputs[i]);
        for (int i = 0; i < d->output_count; i++)
            if (d->outputs[i]) problem.outputs[i] = graph_at(&graph, problem.node->outputs[i]);
        for (const struct implementation *const *i = d->operation->implementations; *i; i++) {
            if ((*i)->fits && (*i)->fits(&problem)) continue;
            char where[256];
            snprintf(where, sizeof where, "%s/%s on %s", d->operation->name, (*i)->name, device->can.name);
            run_one(device, *i, &problem, d);
            verify(d, where);
            done++;
        }
        graph_free(&graph);
    }
    ck_assert_int_gt(done, 0);
}

/* ---------------------------------------------------------------------------------------------- cross_entropy ---- */

static const struct step_constants constants = {
    .seed_low = 5, .seed_high = 6, .step_low = 7, .gradient_weight = 0.25f
};
static const tutti_shape constants_shape = { .rank = 1, .sizes = { sizeof constants / 4 } };

static struct direct cross_entropy(
    int64_t rows, int64_t classes, const float *logits, const int32_t *labels, float *metrics, float *gradient)
{
    return (struct direct) { .operation = &operation_cross_entropy,
        .input_count = 3,
        .output_count = 2,
        .types = { TYPE_F32, TYPE_I32, TYPE_F32 },
        .shapes = { TUTTI_SHAPE(rows, classes), TUTTI_SHAPE(rows), constants_shape },
        .batched = { true, true, false },
        .data = { logits, labels, &constants },
        .outputs = { metrics, gradient } };
}

static void loss_is_nan(const struct direct *d, const char *where)
{
    ck_assert_msg(isnan(d->outputs[0][0]), "%s: the loss is %g, not NaN", where, (double)d->outputs[0][0]);
    ck_assert_msg(d->outputs[0][1] == 0, "%s: %g are correct, not 0", where, (double)d->outputs[0][1]);
}

START_TEST(test_bad_logits)
{
    static const int64_t widths[] = { 1, 2, 19, 40, 1001 };
    const float bad[] = { NAN, INFINITY };
    float *logits = memory_new(1001, sizeof(float)), *gradient = memory_new(1001, sizeof(float)), metrics[2];
    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++)
        for (int b = 0; b < 2; b++)
            for (int64_t at = 0; at<widths[w]; at += widths[w]> 1 ? widths[w] - 1 : 1) {
                for (int64_t i = 0; i < widths[w]; i++) logits[i] = 0.5f;
                logits[at] = bad[b];
                const struct direct d = cross_entropy(1, widths[w], logits, (int32_t[]) { 0 }, metrics, gradient);
                run(&d, loss_is_nan);
            }
    free(logits);
    free(gradient);
}
END_TEST

/* In four rows with the labels 0, -1, -100 and 1, the two in the middle do not count. */
static void ignored(const struct direct *d, const char *where)
{
    const double loss = 2 * log(2);
    ck_assert_msg(fabs((double)d->outputs[0][0] - loss) < 1e-6, "%s: loss %g", where, (double)d->outputs[0][0]);
    ck_assert_msg(d->outputs[0][1] == 1, "%s: a tie goes to the first class: 1 is correct, not %g", where,
        (double)d->outputs[0][1]);
    const float expected[8] = { -0.125f, 0.125f, 0, 0, 0, 0, 0.125f, -0.125f };
    for (int i = 0; i < 8; i++)
        ck_assert_msg(fabsf(d->outputs[1][i] - expected[i]) < 1e-7f, "%s: gradient[%d] is %g, not %g", where, i,
            (double)d->outputs[1][i], (double)expected[i]);
}

START_TEST(test_ignored_labels)
{
    const float logits[8] = { 3, 3, 1, 2, NAN, NAN, -7, -7 };
    const int32_t labels[4] = { 0, -1, -100, 1 };
    float metrics[2], gradient[8];
    const struct direct d = cross_entropy(4, 2, logits, labels, metrics, gradient);
    run(&d, ignored);
}
END_TEST

START_TEST(test_label_past_the_classes)
{
    const float logits[3] = { 1, 2, 3 };
    float metrics[2], gradient[3];
    const struct direct d = cross_entropy(1, 3, logits, (int32_t[]) { 3 }, metrics, gradient);
    run(&d, loss_is_nan);
}
END_TEST

static void confident(const struct direct *d, const char *where)
{
    ck_assert_msg(d->outputs[0][0] == 400, "%s: loss %g, not 400", where, (double)d->outputs[0][0]);
    ck_assert_msg(d->outputs[0][1] == 1, "%s: %g correct, not 1", where, (double)d->outputs[0][1]);
}

/* exp() of none of these fits a float; without a gradient. A logit of minus infinity is a class that cannot be. */
START_TEST(test_far_logits)
{
    const float logits[6] = { 300, -100, 0, 500, -INFINITY, 90 };
    const int32_t labels[2] = { 1, 0 };
    float metrics[2];
    const struct direct d = cross_entropy(2, 3, logits, labels, metrics, NULL);
    run(&d, confident);
}
END_TEST

/* ----------------------------------------------------------------------------------------- soft_cross_entropy ---- */

enum { SOFT_ELEMENTS = 24 };
static struct {
    double loss; /* the sum over the samples */
    float gradient[SOFT_ELEMENTS];
} soft_wanted;

static void as_pytorch(const struct direct *d, const char *where)
{
    const double loss = (double)d->outputs[0][0];
    ck_assert_msg(fabs(loss - soft_wanted.loss) < 2e-6 * soft_wanted.loss, "%s: loss %.9g, not %.9g", where, loss,
        soft_wanted.loss);
    for (int i = 0; i < SOFT_ELEMENTS; i++)
        ck_assert_msg(fabsf(d->outputs[1][i] - soft_wanted.gradient[i]) < 2e-7f, "%s: gradient[%d] is %.9g, not %.9g",
            where, i, (double)d->outputs[1][i], (double)soft_wanted.gradient[i]);
}

/* Four ways: label smoothing or not, class weights or not. */
static void soft_way(int way, bool positions)
{
    float logits[SOFT_ELEMENTS], targets[SOFT_ELEMENTS], metrics[2], gradient[SOFT_ELEMENTS];
    const float weights[] = { 0.5f, 1.5f, 2.5f, 3.5f };
    const tutti_shape shape = positions ? TUTTI_SHAPE(2, 4, 3) : TUTTI_SHAPE(6, 4);
    const struct loss_attributes attributes = { .axis = 1, .smoothing = way / 2 ? 0.2f : 0, .mean_weight = 2 };
    const double samples = (double)shape.sizes[0];
    for (int i = 0; i < SOFT_ELEMENTS; i++) {
        logits[i] = (float)(2 * sin(0.7 * i));
        targets[i] = (float)(i * 5 % 7) / 8;
        const float expected = (positions ? soft_gradients_3 : soft_gradients_2)[way * SOFT_ELEMENTS + i];
        soft_wanted.gradient[i] = expected * (float)samples * constants.gradient_weight;
    }
    soft_wanted.loss = (double)(positions ? soft_losses_3 : soft_losses_2)[way] * samples;
    const struct direct d = { .operation = &operation_soft_cross_entropy,
        .attributes = &attributes,
        .input_count = way % 2 ? 4 : 3,
        .output_count = 2,
        .types = { TYPE_F32, TYPE_F32, TYPE_F32, TYPE_F32 },
        .shapes = { shape, shape, constants_shape, TUTTI_SHAPE(4) },
        .batched = { true, true, false, false },
        .data = { logits, targets, &constants, weights },
        .outputs = { metrics, gradient } };
    run(&d, as_pytorch);
}

START_TEST(test_soft_targets)
{
    for (int way = 0; way < 4; way++) {
        soft_way(way, false);
        soft_way(way, true);
    }
}
END_TEST

/* ------------------------------------------------------------------------------------------------------- ctc ---- */

/* Four samples of ctc_values.py, of which the last has no path. */
enum { CTC_SAMPLES = 4, CTC_FRAMES = 9, CTC_CLASSES = 5, CTC_LABELS = 4, CTC_ROW = CTC_FRAMES * CTC_CLASSES };
enum { CTC_ELEMENTS = CTC_SAMPLES * CTC_ROW, CTC_KNOWN = 3 };
static const int32_t ctc_lists[CTC_SAMPLES * CTC_LABELS] = { 0, 0, 3, 1, -1, 2, 2, 2, 2, 1, -7, 3, 3, 3, 3, -1 };
static const float ctc_lengths[CTC_SAMPLES] = { 9, 7, 3, 4 };
static bool ctc_zero;

static void ctc_as_pytorch(const struct direct *d, const char *where)
{
    const double loss = (double)d->outputs[0][0];
    double wanted = 0;
    for (int n = 0; n < CTC_KNOWN; n++) wanted += (double)ctc_losses[n];
    if (ctc_zero)
        ck_assert_msg(fabs(loss - wanted) < 1e-6 * wanted, "%s: loss %.9g, not %.9g", where, loss, wanted);
    else
        ck_assert_msg(isinf(loss) && loss > 0, "%s: loss %g, not infinity", where, loss);
    ck_assert_msg(d->outputs[0][1] == 0, "%s: %g are correct", where, (double)d->outputs[0][1]);
    for (int i = 0; d->outputs[1] && i < CTC_ELEMENTS; i++) {
        const bool known = i < CTC_KNOWN * CTC_ROW;
        const bool after = i % CTC_ROW >= (int)ctc_lengths[i / CTC_ROW] * CTC_CLASSES;
        const double expected = known ? (double)ctc_gradients[i] * (double)constants.gradient_weight
            : ctc_zero || after       ? 0
                                      : NAN;
        const double found = (double)d->outputs[1][i];
        ck_assert_msg(isnan(expected) ? isnan(found) : fabs(found - expected) < 2e-7 && (!after || found == 0),
            "%s: gradient[%d] is %.9g, not %.9g", where, i, found, expected);
    }
}

static struct direct ctc(const struct loss_attributes *attributes, const float *logits, const int32_t *lists,
    float *metrics, float *gradient)
{
    return (struct direct) { .operation = &operation_ctc,
        .attributes = attributes,
        .input_count = 4,
        .output_count = 2,
        .types = { TYPE_F32, TYPE_I32, TYPE_F32, TYPE_F32 },
        .shapes = { TUTTI_SHAPE(CTC_SAMPLES, CTC_FRAMES, CTC_CLASSES), TUTTI_SHAPE(CTC_SAMPLES, CTC_LABELS),
            constants_shape, TUTTI_SHAPE(CTC_SAMPLES) },
        .batched = { true, true, false, true },
        .data = { logits, lists, &constants, ctc_lengths },
        .outputs = { metrics, gradient } };
}

/* With zero_infinity, without, and without a gradient. */
START_TEST(test_ctc)
{
    float logits[CTC_ELEMENTS], metrics[2], gradient[CTC_ELEMENTS];
    for (int i = 0; i < CTC_ELEMENTS; i++) logits[i] = (float)(2 * sin(0.7 * i));
    for (int way = 0; way < 3; way++) {
        const struct loss_attributes attributes = { .blank = 4, .zero_infinity = way != 1 };
        ctc_zero = attributes.zero_infinity;
        const struct direct d = ctc(&attributes, logits, ctc_lists, metrics, way == 2 ? NULL : gradient);
        run(&d, ctc_as_pytorch);
    }
}
END_TEST

/* A label that is the blank, or past the classes; a logit that is NaN. */
START_TEST(test_ctc_wrong)
{
    float logits[CTC_ELEMENTS] = { 0 }, metrics[2], gradient[CTC_ELEMENTS];
    const struct loss_attributes attributes = { .blank = 4, .zero_infinity = true };
    for (int way = 0; way < 3; way++) {
        int32_t lists[CTC_SAMPLES * CTC_LABELS];
        memcpy(lists, ctc_lists, sizeof lists);
        lists[1] = way == 0 ? 4 : way == 1 ? 5 : 0;
        logits[7] = way == 2 ? NAN : 0;
        const struct direct d = ctc(&attributes, logits, lists, metrics, gradient);
        run(&d, loss_is_nan);
    }
}
END_TEST

static double expected_sum;

static void sum_is_accurate(const struct direct *d, const char *where)
{
    const double error = fabs((double)d->outputs[0][0] - expected_sum) / expected_sum;
    ck_assert_msg(error < 4e-7, "%s: loss %.9g, not %.9g", where, (double)d->outputs[0][0], expected_sum);
}

/* Squares of 100 thousand samples of very different sizes. */
START_TEST(test_many_samples)
{
    const int64_t rows = 100000;
    float *x = memory_new((size_t)rows, sizeof *x), *targets = memory_new((size_t)rows, sizeof *targets), metrics[2];
    expected_sum = 0;
    for (int64_t i = 0; i < rows; i++) {
        x[i] = i == 0 ? 4096 : (float)(i % 1000) / 1024;
        expected_sum += (double)x[i] * (double)x[i];
    }
    const struct direct d = { .operation = &operation_mean_squared_error,
        .input_count = 3,
        .output_count = 2,
        .shapes = { TUTTI_SHAPE(rows, 1), TUTTI_SHAPE(rows, 1), constants_shape },
        .batched = { true, true, false },
        .data = { x, targets, &constants },
        .outputs = { metrics, NULL } };
    run(&d, sum_is_accurate);
    free(x);
    free(targets);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------- dropout ---- */

enum { SAMPLES = 9, WIDTH = 331 };
static float whole[SAMPLES * WIDTH];
static int64_t first;

static void same_mask(const struct direct *d, const char *where)
{
    const int64_t count = d->shapes[0].sizes[0] * WIDTH;
    for (int64_t i = 0; i < count; i++)
        ck_assert_msg(d->outputs[0][i] == whole[first * WIDTH + i], "%s: element %d from sample %d on is %g, not %g",
            where, (int)i, (int)first, (double)d->outputs[0][i], (double)whole[first * WIDTH + i]);
}

static void keep_whole(const struct direct *d, const char *where)
{
    int kept = 0;
    for (int i = 0; i < SAMPLES * WIDTH; i++) {
        kept += d->outputs[0][i] != 0;
        ck_assert_msg(
            d->outputs[0][i] == 0 || d->outputs[0][i] == 4.0f / 3.0f, "%s: %g", where, (double)d->outputs[0][i]);
    }
    const double expected = 0.75 * SAMPLES * WIDTH, deviation = sqrt(expected * 0.25);
    ck_assert_msg(fabs(kept - expected) < 4 * deviation, "%s: kept %d, not about %g", where, kept, expected);
    memcpy(whole, d->outputs[0], sizeof whole);
}

START_TEST(test_dropout_divided)
{
    static float ones[SAMPLES * WIDTH], out[SAMPLES * WIDTH];
    for (int i = 0; i < SAMPLES * WIDTH; i++) ones[i] = 1;
    struct step_constants here = constants;
    struct direct d = { .operation = &operation_dropout,
        .attributes = &(const struct dropout_attributes) { .probability = 0.25f, .stream = 3 },
        .input_count = 2,
        .output_count = 1,
        .shapes = { TUTTI_SHAPE(SAMPLES, WIDTH), constants_shape },
        .batched = { true, false },
        .data = { ones, &here },
        .outputs = { out } };
    run(&d, keep_whole);
    for (first = 0; first < SAMPLES; first += 2) {
        here.first_sample = (uint32_t)first;
        d.shapes[0].sizes[0] = SAMPLES - first > 4 ? 4 : SAMPLES - first;
        run(&d, same_mask);
    }
    d.shapes[0].sizes[0] = SAMPLES;
    d.batched[0] = false; /* a mask that all samples share is that of the first ones, on each device */
    first = 0;
    run(&d, same_mask);
}
END_TEST

/* --------------------------------------------------------------------------------------------- random numbers ---- */

static double moment(const float *numbers, int power)
{
    double sum = 0;
    for (int i = 0; i < SAMPLES * WIDTH; i++) sum += pow((double)numbers[i], power);
    return sum / (SAMPLES * WIDTH);
}

/* Mean and variance within five deviations of their estimates, neighbours and samples do not follow each other. */
static void check_distribution(const float *x, bool normal, const char *where)
{
    const double count = SAMPLES * WIDTH, mean = normal ? 0 : 0.5, variance = normal ? 1 : 1.0 / 12;
    const double of_variance = sqrt((normal ? 2 : 1.0 / 180) / count);
    ck_assert_msg(fabs(moment(x, 1) - mean) < 5 * sqrt(variance / count), "%s: mean %g", where, moment(x, 1));
    const double found = moment(x, 2) - pow(moment(x, 1), 2);
    ck_assert_msg(fabs(found - variance) < 5 * of_variance, "%s: variance %g", where, found);
    for (int lag = 1; lag <= WIDTH; lag = lag == 4 ? WIDTH : lag + 1) {
        double sum = 0;
        for (int i = lag; i < SAMPLES * WIDTH; i++) sum += ((double)x[i] - mean) * ((double)x[i - lag] - mean);
        ck_assert_msg(fabs(sum) < 5 * variance * sqrt(count), "%s: correlation %g at %d", where, sum / count, lag);
    }
}

static void keep_uniform(const struct direct *d, const char *where)
{
    memcpy(whole, d->outputs[0], sizeof whole);
    check_distribution(whole, false, where);
    for (int i = 0; i < SAMPLES * WIDTH; i++)
        ck_assert_msg(whole[i] >= 0 && whole[i] < 1, "%s: %g", where, (double)whole[i]);
}

static void keep_normal(const struct direct *d, const char *where)
{
    memcpy(whole, d->outputs[0], sizeof whole);
    check_distribution(whole, true, where);
}

static void differs(const struct direct *d, const char *where)
{
    double sum = 0;
    for (int i = 0; i < SAMPLES * WIDTH; i++) sum += ((double)d->outputs[0][i] - 0.5) * ((double)whole[i] - 0.5);
    ck_assert_msg(fabs(sum) < 5.0 / 12 * sqrt(SAMPLES * WIDTH), "%s: correlation with another step or stream", where);
}

/* Uniform, normal; then the same shared by all samples, wherever these are in the batch. */
START_TEST(test_random_divided)
{
    static float like[SAMPLES * WIDTH], out[SAMPLES * WIDTH];
    struct step_constants here = constants;
    const bool normal = _i & 1, shared = _i & 2;
    struct random_attributes attributes = { .scale = 1, .stream = 3 };
    struct direct d = { .operation = normal ? &operation_random_normal : &operation_random_uniform,
        .attributes = &attributes,
        .input_count = 2,
        .output_count = 1,
        .shapes = { TUTTI_SHAPE(SAMPLES, WIDTH), constants_shape },
        .batched = { !shared, false },
        .data = { like, &here },
        .outputs = { out } };
    run(&d, normal ? keep_normal : keep_uniform);
    for (first = 0; first < SAMPLES && !shared; first += 2) {
        here.first_sample = (uint32_t)first;
        d.shapes[0].sizes[0] = SAMPLES - first > 4 ? 4 : SAMPLES - first;
        run(&d, same_mask);
    }
    d.shapes[0].sizes[0] = SAMPLES;
    here.first_sample = shared ? 5 : 0;
    first = 0;
    run(&d, same_mask);
    if (normal) return;
    here.step_low++;
    run(&d, differs);
    here.step_low--;
    attributes.stream++;
    run(&d, differs);
}
END_TEST

static void add_tests(TCase *cases)
{
    tcase_add_test(cases, test_bad_logits);
    tcase_add_test(cases, test_ignored_labels);
    tcase_add_test(cases, test_label_past_the_classes);
    tcase_add_test(cases, test_far_logits);
    tcase_add_test(cases, test_soft_targets);
    tcase_add_test(cases, test_ctc);
    tcase_add_test(cases, test_ctc_wrong);
    tcase_add_test(cases, test_many_samples);
    tcase_add_test(cases, test_dropout_divided);
    tcase_add_loop_test(cases, test_random_divided, 0, 4);
}

int main(void)
{
    return device_suite_run("loss values", "all", &runtime, add_tests);
}
