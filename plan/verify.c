/* A driver may compile a kernel and compute wrong numbers. So each implementation that is not the last of its
 * operation's list is run once per driver on a small problem of the network at hand, beside the last one (the plain
 * loops, which tests/layers holds against double precision, and whose building blocks `tutti devices --check` probes).
 */
#include "plan/verify.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "plan/passes.h"
#include "runtime/check.h"

/* Far above any rounding, far below what a miscompiled kernel gives; relative to the largest number of the output. */
#define VERIFY_TOLERANCE 1e-3
/* Seconds for a small problem, after which its kernel is taken to hang; compiling at the first launch is part of it. */
#define TIME_OUT 120.0

static void key_of(const struct node *node, char key[96])
{
    snprintf(key, 96, "%s/%s", node->operation->name, node->operation->implementations[node->implementation]->name);
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
        char key[96];
        if (!checkable(plan, node)) continue;
        key_of(node, key);
        any |= !check_is_decided(plan->device, key);
    }
    return any;
}

/* ------------------------------------------------------------------------------------- running one node ---- */

/* Where element i of a plain value lies in the layout, counted in elements. */
static size_t place_of(const struct value *value, enum value_layout layout, int width, size_t i)
{
    if (layout == LAYOUT_PLAIN) return i;
    const int64_t *s = value->shape.sizes;
    size_t area = (size_t)(s[2] * s[3]), channels = (size_t)s[1], blocks = (size_t)divide_up(s[1], width);
    size_t n = i / (channels * area), c = i / area % channels, at = i % area;
    return ((n * blocks + c / (size_t)width) * area + at) * (size_t)width + c % (size_t)width;
}

static size_t bytes_in(const struct value *value, enum value_layout layout, int width)
{
    struct value copy = *value;
    copy.layout = layout;
    return value_bytes(&copy, width);
}

/* Numbers in [0.1, 1.1): positive, so that they can also stand for deviations. Labels are class 0. */
static void make_up(const struct value *value, uint32_t number, enum value_layout layout, int width, void *data)
{
    if (value->role == ROLE_CONSTANTS) {
        *(struct step_constants *)data =
            (struct step_constants) { .seed_low = 1, .loss_scale = 0.5f, .learning_rate = 0.1f };
        return;
    }
    if (value->type != TYPE_F32) return;
    size_t elements = (size_t)value_elements(value);
    for (size_t i = 0; i < elements; i++)
        ((float *)data)[place_of(value, layout, width, i)] = 0.1f + random_uniform(7, number, i);
}

static tutti_status upload(
    struct device *device, const struct value *value, uint32_t number, enum value_layout layout, cl_mem *buffer)
{
    tutti_status status = TUTTI_OK;
    size_t bytes = bytes_in(value, layout, device->can.vector_width);
    void *data = memory_new(bytes, 1);
    if (!data) return TUTTI_NO_MEMORY;
    make_up(value, number, layout, device->can.vector_width, data);
    TRY(buffer_new(device, bytes, buffer));
    TRY(buffer_write(device, *buffer, 0, data, bytes));
done:
    free(data);
    return status;
}

struct run {
    struct operands operands;
    enum value_layout inputs[GRAPH_MAX_INPUTS], outputs[GRAPH_MAX_OUTPUTS];
    float *results[GRAPH_MAX_OUTPUTS]; /* plain; NULL where not f32 or not wanted */
};

static void run_free(struct run *run)
{
    for (int i = 0; i < GRAPH_MAX_INPUTS; i++) buffer_free(&run->operands.inputs[i]);
    for (int i = 0; i < GRAPH_MAX_OUTPUTS; i++) {
        buffer_free(&run->operands.outputs[i]);
        free(run->results[i]);
    }
    buffer_free(&run->operands.workspace);
    buffer_free(&run->operands.prepared);
}

static tutti_status run_buffers(
    struct device *device, const struct problem *problem, const struct implementation *implementation, struct run *run)
{
    tutti_status status = TUTTI_OK;
    size_t workspace = implementation->workspace ? implementation->workspace(problem) : 0;
    size_t prepared = implementation->prepared ? implementation->prepared(problem) : 0;
    if (implementation->layouts) implementation->layouts(problem, run->inputs, run->outputs);
    for (int i = 0; i < problem->node->input_count; i++)
        if (problem->inputs[i])
            TRY(upload(device, problem->inputs[i], (uint32_t)i, run->inputs[i], &run->operands.inputs[i]));
    for (int i = 0; i < problem->node->output_count; i++)
        if (problem->outputs[i])
            TRY(buffer_new(device, bytes_in(problem->outputs[i], run->outputs[i], device->can.vector_width),
                &run->operands.outputs[i]));
    if (workspace) TRY(buffer_new(device, workspace, &run->operands.workspace));
    if (prepared) TRY(buffer_new(device, prepared, &run->operands.prepared));
done:
    return status;
}

