/* Adds the parts of a weight gradient, in their order, and writes it plain; many carry their rounding errors along:
 *
 *   dw[k][e] = sum over parts of part[p][k/V][e][k%V]  (+ add[k][e])       e: (c, r, s), `length` of them
 *
 * A part has part_blocks of K and part_length elements e, of which the first are added. dw may be add. Launched by conv2d_cpu.c with (ceil(K/V), chunks of `share` elements) tasks; `share` is a multiple of
 * V. */
#include "parameters.h"
#include "arguments/conv2d_sum_cpu.h"
#include "conv2d_cpu_kernel.h"
#include "sum.h"

/* The `count` neighbours of one vector, in r. */
INLINE void sum_parts(const global float *part, size_t stride, int parts, int count, VF r[V])
{
    VF lost[V];
    UNROLL for (int i = 0; i < V; i++) if (i < count) r[i] = VLOAD(i, part), lost[i] = 0.0f;
    if (parts <= SUM_BLOCK)
        LOOP for (int p = 1; p < parts; p++)
        {
            UNROLL for (int i = 0; i < V; i++) if (i < count) r[i] += VLOAD(i, part + p * stride);
        }
    else
        LOOP for (int p = 1; p < parts; p++)
        {
            UNROLL for (int i = 0; i < V; i++) if (i < count) SUM_ADD(VF, r[i], lost[i], VLOAD(i, part + p * stride));
        }
}

kernel TASK void conv2d_sum(SUM_ARGUMENTS(PARAMETER))
{
    const int block = get_group_id(0), rows = min(V, K - block * V);
    const int first = get_group_id(1) * share, last = min(first + share, length);
    const size_t stride = (size_t)part_blocks * part_length * V;
    const global float *part = workspace + offset + (size_t)block * part_length * V;
    int e = first;
    for (; e + V <= last; e += V) {
        VF r[V];
        sum_parts(part + (size_t)e * V, stride, parts, V, r);
        transpose(r);
        UNROLL for (int l = 0; l < V; l++) if (l < rows)
        {
            const size_t at = (size_t)(block * V + l) * length + e;
            VSTORE(FINISH(r[l], add, at), 0, dw + at);
        }
    }
    LOOP for (; e < last; e++)
    {
        VF r[V];
        sum_parts(part + (size_t)e * V, stride, parts, 1, r);
        float lanes[V];
        *(VF_unaligned *)lanes = r[0];
        LOOP for (int l = 0; l < rows; l++)
        {
            const size_t at = (size_t)(block * V + l) * length + e;
            dw[at] = lanes[l] + (ADD ? add[at] : 0.0f);
        }
    }
}
