/* The implementation of each node: by rule, table, blacklist or force; and its design. */
#include "tests/plan/test_plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layers/layers.h"
#include "models/models.h"
#include "plan/node.h"
#include "plan/plan.h"
#include "runtime/store.h"
#include "runtime/tuning.h"
#include "runtime/verdicts.h"

START_TEST(a_forced_implementation_that_refuses_is_an_error)
{
    make_device(DEVICE_GPU, (size_t)1 << 30);
    tutti_network *network = tutti_network_new(&runtime);
    tutti_tensor output = residual(network);
    struct plan_options options = { .mode = PLAN_TRAIN,
        .sizes.samples = 2,
        .objective = objective_of(output, TUTTI_CROSS_ENTROPY),
        .force = "conv2d=winograd" };
    size_t bytes;
    ck_assert_int_eq(network_layout(network), TUTTI_OK);
    ck_assert_int_eq(plan_measure(&device, network, &options, &bytes), TUTTI_UNSUPPORTED);
    tutti_network_free(network);
}
END_TEST

/* Pointwise convolutions alternate with convolutions of `groups` groups; 20 groups make them depthwise. */
static tutti_tensor with_groups(tutti_network *net, int groups)
{
    tutti_tensor x = tutti_input(net, "x", TUTTI_SHAPE(3, 12, 12));
    for (int i = 0; i < 2; i++) {
        x = tutti_conv2d(net, x, 20, 1, NULL);
        x = tutti_conv2d(net, x, 20, 3, &(tutti_conv2d_options) { .padding = 1, .groups = groups });
    }
    return tutti_dense(net, tutti_flatten(net, tutti_global_average_pool(net, x)), 10, NULL);
}

static tutti_tensor with_depthwise(tutti_network *net)
{
    return with_groups(net, 20);
}

/* Convolutions of groups for which there is no form with channels last. */
static tutti_tensor with_bf16(tutti_network *net)
{
    return with_groups(net, 10);
}

/* A training plan after its passes; the caller frees it and the network. */
static struct plan *passed(tutti_tensor (*build)(tutti_network *), tutti_precision precision, tutti_network **network)
{
    *network = tutti_network_new(&runtime);
    const tutti_tensor output = build(*network);
    ck_assert_int_eq(network_layout(*network), TUTTI_OK);
    const struct plan_options options = { .mode = PLAN_TRAIN,
        .sizes.samples = 5,
        .objective = objective_of(output, TUTTI_CROSS_ENTROPY),
        .precision = precision,
        .guards = true,
        .explain = true };
    struct plan *plan = plan_start(&device, *network, &options);
    ck_assert_ptr_nonnull(plan);
    ck_assert_msg(plan_run_passes(plan) == TUTTI_OK, "%s", tutti_message(NULL));
    return plan;
}

/* Nodes of a training plan that run by an implementation of this name. */
static int count_chosen(tutti_tensor (*build)(tutti_network *), tutti_precision precision, const char *name)
{
    int count = 0;
    tutti_network *network;
    struct plan *plan = passed(build, precision, &network);
    for (size_t n = 0; n < plan->graph.node_count; n++) {
        const struct node *node = &plan->graph.nodes[n];
        if (node->operation->alias) continue;
        count += !strcmp(node->operation->implementations[node->implementation]->name, name);
    }
    plan_free(plan);
    tutti_network_free(network);
    return count;
}

START_TEST(channels_are_last_where_that_pays)
{
    make_device(DEVICE_GPU, (size_t)1 << 30);
    device.can.matrix[COMPUTE_BF16].form = MATRIX_MMA;
    ck_assert_int_eq(count_chosen(residual, TUTTI_BF16, "channels_last"), 8); /* 3, 2 gradients of data, 3 of weights */
    ck_assert_int_eq(count_chosen(residual, TUTTI_BF16, "tiles"), 2);         /* before and after the dense layers */
    ck_assert_int_eq(count_chosen(residual, TUTTI_FP32, "channels_last"), 0);
    ck_assert_int_eq(count_chosen(with_depthwise, TUTTI_BF16, "channels_last"), 5);
    ck_assert_int_eq(count_chosen(with_depthwise, TUTTI_BF16, "depthwise_channels_last"), 6);
    ck_assert_int_eq(count_chosen(with_depthwise, TUTTI_BF16, "tiles"), 0);
    ck_assert_int_eq(count_chosen(with_bf16, TUTTI_BF16, "channels_last"), 0);
    ck_assert_int_eq(count_chosen(with_bf16, TUTTI_BF16, "tiles"), 0);
    ck_assert_int_eq(count_chosen(with_bf16, TUTTI_BF16, "implicit_gemm_matrix"), 11);
}
END_TEST