static tutti_status download(struct device *device, const struct problem *problem, struct run *run)
{
    tutti_status status = TUTTI_OK;
    float *data = NULL;
    int width = device->can.vector_width;
    for (int i = 0; i < problem->node->output_count; i++) {
        const struct value *value = problem->outputs[i];
        if (!value || value->type != TYPE_F32) continue;
        size_t bytes = bytes_in(value, run->outputs[i], width), elements = (size_t)value_elements(value);
        free(data);
        data = memory_new(bytes, 1);
        run->results[i] = memory_new(elements, sizeof(float));
        if (!data || !run->results[i]) FAIL(TUTTI_NO_MEMORY, "no memory to check a kernel");
        TRY(buffer_read(device, run->operands.outputs[i], 0, data, bytes));
        for (size_t e = 0; e < elements; e++) run->results[i][e] = data[place_of(value, run->outputs[i], width, e)];
    }
done:
    free(data);
    return status;
}

/* The problem's values are handed over in the layouts that the implementation wants. */
static tutti_status run_node(
    struct device *device, const struct problem *given, const struct implementation *implementation, struct run *run)
{
    tutti_status status = TUTTI_OK;
    struct problem problem = *given;
    struct value inputs[GRAPH_MAX_INPUTS], outputs[GRAPH_MAX_OUTPUTS];
    struct launch_list list;
    launch_list_init(&list, device);
    TRY(run_buffers(device, given, implementation, run));
    for (int i = 0; i < GRAPH_MAX_INPUTS; i++)
        if (given->inputs[i])
            inputs[i] = *given->inputs[i], inputs[i].layout = run->inputs[i], problem.inputs[i] = &inputs[i];
    for (int i = 0; i < GRAPH_MAX_OUTPUTS; i++)
        if (given->outputs[i])
            outputs[i] = *given->outputs[i], outputs[i].layout = run->outputs[i], problem.outputs[i] = &outputs[i];
    if (run->operands.prepared && implementation->emit_prepare)
        implementation->emit_prepare(&problem, &run->operands, &list);
    implementation->emit(&problem, &run->operands, &list);
    TRY(launch_list_realise(&list, NULL, NULL));
    TRY(launch_list_enqueue(&list, 0, list.count, NULL));
    TRY(device_wait(device));
    TRY(download(device, given, run));
done:
    launch_list_free(&list);
    return status;
}

static tutti_status compare(const struct problem *problem, const struct run *run, const struct run *reference)
{
    for (int i = 0; i < problem->node->output_count; i++) {
        if (!run->results[i] || !reference->results[i]) continue;
        size_t elements = (size_t)value_elements(problem->outputs[i]);
        double largest = 0, worst = 0;
        for (size_t e = 0; e < elements; e++) {
            double difference = fabs((double)run->results[i][e] - reference->results[i][e]);
            largest = fmax(largest, fabs((double)reference->results[i][e]));
            if (!(difference <= worst)) worst = difference; /* NaN stays */
        }
        if (!(worst <= VERIFY_TOLERANCE * largest + 1e-6))
            return fail(TUTTI_WRONG_RESULT,
                "its output %d differs from the plain kernel's by %g where the largest number is %g", i, worst,
                largest);
    }
    return TUTTI_OK;
}

static tutti_status verify_node(struct plan *plan, const struct node *given)
{
    tutti_status status = TUTTI_OK;
    struct node node = *given;
    struct problem problem;
    struct run run, reference;
    memset(&run, 0, sizeof run);
    memset(&reference, 0, sizeof reference);
    const struct implementation *const *list = node.operation->implementations;
    node.epilogue = (struct epilogue) { .add = NO_VALUE };
    problem_of(plan, &node, &problem);
    TRY(run_node(plan->device, &problem, list[last_of(node.operation)], &reference));
    TRY(run_node(plan->device, &problem, list[node.implementation], &run));
    TRY(compare(&problem, &run, &reference));
done:
    run_free(&run);
    run_free(&reference);
    return status;
}

static double cost(const struct plan *plan, const struct node *node)
{
    struct problem problem;
    problem_of(plan, node, &problem);
    if (node->operation->flops) return node->operation->flops(&problem);
    double elements = 0;
    for (int i = 0; i < node->input_count; i++)
        if (problem.inputs[i]) elements += (double)value_elements(problem.inputs[i]);
    return elements;
}

/* The cheapest node of the plan with the same operation and implementation; NULL where it chose otherwise. */
static const struct node *representative(const struct plan *plan, const struct node *node)
{
    const struct node *best = NULL;
    for (size_t n = 0; n < plan->graph.node_count; n++) {
        const struct node *candidate = &plan->graph.nodes[n];
        bool same = candidate->operation == node->operation && candidate->implementation == node->implementation;
        if (same && (!best || cost(plan, candidate) < cost(plan, best))) best = candidate;
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

tutti_status verify_implementations(struct plan *plan, struct plan *small, bool *failed)
{
    const double patience = plan->device->patience;
    tutti_status status = TUTTI_OK;
    *failed = false;
    plan->device->patience = TIME_OUT;
    for (size_t n = 0; status == TUTTI_OK && n < plan->graph.node_count; n++) {
        const struct node *node = &plan->graph.nodes[n];
        char key[96];
        if (!checkable(plan, node)) continue;
        key_of(node, key);
        if (check_is_decided(plan->device, key)) continue;
        const struct node *cheapest = representative(small, node);
        struct plan *in = cheapest ? small : plan;
        if (!cheapest) cheapest = representative(plan, node);
        status = verify_node(in, cheapest);
        if (status == TUTTI_DEVICE) status = verify_node(in, cheapest); /* a call may fail once, by chance */
        status = judge(plan->device, key, status, failed);
    }
    plan->device->patience = patience;
    return status;
}
