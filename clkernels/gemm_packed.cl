/* Matrix product on CPU-class devices:   C = ACTIVATION(op(A) op(B) + bias + added),   fp32, row-major.
 *
 *   op(A) is m x k, op(B) is k x n; TA, TB = 1: A, B are stored transposed (k x m, n x k). lda, ldb, ldc: floats between
 *   rows as stored; stride_*: floats between the products of a batch. bias [n]; added: laid out as C, may be C itself.
 *
 * Launched by runtime/gemm_packed.c, which chooses the tile: global size (ceil(n / NR), ceil(m / rows), batch), one
 * work-item per group. A task is a panel of NR = NV * V columns times `rows` rows: it packs (and, for TB, transposes in
 * registers) its panel of B into local memory, kc <= KC rows of it at a time, and walks down the rows of A with a register
 * tile of MR x NV vectors. A is not packed: broadcasts read its rows where they lie. Rows past the end repeat the last
 * one, columns past the end the last one; only the start and the end of a tile of C look at its edges.
 * MR * NV accumulators and NV vectors of B have to fit the registers: 32 take 12x2, 6x4, 8x3; 16 take 6x2, 4x3.
 * Algorithm: Goto, van de Geijn: Anatomy of high-performance matrix multiplication, TOMS 34 (2008), without its packed A. */
#include "vector.h"
#include "epilogue.h"
#define NR (NV * V)

/* r = transpose(r): log2(V) rounds, each interleaving row i with row i + V / 2. */
INLINE void transpose(VF r[V])
{
    UNROLL for (int round = 1; round < V; round *= 2)
    {
        VF t[V];
        UNROLL for (int i = 0; i < V / 2; i++)
        {
            t[2 * i].even = r[i].lo;
            t[2 * i].odd = r[i + V / 2].lo;
            t[2 * i + 1].even = r[i].hi;
            t[2 * i + 1].odd = r[i + V / 2].hi;
        }
        UNROLL for (int i = 0; i < V; i++) r[i] = t[i];
    }
}

/* packed[kn][NR] = rows k0 .. k0 + kn - 1 of op(B), nj columns from j0 on. */
INLINE void pack_b(global const float *B, int ldb, int k0, int kn, int j0, int nj, local float *packed)
{
#if TB
    global const float *from = B + (size_t)j0 * ldb + k0;
    for (int j = 0; j < NR; j += V) {
        int k = 0;
        for (; k + V <= kn; k += V) {
            VF r[V];
            UNROLL for (int i = 0; i < V; i++) r[i] = VLOAD(0, from + (size_t)min(j + i, nj - 1) * ldb + k);
            transpose(r);
            UNROLL for (int i = 0; i < V; i++) LOCAL_STORE(r[i], 0, packed + (k + i) * NR + j);
        }
        for (; k < kn; k++)
            for (int i = 0; i < V; i++) packed[k * NR + j + i] = from[(size_t)min(j + i, nj - 1) * ldb + k];
    }
#else
    global const float *from = B + (size_t)k0 * ldb + j0;
    if (nj == NR) {
        for (int k = 0; k < kn; k++) {
            UNROLL for (int j = 0; j < NV; j++)
                LOCAL_STORE(VLOAD(j, from + (size_t)k * ldb), j, packed + k * NR);
        }
    } else {
        for (int k = 0; k < kn; k++)
            for (int j = 0; j < NR; j++) packed[k * NR + j] = from[(size_t)k * ldb + min(j, nj - 1)];
    }
#endif
}

