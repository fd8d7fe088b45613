/* conv2d for GPU-class devices as matrix products whose right-hand matrix is never stored (implicit GEMM: Chetlur et al.,
 * cuDNN, 2014, section 3.1). Plain layout, any kernel, stride, padding, dilation and number of groups.
 *
 * A work-group of (BM / TM) * (BN / TN) work-items makes a tile of BM x BN results; a work-item TM x TN of them in
 * registers. BK steps of the sum at a time lie in local memory, while those that follow are on their way to registers.
 *
 *   image            forward:        y[n, k, p] = bias[k] + sum over taps, c of w[k, c, tap] x[n, c, q(p, tap)]
 *                    GRADIENT 1:     dx[n, c, q] = sum over taps, k of w[k, c, tap] dy[n, k, p(q, tap)]
 *                    rows m: channels of the result; columns: pixels of the whole batch; steps: taps, then channels of the
 *                    source. A gradient's pixels fall into stride_h * stride_w classes, in each of which the same taps
 *                    count: a class has work-groups of its own. Groups (columns / BN, rows / BM, groups * classes).
 *   weight_gradient  dw[k, c, tap] = sum over n, p of dy[n, k, p] x[n, c, q(p, tap)]
 *                    rows m: k; columns: c, tap; steps: pixels of the whole batch, in `splits` parts that conv2d_sum_gpu.cl
 *                    adds up in their order. Groups (columns / BN, rows / BM, groups * splits).
 *   pack             the weights as [group][tap][source channels, up to a multiple of BK][result channels, of BM], padded
 *                    with zeros. FLAT: the padding is behind the last tap only, for few source channels.
 *
 * Launched by layers/conv2d_implicit_gemm.c. BM, BN, BK, TM, TN; TM and TN are multiples of 4. BIAS, ADD, ACTIVATE: see
 * epilogue.h. No work-item passes a barrier that others of its group do not: early returns are the whole group's. */
#include "epilogue.h"

#define ITEMS ((BM / TM) * (BN / TN))
#define ROW_STEP (4 * BM / TM) /* between a work-item's fours of rows, and of columns */
#define COLUMN_STEP (4 * BN / TN)

/* acc += a^T b for the BK steps in local memory; a row has A_STRIDE or B_STRIDE floats. */
#define MULTIPLY(a_tile, b_tile, A_STRIDE, B_STRIDE)                                                                   \
    _Pragma("unroll 4") for (int step = 0; step < BK; step++)                                                           \
    {                                                                                                                  \
        float a[TM], b[TN];                                                                                            \
        _Pragma("unroll") for (int i = 0; i < TM / 4; i++)                                                             \
        {                                                                                                              \
            const float4 four = a_tile[(step * A_STRIDE + i * ROW_STEP) / 4 + item / (BN / TN)];                       \
            a[4 * i] = four.x, a[4 * i + 1] = four.y, a[4 * i + 2] = four.z, a[4 * i + 3] = four.w;                    \
        }                                                                                                              \
        _Pragma("unroll") for (int j = 0; j < TN / 4; j++)                                                             \
        {                                                                                                              \
            const float4 four = b_tile[(step * B_STRIDE + j * COLUMN_STEP) / 4 + item % (BN / TN)];                    \
            b[4 * j] = four.x, b[4 * j + 1] = four.y, b[4 * j + 2] = four.z, b[4 * j + 3] = four.w;                    \
        }                                                                                                              \
        _Pragma("unroll") for (int i = 0; i < TM; i++)                                                                 \
            _Pragma("unroll") for (int j = 0; j < TN; j++) acc[i][j] += a[i] * b[j];                                   \
    }

/* Where a work-item's i-th row and j-th column lie in the tile. */
#define ROW(i) ((i) / 4 * ROW_STEP + item / (BN / TN) * 4 + (i) % 4)
#define COLUMN(j) ((j) / 4 * COLUMN_STEP + item % (BN / TN) * 4 + (j) % 4)

#define A_LOADS (BK * BM / ITEMS)
#define B_LOADS (BK * BN / ITEMS)

