/* The passes of plan/ without a device: gradients appended, fusions made, memory given out. Networks are built with the
 * public builder over a runtime that holds one made-up device. */
#include "tests/plan/made.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "layers/layers.h"
#include "layers/loop.h"
#include "models/models.h"
#include "plan/node.h"
#include "plan/pipeline.h"
#include "plan/plan.h"
#include "runtime/check.h"
#include "runtime/store.h"
#include "runtime/tuning.h"

static int count(const struct graph *graph, const struct operation *operation)
{
    int found = 0;
    for (size_t n = 0; n < graph->node_count; n++) found += graph->nodes[n].operation == operation;
    return found;
}

/* ------------------------------------------------------------------------------------------------ memory ---- */

/* A replay of the plan on a memory of tags: every 64 bytes hold the number of the value that was written there last.
 * A node that finds another value than its input has been robbed of it. */
struct replay {
    const struct made *made;
    int **tags;
    int *same; /* per value: the one whose content it is (reshapes) */
};

enum { GRAIN = 64, SCRATCH = -2 };

static const struct memory_slot *slot_of(const struct replay *r, int value)
{
    while (r->made->memory.slots[value].kind == SLOT_ALIAS) value = r->made->memory.slots[value].alias;
    return &r->made->memory.slots[value];
}

static void write_tags(struct replay *r, const struct memory_slot *slot, size_t bytes, int tag)
{
    if (slot->kind != SLOT_ARENA) return;
    ck_assert_uint_le(slot->place.offset + bytes, r->made->memory.slabs[slot->place.slab]);
    ck_assert_uint_eq(slot->place.offset % device.can.alignment, 0);
    for (size_t at = slot->place.offset / GRAIN; at * GRAIN < slot->place.offset + bytes; at++)
        r->tags[slot->place.slab][at] = tag;
}

static void check_tags(struct replay *r, int value, size_t node)
{
    const struct memory_slot *slot = value == NO_VALUE ? NULL : slot_of(r, value);
    if (!slot || slot->kind != SLOT_ARENA) return;
    for (size_t at = slot->place.offset / GRAIN; at * GRAIN < slot->place.offset + slot->bytes; at++)
        ck_assert_msg(r->tags[slot->place.slab][at] == r->same[value],
            "node %zu (%s) reads value %d, over which %d was written", node,
            r->made->plan->graph.nodes[node].operation->name, value, r->tags[slot->place.slab][at]);
}

static void replay_node(struct replay *r, size_t n)
{
    const struct node *node = &r->made->plan->graph.nodes[n];
    const struct memory_plan *memory = &r->made->memory;
    if (node->operation->alias) {
        r->same[node->outputs[0]] = r->same[node->inputs[0]];
        return;
    }
    write_tags(r, &memory->workspace, memory->workspace.bytes, SCRATCH);
    write_tags(r, &memory->prepared[n], memory->prepared[n].bytes, SCRATCH);
    for (int i = 0; i < node->input_count; i++) check_tags(r, node->inputs[i], n);
    check_tags(r, node_added(node), n);
    for (int i = 0; i < node->output_count; i++)
        if (node->outputs[i] != NO_VALUE)
            write_tags(r, slot_of(r, node->outputs[i]), slot_of(r, node->outputs[i])->bytes, node->outputs[i]);
    for (int i = 0; i < node->output_count; i++) check_tags(r, node->outputs[i], n);
}

static void replay(const struct made *made)
{
    const struct graph *graph = &made->plan->graph;
    struct replay r = { .made = made,
        .tags = calloc((size_t)made->memory.slab_count + 1, sizeof *r.tags),
        .same = calloc(graph->value_count, sizeof *r.same) };
    for (int s = 0; s < made->memory.slab_count; s++) {
        ck_assert_uint_le(made->memory.slabs[s], device.can.allocation_max);
        r.tags[s] = calloc(made->memory.slabs[s] / GRAIN + 1, sizeof **r.tags);
    }
    for (size_t v = 0; v < graph->value_count; v++) {
        r.same[v] = (int)v;
        if (graph->values[v].role != ROLE_TEMPORARY)
            write_tags(&r, slot_of(&r, (int)v), slot_of(&r, (int)v)->bytes, (int)v);
    }
    for (size_t n = 0; n < graph->node_count; n++) replay_node(&r, n);
    for (size_t v = 0; v < graph->value_count; v++)
        if (graph->values[v].output) check_tags(&r, (int)v, graph->node_count - 1);
    for (int s = 0; s < made->memory.slab_count; s++) free(r.tags[s]);
    free(r.tags);
    free(r.same);
}

