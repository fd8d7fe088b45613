/* The weight gradient of conv2d for GPU-class devices as matrix products whose right-hand matrix is never stored, as in
 * conv2d_implicit_gemm.cl. Plain layout, any kernel, stride, padding, dilation and number of groups.
 *
 *   weight_gradient  dw[k, c, tap] = sum over n, p of dy[n, k, p] x[n, c, q(p, tap)]
 *                    rows m: k; columns: c, tap; steps: pixels of the whole batch, in `splits` parts that gemm_finish.cl
 *                    adds up in their order. Groups (columns / BN, rows / BM, groups * splits).
 *                    POINT: 1 x 1 with stride 1 and without padding, and planes of whole fours, which are loaded at once.
 *
 * Launched by layers/conv2d/conv2d_implicit_gemm.c. BM, BN, BK, TM, TN, MATRIX: see tile_product.h. COMPUTE: see
 * compute.h. add may be NULL. */
#include "parameters.h"
#include "arguments/conv2d_implicit_gemm_weight_gradient.h"
#include "compute.h"
#include "tile_product.h"

/* Work-items that follow one another in the steps write a column of a tile. */
#define A_ROW ROW_LENGTH(BM, 1)
#define B_ROW ROW_LENGTH(BN, 1)
#define AT_ONCE (ITEMS / (BK / 4)) /* with POINT: lines that all work-items bring at a time */
#define EACH(lines) (((lines) + AT_ONCE - 1) / AT_ONCE)

