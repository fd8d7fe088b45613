/* The meaning of the axes of values, and which values get layouts of images. */
#include "tests/plan/made.h"

#include <string.h>

#include "layers/layers.h"
#include "tutti_sequences.h"

/* "NCSS": the batch, channels, space twice; T: a sequence; -: none of these. */
static void check_axes(const tutti_network *network, tutti_tensor x, const char *expected)
{
    static const char letters[] = {
        [AXIS_NONE] = '-', [AXIS_BATCH] = 'N', [AXIS_CHANNEL] = 'C', [AXIS_SPACE] = 'S', [AXIS_SEQUENCE] = 'T'
    };
    char axes[TUTTI_MAX_RANK + 1] = "";
    const struct value *value = graph_at(&network->graph, x.id);
    ck_assert_msg(value != NULL, "%s", tutti_message(NULL));
    for (int i = 0; i < value->shape.rank; i++) axes[i] = letters[value_axis(value, i)];
    ck_assert_str_eq(axes, expected);
}

static tutti_tensor one(tutti_network *net, const char *operation, tutti_tensor x, const char *attributes)
{
    return tutti_op(net, operation, &x, 1, attributes);
}

static tutti_tensor two(
    tutti_network *net, const char *operation, tutti_tensor a, tutti_tensor b, const char *attributes)
{
    return tutti_op(net, operation, (tutti_tensor[]) { a, b }, 2, attributes);
}

START_TEST(operations_on_images_give_channels_and_space)
{
    make_device(DEVICE_CPU, (size_t)1 << 30);
    tutti_network *net = tutti_network_new(&runtime);
    const tutti_tensor x = tutti_input(net, "x", TUTTI_SHAPE(3, 8, 8));
    const tutti_tensor pixels = tutti_input(net, "pixels", TUTTI_SHAPE(192));
    const tutti_tensor rows = tutti_reshape(net, pixels, TUTTI_SHAPE(3, 8, 8));
    check_axes(net, x, "NCSS");
    check_axes(net, rows, "N---");
    check_axes(net, tutti_conv2d(net, rows, 4, 3, NULL), "NCSS");
    check_axes(net, tutti_max_pool(net, rows, 2, NULL), "NCSS");
    check_axes(net, tutti_average_pool(net, rows, 2, NULL), "NCSS");
    check_axes(net, tutti_adaptive_average_pool(net, rows, 3, 3), "NCSS");
    check_axes(net, tutti_batch_norm(net, rows, NULL), "NCSS");
    check_axes(net, tutti_batch_norm(net, pixels, NULL), "NC");
    check_axes(net, tutti_flatten(net, tutti_global_average_pool(net, x)), "NC");
    tutti_network_free(net);
}
END_TEST

START_TEST(operations_on_elements_pass_axes_on)
{
    make_device(DEVICE_CPU, (size_t)1 << 30);
    tutti_network *net = tutti_network_new(&runtime);
    const tutti_tensor x = tutti_conv2d(net, tutti_input(net, "x", TUTTI_SHAPE(3, 8, 8)), 4, 1, NULL);
    const tutti_tensor rows = tutti_reshape(net, tutti_input(net, "rows", TUTTI_SHAPE(256)), TUTTI_SHAPE(4, 8, 8));
    const float factors[4] = { 1, 2, 3, 4 };
    const tutti_tensor factor = tutti_constant(net, "factor", TUTTI_SHAPE(4, 1, 1), factors);
    check_axes(net, tutti_relu(net, x), "NCSS");
    check_axes(net, tutti_dropout(net, x, 0.5f), "NCSS");
    check_axes(net, tutti_softmax(net, x), "NCSS");
    check_axes(net, one(net, "exp", rows, NULL), "N---");
    check_axes(net, tutti_add(net, rows, x), "NCSS"); /* what one input does not say, the other one does */
    check_axes(net, tutti_mul(net, x, factor), "NCSS");
    check_axes(net, tutti_concat(net, (tutti_tensor[]) { rows, x }, 2, 0), "NCSS");
    check_axes(net, one(net, "slice", x, "axes=1 starts=2 ends=4"), "NCSS");
    check_axes(net, one(net, "pad", x, "before=0,1,1"), "NCSS");
    tutti_network_free(net);
}
END_TEST

