/* dw[i] = parts[0][i] + parts[1][i] + ... (+ add[i]): the parts of a weight gradient on GPU-class devices, in their
 * order. parts [splits][count], dw [count]; one work-item for each i. Launched by conv2d_sum_parts() in
 * layers/conv2d_implicit_gemm.c. */
#include "epilogue.h"

kernel void sum_parts(
    global const float *restrict parts, global const float *add, global float *dw, int count, int splits)
{
    const int i = get_global_id(0);
    if (i >= count) return;
    float sum = 0.0f;
    for (int split = 0; split < splits; split++) sum += parts[(long)split * count + i];
#if ADD
    sum += add[i];
#endif
    dw[i] = sum;
}
