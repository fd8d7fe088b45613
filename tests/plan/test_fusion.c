/* Rewriting: what is fused in training, what inference folds, and the lists of what nodes fuse. */
#include "tests/plan/test_plan.h"

#include <string.h>

#include "layers/layers.h"
#include "layers/loop/loop.h"
#include "plan/node.h"
#include "plan/plan.h"

static int count(const struct graph *graph, const struct operation *operation)
{
    int found = 0;
    for (size_t n = 0; n < graph->node_count; n++) found += graph->nodes[n].operation == operation;
    return found;
}

START_TEST(training_fuses)
{
    make_device(DEVICE_CPU, (size_t)1 << 30);
    struct made made;
    make(&made, PLAN_TRAIN, residual);
    const struct graph *graph = &made.plan->graph;
    ck_assert_int_eq(count(graph, &operation_activation), 0);
    ck_assert_int_eq(count(graph, &operation_add), 0);
    ck_assert_int_eq(count(graph, &operation_activation_gradient), 1); /* of fc1: its mask comes before two products */
    ck_assert_int_eq(count(graph, &operation_batch_norm_gradient), 3);
    drop(&made);
}
END_TEST

/* Gradients of biases and of activations are made by the products, where these can. */
START_TEST(products_take_what_surrounds_them)
{
    struct made made;
    make_device(DEVICE_CPU, (size_t)1 << 30);
    make(&made, PLAN_TRAIN, perceptron);
    ck_assert_int_eq(count(&made.plan->graph, &operation_channel_sum), 0);
    ck_assert_int_eq(count(&made.plan->graph, &operation_activation_gradient), 0);
    ck_assert_int_eq(count(&made.plan->graph, &operation_dense_weight_gradient), 3);
    drop(&made);
    make_device(DEVICE_GPU, (size_t)1 << 30);
    make(&made, PLAN_TRAIN, perceptron);
    ck_assert_int_eq(count(&made.plan->graph, &operation_channel_sum), 3);
    ck_assert_int_eq(count(&made.plan->graph, &operation_activation_gradient), 0);
    drop(&made);
}
END_TEST

static tutti_tensor normalised(tutti_network *net)
{
    const tutti_tensor x = tutti_input(net, "x", TUTTI_SHAPE(8, 24));
    const tutti_tensor mean = tutti_op(net, "reduce_mean", &x, 1, "axes=-1");
    const tutti_tensor difference = tutti_op(net, "sub", (tutti_tensor[]) { x, mean }, 2, NULL);
    tutti_tensor y = tutti_op(net, "square", &difference, 1, NULL);
    y = tutti_op(net, "reduce_mean", &y, 1, "axes=-1");
    y = tutti_op(net, "sqrt", &y, 1, NULL);
    y = tutti_op(net, "div", (tutti_tensor[]) { difference, y }, 2, NULL);
    y = tutti_op(net, "transpose", &y, 1, "perm=1,0");
    return tutti_flatten(net, tutti_relu(net, y));
}

/* The difference is stored, since two kernels read it; squares are summed as they are made, and what is a number for
 * each row stays one. */
START_TEST(chains_are_one_kernel)
{
    struct made made;
    make_device(DEVICE_GPU, (size_t)1 << 30);
    make(&made, PLAN_INFER, normalised);
    const struct graph *graph = &made.plan->graph;
    ck_assert_int_eq(count(graph, &operation_square), 0);
    ck_assert_int_eq(count(graph, &operation_transpose), 0);
    ck_assert_int_eq(count(graph, &operation_loop), 2);
    ck_assert_int_eq(graph->node_count, 6);
    drop(&made);
}
END_TEST

/* Checks what the gradient of a layer's bias sums, and where the gradient of its activation is computed; masked: by
 * the data gradient before it. */
static void check_pooled(
    const struct graph *graph, const char *layer, const tutti_network *network, int64_t side, bool masked)
{
    int found = 0;
    for (size_t n = 0; n < graph->node_count; n++) {
        const struct node *sum = &graph->nodes[n];
        if (sum->operation != &operation_channel_sum || strcmp(network->layers[sum->layer].name, layer)) continue;
        const struct value *dy = graph_at(graph, sum->inputs[0]);
        const struct node *factor = &graph->nodes[dy->producer];
        ck_assert_ptr_eq(factor->operation, masked ? &operation_conv2d_data_gradient : &operation_activation_gradient);
        ck_assert_int_eq(dy->shape.sizes[2], side);
        const struct fusion *mask = node_fusion(factor, FUSION_MASK);
        ck_assert_int_eq(mask != NULL, masked);
        ck_assert(shape_equal(graph_at(graph, factor->inputs[mask ? mask->input : 0])->shape, dy->shape));
        ck_assert_int_eq(
            mask ? mask->function.activation : activation_attributes(factor)->function.activation, ACTIVATION_RELU);
        found++;
    }
    ck_assert_int_eq(found, 1);
}

