#include "plan/ahead.h"

#include "plan/node.h"
#include "plan/pipeline.h"
#include "plan/verify.h"
#include "runtime/builder.h"

tutti_status plan_emit_ahead(struct plan *plan, struct launch_list *list)
{
    struct memory_plan memory = { 0 };
    const tutti_status status = pass_memory(plan, &memory); /* which values share theirs decides some kernels' forms */
    for (size_t n = 0; n < plan->graph.node_count && status == TUTTI_OK; n++) {
        const struct node *node = &plan->graph.nodes[n];
        if (node->operation->alias) continue;
        const struct implementation *implementation = node->operation->implementations[node->implementation];
        struct problem problem;
        struct operands operands = { 0 };
        const size_t before = list->count;
        problem_of(plan, node, &problem);
        stand_in_operands(&memory, &problem, implementation, &operands);
        if (operands.prepared && implementation->emit_prepare) implementation->emit_prepare(&problem, &operands, list);
        implementation->emit(&problem, &operands, list);
        for (size_t i = before; i < list->count; i++) list->launches[i].node = (int)n;
    }
    memory_plan_free(&memory);
    return status;
}

/* Refuses the plan's implementations whose programs end the driver's compiler, so that they are not chosen again. */
static tutti_status refuse_built(struct plan *plan, const struct launch_list *list, size_t count, bool *refused)
{
    for (size_t i = 0; i < count; i++) {
        const char *reason = builder_refusal(plan->device, &list->launches[i]);
        if (!reason) continue;
        const tutti_status status =
            verify_refuse(plan, &plan->graph.nodes[list->launches[i].node], list->launches[i].source, reason);
        if (status != TUTTI_OK) return status;
        *refused = true;
    }
    return TUTTI_OK;
}

tutti_status plan_build_ahead(struct plan *plan, struct plan *small, struct verify_items *items, bool *refused)
{
    struct launch_list list;
    launch_list_init(&list, plan->device);
    const tutti_status emitted = plan_emit_ahead(plan, &list);
    const size_t own = list.count;
    tutti_status status = small ? verify_choose(plan, small, &list, items) : TUTTI_OK;
    *refused = false;
    if (status == TUTTI_OK && small) verify_emit(items, &list);
    if (status == TUTTI_OK && emitted == TUTTI_OK && list.status == TUTTI_OK)
        builder_prepare(&list, plan->options.progress, plan->options.user);
    if (status == TUTTI_OK && emitted == TUTTI_OK && list.status == TUTTI_OK)
        status = refuse_built(plan, &list, own, refused);
    launch_list_free(&list);
    return status;
}

void plan_load_ahead(struct device *device, const tutti_network *network, const struct plan_options *options)
{
    struct launch_list list;
    struct plan *plan = plan_start(device, network, options);
    if (!plan) return;
    launch_list_init(&list, device);
    if (plan_run_passes(plan) == TUTTI_OK && !verify_wanted(plan) && plan_emit_ahead(plan, &list) == TUTTI_OK &&
        list.status == TUTTI_OK)
        builder_load(&list);
    launch_list_free(&list);
    plan_free(plan);
}
