/* What a program can read of a network: tensors, inputs, outputs, nodes and their attributes. Needs no device. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#undef fail /* base/status.h has its own */

#include "base/text.h"
#include "graph/network.h"
#include "runtime/device.h"
#include "tutti_inspect.h"
#include "tutti_sequences.h"

static tutti_network *network;
static tutti_tensor image; /* [6, 8, 10] */

static void begin(void)
{
    static struct tutti_runtime runtime;
    network = tutti_network_new(&runtime);
    ck_assert_ptr_nonnull(network);
    image = tutti_input(network, "image", TUTTI_SHAPE(6, 8, 10));
}

static void end(void)
{
    tutti_network_free(network);
}

static tutti_node_info node_at(int position)
{
    tutti_node_info info = { .size = sizeof info };
    ck_assert_msg(tutti_network_node(network, position, &info) == TUTTI_OK, "%s", tutti_message(NULL));
    return info;
}

/* Checks the operation and the attributes of the last node that a builder added. */
static void expect_last(const char *operation, const char *attributes)
{
    ck_assert_msg(tutti_network_status(network) == TUTTI_OK, "%s", tutti_message(NULL));
    const int last = tutti_network_nodes(network) - 1;
    char *text = tutti_network_attributes(network, last);
    ck_assert_str_eq(node_at(last).operation, operation);
    ck_assert_ptr_nonnull(text);
    ck_assert_str_eq(text, attributes);
    free(text);
}

static void expect_op(const char *operation, const char *attributes, const char *name, const char *told)
{
    (void)tutti_op(network, operation, &image, 1, attributes);
    expect_last(name, told);
}

START_TEST(attributes_are_those_of_tutti_op)
{
    expect_op("relu", NULL, "relu", "");
    expect_op("clip", "min=-0.5 max=6", "clip", "min=-0.5 max=6");
    expect_op("leaky_relu", "alpha=0.25", "leaky_relu", "alpha=0.25");
    expect_op("elu", "alpha=0.5", "elu", "alpha=0.5");
    expect_op("exp", NULL, "exp", "");
    expect_op("scale", "factor=3", "scale", "factor=3");
    expect_op("transpose", "perm=1,0,2", "transpose", "perm=1,0,2");
    expect_op("reshape", "shape=60,-1", "reshape", "shape=60,8");
    expect_op("expand", "shape=2,6,8,10", "expand", "shape=2,6,8,10 rows=0");
    expect_op("reduce_sum", "axes=-1,0", "reduce_sum", "axes=0,2");
    expect_op("reduce_sum", "axes=1 keepdims=0", "reduce_sum", "axes=1 shape=6,10");
    expect_op("slice", "axes=1 starts=2 ends=-1", "window", "shape=6,5,10 begins=0,2,0 value=0 within=0");
    expect_op(
        "slice", "axes=1 starts=2 ends=9223372036854775807", "window", "shape=6,6,10 begins=0,2,0 value=0 within=0");
    expect_op("slice", "axes=0 starts=-1 ends=-9223372036854775808 steps=-1", "window",
        "shape=6,8,10 begins=0,0,0 value=0 within=0 reversed=0");
    expect_op("slice", "axes=0 starts=-1 ends=-9 steps=-1", "window",
        "shape=6,8,10 begins=0,0,0 value=0 within=0 reversed=0");
    expect_op("topk", "k=3 axis=1 largest=0", "topk", "axis=1 largest=0 k=3");
    expect_op("trilu", "k=-2", "trilu", "upper=1 k=-2");
    expect_op("one_hot", "axis=0 depth=5 on=3", "one_hot", "axis=0 depth=5 off=0 on=3");
    expect_op("dropout", "ratio=0.25", "dropout", "ratio=0.25");
    const tutti_tensor grid = tutti_input(network, "grid", TUTTI_SHAPE(2, 3, 2));
    const tutti_tensor scattered[] = { image, tutti_input(network, "at", TUTTI_SHAPE(6, 8, 10)), image };
    (void)tutti_op(network, "grid_sample", (tutti_tensor[]) { image, grid }, 2, "mode=cubic padding_mode=border");
    expect_last("grid_sample", "mode=cubic padding_mode=border align_corners=0");
    (void)tutti_op(network, "scatter_elements", scattered, 3, "axis=1 reduction=max");
    expect_last("scatter", "kind=1 axis=1 reduction=max");
    (void)tutti_conv2d(network, image, 4, 3, &(tutti_conv2d_options) { .stride = 2, .padding_w = -1, .groups = 2 });
    expect_last("conv2d", "kernel=3,3 stride=2,2 padding=0,0 dilation=1,1 groups=2");
    (void)tutti_batch_norm(network, image, NULL);
    expect_last("batch_norm", "epsilon=9.99999975e-06 biased_variance=0");
    ck_assert_ptr_null(tutti_network_attributes(network, tutti_network_nodes(network)));
}
END_TEST

