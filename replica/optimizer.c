#include "replica/optimizer.h"

#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"
#include "clkernels/arguments/arena.h"
#include "clkernels/arguments/optimizer.h"
#include "clkernels/optimizer_rules.h"
#include "replica/arena_launch.h"
#include "replica/clip.h"
#include "runtime/arguments.h"
#include "tutti_finetune.h"

#include <float.h>
#include <math.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------------------------------- rules ---- */

/* Sets the bias corrections of step `step` = 1, 2, ..., and may multiply the learning rate. */
typedef void corrections(const struct optimizer *optimizer, double step, struct step_constants *constants);

static void uncorrected(const struct optimizer *optimizer, double step, struct step_constants *constants)
{
    (void)optimizer, (void)step;
    constants->bias_correction1 = constants->bias_correction2 = 1;
}

static void bias_corrected(const struct optimizer *optimizer, double step, struct step_constants *constants)
{
    constants->bias_correction1 = (float)(1 - pow(optimizer->beta1, step));
    constants->bias_correction2 = (float)(1 - pow(optimizer->beta2, step));
}

/* NAdam's beta1 of a step, with PyTorch's default of momentum_decay. */
static double nadam_beta1(const struct optimizer *optimizer, double step)
{
    return optimizer->beta1 * (1 - 0.5 * pow(0.96, 0.004 * step));
}

/* The learning rate gets the factor of the gradient; divided by the first correction, it has that of the mean. The
 * product of all beta1 is soon too small to change 1 - product. */
static void nesterov_corrected(const struct optimizer *optimizer, double step, struct step_constants *constants)
{
    const double next = nadam_beta1(optimizer, step + 1);
    double product = 1;
    for (double t = 1; t <= step && product > DBL_EPSILON / 4; t++) product *= nadam_beta1(optimizer, t);
    const double factor = (1 - nadam_beta1(optimizer, step)) / (1 - product);
    constants->learning_rate = (float)(constants->learning_rate * factor);
    constants->bias_correction1 = (float)(factor * (1 - product * next) / next);
    constants->bias_correction2 = (float)(1 - pow(optimizer->beta2, step));
}

/* What an update of parameters of one group reads: the names of optimizer_rules.h. */
struct factors {
    float rate, decay, keep, unscale, corrected, root;
    float momentum, beta1, beta2, rest1, rest2, epsilon;
};

/* Updates `count` parameters. States that the rule does not have are NULL. */
typedef void update_loop(int64_t count, const struct factors *factors, const float *restrict old_p,
    const float *restrict gradients, const float *restrict old_a, const float *restrict old_b,
    const float *restrict old_c, float *restrict new_p, float *restrict new_a, float *restrict new_b,
    float *restrict new_c);

static inline float positive(float x)
{
    return x > 0 ? x : 0;
}

static inline float sign(float x)
{
    return (float)((x > 0) - (x < 0));
}

#define READ(state) , state = old_##state[i]
#define WRITE(state) new_##state[i] = state;
#define LOOP(rule, KIND, title, options, states, names, default1, default2, default3, decay_kind, corrections, update) \
    static void update_##rule(int64_t count, const struct factors *factors, const float *restrict old_p,               \
        const float *restrict gradients, const float *restrict old_a, const float *restrict old_b,                     \
        const float *restrict old_c, float *restrict new_p, float *restrict new_a, float *restrict new_b,              \
        float *restrict new_c)                                                                                         \
    {                                                                                                                  \
        const float rate = factors->rate, decay = factors->decay, keep = factors->keep, unscale = factors->unscale,    \
                    corrected = factors->corrected, root = factors->root, momentum = factors->momentum,                \
                    beta1 = factors->beta1, beta2 = factors->beta2, rest1 = factors->rest1, rest2 = factors->rest2,    \
                    epsilon = factors->epsilon;                                                                        \
        (void)rate, (void)keep, (void)corrected, (void)root, (void)momentum, (void)beta1, (void)beta2, (void)rest1;    \
        (void)rest2, (void)epsilon, (void)old_a, (void)old_b, (void)old_c, (void)new_a, (void)new_b, (void)new_c;      \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            const float g = unscale * gradients[i] + decay * old_p[i];                                                 \
            float p = old_p[i] RULE_STATES_##states(READ);                                                             \
            update;                                                                                                    \
            new_p[i] = p;                                                                                              \
            RULE_STATES_##states(WRITE)                                                                                \
        }                                                                                                              \
    }
#define sqrt(x) sqrtf(x)
OPTIMIZER_RULES(LOOP)
#undef sqrt

struct rule {
    const char *kernel, *name;
    tutti_optimizer kind;
    unsigned options;
    int states;
    const char *names[OPTIMIZER_STATES - 1];
    float learning_rate, beta2, epsilon;
    bool decoupled;
    corrections *correct;
    update_loop *update;
};

