/* A driver may compile a kernel and compute wrong numbers. So each implementation that is not the last of its
 * operation's list is run once per driver on a small problem of the network at hand, and its results are compared
 * with those of the interpreter. The last one, plain loops, has no fallback: `tutti devices --check` probes what it
 * consists of. */
#include "plan/verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/threads.h"
#include "layers/interpreter/interpreter.h"
#include "plan/trial.h"
#include "runtime/check.h"
#include "runtime/verdicts.h"

/* Seconds after which the kernel of a small problem is taken to hang; they include compiling at the first launch. */
#define TIME_OUT 120.0

static void key_of(const struct plan *plan, const struct node *node, char key[IMPLEMENTATION_KEY])
{
    struct problem problem;
    problem_of(plan, node, &problem);
    implementation_key(
        &problem, node->operation->implementations[node->implementation], node_has_bf16(&plan->graph, node), key);
}

static int last_of(const struct operation *operation)
{
    int last = 0;
    while (operation->implementations[last + 1]) last++;
    return last;
}

tutti_status verify_refuse(struct plan *plan, const struct node *node, const char *source, const char *reason)
{
    char key[IMPLEMENTATION_KEY];
    if (node->implementation == last_of(node->operation))
        return fail(TUTTI_BUILD, "%s cannot be computed on device %d, '%s': its last kernels, '%s', are not built: %s",
            node->operation->name, plan->device->index, plan->device->can.name, source, reason);
    key_of(plan, node, key);
    if (!blacklist_reason(plan->device, key)) blacklist_add(plan->device, key, reason);
    return TUTTI_OK;
}

static bool checkable(const struct plan *plan, const struct node *node)
{
    if (node->operation->alias || node->implementation < 0 || node->implementation == last_of(node->operation) ||
        !interpreter_knows(node->operation))
        return false;
    for (int i = 0; i < node->input_count; i++) {
        const struct value *v = graph_at(&plan->graph, node->inputs[i]);
        if (v && value_type_bytes(v->type) == 1 && v->type != TYPE_INT8)
            return false; /* indexes that mean something: made-up ones could point outside */
    }
    return true;
}

bool verify_wanted(const struct plan *plan)
{
    bool any = false;
    for (size_t n = 0; n < plan->graph.node_count; n++) {
        const struct node *node = &plan->graph.nodes[n];
        char key[IMPLEMENTATION_KEY];
        if (!checkable(plan, node)) continue;
        key_of(plan, node, key);
        any |= !check_is_decided(plan->device, key);
    }
    return any;
}

static tutti_status verify_node(const struct verify_item *item, struct thread_pool *threads)
{
    tutti_status status = TUTTI_OK;
    struct node node = *item->node, plain = *item->node;
    struct problem problem, plain_problem;
    struct trial trial = { 0 };
    trial_problem(item->in, &plain, &plain_problem);
    trial_problem_in_plan(item->in, &node, &problem);
    TRY(trial_make(item->in->device, &problem, node.operation->implementations[node.implementation], &trial));
    TRY(trial_run(&trial));
    TRY(trial_check(&trial, &plain_problem, threads));
done:
    trial_free(&trial);
    return status;
}

static double elements(const struct plan *plan, const struct node *node)
{
    struct problem problem;
    double sum = 0;
    problem_of(plan, node, &problem);
    for (int i = 0; i < node->input_count; i++)
        if (problem.inputs[i]) sum += (double)value_elements(problem.inputs[i]);
    return sum;
}

static double cost(const struct plan *plan, const struct node *node)
{
    struct problem problem;
    problem_of(plan, node, &problem);
    return node->operation->flops ? node->operation->flops(&problem) : elements(plan, node);
}

/* A failure of the device, its driver or a kernel, which another try may not show. */
static bool may_be_chance(tutti_status status)
{
    return status == TUTTI_DEVICE || status == TUTTI_DEVICE_RESOURCES || status == TUTTI_BUILD;
}

/* Notes the verdict on disk. */
static tutti_status judge(struct device *device, const char *key, tutti_status status, bool *failed)
{
    if (status == TUTTI_NO_MEMORY || status == TUTTI_DEVICE_MEMORY) return TUTTI_OK;
    if (status == TUTTI_OK) {
        check_passed(device, key);
        return TUTTI_OK;
    }
    if (status == TUTTI_BUILD && !check_compiler(device)) return status; /* not this implementation's fault */
    blacklist_add(device, key, status_message());
    *failed = true;
    /* A kernel that hangs or breaks the device ends this process's use of it; the next process finds the verdict. */
    if (status == TUTTI_DEVICE_LOST) return status;
    return may_be_chance(status) && status != TUTTI_BUILD ? check_device(device) : TUTTI_OK;
}

