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
    ck_assert_uint_le(slot->position.offset + bytes, r->made->memory.slabs[slot->position.slab]);
    ck_assert_uint_eq(slot->position.offset % device.can.alignment, 0);
    for (size_t at = slot->position.offset / GRAIN; at * GRAIN < slot->position.offset + bytes; at++)
        r->tags[slot->position.slab][at] = tag;
}

static void check_tags(struct replay *r, int value, size_t node)
{
    const struct memory_slot *slot = value == NO_VALUE ? NULL : slot_of(r, value);
    if (!slot || slot->kind != SLOT_ARENA) return;
    for (size_t at = slot->position.offset / GRAIN; at * GRAIN < slot->position.offset + slot->bytes; at++)
        ck_assert_msg(r->tags[slot->position.slab][at] == r->same[value],
            "node %zu (%s) reads value %d, over which %d was written", node,
            r->made->plan->graph.nodes[node].operation->name, value, r->tags[slot->position.slab][at]);
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

void replay(const struct made *made)
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
    tcase_add_test(cases, memory_too_large_is_refused);
    tcase_add_test(cases, values_on_gpus_take_whole_slabs);
}
