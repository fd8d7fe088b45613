#include "replica/optimizer.h"

#include "base/memory.h"
#include "base/status.h"
#include "clkernels/arguments/optimizer.h"
#include "replica/clip.h"
#include "runtime/arguments.h"

#include <math.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

static bool in_range(float value, float low, float high)
{
    return value >= low && value < high; /* false for NaN */
}

tutti_status optimizer_init(struct optimizer *optimizer, const tutti_training *training)
{
    *optimizer = (struct optimizer) {
        .kind = training->optimizer,
        .learning_rate = training->learning_rate,
        .momentum = training->momentum,
        .nesterov = training->nesterov,
        .weight_decay = training->weight_decay,
        .beta1 = training->beta1 != 0 ? training->beta1 : 0.9f,
        .beta2 = training->beta2 != 0 ? training->beta2 : 0.999f,
        .epsilon = training->epsilon != 0 ? training->epsilon : 1e-8f,
        .clip_norm = training->clip_norm,
        .ema_decay = training->ema_decay,
    };
    if (optimizer->kind != TUTTI_SGD && optimizer->kind != TUTTI_ADAM && optimizer->kind != TUTTI_ADAMW)
        return fail(TUTTI_INVALID, "optimizer %d does not exist: pass one of tutti_optimizer", (int)optimizer->kind);
    if (optimizer->learning_rate == 0) optimizer->learning_rate = optimizer->kind == TUTTI_SGD ? 0.01f : 0.001f;
    if (!in_range(optimizer->learning_rate, 0, INFINITY))
        return fail(TUTTI_INVALID, "the learning rate is %g: it must be positive and finite", optimizer->learning_rate);
    if (!in_range(optimizer->momentum, 0, 1))
        return fail(TUTTI_INVALID, "momentum is %g: it must be at least 0 and below 1", optimizer->momentum);
    if (optimizer->kind == TUTTI_SGD && optimizer->nesterov && optimizer->momentum == 0)
        return fail(TUTTI_INVALID, "nesterov is set, but momentum is 0: it must be above 0");
    if (!in_range(optimizer->weight_decay, 0, INFINITY))
        return fail(TUTTI_INVALID, "weight decay is %g: it must be at least 0 and finite", optimizer->weight_decay);
    if (!in_range(optimizer->beta1, 0, 1) || !in_range(optimizer->beta2, 0, 1))
        return fail(TUTTI_INVALID, "beta1 and beta2 are %g and %g: they must be at least 0 and below 1",
            optimizer->beta1, optimizer->beta2);
    if (!in_range(optimizer->epsilon, 0, INFINITY))
        return fail(TUTTI_INVALID, "epsilon is %g: it must be positive and finite", optimizer->epsilon);
    if (!(optimizer->clip_norm >= 0))
        return fail(TUTTI_INVALID, "clip_norm is %g: it must be positive, or 0 not to clip", optimizer->clip_norm);
    if (!in_range(optimizer->ema_decay, 0, 1))
        return fail(TUTTI_INVALID, "ema_decay is %g: it must be at least 0 and below 1", optimizer->ema_decay);
    return TUTTI_OK;
}

const char *optimizer_name(tutti_optimizer kind)
{
    static const char *const names[] = { [TUTTI_SGD] = "sgd", [TUTTI_ADAM] = "adam", [TUTTI_ADAMW] = "adamw" };
    return names[kind];
}

static int rule_states(const struct optimizer *optimizer)
{
    return optimizer->kind == TUTTI_SGD ? optimizer->momentum != 0 : 2;
}

int optimizer_states(const struct optimizer *optimizer)
{
    return rule_states(optimizer) + (optimizer->ema_decay > 0);
}

int optimizer_average(const struct optimizer *optimizer)
{
    return optimizer->ema_decay > 0 ? rule_states(optimizer) : -1;
}

const char *optimizer_state_name(const struct optimizer *optimizer, int state)
{
    if (state == optimizer_average(optimizer)) return "parameter"; /* files have averages as the weights: swapped */
    if (optimizer->kind == TUTTI_SGD) return "momentum_buffer";
    return state == 0 ? "exp_avg" : "exp_avg_sq";
}

void optimizer_constants(const struct optimizer *optimizer, int64_t step, struct step_constants *constants)
{
    constants->learning_rate = optimizer->learning_rate;
    constants->bias_correction1 = (float)(1 - pow(optimizer->beta1, (double)step + 1));
    constants->bias_correction2 = (float)(1 - pow(optimizer->beta2, (double)step + 1));
    constants->unscale = 1;
}