/* Source row of a result's row: i * step + OFFSET(r), where the tap counts. */
#if GRADIENT
#define COUNTS(tap)                                                                                                    \
    ((first_h + padding_h - (tap) / S * dilation_h) % stride_h == 0 &&                                                 \
        (first_w + padding_w - (tap) % S * dilation_w) % stride_w == 0)
#define OFFSET_H(r) ((first_h + padding_h - (r) * dilation_h) / stride_h)
#define OFFSET_W(s) ((first_w + padding_w - (s) * dilation_w) / stride_w)
#else
#define COUNTS(tap) ((tap) >= 0)
#define OFFSET_H(r) ((r) * dilation_h - padding_h)
#define OFFSET_W(s) ((s) * dilation_w - padding_w)
#endif

/* source [N][groups * CS][SH][SW], result [N][groups * CR][RH][RW]; CSP and CRP: the padded numbers of channels. */
__attribute__((reqd_work_group_size(ITEMS, 1, 1))) kernel void image(global const float *restrict source,
    global const float *restrict weights, global const float *restrict bias, global const float *add,
    global float *result, int N, int groups, int CS, int CR, int CSP, int CRP, int SH, int SW, int RH, int RW, int R,
    int S, int stride_h, int stride_w, int padding_h, int padding_w, int dilation_h, int dilation_w)
{
    local float4 a_tile[BK * BM / 4], b_tile[BK * BN / 4];
    const int item = get_local_id(0), first_row = get_group_id(1) * BM, first_pixel = get_group_id(0) * BN;
#if GRADIENT
    const int classes = stride_h * stride_w, residue = get_group_id(2) % classes, group = get_group_id(2) / classes;
    const int first_h = residue / stride_w, first_w = residue % stride_w;
    const int rows = (RH - first_h + stride_h - 1) / stride_h, columns = (RW - first_w + stride_w - 1) / stride_w;
    const int step_h = 1, step_w = 1, result_h = stride_h, result_w = stride_w;
#else
    const int group = get_group_id(2), first_h = 0, first_w = 0, rows = RH, columns = RW;
    const int step_h = stride_h, step_w = stride_w, result_h = 1, result_w = 1;
#endif
    const int grid = rows * columns, pixels = N * grid, taps = R * S, plane = SH * SW;
    if (first_pixel >= pixels) return;

    /* The pixel whose column of the right-hand matrix this work-item loads. */
    const int pixel = first_pixel + item % BN;
    const bool exists = pixel < pixels;
    const int image = exists ? pixel / grid : 0, place = exists ? pixel % grid : 0;
    const int from_h = place / columns * step_h, from_w = place % columns * step_w;
    global const float *from = source + ((long)image * groups + group) * CS * plane;

    float acc[TM][TN];
    _Pragma("unroll") for (int i = 0; i < TM; i++) _Pragma("unroll") for (int j = 0; j < TN; j++) acc[i][j] = 0.0f;
    float a_next[A_LOADS], b_next[B_LOADS];

#define LOAD_A(row)                                                                                                    \
    _Pragma("unroll") for (int q = 0; q < A_LOADS; q++) a_next[q] =                                                    \
        weights[(long)((row) + item / BM + q * (ITEMS / BM)) * CRP + first_row + item % BM]

#if FLAT
    const int steps = taps * CS;
    weights += (long)group * CSP * CRP;
    int k = 0;
#define LOAD                                                                                                           \
    LOAD_A(k);                                                                                                         \
    _Pragma("unroll") for (int q = 0; q < B_LOADS; q++)                                                                \
    {                                                                                                                  \
        int at = k + item / BN + q * (ITEMS / BN), tap = at / FLAT_CHANNELS, c = at % FLAT_CHANNELS;                   \
        int h = from_h + OFFSET_H(tap / FLAT_WIDTH), w = from_w + OFFSET_W(tap % FLAT_WIDTH);                          \
        bool inside = exists && at < steps && h >= 0 && h < SH && w >= 0 && w < SW;                                    \
        b_next[q] = inside ? from[c * plane + h * SW + w] : 0.0f;                                                      \
    }
#define MORE (k < steps)
#define NEXT k += BK
#else
    weights += (long)group * taps * CSP * CRP;
    int tap = 0, c = 0;
    while (tap < taps && !COUNTS(tap)) tap++;
#define LOAD                                                                                                           \
    {                                                                                                                  \
        LOAD_A(tap * CSP + c);                                                                                         \
        int h = from_h + OFFSET_H(tap / S), w = from_w + OFFSET_W(tap % S);                                            \
        bool inside = exists && h >= 0 && h < SH && w >= 0 && w < SW;                                                  \
        _Pragma("unroll") for (int q = 0; q < B_LOADS; q++)                                                            \
        {                                                                                                              \
            int channel = c + item / BN + q * (ITEMS / BN);                                                            \
            b_next[q] = inside && channel < CS ? from[channel * plane + h * SW + w] : 0.0f;                            \
        }                                                                                                              \
    }
#define MORE (tap < taps)
#define NEXT                                                                                                           \
    c += BK;                                                                                                           \
    if (c >= CS) {                                                                                                     \
        c = 0;                                                                                                         \
        do tap++;                                                                                                      \
        while (tap < taps && !COUNTS(tap));                                                                            \
    }
#endif

    if (MORE) LOAD;
    while (MORE) {
        _Pragma("unroll") for (int q = 0; q < A_LOADS; q++)((local float *)a_tile)[item + q * ITEMS] = a_next[q];
        _Pragma("unroll") for (int q = 0; q < B_LOADS; q++)((local float *)b_tile)[item + q * ITEMS] = b_next[q];
        barrier(CLK_LOCAL_MEM_FENCE);
        NEXT;
        if (MORE) LOAD;
        MULTIPLY(a_tile, b_tile, BM, BN)
        barrier(CLK_LOCAL_MEM_FENCE);
    }

    _Pragma("unroll") for (int j = 0; j < TN; j++)
    {
        const int p = first_pixel + COLUMN(j);
        if (p >= pixels) continue;
        const int row = p % grid / columns, column = p % grid % columns;
        const long at = ((long)(p / grid) * groups + group) * CR * RH * RW +
            (long)(first_h + row * result_h) * RW + first_w + column * result_w;
        _Pragma("unroll") for (int i = 0; i < TM; i++)
        {
            const int m = first_row + ROW(i);
            if (m >= CR) continue;
            float value = acc[i][j];
#if BIAS
            value += bias[group * CR + m];
#endif
#if ADD
            value += add[at + (long)m * RH * RW];
#endif
            result[at + (long)m * RH * RW] = ACTIVATION(value);
        }
    }
}

