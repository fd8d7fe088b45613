/* Graphs: gradients, ports of operations, what is refused with which message, and graphs as text. */
#include "tests/plan/test_plan.h"

#include <string.h>

#include "base/text.h"
#include "layers/layers.h"
#include "plan/plan.h"

START_TEST(every_parameter_has_one_gradient)
{
    make_device(DEVICE_GPU, (size_t)1 << 30);
    struct made made;
    make(&made, PLAN_TRAIN, residual);
    for (size_t p = 0; p < made.network->parameter_count; p++) {
        int found = 0;
        for (size_t v = 0; v < made.plan->graph.value_count; v++) {
            const struct value *value = &made.plan->graph.values[v];
            if (value->gradient_of != (int)p || !(value->producer >= 0)) continue;
            found++;
            ck_assert_int_eq(made.memory.slots[v].kind, SLOT_GRADIENT);
            ck_assert_int_eq(value_elements(value), made.network->parameters[p].elements);
        }
        ck_assert_msg(found == 1, "%s has %d gradients", made.network->parameters[p].name, found);
    }
    drop(&made);
}
END_TEST

/* An operation whose gradient by its second input, a parameter, has the shape of its first. */
static tutti_status faulty_infer(const struct graph *graph, struct node *node, struct value *outputs)
{
    outputs[0] = *graph_at(graph, node->inputs[0]);
    return TUTTI_OK;
}

static tutti_status faulty_gradient(struct graph *graph, const struct node *node, const struct node_gradients *g)
{
    (void)graph;
    (void)node;
    if (g->wanted[1]) g->inputs[1] = g->outputs[0];
    return TUTTI_OK;
}

static const struct operation faulty = {
    .name = "faulty",
    .inputs = { { "x" }, { "w" }, { "other", PORT_OPTIONAL } },
    .outputs = { { "y" } },
    .infer = faulty_infer,
    .gradient = faulty_gradient,
};

START_TEST(gradients_of_other_shapes_are_refused)
{
    make_device(DEVICE_CPU, (size_t)1 << 30);
    tutti_network *network = tutti_network_new(&runtime);
    int inputs[2] = { tutti_input(network, "x", TUTTI_SHAPE(3)).id };
    const int layer = network_layer_begin(network, NULL, "faulty");
    inputs[1] = network_parameter(network, layer, "weight", TUTTI_SHAPE(3), &(struct parameter) { 0 });
    const tutti_tensor output = network_append(network, layer, &faulty, NULL, inputs, 2);
    struct plan_options options = {
        .mode = PLAN_TRAIN, .sizes.samples = 2, .objective = objective_of(output, TUTTI_MSE)
    };
    size_t bytes;
    ck_assert_msg(tutti_network_status(network) == TUTTI_OK, "%s", tutti_message(NULL));
    ck_assert_int_eq(network_layout(network), TUTTI_OK);
    ck_assert_int_eq(plan_measure(&device, network, &options, &bytes), TUTTI_INTERNAL);
    ck_assert_msg(strstr(tutti_message(NULL), "faulty_0.weight"), "%s", tutti_message(NULL));
    tutti_network_free(network);
}
END_TEST

/* What graph_append() says of these inputs of `faulty`; graph_validate() says the same of a node that has them. */
static void check_inputs(int input_count, const int *inputs, const char *expected)
{
    struct graph graph;
    graph_init(&graph);
    const int x = graph_value(&graph, ROLE_INPUT, TYPE_F32, TUTTI_SHAPE(3), false, "x");
    ck_assert_int_eq(x, 0);
    ck_assert_int_eq(graph_value(&graph, ROLE_INPUT, TYPE_I32, TUTTI_SHAPE(3), false, "ids"), 1);
    const int made = graph_append(&graph, &faulty, NULL, inputs, input_count, -1);
    ck_assert_int_eq(made == NO_VALUE, expected != NULL);
    if (expected)
        ck_assert_msg(strstr(tutti_message(NULL), expected), "%s", tutti_message(NULL));
    else
        ck_assert_int_eq(graph_validate(&graph), TUTTI_OK);
    graph_free(&graph);
}

START_TEST(inputs_are_checked_by_their_ports)
{
    check_inputs(2, (int[]) { 0, 0 }, NULL);
    check_inputs(3, (int[]) { 0, 0, 0 }, NULL);
    check_inputs(3, (int[]) { 0, 0, NO_VALUE }, NULL);
    check_inputs(1, (int[]) { 0 }, "faulty: it got no input 'w', which it needs");
    check_inputs(2, (int[]) { NO_VALUE, 0 }, "faulty: it got no input 'x', which it needs");
    check_inputs(4, (int[]) { 0, 0, 0, 0 }, "faulty: it got 4 inputs: it takes 3");
    check_inputs(2, (int[]) { 0, 1 }, "faulty: input 1 (w) is not float32");
}
END_TEST

static int count_ports(const struct operation *operation, const struct port *ports, int most, unsigned possible)
{
    int named = 0;
    while (named < most && ports[named].name) named++;
    for (int i = 0; i < most; i++) {
        ck_assert_msg(!(ports[i].flags & ~possible), "%s: flags of port %d", operation->name, i);
        ck_assert_msg((i < named) == (ports[i].name != NULL), "%s: port %d has no name", operation->name, named);
        for (int k = 0; k < i && i < named; k++)
            ck_assert_msg(strcmp(ports[i].name, ports[k].name), "%s: two ports %s", operation->name, ports[i].name);
        if (ports[i].flags & PORT_REPEATED) ck_assert_int_eq(i, named - 1);
    }
    return named;
}