START_TEST(gradients_of_activations_come_before_pooling)
{
    struct made made;
    make_device(DEVICE_CPU, (size_t)1 << 30);
    make(&made, PLAN_TRAIN, pooled);
    check_pooled(&made.plan->graph, "conv1", made.network, 6, true);
    check_pooled(
        &made.plan->graph, "conv2", made.network, 6, false); /* not moved: the sum of two gradients is masked */
    ck_assert_int_eq(count(&made.plan->graph, &operation_activation_gradient), 1);
    ck_assert_int_eq(count(&made.plan->graph, &operation_max_pool_gradient), 2);
    drop(&made);
    make_device(DEVICE_GPU, (size_t)1 << 30); /* whose data gradients take no mask */
    make(&made, PLAN_TRAIN, pooled);
    check_pooled(&made.plan->graph, "conv1", made.network, 6, false);
    check_pooled(&made.plan->graph, "conv2", made.network, 6, false);
    ck_assert_int_eq(count(&made.plan->graph, &operation_activation_gradient), 2);
    drop(&made);
}
END_TEST

/* Nodes of an operation that read statistics of this input, each as its producer gives them. */
static int statistics_read(
    const struct graph *graph, const struct operation *operation, int input, enum fusion_kind kind)
{
    int found = 0;
    for (size_t n = 0; n < graph->node_count; n++) {
        const struct node *node = &graph->nodes[n];
        const struct fusion *given = node_fusion(node, FUSION_GIVEN);
        if (node->operation != operation || !given) continue;
        const struct node *producer = &graph->nodes[graph_at(graph, node->inputs[input])->producer];
        ck_assert_int_eq(producer->outputs[node_fusion(producer, kind)->output], node->inputs[given->input]);
        found++;
    }
    return found;
}

START_TEST(statistics_are_made_where_the_input_is_made)
{
    struct made made;
    make_device(DEVICE_CPU, (size_t)1 << 30);
    make(&made, PLAN_TRAIN, separable);
    ck_assert_int_eq(count(&made.plan->graph, &operation_batch_norm), 3);
    /* Two share those of one convolution; one output goes into a convolution and nowhere else. */
    ck_assert_int_eq(statistics_read(&made.plan->graph, &operation_batch_norm, 0, FUSION_STATISTICS), 3);
    ck_assert_int_eq(statistics_read(&made.plan->graph, &operation_batch_norm_gradient, 1, FUSION_GATE), 1);
    drop(&made);
    make_device(DEVICE_GPU, (size_t)1 << 30);
    make(&made, PLAN_TRAIN, separable);
    ck_assert_int_eq(count(&made.plan->graph, &operation_batch_norm), 3);
    /* Two share those of a matrix product; a depthwise convolution gives none. */
    ck_assert_int_eq(statistics_read(&made.plan->graph, &operation_batch_norm, 0, FUSION_STATISTICS), 2);
    ck_assert_int_eq(statistics_read(&made.plan->graph, &operation_batch_norm_gradient, 1, FUSION_GATE), 0);
    drop(&made);
}
END_TEST

/* Whether the only node of this operation in the layer "apart" normalises the input of bn0, and bn0 itself has no
 * output. */
static bool normalises(const struct made *made, const struct operation *operation)
{
    const struct graph *graph = &made->plan->graph;
    for (size_t n = 0; n < graph->node_count; n++) {
        const struct node *node = &graph->nodes[n];
        if (node->operation != operation || strcmp(made->network->layers[node->layer].name, "apart")) continue;
        const struct fusion *normalised = node_fusion(node, FUSION_NORMALISED), *gate = node_fusion(node, FUSION_GATE);
        if (!normalised && !gate) return false;
        const int mean = normalised ? normalised->input + NORMALISED_MEAN : gate->input + GATE_MEAN;
        const struct node *norm = &graph->nodes[graph_at(graph, node->inputs[mean])->producer];
        ck_assert_str_eq(made->network->layers[norm->layer].name, "bn0");
        ck_assert_int_eq(norm->inputs[0], node->inputs[normalised ? 0 : gate->input + GATE_X]);
        ck_assert_int_eq((normalised ? normalised : gate)->function.activation, ACTIVATION_RELU);
        return norm->outputs[0] == NO_VALUE;
    }
    return false;
}

/* Neither is its output stored, nor are both tensors read again for the weights' gradient. */
START_TEST(depthwise_convolutions_normalise_what_they_load)
{
    struct made made;
    make_device(DEVICE_CPU, (size_t)1 << 30);
    make(&made, PLAN_TRAIN, separable);
    ck_assert(normalises(&made, &operation_conv2d));
    ck_assert(normalises(&made, &operation_conv2d_data_gradient));
    ck_assert_int_eq(count(&made.plan->graph, &operation_conv2d_weight_gradient), 2);
    replay(&made);
    drop(&made);
    make_device(DEVICE_GPU, (size_t)1 << 30);
    make(&made, PLAN_TRAIN, separable);
    ck_assert(!normalises(&made, &operation_conv2d));
    ck_assert_int_eq(count(&made.plan->graph, &operation_conv2d_weight_gradient), 3);
    drop(&made);
}
END_TEST

