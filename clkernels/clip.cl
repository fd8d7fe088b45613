/* The norm of all gradients of trained parameters, and what clipping by it makes of them (torch.nn.utils.clip_grad_norm_):
 * constants->unscale, by which the update multiplies gradients, is multiplied by min(1, most / (norm + 1e-6)).
 * Sums are in a fixed order: each task (CPU class) or group has `floats` neighbouring floats, a multiple of 16, and one
 * task or group adds up what they give. GROUP is a power of two.
 * Launched by train/clip.c in front of the rules of optimizer.cl, behind running statistics, which are not clipped. */
#include "step.h"
#include "arena.h"
#if TUTTI_GPU
#include "group.h"
#endif

/* sums: one float for each task or group. */
KERNEL void gradient_squares(global const float *restrict g, global const step_constants *constants,
    global float *restrict sums, long n, int floats)
{
    const float unscale = constants->unscale;
    const long begin = (long)get_group_id(0) * floats, end = min(begin + floats, n);
    VF sum = 0;
    for (long i = begin + (long)get_local_id(0) * V; i < end; i += (long)get_local_size(0) * V) {
        const VF value = unscale * VLOAD(0, g + i);
        sum += value * value;
    }
#if TUTTI_GPU
    local float shared[GROUP];
    const float total = group_sum(vector_sum(sum), shared);
    if (get_local_id(0) == 0) sums[get_group_id(0)] = total;
#else
    sums[get_group_id(0)] = vector_sum(sum);
#endif
}

/* One task or group. norms: at most 256 sums; the norm is behind them. */
KERNEL void gradient_clip(global float *norms, global step_constants *constants, int count, float most)
{
    float sum = 0;
    for (int i = (int)get_local_id(0); i < count; i += (int)get_local_size(0)) sum += norms[i];
#if TUTTI_GPU
    local float shared[GROUP];
    sum = group_sum(sum, shared);
#endif
    if (get_local_id(0) > 0) return;
    const float norm = sqrt(sum);
    norms[256] = norm;
    if (norm + 1e-6f > most) constants->unscale *= most / (norm + 1e-6f);
}
