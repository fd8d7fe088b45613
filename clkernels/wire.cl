/* Gradients on their way to the host in half the bytes: wire[i] = g[i] rounded to bfloat16, to the nearest, ties to even.
 *
 * Arguments: g, wire: arenas; the floats first .. first + n - 1 of them, both multiples of 16.
 * Launched by train/optimizer.c when a bucket is complete: CPU class, one task per `floats` floats (a multiple of 16); GPU
 * class, one work-item per 4 neighbouring floats, in groups of 256. */
#if TUTTI_GPU
#undef V
#define V 4
#define KERNEL __attribute__((reqd_work_group_size(256, 1, 1))) kernel
#else
#define KERNEL TASK
#endif
#include "element.h"

KERNEL void gradients_to_bf16(
    global const float *restrict g, global ushort *restrict wire, long first, long n, int floats)
{
    const long end = min((long)(get_global_id(0) + 1) * floats, n);
    for (long i = (long)get_global_id(0) * floats; i < end; i += V)
        STORE_AS(bf16, VLOAD(0, g + first + i), 0, wire + first + i);
}
