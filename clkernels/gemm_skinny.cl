/* Products in which one size, SMALL <= 16, is that of a small batch: bound by reading or writing the large matrix once,
 * in long contiguous runs, with everything else in cache. CPU-class devices, fp32, row-major; launched by
 * runtime/gemm_skinny.c, one work-item per group. All compute C = ACTIVATION(product + bias + added); added is laid out as
 * C and may be C itself. lda, ldb, ldc: elements between rows. B of forms 1 and 2 may be stored in fewer bits (stored.h).
 *
 *   FORM 1  gemm_skinny_dot    C [SMALL][n] = A [SMALL][k] B [n][k]^T     ceil(n / columns) tasks
 *   FORM 2  gemm_skinny_rows   C [SMALL][n] = A [SMALL][k] B [k][n]       ceil(n / STRIP) tasks; A comes transposed, as
 *                                                                         [k][SMALL], from gemm_skinny_transpose
 *   FORM 3  gemm_skinny_outer  C [m][n] = A [SMALL][m]^T B [SMALL][n]     ceil(m / rows) tasks; stream: C is larger
 *                                                                         than the caches and written around them */
#include "stored.h"
#include "parameters.h"
#include "arguments/gemm_skinny.h"
#include "element.h"
#include "epilogue.h"
#include "sum.h"
#define CHAIN 64 /* multiply-adds in a row, at most, before their sum goes to that of the chains before, as sum.h says */

INLINE float finish(float v, global const float *bias, global const float *added, int column, size_t at)
{
    if (BIAS) v += bias[column];
    if (ACCUMULATE) v += added[at];
    return ACTIVATION(v);
}

#if FORM == 1
/* Rows of B at a time: ROWS * SMALL accumulators in registers. */
#define ROWS (SMALL <= 8 ? 3 : 1)
#define AHEAD ((STORED == 2 ? 4096 : 2048) / (int)sizeof(stored_t)) /* elements prefetched ahead: the device's own prefetching ends with the page */
/* Where what will be read after AHEAD more elements lies from a row's begin on: after its end, ROWS rows further on. */
INLINE int ahead_of(int at, int ldb)
{
    return at + AHEAD + (at + AHEAD < ldb ? 0 : (ROWS - 1) * ldb);
}

#define IN_BLOCKS (STORED != 0 && SMALL <= 3)
#if IN_BLOCKS
/* c += the products of a block of each row: a prefetch for each cache line, and one multiplication by a scale. */
INLINE void add_block(
    VF c[ROWS][SMALL], global const stored_t *row[ROWS], global const float *A, int lda, int at, int ahead, int k)
{
    VF block[ROWS][SMALL];
    UNROLL for (int r = 0; r < ROWS; r++)
    {
        UNROLL for (int i = 0; i < SMALL; i++) block[r][i] = (VF)(0.0f);
        UNROLL for (int e = 0; e < STORED_BLOCK; e += 64 / (int)sizeof(stored_t)) PREFETCH(row[r] + ahead + e);
    }
    UNROLL for (int e = 0; e < STORED_BLOCK; e += V)
    {
        VF b[ROWS];
        UNROLL for (int r = 0; r < ROWS; r++) b[r] = STORED_UNSCALED(row[r], at + e);
        UNROLL for (int i = 0; i < SMALL; i++)
        {
            const VF a = VLOAD(0, A + (size_t)i * lda + at + e);
            UNROLL for (int r = 0; r < ROWS; r++) block[r][i] = fma(b[r], a, block[r][i]);
        }
    }
    UNROLL for (int r = 0; r < ROWS; r++) UNROLL for (int i = 0; i < SMALL; i++) c[r][i]
        = fma(block[r][i], (VF)(STORED_SCALE(row[r], at, k)), c[r][i]);
}
#endif

