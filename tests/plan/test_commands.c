/* The list of a plan's commands: as text, and what is needed and ready before and after each launch. */
#include "tests/plan/made.h"

#include <string.h>

#include "plan/ahead.h"
#include "plan/commands.h"

/* A plan with its commands, but without memory. */
static struct plan *list_commands(tutti_network *network, tutti_tensor output, enum plan_mode mode)
{
    const struct plan_options options = { .mode = mode,
        .sizes.samples = 4,
        .objective = objective_of(output, TUTTI_CROSS_ENTROPY),
        .synchronised = mode == PLAN_TRAIN,
        .guards = true };
    ck_assert_int_eq(network_layout(network), TUTTI_OK);
    struct plan *plan = plan_start(&device, network, &options);
    ck_assert_ptr_nonnull(plan);
    launch_list_init(&plan->launches, &device);
    ck_assert_msg(plan_run_passes(plan) == TUTTI_OK, "%s", tutti_message(NULL));
    ck_assert_msg(plan_emit_ahead(plan, &plan->launches) == TUTTI_OK, "%s", tutti_message(NULL));
    ck_assert_msg(commands_make(plan) == TUTTI_OK, "%s", tutti_message(NULL));
    return plan;
}

/* Prints the commands; of launches only the layers. */
static void print_layers(const struct plan *plan, struct text *text)
{
    const char *last = "-";
    for (size_t i = 0; i < plan->command_count; i++) {
        const struct command *command = &plan->commands[i];
        const bool kernel = command->kind == COMMAND_KERNEL;
        const char *layer = kernel ? layer_of(plan, plan->launches.launches[command->number].node) : "-";
        if (kernel && !strcmp(layer, last)) continue;
        last = layer;
        if (kernel)
            text_append(text, "kernel %s", layer);
        else
            command_print(plan, command, text);
        text_append(text, "\n");
    }
}

static tutti_tensor two_buckets(tutti_network *net)
{
    tutti_tensor x = tutti_input(net, "x", TUTTI_SHAPE(3, 8, 8));
    x = tutti_conv2d(net, x, 16, 3, &(tutti_conv2d_options) { .name = "conv", .padding = 1, .no_bias = true });
    x = tutti_relu(net, tutti_batch_norm(net, x, &(tutti_batch_norm_options) { .name = "bn" }));
    x = tutti_flatten(net, x);
    x = tutti_dense(net, x, 2048, &(tutti_dense_options) { .name = "wide" });
    return tutti_dense(net, x, 10, &(tutti_dense_options) { .name = "fc" });
}

START_TEST(commands_as_text)
{
    make_device(DEVICE_CPU, (size_t)1 << 30);
    tutti_network *network = tutti_network_new(&runtime);
    struct plan *plan = list_commands(network, two_buckets(network), PLAN_TRAIN);
    struct text text = { 0 };
    print_layers(plan, &text);
    ck_assert_str_eq(text.data,
        "copy     feed x to the device: 3.0 KiB\n"
        "copy     feed targets to the device: 16 bytes\n"
        "copy     constants of the step to the device: 64 bytes\n"
        "marker   samples and constants are on the device\n"
        "piece    parameters conv.weight to wide.bias: 8.0 MiB\n"
        "kernel conv\n"
        "piece    parameters fc.weight to fc.bias: 81.0 KiB\n"
        "piece    parameters bn.running_mean to bn.running_var: 2.0 KiB\n"
        "kernel bn\n"
        "sync     moments of 16 channels over all devices\n"
        "kernel bn\n"
        "bucket   0: 2.0 KiB of gradients, bn.running_mean to bn.running_var\n"
        "kernel flatten_3\n"
        "kernel wide\n"
        "kernel fc\n"
        "kernel \n" /* the loss */
        "kernel fc\n"
        "kernel wide\n"
        "bucket   1: 8.1 MiB of gradients, wide.weight to fc.bias\n"
        "kernel bn\n"
        "sync     sums of 16 channels over all devices\n"
        "kernel bn\n"
        "kernel conv\n"
        "bucket   2: 4.0 KiB of gradients, conv.weight to bn.bias\n"
        "copy     metrics on the device: 8 bytes\n");
    text_free(&text);
    commands_print(plan, &text);
    ck_assert_ptr_nonnull(strstr(text.data, "kernel   cross_entropy                  1x1x1   "));
    ck_assert_ptr_nonnull(strstr(text.data, " GRADIENT=1 "));
    text_free(&text);
    plan_free(plan);
    tutti_network_free(network);
}
END_TEST