START_TEST(operations_that_move_axes_move_what_they_are_of)
{
    make_device(DEVICE_CPU, (size_t)1 << 30);
    tutti_network *net = tutti_network_new(&runtime);
    const tutti_tensor x = tutti_input(net, "x", TUTTI_SHAPE(4, 8, 6));
    check_axes(net, one(net, "transpose", x, "perm=1,2,0"), "NSSC");
    check_axes(net, one(net, "transpose", one(net, "transpose", x, "perm=1,2,0"), "perm=2,0,1"), "NCSS");
    check_axes(net, one(net, "reduce_mean", x, "axes=1,2"), "NCSS");
    check_axes(net, one(net, "reduce_mean", x, "axes=1,2 keepdims=0"), "NC");
    check_axes(net, one(net, "expand", one(net, "reduce_mean", x, "axes=1"), "shape=4,8,6"), "NCSS");
    check_axes(net, tutti_flatten(net, x), "N-");
    check_axes(net, tutti_reshape(net, x, TUTTI_SHAPE(4, 48)), "NC-"); /* two axes are joined */
    check_axes(net, tutti_reshape(net, x, TUTTI_SHAPE(2, 2, 8, 6)), "N--SS");
    check_axes(net, tutti_dense(net, x, 5, NULL), "N-SC");
    tutti_network_free(net);
}
END_TEST

/* Self-attention over [length, width], `heads` of them, without its scale. */
static tutti_tensor attention(tutti_network *net, tutti_tensor x, int64_t length, int64_t width, int64_t heads)
{
    const tutti_tensor apart = tutti_reshape(net, x, TUTTI_SHAPE(length, heads, width / heads));
    const tutti_tensor head = one(net, "transpose", apart, "perm=1,0,2");
    /* Without the function, plans would combine these into one node, without scores. */
    const tutti_tensor products = tutti_tanh(net, tutti_matmul(net, NULL, head, head, false, true));
    const tutti_tensor scores = tutti_softmax(net, products);
    const tutti_tensor joined =
        one(net, "transpose", tutti_matmul(net, NULL, scores, head, false, false), "perm=1,0,2");
    return tutti_reshape(net, joined, TUTTI_SHAPE(length, width));
}

START_TEST(sequences_stay_sequences)
{
    make_device(DEVICE_CPU, (size_t)1 << 30);
    tutti_network *net = tutti_network_new(&runtime);
    const tutti_tensor ids = tutti_input_typed(net, "ids", TUTTI_DTYPE_I32, (int64_t[]) { 7 }, 1);
    tutti_tensor x = tutti_embedding(net, NULL, ids, 50, 8);
    check_axes(net, x, "NTC");
    x = tutti_layer_norm(net, NULL, tutti_dense(net, x, 8, NULL), 0);
    check_axes(net, x, "NTC");
    const tutti_tensor head = one(net, "transpose", tutti_reshape(net, x, TUTTI_SHAPE(7, 2, 4)), "perm=1,0,2");
    check_axes(net, head, "N-T-");
    const tutti_tensor scores = tutti_softmax(net, two(net, "matmul", head, head, "transpose_b=1"));
    check_axes(net, scores, "N-TT");
    check_axes(net, tutti_matmul(net, NULL, scores, head, false, false), "N-T-");
    check_axes(net, attention(net, x, 7, 8, 2), "NT-");
    ck_assert(!value_has_layouts(graph_at(&net->graph, scores.id)));
    tutti_batch_norm(net, x, NULL);
    ck_assert_int_eq(tutti_network_status(net), TUTTI_SHAPE);
    ck_assert_ptr_nonnull(strstr(tutti_message(NULL), "must be [C, H, W] or [features], but it has 2 dimensions"));
    tutti_network_free(net);
}
END_TEST

START_TEST(lengths_that_vary_are_of_sequences)
{
    make_device(DEVICE_CPU, (size_t)1 << 30);
    tutti_network *net = tutti_network_new(&runtime);
    const int64_t t = TUTTI_SEQUENCE;
    const tutti_tensor mask = tutti_parameter(net, "mask", TUTTI_SHAPE(7, 7), NULL);
    const tutti_tensor x = tutti_input(net, "x", TUTTI_SHAPE(t, 8));
    check_axes(net, x, "NT-");
    check_axes(net, tutti_input(net, "rows", TUTTI_SHAPE(3, t, 8)), "N-T-"); /* no image */
    check_axes(net, tutti_reshape(net, x, TUTTI_SHAPE(2, t, 4)), "N-T-");
    check_axes(net, tutti_reshape(net, x, TUTTI_SHAPE(8, -1)), "N-T");
    check_axes(net, one(net, "prefix", mask, NULL), "TT");
    check_axes(net, one(net, "prefix", mask, "axes=0"), "T-");
    tutti_network_free(net);
}
END_TEST

