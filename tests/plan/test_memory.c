/* Memory: no value is overwritten while it is needed, slabs have their limits. */
#include "tests/plan/test_plan.h"

#include <stdlib.h>
#include <string.h>

#include "plan/node.h"
#include "plan/plan.h"

/* A replay of the plan on a memory of tags: every 64 bytes hold the number of the value that was written there last.
 * If a node finds another value in place of its input, the input was overwritten too early. */
struct replay {
    const struct made *made;
    int **tags;
    int *sent; /* per value: the one written last to its slot, if it is the gradient of a parameter */
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
    if (slot->kind == SLOT_GRADIENT) r->sent[slot - r->made->memory.slots] = tag;
    if (slot->kind != SLOT_ARENA) return;
    ck_assert_uint_le(slot->position.offset + bytes, r->made->memory.slabs[slot->position.slab]);
    ck_assert_uint_eq(slot->position.offset % device.can.alignment, 0);
    for (size_t at = slot->position.offset / GRAIN; at * GRAIN < slot->position.offset + bytes; at++)
        r->tags[slot->position.slab][at] = tag;
}

static void check_tags(struct replay *r, int value, size_t node)
{
    const struct memory_slot *slot = value == NO_VALUE ? NULL : slot_of(r, value);
    if (slot && slot->kind == SLOT_GRADIENT)
        ck_assert_msg(r->sent[slot - r->made->memory.slots] == r->same[value],
            "node %zu reads value %d, over which a gradient was written", node, value);
    if (!slot || slot->kind != SLOT_ARENA) return;
    for (size_t at = slot->position.offset / GRAIN; at * GRAIN < slot->position.offset + slot->bytes; at++)
        ck_assert_msg(r->tags[slot->position.slab][at] == r->same[value],
            "node %zu (%s) reads value %d, over which %d was written", node,
            r->made->plan->graph.nodes[node].operation->name, value, r->tags[slot->position.slab][at]);
}

/* Checks a node that writes its first output over an input: it allows that for each input that lies there, and not
 * over the gradient of a parameter, because it may be on its way to the host. */
static void check_in_place(const struct replay *r, const struct node *node)
{
    const struct plan *plan = r->made->plan;
    const int out = node->outputs[0];
    struct problem problem;
    problem_of(plan, node, &problem);
    if (out != NO_VALUE && slot_of(r, out)->kind == SLOT_GRADIENT) {
        const int last = r->sent[slot_of(r, out) - r->made->memory.slots];
        ck_assert(last == NO_VALUE || plan->graph.values[last].gradient_of < 0);
    }
    for (int i = 0; out != NO_VALUE && i < node->input_count; i++)
        if (node->inputs[i] != NO_VALUE && slot_of(r, node->inputs[i]) == slot_of(r, out))
            ck_assert_msg(node->operation->implementations[node->implementation]->in_place(&problem, i),
                "%s writes over its input %d", node->operation->name, i);
}

static void replay_node(struct replay *r, size_t n)
{
    const struct node *node = &r->made->plan->graph.nodes[n];
    const struct memory_plan *memory = &r->made->memory;
    if (node->operation->alias) {
        r->same[node->outputs[0]] = r->same[node->inputs[0]];
        return;
    }
    check_in_place(r, node);
    write_tags(r, &memory->workspace, memory->workspace.bytes, SCRATCH);
    write_tags(r, &memory->prepared[n], memory->prepared[n].bytes, SCRATCH);
    for (int i = 0; i < node->input_count; i++) check_tags(r, node->inputs[i], n);
    check_tags(r, node_added(node), n);
    for (int i = 0; i < node->output_count; i++)
        if (node->outputs[i] != NO_VALUE)
            write_tags(r, slot_of(r, node->outputs[i]), slot_of(r, node->outputs[i])->bytes, node->outputs[i]);
    for (int i = 0; i < node->output_count; i++) check_tags(r, node->outputs[i], n);
}

