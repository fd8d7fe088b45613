/* Updates on the host: the loops of the rules, the EMA and running statistics. */
#include "base/memory.h"
#include "clkernels/optimizer_rules.h"
#include "replica/arena_launch.h"
#include "replica/optimizer_rule.h"

#include <math.h>
#include <string.h>

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

/* By the number of the rule. */
#define NAME(rule, ...) update_##rule,
static update_loop *const loops[] = { OPTIMIZER_RULES(NAME) };

/* A range of parameters of one group. */
struct range {
    float rate, decay;
    int64_t count;
};

static struct factors factors_of(
    const struct host_update *update, const struct optimizer_rule *rule, const struct range *range)
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

/* Updates running statistics in the range that begins at `first`, where p and g point to. */
static void update_statistics(
    const struct host_update *update, int64_t first, int64_t count, const float *p, const float *g, float *new_p)
{
    const tutti_network *network = update->network;
    const float unscale = update->constants->unscale;
    for (size_t i = 0; i < network->parameter_count; i++) {
        const struct parameter *parameter = &network->parameters[i];
        if (!optimizer_updates_statistic(update->optimizer, network, i)) continue;
        const int64_t begin = parameter->offset > first ? parameter->offset : first, rest = first + count;
        const int64_t end =
            parameter->offset + parameter->elements < rest ? parameter->offset + parameter->elements : rest;
        const float momentum = optimizer_statistic_momentum(update->optimizer, network, i);
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
    const struct optimizer_rule *rule = optimizer_rule_of(update->optimizer);
    const int ema = optimizer_ema_state(update->optimizer);
    const struct factors factors = factors_of(update, rule, range);
    const float *const p = old->parameters + at, *s[OPTIMIZER_STATES] = { NULL };
    float *const new_p = updated->parameters + at, *new_s[OPTIMIZER_STATES] = { NULL };
    for (int i = 0; i < rule->states; i++) {
        s[i] = old->states[i] + at;
        new_s[i] = updated->states[i] + at;
    }
    loops[rule->number](
        range->count, &factors, p, gradients + at, s[0], s[1], s[2], new_p, new_s[0], new_s[1], new_s[2]);
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