static const struct {
    enum device_class class;
    enum plan_mode mode;
    size_t allocation_max;
} memory_cases[] = {
    { DEVICE_CPU, PLAN_TRAIN, (size_t)1 << 30 }, { DEVICE_GPU, PLAN_TRAIN, (size_t)1 << 30 },
    { DEVICE_CPU, PLAN_INFER, (size_t)1 << 30 }, { DEVICE_CPU, PLAN_EVALUATE, (size_t)1 << 30 },
    { DEVICE_CPU, PLAN_TRAIN, 200 << 10 }, /* several slabs */
};

START_TEST(memory_is_nobody_elses)
{
    make_device(memory_cases[_i].class, memory_cases[_i].allocation_max);
    struct made made;
    make(&made, memory_cases[_i].mode, residual);
    replay(&made);
    if (memory_cases[_i].allocation_max < 1 << 20) ck_assert_int_gt(made.memory.slab_count, 1);
    drop(&made);
}
END_TEST

START_TEST(memory_too_large_is_refused)
{
    struct made made;
    make_device(DEVICE_CPU, (size_t)1 << 30);
    make(&made, PLAN_TRAIN, residual);
    memory_plan_free(&made.memory);
    device.can.allocation_max = 4 << 10;
    ck_assert_int_eq(pass_memory(made.plan, &made.memory), TUTTI_DEVICE_MEMORY);
    ck_assert_ptr_nonnull(strstr(tutti_message(NULL), "lower the batch"));
    drop(&made);
}
END_TEST

/* ----------------------------------------------------------------------------------------------- fusions ---- */

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

static tutti_tensor perceptron(tutti_network *net)
{
    tutti_tensor x = tutti_input(net, "x", TUTTI_SHAPE(8, 24)); /* 8 rows of a sample: more than skinny products take */
    x = tutti_relu(net, tutti_dense(net, x, 64, &(tutti_dense_options) { .name = "fc1" }));
    x = tutti_relu(net, tutti_dense(net, x, 48, &(tutti_dense_options) { .name = "fc2" }));
    return tutti_flatten(net, tutti_dense(net, x, 10, &(tutti_dense_options) { .name = "fc3" }));
}

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

/* Pooled twice, the second time beside another use of what is pooled. */
static tutti_tensor pooled(tutti_network *net)
{
    tutti_tensor x = tutti_input(net, "x", TUTTI_SHAPE(3, 12, 12));
    x = tutti_relu(net, tutti_conv2d(net, x, 20, 3, &(tutti_conv2d_options) { .name = "conv1", .padding = 1 }));
    x = tutti_max_pool(net, x, 2, NULL);
    x = tutti_relu(net, tutti_conv2d(net, x, 20, 3, &(tutti_conv2d_options) { .name = "conv2", .padding = 1 }));
    tutti_tensor y = tutti_max_pool(net, x, 3, &(tutti_pool_options) { .stride = 1, .padding = 1 });
    x = tutti_flatten(net, tutti_add(net, x, y));
    return tutti_dense(net, x, 10, &(tutti_dense_options) { .name = "fc" });
}

/* What the gradient of a layer's bias sums, and where the gradient of its activation is taken: masked, by the data
 * gradient before it. */
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
        ck_assert_int_eq(mask ? mask->function.activation : factor->attributes.activation, ACTIVATION_RELU);
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