void replay(const struct made *made)
{
    const struct graph *graph = &made->plan->graph;
    struct replay r = { .made = made,
        .tags = calloc((size_t)made->memory.slab_count + 1, sizeof *r.tags),
        .sent = calloc(graph->value_count, sizeof *r.sent),
        .same = calloc(graph->value_count, sizeof *r.same) };
    for (int s = 0; s < made->memory.slab_count; s++) {
        ck_assert_uint_le(made->memory.slabs[s], device.can.allocation_max);
        r.tags[s] = calloc(made->memory.slabs[s] / GRAIN + 1, sizeof **r.tags);
    }
    for (size_t v = 0; v < graph->value_count; v++) {
        r.same[v] = (int)v;
        r.sent[v] = NO_VALUE;
        if (graph->values[v].role != ROLE_TEMPORARY)
            write_tags(&r, slot_of(&r, (int)v), slot_of(&r, (int)v)->bytes, (int)v);
    }
    for (size_t n = 0; n < graph->node_count; n++) replay_node(&r, n);
    for (size_t v = 0; v < graph->value_count; v++)
        if (graph->values[v].output || (graph->values[v].gradient_of >= 0 && graph->values[v].producer >= 0))
            check_tags(&r, (int)v, graph->node_count - 1);
    for (int s = 0; s < made->memory.slab_count; s++) free(r.tags[s]);
    free(r.tags);
    free(r.sent);
    free(r.same);
}

static const struct {
    enum device_class class;
    enum plan_mode mode;
    size_t allocation_max;
    bool recompute;
} memory_cases[] = {
    { DEVICE_CPU, PLAN_TRAIN, (size_t)1 << 30 },
    { DEVICE_GPU, PLAN_TRAIN, (size_t)1 << 30 },
    { DEVICE_CPU, PLAN_INFER, (size_t)1 << 30 },
    { DEVICE_CPU, PLAN_EVALUATE, (size_t)1 << 30 },
    { DEVICE_CPU, PLAN_TRAIN, 200 << 10 }, /* several slabs */
    { DEVICE_CPU, PLAN_TRAIN, (size_t)1 << 30, true },
    { DEVICE_GPU, PLAN_TRAIN, (size_t)1 << 30, true },
};

START_TEST(memory_is_nobody_elses)
{
    make_device(memory_cases[_i].class, memory_cases[_i].allocation_max);
    struct made made;
    recompute = memory_cases[_i].recompute;
    make(&made, memory_cases[_i].mode, residual);
    replay(&made);
    if (memory_cases[_i].allocation_max < 1 << 20) ck_assert_int_gt(made.memory.slab_count, 1);
    drop(&made);
}
END_TEST

/* A matrix of another shape is added to a weight: the gradient of both is one value, reshaped for the matrix. */
static tutti_tensor adapted(tutti_network *net)
{
    const tutti_tensor a = tutti_parameter(net, "a", TUTTI_SHAPE(4, 3), NULL);
    const tutti_tensor b = tutti_parameter(net, "b", TUTTI_SHAPE(3, 20), NULL);
    const tutti_tensor weight = tutti_parameter(net, "weight", TUTTI_SHAPE(8, 10), NULL);
    tutti_tensor change = tutti_matmul(net, NULL, a, b, false, false);
    change = tutti_op(net, "scale", &change, 1, "factor=0.5");
    change = tutti_op(net, "reshape", &change, 1, "shape=8,10");
    const tutti_tensor x = tutti_input(net, "x", TUTTI_SHAPE(1, 8));
    return tutti_flatten(net, tutti_matmul(net, NULL, x, tutti_add(net, weight, change), false, false));
}

START_TEST(gradients_stay_under_other_shapes)
{
    struct made made;
    bool reshaped = false;
    make_device(_i ? DEVICE_GPU : DEVICE_CPU, (size_t)1 << 30);
    make(&made, PLAN_TRAIN, adapted);
    replay(&made);
    for (size_t v = 0; v < made.plan->graph.value_count; v++) {
        const struct memory_slot *slot = &made.memory.slots[v];
        if (slot->kind != SLOT_ALIAS) continue;
        reshaped |= made.memory.slots[slot->alias].kind == SLOT_GRADIENT;
    }
    ck_assert(reshaped);
    drop(&made);
}
END_TEST

