/* Launches of the updates on a device: the check of gradients, the rules, the EMA and running statistics. */
#include "base/memory.h"
#include "base/status.h"
#include "clkernels/arguments/arena.h"
#include "clkernels/arguments/optimizer.h"
#include "replica/arena_launch.h"
#include "replica/clip.h"
#include "replica/optimizer_rule.h"
#include "runtime/arguments.h"

#include <stdio.h>

tutti_status optimizer_statistics(
    const struct optimizer *optimizer, const tutti_network *network, struct statistic_row **rows, int *count)
{
    *count = 0;
    *rows = memory_new(network->parameter_count, sizeof(**rows));
    if (!*rows) return TUTTI_NO_MEMORY;
    for (size_t i = 0; i < network->parameter_count; i++) {
        const struct parameter *parameter = &network->parameters[i];
        if (!optimizer_updates_statistic(optimizer, network, i)) continue;
        (*rows)[(*count)++] = (struct statistic_row) { .first = parameter->offset,
            .count = parameter->elements,
            .momentum = optimizer_statistic_momentum(optimizer, network, i) };
    }
    return TUTTI_OK;
}

ARGUMENTS(rule, OPTIMIZER_ARGUMENTS)
ARGUMENTS(ema, EMA_ARGUMENTS)
ARGUMENTS(groups, GROUPS_ARGUMENTS)

static void emit_trained(
    const struct optimizer *o, int64_t floats, const struct optimizer_buffers *buffers, struct launch_list *list)
{
    const struct optimizer_rule *rule = optimizer_rule_of(o);
    char options[160];
    const int length = snprintf(options, sizeof(options), "-DRULE=%s -DSTATES=%d%s", rule->kernel, rule->states,
        o->groups ? " -DGROUPED=1" : "");
    if (list->status == TUTTI_OK && (length < 0 || (size_t)length >= sizeof(options)))
        list->status = fail(TUTTI_INTERNAL, "the build options of '%s' are too long", rule->kernel);
    struct launch *launch = arena_launch(list, "optimizer", rule->kernel, options);
    ARGUMENTS_SET(launch, rule, .parameters = buffers->parameters, .gradients = buffers->gradients,
        .constants = buffers->constants, .losses = buffers->losses, .n = floats,
        .floats = arena_floats_of_item(list->device, floats), .weight_decay = o->weight_decay, .momentum = o->momentum,
        .beta1 = o->beta1, .beta2 = o->beta2, .epsilon = o->epsilon);
    launch_buffers(launch, buffers->states, (size_t)rule->states);
    if (o->groups) ARGUMENTS_SET(launch, groups, .groups = buffers->groups);
    arena_launch_grid(launch, list->device, floats);
    launch_work(launch, (double)floats * (2 + 6 * rule->states), (double)floats * 4 * (3 + 2 * rule->states));
}

static void emit_ema(
    const struct optimizer *o, int64_t floats, const struct optimizer_buffers *buffers, struct launch_list *list)
{
    struct launch *launch = arena_launch(list, "arena", "ema", "");
    ARGUMENTS_SET(launch, ema, .p = buffers->parameters, .a = buffers->states[optimizer_ema_state(o)],
        .constants = buffers->constants, .losses = buffers->losses, .n = floats,
        .floats = arena_floats_of_item(list->device, floats), .rate = 1 - o->ema_decay);
    arena_launch_grid(launch, list->device, floats);
    launch_work(launch, 3 * (double)floats, 12 * (double)floats);
}

static void emit_statistics(
    const tutti_network *network, const struct optimizer_buffers *buffers, int statistics, struct launch_list *list)
{
    const bool cpu = list->device->can.class == DEVICE_CPU;
    const size_t group = arena_group_size(list->device);
    struct launch *launch = arena_launch(list, "arena", "running_statistics", "");
    launch_buffer(launch, buffers->parameters);
    launch_buffer(launch, buffers->gradients);
    launch_buffer(launch, buffers->statistics);
    launch_buffer(launch, buffers->constants);
    launch_buffer(launch, buffers->losses);
    if (cpu)
        launch_tasks(launch, (size_t)statistics, 1, 1);
    else
        launch_grid(launch, 1, (size_t)statistics * group, 1, 1, group, 1, 1);
    const double floats = (double)(network->total_floats - network->trained_floats);
    launch_work(launch, 3 * floats, 12 * floats);
}

/* If gradients are clipped, updates running statistics first, because clipping changes the factor of the
 * gradients. */
void optimizer_emit(const struct optimizer *optimizer, const tutti_network *network,
    const struct optimizer_buffers *buffers, int statistics, struct launch_list *list)
{
    const bool clips = optimizer->clip_norm > 0;
    if (clips) {
        clip_emit_norm(network, buffers, list);
        if (statistics > 0) emit_statistics(network, buffers, statistics, list);
        clip_emit(optimizer, buffers, list);
    }
    if (network->trained_floats > 0) emit_trained(optimizer, network->trained_floats, buffers, list);
    if (!clips && statistics > 0) emit_statistics(network, buffers, statistics, list);
    if (optimizer->ema_decay > 0) emit_ema(optimizer, network->trained_floats, buffers, list);
}

void optimizer_emit_check(const tutti_network *network, cl_mem gradients, cl_mem constants, struct launch_list *list)
{
    struct launch *launch = arena_launch(list, "arena", "gradients_check", "");
    launch_buffer(launch, gradients);
    launch_buffer(launch, constants);
    launch_long(launch, network->total_floats);
    arena_launch_range(launch, list->device, network->total_floats);
    launch_work(launch, 0, 4 * (double)network->total_floats);
}