/* ------------------------------------------------------------------------------------------------- which nodes ---- */

/* Rough costs: FLOPs per second of the interpreter on two processors, made-up numbers per second, and seconds to
 * compile a program. */
#define FLOPS_RATE 2.5e9
#define ELEMENTS_RATE 1.5e7
#define COMPILING 0.3

static void emit(const struct verify_item *item, struct launch_list *list)
{
    struct node node = *item->node;
    struct problem problem;
    trial_problem_in_plan(item->in, &node, &problem);
    trial_emit(&problem, node.operation->implementations[node.implementation], list);
}

static bool has_program(const struct launch_list *list, const struct launch *launch)
{
    for (size_t i = 0; i < list->count; i++)
        if (!list->launches[i].call && !strcmp(list->launches[i].source, launch->source) &&
            !strcmp(list->launches[i].options, launch->options))
            return true;
    return false;
}

/* Estimates the seconds of a check with this node. Programs in `list` are compiled in any case and do not count. */
static double seconds(const struct verify_item *item, const struct launch_list *list)
{
    struct launch_list own;
    double sum = cost(item->in, item->node) / FLOPS_RATE + elements(item->in, item->node) / ELEMENTS_RATE;
    launch_list_init(&own, list->device);
    emit(item, &own);
    for (size_t i = 0; i < own.count; i++)
        if (!own.launches[i].call && !has_program(list, &own.launches[i])) sum += COMPILING;
    launch_list_free(&own);
    return sum;
}

/* Sets the item's node to the cheapest among the one that it has, if any, and the nodes of plan `in` with its key. */
static void find_cheapest(struct verify_item *item, struct plan *in, const struct launch_list *list, double *best)
{
    char other[IMPLEMENTATION_KEY];
    for (size_t n = 0; n < in->graph.node_count; n++) {
        const struct verify_item candidate = { .node = &in->graph.nodes[n], .in = in };
        if (candidate.node->operation->alias) continue;
        key_of(in, candidate.node, other);
        if (strcmp(item->key, other) != 0) continue;
        const double cost = seconds(&candidate, list);
        if (item->node && cost >= *best) continue;
        item->node = candidate.node;
        item->in = in;
        *best = cost;
    }
}

static bool has_item(const struct verify_items *items, const char *key)
{
    for (size_t i = 0; i < items->count; i++)
        if (!strcmp(items->list[i].key, key)) return true;
    return false;
}

tutti_status verify_choose(
    struct plan *plan, struct plan *small, const struct launch_list *list, struct verify_items *items)
{
    *items = (struct verify_items) { .list = memory_new(plan->graph.node_count + 1, sizeof(*items->list)) };
    if (!items->list) return TUTTI_NO_MEMORY;
    for (size_t n = 0; n < plan->graph.node_count; n++) {
        struct verify_item *item = &items->list[items->count];
        double best = 0;
        if (!checkable(plan, &plan->graph.nodes[n])) continue;
        key_of(plan, &plan->graph.nodes[n], item->key);
        if (check_is_decided(plan->device, item->key) || has_item(items, item->key)) continue;
        find_cheapest(item, plan, list, &best);
        find_cheapest(item, small, list, &best);
        items->count++;
    }
    return TUTTI_OK;
}

void verify_emit(const struct verify_items *items, struct launch_list *list)
{
    for (size_t i = 0; i < items->count; i++) emit(&items->list[i], list);
}

void verify_items_free(struct verify_items *items)
{
    free(items->list);
    *items = (struct verify_items) { 0 };
}

tutti_status verify_implementations(struct device *device, const struct verify_items *items, bool *failed)
{
    const double patience = wait_patience(TIME_OUT);
    struct thread_pool *threads = NULL;
    *failed = false;
    tutti_status status = TUTTI_OK;
    if (items->count && thread_pool_new(&threads, 0) != TUTTI_OK) threads = NULL; /* this thread alone, then */
    for (size_t i = 0; status == TUTTI_OK && i < items->count; i++) {
        status = verify_node(&items->list[i], threads);
        if (may_be_chance(status)) status = verify_node(&items->list[i], threads);
        status = judge(device, items->list[i].key, status, failed);
    }
    thread_pool_free(threads);
    (void)wait_patience(patience);
    return status;
}

tutti_status verify_custom(struct plan *plan)
{
    const double patience = wait_patience(TIME_OUT);
    tutti_status status = TUTTI_OK;
    for (size_t n = 0; status == TUTTI_OK && n < plan->graph.node_count; n++) {
        const struct node *node = &plan->graph.nodes[n];
        struct problem problem;
        if (!node->operation->check) continue;
        problem_of(plan, node, &problem);
        status = node->operation->check(plan->device, &problem);
    }
    (void)wait_patience(patience);
    return status;
}
