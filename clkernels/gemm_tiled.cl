/* Matrix product on GPU-class devices:   C = ACTIVATION(op(A) op(B) + bias + added),   fp32, row-major.
 *
 *   op(A) is m x k, op(B) is k x n; TA, TB = 1: stored transposed (k x m, n x k). lda, ldb, ldc: floats between rows as
 *   stored; stride_*: floats between the products of a batch. bias [n] and added, laid out as C and perhaps C itself, may be
 *   NULL; MASK: see gemm_finish.h. Each of A, B and C begins from_* floats into its buffer, what is added as C does.
 *   The sum is made in `splits` parts of k_of_split steps (a multiple of BK), each stored stride_split floats after the one
 *   before it: gemm_finish.cl adds them up in their order.
 *   COMPUTE: what A and B are rounded to, see compute.h.
 *   A_FOURS, B_FOURS, C_FOURS = 1: rows of the matrix and what lies between them are multiples of four floats, which then
 *   travel at once.
 *
 * Launched by runtime/gemm_tiled.c: (BM / TM) * (BN / TN) work-items in each of (ceil(n / BN), ceil(m / BM), batch * splits)
 * groups; BM, BN, BK, TM, TN, MATRIX: see tile_product.h. Two buffers of local memory take turns: while one is multiplied,
 * what comes next travels to registers and then into the other, with one barrier for each BK steps. Past the edges, rows
 * and columns repeat the last one, which nobody stores; steps are zeros. */
#include "parameters.h"
#include "arguments/gemm_tiled.h"
#include "compute.h"
#include "gemm_finish.h"
#include "tile_product.h"

/* Tells whether fours of the matrix lie along the sum, so that they are turned on their way into local memory. */
#define A_ACROSS (!TA)
#define B_ACROSS (TB)
#define A_ROW ROW_LENGTH(BM, A_ACROSS)
#define B_ROW ROW_LENGTH(BN, B_ACROSS)

/* A tile of `lines` rows or columns: the number of its fours, how many of them a work-item loads, and where the e-th
 * one begins. */
#define FOURS(lines) (BK * (lines) / 4)
#define EACH(lines) ((FOURS(lines) + ITEMS - 1) / ITEMS)
#define STEP(e, across, lines) ((across) ? (e) % (BK / 4) * 4 : (e) / ((lines) / 4))
#define LINE(e, across, lines) ((across) ? (e) / (BK / 4) : (e) % ((lines) / 4) * 4)

/* Loads a four, of which `left` steps exist and, along the lines, one and `room` more elements. */
INLINE float4 fetch(global const float *from, bool across, bool fours, int left, int room)
{
    if (left <= 0) return (float4)(0.0f);
    if (fours) return *(global const float4 *)from;
    if (across)
        return (float4)(from[0], left > 1 ? from[1] : 0.0f, left > 2 ? from[2] : 0.0f, left > 3 ? from[3] : 0.0f);
    return (float4)(from[0], from[min(room, 1)], from[min(room, 2)], from[min(room, 3)]);
}

/* For each four of this work-item: where it lies after the first of the tile, and how many elements follow its first. */
#define PLACE(from, room, across, fours, lines, ld, exist)                                                             \
    KEPT int from[EACH(lines)], room[EACH(lines)];                                                                     \
    UNROLL_GPU for (int q = 0; q < EACH(lines); q++)                                                                   \
    {                                                                                                                  \
        const int e = item + q * ITEMS, last = (exist) - ((across) || !(fours) ? 1 : 4);                               \
        const int line = min(LINE(e, across, lines), last);                                                            \
        room[q] = last - line;                                                                                         \
        from[q] = (across) ? line * ld + STEP(e, across, lines) : STEP(e, across, lines) * ld + line;                  \
    }
#define FETCH(next, matrix, from, room, across, fours, lines)                                                          \
    UNROLL_GPU for (int q = 0; q < EACH(lines); q++) next[q] =                                                         \
        fetch(matrix + from[q], across, fours, left - STEP(item + q * ITEMS, across, lines), room[q]);
