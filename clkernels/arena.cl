/* The kernels around the optimizer's rule (optimizer.cl): the check of all gradients, running statistics, the EMA of
 * the parameters; and the sum of gradients over micro-batches.
 *
 * Arguments: p, g and a: arenas of n floats, n a multiple of 16. constants: of this step. constants->unscale: factor of
 * the gradients, 1 / loss scale, a power of two; if gradients are clipped, gradient_clip (clip.cl) multiplies the clip
 * factor into it after running_statistics. losses: as update_wanted.h has it.
 * Launched by replica/optimizer_emit.c at the end of a step, gradients_add by replica/gradients.c, as arena.h has
 * it. */
#include "parameters.h"
#include "arguments/arena.h"
#include "step.h"
#include "arena.h"
#include "update_wanted.h"
#define LOAD(p) VLOAD(0, p)
#define STORE(p, value) VSTORE(value, 0, p)
#define AS_VI CONCATENATE(as_int, V)

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

/* a += rate (p - a) over the parameters that were updated before it: their exponential moving average (EMA). */
KERNEL void ema(EMA_ARGUMENTS(PARAMETER))
{
    if (!update_wanted(constants, losses)) return;
    FOR_RANGE(i) STORE(a + i, LOAD(a + i) + rate * (LOAD(p + i) - LOAD(a + i)));
}