START_TEST(tensors_say_what_they_are)
{
    const float values[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 };
    const tutti_tensor ten = tutti_constant(network, "ten", TUTTI_SHAPE(10), values);
    const tutti_tensor y = tutti_batch_norm(network, image, &(tutti_batch_norm_options) { .name = "norm" });
    const tutti_tensor sum = tutti_add(network, y, ten);
    const tutti_node_info norm = node_at(0), add = node_at(1);
    ck_assert_str_eq(norm.layer, "norm");
    ck_assert_int_eq(norm.input_count, 5); /* those of a step are none */
    ck_assert(norm.inputs[0].id == image.id && norm.outputs[0].id == y.id);
    ck_assert(add.inputs[0].id == y.id && add.inputs[1].id == ten.id && add.outputs[0].id == sum.id);
    tutti_tensor_info info = { .size = sizeof info };
    ck_assert_int_eq(tutti_network_tensor(network, norm.inputs[3], &info), TUTTI_OK);
    ck_assert(info.kind == TUTTI_TENSOR_STATISTIC && !info.for_each_sample && info.shape.sizes[0] == 6);
    ck_assert_str_eq(info.name, "norm.running_mean");
    ck_assert_int_eq(tutti_network_tensor(network, norm.inputs[1], &info), TUTTI_OK);
    ck_assert_int_eq(info.kind, TUTTI_TENSOR_PARAMETER);
    ck_assert_int_eq(tutti_network_tensor(network, ten, &info), TUTTI_OK);
    ck_assert_int_eq(info.kind, TUTTI_TENSOR_CONSTANT);
    ck_assert_mem_eq(info.values, values, sizeof values);
    ck_assert_int_eq(tutti_network_tensor(network, sum, &info), TUTTI_OK);
    ck_assert(info.kind == TUTTI_TENSOR_LAYER && info.for_each_sample && info.shape.rank == 3 && !info.name);
    ck_assert_int_eq(tutti_network_tensor(network, (tutti_tensor) { 1000 }, &info), TUTTI_INVALID);
}
END_TEST

START_TEST(inputs_and_outputs_have_names)
{
    tutti_tensor found;
    const char *name;
    tutti_tensor_info info = { .size = sizeof info };
    const tutti_tensor ids = tutti_input_typed(network, "ids", TUTTI_DTYPE_U8, NULL, 0), y = tutti_relu(network, image);
    ck_assert_int_eq(tutti_network_input(network, 1, &found), TUTTI_OK);
    ck_assert_int_eq(found.id, ids.id);
    ck_assert_int_eq(tutti_network_tensor(network, found, &info), TUTTI_OK);
    ck_assert(info.kind == TUTTI_TENSOR_INPUT && info.dtype == TUTTI_DTYPE_U8 && info.shape.rank == 0);
    ck_assert_str_eq(info.name, "ids");
    ck_assert_int_eq(tutti_network_input(network, 2, &found), TUTTI_INVALID);
    ck_assert_int_eq(tutti_output(network, "y", y), TUTTI_OK);
    ck_assert_int_eq(tutti_output(network, "again", y), TUTTI_OK);
    ck_assert_int_eq(tutti_output(network, "y", image), TUTTI_INVALID);
    ck_assert_int_eq(tutti_output(network, "", image), TUTTI_INVALID);
    ck_assert_int_eq(tutti_output(network, "none", (tutti_tensor) { -1 }), TUTTI_INVALID);
    ck_assert_int_eq(tutti_network_output(network, 1, &name, &found), TUTTI_OK);
    ck_assert_str_eq(name, "again");
    ck_assert_int_eq(found.id, y.id);
    ck_assert_int_eq(tutti_network_output(network, 2, NULL, NULL), TUTTI_INVALID);
}
END_TEST

