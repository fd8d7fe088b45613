/* Fusions change no result. The interpreter runs a graph in double precision as the network and its gradients are
 * appended, after each pattern (layers/patterns.c) that changed it, and after all passes: forward and backward. */
#include "tests/plan/made.h"

#include <math.h>
#include <stdio.h>

#include "base/random.h"
#include "graph/edit.h"
#include "graph/pattern.h"
#include "layers/operations.h"
#include "models/models.h"
#include "tests/interpreted.h"
#include "tutti_sequences.h"

/* Rounding errors of sums in another order; gradients that are 0 in theory have no more either. */
#define LIMIT 1e-12

#define GOOD(call) ck_assert_msg((call) == TUTTI_OK, "%s", tutti_message(NULL))

enum { SAMPLES = 3, MOST_PATTERNS = 32 };

/* --------------------------------------------------------------------------------------------------- networks ---- */

static tutti_tensor norm(tutti_network *net, tutti_tensor x)
{
    return tutti_batch_norm(net, x, NULL);
}

static tutti_tensor conv(tutti_network *net, tutti_tensor x, int channels, int kernel, int groups, bool bias)
{
    return tutti_conv2d(net, x, channels, kernel,
        &(tutti_conv2d_options) { .padding = kernel / 2, .groups = groups, .no_bias = !bias });
}

/* Every activation that fuses, after and before what it fuses with, and operations that become loops. */
static tutti_tensor active(tutti_network *net)
{
    tutti_tensor x = tutti_input(net, "x", TUTTI_SHAPE(5, 9, 8));
    x = tutti_leaky_relu(net, conv(net, x, 18, 3, 1, true), 0.125f);
    x = tutti_clip(net, norm(net, conv(net, x, 20, 1, 1, false)), -0.5f, 0.75f);
    x = tutti_tanh(net, norm(net, conv(net, x, 20, 3, 20, false)));
    const tutti_tensor y = tutti_leaky_relu(net, norm(net, conv(net, x, 20, 1, 1, true)), 0.25f);
    x = tutti_clip(net, tutti_add(net, y, norm(net, conv(net, y, 20, 5, 20, false))), 0, 6);
    x = tutti_max_pool(net, tutti_sigmoid(net, conv(net, x, 7, 3, 1, true)), 2, NULL);
    x = tutti_tanh(net, tutti_dense(net, tutti_flatten(net, x), 20, NULL));
    x = tutti_dropout(net, tutti_op(net, "gelu", &x, 1, NULL), 0.25f);
    x = tutti_relu(net, tutti_layer_norm(net, "norm", tutti_dense(net, x, 16, NULL), 0));
    return tutti_op(net, "softmax", &x, 1, NULL);
}

/* Attention over 7 positions of 3 heads, whose first query sees one key; and heads that a caller has taken apart. */
static tutti_tensor attentive(tutti_network *net)
{
    const tutti_tensor x = tutti_input(net, "x", TUTTI_SHAPE(7, 12));
    const tutti_attention_options options = { .heads = 3, .causal = true, .dropout = 0.25f };
    tutti_tensor y = tutti_attention(
        net, tutti_dense(net, x, 15, NULL), tutti_dense(net, x, 15, NULL), tutti_dense(net, x, 6, NULL), &options);
    y = tutti_reshape(net, y, TUTTI_SHAPE(2, 7, 3));
    return tutti_attention(net, y, y, y, NULL);
}

/* Both directions of transforms of few frequencies, around a product of channels. */
static tutti_tensor spectral(tutti_network *net)
{
    tutti_tensor x = conv(net, tutti_input(net, "x", TUTTI_SHAPE(2, 9, 8)), 5, 1, 1, true);
    const tutti_tensor both[] = { tutti_rfft2_modes(net, x, 4, 3),
        tutti_parameter(net, "weights", TUTTI_SHAPE(5, 3, 4, 3, 2), NULL) };
    x = tutti_irfft2_modes(net, tutti_op(net, "spectral_product", both, 2, NULL), 9, 8);
    return tutti_dense(net, tutti_flatten(net, x), 4, NULL);
}

static tutti_tensor lenet(tutti_network *net)
{
    return model_lenet(net, tutti_input(net, "x", TUTTI_SHAPE(1, 12, 12)), 10);
}