static void check_list(const struct node *node, const enum fusion_kind *kinds, int count)
{
    ck_assert_int_eq(node->fusion_count, count);
    for (int k = 0; k < count; k++) ck_assert_int_eq(node->fusions[k].kind, kinds[k]);
}

START_TEST(fusions_are_listed_in_the_order_of_execution)
{
    struct node node = { .operation = &operation_conv2d, .input_count = 2, .output_count = 1 };
    node.inputs[2] = NO_VALUE;
    node_fuse(&node, (struct fusion) { FUSION_STATISTICS }, NULL, 20);
    node_fuse(&node, (struct fusion) { FUSION_ADD, .added = 30 }, NULL, NO_VALUE);
    node_fuse(&node, (struct fusion) { FUSION_NORMALISED, { ACTIVATION_RELU } }, (int[]) { 3, 4, 5, 6 }, NO_VALUE);
    check_list(&node, (enum fusion_kind[]) { FUSION_NORMALISED, FUSION_ADD, FUSION_STATISTICS }, 3);
    ck_assert_int_eq(node_fusion(&node, FUSION_NORMALISED)->input, 3); /* after the bias, which is absent */
    ck_assert_str_eq(node_input_port(&node, 2)->name, "bias");
    ck_assert_str_eq(node_input_port(&node, 6)->name, "rstd");
    ck_assert_int_eq(node.inputs[6], 6);
    ck_assert_int_eq(node.outputs[node_fusion(&node, FUSION_STATISTICS)->output], 20);
    ck_assert_int_eq(node_function(&node, FUSION_NORMALISED).activation, ACTIVATION_RELU);
    ck_assert_int_eq(node_function(&node, FUSION_ACTIVATION).activation, ACTIVATION_NONE);
    ck_assert_int_eq(node_added(&node), 30);
    node_separate(&node, FUSED(STATISTICS));
    check_list(&node, (enum fusion_kind[]) { FUSION_STATISTICS }, 1);
    ck_assert_int_eq(node.input_count, 3);
    ck_assert_int_eq(node.output_count, 2);
    ck_assert_int_eq(node_added(&node), NO_VALUE);
}
END_TEST

START_TEST(implementations_say_what_they_fuse)
{
    unsigned all = 0;
    for (const struct operation *const *o = operations; *o; o++)
        for (const struct implementation *const *i = (*o)->implementations; i && *i; i++) {
            const bool gives = (*i)->fusions & (FUSED(STATISTICS) | FUSED(GATE));
            ck_assert_msg(!gives || (*i)->statistics, "%s/%s counts no parts", (*o)->name, (*i)->name);
            ck_assert_msg(!((*i)->fusions >> FUSION_KINDS), "%s/%s", (*o)->name, (*i)->name);
            all |= (*i)->fusions;
        }
    ck_assert_uint_eq(all, (1u << FUSION_KINDS) - 1);
}
END_TEST

START_TEST(inference_folds)
{
    make_device(DEVICE_CPU, (size_t)1 << 30);
    struct made made;
    make(&made, PLAN_INFER, residual);
    const struct graph *graph = &made.plan->graph;
    ck_assert_int_eq(count(graph, &operation_batch_norm), 0);
    ck_assert_int_eq(count(graph, &operation_batch_norm_inference), 0);
    ck_assert_int_eq(count(graph, &operation_fold_batch_norm), 3);
    ck_assert_int_eq(count(graph, &operation_dropout), 0);
    ck_assert_int_eq(count(graph, &operation_activation), 0);
    for (size_t n = 0; n < graph->node_count; n++)
        if (graph->nodes[n].operation == &operation_fold_batch_norm)
            ck_assert(node_is_constant(graph, &graph->nodes[n]));
    drop(&made);
}
END_TEST

void add_fusion(TCase *cases)
{
    tcase_add_test(cases, training_fuses);
    tcase_add_test(cases, chains_are_one_kernel);
    tcase_add_test(cases, products_take_what_surrounds_them);
    tcase_add_test(cases, gradients_of_activations_come_before_pooling);
    tcase_add_test(cases, depthwise_convolutions_normalise_what_they_load);
    tcase_add_test(cases, statistics_are_made_where_the_input_is_made);
    tcase_add_test(cases, fusions_are_listed_in_the_order_of_execution);
    tcase_add_test(cases, implementations_say_what_they_fuse);
    tcase_add_test(cases, inference_folds);
}