tutti_status optimizer_groups(
    const struct optimizer *optimizer, const tutti_network *network, struct optimizer_group **groups, size_t *count)
{
    bool any = false;
    *groups = NULL;
    *count = (size_t)divide_up(network->trained_floats, PARAMETER_ALIGNMENT);
    struct optimizer_group *table = memory_new(*count, sizeof(*table));
    if (!table) return TUTTI_NO_MEMORY;
    for (size_t i = 0; i < network->parameter_count; i++) {
        const struct parameter *p = &network->parameters[i];
        if (p->kind != PARAMETER_TRAINED) continue;
        const struct optimizer_group group = { p->rate_factor != 0 ? p->rate_factor : 1,
            p->has_weight_decay ? p->weight_decay : optimizer->weight_decay };
        any |= group.rate_factor != 1 || group.weight_decay != optimizer->weight_decay;
        for (int64_t at = 0; at < p->elements; at += PARAMETER_ALIGNMENT)
            table[(p->offset + at) / PARAMETER_ALIGNMENT] = group;
    }
    if (any) {
        *groups = table;
    } else {
        free(table);
        *count = 0;
    }
    return TUTTI_OK;
}

/* Returns the factor of trained parameters' gradients. */
static float unscale_of(const struct optimizer_step *step)
{
    return step->clip ? *step->clip * step->constants->unscale : step->constants->unscale;
}

/* A range of parameters of one group. */
struct range {
    float rate, decay;
    int64_t count;
};

static void update_sgd(const struct optimizer_step *u, const struct range *range, const float *restrict p,
    const float *restrict g, float *restrict new_p)
{
    const int64_t n = range->count;
    const float rate = range->rate, decay = range->decay, unscale = unscale_of(u);
    for (int64_t i = 0; i < n; i++) new_p[i] = p[i] - rate * (unscale * g[i] + decay * p[i]);
}

static void update_momentum(const struct optimizer_step *u, const struct range *range, const float *restrict p,
    const float *restrict g, const float *restrict v, float *restrict new_p, float *restrict new_v)
{
    const int64_t n = range->count;
    const float rate = range->rate, decay = range->decay, momentum = u->optimizer->momentum, unscale = unscale_of(u);
    if (!u->optimizer->nesterov)
        for (int64_t i = 0; i < n; i++) {
            new_v[i] = momentum * v[i] + (unscale * g[i] + decay * p[i]);
            new_p[i] = p[i] - rate * new_v[i];
        }
    else
        for (int64_t i = 0; i < n; i++) {
            const float gradient = unscale * g[i] + decay * p[i];
            new_v[i] = momentum * v[i] + gradient;
            new_p[i] = p[i] - rate * (gradient + momentum * new_v[i]);
        }
}

static void update_adam(const struct optimizer_step *u, const struct range *range, const float *restrict p,
    const float *restrict g, const float *restrict m, const float *restrict v, float *restrict new_p,
    float *restrict new_m, float *restrict new_v)
{
    const struct optimizer *o = u->optimizer;
    const int64_t n = range->count;
    const float rate = range->rate / u->constants->bias_correction1;
    const float root = sqrtf(u->constants->bias_correction2);
    const float rest1 = 1 - o->beta1, rest2 = 1 - o->beta2, beta2 = o->beta2, epsilon = o->epsilon,
                unscale = unscale_of(u);
    const float keep = o->kind == TUTTI_ADAMW ? 1 - range->rate * range->decay : 1;
    const float decay = o->kind == TUTTI_ADAMW ? 0 : range->decay;
    for (int64_t i = 0; i < n; i++) {
        const float gradient = unscale * g[i] + decay * p[i];
        new_m[i] = m[i] + rest1 * (gradient - m[i]);
        new_v[i] = beta2 * v[i] + rest2 * (gradient * gradient);
        new_p[i] = keep * p[i] - rate * (new_m[i] / (sqrtf(new_v[i]) / root + epsilon));
    }
}

static void update_average(
    float rate, int64_t count, const float *restrict p, const float *restrict a, float *restrict new_a)
{
    for (int64_t i = 0; i < count; i++) new_a[i] = a[i] + rate * (p[i] - a[i]);
}

static bool is_updated_statistic(const struct optimizer *optimizer, const tutti_network *network, size_t parameter)
{
    return network->parameters[parameter].kind == PARAMETER_STATISTIC &&
        (!optimizer->uses || optimizer->uses[parameter] > 0);
}