/* Not deep ones: they multiply rounding errors by 10^5, and tests/golden runs their fused nodes, too. */
static const struct network {
    const char *name;
    tutti_tensor (*build)(tutti_network *network);
    const struct operation *combined; /* what a forward pattern makes of it for CPUs; NULL: nothing */
    int nodes, gradients;             /* of that; of the same in training */
} networks[] = {
    { "residual", residual },
    { "perceptron", perceptron },
    { "pooled", pooled },
    { "separable", separable },
    { "active", active },
    { "lenet", lenet },
    { "attentive", attentive, &operation_attention, 2, 0 },
    { "spectral", spectral, &operation_dft2, 2, 2 },
};
enum { NETWORKS = sizeof networks / sizeof *networks };

/* Settings that decide which kernels there are to fuse with. */
static const struct setting {
    const char *name;
    enum device_class class;
    enum matrix_form matrix;
} settings[] = {
    { "a CPU", DEVICE_CPU, MATRIX_NONE },
    { "a GPU", DEVICE_GPU, MATRIX_NONE },
    { "a GPU with matrix instructions", DEVICE_GPU, MATRIX_MMA },
};
enum { SETTINGS = sizeof settings / sizeof *settings };

/* ------------------------------------------------------------------------------------------------------- runs ---- */

static tutti_network *build(
    const struct network *given, const struct setting *setting, enum plan_mode mode, struct plan_options *options)
{
    make_device(setting->class, (size_t)1 << 30);
    device.can.matrix[COMPUTE_BF16].form = setting->matrix;
    tutti_network *network = tutti_network_new(&runtime);
    const tutti_tensor output = given->build(network);
    ck_assert_msg(tutti_network_status(network) == TUTTI_OK, "%s: %s", given->name, tutti_message(NULL));
    GOOD(network_layout(network));
    *options = (struct plan_options) { .mode = mode,
        .sizes.samples = SAMPLES,
        .objective = objective_of(output, TUTTI_LOSS_NONE),
        .seeded = mode == PLAN_TRAIN,
        .precision = setting->matrix == MATRIX_NONE ? TUTTI_FP32 : TUTTI_BF16 };
    return network;
}

static void fill(double *to, int64_t count, uint32_t stream, double scale)
{
    for (int64_t i = 0; to && i < count; i++) to[i] = scale * (2 * (double)random_uniform(3, stream, (uint64_t)i) - 1);
}

static void write_data(const struct interpreted *made)
{
    const struct plan *plan = made->plan;
    double *const *values = made->interpreter.values;
    for (size_t p = 0; p < plan->network->parameter_count; p++) {
        const struct parameter *how = &plan->network->parameters[p];
        const double inputs = how->shape.rank > 1 ? (double)how->elements / (double)how->shape.sizes[0] : 1;
        double *to = interpreted_parameter(made, (int)p);
        fill(to, how->elements, 10 + (uint32_t)p, sqrt(3 / inputs));
        for (int64_t i = 0; how->kind == PARAMETER_STATISTIC && i < how->elements; i++) to[i] = fabs(to[i]) + 0.25;
    }
    fill(values[plan->feeds[0]], value_elements(graph_at(&plan->graph, plan->feeds[0])), 1, 1);
    if (plan->seed != NO_VALUE) fill(values[plan->seed], value_elements(graph_at(&plan->graph, plan->seed)), 2, 1);
}

static void run(struct interpreted *made)
{
    made->interpreter.constants = (struct step_constants) { .seed_low = 5, .gradient_weight = 1.0f / SAMPLES };
    made->interpreter.inference = made->plan->options.mode == PLAN_INFER;
    write_data(made);
    GOOD(interpreter_run(&made->interpreter, made->plan->graph.node_count));
}

static void compare(const char *where, const char *what, const double *got, const double *want, int64_t count)
{
    double squares = 0;
    ck_assert_msg(!got == !want, "%s: %s is not in both graphs", where, what);
    for (int64_t i = 0; want && i < count; i++) squares += want[i] * want[i];
    for (int64_t i = 0; want && i < count; i++) {
        const double allowed = LIMIT * (1 + sqrt(squares / (double)count) + fabs(want[i]));
        ck_assert_msg(fabs(got[i] - want[i]) <= allowed, "%s: element %lld of %s is %.15g, and was %.15g", where,
            (long long)i, what, got[i], want[i]);
    }
}

static const double *array_of(const struct interpreted *made, int value)
{
    return value == NO_VALUE ? NULL : made->interpreter.values[value];
}