#define NAMES(...)  \
    {               \
        __VA_ARGS__ \
    }
#define ROW(rule, KIND, title, options, states, names, rate, beta2, epsilon, decay, corrections, update)       \
    { #rule, title, TUTTI_##KIND, options, states, NAMES names, rate, beta2, epsilon, decay == RULE_DECOUPLED, \
        corrections, update_##rule },
static const struct rule rules[] = { OPTIMIZER_RULES(ROW) };
enum { RULES = sizeof(rules) / sizeof(*rules) };

static unsigned options_of(const struct optimizer *optimizer)
{
    unsigned given = (optimizer->centered ? RULE_CENTERED : 0) | (optimizer->amsgrad ? RULE_AMSGRAD : 0);
    if (optimizer->momentum != 0) given |= RULE_MOMENTUM | (optimizer->nesterov ? RULE_NESTEROV : 0);
    return given;
}

/* The first rule of the optimizer whose options are all set; NULL if the optimizer does not exist. */
static const struct rule *rule_of(const struct optimizer *optimizer)
{
    const unsigned given = options_of(optimizer);
    for (int i = 0; i < RULES; i++)
        if (rules[i].kind == optimizer->kind && (rules[i].options & ~given) == 0) return &rules[i];
    return NULL;
}

/* ----------------------------------------------------------------------------------------------- options ---- */

static bool in_range(float value, float low, float high)
{
    return value >= low && value < high; /* false for NaN */
}

/* Options that any rule of the optimizer is for. */
static unsigned options_known(tutti_optimizer kind)
{
    unsigned known = 0;
    for (int i = 0; i < RULES; i++)
        if (rules[i].kind == kind) known |= rules[i].options;
    return known;
}

/* Refuses an option that no rule of the optimizer has, and lists those that have it. */
static tutti_status no_option(const struct optimizer *optimizer, const char *name, unsigned option)
{
    struct text others = { 0 };
    tutti_optimizer last = optimizer->kind;
    for (int i = 0; i < RULES; i++) {
        if (!(rules[i].options & option) || rules[i].kind == last) continue; /* rules of one kind are neighbours */
        text_append(&others, "%s%s", others.size ? ", " : "", rules[i].name);
        last = rules[i].kind;
    }
    const tutti_status status = fail(TUTTI_INVALID, "%s is set, but the optimizer is %s: those with this option are %s",
        name, tutti_optimizer_name(optimizer->kind), others.data ? others.data : "others");
    text_free(&others);
    return status;
}

static tutti_status check(const struct optimizer *optimizer)
{
    if (!in_range(optimizer->learning_rate, 0, INFINITY))
        return fail(TUTTI_INVALID, "the learning rate is %g: it must be positive and finite", optimizer->learning_rate);
    if (!in_range(optimizer->momentum, 0, 1))
        return fail(TUTTI_INVALID, "momentum is %g: it must be at least 0 and below 1", optimizer->momentum);
    if (optimizer->kind == TUTTI_SGD && optimizer->nesterov && optimizer->momentum == 0)
        return fail(TUTTI_INVALID, "nesterov is set, but momentum is 0: it must be above 0");
    const unsigned missing = options_of(optimizer) & ~options_known(optimizer->kind);
    if (missing & RULE_CENTERED) return no_option(optimizer, "centered", RULE_CENTERED);
    if (missing & RULE_AMSGRAD) return no_option(optimizer, "amsgrad", RULE_AMSGRAD);
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

tutti_status optimizer_init(struct optimizer *optimizer, const tutti_training *training)
{
    *optimizer = (struct optimizer) {
        .kind = training->optimizer,
        .momentum = training->momentum,
        .nesterov = training->nesterov,
        .centered = training->centered,
        .amsgrad = training->amsgrad,
        .weight_decay = training->weight_decay,
        .clip_norm = training->clip_norm,
        .ema_decay = training->ema_decay,
    };
    const struct rule *rule = rule_of(optimizer);
    if (!rule)
        return fail(TUTTI_INVALID, "optimizer %d does not exist: pass one of tutti_optimizer", (int)optimizer->kind);
    optimizer->learning_rate = training->learning_rate != 0 ? training->learning_rate : rule->learning_rate;
    optimizer->beta1 = training->beta1 != 0 ? training->beta1 : 0.9f;
    optimizer->beta2 = training->beta2 != 0 ? training->beta2 : rule->beta2;
    optimizer->epsilon = training->epsilon != 0 ? training->epsilon : rule->epsilon;
    return check(optimizer);
}

const char *tutti_optimizer_name(tutti_optimizer kind)
{
    for (int i = 0; i < RULES; i++)
        if (rules[i].kind == kind) return rules[i].name;
    return NULL;
}

int optimizer_states(const struct optimizer *optimizer)
{
    return rule_of(optimizer)->states + (optimizer->ema_decay > 0);
}

int optimizer_ema_state(const struct optimizer *optimizer)
{
    return optimizer->ema_decay > 0 ? rule_of(optimizer)->states : -1;
}

const char *optimizer_state_name(const struct optimizer *optimizer, int state)
{
    if (state == optimizer_ema_state(optimizer)) return "parameter"; /* files have the EMA as the weights: swapped */
    return rule_of(optimizer)->names[state];
}

bool optimizer_counts_steps(const struct optimizer *optimizer)
{
    return rule_of(optimizer)->correct != uncorrected;
}

void optimizer_constants(
    const struct optimizer *optimizer, float learning_rate, int64_t step, struct step_constants *constants)
{
    constants->learning_rate = learning_rate;
    rule_of(optimizer)->correct(optimizer, (double)step + 1, constants);
    constants->unscale = 1;
}

static void set_group(const struct optimizer *optimizer, const struct parameter *p, float rate_factor,
    const float *weight_decay, struct optimizer_group *table)
{
    const struct optimizer_group group = { rate_factor != 0 ? rate_factor : 1,
        weight_decay ? *weight_decay : optimizer->weight_decay };
    for (int64_t at = 0; at < p->elements; at += PARAMETER_ALIGNMENT)
        table[(p->offset + at) / PARAMETER_ALIGNMENT] = group;
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
        set_group(optimizer, p, p->rate_factor, p->has_weight_decay ? &p->weight_decay : NULL, table);
        const struct optimizer_group *group = &table[p->offset / PARAMETER_ALIGNMENT];
        any |= group->rate_factor != 1 || group->weight_decay != optimizer->weight_decay;
    }
    if (any) {
        *groups = table;
    } else {
        free(table);
        *count = 0;
    }
    return TUTTI_OK;
}

tutti_status optimizer_set_group(
    struct optimizer *optimizer, const tutti_network *network, const char *pattern, const tutti_group_options *options)
{
    int found = 0;
    if (!optimizer->groups)
        return fail(
            TUTTI_INVALID, "no group had a rate or decay of its own: call tutti_group() before tutti_compile()");
    for (size_t i = 0; i < network->parameter_count; i++) {
        const struct parameter *p = &network->parameters[i];
        if (p->kind != PARAMETER_TRAINED || !parameter_matches(p, pattern)) continue;
        found++;
        set_group(optimizer, p, options->rate_factor, options->has_weight_decay ? &options->weight_decay : NULL,
            optimizer->groups);
    }
    if (found == 0) return fail(TUTTI_INVALID, "no parameter that trains matches '%s'", pattern);
    optimizer->group_changes++;
    return TUTTI_OK;
}

/* A range of parameters of one group. */
struct range {
    float rate, decay;
    int64_t count;
};

static struct factors factors_of(const struct host_update *update, const struct rule *rule, const struct range *range)
{
    const struct optimizer *o = update->optimizer;
    return (struct factors) { .rate = range->rate,
        .decay = rule->decoupled ? 0 : range->decay,
        .keep = rule->decoupled ? 1 - range->rate * range->decay : 1,
        .unscale = update->clip ? *update->clip * update->constants->unscale : update->constants->unscale,
        .corrected = range->rate / update->constants->bias_correction1,
        .root = sqrtf(update->constants->bias_correction2),
        .momentum = o->momentum,
        .beta1 = o->beta1,
        .beta2 = o->beta2,
        .rest1 = 1 - o->beta1,
        .rest2 = 1 - o->beta2,
        .epsilon = o->epsilon };
}

static void update_ema(
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
    const struct host_update *update, int64_t first, int64_t count, const float *p, const float *g, float *new_p)
{
    const tutti_network *network = update->network;
    const float unscale = update->constants->unscale;
    for (size_t i = 0; i < network->parameter_count; i++) {
        const struct parameter *parameter = &network->parameters[i];
        if (!is_updated_statistic(update->optimizer, network, i)) continue;
        const int64_t begin = parameter->offset > first ? parameter->offset : first, rest = first + count;
        const int64_t end =
            parameter->offset + parameter->elements < rest ? parameter->offset + parameter->elements : rest;
        const float momentum = momentum_of(update->optimizer, network, i);
        for (int64_t j = begin - first; j < end - first; j++)
            new_p[j] = (1 - momentum) * p[j] + momentum * (unscale * g[j]);
    }
}

/* Returns the range of parameters from `first` on, at most `most`, that have one rate and one decay. */
static struct range range_at(const struct host_update *update, int64_t first, int64_t most)
{
    const struct optimizer_group all = { 1, update->optimizer->weight_decay }, *groups = update->optimizer->groups;
    const struct optimizer_group *group = groups ? &groups[first / PARAMETER_ALIGNMENT] : &all;
    struct range range = { group->rate_factor * update->constants->learning_rate, group->weight_decay, most };
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
static void update_trained(const struct host_update *update, const struct range *range, int64_t at,
    const struct optimizer_arrays *old, const float *gradients, const struct optimizer_arrays *updated)
{
    const struct rule *rule = rule_of(update->optimizer);
    const int ema = optimizer_ema_state(update->optimizer);
    const struct factors factors = factors_of(update, rule, range);
    const float *const p = old->parameters + at, *s[OPTIMIZER_STATES] = { NULL };
    float *const new_p = updated->parameters + at, *new_s[OPTIMIZER_STATES] = { NULL };
    for (int i = 0; i < rule->states; i++) {
        s[i] = old->states[i] + at;
        new_s[i] = updated->states[i] + at;
    }
    rule->update(range->count, &factors, p, gradients + at, s[0], s[1], s[2], new_p, new_s[0], new_s[1], new_s[2]);
    if (ema >= 0)
        update_ema(
            1 - update->optimizer->ema_decay, range->count, new_p, old->states[ema] + at, updated->states[ema] + at);
}

/* All arrays begin at `first`; `updated` overlaps no other. */
static void update_range(const struct host_update *update, int64_t first, int64_t count, int64_t trained,
    const struct optimizer_arrays *old, const float *gradients, const struct optimizer_arrays *updated)
{
    const float *const p = old->parameters;
    float *const new_p = updated->parameters;
    for (int64_t done = 0; done < trained;) {
        const struct range range = range_at(update, first + done, trained - done);
        update_trained(update, &range, done, old, gradients, updated);
        done += range.count;
    }
    if (trained == count) return;
    memcpy(new_p + trained, p + trained, (size_t)(count - trained) * sizeof(float)); /* padding between statistics */
    update_statistics(update, first + trained, count - trained, p + trained, gradients + trained, new_p + trained);
}

int64_t optimizer_update_chunk(const struct host_update *update, int64_t first, int64_t count,
    const struct optimizer_arrays *arrays, const float *gradients, struct optimizer_chunk *updated)
{
    const int64_t trained = network_trained_in(update->network, first, count);
    struct optimizer_arrays old = { arrays->parameters + first, { NULL } }, new = { updated->parameters, { NULL } };
    for (int i = 0; i < OPTIMIZER_STATES && trained > 0; i++) {
        if (arrays->states[i]) old.states[i] = arrays->states[i] + first;
        new.states[i] = updated->states[i];
    }
    update_range(update, first, count, trained, &old, gradients, &new);
    return trained;
}

/* An update of whole arenas on the host, in place. */
struct arena_update {
    const struct host_update *update;
    struct optimizer_arrays arrays;
    const float *gradients;
};

static void update_in_place(const struct arena_update *arena, int64_t first, int64_t count)
{
    struct optimizer_chunk chunk;
    const struct optimizer_arrays *arrays = &arena->arrays;
    const int64_t trained =
        optimizer_update_chunk(arena->update, first, count, arrays, arena->gradients + first, &chunk);
    memcpy(arrays->parameters + first, chunk.parameters, (size_t)count * sizeof(float));
    for (int i = 0; i < OPTIMIZER_STATES && arrays->states[i] && trained > 0; i++)
        memcpy(arrays->states[i] + first, chunk.states[i], (size_t)trained * sizeof(float));
}

static void update_task(void *argument, int task)
{
    const struct arena_update *arena = argument;
    const int64_t begin = (int64_t)task * ARENA_RANGE, total = arena->update->network->total_floats;
    const int64_t end = begin + ARENA_RANGE < total ? begin + ARENA_RANGE : total;
    for (int64_t first = begin; first < end; first += OPTIMIZER_CHUNK)
        update_in_place(arena, first, end - first < OPTIMIZER_CHUNK ? end - first : OPTIMIZER_CHUNK);
}

void optimizer_update(const struct host_update *update, struct thread_pool *pool, float *parameters,
    const float *gradients, float *const *states)
{
    struct arena_update arena = { .update = update, .arrays = { .parameters = parameters }, .gradients = gradients };
    for (int i = 0; i < optimizer_states(update->optimizer); i++) arena.arrays.states[i] = states[i];
    thread_pool_run(pool, (int)divide_up(update->network->total_floats, ARENA_RANGE), update_task, &arena);
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

ARGUMENTS(rule, OPTIMIZER_ARGUMENTS)
ARGUMENTS(ema, EMA_ARGUMENTS)
ARGUMENTS(groups, GROUPS_ARGUMENTS)

static void emit_trained(
    const struct optimizer *o, int64_t floats, const struct optimizer_buffers *buffers, struct launch_list *list)
{
    const struct rule *rule = rule_of(o);
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
