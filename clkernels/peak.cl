/* What a device can do at most, for the shares that a profile gives (runtime/peak.c); the results mean nothing.
 *
 *   peak_arithmetic   CHAINS independent chains of `rounds` fused multiply-adds, in registers, in each work-item
 *   peak_copy         out = in
 *   peak_read         out[task] = a sum over in
 *
 * CPU class: one work-item is a task of `chunk` floats, a multiple of 4 V. GPU class: the work-items of all groups stride
 * over the n floats. */
#include "vector.h"

#define CHAINS 12

kernel void peak_arithmetic(global float *out, int rounds, float a, float b)
{
    VF sums[CHAINS];
    UNROLL for (int c = 0; c < CHAINS; c++) sums[c] = (VF)(a * (float)(c + (int)get_global_id(0)));
    for (int r = 0; r < rounds; r++) {
        UNROLL for (int c = 0; c < CHAINS; c++) sums[c] = fma(sums[c], (VF)a, (VF)b);
    }
    UNROLL for (int c = 1; c < CHAINS; c++) sums[0] += sums[c];
    out[get_global_id(0)] = vector_sum(sums[0]);
}

#if TUTTI_GPU
#define FOR_ALL(STEP) for (size_t i = get_global_id(0) * V; i < (size_t)n; i += get_global_size(0) * V) { STEP }
#else
#define FOR_ALL(STEP)                                                                                                  \
    const size_t end = min((size_t)n, (get_global_id(0) + 1) * (size_t)chunk);                                         \
    for (size_t i = get_global_id(0) * (size_t)chunk; i < end; i += V) { STEP }
#endif
/* Writes around the caches, as kernels of memory-bound layers write what no cache will hold. */
#if defined(__clang__) && !TUTTI_GPU
#define PUT(v, p) __builtin_nontemporal_store(v, (global VF *)(p))
#else
#define PUT(v, p) (*(global VF *)(p) = (v))
#endif

kernel void peak_copy(global const float *in, global float *out, long n, long chunk)
{
    FOR_ALL(PUT(*(global const VF *)(in + i), out + i);)
}

kernel void peak_read(global const float *in, global float *out, long n, long chunk)
{
    VF sum = (VF)(0.f);
    FOR_ALL(sum += *(global const VF *)(in + i);)
    out[get_global_id(0)] = vector_sum(sum);
}