/* ----------------------------------------------------------------------------------------------- layouts ---- */

/* Attention over the pixels of an image, added to it. */
static tutti_tensor attentive(tutti_network *net)
{
    tutti_tensor x = tutti_input(net, "x", TUTTI_SHAPE(3, 4, 4));
    x = tutti_relu(net, tutti_conv2d(net, x, 32, 3, &(tutti_conv2d_options) { .padding = 1 }));
    tutti_tensor pixels = one(net, "transpose", tutti_reshape(net, x, TUTTI_SHAPE(32, 16)), "perm=1,0");
    pixels = attention(net, pixels, 16, 32, 2);
    const tutti_tensor image = tutti_reshape(net, one(net, "transpose", pixels, "perm=1,0"), TUTTI_SHAPE(32, 4, 4));
    x = tutti_relu(net, tutti_add(net, image, x));
    x = tutti_conv2d(net, x, 32, 3, &(tutti_conv2d_options) { .padding = 1 });
    return tutti_dense(net, tutti_flatten(net, x), 10, NULL);
}

/* Plans are validated after each pass: a value with a layout has the axes for it. */
static void check_layouts(tutti_precision precision, enum value_layout layout)
{
    struct made made;
    int images = 0, others = 0;
    bf16 = precision == TUTTI_BF16;
    make(&made, PLAN_TRAIN, attentive);
    const struct graph *graph = &made.plan->graph;
    for (size_t v = 0; v < graph->value_count; v++) {
        const struct value *value = &graph->values[v];
        const int64_t *sizes = value->shape.sizes;
        const bool scores = value->shape.rank == 4 && sizes[1] == 2 && sizes[2] == 16;
        images += value->layout == layout;
        others += scores;
        if (scores) ck_assert_int_eq(value->layout, LAYOUT_PLAIN);
        ck_assert(value->layout == LAYOUT_PLAIN || value->layout == layout);
    }
    for (size_t n = 0; n < graph->node_count; n++) {
        const struct node *node = &graph->nodes[n];
        if (node->operation != &operation_conv2d || node->inputs[0] == made.plan->feeds[0]) continue;
        if (layout != LAYOUT_PLAIN) ck_assert_int_eq(graph_at(graph, node->outputs[0])->layout, layout);
    }
    ck_assert_int_gt(images, 4);
    ck_assert_int_gt(others, 4); /* and their gradients */
    drop(&made);
}

START_TEST(what_is_no_image_stays_plain)
{
    make_device(DEVICE_CPU, (size_t)1 << 30);
    check_layouts(TUTTI_FP32, LAYOUT_BLOCKED);
    make_device(DEVICE_GPU, (size_t)1 << 30);
    check_layouts(TUTTI_FP32, LAYOUT_PLAIN);
}
END_TEST

/* [H, W, C] next to a convolution of it: the names of its axes are those of an image, but for their order. */
static tutti_tensor moved(tutti_network *net)
{
    const tutti_tensor x = one(net, "transpose", tutti_input(net, "x", TUTTI_SHAPE(4, 4, 32)), "perm=2,0,1");
    tutti_tensor y = tutti_conv2d(net, x, 32, 1, NULL);
    y = tutti_conv2d(net, tutti_add(net, tutti_relu(net, x), y), 32, 1, NULL);
    y = tutti_concat(net, (tutti_tensor[]) { x, tutti_mul(net, y, x) }, 2, 0);
    return tutti_dense(net, tutti_flatten(net, tutti_batch_norm(net, y, NULL)), 10, NULL);
}

/* A dense layer over the last axis of an image, added to it: gradients with and without layouts are of one value. */
static tutti_tensor mixed(tutti_network *net)
{
    tutti_tensor x = tutti_input(net, "x", TUTTI_SHAPE(32, 4, 4));
    x = tutti_conv2d(net, x, 32, 1, NULL);
    x = tutti_add(net, tutti_relu(net, tutti_dense(net, x, 4, NULL)), x);
    x = tutti_max_pool(net, tutti_add(net, tutti_dense(net, x, 4, NULL), x), 2, NULL);
    return tutti_dense(net, tutti_flatten(net, x), 10, NULL);
}

