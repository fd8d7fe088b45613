/* Makes plans: turns what the passes leave into buffers and launches. And runs them. */
#include "plan/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "graph/edit.h"
#include "plan/ahead.h"
#include "plan/commands.h"
#include "plan/node.h"
#include "plan/passes.h"
#include "plan/verify.h"

/* ----------------------------------------------------------------------------------------------- launches ---- */

static tutti_status take_arena(struct plan *plan, const struct memory_plan *memory)
{
    size_t total = 0;
    for (int i = 0; i < memory->slab_count; i++) total += memory->slabs[i];
    plan->memory.arena_bytes = total;
    struct arena *shared = plan->options.arena;
    bool fits = shared && shared->count >= memory->slab_count;
    for (int i = 0; fits && i < memory->slab_count; i++) fits = shared->sizes[i] >= memory->slabs[i];
    if (!fits) return arena_new(plan->device, memory->slabs, memory->slab_count, &plan->memory.arena);
    shared->users++;
    plan->memory.arena = shared;
    return TUTTI_OK;
}

static tutti_status make_buffer(struct plan *plan, const struct memory_plan *memory, int value)
{
    const struct memory_slot *slot = &memory->slots[value];
    const struct value *v = graph_at(&plan->graph, value);
    const struct parameter *p = NULL;
    switch (slot->kind) {
    case SLOT_ARENA: return arena_cut(plan->memory.arena, slot->position, slot->bytes, &plan->memory.buffers[value]);
    case SLOT_PARAMETER:
        p = &plan->network->parameters[v->parameter];
        return buffer_cut(plan->device, parameter_is_fixed(p) ? plan->options.frozen : plan->options.parameters,
            (size_t)p->offset * sizeof(float), slot->bytes, &plan->memory.buffers[value]);
    case SLOT_GRADIENT:
        p = &plan->network->parameters[v->gradient_of];
        return buffer_cut(plan->device, plan->options.gradients, (size_t)p->offset * sizeof(float), slot->bytes,
            &plan->memory.buffers[value]);
    case SLOT_ALIAS:
    case SLOT_NONE: break;
    }
    return TUTTI_OK;
}

static tutti_status make_buffers(struct plan *plan, const struct memory_plan *memory)
{
    tutti_status status = TUTTI_OK;
    size_t nodes = plan->graph.node_count;
    plan->memory.buffer_count = plan->graph.value_count;
    plan->memory.buffers = memory_new(plan->memory.buffer_count + 1, sizeof *plan->memory.buffers);
    plan->memory.prepared = memory_new(nodes + 1, sizeof *plan->memory.prepared);
    if (!plan->memory.buffers || !plan->memory.prepared) return TUTTI_NO_MEMORY;
    plan->memory.prepared_count = nodes;
    for (size_t v = 0; v < plan->memory.buffer_count; v++) TRY(make_buffer(plan, memory, (int)v));
    for (size_t v = 0; v < plan->memory.buffer_count; v++) {
        size_t root = v;
        while (memory->slots[root].kind == SLOT_ALIAS) root = (size_t)memory->slots[root].alias;
        if (root == v || !plan->memory.buffers[root]) continue;
        CL_TRY(clRetainMemObject(plan->memory.buffers[root]), "sharing a buffer");
        plan->memory.buffers[v] = plan->memory.buffers[root];
    }
    for (size_t n = 0; n < nodes; n++)
        if (memory->prepared[n].bytes)
            TRY(arena_cut(plan->memory.arena, memory->prepared[n].position, memory->prepared[n].bytes,
                &plan->memory.prepared[n]));
    if (memory->workspace.bytes)
        TRY(arena_cut(
            plan->memory.arena, memory->workspace.position, memory->workspace.bytes, &plan->memory.workspace));
done:
    return status;
}

static bool weights_are_constant(const struct plan *plan, const struct node *node)
{
    const struct value *w = graph_at(&plan->graph, node->inputs[1]);
    return w &&
        (w->role == ROLE_PARAMETER ||
            (w->producer >= 0 && node_is_constant(&plan->graph, &plan->graph.nodes[w->producer])));
}