/* The output, the gradient of the input, and those of all parameters. */
static void compare_all(const char *where, const struct interpreted *got, const struct interpreted *want)
{
    const struct plan *plan = want->plan;
    const tutti_network *network = plan->network;
    compare(where, "the output", array_of(got, got->plan->outputs[0]), array_of(want, plan->outputs[0]),
        value_elements(graph_at(&plan->graph, plan->outputs[0])));
    compare(where, "the input's gradient", array_of(got, got->plan->input_gradient),
        array_of(want, plan->input_gradient), value_elements(graph_at(&plan->graph, plan->feeds[0])));
    for (size_t p = 0; p < network->parameter_count; p++)
        compare(where, network->parameters[p].name, interpreted_gradient(got, (int)p),
            interpreted_gradient(want, (int)p), network->parameters[p].elements);
}

/* ------------------------------------------------------------------------------------------------------ tests ---- */

/* How often each pattern changed a graph, and the kinds of fusions that there were. */
static int applied[MOST_PATTERNS];
static unsigned fused;

/* As pass_rewrite(). */
static void rewrite_in_steps(const char *what, struct interpreted *made, const struct interpreted *want)
{
    char where[128];
    interpreter_free(&made->interpreter); /* what the graph was */
    GOOD(pass_sweep(made->plan));
    for (bool changed = true; changed;) {
        changed = false;
        for (int p = 0; patterns[p]; p++) {
            if (!rewrite_by(made->plan, patterns[p])) continue;
            changed = true;
            applied[p]++;
            edit_compact(&made->plan->graph);
            GOOD(graph_validate(&made->plan->graph));
            GOOD(interpreter_new(&made->plan->graph, &made->interpreter));
            run(made);
            snprintf(where, sizeof where, "%s, after pattern %d of layers/patterns.c", what, p);
            compare_all(where, made, want);
            interpreter_free(&made->interpreter);
        }
    }
    for (size_t n = 0; n < made->plan->graph.node_count; n++) fused |= node_fusions(&made->plan->graph.nodes[n]);
}

START_TEST(each_pattern_keeps_the_results)
{
    char what[64];
    for (int i = 0; i < NETWORKS * SETTINGS; i++) {
        const struct network *network = &networks[i / SETTINGS];
        const struct setting *setting = &settings[i % SETTINGS];
        struct plan_options options;
        struct interpreted want, made;
        tutti_network *built = build(network, setting, PLAN_TRAIN, &options);
        GOOD(interpreted_new(&device, built, &options, false, &want));
        GOOD(interpreted_new(&device, built, &options, false, &made));
        run(&want);
        snprintf(what, sizeof what, "%s for %s", network->name, setting->name);
        rewrite_in_steps(what, &made, &want);
        interpreted_free(&made);
        interpreted_free(&want);
        tutti_network_free(built);
    }
    for (int p = 0; patterns[p]; p++) {
        ck_assert_int_lt(p, MOST_PATTERNS);
        ck_assert_msg(applied[p], "pattern %d of layers/patterns.c changes none of these networks: add one", p);
    }
    for (int kind = 0; kind < FUSION_KINDS; kind++)
        ck_assert_msg(fused >> kind & 1, "none of these networks has the fusion \"%s\": add one", fusion_name(kind));
}
END_TEST

static int nodes_of(const struct plan *plan, const struct operation *operation)
{
    int count = 0;
    for (size_t n = 0; n < plan->graph.node_count; n++) count += plan->graph.nodes[n].operation == operation;
    return count;
}

static void check_passes(const struct network *network, const struct setting *setting, enum plan_mode mode)
{
    char where[64];
    struct plan_options options;
    struct interpreted want, got;
    tutti_network *built = build(network, setting, mode, &options);
    GOOD(interpreted_new(&device, built, &options, false, &want));
    GOOD(interpreted_new(&device, built, &options, true, &got));
    run(&want);
    run(&got);
    snprintf(where, sizeof where, "%s for %s, %s", network->name, setting->name,
        mode == PLAN_TRAIN ? "training" : "inference");
    compare_all(where, &got, &want);
    const int nodes = network->nodes + (mode == PLAN_TRAIN ? network->gradients : 0);
    if (network->combined)
        ck_assert_int_eq(nodes_of(got.plan, network->combined), setting->class == DEVICE_CPU ? nodes : 0);
    interpreted_free(&got);
    interpreted_free(&want);
    tutti_network_free(built);
}

START_TEST(all_passes_keep_the_results)
{
    for (int s = 0; s < SETTINGS; s++) {
        check_passes(&networks[_i], &settings[s], PLAN_TRAIN);
        check_passes(&networks[_i], &settings[s], PLAN_INFER);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("patterns");
    TCase *cases = tcase_create("patterns");
    tcase_add_checked_fixture(cases, NULL, free_device);
    tcase_add_test(cases, each_pattern_keeps_the_results);
    tcase_add_loop_test(cases, all_passes_keep_the_results, 0, NETWORKS);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