/* Every operation is found by its name, and has texts, inputs and attributes as the header says. */
START_TEST(operations_are_described)
{
    tutti_operation_info operation = { .size = sizeof operation };
    tutti_operation_input_info input = { .size = sizeof input };
    tutti_operation_attribute_info attribute = { .size = sizeof attribute };
    const int count = tutti_operations();
    ck_assert_int_ge(count, 100);
    for (int i = 0; i < count; i++) {
        ck_assert_int_eq(tutti_operation(i, &operation), TUTTI_OK);
        ck_assert_int_eq(tutti_operation_find(operation.name), i);
        ck_assert(*operation.text && *operation.group);
        ck_assert((operation.onnx_form != TUTTI_ONNX_NONE) == (operation.onnx != NULL));
        if (operation.onnx) ck_assert_int_eq(tutti_operation_find_onnx(operation.onnx), i);
        ck_assert(operation.min_inputs >= (operation.input_count > 0) && operation.min_inputs <= operation.input_count);
        ck_assert(operation.max_inputs >= operation.input_count);
        for (int k = 0; k < operation.input_count; k++) {
            ck_assert_int_eq(tutti_operation_input(i, k, &input), TUTTI_OK);
            ck_assert(*input.name && input.optional == (k >= operation.min_inputs));
            ck_assert(!input.repeated || (k == operation.input_count - 1 && operation.max_inputs > k + 1));
        }
        for (int k = 0; k < operation.attribute_count; k++) {
            ck_assert_int_eq(tutti_operation_attribute(i, k, &attribute), TUTTI_OK);
            ck_assert(*attribute.name && *attribute.text && *attribute.values);
            ck_assert(!attribute.required || !attribute.default_value);
            ck_assert((attribute.type == TUTTI_ATTRIBUTE_CHOICE) == (attribute.choices != NULL));
            ck_assert(!attribute.onnx || operation.onnx);
        }
        ck_assert_int_eq(tutti_operation_input(i, operation.input_count, &input), TUTTI_INVALID);
        ck_assert_int_eq(tutti_operation_attribute(i, operation.attribute_count, &attribute), TUTTI_INVALID);
    }
    ck_assert_int_eq(tutti_operation(count, &operation), TUTTI_INVALID);
    ck_assert_int_eq(tutti_operation(-1, &operation), TUTTI_INVALID);
    ck_assert_int_eq(tutti_operation_find("fly"), -1);
    ck_assert_int_eq(tutti_operation_find(NULL), -1);
    ck_assert_int_eq(tutti_operation_find_onnx("Fly"), -1);
    ck_assert_int_eq(tutti_operation_find_onnx(""), -1);
    ck_assert_int_eq(tutti_operation_find_onnx(NULL), -1);
}
END_TEST

/* The text of the node that an operation makes of the image alone; NULL: it needs more than that. Free it. */
static char *made_by(const char *name, const char *attributes)
{
    begin();
    (void)tutti_op(network, name, &image, 1, attributes);
    char *text = NULL;
    if (tutti_network_status(network) == TUTTI_OK)
        text = tutti_network_attributes(network, tutti_network_nodes(network) - 1);
    end();
    return text;
}

/* A default that is given makes the same as one that is left out. */
START_TEST(defaults_are_what_is_used)
{
    int compared = 0;
    tutti_operation_info operation = { .size = sizeof operation };
    tutti_operation_attribute_info attribute = { .size = sizeof attribute };
    for (int i = 0; tutti_operation(i, &operation) == TUTTI_OK; i++) {
        char *without = made_by(operation.name, NULL), word[128];
        for (int k = 0; without && k < operation.attribute_count; k++) {
            ck_assert_int_eq(tutti_operation_attribute(i, k, &attribute), TUTTI_OK);
            if (!attribute.default_value) continue;
            snprintf(word, sizeof word, "%s=%s", attribute.name, attribute.default_value);
            char *with = made_by(operation.name, word);
            ck_assert_msg(with, "%s %s: %s", operation.name, word, tutti_message(NULL));
            ck_assert_str_eq(with, without);
            free(with);
            compared++;
        }
        free(without);
    }
    ck_assert_int_ge(compared, 40);
}
END_TEST

