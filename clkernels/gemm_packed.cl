/* Matrix product on CPU-class devices:   C = ACTIVATION(op(A) op(B) + bias + added),   fp32, row-major.
 *
 *   op(A) is m x k, op(B) is k x n; TA, TB = 1: A, B are stored transposed (k x m, n x k). lda, ldb, ldc: floats between
 *   rows as stored; stride_*: floats between the products of a batch. bias [n]; added: laid out as C, may be C itself.
 *   MASK: C is multiplied by the derivative of the activation whose output is `added` (derivative.h); it is not C then, and nothing is added.
 *   B may be stored in fewer bits (stored.h): panels are floats.
 *   SUMS 1: sums [m] = the sums of op(A)'s rows, of a transposed A and one product.
 *   The sum is made in `splits` parts of k_of_split steps, each stored stride_split floats after the one before it, where
 *   there are several: gemm_finish.cl adds them up. A chain of multiply-adds has at most `chain` of them: then it is added
 *   to the sum of the chains before it.
 *
 * Launched by runtime/gemm_packed.c, which chooses tile and tasks: global size (ceil(n / columns), ceil(m / rows), batch *
 * splits), one work-item per group. A task is a block of C. For each `depth` of k, it takes panels of NR = NV * V columns
 * one after the other: it packs (and, for TB, transposes in registers) the panel of B into local memory, to stay in the
 * first-level cache, and walks down the rows of A with a register tile of MR x NV vectors.
 * Rows of A are broadcast from where they lie; columns of a transposed A, which lie in as many pages as k is deep, are
 * packed before, in strips of MR, and summed up while they are in the first-level cache. Rows and columns past the end are
 * computed from whatever can be read; only the start and the end of a tile of C look at its edges.
 * scratch: TA: strips of A, STRIP(depth) for each MR of `rows`; then depth x NR of B; then two tiles; SUMS: then `rows`
 * rounding errors of sums.
 * MR * NV accumulators and NV vectors of B have to fit the registers: 32 take 12x2, 6x4, 8x3; 16 take 6x2, 4x3.
 * Algorithm: Goto, van de Geijn: Anatomy of high-performance matrix multiplication, TOMS 34 (2008). */
#include "stored.h"
#include "parameters.h"
#include "arguments/gemm_packed.h"
#include "sum.h"
#include "transpose.h"
#include "vector.h"
#include "epilogue.h"
#include "derivative.h"
#ifndef SUMS
#define SUMS 0
#endif
#define NR (NV * V)
#define STRIP(kn) ((kn) * MR + V)   /* with room for what the last store of whole vectors writes past it */
#define WHOLE ((MR + V - 1) / V * V) /* rows of a strip in whole vectors */

TRANSPOSE(transpose, VF)

/* packed[kn][NR] = rows k0 .. k0 + kn - 1 of op(B), which has k of them, columns from j0 on of n. */
INLINE void pack_b(global const stored_t *B, int ldb, int k, int k0, int kn, int j0, int n, local float *packed)
{
    const int last = n - j0 - 1;
#if TB
    global const stored_t *from = B + (size_t)j0 * ldb;
    for (int j = 0; j < NR; j += V) {
        int i = 0;
        for (; i + V <= kn; i += V) {
            VF r[V];
            UNROLL for (int l = 0; l < V; l++) r[l] = STORED_LOAD(from + (size_t)min(j + l, last) * ldb, k0 + i, k);
            transpose(r);
            UNROLL for (int l = 0; l < V; l++) LOCAL_STORE(r[l], 0, packed + (i + l) * NR + j);
        }
        for (; i < kn; i++)
            for (int l = 0; l < V; l++) packed[i * NR + j + l] = STORED_AT(from + (size_t)min(j + l, last) * ldb, k0 + i, k);
    }
#else
    global const stored_t *from = B + (size_t)k0 * ldb;
    /* where a row of the panel may begin; scales are of their row alone */
    const long readable = STORED && last + 1 < NR ? -1 : (long)(k - k0 - 1) * ldb + last + 1 - NR;
    for (int i = 0; i < kn; i++) {
        const long at = (long)i * ldb;
        if (at <= readable) {
            UNROLL for (int j = 0; j < NV; j++) LOCAL_STORE(STORED_LOAD(from + at, j0 + j * V, n), j, packed + i * NR);
        } else {
            for (int j = 0; j < NR; j++) packed[i * NR + j] = STORED_AT(from + at, j0 + min(j, last), n);
        }
    }
#endif
}

/* packed[strips][kn][MR] = columns i0 .. i_end - 1 of the stored A of m columns, rows k0 .. k0 + kn - 1 of k, of a block
 * that is `deep` rows deep. Prefetches: each row is in another page, so that the processor does not load it ahead. */
