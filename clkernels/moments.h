/* Count, mean and sum of squared deviations of some values, as x, y and z of a float4, and those of several parts joined
 * (Chan, Golub, LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances", 1979). */
#ifndef MOMENTS_H
#define MOMENTS_H
#include "vector.h"

/* Joins the moments of two parts. Counts are whole numbers; a part without values has zeros. */
INLINE float4 moments_join_parts(float4 a, float4 b)
{
    const float count = a.x + b.x, d = b.y - a.y, w = b.x / fmax(count, 1.0f);
    return (float4)(count, fma(d, w, a.y), a.z + fma(d * d, a.x * w, b.z), 0.0f);
}

/* Joins the parts [parts][3][stride] for the first C channels. A group of GROUP work-items takes `own` of these
 * channels, and GROUP / own of its work-items take one of them; GROUP and own are powers of two, and scratch has
 * GROUP elements. Every work-item calls, and the first ones get the moments of their channels. */
INLINE float4 moments_of_parts(global const float *in, int parts, int stride, int C, int own, local float4 *scratch)
{
    const int item = get_local_id(0), c = min((int)get_group_id(0) * own + item % own, C - 1);
    float4 all = (float4)(0.0f);
    for (int p = item / own; p < parts; p += 4 * (GROUP / own)) {
        float4 next[4]; /* no load waits for another; the last part stands for those that do not exist */
        UNROLL for (int k = 0; k < 4; k++)
        {
            global const float *part = in + (size_t)min(p + k * (GROUP / own), parts - 1) * 3 * stride + c;
            next[k] = (float4)(part[0], part[stride], part[2 * stride], 0.0f);
        }
        UNROLL for (int k = 0; k < 4; k++)
            if (p + k * (GROUP / own) < parts) all = moments_join_parts(all, next[k]);
    }
    scratch[item] = all;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int step = GROUP / 2; step >= own; step /= 2) {
        if (item < step) scratch[item] = moments_join_parts(scratch[item], scratch[item + step]);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    return scratch[item];
}
#endif