static tutti_tensor separable(tutti_network *net)
{
    tutti_tensor x = tutti_input(net, "x", TUTTI_SHAPE(8, 12, 12));
    x = tutti_conv2d(net, x, 20, 3, &(tutti_conv2d_options) { .name = "stem", .padding = 1, .no_bias = true });
    x = tutti_conv2d(net, x, 24, 1, &(tutti_conv2d_options) { .name = "wide", .no_bias = true });
    tutti_tensor other = tutti_batch_norm(net, x, &(tutti_batch_norm_options) { .name = "other" });
    x = tutti_relu(net, tutti_batch_norm(net, x, &(tutti_batch_norm_options) { .name = "bn0" }));
    x = tutti_conv2d(
        net, x, 24, 3, &(tutti_conv2d_options) { .name = "apart", .padding = 1, .groups = 24, .no_bias = true });
    x = tutti_add(net, tutti_batch_norm(net, x, &(tutti_batch_norm_options) { .name = "bn1" }), other);
    return tutti_flatten(net, tutti_global_average_pool(net, x));
}

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

/* Whether the only node of this operation in layer "apart" normalises what bn0 is of, which itself makes nothing of it.
 */
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

/* The type of the first output of the only node with this operation in this layer. */
static enum value_type stored(const struct made *made, const struct operation *operation, const char *layer)
{
    const struct graph *graph = &made->plan->graph;
    const struct node *found = NULL;
    for (size_t n = 0; n < graph->node_count; n++) {
        const struct node *node = &graph->nodes[n];
        if (node->operation != operation || strcmp(made->network->layers[node->layer].name, layer)) continue;
        ck_assert_ptr_null(found);
        found = node;
    }
    ck_assert_ptr_nonnull(found);
    return graph_at(graph, found->outputs[0])->type;
}

static size_t arena(const struct made *made)
{
    size_t bytes = 0;
    for (int i = 0; i < made->memory.slab_count; i++) bytes += made->memory.slabs[i];
    return bytes;
}

/* Whether memory slots a and b have something in one slab. */
static bool share_slab(const struct memory_slot *a, const struct memory_slot *b)
{
    return a->kind == SLOT_ARENA && b->kind == SLOT_ARENA && a->place.slab == b->place.slab;
}

START_TEST(values_on_gpus_take_whole_slabs)
{
    struct made made;
    make_device(DEVICE_GPU, (size_t)1 << 30);
    make(&made, PLAN_TRAIN, residual);
    const struct graph *graph = &made.plan->graph;
    const struct memory_slot *slots = made.memory.slots;
    int inputs = 0, in_turns = 0;
    for (size_t v = 0; v < graph->value_count; v++) {
        if (slots[v].kind == SLOT_ARENA) ck_assert_uint_eq(slots[v].place.offset, 0);
        for (size_t w = 0; w < v; w++) {
            if (!share_slab(&slots[v], &slots[w])) continue;
            /* Steps find the arguments that are inputs by their buffers. */
            ck_assert_int_ne(graph->values[v].role, ROLE_INPUT);
            ck_assert_int_ne(graph->values[w].role, ROLE_INPUT);
            in_turns++;
        }
        inputs += graph->values[v].role == ROLE_INPUT && slots[v].kind == SLOT_ARENA;
    }
    ck_assert_int_gt(inputs, 0);
    ck_assert_int_gt(in_turns, 0);
    drop(&made);
    make_device(DEVICE_CPU, (size_t)1 << 30); /* one slab, in parts */
    make(&made, PLAN_TRAIN, residual);
    ck_assert_int_eq(made.memory.slab_count, 1);
    drop(&made);
}
END_TEST