TASK void gemm_skinny_dot(DOT_ARGUMENTS(PARAMETER))
{
    const int first = get_group_id(0) * columns, end = min(first + columns, n);
    for (int j = first; j < end; j += ROWS) {
        VF c[ROWS][SMALL], sums[ROWS][SMALL], errors[ROWS][SMALL];
        global const stored_t *row[ROWS];
        UNROLL for (int r = 0; r < ROWS; r++)
        {
            row[r] = B + (size_t)min(j + r, end - 1) * ldb;
            UNROLL for (int i = 0; i < SMALL; i++) sums[r][i] = errors[r][i] = (VF)(0.0f);
        }
        int at = 0;
        while (at + V <= k) {
            const int stop = min(at + CHAIN * V, k);
            UNROLL for (int r = 0; r < ROWS; r++) UNROLL for (int i = 0; i < SMALL; i++) c[r][i] = (VF)(0.0f);
#if IN_BLOCKS
            for (; at + STORED_BLOCK <= stop; at += STORED_BLOCK) add_block(c, row, A, lda, at, ahead_of(at, ldb), k);
#endif
            for (; at + V <= stop; at += V) {
                VF b[ROWS];
                UNROLL for (int r = 0; r < ROWS; r++)
                {
                    PREFETCH(row[r] + at + AHEAD);
                    b[r] = STORED_LOAD(row[r], at, k);
                }
                UNROLL for (int i = 0; i < SMALL; i++)
                {
                    VF a = VLOAD(0, A + (size_t)i * lda + at);
                    UNROLL for (int r = 0; r < ROWS; r++) c[r][i] = fma(b[r], a, c[r][i]);
                }
            }
            UNROLL for (int r = 0; r < ROWS; r++)
            {
                UNROLL for (int i = 0; i < SMALL; i++) SUM_ADD(VF, sums[r][i], errors[r][i], c[r][i]);
            }
        }
        UNROLL for (int r = 0; r < ROWS; r++)
        {
            float sum[SMALL];
            UNROLL for (int i = 0; i < SMALL; i++) sum[i] = 0.0f;
            for (int rest = at; rest < k; rest++) {
                UNROLL for (int i = 0; i < SMALL; i++) sum[i] = fma(STORED_AT(row[r], rest, k), A[(size_t)i * lda + rest], sum[i]);
            }
            UNROLL for (int i = 0; i < SMALL; i++) sum[i] += vector_sum(sums[r][i]);
            if (j + r < end) {
                UNROLL for (int i = 0; i < SMALL; i++)
                {
                    const size_t to = (size_t)i * ldc + j + r;
                    C[to] = finish(sum[i], bias, added, j + r, to);
                }
            }
        }
    }
}
#endif

#if FORM == 2
/* transposed [k][SMALL] = A [SMALL][k]^T. A task: 256 rows. */
TASK void gemm_skinny_transpose(global const float *A, global float *transposed, int k, int lda)
{
    const int first = get_group_id(0) * 256, end = min(first + 256, k);
    for (int j = first; j < end; j++) {
        UNROLL for (int i = 0; i < SMALL; i++) transposed[(size_t)j * SMALL + i] = A[(size_t)i * lda + j];
    }
}

