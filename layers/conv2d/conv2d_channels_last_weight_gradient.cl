/* The weight gradient of conv2d for GPU-class devices by matrix instructions with channels last, as in
 * conv2d_channels_last.cl: x [N][H][W][C], dy [N][OH][OW][K]. Four channels of a pixel, or four outputs, are one load.
 *
 *   weight_gradient  dw[k, c, tap] = sum over n, p of dy[n, p, k] x[n, q(p, tap), c]
 *                    rows m: k; columns: tap, then c; steps: pixels of the whole batch, in `splits` parts that gemm_finish.cl
 *                    adds up in their order. Groups (columns / BN, rows / BM, splits). FLAT: x is plain, [N][C][H][W], and
 *                    columns are c, then tap.
 *
 * Launched by layers/conv2d/conv2d_implicit_gemm.c. BM, BN, BK, TM, TN, MATRIX: see tile_product.h. COMPUTE: see compute.h. add may
 * be NULL. */
#include "parameters.h"
#include "arguments/conv2d_channels_last_weight_gradient.h"
#include "compute.h"
#include "tile_product.h"

/* Work-items that follow one another load the fours of a step's lines, and all of them load several steps at a time,
 * again and again. A work-item has the same lines all the time; its q-th step is A_STEP_AT(q) or B_STEP_AT(q). */
#define A_ROW ROW_LENGTH(BM, 1)
#define B_ROW ROW_LENGTH(BN, 1)
#define A_STEP_AT(q) (item / (BM / 4) + (q) * (ITEMS / (BM / 4)))
#define B_STEP_AT(q) (item / (BN / 4) + (q) * (ITEMS / (BN / 4)))

SUBGROUPS __attribute__((reqd_work_group_size(ITEMS, 1, 1))) kernel void weight_gradient(
    IMAGE_LAST_WEIGHTS_ARGUMENTS(PARAMETER))
{
    local float4 a_tile[BK * A_ROW / IN_FOUR], b_tile[BK * B_ROW / IN_FOUR];
    const KEPT int item = get_local_id(0);
    const int first_row = get_group_id(1) * BM, first_column = get_group_id(0) * BN;
    const int split = get_group_id(2), taps = R * S, columns = C * taps, grid = OH * OW;
    const int begin = split * pixels_of_split, end = min(N * grid, begin + pixels_of_split);

    /* The outputs and the columns that this work-item loads. */
    const int a_line = item % (BM / 4) * 4, b_line = item % (BN / 4) * 4;
    const int k = first_row + a_line, column = first_column + b_line;
#if FLAT
    KEPT int channel_of[4], off_h[4], off_w[4];
    UNROLL_GPU for (int u = 0; u < 4; u++)
    {
        const int tap = (column + u) % taps;
        channel_of[u] = column + u < columns ? (column + u) / taps : -1;
        off_h[u] = tap / S * dilation_h - padding_h;
        off_w[u] = tap % S * dilation_w - padding_w;
    }
#else
    const int off_h = column / C / S * dilation_h - padding_h, off_w = column / C % S * dilation_w - padding_w;
#endif
    /* The pixels that this work-item loads. They go on by BK pixels at a time. */
    const int on_n = BK / grid, on_h = BK % grid / OW, on_w = BK % OW;
    KEPT int n[B_LOADS / 4], oh[B_LOADS / 4], ow[B_LOADS / 4];
    UNROLL_GPU for (int q = 0; q < B_LOADS / 4; q++)
    {
        const int pixel = begin + B_STEP_AT(q);
        n[q] = pixel / grid, oh[q] = pixel % grid / OW, ow[q] = pixel % OW;
    }

    float acc[TM][TN];
    UNROLL_GPU for (int i = 0; i < TM; i++) UNROLL_GPU for (int j = 0; j < TN; j++) acc[i][j] = 0.0f;
    KEPT float4 a_next[A_LOADS / 4], b_next[B_LOADS / 4];

#define INSIDE(h, w) ((h) >= 0 && (h) < H && (w) >= 0 && (w) < W)
#if FLAT
#define LOAD_X(q)                                                                                                      \
    {                                                                                                                  \
        float four[4];                                                                                                 \
        UNROLL_GPU for (int u = 0; u < 4; u++)                                                                         \
        {                                                                                                              \
            const int h = oh[q] * stride_h + off_h[u], w = ow[q] * stride_w + off_w[u];                                \
            const bool exists = first + B_STEP_AT(q) < end && channel_of[u] >= 0 && INSIDE(h, w);                      \
            four[u] = exists ? x[(((size_t)n[q] * C + channel_of[u]) * H + h) * W + w] : 0.0f;                         \
        }                                                                                                              \
        b_next[q] = (float4)(four[0], four[1], four[2], four[3]);                                                      \
    }
#else
#define LOAD_X(q)                                                                                                      \
    {                                                                                                                  \
        const int h = oh[q] * stride_h + off_h, w = ow[q] * stride_w + off_w;                                          \
        const bool exists = first + B_STEP_AT(q) < end && column < columns && INSIDE(h, w);                            \
        global const float *from = x + (((size_t)n[q] * H + h) * W + w) * C + column % C;                              \
        b_next[q] = exists ? *(global const float4 *)from : (float4)(0.0f);                                            \
    }
#endif
#define LOAD                                                                                                           \
    {                                                                                                                  \
        UNROLL_GPU for (int q = 0; q < A_LOADS / 4; q++)                                                               \
        {                                                                                                              \
            const int pixel = first + A_STEP_AT(q);                                                                    \
            global const float *from = dy + (size_t)pixel * K + k;                                                     \
            a_next[q] = pixel < end && k < K ? *(global const float4 *)from : (float4)(0.0f);                          \
        }                                                                                                              \
        UNROLL_GPU for (int q = 0; q < B_LOADS / 4; q++)                                                               \
        {                                                                                                              \
            LOAD_X(q)                                                                                                  \
            n[q] += on_n, oh[q] += on_h, ow[q] += on_w;                                                                \
            if (ow[q] >= OW) ow[q] -= OW, oh[q]++;                                                                     \
            if (oh[q] >= OH) oh[q] -= OH, n[q]++;                                                                      \
        }                                                                                                              \
    }

    int first = begin;
    LOAD;
    STEPS_EXIST(first < end);
    while (first < end) {
        UNROLL_GPU for (int q = 0; q < A_LOADS / 4; q++)
            PUT_FOUR((local tile_t *)a_tile + A_STEP_AT(q) * A_ROW + a_line, a_next[q])
        UNROLL_GPU for (int q = 0; q < B_LOADS / 4; q++)
            PUT_FOUR((local tile_t *)b_tile + B_STEP_AT(q) * B_ROW + b_line, b_next[q])
        barrier(CLK_LOCAL_MEM_FENCE);
        first += BK;
        LOAD;
        MULTIPLY(a_tile, b_tile, A_ROW, B_ROW)
        barrier(CLK_LOCAL_MEM_FENCE);
    }

    global float *to = dw + (size_t)split * K * columns;
    UNROLL_GPU for (int j = 0; j < TN; j++)
    {
        const int from = first_column + COLUMN(j), place = FLAT ? from : from % C * taps + from / C;
        UNROLL_GPU for (int i = 0; i < TM; i++)
        {
            const int m = first_row + ROW(i);
            if (m >= K || from >= columns) continue;
            const size_t at = (size_t)m * columns + place;
            to[at] = add && get_num_groups(2) == 1 ? acc[i][j] + add[at] : acc[i][j];
        }
    }
}