START_TEST(values_between_kernels_that_can_are_bf16)
{
    struct made made;
    make_device(DEVICE_CPU, (size_t)1 << 30);
    make(&made, PLAN_TRAIN, separable);
    for (size_t v = 0; v < made.plan->graph.value_count; v++)
        ck_assert_int_ne(made.plan->graph.values[v].type, TYPE_BF16);
    size_t floats = arena(&made);
    drop(&made);
    bf16 = true;
    make(&made, PLAN_TRAIN, separable);
    /* The stem's convolution makes floats, and its weight gradient reads them; the mean is what a dense layer would
     * read.
     */
    ck_assert_int_eq(stored(&made, &operation_conv2d, "stem"), TYPE_F32);
    ck_assert_int_eq(stored(&made, &operation_conv2d, "wide"), TYPE_BF16);
    ck_assert_int_eq(stored(&made, &operation_conv2d, "apart"), TYPE_BF16);
    ck_assert_int_eq(stored(&made, &operation_batch_norm, "other"), TYPE_BF16);
    ck_assert_int_eq(stored(&made, &operation_batch_norm_gradient, "bn0"), TYPE_BF16);
    ck_assert_int_eq(stored(&made, &operation_conv2d_data_gradient, "apart"), TYPE_BF16);
    ck_assert_int_eq(stored(&made, &operation_conv2d_data_gradient, "wide"), TYPE_F32);
    ck_assert_int_eq(stored(&made, &operation_conv2d_weight_gradient, "wide"), TYPE_F32);
    for (size_t v = 0; v < made.plan->graph.value_count; v++)
        if (!value_has_layouts(&made.plan->graph.values[v]))
            ck_assert_int_ne(made.plan->graph.values[v].type, TYPE_BF16); /* statistics, features */
    ck_assert_uint_lt(arena(&made), floats * 3 / 4);
    replay(&made);
    drop(&made);
}
END_TEST

START_TEST(kernels_that_cannot_keep_floats)
{
    struct made made;
    make_device(DEVICE_GPU, (size_t)1 << 30);
    bf16 = true;
    make(&made, PLAN_TRAIN, separable);
    for (size_t v = 0; v < made.plan->graph.value_count; v++)
        ck_assert_int_ne(made.plan->graph.values[v].type, TYPE_BF16);
    drop(&made);
    make_device(DEVICE_CPU, (size_t)1 << 30);
    bf16 = true;
    blacklist_add(&device, "conv2d/depthwise/bf16", "wrong"); /* its kernels for floats are right */
    make(&made, PLAN_TRAIN, separable);
    ck_assert_int_eq(stored(&made, &operation_conv2d, "wide"), TYPE_F32); /* which the next one normalises itself */
    ck_assert_int_eq(stored(&made, &operation_conv2d, "apart"), TYPE_F32);
    ck_assert_int_eq(stored(&made, &operation_batch_norm, "other"), TYPE_BF16);
    drop(&made);
}
END_TEST

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
    node->output_count = 1;
    return TUTTI_OK;
}

static tutti_status faulty_gradient(
    struct graph *graph, const struct node *node, const int *output_gradients, const bool *wanted, int *input_gradients)
{
    (void)graph;
    (void)node;
    if (wanted[1]) input_gradients[1] = output_gradients[0];
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
    const tutti_tensor output =
        network_append(network, layer, &faulty, &(struct attributes) { .epsilon = 1 }, inputs, 2);
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
        const unsigned of_inputs = PORT_OPTIONAL | PORT_REPEATED | PORT_ANY_TYPE | PORT_ZERO_IN_TRIALS;
        ck_assert_int_gt(count_ports(*o, (*o)->inputs, GRAPH_MAX_INPUTS, of_inputs), 0);
        ck_assert_int_gt(count_ports(*o, (*o)->outputs, GRAPH_MAX_OUTPUTS, PORT_OWN), 0);
    }
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
    ck_assert_int_eq(node_fusion(&node, FUSION_NORMALISED)->input, 3); /* behind the bias, which is absent */
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

/* ------------------------------------------------------------------------------------------------ errors ---- */

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

/* Between convolutions one of `groups` groups; of 20 it is one of each channel. */
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

/* For which there is no form with channels last. */
static tutti_tensor with_pairs(tutti_network *net)
{
    return with_groups(net, 10);
}