/* A task keeps its strip of C in local memory and adds DEEP rows of B to it at a time. */
TASK void gemm_skinny_rows(ROWS_ARGUMENTS(PARAMETER))
{
    local float chains[SMALL * STRIP] __attribute__((aligned(64))), sums[SMALL * STRIP] __attribute__((aligned(64))),
        errors[SMALL * STRIP] __attribute__((aligned(64)));
    const int j0 = get_group_id(0) * STRIP, width = min(STRIP, n - j0), whole = width / V * V;
    for (int i = 0; i < SMALL * STRIP; i += V) {
        LOCAL_STORE((VF)(0.0f), 0, sums + i);
        LOCAL_STORE((VF)(0.0f), 0, errors + i);
    }
    for (int at = 0; at < k;) {
        const int stop = min(at + CHAIN, k);
        for (int i = 0; i < SMALL * STRIP; i += V) LOCAL_STORE((VF)(0.0f), 0, chains + i);
        for (; at + DEEP <= stop; at += DEEP) {
            global const float *a = transposed + (size_t)at * SMALL;
            global const stored_t *b = B + (size_t)at * ldb;
            for (int j = 0; j < whole; j += V) {
                VF c[SMALL];
                UNROLL for (int i = 0; i < SMALL; i++) c[i] = LOCAL_LOAD(0, chains + i * STRIP + j);
                UNROLL for (int d = 0; d < DEEP; d++)
                {
                    PREFETCH(b + (size_t)(d + DEEP) * ldb + j0 + j);
                    VF v = STORED_LOAD(b + (size_t)d * ldb, j0 + j, n);
                    UNROLL for (int i = 0; i < SMALL; i++) c[i] = fma((VF)(a[d * SMALL + i]), v, c[i]);
                }
                UNROLL for (int i = 0; i < SMALL; i++) LOCAL_STORE(c[i], 0, chains + i * STRIP + j);
            }
            for (int j = whole; j < width; j++)
                for (int d = 0; d < DEEP; d++)
                    for (int i = 0; i < SMALL; i++)
                        chains[i * STRIP + j]
                            = fma(a[d * SMALL + i], STORED_AT(b + (size_t)d * ldb, j0 + j, n), chains[i * STRIP + j]);
        }
        for (; at < stop; at++)
            for (int i = 0; i < SMALL; i++) {
                const float a = transposed[(size_t)at * SMALL + i];
                for (int j = 0; j < width; j++)
                    chains[i * STRIP + j] = fma(a, STORED_AT(B + (size_t)at * ldb, j0 + j, n), chains[i * STRIP + j]);
            }
        for (int i = 0; i < SMALL * STRIP; i += V) {
            VF sum = LOCAL_LOAD(0, sums + i), error = LOCAL_LOAD(0, errors + i);
            SUM_ADD(VF, sum, error, LOCAL_LOAD(0, chains + i));
            LOCAL_STORE(sum, 0, sums + i);
            LOCAL_STORE(error, 0, errors + i);
        }
    }
    for (int i = 0; i < SMALL; i++)
        for (int j = 0; j < width; j++) {
            const size_t to = (size_t)i * ldc + j0 + j;
            C[to] = finish(sums[i * STRIP + j], bias, added, j0 + j, to);
        }
}
#endif

#if FORM == 3
/* One vector of a row of C: what finish() does, in vectors. */
#define OUTER(row, sum)                                                                                                \
    {                                                                                                                  \
        const size_t to = (size_t)(row)*ldc + j;                                                                       \
        VF v = sum;                                                                                                    \
        if (BIAS) v += VLOAD(0, bias + j);                                                                             \
        if (ACCUMULATE) v += VLOAD(0, added + to);                                                                     \
        if (around)                                                                                                    \
            STREAM_AS(float, ACTIVATION(v), 0, C + to);                                                                \
        else                                                                                                           \
            VSTORE(ACTIVATION(v), 0, C + to);                                                                          \
    }

TASK void gemm_skinny_outer(OUTER_ARGUMENTS(PARAMETER))
{
    const int first = get_group_id(0) * rows, end = min(first + rows, m);
    const bool around = stream && ((uintptr_t)C | (size_t)ldc * sizeof(float)) % sizeof(VF) == 0;
    for (int i = first; i < end; i += 2) { /* two rows share the loads of B */
        const int next = min(i + 1, end - 1);
        VF a0[SMALL], a1[SMALL];
        UNROLL for (int s = 0; s < SMALL; s++)
        {
            a0[s] = (VF)(A[(size_t)s * lda + i]);
            a1[s] = (VF)(A[(size_t)s * lda + next]);
        }
        int j = 0;
        for (; j + V <= n; j += V) {
            VF c0 = (VF)(0.0f), c1 = (VF)(0.0f);
            UNROLL for (int s = 0; s < SMALL; s++)
            {
                VF b = VLOAD(0, B + (size_t)s * ldb + j);
                c0 = fma(a0[s], b, c0);
                c1 = fma(a1[s], b, c1);
            }
            OUTER(i, c0)
            if (next > i) OUTER(next, c1)
        }
        for (; j < n; j++) {
            float c0 = 0.0f, c1 = 0.0f;
            for (int s = 0; s < SMALL; s++) {
                const float b = B[(size_t)s * ldb + j];
                c0 = fma(A[(size_t)s * lda + i], b, c0);
                c1 = fma(A[(size_t)s * lda + next], b, c1);
            }
            const size_t to0 = (size_t)i * ldc + j, to1 = (size_t)next * ldc + j;
            C[to0] = finish(c0, bias, added, j, to0);
            if (next > i) C[to1] = finish(c1, bias, added, j, to1);
        }
    }
}
#endif