/* Two layers with the same weights. */
static tutti_tensor tied(tutti_network *net)
{
    const tutti_tensor weight = tutti_parameter(net, "weight", TUTTI_SHAPE(16, 16), NULL);
    const tutti_dense_options options = { .weight = &weight, .no_bias = true };
    const tutti_tensor x = tutti_tanh(net, tutti_dense(net, tutti_input(net, "x", TUTTI_SHAPE(16)), 16, &options));
    return tutti_dense(net, x, 16, &options);
}

START_TEST(sums_of_gradients_begin_where_they_are_sent_from)
{
    struct made made;
    int sums = 0;
    make_device(_i ? DEVICE_GPU : DEVICE_CPU, (size_t)1 << 30);
    make(&made, PLAN_TRAIN, tied);
    replay(&made);
    for (size_t n = 0; n < made.plan->graph.node_count; n++) {
        const struct node *node = &made.plan->graph.nodes[n];
        const int add = node_added(node);
        if (add == NO_VALUE || made.plan->graph.values[node->outputs[0]].gradient_of < 0) continue;
        ck_assert_int_eq(made.memory.slots[add].kind, SLOT_ALIAS);
        ck_assert_int_eq(made.memory.slots[add].alias, node->outputs[0]);
        sums++;
    }
    ck_assert_int_eq(sums, 1);
    drop(&made);
}
END_TEST

/* A matrix times its transpose, element by element, each of which is a reshape of the same value. */
static tutti_tensor symmetric(tutti_network *net)
{
    const tutti_tensor x = tutti_input(net, "x", TUTTI_SHAPE(16));
    const tutti_tensor y = tutti_tanh(net, tutti_dense(net, x, 16, NULL));
    const tutti_tensor matrix = tutti_reshape(net, y, TUTTI_SHAPE(4, 4)),
                       again = tutti_reshape(net, y, TUTTI_SHAPE(4, 4));
    const tutti_tensor turned = tutti_op(net, "transpose", &again, 1, "perm=1,0");
    return tutti_dense(net, tutti_flatten(net, tutti_mul(net, matrix, turned)), 10, NULL);
}

START_TEST(inputs_in_one_memory_stay)
{
    struct made made;
    int found = 0;
    make_device(DEVICE_GPU, (size_t)1 << 30); /* there, the product and the transpose become one loop */
    make(&made, PLAN_INFER, symmetric);
    replay(&made);
    for (size_t n = 0; n < made.plan->graph.node_count; n++) {
        const struct node *node = &made.plan->graph.nodes[n];
        if (node->operation->alias || node->input_count != 2 || node->inputs[0] == NO_VALUE) continue;
        const struct memory_slot *slots = made.memory.slots, *first = &slots[node->inputs[0]];
        found += first->kind == SLOT_ALIAS && slots[node->inputs[1]].kind == SLOT_ALIAS &&
            first->alias == slots[node->inputs[1]].alias;
    }
    ck_assert_int_eq(found, 1);
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

/* Whether memory slots a and b have something in one slab. */
static bool share_slab(const struct memory_slot *a, const struct memory_slot *b)
{
    return a->kind == SLOT_ARENA && b->kind == SLOT_ARENA && a->position.slab == b->position.slab;
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
        if (slots[v].kind == SLOT_ARENA) ck_assert_uint_eq(slots[v].position.offset, 0);
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

void add_memory(TCase *cases)
{
    tcase_add_loop_test(cases, memory_is_nobody_elses, 0, (int)(sizeof memory_cases / sizeof *memory_cases));
    tcase_add_loop_test(cases, gradients_stay_under_other_shapes, 0, 2);
    tcase_add_loop_test(cases, sums_of_gradients_begin_where_they_are_sent_from, 0, 2);
    tcase_add_test(cases, inputs_in_one_memory_stay);
    tcase_add_test(cases, memory_too_large_is_refused);
    tcase_add_test(cases, values_on_gpus_take_whole_slabs);
}