static float momentum_of(const struct optimizer *optimizer, const tutti_network *network, size_t parameter)
{
    const int uses = optimizer->uses ? optimizer->uses[parameter] : 1;
    return parameter_momentum(network->parameters[parameter].momentum, uses);
}

/* Updates running statistics in the range that begins at `first`, where p and g point to. */
static void update_statistics(
    const struct optimizer_step *u, int64_t first, int64_t count, const float *p, const float *g, float *new_p)
{
    const tutti_network *network = u->network;
    const float unscale = u->constants->unscale;
    for (size_t i = 0; i < network->parameter_count; i++) {
        const struct parameter *parameter = &network->parameters[i];
        if (!is_updated_statistic(u->optimizer, network, i)) continue;
        const int64_t begin = parameter->offset > first ? parameter->offset : first, rest = first + count;
        const int64_t end =
            parameter->offset + parameter->elements < rest ? parameter->offset + parameter->elements : rest;
        const float momentum = momentum_of(u->optimizer, network, i);
        for (int64_t j = begin - first; j < end - first; j++)
            new_p[j] = (1 - momentum) * p[j] + momentum * (unscale * g[j]);
    }
}

/* Returns the range of parameters from `first` on, at most `most`, that have one rate and one decay. */
static struct range range_at(const struct optimizer_step *step, int64_t first, int64_t most)
{
    const struct optimizer_group all = { 1, step->optimizer->weight_decay }, *groups = step->optimizer->groups;
    const struct optimizer_group *group = groups ? &groups[first / PARAMETER_ALIGNMENT] : &all;
    struct range range = { group->rate_factor * step->constants->learning_rate, group->weight_decay, most };
    if (!groups) return range;
    int64_t end = (first / PARAMETER_ALIGNMENT + 1) * PARAMETER_ALIGNMENT;
    for (; end < first + most; end += PARAMETER_ALIGNMENT) {
        const struct optimizer_group *next = &groups[end / PARAMETER_ALIGNMENT];
        if (next->rate_factor != group->rate_factor || next->weight_decay != group->weight_decay) break;
    }
    if (end - first < most) range.count = end - first;
    return range;
}

/* Updates a range of trained parameters; `at`: its position in the arrays. */
static void update_trained(const struct optimizer_step *step, const struct range *range, int64_t at,
    const struct optimizer_arrays *old, const float *gradients, const struct optimizer_arrays *updated)
{
    const int kept = rule_states(step->optimizer), average = optimizer_average(step->optimizer);
    const float *p = old->parameters + at, *g = gradients + at;
    float *new_p = updated->parameters + at, *s[OPTIMIZER_STATES] = { 0 }, *new_s[OPTIMIZER_STATES] = { 0 };
    for (int i = 0; i < kept; i++) {
        s[i] = old->states[i] + at;
        new_s[i] = updated->states[i] + at;
    }
    if (kept == 0)
        update_sgd(step, range, p, g, new_p);
    else if (kept == 1)
        update_momentum(step, range, p, g, s[0], new_p, new_s[0]);
    else
        update_adam(step, range, p, g, s[0], s[1], new_p, new_s[0], new_s[1]);
    if (average >= 0)
        update_average(1 - step->optimizer->ema_decay, range->count, new_p, old->states[average] + at,
            updated->states[average] + at);
}

void optimizer_update_range(const struct optimizer_step *step, int64_t first, int64_t count,
    const struct optimizer_arrays *old, const float *gradients, const struct optimizer_arrays *updated)
{
    const int64_t left = step->network->trained_floats - first;
    const int64_t trained = left < 0 ? 0 : left < count ? left : count;
    const float *const p = old->parameters;
    float *const new_p = updated->parameters;
    for (int64_t done = 0; done < trained;) {
        const struct range range = range_at(step, first + done, trained - done);
        update_trained(step, &range, done, old, gradients, updated);
        done += range.count;
    }
    if (trained == count) return;
    memcpy(new_p + trained, p + trained, (size_t)(count - trained) * sizeof(float)); /* padding between statistics */
    update_statistics(step, first + trained, count - trained, p + trained, gradients + trained, new_p + trained);
}

/* An update of whole arenas on the host, in place. */
struct update {
    const struct optimizer_step *step;
    struct optimizer_arrays arrays;
    const float *gradients;
};

enum { RANGE = 1 << 16 }; /* floats of a task */

