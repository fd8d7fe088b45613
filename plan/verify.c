/* A driver may compile a kernel and compute wrong numbers. So each implementation that is not the last of its
 * operation's list is run once per driver on a small problem of the network at hand, beside the last one (the plain
 * loops, which tests/layers holds against double precision, and whose building blocks `tutti devices --check` probes).
 */
#include "plan/verify.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/passes.h"
#include "plan/trial.h"
#include "runtime/check.h"

/* Far above any rounding, far below what a miscompiled kernel gives; relative to the largest number of the output. */
#define VERIFY_TOLERANCE 1e-3
/* Seconds for a small problem, after which its kernel is taken to hang; compiling at the first launch is part of it. */
#define TIME_OUT 120.0
/* Of a problem at hand that is small enough to be checked as it is: a plain kernel takes a quarter of a second for
 * this. */
#define MOST_FLOPS 5e8
#define MOST_ELEMENTS 8e6

static void key_of(const struct plan *plan, const struct node *node, char key[IMPLEMENTATION_KEY])
{
    implementation_key(node->operation, node->operation->implementations[node->implementation],
        node_has_bf16(&plan->graph, node), key);
}

static int last_of(const struct operation *operation)
{
    int last = 0;
    while (operation->implementations[last + 1]) last++;
    return last;
}

static bool checkable(const struct plan *plan, const struct node *node)
{
    if (node->operation->alias || node->implementation < 0 || node->implementation == last_of(node->operation))
        return false;
    for (int i = 0; i < node->input_count; i++) {
        const struct value *v = graph_at(&plan->graph, node->inputs[i]);
        if (v && v->type == TYPE_U8) return false; /* indexes that mean something: made-up ones could point outside */
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

static tutti_status compare(const struct problem *problem, int output, const float *result, const float *reference)
{
    size_t elements = (size_t)value_elements(problem->outputs[output]);
    double largest = 0, worst = 0;
    for (size_t e = 0; e < elements; e++) {
        double difference = fabs((double)result[e] - reference[e]);
        largest = fmax(largest, fabs((double)reference[e]));
        if (!(difference <= worst)) worst = difference; /* NaN stays */
    }
    double stored = problem->outputs[output]->type == TYPE_BF16 ? 0x1p-8 : 0;
    if (worst <= (VERIFY_TOLERANCE + stored) * largest + 1e-6) return TUTTI_OK;
    return fail(TUTTI_WRONG_RESULT,
        "its output %d differs from the plain kernel's by %g where the largest number is %g", output, worst, largest);
}

static tutti_status verify_node(struct plan *plan, const struct node *given)
{
    tutti_status status = TUTTI_OK;
    struct node node = *given;
    struct problem problem;
    struct trial trial = { 0 }, reference = { 0 };
    float *result = NULL, *expected = NULL;
    const struct implementation *const *list = node.operation->implementations;
    trial_problem(plan, &node, &problem);
    TRY(trial_make(plan->device, &problem, list[last_of(node.operation)], &reference));
    TRY(trial_run(&reference));
    TRY(trial_make(plan->device, &problem, list[node.implementation], &trial));
    TRY(trial_run(&trial));
    for (int i = 0; i < node.output_count; i++) {
        free(result);
        free(expected);
        expected = NULL;
        TRY(trial_output(&trial, i, &result));
        TRY(trial_output(&reference, i, &expected));
        if (result) TRY(compare(&trial.problem, i, result, expected));
    }
done:
    free(result);
    free(expected);
    trial_free(&trial);
    trial_free(&reference);
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

/* The cheapest node of the plan with this key; NULL where it chose otherwise. */
static const struct node *representative(const struct plan *plan, const char *key)
{
    const struct node *best = NULL;
    char other[IMPLEMENTATION_KEY];
    for (size_t n = 0; n < plan->graph.node_count; n++) {
        const struct node *candidate = &plan->graph.nodes[n];
        if (candidate->operation->alias) continue;
        key_of(plan, candidate, other);
        if (!strcmp(key, other) && (!best || cost(plan, candidate) < cost(plan, best))) best = candidate;
    }
    return best;
}

/* Notes the verdict on disk. A lack of memory is no fault of the implementation: it is checked another time. */
static tutti_status judge(struct device *device, const char *key, tutti_status status, bool *failed)
{
    if (status == TUTTI_NO_MEMORY || status == TUTTI_DEVICE_MEMORY) return TUTTI_OK;
    if (status == TUTTI_OK) {
        check_passed(device, key);
        return TUTTI_OK;
    }
    blacklist_add(device, key, status_message());
    *failed = true;
    /* A kernel that hangs or breaks the device ends this process's use of it; the next process knows. */
    if (status == TUTTI_DEVICE_LOST) return status;
    return status == TUTTI_DEVICE ? check_device(device) : TUTTI_OK;
}

/* The node to check this one's implementation with, and the plan that it is from: one of the plan itself, whose kernels
 * are wanted anyway, unless the plain kernel would take long; then one of the small plan, if it has one. */
static const struct node *stand_in(struct plan *plan, struct plan *small, const char *key, struct plan **in)
{
    const struct node *own = representative(plan, key), *found = representative(small, key);
    *in = plan;
    if (!found || (cost(plan, own) <= MOST_FLOPS && elements(plan, own) <= MOST_ELEMENTS)) return own;
    *in = small;
    return found;
}

void verify_emit(struct plan *plan, struct plan *small, struct launch_list *list)
{
    for (size_t n = 0; n < plan->graph.node_count; n++) {
        char key[IMPLEMENTATION_KEY];
        const struct node *node = &plan->graph.nodes[n];
        if (!checkable(plan, node)) continue;
        key_of(plan, node, key);
        if (check_is_decided(plan->device, key)) continue;
        struct plan *in;
        struct node found = *stand_in(plan, small, key, &in);
        struct problem problem;
        trial_problem(in, &found, &problem);
        const struct implementation *const *all = found.operation->implementations;
        trial_emit(&problem, all[last_of(found.operation)], list);
        trial_emit(&problem, all[found.implementation], list);
    }
}

tutti_status verify_implementations(struct plan *plan, struct plan *small, bool *failed)
{
    const double patience = plan->device->patience;
    tutti_status status = TUTTI_OK;
    *failed = false;
    plan->device->patience = TIME_OUT;
    for (size_t n = 0; status == TUTTI_OK && n < plan->graph.node_count; n++) {
        const struct node *node = &plan->graph.nodes[n];
        char key[IMPLEMENTATION_KEY];
        if (!checkable(plan, node)) continue;
        key_of(plan, node, key);
        if (check_is_decided(plan->device, key)) continue;
        struct plan *in;
        const struct node *cheapest = stand_in(plan, small, key, &in);
        status = verify_node(in, cheapest);
        if (status == TUTTI_DEVICE) status = verify_node(in, cheapest); /* a call may fail once, by chance */
        status = judge(plan->device, key, status, failed);
    }
    plan->device->patience = patience;
    return status;
}