SUBGROUPS __attribute__((reqd_work_group_size(ITEMS, 1, 1))) kernel void weight_gradient(
    IMAGE_WEIGHTS_ARGUMENTS(PARAMETER))
{
    local float4 a_tile[BK * A_ROW / IN_FOUR], b_tile[BK * B_ROW / IN_FOUR];
    const KEPT int item = get_local_id(0);
    const int first_row = get_group_id(1) * BM, first_column = get_group_id(0) * BN;
    const int split = get_group_id(2) % splits, group = get_group_id(2) / splits;
    const int columns = C * R * S, plane = H * W, grid = OH * OW;
    const int end = min(N * grid, (split + 1) * pixels_of_split);

    float acc[TM][TN];
    UNROLL_GPU for (int i = 0; i < TM; i++) UNROLL_GPU for (int j = 0; j < TN; j++) acc[i][j] = 0.0f;
    CHAINS
#if POINT
    /* Four pixels of an image that this work-item loads for its columns and rows, every AT_ONCE-th from `lane` on. */
    const int step = item % (BK / 4) * 4, lane = item / (BK / 4);
    KEPT int pixel = split * pixels_of_split + step, n = pixel / grid, place = pixel % grid;
    KEPT float4 a_next[EACH(BM)], b_next[EACH(BN)];

#define FETCH(next, of, lines, first, exist)                                                                           \
    UNROLL_GPU for (int q = 0; q < EACH(lines); q++)                                                                   \
    {                                                                                                                  \
        const int line = first + lane + q * AT_ONCE;                                                                   \
        next[q] = pixel < end && line < exist                                                                          \
            ? *(global const float4 *)(of + (((long)n * groups + group) * exist + line) * plane + place)               \
            : (float4)(0.0f);                                                                                          \
    }
#define LOAD                                                                                                           \
    FETCH(a_next, dy, BM, first_row, K)                                                                                \
    FETCH(b_next, x, BN, first_column, C)                                                                              \
    pixel += BK;                                                                                                       \
    for (place += BK; place >= grid; place -= grid) n++
#define PUT(tile, next, lines, row)                                                                                    \
    UNROLL_GPU for (int q = 0; q < EACH(lines); q++)                                                                   \
    {                                                                                                                  \
        local tile_t *to = (local tile_t *)tile + step * (row) + lane + q * AT_ONCE;                                   \
        if ((lines) % AT_ONCE && lane + q * AT_ONCE >= (lines)) continue;                                              \
        to[0] = ELEMENT_OF(next[q].x);                                                                                 \
        to[row] = ELEMENT_OF(next[q].y);                                                                               \
        to[2 * (row)] = ELEMENT_OF(next[q].z);                                                                         \
        to[3 * (row)] = ELEMENT_OF(next[q].w);                                                                         \
    }
#else
    /* The pixel that this work-item loads for its columns, which are fixed, and its rows. */
    const int step = item % BK, lane = item / BK;
    KEPT int pixel = split * pixels_of_split + step;
    KEPT int n = pixel / grid, oh = pixel % grid / OW, ow = pixel % OW;
    KEPT int channel_of[B_LOADS], off_h[B_LOADS], off_w[B_LOADS];
    UNROLL_GPU for (int q = 0; q < B_LOADS; q++)
    {
        const int column = first_column + lane + q * (ITEMS / BK), tap = column % (R * S);
        channel_of[q] = column < columns ? column / (R * S) : -1;
        off_h[q] = tap / S * dilation_h - padding_h;
        off_w[q] = tap % S * dilation_w - padding_w;
    }

    KEPT float a_next[A_LOADS], b_next[B_LOADS];

#define LOAD                                                                                                           \
    {                                                                                                                  \
        const bool exists = pixel < end;                                                                               \
        global const float *from_dy = dy + ((long)n * groups + group) * K * grid + oh * OW + ow;                       \
        global const float *from_x = x + ((long)n * groups + group) * C * plane;                                       \
        UNROLL_GPU for (int q = 0; q < A_LOADS; q++)                                                                   \
        {                                                                                                              \
            const int m = first_row + lane + q * (ITEMS / BK);                                                         \
            a_next[q] = exists && m < K ? from_dy[(long)m * grid] : 0.0f;                                              \
        }                                                                                                              \
        UNROLL_GPU for (int q = 0; q < B_LOADS; q++)                                                                   \
        {                                                                                                              \
            const int h = oh * stride_h + off_h[q], w = ow * stride_w + off_w[q];                                      \
            const bool inside = exists && channel_of[q] >= 0 && h >= 0 && h < H && w >= 0 && w < W;                    \
            b_next[q] = inside ? from_x[channel_of[q] * plane + h * W + w] : 0.0f;                                     \
        }                                                                                                              \
        pixel += BK;                                                                                                   \
        for (ow += BK; ow >= OW; ow -= OW)                                                                             \
            if (++oh == OH) oh = 0, n++;                                                                               \
    }
#define PUT(tile, next, lines, row)                                                                                    \
    UNROLL_GPU for (int q = 0; q < BK * (lines) / ITEMS; q++)                                                          \
        ((local tile_t *)tile)[step * (row) + lane + q * (ITEMS / BK)] = ELEMENT_OF(next[q]);
#endif

    LOAD;
    STEPS_EXIST(split * pixels_of_split < end);
    for (int first = split * pixels_of_split; first < end; first += BK) {
        PUT(a_tile, a_next, BM, A_ROW)
        PUT(b_tile, b_next, BN, B_ROW)
        barrier(CLK_LOCAL_MEM_FENCE);
        LOAD;
        MULTIPLY(a_tile, b_tile, A_ROW, B_ROW)
        barrier(CLK_LOCAL_MEM_FENCE);
        CHAINS_END(BK)
    }
    CHAINS_SUM

    global float *to = dw + (long)split * groups * K * columns;
    UNROLL_GPU for (int i = 0; i < TM; i++)
    {
        const int m = first_row + ROW(i);
        UNROLL_GPU for (int j = 0; j < TN; j++)
        {
            const int column = first_column + COLUMN(j);
            if (m >= K || column >= columns) continue;
            const long at = ((long)group * K + m) * columns + column;
            float value = acc[i][j];
            if (add && splits == 1) value += add[at];
            to[at] = value;
        }
    }
}