#define ROWS_AHEAD 4
INLINE void pack_a(global const float *A, int lda, int k, int k0, int kn, int deep, int m, int i0, int i_end,
    local float *packed)
{
    for (int l = 0; l < kn; l++) {
        global const float *from = A + (size_t)(k0 + l) * lda;
        const long readable = (long)(k - 1 - k0 - l) * lda + m - WHOLE; /* where a strip may begin */
        local float *to = packed + l * MR;
        if (k0 + l + ROWS_AHEAD < k)
            for (int i = i0; i < i_end; i += V) PREFETCH(from + (size_t)ROWS_AHEAD * lda + i);
        for (int i = i0; i < i_end; i += MR) {
            if (i <= readable) {
                UNROLL for (int r = 0; r < WHOLE; r += V) LOCAL_STORE(VLOAD(0, from + i + r), 0, to + r);
            } else {
                for (int r = 0; r < MR; r++) to[r] = from[min(i + r, m - 1)];
            }
            to += STRIP(deep);
        }
    }
}

/* Adds kn numbers, at most SUM_BLOCK, in each of the columns i0 .. i_end - 1 from row k0 on to `sums`. */
INLINE void add_columns(global const float *A, int lda, int k0, int kn, int i0, int i_end, global float *sums,
    local float *errors)
{
    global const float *from = A + (size_t)k0 * lda;
    int i = i0;
    for (; i + V <= i_end; i += V) {
        VF block = (VF)(0.0f), sum = (VF)(0.0f), error = (VF)(0.0f);
        for (int l = 0; l < kn; l++) block += VLOAD(0, from + (size_t)l * lda + i);
        if (k0 > 0) sum = VLOAD(0, sums + i), error = LOCAL_LOAD(0, errors + i - i0);
        SUM_ADD(VF, sum, error, block);
        VSTORE(sum, 0, sums + i);
        LOCAL_STORE(error, 0, errors + i - i0);
    }
    for (; i < i_end; i++) {
        float block = 0.0f, sum = k0 > 0 ? sums[i] : 0.0f, error = k0 > 0 ? errors[i - i0] : 0.0f;
        for (int l = 0; l < kn; l++) block += from[(size_t)l * lda + i];
        SUM_ADD(float, sum, error, block);
        sums[i] = sum;
        errors[i - i0] = error;
    }
}

/* c += the ni x nj elements at `from`. The rest of an incomplete tile gets whatever `edge` holds. */
INLINE void add_tile(VF c[MR][NV], global const float *from, int ld, int ni, int nj, local float *edge)
{
    if (ni == MR && nj == NR) {
        UNROLL for (int i = 0; i < MR; i++) UNROLL for (int j = 0; j < NV; j++) c[i][j] += VLOAD(j, from + (size_t)i * ld);
        return;
    }
    for (int i = 0; i < ni; i++)
        for (int j = 0; j < nj; j++) edge[i * NR + j] = from[(size_t)i * ld + j];
    UNROLL for (int i = 0; i < MR; i++) UNROLL for (int j = 0; j < NV; j++) c[i][j] += LOCAL_LOAD(j, edge + i * NR);
}

INLINE void store_tile(VF c[MR][NV], global float *to, int ld, int ni, int nj, local float *edge)
{
    if (ni == MR && nj == NR) {
        UNROLL for (int i = 0; i < MR; i++) UNROLL for (int j = 0; j < NV; j++) VSTORE(c[i][j], j, to + (size_t)i * ld);
        return;
    }
    UNROLL for (int i = 0; i < MR; i++) UNROLL for (int j = 0; j < NV; j++) LOCAL_STORE(c[i][j], j, edge + i * NR);
    for (int i = 0; i < ni; i++)
        for (int j = 0; j < nj; j++) to[(size_t)i * ld + j] = edge[i * NR + j];
}

INLINE void add_bias(VF c[MR][NV], global const float *bias, int nj, local float *edge)
{
    if (nj < NR)
        for (int j = 0; j < NR; j++) edge[j] = bias[min(j, nj - 1)];
    UNROLL for (int j = 0; j < NV; j++)
    {
        VF v = nj < NR ? LOCAL_LOAD(j, edge) : VLOAD(j, bias);
        UNROLL for (int i = 0; i < MR; i++) c[i][j] += v;
    }
}

/* Prefetches what will mask a tile while its sums are made. */
INLINE void prefetch_tile(global const float *from, int ld, int ni)
{
    for (int i = 0; i < ni; i++) UNROLL for (int j = 0; j < NV; j++) PREFETCH(from + (size_t)i * ld + j * V);
}

/* Turns c into the gradient of the input of the activation whose output is at `from`. */
INLINE void mask_tile(VF c[MR][NV], global const float *from, int ld, int ni, int nj, local float *edge)
{
    if (ni == MR && nj == NR) {
        UNROLL for (int i = 0; i < MR; i++) UNROLL for (int j = 0; j < NV; j++) c[i][j]
            = MASKED(VLOAD(j, from + (size_t)i * ld), c[i][j]);
        return;
    }
    for (int i = 0; i < ni; i++)
        for (int j = 0; j < nj; j++) edge[i * NR + j] = from[(size_t)i * ld + j];
    UNROLL for (int i = 0; i < MR; i++) UNROLL for (int j = 0; j < NV; j++) c[i][j]
        = MASKED(LOCAL_LOAD(j, edge + i * NR), c[i][j]);
}