#define PUT(tile, next, across, lines, row)                                                                            \
    UNROLL_GPU for (int q = 0; q < EACH(lines); q++)                                                                   \
    {                                                                                                                  \
        const int e = item + q * ITEMS;                                                                                \
        local tile_t *to = (local tile_t *)(tile) + STEP(e, across, lines) * (row) + LINE(e, across, lines);           \
        if (FOURS(lines) % ITEMS && e >= FOURS(lines)) continue;                                                       \
        if (across) {                                                                                                  \
            to[0] = ELEMENT_OF(next[q].x);                                                                             \
            to[row] = ELEMENT_OF(next[q].y);                                                                           \
            to[2 * (row)] = ELEMENT_OF(next[q].z);                                                                     \
            to[3 * (row)] = ELEMENT_OF(next[q].w);                                                                     \
        } else                                                                                                         \
            PUT_FOUR(to, next[q])                                                                                      \
    }

SUBGROUPS __attribute__((reqd_work_group_size(ITEMS, 1, 1))) kernel void gemm_tiled(TILED_ARGUMENTS(PARAMETER))
{
    local float4 a_tile[2][BK * A_ROW / IN_FOUR], b_tile[2][BK * B_ROW / IN_FOUR];
    const KEPT int item = get_local_id(0);
    const int first_row = get_group_id(1) * BM, first_column = get_group_id(0) * BN;
    const int split = get_group_id(2) % splits, product = get_group_id(2) / splits, begin = split * k_of_split;
    int left = min(k - begin, k_of_split);
    A += from_a + product * stride_a + (TA ? (long)begin * lda + first_row : (long)first_row * lda + begin);
    B += from_b + product * stride_b + (TB ? (long)first_column * ldb + begin : (long)begin * ldb + first_column);

    PLACE(a_from, a_room, A_ACROSS, A_FOURS, BM, lda, m - first_row)
    PLACE(b_from, b_room, B_ACROSS, B_FOURS, BN, ldb, n - first_column)
    KEPT float4 a_next[EACH(BM)], b_next[EACH(BN)];
    float acc[TM][TN];
    UNROLL_GPU for (int i = 0; i < TM; i++) UNROLL_GPU for (int j = 0; j < TN; j++) acc[i][j] = 0.0f;
    CHAINS

    FETCH(a_next, A, a_from, a_room, A_ACROSS, A_FOURS, BM)
    FETCH(b_next, B, b_from, b_room, B_ACROSS, B_FOURS, BN)
    STEPS_EXIST(left > 0);
    for (int buffer = 0; left > 0; buffer ^= 1) {
        PUT(a_tile[buffer], a_next, A_ACROSS, BM, A_ROW)
        PUT(b_tile[buffer], b_next, B_ACROSS, BN, B_ROW)
        barrier(CLK_LOCAL_MEM_FENCE);
        left -= BK;
        A += TA ? (long)BK * lda : BK;
        B += TB ? BK : (long)BK * ldb;
        FETCH(a_next, A, a_from, a_room, A_ACROSS, A_FOURS, BM)
        FETCH(b_next, B, b_from, b_room, B_ACROSS, B_FOURS, BN)
        MULTIPLY(a_tile[buffer], b_tile[buffer], A_ROW, B_ROW)
        CHAINS_END(BK)
    }
    CHAINS_SUM

    C += from_c + product * stride_c + split * stride_split;
    if (added) added += from_c + product * stride_c;
    UNROLL_GPU for (int i = 0; i < TM; i++)
    {
        const int row = first_row + ROW(i);
        UNROLL_GPU for (int j = 0; j < TN; j += RUN)
        {
            const int column = first_column + COLUMN(j);
            const size_t at = (size_t)row * ldc + column;
            if (row >= m || column >= n) continue;
#if C_FOURS && RUN == 4
            const float4 four = (float4)(acc[i][j], acc[i][j + 1], acc[i][j + 2], acc[i][j + 3]);
            *(global float4 *)(C + at) = finish_float4(four, bias ? bias + column : NULL, added ? added + at : NULL);
#else
            UNROLL_GPU for (int l = 0; l < RUN; l++) if (column + l < n) C[at + l] =
                finish_float(acc[i][j + l], bias ? bias + column + l : NULL, added ? added + at + l : NULL);
#endif
        }
    }
}
