/* Gradients on their way to the host in half the bytes: wire[i] = g[i] rounded to bfloat16, to the nearest, ties to even.
 *
 * Arguments: g, wire: arenas; the floats first .. first + n - 1 of them, both multiples of 16.
 * Emitted by replica/gradients.c, launched by replica/gradients_copied.c for a bucket or for the sum of micro-batches,
 * as arena.h has it. */
#include "arena.h"
#include "element.h"

KERNEL void gradients_to_bf16(
    global const float *restrict g, global ushort *restrict wire, long first, long n, int floats)
{
    FOR_RANGE(i)
        STORE_AS(bf16, VLOAD(0, g + first + i), 0, wire + first + i);
}