/* The names of the implementations that a convolution of 20 channels gets. */
static const char *chosen_for_conv2(const struct made *made)
{
    const struct graph *graph = &made->plan->graph;
    for (size_t n = 0; n < graph->node_count; n++) {
        const struct node *node = &graph->nodes[n];
        if (node->operation == &operation_conv2d && !strcmp(made->network->layers[node->layer].name, "conv2"))
            return node->operation->implementations[node->implementation]->name;
    }
    return "none";
}

START_TEST(what_was_measured_decides)
{
    static const char *const measured[][2] = { { "direct 1.0 winograd 2.0", "direct" },
        { "winograd 1.0 direct 2.0", "winograd" }, { "depthwise 1.0", "winograd" }, /* it refuses: the rule decides */
        { "direction 1.0", "winograd" }, { "plain 1.0", "plain" } };
    const char *problem = "conv2d/Nx20x12x12/20x20x3x3/Nx20x12x12/k3x3/s1x1/p1x1/d1x1/g1/n5";
    make_device(DEVICE_CPU, (size_t)1 << 30);
    for (size_t i = 0; i < sizeof measured / sizeof *measured; i++) {
        struct made made;
        tuning_keep(&device, problem, measured[i][0]);
        make(&made, PLAN_TRAIN, residual);
        ck_assert_str_eq(chosen_for_conv2(&made), measured[i][1]);
        drop(&made);
    }
    blacklist_add(&device, "conv2d/direct", "wrong"); /* however fast it was */
    tuning_keep(&device, problem, measured[0][0]);
    struct made made;
    make(&made, PLAN_TRAIN, residual);
    ck_assert_str_eq(chosen_for_conv2(&made), "winograd");
    drop(&made);
}
END_TEST

static tutti_tensor wide(tutti_network *net)
{
    tutti_tensor x = tutti_input(net, "x", TUTTI_SHAPE(3, 56, 56));
    x = tutti_conv2d(net, x, 256, 3, &(tutti_conv2d_options) { .padding = 1 });
    x = tutti_conv2d(net, x, 256, 3, &(tutti_conv2d_options) { .name = "conv2", .padding = 1 });
    return tutti_dense(net, tutti_flatten(net, x), 10, NULL);
}

START_TEST(what_the_rule_passes_over_a_table_may_choose)
{
    struct made made;
    make_device(DEVICE_GPU, (size_t)1 << 30);
    make(&made, PLAN_TRAIN, wide);
    ck_assert_str_eq(chosen_for_conv2(&made), "winograd_4x4");
    drop(&made);
    make(&made, PLAN_TRAIN, residual);
    ck_assert_str_eq(chosen_for_conv2(&made), "implicit_gemm");
    drop(&made);
    tuning_keep(&device, "conv2d/Nx20x12x12/20x20x3x3/Nx20x12x12/k3x3/s1x1/p1x1/d1x1/g1/n5",
        "winograd_2x2 1.0 implicit_gemm 2.0");
    make(&made, PLAN_TRAIN, residual);
    ck_assert_str_eq(chosen_for_conv2(&made), "winograd_2x2");
    drop(&made);
}
END_TEST

static tutti_tensor resnet50(tutti_network *net)
{
    return model_resnet50(net, tutti_input(net, "x", TUTTI_SHAPE(3, 224, 224)), 1000);
}

enum { DESIGN_NAME = PROBLEM_NAME + IMPLEMENTATION_KEY + 80 };