/* One pixel and one channel: axes that change places change no shape. */
static tutti_tensor single(tutti_network *net)
{
    tutti_tensor x = tutti_conv2d(net, tutti_input(net, "x", TUTTI_SHAPE(3, 1, 1)), 1, 1, NULL);
    x = tutti_relu(net, one(net, "transpose", x, "perm=1,0,2"));
    return tutti_dense(net, tutti_flatten(net, tutti_conv2d(net, x, 8, 1, NULL)), 10, NULL);
}

/* Passes leave valid graphs: what has a layout has the axes for it. */
START_TEST(unusual_axes_are_planned)
{
    static tutti_tensor (*const networks[])(tutti_network *) = { attentive, moved, mixed, single };
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++) {
        struct made made;
        make_device(_i == 0 ? DEVICE_CPU : DEVICE_GPU, (size_t)1 << 30);
        bf16 = _i == 2;
        if (_i == 2) device.can.matrix[COMPUTE_BF16].form = MATRIX_MMA;
        make(&made, PLAN_TRAIN, networks[i]);
        drop(&made);
        make(&made, PLAN_INFER, networks[i]);
        drop(&made);
    }
}
END_TEST

/* An operation with another number of axes of space needs nothing of graph/ and plan/. */
START_TEST(layouts_are_for_any_number_of_axes_of_space)
{
    static const tutti_shape shapes[] = { { 3, { 2, 20, 7 } }, { 4, { 2, 20, 7, 3 } }, { 5, { 2, 20, 7, 3, 5 } } };
    static const int64_t pixels[] = { 7, 21, 105 };
    for (int i = 0; i < 3; i++) {
        struct graph graph;
        graph_init(&graph);
        int x = graph_value(&graph, ROLE_INPUT, TYPE_F32, shapes[i], true, "x");
        const struct reorder_attributes attributes = { LAYOUT_BLOCKED };
        ck_assert(!value_has_layouts(graph_at(&graph, x)));
        const int made = graph_append(&graph, &operation_reorder, &attributes, &x, 1, -1);
        struct value *value = graph_at(&graph, made);
        ck_assert(value_has_layouts(value) && value_has_channels_last(value));
        value->layout = LAYOUT_BLOCKED;
        ck_assert_uint_eq(value_bytes(value, 16), (size_t)(2 * 32 * pixels[i]) * sizeof(float));
        ck_assert_int_eq(value_planes(value, CHANNEL_AXIS).pixels, pixels[i]);
        ck_assert_int_eq(graph_validate(&graph), TUTTI_OK);
        value->axes = (struct axes) { 0 };
        ck_assert_int_eq(graph_validate(&graph), TUTTI_INTERNAL);
        graph_free(&graph);
    }
}
END_TEST

START_TEST(features_have_no_layouts)
{
    struct graph graph;
    graph_init(&graph);
    int x = graph_value(&graph, ROLE_INPUT, TYPE_F32, TUTTI_SHAPE(2, 20), true, "x");
    const struct reorder_attributes attributes = { LAYOUT_BLOCKED };
    ck_assert_int_eq(graph_append(&graph, &operation_reorder, &attributes, &x, 1, -1), NO_VALUE);
    ck_assert_ptr_nonnull(strstr(tutti_message(NULL), "reorder: only values with axes of space"));
    graph_free(&graph);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("axes");
    TCase *cases = tcase_create("axes");
    tcase_add_checked_fixture(cases, NULL, free_device);
    tcase_add_test(cases, operations_on_images_give_channels_and_space);
    tcase_add_test(cases, operations_on_elements_pass_axes_on);
    tcase_add_test(cases, operations_that_move_axes_move_what_they_are_of);
    tcase_add_test(cases, sequences_stay_sequences);
    tcase_add_test(cases, lengths_that_vary_are_of_sequences);
    tcase_add_test(cases, what_is_no_image_stays_plain);
    tcase_add_loop_test(cases, unusual_axes_are_planned, 0, 3);
    tcase_add_test(cases, layouts_are_for_any_number_of_axes_of_space);
    tcase_add_test(cases, features_have_no_layouts);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