static void emit_node(struct plan *plan, size_t n)
{
    const struct node *node = &plan->graph.nodes[n];
    if (node->operation->alias) return;
    const struct implementation *implementation = node->operation->implementations[node->implementation];
    struct problem problem;
    struct operands operands = { .prepared = plan->memory.prepared[n] };
    problem_of(plan, node, &problem);
    if (workspace_bytes(implementation, &problem)) operands.workspace = plan->memory.workspace;
    for (int i = 0; i < node->input_count; i++) operands.inputs[i] = plan_buffer(plan, node->inputs[i]);
    for (int i = 0; i < node->output_count; i++) operands.outputs[i] = plan_buffer(plan, node->outputs[i]);
    operands.add = plan_buffer(plan, node_added(node));
    const bool trains = plan->options.mode == PLAN_TRAIN;
    struct launch_list *list = !trains && node_is_constant(&plan->graph, node) ? &plan->prepare : &plan->launches;
    struct launch_list *early = !trains && weights_are_constant(plan, node) ? &plan->prepare : list;
    size_t list_before = list->count, early_before = early->count;
    if (plan->memory.prepared[n] && implementation->emit_prepare)
        implementation->emit_prepare(&problem, &operands, early);
    implementation->emit(&problem, &operands, list);
    for (size_t i = early_before; i < early->count; i++) early->launches[i].node = (int)n;
    for (size_t i = list_before; i < list->count; i++) list->launches[i].node = (int)n;
}

static tutti_status emit(struct plan *plan)
{
    tutti_status status = TUTTI_OK;
    launch_list_init(&plan->prepare, plan->device);
    launch_list_init(&plan->launches, plan->device);
    for (size_t n = 0; n < plan->graph.node_count; n++) {
        emit_node(plan, n);
        const char *name = plan->graph.nodes[n].operation->name;
        if (plan->prepare.status != TUTTI_OK)
            FAIL(plan->prepare.status, "%s: its launches are invalid: %s", name, status_message());
        if (plan->launches.status != TUTTI_OK)
            FAIL(plan->launches.status, "%s: its launches are invalid: %s", name, status_message());
    }
    TRY(commands_make(plan));
    TRY(launch_list_realise(&plan->prepare, plan->options.progress, plan->options.user));
    TRY(launch_list_realise(&plan->launches, plan->options.progress, plan->options.user));
done:
    return status;
}

/* -------------------------------------------------------------------------------------------------- plans ---- */

tutti_status plan_measure(
    struct device *device, const tutti_network *network, const struct plan_options *options, size_t *bytes)
{
    tutti_status status = TUTTI_OK;
    struct memory_plan memory = { 0 };
    struct plan *plan = plan_start(device, network, options);
    if (!plan) return TUTTI_NO_MEMORY;
    TRY(plan_run_passes(plan));
    TRY(pass_memory(plan, &memory));
    *bytes = 0;
    for (int i = 0; i < memory.slab_count; i++) *bytes += memory.slabs[i];
done:
    memory_plan_free(&memory);
    plan_free(plan);
    return status;
}

/* Compiles the plan's kernels, and checks those that this driver has not run yet on two samples. *again: some were
 * refused, and the choice must be made without them. */
static tutti_status verify_choice(struct plan *plan, bool *again)
{
    tutti_status status = TUTTI_OK;
    struct plan_options options = plan->options;
    options.sizes.samples = options.sizes.samples < 2 ? options.sizes.samples : 2;
    options.explain = false;
    struct plan *small = NULL;
    struct verify_items items = { 0 };
    *again = false;
    if (options.guards || options.force || !verify_wanted(plan)) { /* tests look at each by themselves */
        return plan_build_ahead(plan, NULL, NULL, again);
    }
    small = plan_start(plan->device, plan->network, &options);
    if (!small) return TUTTI_NO_MEMORY;
    TRY(plan_run_passes(small));
    TRY(plan_build_ahead(plan, small, &items, again));
    if (!*again) TRY(verify_implementations(plan->device, &items, again));
done:
    verify_items_free(&items);
    plan_free(small);
    return status;
}

/* Repeats the choice until nothing is refused: each round but the last one excludes at least one implementation. */
static tutti_status verify(struct plan *plan)
{
    enum { ROUNDS = 100 };
    tutti_status status = TUTTI_OK;
    bool again = true;
    for (int round = 0; again && round < ROUNDS; round++) {
        TRY(verify_choice(plan, &again));
        if (!again) break;
        plan_restart(plan);
        TRY(plan_run_passes(plan));
    }
    if (again)
        FAIL(TUTTI_BUILD, "kernels are refused again and again on '%s': see tutti show --why", plan->device->can.name);
    TRY(verify_custom(plan));
done:
    return status;
}

tutti_status plan_warm_up(struct plan *plan)
{
    tutti_status status = launch_list_warm_up(&plan->prepare);
    return status == TUTTI_OK ? launch_list_warm_up(&plan->launches) : status;
}

/* Appends the commands to the text of the passes' graphs. */
static tutti_status explain_commands(struct plan *plan)
{
    struct text text = { 0 };
    text_append(&text, "%s", plan->explanation.passes ? plan->explanation.passes : "");
    commands_print(plan, &text);
    free(plan->explanation.passes);
    plan->explanation.passes = text_take(&text);
    return plan->explanation.passes ? TUTTI_OK : TUTTI_NO_MEMORY;
}