/* c = the ni x nj elements at `from`; the rest of an incomplete tile is whatever `edge` holds. */
INLINE void load_tile(VF c[MR][NV], global const float *from, int ld, int ni, int nj, local float *edge)
{
    if (ni == MR && nj == NR) {
        UNROLL for (int i = 0; i < MR; i++) UNROLL for (int j = 0; j < NV; j++) c[i][j] = VLOAD(j, from + (size_t)i * ld);
        return;
    }
    for (int i = 0; i < ni; i++)
        for (int j = 0; j < nj; j++) edge[i * NR + j] = from[(size_t)i * ld + j];
    UNROLL for (int i = 0; i < MR; i++) UNROLL for (int j = 0; j < NV; j++) c[i][j] = LOCAL_LOAD(j, edge + i * NR);
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

/* One step along k of the register tile: c += (a column of op(A), broadcast) * (a row of packed B). */
#define STEP(a_of_i)                                                                                                   \
    {                                                                                                                  \
        VF b[NV];                                                                                                      \
        UNROLL for (int j = 0; j < NV; j++) b[j] = LOCAL_LOAD(j, packed + k * NR);                                     \
        UNROLL for (int i = 0; i < MR; i++)                                                                            \
        {                                                                                                              \
            VF a = (VF)(a_of_i);                                                                                       \
            UNROLL for (int j = 0; j < NV; j++) c[i][j] = fma(a, b[j], c[i][j]);                                       \
        }                                                                                                              \
    }

/* c += the ni rows of op(A) from i0 on, columns k0 .. k0 + kn - 1, times the packed panel. */
INLINE void multiply(VF c[MR][NV], global const float *A, int lda, int i0, int ni, int k0, int kn,
    local const float *packed, local float *last_rows)
{
#if TA
    global const float *column = A + (size_t)k0 * lda + i0;
    if (ni == MR) {
        for (int k = 0; k < kn; k++) {
            STEP(column[i])
            column += lda;
        }
        return;
    }
    for (int k = 0; k < kn; k++)
        for (int i = 0; i < MR; i++) last_rows[k * MR + i] = column[(size_t)k * lda + min(i, ni - 1)];
    for (int k = 0; k < kn; k++) STEP(last_rows[k * MR + i])
#else
    global const float *row[MR];
    UNROLL for (int i = 0; i < MR; i++) row[i] = A + (size_t)(i0 + min(i, ni - 1)) * lda + k0;
    for (int k = 0; k < kn; k++) STEP(row[i][k])
#endif
}

TASK void gemm_packed(global const float *A, global const float *B, global float *C, global const float *bias,
    global const float *added, int m, int n, int k, int lda, int ldb, int ldc, long stride_a, long stride_b, long stride_c,
    int rows, int kc)
{
    local float packed[KC * NR] __attribute__((aligned(64)));
    local float edge[MR * NR] __attribute__((aligned(64)));
#if TA
    local float last_rows[KC * MR] __attribute__((aligned(64)));
#else
    local float *last_rows = 0;
#endif
    A += get_group_id(2) * stride_a;
    B += get_group_id(2) * stride_b;
    C += get_group_id(2) * stride_c;
    added += get_group_id(2) * stride_c;
    const int j0 = get_group_id(0) * NR, i_first = get_group_id(1) * rows;
    const int i_end = min(i_first + rows, m), nj = min(NR, n - j0);

    for (int k0 = 0; k0 < k; k0 += kc) {
        const int kn = min(kc, k - k0);
        pack_b(B, ldb, k0, kn, j0, nj, packed);
        for (int i0 = i_first; i0 < i_end; i0 += MR) {
            const int ni = min(MR, i_end - i0);
            global float *to = C + (size_t)i0 * ldc + j0;
            VF c[MR][NV];
            if (k0 > 0) {
                load_tile(c, to, ldc, ni, nj, edge); /* the sum so far */
            } else {
#if ACCUMULATE
                load_tile(c, added + (size_t)i0 * ldc + j0, ldc, ni, nj, edge);
#else
                UNROLL for (int i = 0; i < MR; i++) UNROLL for (int j = 0; j < NV; j++) c[i][j] = (VF)(0.0f);
#endif
#if BIAS
                add_bias(c, bias + j0, nj, edge);
#endif
            }
            multiply(c, A, lda, i0, ni, k0, kn, packed, last_rows);
            if (k0 + kn == k) {
                UNROLL for (int i = 0; i < MR; i++) UNROLL for (int j = 0; j < NV; j++) c[i][j] = ACTIVATION(c[i][j]);
            }
            store_tile(c, to, ldc, ni, nj, edge);
        }
    }
}
