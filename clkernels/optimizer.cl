/* The update of a single device: every trained parameter, whatever its layer, in one launch, because parameters,
 * gradients and states are one contiguous arena each; and the running statistics behind them in another.
 * The rules are those of train/optimizer.h, which also has their form for the host.
 *
 * Arguments: p, g and the states m, v: arenas of n floats, n a multiple of 16. constants: of this step. losses: for each
 * of constants->runs micro-batches the sum of its losses, loss_floats apart. If a loss or a gradient is not
 * finite, nothing is updated, so that the host learns of it and the parameters are still those before the step:
 * gradients_check has read all gradients before. Gradients are multiplied by constants->unscale, a power of two, and
 * 1 where losses are not scaled.
 * GROUPED 1: groups has a factor of the rate, and a decay instead of the argument's, for each 256 floats of the arenas.
 * Launched by train/optimizer.c at the end of a step, as arena.h has it. */
#include "parameters.h"
#include "arguments/optimizer.h"
#include "step.h"
#include "arena.h"
#define LOAD(p) VLOAD(0, p)
#define STORE(p, value) VSTORE(value, 0, p)
#define AS_VI CONCATENATE(as_int, V)

#if GROUPED
#define GROUPS GROUPS_ARGUMENTS(PARAMETER)
#define RULE(i, rate, decay) ((float2)(groups[(i) / 256].x * (rate), groups[(i) / 256].y))
#else
#define GROUPS
#define RULE(i, rate, decay) ((float2)(rate, decay)) /* of the floats from i on */
#endif

/* By its bits: a build with finite-math options would fold isfinite() away. */
static bool update_wanted(global const step_constants *constants, global const float *losses)
{
    bool finite = constants->not_finite == 0;
    const uint stride = max(constants->loss_floats, 2u);
    for (uint run = 0; run < constants->runs; run++)
        finite = finite && (as_uint(losses[stride * run]) & 0x7f800000u) != 0x7f800000u;
    return finite;
}

KERNEL void sgd(SGD_ARGUMENTS(PARAMETER) GROUPS)
{
    if (!update_wanted(constants, losses)) return;
    const float rate = constants->learning_rate, unscale = constants->unscale;
    FOR_RANGE(i)
    {
        const float2 rule = RULE(i, rate, decay);
        const VF value = LOAD(p + i), gradient = unscale * LOAD(g + i);
        STORE(p + i, value - rule.x * (gradient + rule.y * value));
    }
}

KERNEL void sgd_momentum(SGD_MOMENTUM_ARGUMENTS(PARAMETER) GROUPS)
{
    if (!update_wanted(constants, losses)) return;
    const float rate = constants->learning_rate, unscale = constants->unscale;
    FOR_RANGE(i)
    {
        const float2 rule = RULE(i, rate, decay);
        const VF value = LOAD(p + i), raw = unscale * LOAD(g + i);
        const VF gradient = raw + rule.y * value;
        const VF velocity = momentum * LOAD(v + i) + gradient;
        STORE(v + i, velocity);
        STORE(p + i, value - rule.x * (nesterov ? gradient + momentum * velocity : velocity));
    }
}

KERNEL void adam(ADAM_ARGUMENTS(PARAMETER) GROUPS)
{
    if (!update_wanted(constants, losses)) return;
    const float learning_rate = constants->learning_rate, correction = constants->bias_correction1;
    const float root = sqrt(constants->bias_correction2), unscale = constants->unscale;
    FOR_RANGE(i)
    {
        const float2 rule = RULE(i, learning_rate, decay);
        const float rate = rule.x / correction, keep = decoupled ? 1.0f - rule.x * rule.y : 1.0f;
        const float coupled = decoupled ? 0.0f : rule.y;
        const VF value = LOAD(p + i), raw = unscale * LOAD(g + i);
        const VF gradient = raw + coupled * value;
        const VF first = LOAD(m + i) + (1.0f - beta1) * (gradient - LOAD(m + i));
        const VF second = beta2 * LOAD(v + i) + (1.0f - beta2) * (gradient * gradient);
        STORE(m + i, first);
        STORE(v + i, second);
        STORE(p + i, keep * value - rate * (first / (sqrt(second) / root + epsilon)));
    }
}

/* p = (1 - momentum) p + momentum g over each row of the table. One row for each task (CPU class) or group. */
typedef struct {
    long first, count;
    float momentum;
    int reserved;
} statistic_row;

KERNEL void running_statistics(global float *restrict p, global const float *restrict g,
    global const statistic_row *rows, global const step_constants *constants, global const float *losses)
{
    if (!update_wanted(constants, losses)) return;
    const statistic_row row = rows[get_group_id(0)];
    const float unscale = constants->unscale;
    for (long i = (long)get_local_id(0); i < row.count; i += (long)get_local_size(0)) {
        const float value = unscale * g[row.first + i];
        p[row.first + i] = (1.0f - row.momentum) * p[row.first + i] + row.momentum * value;
    }
}

/* If a gradient is not finite, the launches after this one update nothing. All work-items that find one write the same
 * value. */
KERNEL void gradients_check(
    global const float *restrict g, global step_constants *restrict constants, long n, int floats)
{
    VI largest = 0;
    FOR_RANGE(i) largest = max(largest, AS_VI(LOAD(g + i)) & 0x7fffffff);
    if (any(largest >= 0x7f800000)) atomic_or((volatile global uint *)&constants->not_finite, 1u);
}

/* sum += g: the gradients of micro-batches. */
KERNEL void gradients_add(global float *restrict sum, global const float *restrict g, long n, int floats)
{
    FOR_RANGE(i) STORE(sum + i, LOAD(sum + i) + LOAD(g + i));
}

/* a += rate (p - a) over the parameters that were updated in front of it: their exponential moving average. */
KERNEL void average(AVERAGE_ARGUMENTS(PARAMETER))
{
    if (!update_wanted(constants, losses)) return;
    FOR_RANGE(i) STORE(a + i, LOAD(a + i) + rate * (LOAD(p + i) - LOAD(a + i)));
}