START_TEST(every_operation_names_its_ports)
{
    for (const struct operation *const *o = operations; *o; o++) {
        const unsigned of_inputs =
            PORT_OPTIONAL | PORT_REPEATED | PORT_ANY_TYPE | PORT_ZERO_IN_TRIALS | PORT_SMALL_IN_TRIALS | PORT_INDEX;
        ck_assert_int_gt(count_ports(*o, (*o)->inputs, GRAPH_MAX_INPUTS, of_inputs), 0);
        ck_assert_int_gt(count_ports(*o, (*o)->outputs, GRAPH_MAX_OUTPUTS, PORT_OWN), 0);
    }
}
END_TEST

static tutti_tensor three_dimensions(tutti_network *net)
{
    return tutti_input(net, "x", TUTTI_SHAPE(3, 4, 4));
}

START_TEST(cross_entropy_wants_logits)
{
    make_device(DEVICE_CPU, (size_t)1 << 30);
    tutti_network *network = tutti_network_new(&runtime);
    tutti_tensor output = three_dimensions(network);
    struct plan_options options = {
        .mode = PLAN_TRAIN, .sizes.samples = 2, .objective = objective_of(output, TUTTI_CROSS_ENTROPY)
    };
    size_t bytes;
    ck_assert_int_eq(network_layout(network), TUTTI_OK);
    ck_assert_int_eq(plan_measure(&device, network, &options, &bytes), TUTTI_SHAPE);
    ck_assert_ptr_nonnull(strstr(tutti_message(NULL), "flatten"));
    tutti_network_free(network);
}
END_TEST

START_TEST(builder_errors_name_the_layer)
{
    make_device(DEVICE_CPU, (size_t)1 << 30);
    tutti_network *network = tutti_network_new(&runtime);
    tutti_tensor x = tutti_input(network, "x", TUTTI_SHAPE(3, 4, 4));
    tutti_scope_push(network, "block");
    x = tutti_conv2d(network, x, 8, 7, &(tutti_conv2d_options) { .name = "wide" });
    x = tutti_relu(network, x); /* does nothing: the first error is kept */
    ck_assert_int_lt(x.id, 0);
    ck_assert_int_eq(tutti_network_status(network), TUTTI_SHAPE);
    ck_assert_ptr_nonnull(strstr(tutti_message(NULL), "block.wide"));
    tutti_network_free(network);
}
END_TEST

/* Sizes that fit with one sample, and not with all. */
START_TEST(batches_that_overflow_are_refused)
{
    struct graph graph;
    make_device(DEVICE_CPU, (size_t)1 << 30);
    tutti_network *network = tutti_network_new(&runtime);
    tutti_relu(network, tutti_input(network, "x", TUTTI_SHAPE(1 << 20, 1 << 20)));
    ck_assert_int_eq(tutti_network_status(network), TUTTI_OK);
    ck_assert_int_eq(graph_bind(&network->graph, (struct bound_sizes) { 256, 0 }, &graph), TUTTI_OK);
    graph_free(&graph);
    ck_assert_int_eq(graph_bind(&network->graph, (struct bound_sizes) { 257, 0 }, &graph), TUTTI_SHAPE);
    ck_assert_ptr_nonnull(strstr(tutti_message(NULL), "with this batch, a value would have the shape [257, 1048576, "));
    ck_assert_int_eq(graph_bind(&network->graph, (struct bound_sizes) { INT64_MAX, 0 }, &graph), TUTTI_SHAPE);
    ck_assert_int_eq(graph_bind(&network->graph, (struct bound_sizes) { 0, 0 }, &graph), TUTTI_INVALID);
    tutti_network_free(network);
}
END_TEST

START_TEST(printing_names_nodes)
{
    make_device(DEVICE_CPU, (size_t)1 << 30);
    struct made made;
    make(&made, PLAN_TRAIN, residual);
    struct text text = { 0 };
    graph_print(&made.plan->graph, &text);
    ck_assert_ptr_nonnull(strstr(text.data, "conv2d_weight_gradient"));
    ck_assert_ptr_nonnull(strstr(text.data, "batch_norm + given + relu x=%"));
    ck_assert_ptr_nonnull(strstr(text.data, " conv2d + statistics x=%"));
    ck_assert_ptr_nonnull(strstr(text.data, ":conv1.weight["));
    ck_assert_ptr_nonnull(strstr(text.data, "-> y=%"));
    text_free(&text);
    drop(&made);
}
END_TEST

void add_graph(TCase *cases)
{
    tcase_add_test(cases, every_parameter_has_one_gradient);
    tcase_add_test(cases, gradients_of_other_shapes_are_refused);
    tcase_add_test(cases, inputs_are_checked_by_their_ports);
    tcase_add_test(cases, every_operation_names_its_ports);
    tcase_add_test(cases, cross_entropy_wants_logits);
    tcase_add_test(cases, builder_errors_name_the_layer);
    tcase_add_test(cases, batches_that_overflow_are_refused);
    tcase_add_test(cases, printing_names_nodes);
}