/* Nodes of a training plan that run by an implementation of this name. */
static int count_chosen(tutti_tensor (*build)(tutti_network *), tutti_precision precision, const char *name)
{
    int count = 0;
    tutti_network *network = tutti_network_new(&runtime);
    const tutti_tensor output = build(network);
    ck_assert_int_eq(network_layout(network), TUTTI_OK);
    const struct plan_options options = { .mode = PLAN_TRAIN,
        .sizes.samples = 5,
        .objective = objective_of(output, TUTTI_CROSS_ENTROPY),
        .precision = precision,
        .guards = true };
    struct plan *plan = plan_start(&device, network, &options);
    ck_assert_ptr_nonnull(plan);
    ck_assert_msg(plan_run_passes(plan) == TUTTI_OK, "%s", tutti_message(NULL));
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
    ck_assert_int_eq(count_chosen(residual, TUTTI_BF16, "tiles"), 2);         /* before and behind the dense layers */
    ck_assert_int_eq(count_chosen(residual, TUTTI_FP32, "channels_last"), 0);
    ck_assert_int_eq(count_chosen(with_depthwise, TUTTI_BF16, "channels_last"), 5);
    ck_assert_int_eq(count_chosen(with_depthwise, TUTTI_BF16, "depthwise_channels_last"), 6);
    ck_assert_int_eq(count_chosen(with_depthwise, TUTTI_BF16, "tiles"), 0);
    ck_assert_int_eq(count_chosen(with_pairs, TUTTI_BF16, "channels_last"), 0);
    ck_assert_int_eq(count_chosen(with_pairs, TUTTI_BF16, "tiles"), 0);
    ck_assert_int_eq(count_chosen(with_pairs, TUTTI_BF16, "implicit_gemm_matrix"), 11);
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

static tutti_tensor resnet50(tutti_network *net)
{
    return model_resnet50(net, tutti_input(net, "x", TUTTI_SHAPE(3, 224, 224)), 1000);
}

enum { DESIGN_NAME = PROBLEM_NAME + IMPLEMENTATION_KEY + 80 };

/* Of the node's implementation, which has a design, on its problem, in words. */
static void name_design(const struct plan *plan, const struct node *node, char name[DESIGN_NAME])
{
    const struct implementation *implementation = node->operation->implementations[node->implementation];
    struct problem problem;
    char key[IMPLEMENTATION_KEY];
    problem_of(plan, node, &problem);
    problem_name(&problem, name);
    implementation_key(node->operation, implementation, false, key);
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

/* One for each problem and implementation, though rewriting asks for some of them before the last pass does. */
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
    ck_assert_uint_eq(plan->design_count, count); /* as often was a function that designs called */
    ck_assert_uint_gt(nodes, 2 * count);
    drop(&made);
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

int main(void)
{
    Suite *suite = suite_create("plan");
    TCase *cases = tcase_create("plan");
    tcase_add_checked_fixture(cases, NULL, forget_device);
    tcase_add_loop_test(cases, memory_is_nobody_elses, 0, (int)(sizeof memory_cases / sizeof *memory_cases));
    tcase_add_test(cases, memory_too_large_is_refused);
    tcase_add_test(cases, training_fuses);
    tcase_add_test(cases, chains_are_one_kernel);
    tcase_add_test(cases, products_take_what_surrounds_them);
    tcase_add_test(cases, gradients_of_activations_come_before_pooling);
    tcase_add_test(cases, depthwise_convolutions_normalise_what_they_load);
    tcase_add_test(cases, statistics_are_made_where_the_input_is_made);
    tcase_add_test(cases, values_between_kernels_that_can_are_bf16);
    tcase_add_test(cases, kernels_that_cannot_keep_floats);
    tcase_add_test(cases, every_parameter_has_one_gradient);
    tcase_add_test(cases, gradients_of_other_shapes_are_refused);
    tcase_add_test(cases, inputs_are_checked_by_their_ports);
    tcase_add_test(cases, values_on_gpus_take_whole_slabs);
    tcase_add_test(cases, every_operation_names_its_ports);
    tcase_add_test(cases, fusions_are_listed_in_the_order_of_execution);
    tcase_add_test(cases, implementations_say_what_they_fuse);
    tcase_add_test(cases, inference_folds);
    tcase_add_test(cases, cross_entropy_wants_logits);
    tcase_add_test(cases, channels_are_last_where_that_pays);
    tcase_add_test(cases, a_forced_implementation_that_refuses_is_an_error);
    tcase_add_test(cases, what_was_measured_decides);
    tcase_add_test(cases, what_the_rule_passes_over_a_table_may_choose);
    tcase_add_test(cases, builder_errors_name_the_layer);
    tcase_add_test(cases, batches_that_overflow_are_refused);
    tcase_add_loop_test(cases, nothing_is_designed_twice, 0, 2);
    tcase_add_test(cases, printing_names_nodes);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