static void update_piece(const struct update *u, int64_t first, int64_t count)
{
    alignas(64) float parameters[OPTIMIZER_PIECE], states[OPTIMIZER_STATES][OPTIMIZER_PIECE];
    const int64_t left = u->step->network->trained_floats - first, trained = left < count ? left : count;
    struct optimizer_arrays old = { u->arrays.parameters + first, { NULL } };
    for (int i = 0; i < OPTIMIZER_STATES && trained > 0; i++)
        if (u->arrays.states[i]) old.states[i] = u->arrays.states[i] + first;
    optimizer_update_range(u->step, first, count, &old, u->gradients + first,
        &(struct optimizer_arrays) { parameters, { states[0], states[1], states[2] } });
    memcpy(old.parameters, parameters, (size_t)count * sizeof(float));
    for (int i = 0; i < OPTIMIZER_STATES && old.states[i]; i++)
        memcpy(old.states[i], states[i], (size_t)trained * sizeof(float));
}

static void update_task(void *argument, int task)
{
    const struct update *u = argument;
    const int64_t begin = (int64_t)task * RANGE, total = u->step->network->total_floats;
    const int64_t end = begin + RANGE < total ? begin + RANGE : total;
    for (int64_t first = begin; first < end; first += OPTIMIZER_PIECE)
        update_piece(u, first, end - first < OPTIMIZER_PIECE ? end - first : OPTIMIZER_PIECE);
}

void optimizer_update(const struct optimizer_step *step, struct thread_pool *pool, float *parameters,
    const float *gradients, float *const *states)
{
    struct update update = { .step = step, .arrays = { .parameters = parameters }, .gradients = gradients };
    for (int i = 0; i < optimizer_states(step->optimizer); i++) update.arrays.states[i] = states[i];
    thread_pool_run(pool, (int)divide_up(step->network->total_floats, RANGE), update_task, &update);
}

tutti_status optimizer_statistics(
    const struct optimizer *optimizer, const tutti_network *network, struct statistic_row **rows, int *count)
{
    *count = 0;
    *rows = memory_new(network->parameter_count, sizeof(**rows));
    if (!*rows) return TUTTI_NO_MEMORY;
    for (size_t i = 0; i < network->parameter_count; i++) {
        const struct parameter *parameter = &network->parameters[i];
        if (!is_updated_statistic(optimizer, network, i)) continue;
        (*rows)[(*count)++] = (struct statistic_row) {
            .first = parameter->offset, .count = parameter->elements, .momentum = momentum_of(optimizer, network, i)
        };
    }
    return TUTTI_OK;
}

/* Work-items of the streaming kernels. CPU class: tasks of equal size, at most RANGE floats each. GPU class: groups
 * of 256 items, or fewer if that is the device's limit, with four neighbouring floats each. Returns the floats of an
 * item, which are an argument of the kernel. */
enum { GPU_GROUP = 256, GPU_FLOATS = 4, TASKS_PER_UNIT = 8, CACHE_LINE = 16 };

static int64_t floats_of_item(const struct device *device, int64_t floats)
{
    if (device->can.class != DEVICE_CPU) return GPU_FLOATS;
    const int64_t round = (device->can.units > 0 ? device->can.units : 1) * TASKS_PER_UNIT;
    const int64_t tasks = divide_up(divide_up(floats, RANGE), round) * round;
    return divide_up(divide_up(floats, tasks), CACHE_LINE) * CACHE_LINE;
}

size_t optimizer_group_size(const struct device *device)
{
    return device->can.group_max < GPU_GROUP ? device->can.group_max : GPU_GROUP;
}

/* Adds a launch of a kernel that uses clkernels/arena.h. */
static struct launch *launch_with(struct launch_list *list, const char *source, const char *kernel, const char *options)
{
    const size_t group = optimizer_group_size(list->device);
    if (list->device->can.class == DEVICE_CPU || group == GPU_GROUP)
        return launch_add(list, source, kernel, "%s", options);
    return launch_add(list, source, kernel, *options ? "-DGROUP=%zu %s" : "-DGROUP=%zu%s", group, options);
}

struct launch *optimizer_launch(struct launch_list *list, const char *source, const char *kernel)
{
    return launch_with(list, source, kernel, "");
}

static void launch_stream(struct launch *launch, const struct device *device, int64_t floats)
{
    const size_t items = (size_t)divide_up(floats, floats_of_item(device, floats)),
                 group = optimizer_group_size(device);
    if (device->can.class == DEVICE_CPU)
        launch_tasks(launch, items, 1, 1);
    else
        launch_grid(launch, 1, size_round_up(items, group), 1, 1, group, 1, 1);
}