/* A row of a tile is four floats longer than needed: its columns are written by work-items that follow one another in
 * the steps, which would otherwise all hit one bank. */
#define A_ROW (BM + 4)
#define B_ROW (BN + 4)

__attribute__((reqd_work_group_size(ITEMS, 1, 1))) kernel void weight_gradient(global const float *restrict x,
    global const float *restrict dy, global const float *add, global float *dw, int N, int groups, int C, int K, int H,
    int W, int OH, int OW, int R, int S, int stride_h, int stride_w, int padding_h, int padding_w, int dilation_h,
    int dilation_w, int splits, int pixels_of_split)
{
    local float4 a_tile[BK * A_ROW / 4], b_tile[BK * B_ROW / 4];
    const int item = get_local_id(0), first_row = get_group_id(1) * BM, first_column = get_group_id(0) * BN;
    const int split = get_group_id(2) % splits, group = get_group_id(2) / splits;
    const int columns = C * R * S, plane = H * W, grid = OH * OW;
    const int end = min(N * grid, (split + 1) * pixels_of_split);

    /* The pixel that this work-item loads for its columns, which are fixed, and its rows. */
    const int step = item % BK, lane = item / BK;
    int pixel = split * pixels_of_split + step;
    int n = pixel / grid, oh = pixel % grid / OW, ow = pixel % OW;
    int channel_of[B_LOADS], off_h[B_LOADS], off_w[B_LOADS];
    _Pragma("unroll") for (int q = 0; q < B_LOADS; q++)
    {
        const int column = first_column + lane + q * (ITEMS / BK), tap = column % (R * S);
        channel_of[q] = column < columns ? column / (R * S) : -1;
        off_h[q] = tap / S * dilation_h - padding_h;
        off_w[q] = tap % S * dilation_w - padding_w;
    }

    float acc[TM][TN];
    _Pragma("unroll") for (int i = 0; i < TM; i++) _Pragma("unroll") for (int j = 0; j < TN; j++) acc[i][j] = 0.0f;
    float a_next[A_LOADS], b_next[B_LOADS];

#undef LOAD
#define LOAD                                                                                                           \
    {                                                                                                                  \
        const bool exists = pixel < end;                                                                               \
        global const float *from_dy = dy + ((long)n * groups + group) * K * grid + oh * OW + ow;                       \
        global const float *from_x = x + ((long)n * groups + group) * C * plane;                                       \
        _Pragma("unroll") for (int q = 0; q < A_LOADS; q++)                                                            \
        {                                                                                                              \
            const int m = first_row + lane + q * (ITEMS / BK);                                                         \
            a_next[q] = exists && m < K ? from_dy[(long)m * grid] : 0.0f;                                              \
        }                                                                                                              \
        _Pragma("unroll") for (int q = 0; q < B_LOADS; q++)                                                            \
        {                                                                                                              \
            const int h = oh * stride_h + off_h[q], w = ow * stride_w + off_w[q];                                      \
            const bool inside = exists && channel_of[q] >= 0 && h >= 0 && h < H && w >= 0 && w < W;                    \
            b_next[q] = inside ? from_x[channel_of[q] * plane + h * W + w] : 0.0f;                                     \
        }                                                                                                              \
        pixel += BK;                                                                                                   \
        for (ow += BK; ow >= OW; ow -= OW)                                                                             \
            if (++oh == OH) oh = 0, n++;                                                                               \
    }

    LOAD;
    for (int first = split * pixels_of_split; first < end; first += BK) {
        _Pragma("unroll") for (int q = 0; q < A_LOADS; q++)
            ((local float *)a_tile)[step * A_ROW + lane + q * (ITEMS / BK)] = a_next[q];
        _Pragma("unroll") for (int q = 0; q < B_LOADS; q++)
            ((local float *)b_tile)[step * B_ROW + lane + q * (ITEMS / BK)] = b_next[q];
        barrier(CLK_LOCAL_MEM_FENCE);
        LOAD;
        MULTIPLY(a_tile, b_tile, A_ROW, B_ROW)
        barrier(CLK_LOCAL_MEM_FENCE);
    }

    global float *to = dw + (long)split * groups * K * columns;
    _Pragma("unroll") for (int i = 0; i < TM; i++)
    {
        const int m = first_row + ROW(i);
        _Pragma("unroll") for (int j = 0; j < TN; j++)
        {
            const int column = first_column + COLUMN(j);
            if (m >= K || column >= columns) continue;
            const long at = ((long)group * K + m) * columns + column;
            float value = acc[i][j];
#if ADD
            if (splits == 1) value += add[at];
#endif
            to[at] = value;
        }
    }
}

/* One work-item for each element of the packed weights. w [K][C][taps], K and C over all groups and of one. */
kernel void pack(global const float *restrict w, global float *restrict packed, int count, int taps, int CS, int CR,
    int CSP, int CRP)
{
    const int i = get_global_id(0);
    if (i >= count) return;
    const int to = i % CRP, row = i / CRP;
#if FLAT
    const int group = row / CSP, tap = row % CSP / CS, from = row % CSP % CS;
#else
    const int group = row / (CSP * taps), tap = row / CSP % taps, from = row % CSP;
#endif
    const bool exists = tap < taps && from < CS && to < CR;
#if GRADIENT
    packed[i] = exists ? w[(((long)group * CS + from) * CR + to) * taps + tap] : 0.0f;
#else
    packed[i] = exists ? w[(((long)group * CR + to) * CS + from) * taps + tap] : 0.0f;
#endif
}
