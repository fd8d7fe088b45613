/* What CLBlast's product leaves over: another matrix to be added, bias and activation. fp32, C is row-major with ldc floats
 * between rows and stride_c between the products of a batch. Launched by runtime/gemm_clblast.c with the global size
 * (n rounded up to the group, m, batch). */
#include "epilogue.h"

/* C = added: before a product that adds to C. */
kernel void gemm_copy(global float *C, global const float *added, int n, int ldc, long stride_c)
{
    const int column = get_global_id(0);
    const size_t at = get_global_id(2) * stride_c + (size_t)get_global_id(1) * ldc + column;
    if (column < n) C[at] = added[at];
}

/* C = ACTIVATION(C + bias): after a product. */
kernel void gemm_finish(global float *C, global const float *bias, int n, int ldc, long stride_c)
{
    const int column = get_global_id(0);
    const size_t at = get_global_id(2) * stride_c + (size_t)get_global_id(1) * ldc + column;
    if (column >= n) return;
    float v = C[at];
#if BIAS
    v += bias[column];
#endif
    C[at] = ACTIVATION(v);
}