/* Samples of one number have no axis -1. */
START_TEST(defaults_need_axes)
{
    static const char *const names[] = { "layer_norm", "rms_norm", "lp_norm", "argmax", "hardmax", "topk" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        begin();
        const tutti_tensor number = tutti_input_typed(network, "number", TUTTI_DTYPE_F32, NULL, 0);
        (void)tutti_op(network, names[i], &number, 1, !strcmp(names[i], "topk") ? "k=1" : NULL);
        ck_assert_msg(tutti_network_status(network) == TUTTI_INVALID, "%s", names[i]);
        ck_assert_msg(strstr(tutti_message(NULL), "axis must be an axis"), "%s: %s", names[i], tutti_message(NULL));
        end();
    }
}
END_TEST

/* All nodes of the network, and the names of its layers and parameters. Free it. */
static char *summary(void)
{
    struct text text = { 0 };
    ck_assert_msg(tutti_network_status(network) == TUTTI_OK, "%s", tutti_message(NULL));
    for (int i = 0; i < tutti_network_nodes(network); i++) {
        const tutti_node_info node = node_at(i);
        char *attributes = tutti_network_attributes(network, i);
        text_append(&text, "%s %s", node.operation, attributes);
        for (int k = 0; k < node.input_count; k++) text_append(&text, " %d", node.inputs[k].id);
        text_append(&text, "\n");
        free(attributes);
    }
    for (size_t i = 0; i < network->layer_count; i++) text_append(&text, "%s\n", network->layers[i].name);
    for (size_t i = 0; i < network->parameter_count; i++) text_append(&text, "%s\n", network->parameters[i].name);
    return text.data;
}

static tutti_tensor flat, rows, pixels, labels, letters, probabilities, weight;

static void begin_layers(void)
{
    begin();
    flat = tutti_input(network, "flat", TUTTI_SHAPE(6));
    rows = tutti_input(network, "rows", TUTTI_SHAPE(5, 8));
    pixels = tutti_input_typed(network, "pixels", TUTTI_DTYPE_U8, (int64_t[]) { 3, 4, 4 }, 3);
    labels = tutti_input_typed(network, "labels", TUTTI_DTYPE_I32, NULL, 0);
    letters = tutti_input_typed(network, "letters", TUTTI_DTYPE_I32, (int64_t[]) { 2 }, 1);
    probabilities = tutti_input(network, "probabilities", TUTTI_SHAPE(6));
    weight = tutti_parameter(network, "weight", TUTTI_SHAPE(6), NULL);
}

/* Checks that tutti_op() adds what the function adds. */
#define EXPECT_SAME(function, operation, attributes, ...)                                        \
    do {                                                                                         \
        begin_layers();                                                                          \
        (void)function;                                                                          \
        char *wanted = summary();                                                                \
        end();                                                                                   \
        begin_layers();                                                                          \
        const tutti_tensor list[] = { __VA_ARGS__ };                                             \
        (void)tutti_op(network, operation, list, (int)(sizeof list / sizeof *list), attributes); \
        char *got = summary();                                                                   \
        end();                                                                                   \
        ck_assert_str_eq(got, wanted);                                                           \
        free(got);                                                                               \
        free(wanted);                                                                            \
    } while (0)