tutti_status plan_new(
    struct device *device, const tutti_network *network, const struct plan_options *options, struct plan **made)
{
    tutti_status status = TUTTI_OK;
    struct memory_plan memory = { 0 };
    double start = clock_seconds();
    *made = NULL;
    struct plan *plan = plan_start(device, network, options);
    if (!plan) return TUTTI_NO_MEMORY;
    TRY(plan_run_passes(plan));
    TRY(verify(plan));
    TRY(pass_memory(plan, &memory));
    TRY(take_arena(plan, &memory));
    TRY(make_buffers(plan, &memory));
    TRY(emit(plan));
    if (options->explain) TRY(explain_commands(plan));
    if (!options->cold) TRY(plan_warm_up(plan));
    plan->build_seconds = clock_seconds() - start;
    *made = plan;
done:
    memory_plan_free(&memory);
    if (status != TUTTI_OK) plan_free(plan);
    return status;
}

bool plan_wants_whole_batch(const tutti_network *network)
{
    for (size_t n = 0; n < network->graph.node_count; n++)
        if (network->graph.nodes[n].operation->whole_batch) return true;
    return false;
}

const char *plan_single_values(const struct plan *plan, int *count)
{
    int first = -1;
    *count = 0;
    for (size_t n = 0; plan->options.mode == PLAN_TRAIN && n < plan->graph.node_count; n++) {
        const struct node *node = &plan->graph.nodes[n];
        if (!node->operation || !node->operation->whole_batch) continue;
        const struct planes planes = value_planes(graph_at(&plan->graph, node->inputs[0]), CHANNEL_AXIS);
        if (planes.n * planes.pixels > 1) continue;
        if ((*count)++ == 0) first = node->layer;
    }
    return *count == 0 ? NULL : first >= 0 ? plan->network->layers[first].name : "batch_norm";
}

tutti_status plan_prepare(struct plan *plan)
{
    return launch_list_enqueue(&plan->prepare, 0, plan->prepare.count, NULL);
}

/* Enqueues the launches up to `end` that were not enqueued yet, in one call because each call flushes the queue. */
static tutti_status enqueue_until(struct plan *plan, size_t *next, size_t end)
{
    const size_t first = *next;
    *next = end;
    return end > first ? launch_list_enqueue(&plan->launches, first, end, NULL) : TUTTI_OK;
}

tutti_status plan_enqueue(struct plan *plan, command_handler *const *handlers, void *user)
{
    tutti_status status = TUTTI_OK;
    size_t next = 0, end = 0; /* launches */
    for (size_t i = 0; i < plan->command_count; i++) {
        const struct command *command = &plan->commands[i];
        if (command->kind == COMMAND_KERNEL) end = command->number + 1;
        if (!handlers || !handlers[command->kind]) continue;
        TRY(enqueue_until(plan, &next, end));
        TRY(handlers[command->kind](user, command));
    }
    TRY(enqueue_until(plan, &next, end));
done:
    return status;
}

tutti_status plan_redirect_feed(struct plan *plan, int feed, cl_mem buffer)
{
    tutti_status status = TUTTI_OK;
    const cl_mem own = plan_buffer(plan, plan->feeds[feed]);
    if (!buffer && !plan->memory.redirected[feed]) return TUTTI_OK;
    for (size_t i = 0; i < plan->launches.count; i++)
        if (plan->launches.launches[i].call)
            FAIL(TUTTI_UNSUPPORTED, "'%s' takes its input from the plan's memory only",
                plan->launches.launches[i].kernel_name);
    for (int i = 0; i < plan->options.objective.output_count; i++)
        if (plan_buffer(plan, plan->outputs[i]) == own && plan->options.objective.carried[i] != feed + 1)
            FAIL(TUTTI_UNSUPPORTED, "output %d is the input's own memory, as after a reshape", i);
    plan->memory.redirected[feed] = true;
    for (size_t i = 0; i < plan->launches.count; i++) {
        struct launch *launch = &plan->launches.launches[i];
        for (int k = 0; k < launch->count; k++) {
            const struct launch_argument *argument = &launch->arguments[k];
            if (argument->kind != ARGUMENT_BUFFER || argument->value.buffer != own) continue;
            TRY(launch_redirect(launch, k, buffer));
        }
    }
    if (!buffer) plan->memory.redirected[feed] = false;
done:
    return status;
}

cl_mem plan_buffer(const struct plan *plan, int value)
{
    return value < 0 ? NULL : plan->memory.buffers[value];
}
