/* Matrix product on any device, any sizes:   C = ACTIVATION(op(A) op(B) + bias + added),   fp32, row-major.
 *
 *   op(A) is m x k, op(B) is k x n; TA, TB = 1: stored transposed (k x m, n x k). lda, ldb, ldc: floats between rows as
 *   stored; stride_*: floats between the products of a batch. bias [n]; added: laid out as C, may be C itself.
 *
 * Launched by runtime/gemm_plain.c: groups of SIDE x SIDE work-items, global size (ceil(n / TILE) * SIDE,
 * ceil(m / TILE) * SIDE, batch). A group computes TILE x TILE elements, a work-item 4 x 4 of them (every SIDE-th row and
 * column, so that neighbours read and write neighbours); it brings DEPTH columns of op(A) and rows of op(B) into local
 * memory at a time, zeros past the edges. Algorithm: the tiled product of every OpenCL textbook.
 * LONG: sums are made of chains of CHAIN multiply-adds, which are added up as sum.h says; else each is one chain. */
#include "parameters.h"
#include "arguments/gemm_plain.h"
#include "epilogue.h"
#include "steps.h"
#include "sum.h"
#define EACH 4
#define TILE (SIDE * EACH)
#define DEPTH 16
#define CHAIN (4 * DEPTH)
#if LONG
#define TOTAL sums
#else
#define TOTAL c
#endif

__attribute__((reqd_work_group_size(SIDE, SIDE, 1))) kernel void gemm_plain(PLAIN_ARGUMENTS(PARAMETER))
{
    local float a[DEPTH][TILE + 1], b[DEPTH][TILE + 1]; /* + 1: no two work-items of a column in one bank */
    const int x = get_local_id(0), y = get_local_id(1), item = y * SIDE + x;
    const int i0 = get_group_id(1) * TILE, j0 = get_group_id(0) * TILE;
    A += get_group_id(2) * stride_a;
    B += get_group_id(2) * stride_b;
    C += get_group_id(2) * stride_c;
    added += get_group_id(2) * stride_c;

    float c[EACH][EACH];
    for (int i = 0; i < EACH; i++)
        for (int j = 0; j < EACH; j++) c[i][j] = 0.0f;
#if LONG
    float sums[EACH][EACH], errors[EACH][EACH];
    for (int i = 0; i < EACH; i++)
        for (int j = 0; j < EACH; j++) sums[i][j] = errors[i][j] = 0.0f;
#endif
    STEPS_EXIST(k > 0);
    for (int k0 = 0; k0 < k; k0 += DEPTH) {
        for (int e = item; e < DEPTH * TILE; e += SIDE * SIDE) {
            /* The index that is contiguous in memory runs fastest over the work-items. */
            const int ai = TA ? e % TILE : e / DEPTH, ak = TA ? e / TILE : e % DEPTH;
            const int bj = TB ? e / DEPTH : e % TILE, bk = TB ? e % DEPTH : e / TILE;
            const int row = i0 + ai, column = j0 + bj;
            a[ak][ai] = row < m && k0 + ak < k ? A[TA ? (size_t)(k0 + ak) * lda + row : (size_t)row * lda + k0 + ak] : 0.0f;
            b[bk][bj]
                = column < n && k0 + bk < k ? B[TB ? (size_t)column * ldb + k0 + bk : (size_t)(k0 + bk) * ldb + column] : 0.0f;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int d = 0; d < DEPTH; d++) {
#pragma unroll
            for (int i = 0; i < EACH; i++) {
#pragma unroll
                for (int j = 0; j < EACH; j++) c[i][j] = fma(a[d][y + i * SIDE], b[d][x + j * SIDE], c[i][j]);
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
#if LONG
        if ((k0 + DEPTH) % CHAIN != 0 && k0 + DEPTH < k) continue;
#pragma unroll
        for (int i = 0; i < EACH; i++)
#pragma unroll
            for (int j = 0; j < EACH; j++) {
                SUM_ADD(float, sums[i][j], errors[i][j], c[i][j]);
                c[i][j] = 0.0f;
            }
#endif
    }
    for (int i = 0; i < EACH; i++)
        for (int j = 0; j < EACH; j++) {
            const int row = i0 + y + i * SIDE, column = j0 + x + j * SIDE;
            if (row >= m || column >= n) continue;
            const size_t at = (size_t)row * ldc + column;
            float v = TOTAL[i][j];
            if (BIAS) v += bias[column];
            if (ACCUMULATE) v += added[at];
            C[at] = ACTIVATION(v);
        }
}