START_TEST(layers_are_those_of_functions)
{
    EXPECT_SAME(tutti_flatten(network, image), "flatten", NULL, image);
    EXPECT_SAME(tutti_relu6(network, image), "relu6", "", image);
    EXPECT_SAME(tutti_global_average_pool(network, image), "global_average_pool", NULL, image);
    EXPECT_SAME(tutti_global_max_pool(network, image), "global_max_pool", NULL, image);
    EXPECT_SAME(tutti_adaptive_average_pool(network, image, 3, 4), "adaptive_average_pool", "height=3 width=4", image);
    EXPECT_SAME(tutti_batch_norm(network, image, &(tutti_batch_norm_options) { .name = "bn", .epsilon = 0.5f }),
        "batch_norm", "name=bn epsilon=0.5", image);
    EXPECT_SAME(tutti_batch_norm(network, image, &(tutti_batch_norm_options) { .weight = &weight, .momentum = 0.25f }),
        "batch_norm", "momentum=0.25", image, weight);
    EXPECT_SAME(tutti_normalise(network, pixels,
                    &(tutti_normalise_options) {
                        .scale = 0.5f, .mean = (float[]) { 1, 2, 3 }, .std = (float[]) { 4, 5, 6 }, .channels = 3 }),
        "normalise", "scale=0.5 mean=1,2,3 std=4,5,6", pixels);
    EXPECT_SAME(tutti_einsum(network, "ij,kj->ik", (tutti_tensor[]) { rows, rows }, 2), "einsum", "equation=ij,kj->ik",
        rows, rows);
    EXPECT_SAME(tutti_attention(network, rows, rows, rows,
                    &(tutti_attention_options) { .heads = 4, .causal = true, .scale = 0.5f }),
        "attention", "heads=4 causal=1 scale=0.5", rows, rows, rows);
    EXPECT_SAME(
        tutti_lstm(network, rows, 3, &(tutti_recurrent_options) { .bidirectional = true, .input_forget = true }),
        "lstm", "hidden=3 bidirectional=1 input_forget=1", rows);
    EXPECT_SAME(tutti_gru(network, rows, 3, &(tutti_recurrent_options) { .reset_before = true, .clip = 2 }), "gru",
        "hidden=3 reset_before=1 clip=2", rows);
    EXPECT_SAME(
        tutti_rnn(network, rows, 3, &(tutti_recurrent_options) { .reverse = true }), "rnn", "hidden=3 reverse=1", rows);
    EXPECT_SAME(tutti_log_softmax(network, rows, 0), "log_softmax", "axis=0", rows);
    EXPECT_SAME(tutti_rfft(network, rows, 0, 6), "rfft", "axis=0 length=6", rows);
    EXPECT_SAME(tutti_irfft(network, tutti_rfft(network, rows, -1, 0), -1, 7), "irfft", "length=7",
        tutti_rfft(network, rows, -1, 0));
    EXPECT_SAME(tutti_rfft2(network, image), "rfft2", NULL, image);
    EXPECT_SAME(
        tutti_irfft2(network, tutti_rfft2(network, image), 9), "irfft2", "width=9", tutti_rfft2(network, image));
    EXPECT_SAME(tutti_rfft2_modes(network, image, 4, 3), "rfft2_modes", "rows=4 columns=3", image);
    EXPECT_SAME(tutti_irfft2_modes(network, tutti_rfft2_modes(network, image, 4, 3), 8, 10), "irfft2_modes",
        "height=8 width=10", tutti_rfft2_modes(network, image, 4, 3));
    EXPECT_SAME(tutti_cross_entropy(network, flat, labels,
                    &(tutti_loss_options) { .label_smoothing = 0.25f, .has_ignored = true, .ignored = 4 }),
        "cross_entropy", "label_smoothing=0.25 ignored=4", flat, labels);
    EXPECT_SAME(tutti_nll(network, flat, labels, NULL), "nll", NULL, flat, labels);
    EXPECT_SAME(
        tutti_bce_with_logits(network, flat, probabilities, NULL), "bce_with_logits", NULL, flat, probabilities);
    EXPECT_SAME(tutti_mse(network, flat, probabilities, NULL), "mse", NULL, flat, probabilities);
    EXPECT_SAME(tutti_l1(network, flat, probabilities, NULL), "l1", NULL, flat, probabilities);
    EXPECT_SAME(tutti_mean(network, flat, NULL), "mean_loss", NULL, flat);
    EXPECT_SAME(tutti_ctc(network, rows, letters, &(tutti_ctc_options) { .blank = 1, .zero_infinity = true }), "ctc",
        "blank=1 zero_infinity=1", rows, letters);
    EXPECT_SAME(tutti_mean(network, flat, &(tutti_mean_options) { .weights = &probabilities }), "mean_loss", NULL, flat,
        probabilities);
    EXPECT_SAME(tutti_huber(network, flat, probabilities, &(tutti_loss_options) { .delta = 2 }), "huber", "delta=2",
        flat, probabilities);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("describe");
    TCase *tests = tcase_create("describe");
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_test(tests, attributes_are_those_of_tutti_op);
    tcase_add_test(tests, tensors_say_what_they_are);
    tcase_add_test(tests, inputs_and_outputs_have_names);
    suite_add_tcase(suite, tests);
    TCase *operations = tcase_create("operations");
    tcase_add_test(operations, operations_are_described);
    tcase_add_test(operations, defaults_are_what_is_used);
    tcase_add_test(operations, defaults_need_axes);
    tcase_add_test(operations, layers_are_those_of_functions);
    suite_add_tcase(suite, operations);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
