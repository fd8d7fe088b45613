#include "plan/ahead.h"

#include "plan/verify.h"
#include "runtime/builder.h"

/* Launches tell handles that are NULL from others, and one from another, and look no further. */
static cl_mem stand_in(const struct memory_plan *memory, int value)
{
    while (memory && memory->slots[value].kind == SLOT_ALIAS) value = memory->slots[value].alias;
    return (cl_mem)(uintptr_t)(value + 1);
}

void ahead_operands(const struct memory_plan *memory, const struct problem *problem,
    const struct implementation *implementation, struct operands *operands)
{
    const struct node *node = problem->node;
    for (int i = 0; i < node->input_count; i++)
        if (problem->inputs[i]) operands->inputs[i] = stand_in(memory, node->inputs[i]);
    for (int i = 0; i < node->output_count; i++)
        if (problem->outputs[i]) operands->outputs[i] = stand_in(memory, node->outputs[i]);
    if (node->epilogue.add != NO_VALUE) operands->add = stand_in(memory, node->epilogue.add);
    if (implementation->workspace && implementation->workspace(problem)) operands->workspace = (cl_mem)(uintptr_t)-1;
    if (implementation->prepared && implementation->prepared(problem)) operands->prepared = (cl_mem)(uintptr_t)-2;
}

static tutti_status emit_all(struct plan *plan, struct launch_list *list)
{
    struct memory_plan memory = { 0 };
    const tutti_status status = pass_memory(plan, &memory); /* which values share theirs decides some kernels' forms */
    for (size_t n = 0; n < plan->graph.node_count && status == TUTTI_OK; n++) {
        const struct node *node = &plan->graph.nodes[n];
        if (node->operation->alias) continue;
        const struct implementation *implementation = node->operation->implementations[node->implementation];
        struct problem problem;
        struct operands operands = { 0 };
        problem_of(plan, node, &problem);
        ahead_operands(&memory, &problem, implementation, &operands);
        if (operands.prepared && implementation->emit_prepare) implementation->emit_prepare(&problem, &operands, list);
        implementation->emit(&problem, &operands, list);
    }
    memory_plan_free(&memory);
    return status;
}

tutti_status plan_build_ahead(struct plan *plan, struct plan *small, struct verify_items *items)
{
    struct launch_list list;
    launch_list_init(&list, plan->device);
    const tutti_status emitted = emit_all(plan, &list);
    const tutti_status status = small ? verify_choose(plan, small, &list, items) : TUTTI_OK;
    if (status == TUTTI_OK && small) verify_emit(items, &list);
    if (status == TUTTI_OK && emitted == TUTTI_OK && list.status == TUTTI_OK)
        builder_prepare(&list, plan->options.progress, plan->options.user);
    launch_list_free(&list);
    return status;
}

void plan_load_ahead(struct device *device, const tutti_network *network, const struct plan_options *options)
{
    struct launch_list list;
    struct plan *plan = plan_start(device, network, options);
    if (!plan) return;
    launch_list_init(&list, device);
    if (plan_run_passes(plan) == TUTTI_OK && !verify_wanted(plan) && emit_all(plan, &list) == TUTTI_OK &&
        list.status == TUTTI_OK)
        builder_load(&list);
    launch_list_free(&list);
    plan_free(plan);
}