ARGUMENTS(sgd, SGD_ARGUMENTS)
ARGUMENTS(sgd_momentum, SGD_MOMENTUM_ARGUMENTS)
ARGUMENTS(adam, ADAM_ARGUMENTS)
ARGUMENTS(average, AVERAGE_ARGUMENTS)
ARGUMENTS(groups, GROUPS_ARGUMENTS)
#define UPDATE_VALUES(buffers)                                                                \
    .p = (buffers)->parameters, .g = (buffers)->gradients, .constants = (buffers)->constants, \
    .losses = (buffers)->losses

static void emit_trained(
    const struct optimizer *o, int64_t floats, const struct optimizer_buffers *buffers, struct launch_list *list)
{
    static const char *const kernels[] = { "sgd", "sgd_momentum", "adam" };
    const int states = rule_states(o);
    struct launch *launch = launch_with(list, "optimizer", kernels[states], o->groups ? "-DGROUPED=1" : "");
    const int64_t each = floats_of_item(list->device, floats);
    const double decay = o->weight_decay;
    if (states == 0)
        ARGUMENTS_SET(launch, sgd, UPDATE_VALUES(buffers), .n = floats, .floats = each, .decay = decay);
    else if (states == 1)
        ARGUMENTS_SET(launch, sgd_momentum, UPDATE_VALUES(buffers), .v = buffers->states[0], .n = floats,
            .floats = each, .decay = decay, .momentum = o->momentum, .nesterov = o->nesterov);
    else
        ARGUMENTS_SET(launch, adam, UPDATE_VALUES(buffers), .m = buffers->states[0], .v = buffers->states[1],
            .n = floats, .floats = each, .decay = decay, .beta1 = o->beta1, .beta2 = o->beta2, .epsilon = o->epsilon,
            .decoupled = o->kind == TUTTI_ADAMW);
    if (o->groups) ARGUMENTS_SET(launch, groups, .groups = buffers->groups);
    launch_stream(launch, list->device, floats);
    launch_work(launch, (double)floats * (2 + 6 * states), (double)floats * 4 * (3 + 2 * states));
}

static void emit_average(
    const struct optimizer *o, int64_t floats, const struct optimizer_buffers *buffers, struct launch_list *list)
{
    struct launch *launch = optimizer_launch(list, "optimizer", "average");
    ARGUMENTS_SET(launch, average, .p = buffers->parameters, .a = buffers->states[optimizer_average(o)],
        .constants = buffers->constants, .losses = buffers->losses, .n = floats,
        .floats = floats_of_item(list->device, floats), .rate = 1 - o->ema_decay);
    launch_stream(launch, list->device, floats);
    launch_work(launch, 3 * (double)floats, 12 * (double)floats);
}

static void emit_statistics(
    const tutti_network *network, const struct optimizer_buffers *buffers, int statistics, struct launch_list *list)
{
    const bool cpu = list->device->can.class == DEVICE_CPU;
    const size_t group = optimizer_group_size(list->device);
    struct launch *launch = optimizer_launch(list, "optimizer", "running_statistics");
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
    if (optimizer->ema_decay > 0) emit_average(optimizer, network->trained_floats, buffers, list);
}

void optimizer_emit_check(const tutti_network *network, cl_mem gradients, cl_mem constants, struct launch_list *list)
{
    struct launch *launch = optimizer_launch(list, "optimizer", "gradients_check");
    launch_buffer(launch, gradients);
    launch_buffer(launch, constants);
    launch_long(launch, network->total_floats);
    launch_int(launch, floats_of_item(list->device, network->total_floats));
    launch_stream(launch, list->device, network->total_floats);
    launch_work(launch, 0, 4 * (double)network->total_floats);
}

void optimizer_emit_add(const tutti_network *network, cl_mem sum, cl_mem gradients, struct launch_list *list)
{
    struct launch *launch = optimizer_launch(list, "optimizer", "gradients_add");
    launch_buffer(launch, sum);
    launch_buffer(launch, gradients);
    launch_long(launch, network->total_floats);
    launch_int(launch, floats_of_item(list->device, network->total_floats));
    launch_stream(launch, list->device, network->total_floats);
    launch_work(launch, (double)network->total_floats, 12 * (double)network->total_floats);
}

void optimizer_emit_wire(cl_mem gradients, cl_mem wire, int64_t first, int64_t count, struct launch_list *list)
{
    struct launch *launch = optimizer_launch(list, "wire", "gradients_to_bf16");
    launch_buffer(launch, gradients);
    launch_buffer(launch, wire);
    launch_long(launch, first);
    launch_long(launch, count);
    launch_int(launch, floats_of_item(list->device, count));
    launch_stream(launch, list->device, count);
    launch_work(launch, (double)count, 6 * (double)count);
}