/* c += the ni rows of op(A) from i0 on, kn columns from its first on, times the packed panel. */
#if TA
#define A_AT(i, k) strip[(k) * MR + (i)]
#else
#define A_AT(i, k) row[i][k]
#endif
INLINE void multiply(VF c[MR][NV], global const float *A, int lda, int i0, int ni, int kn, local const float *strip,
    local const float *panel)
{
#if !TA
    global const float *row[MR];
    UNROLL for (int i = 0; i < MR; i++) row[i] = A + (size_t)(i0 + min(i, ni - 1)) * lda;
#endif
    for (int k = 0; k < kn; k++) {
        VF b[NV];
        UNROLL for (int j = 0; j < NV; j++) b[j] = LOCAL_LOAD(j, panel + k * NR);
        UNROLL for (int i = 0; i < MR; i++)
        {
            const VF a = (VF)(A_AT(i, k));
            UNROLL for (int j = 0; j < NV; j++) c[i][j] = fma(a, b[j], c[i][j]);
            IN_ORDER;
        }
    }
}

/* c = the product of the rows and the panel, in chains, whose sums meet in `total`. */
INLINE void multiply_chains(VF c[MR][NV], global const float *A, int lda, int i0, int ni, int kn, int chain,
    local const float *strip, local const float *panel, local float *total)
{
    for (int k = 0; k < kn; k += chain) {
        UNROLL for (int i = 0; i < MR; i++) UNROLL for (int j = 0; j < NV; j++) c[i][j] = (VF)(0.0f);
        multiply(c, A + k, lda, i0, ni, min(chain, kn - k), strip + k * MR, panel + k * NR);
        if (k > 0)
            UNROLL for (int i = 0; i < MR; i++) UNROLL for (int j = 0; j < NV; j++) c[i][j] += LOCAL_LOAD(j, total + i * NR);
        if (k + chain < kn)
            UNROLL for (int i = 0; i < MR; i++) UNROLL for (int j = 0; j < NV; j++) LOCAL_STORE(c[i][j], j, total + i * NR);
    }
}

OUTLINE void gemm_packed_body(PACKED_ARGUMENTS(PARAMETER), int column_task, int row_task, long product, int split)
{
    const int i_first = row_task * rows, i_end = min(i_first + rows, m);
    const int j_first = column_task * columns, j_end = min(j_first + columns, n);
    const int k_first = split * k_of_split, k_end = min(k_first + k_of_split, k);
    local float *panel = scratch + (TA ? rows / MR * STRIP(depth) : 0), *edge = panel + depth * NR, *total = edge + MR * NR;
    A += product * stride_a;
    B += product * stride_b;
    C += product * stride_c + split * stride_split;
    added += product * stride_c;
    local float *errors = total + MR * NR;

    for (int k0 = k_first; k0 < k_end; k0 += depth) {
        const int kn = min(depth, k_end - k0);
        for (int l = 0; TA && l < kn; l += SUM_BLOCK) {
            const int ln = min((int)SUM_BLOCK, kn - l);
            pack_a(A, lda, k, k0 + l, ln, kn, m, i_first, i_end, scratch + l * MR);
            if (SUMS && j_first == 0 && split == 0) add_columns(A, lda, k0 + l, ln, i_first, i_end, sums, errors);
        }
        for (int j0 = j_first; j0 < j_end; j0 += NR) {
            const int nj = min(NR, n - j0);
            pack_b(B, ldb, k, k0, kn, j0, n, panel);
            for (int i0 = i_first; i0 < i_end; i0 += MR) {
                const int ni = min(MR, i_end - i0);
                global float *to = C + (size_t)i0 * ldc + j0;
                if (MASK && k0 + kn == k) prefetch_tile(added + (size_t)i0 * ldc + j0, ldc, ni);
                VF c[MR][NV];
                multiply_chains(c, A + k0, lda, i0, ni, kn, chain, scratch + (i0 - i_first) / MR * STRIP(kn), panel,
                    total);
                if (k0 > k_first) {
                    add_tile(c, to, ldc, ni, nj, edge); /* the sum so far */
                } else {
                    if (ACCUMULATE) add_tile(c, added + (size_t)i0 * ldc + j0, ldc, ni, nj, edge);
                    if (BIAS) add_bias(c, bias + j0, nj, edge);
                }
                if (k0 + kn == k) {
                    UNROLL for (int i = 0; i < MR; i++) UNROLL for (int j = 0; j < NV; j++) c[i][j] = ACTIVATION(c[i][j]);
                    if (MASK) mask_tile(c, added + (size_t)i0 * ldc + j0, ldc, ni, nj, edge);
                }
                store_tile(c, to, ldc, ni, nj, edge);
            }
        }
    }
    for (int l = k_end; SUMS && l < k && j_first == 0 && split == 0; l += SUM_BLOCK)
        add_columns(A, lda, l, min((int)SUM_BLOCK, k - l), i_first, i_end, sums, errors);
}

TASK void gemm_packed(PACKED_ARGUMENTS(PARAMETER))
{
    const int product = get_group_id(2) / splits, split = get_group_id(2) % splits;
    gemm_packed_body(PACKED_ARGUMENTS(NAME), get_group_id(0), get_group_id(1), product, split);
}