/* Describes in words the design of the node's implementation for its problem. */
static void name_design(const struct plan *plan, const struct node *node, char name[DESIGN_NAME])
{
    const struct implementation *implementation = node->operation->implementations[node->implementation];
    struct problem problem;
    char key[IMPLEMENTATION_KEY];
    problem_of(plan, node, &problem);
    problem_name(&problem, name);
    implementation_key(&problem, implementation, false, key);
    size_t length = strlen(name);
    length += (size_t)snprintf(name + length, DESIGN_NAME - length, " %s", key);
    if (implementation->statistics) return;
    length += (size_t)snprintf(name + length, DESIGN_NAME - length, " fused %x", node_fusions(node));
    for (int i = 0; i < 4; i++) {
        const struct value *value = i < 3 ? problem.inputs[i] : problem.outputs[0];
        if (value && (i == 3 || operation_input(node->operation, i)))
            length += (size_t)snprintf(name + length, DESIGN_NAME - length, " %d:%d %d", i, value->type, value->layout);
    }
}

/* There is one design for each problem and implementation, although rewriting asks for some of them before the last
 * pass. */
START_TEST(nothing_is_designed_twice)
{
    make_device(_i ? DEVICE_GPU : DEVICE_CPU, (size_t)1 << 32);
    struct made made;
    make(&made, PLAN_TRAIN, resnet50);
    const struct plan *plan = made.plan;
    static char names[1000][DESIGN_NAME];
    const void *designs[1000];
    size_t nodes = 0, count = 0;
    for (size_t n = 0; n < plan->graph.node_count; n++) {
        const struct node *node = &plan->graph.nodes[n];
        if (!node->design) continue;
        nodes++;
        ck_assert_uint_lt(count, 1000);
        name_design(plan, node, names[count]);
        size_t same = 0;
        while (strcmp(names[same], names[count])) same++;
        if (same == count) designs[count++] = node->design;
        ck_assert_ptr_eq(designs[same], node->design);
    }
    ck_assert_uint_eq(plan->designs.count, count); /* number of calls of functions that design */
    ck_assert_uint_gt(nodes, 2 * count);
    drop(&made);
}
END_TEST

/* The text that --why prints about a training plan; the caller frees it. */
static char *explained(tutti_tensor (*build)(tutti_network *), tutti_precision precision)
{
    tutti_network *network;
    struct plan *plan = passed(build, precision, &network);
    char *text = plan->explanation.choices;
    plan->explanation.choices = NULL;
    plan_free(plan);
    tutti_network_free(network);
    ck_assert_ptr_nonnull(text);
    return text;
}

/* Below the line of the layer's node with this operation: where the choice comes from, then the remark. NULL: none. */
static void expect_remark(const char *text, const char *layer, const char *operation, const char *remark)
{
    char head[64], wanted[256];
    snprintf(head, sizeof head, "  %-28s %-24s ", layer, operation);
    const char *at = strstr(text, head), *by = at ? strchr(at, '\n') : NULL, *next = by ? strchr(by + 1, '\n') : NULL;
    ck_assert_msg(next != NULL, "no node '%s' in\n%s", head, text);
    ck_assert_msg(!strncmp(by + 1, "        by the ", 15), "%s", at);
    snprintf(wanted, sizeof wanted, "        it %s\n", remark ? remark : "");
    ck_assert_msg(!strncmp(next + 1, wanted, remark ? strlen(wanted) : 11) == (remark != NULL), "not '%s' in\n%.400s",
        remark ? wanted : "no remark", at);
}

static int count_of(const char *text, const char *words)
{
    int count = 0;
    for (const char *at = text; (at = strstr(at, words)); at++) count++;
    return count;
}

#define BF16_BY(form) "multiplies bfloat16 numbers by " form
#define FLOATS_AS(refusal) "multiplies floats, not bfloat16 numbers: " refusal

/* Convolutions of as many channels as tiles want. */
static tutti_tensor paired(tutti_network *net)
{
    tutti_tensor x = tutti_input(net, "x", TUTTI_SHAPE(64, 12, 12));
    x = tutti_conv2d(net, x, 64, 3, &(tutti_conv2d_options) { .name = "stem", .padding = 1, .no_bias = true });
    x = tutti_conv2d(net, x, 64, 1, &(tutti_conv2d_options) { .name = "wide", .no_bias = true });
    x = tutti_relu(net, tutti_batch_norm(net, x, NULL));
    return tutti_flatten(net, tutti_global_average_pool(net, x));
}

