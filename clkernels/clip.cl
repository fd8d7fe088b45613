/* The norm of all gradients of trained parameters, and clipping by it (torch.nn.utils.clip_grad_norm_):
 * constants->unscale, by which the update multiplies gradients, is multiplied by min(1, most / (norm + 1e-6)).
 * Sums are in a fixed order: each task (CPU class) or group has `floats` neighbouring floats, a multiple of 16, and one
 * task or group adds up what they give. GROUP is a power of two. Squares of large and of small numbers leave the range of
 * floats: such numbers are scaled and have sums of their own (J. L. Blue: A portable Fortran program to find the Euclidean norm of a
 * vector, TOMS 4, 1978). norms: the norm, then the sums, [3][256]: of small, other and large numbers.
 * Launched by replica/clip.c before the rules of optimizer.cl; running statistics are not clipped. */
#include "step.h"
#include "arena.h"
#include "sum.h"
#if TUTTI_GPU
#include "group.h"
#define JOIN(sum) group_sum(sum, shared)
#else
#define JOIN(sum) (sum)
#endif
#define SUMS 256
#define LEAST 0x1p-40f /* numbers from here on */
#define MOST 0x1p40f   /* up to here have squares */
#define SCALE 0x1p80f

KERNEL void gradient_squares(global const float *restrict g, global const step_constants *constants,
    global float *restrict norms, long n, int floats)
{
    const float unscale = constants->unscale;
    const long begin = (long)get_group_id(0) * floats, end = min(begin + floats, n), step = (long)get_local_size(0) * V;
    VF small = 0, other = 0, large = 0, small_error = 0, other_error = 0, large_error = 0;
    for (long i = begin + (long)get_local_id(0) * V; i < end;) {
        const long stop = min(i + SUM_BLOCK * step, end);
        VF block_small = 0, block_other = 0, block_large = 0;
        for (; i < stop; i += step) {
            const VF value = unscale * VLOAD(0, g + i), size = fabs(value);
            const VF scaled = value * (size < LEAST ? (VF)(SCALE) : size > MOST ? (VF)(1 / SCALE) : (VF)(1.0f));
            const VF square = scaled * scaled;
            block_small += size < LEAST ? square : (VF)(0.0f);
            block_large += size > MOST ? square : (VF)(0.0f);
            block_other += size < LEAST || size > MOST ? (VF)(0.0f) : square; /* NaN, too */
        }
        SUM_ADD(VF, small, small_error, block_small);
        SUM_ADD(VF, other, other_error, block_other);
        SUM_ADD(VF, large, large_error, block_large);
    }
#if TUTTI_GPU
    local float shared[GROUP];
#endif
    const float sums[3] = { JOIN(vector_sum(small)), JOIN(vector_sum(other)), JOIN(vector_sum(large)) };
    if (get_local_id(0) > 0) return;
    for (int k = 0; k < 3; k++) norms[1 + k * SUMS + get_group_id(0)] = sums[k];
}

/* One task or group adds up `count` sums of each kind. If the norm is not finite, nothing is updated. */
KERNEL void gradient_norm(global float *norms, global step_constants *constants, int count)
{
    float sums[3], errors[3];
#if TUTTI_GPU
    local float shared[GROUP];
#endif
    for (int k = 0; k < 3; k++) {
        sums[k] = errors[k] = 0.0f;
        for (int i = (int)get_local_id(0); i < count; i += (int)get_local_size(0))
            SUM_ADD(float, sums[k], errors[k], norms[1 + k * SUMS + i]);
        sums[k] = JOIN(sums[k]);
    }
    if (get_local_id(0) > 0) return;
    /* A sum that is not 0 is a number or NaN. Either one of two sums is so many times the other that it alone counts,
     * or both can be added in its scale. */
    const float norm = sums[2] != 0.0f ? sqrt(sums[2] + sums[1] / SCALE / SCALE) * SCALE
        : sums[1] != 0.0f              ? sqrt(sums[1] + sums[0] / SCALE / SCALE)
                                       : sqrt(sums[0]) / SCALE;
    norms[0] = norm;
    if ((as_uint(norm) & 0x7f800000u) == 0x7f800000u) constants->not_finite |= 1u; /* by its bits: see update_wanted.h */
}

/* One task or group. */
KERNEL void gradient_clip(global const float *norms, global step_constants *constants, float most)
{
    const float norm = norms[0];
    if (get_local_id(0) > 0) return;
    if (norm + 1e-6f > most) constants->unscale *= most / (norm + 1e-6f);
}