/* Whether a command of this kind before `end`, or from there on, has the parameter in its range. */
static bool is_covered(
    const struct plan *plan, enum command_kind kind, size_t begin, size_t end, const struct parameter *p)
{
    for (size_t i = begin; i < end; i++) {
        const struct command *command = &plan->commands[i];
        if (command->kind == kind && p->offset >= command->first && p->offset < command->first + command->count)
            return true;
    }
    return false;
}

/* What a launch reads is needed before it, what it writes is ready after it. */
static void check_launch(const struct plan *plan, size_t position)
{
    const struct node *node = &plan->graph.nodes[plan->launches.launches[plan->commands[position].number].node];
    for (int i = 0; i < node->input_count; i++) {
        const struct value *value = graph_at(&plan->graph, node->inputs[i]);
        if (!value || value->role != ROLE_PARAMETER) continue;
        const struct parameter *p = &plan->network->parameters[value->parameter];
        ck_assert(is_covered(plan, COMMAND_PIECE, 0, position, p));
        ck_assert(is_covered(plan, COMMAND_BUCKET, position, plan->command_count, p));
    }
    for (int i = 0; i < node->output_count; i++) {
        const struct value *value = graph_at(&plan->graph, node->outputs[i]);
        if (!value || value->gradient_of < 0) continue;
        ck_assert(is_covered(
            plan, COMMAND_BUCKET, position, plan->command_count, &plan->network->parameters[value->gradient_of]));
    }
}

START_TEST(commands_are_in_order)
{
    make_device(_i ? DEVICE_GPU : DEVICE_CPU, (size_t)1 << 30);
    tutti_network *network = tutti_network_new(&runtime);
    struct plan *plan = list_commands(network, residual(network), PLAN_TRAIN);
    size_t counts[COMMAND_KINDS] = { 0 };
    for (size_t i = 0; i < plan->command_count; i++) {
        const struct command *command = &plan->commands[i];
        ck_assert_uint_eq(command->number, counts[command->kind]++);
        if (command->kind == COMMAND_KERNEL) check_launch(plan, i);
        if (command->kind == COMMAND_SYNC)
            ck_assert_uint_eq(plan->launches.sync_points[command->number].before, counts[COMMAND_KERNEL]);
    }
    ck_assert_uint_eq(counts[COMMAND_KERNEL], plan->launches.count);
    ck_assert_uint_eq(counts[COMMAND_SYNC], 6); /* of three layers, forward and backward */
    ck_assert_uint_eq(counts[COMMAND_PREPARE], 0);
    plan_free(plan);
    tutti_network_free(network);
}
END_TEST

START_TEST(inference_copies_and_launches)
{
    make_device(DEVICE_CPU, (size_t)1 << 30);
    tutti_network *network = tutti_network_new(&runtime);
    struct plan *plan = list_commands(network, two_buckets(network), PLAN_INFER);
    /* Only memory, which this plan lacks, tells that no launch reads the constants. */
    const enum command_kind first[] = { COMMAND_FEED, COMMAND_CONSTANTS, COMMAND_COPIES_DONE };
    ck_assert_uint_eq(plan->command_count, plan->launches.count + 4);
    for (size_t i = 0; i < plan->launches.count + 3; i++)
        ck_assert_int_eq(plan->commands[i].kind, i < 3 ? first[i] : COMMAND_KERNEL);
    ck_assert_int_eq(plan->commands[plan->launches.count + 3].kind, COMMAND_OUTPUT);
    plan_free(plan);
    tutti_network_free(network);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("commands");
    TCase *cases = tcase_create("commands");
    tcase_add_checked_fixture(cases, NULL, free_device);
    tcase_add_test(cases, commands_as_text);
    tcase_add_loop_test(cases, commands_are_in_order, 0, 2);
    tcase_add_test(cases, inference_copies_and_launches);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