START_TEST(what_convolutions_multiply_is_told)
{
    static const struct {
        tutti_precision precision;
        struct bf16_ability ability;
        const char *forward, *backward; /* of a 1x1 convolution */
        const char *stem;               /* 3x3: by Winograd's algorithm before dot products, not before tiles */
        int expected;
    } cases[] = {
        { TUTTI_BF16, { BF16_DOTS, NULL }, FLOATS_AS("the image is stored as floats"), BF16_BY("dot products"), NULL,
            3 },
        { TUTTI_BF16, { BF16_PLAIN, NULL }, BF16_BY("plain code"), BF16_BY("plain code"), BF16_BY("plain code"), 5 },
        { TUTTI_BF16, { BF16_TILES, NULL }, BF16_BY("tiles"), BF16_BY("tiles"), BF16_BY("tiles"), 5 },
        { TUTTI_BF16, { BF16_NONE, "no instruction" }, FLOATS_AS("no instruction"), FLOATS_AS("no instruction"), NULL,
            3 },
        { TUTTI_TF32, { BF16_DOTS, NULL }, FLOATS_AS("this kernel multiplies them with --precision bf16 alone"),
            FLOATS_AS("this kernel multiplies them with --precision bf16 alone"), NULL, 3 },
        { TUTTI_FP32, { BF16_DOTS, NULL }, NULL, NULL, NULL, 0 },
    };
    make_device(DEVICE_CPU, (size_t)1 << 30);
    device.can.bf16[COMPUTE_BF16] = cases[_i].ability;
    char *text = explained(paired, cases[_i].precision);
    expect_remark(text, "wide", "conv2d", cases[_i].forward);
    expect_remark(text, "wide", "conv2d_data_gradient", cases[_i].backward);
    expect_remark(text, "wide", "conv2d_weight_gradient", cases[_i].backward);
    expect_remark(text, "stem", "conv2d", cases[_i].stem);
    ck_assert_int_eq(count_of(text, "        it "), cases[_i].expected);
    free(text);
}
END_TEST

START_TEST(what_dense_layers_multiply_is_told)
{
    make_device(DEVICE_CPU, (size_t)1 << 30);
    for (int compute = COMPUTE_FP32; compute <= COMPUTE_BF16; compute++) device.can.bf16[compute].form = BF16_PLAIN;
    char *text = explained(perceptron, TUTTI_BF16);
    expect_remark(text, "fc2", "dense", BF16_BY("plain code"));
    expect_remark(text, "fc2", "dense_weight_gradient", BF16_BY("plain code"));
    free(text);
    text = explained(perceptron, TUTTI_TF32);
    expect_remark(text, "fc2", "dense", BF16_BY("plain code, each operand as the sum of 2 numbers"));
    free(text);
    text = explained(perceptron, TUTTI_FP32);
    expect_remark(text, "fc2", "dense_data_gradient", BF16_BY("plain code, each operand as the sum of 3 numbers"));
    free(text);
    make_device(DEVICE_CPU, (size_t)1 << 30);
    text = explained(perceptron, TUTTI_BF16);
    ck_assert_int_eq(count_of(text, "        it "), 0); /* "not bf16: ..." tells it */
    ck_assert_int_gt(count_of(text, "        not bf16: "), 0);
    free(text);
}
END_TEST

void add_choose(TCase *cases)
{
    tcase_add_test(cases, channels_are_last_where_that_pays);
    tcase_add_test(cases, a_forced_implementation_that_refuses_is_an_error);
    tcase_add_test(cases, what_was_measured_decides);
    tcase_add_test(cases, what_the_rule_passes_over_a_table_may_choose);
    tcase_add_loop_test(cases, nothing_is_designed_twice, 0, 2);
    tcase_add_loop_test(cases, what_convolutions_multiply_is_told, 0, 6);
    tcase_add_test(cases, what_dense_layers_multiply_is_told);
}
