/* reorder: a value of rank 4 from the plain layout [N][C][pixels] to the blocked one [N][ceil(C/block)][pixels][block],
 * channels past C zero, or back. block is V, or C: then channels are last. TO_BLOCKED says which way; TYPE is the element of `plain`: uint for 32 bits, uchar
 * for 8.
 *
 *   vectors  CPU class, 32 bits, or floats of either type (element.h).
 *            A task reorders up to `chunk` pixels (a multiple of V) of one block of one image:
 *            tasks (ceil(pixels / chunk), ceil(C / V), N). Squares of V x V are transposed in registers, by log2(V)
 *            rounds that interleave the first half of the rows with the second (a perfect shuffle).
 *   plain    any device. One work-item for each element of the output, padding channels included.
 *
 * Launched by layers/reorder.c. */
#include "element.h"

#if !TUTTI_GPU
#define ONE(element) CONVERT(IN0_TYPE, OUT0_TYPE, element)
INLINE void transpose(VF *rows)
{
    VF other[V];
#pragma unroll
    for (int round = 1; round < V; round *= 2) {
#pragma unroll
        for (int i = 0; i < V / 2; i++) {
            other[2 * i].even = rows[i].lo;
            other[2 * i].odd = rows[i + V / 2].lo;
            other[2 * i + 1].even = rows[i].hi;
            other[2 * i + 1].odd = rows[i + V / 2].hi;
        }
#pragma unroll
        for (int i = 0; i < V; i++) rows[i] = other[i];
    }
}

TASK void vectors(global const in0_t *restrict x, global out0_t *restrict y, int C, int pixels, int chunk)
{
    int block = get_group_id(1), blocks = get_num_groups(1), channels = min(C - block * V, V);
    int first = get_group_id(0) * chunk, last = min(first + chunk, pixels);
    long n = get_group_id(2);
    long plain_at = (n * C + block * V) * pixels, blocked_at = (n * blocks + block) * pixels * V;
    int i = first;
    for (; i + V <= last; i += V) {
        VF rows[V];
#if TO_BLOCKED
#pragma unroll
        for (int c = 0; c < V; c++)
            rows[c] = c < channels ? LOAD_AS(IN0_TYPE, 0, x + plain_at + (long)c * pixels + i) : 0.0f;
        transpose(rows);
#pragma unroll
        for (int p = 0; p < V; p++) STORE_AS(OUT0_TYPE, rows[p], i + p, y + blocked_at);
#else
#pragma unroll
        for (int p = 0; p < V; p++) rows[p] = LOAD_AS(IN0_TYPE, i + p, x + blocked_at);
        transpose(rows);
#pragma unroll
        for (int c = 0; c < V; c++)
            if (c < channels) STORE_AS(OUT0_TYPE, rows[c], 0, y + plain_at + (long)c * pixels + i);
#endif
    }
    for (; i < last; i++)
        for (int c = 0; c < V; c++) {
#if TO_BLOCKED
            y[blocked_at + (long)i * V + c] = c < channels ? ONE(x[plain_at + (long)c * pixels + i]) : 0;
#else
            if (c < channels) y[plain_at + (long)c * pixels + i] = ONE(x[blocked_at + (long)i * V + c]);
#endif
        }
}
#endif

kernel void plain(global const TYPE *restrict x, global TYPE *restrict y, long count, int C, int pixels, int block)
{
    long i = get_global_id(0);
    if (i >= count) return;
    int blocks = (C + block - 1) / block;
#if TO_BLOCKED
    int lane = i % block, p = i / block % pixels, c = i / ((long)block * pixels) % blocks * block + lane;
    long n = i / ((long)block * pixels * blocks);
    y[i] = c < C ? x[(n * C + c) * pixels + p] : (TYPE)0;
#else
    int p = i % pixels, c = i / pixels % C;
    long n = i / ((long)pixels * C);
    y[i] = x[((n * blocks + c / block) * pixels + p) * block + c % block];
#endif
}
