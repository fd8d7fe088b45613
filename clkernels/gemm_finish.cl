/* Finishes products that made their sums in parts, or that have no epilogue (CLBlast's). fp32, C is row-major with
 * ldc floats between rows and stride_c between the products of a batch. Launched by runtime/gemm.c and
 * runtime/gemm_clblast.c with the global size (n rounded up to the group, m, batch), and by
 * layers/conv2d/conv2d_implicit_gemm.c. */
#include "parameters.h"
#include "arguments/gemm_finish.h"
#include "gemm_finish.h"
#include "sum.h"

/* C = added: before a product that adds to C. */
kernel void gemm_copy(global float *C, global const float *added, int n, int ldc, long stride_c)
{
    const int column = get_global_id(0);
    const size_t at = get_global_id(2) * stride_c + (size_t)get_global_id(1) * ldc + column;
    if (column < n) C[at] = added[at];
}

#define STEPS 8

/* C = finish(parts[0] + parts[1] + ...), in their order: gemm_finish.h. A part has ld floats between rows, stride between the
 * products of a batch, and the next one lies stride_part after it; a single one may be C itself. C begins from_c floats into its buffer. */
kernel void gemm_finish(FINISH_ARGUMENTS(PARAMETER))
{
    const int column = get_global_id(0);
    if (column >= n) return;
    const size_t from = get_global_id(2) * stride + (size_t)get_global_id(1) * ld + column,
                 to = from_c + get_global_id(2) * stride_c + (size_t)get_global_id(1) * ldc + column;
    float sum = 0.0f, error = 0.0f;
    int part = 0;
    for (; part + STEPS <= count; part += STEPS) { /* no load waits for another */
        float next[STEPS], block = 0.0f;
        UNROLL for (int k = 0; k < STEPS; k++) next[k] = parts[(part + k) * stride_part + from];
        UNROLL for (int k = 0; k < STEPS; k++) block += next[k];
        SUM_ADD(float, sum, error, block);
    }
    for (; part < count; part++) SUM_ADD(float, sum, error, parts[part * stride_part + from]);
    C[to] = finish_float(sum, bias ? bias + column : NULL, added ? added + to : NULL);
}
