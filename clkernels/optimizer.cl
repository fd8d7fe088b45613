/* The update of a single device: every trained parameter, whatever its layer, in one launch, because parameters,
 * gradients and states are one contiguous arena each; and the running statistics behind them in another.
 * The rules are those of train/optimizer.h, which also has their form for the host.
 *
 * Arguments: p, g and the states m, v: arenas of n floats, n a multiple of 16. constants: of this step. losses: the sum of
 * the losses and the number of correct samples for each of constants->runs micro-batches: where a loss is not a finite
 * number nothing is updated, so that the host learns of it and the parameters are still those before the step.
 * Launched by train/optimizer.c at the end of a step: CPU class, one task per `floats` floats (a multiple of 16); GPU class, one
 * work-item per 4 neighbouring floats, in groups of 256. */
#include "step.h"

#if TUTTI_GPU
#undef V
#define V 4
#define KERNEL __attribute__((reqd_work_group_size(256, 1, 1))) kernel
#else
#define KERNEL TASK
#endif
#include "vector.h"
#define LOAD(p) VLOAD(0, p)
#define STORE(p, value) VSTORE(value, 0, p)

/* By its bits: a build with finite-math options would fold isfinite() away. */
static bool update_wanted(global const step_constants *constants, global const float *losses)
{
    bool finite = true;
    for (uint run = 0; run < constants->runs; run++)
        finite = finite && (as_uint(losses[2 * run]) & 0x7f800000u) != 0x7f800000u;
    return finite;
}

/* The range of this work-item. */
#define FOR_RANGE(i) \
    const long end = min((long)(get_global_id(0) + 1) * floats, n); \
    for (long i = (long)get_global_id(0) * floats; i < end; i += V)

KERNEL void sgd(global float *restrict p, global const float *restrict g, global const step_constants *constants,
    global const float *losses, long n, int floats, float decay)
{
    if (!update_wanted(constants, losses)) return;
    const float rate = constants->learning_rate;
    FOR_RANGE(i)
    {
        const VF value = LOAD(p + i);
        STORE(p + i, value - rate * (LOAD(g + i) + decay * value));
    }
}

KERNEL void sgd_momentum(global float *restrict p, global const float *restrict g, global float *restrict v,
    global const step_constants *constants, global const float *losses, long n, int floats, float decay,
    float momentum, int nesterov)
{
    if (!update_wanted(constants, losses)) return;
    const float rate = constants->learning_rate;
    FOR_RANGE(i)
    {
        const VF value = LOAD(p + i);
        const VF gradient = LOAD(g + i) + decay * value;
        const VF velocity = momentum * LOAD(v + i) + gradient;
        STORE(v + i, velocity);
        STORE(p + i, value - rate * (nesterov ? gradient + momentum * velocity : velocity));
    }
}

KERNEL void adam(global float *restrict p, global const float *restrict g, global float *restrict m,
    global float *restrict v, global const step_constants *constants, global const float *losses, long n,
    int floats, float decay, float beta1, float beta2, float epsilon, int decoupled)
{
    if (!update_wanted(constants, losses)) return;
    const float rate = constants->learning_rate / constants->bias_correction1;
    const float root = sqrt(constants->bias_correction2);
    const float keep = decoupled ? 1.0f - constants->learning_rate * decay : 1.0f;
    const float coupled = decoupled ? 0.0f : decay;
    FOR_RANGE(i)
    {
        const VF value = LOAD(p + i);
        const VF gradient = LOAD(g + i) + coupled * value;
        const VF first = LOAD(m + i) + (1.0f - beta1) * (gradient - LOAD(m + i));
        const VF second = beta2 * LOAD(v + i) + (1.0f - beta2) * (gradient * gradient);
        STORE(m + i, first);
        STORE(v + i, second);
        STORE(p + i, keep * value - rate * (first / (sqrt(second) / root + epsilon)));
    }
}

/* p = (1 - momentum) p + momentum g over each row of the table. One row for each task (CPU class) or group of 256. */
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
    for (long i = (long)get_local_id(0); i < row.count; i += (long)get_local_size(0))
        p[row.first + i] = (1.0f - row.momentum) * p[row.first + i] + row.momentum * g[row.first + i];
}

/* sum += g: the gradients of micro-batches. */
KERNEL void gradients_add(global float *restrict sum, global const float *restrict g, long n, int floats)
{
    FOR_RANGE(i) STORE(sum + i, LOAD(sum + i) + LOAD(g + i));
}
