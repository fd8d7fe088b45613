/* conv2d with one input and one output channel for each group, on GPU-class devices, with channels last: [N][H][W][C], C a
 * multiple of 4. Pixel p of y reads pixel q(p, tap) of x.
 *
 *   forward          y[n,p,c]   = bias[c] + sum over taps  w[c,tap] x[n,q(p, tap),c]
 *   data_gradient    dx[n,q,c]  = sum over taps  w[c,tap] dy[n,p(q, tap),c]
 *   weight_gradient  dw[c,tap]  = sum over n, p  dy[n,p,c] x[n,q(p, tap),c]
 *
 * A work-item has four channels of strips of STRIP pixels of a row, so that what taps share is loaded once. A work-group
 * has QUADS of these fours, which neighbours have side by side, their weights in local memory, and LINES strips: groups
 * (strips / LINES, C / 4 / QUADS). The weight gradient's strips are in parts, one for each group along the first dimension,
 * of strips_of_part; gemm_finish.cl adds up the parts in their order.
 *
 * STATISTICS 1, forward without addition and activation: each group also gives count, mean and sum of squared deviations of
 * its results for each channel, as part get_group_id(0) of [parts][3][stride], as conv2d_image.h does.
 *
 * Launched by layers/conv2d/conv2d_depthwise_gpu.c. R, S and the attributes are constants of the program. STRIP is a
 * multiple of STRIDE_W. BIAS, ADD, ACTIVATE: see epilogue.h. */
#include "parameters.h"
#include "arguments/conv2d_depthwise_channels_last.h"
#include "epilogue.h"
#include "vector.h"

#ifndef UNROLL_GPU
#define UNROLL_GPU _Pragma("unroll")
#endif
#define TAPS (R * S)
#define ITEMS (QUADS * LINES)
#define ITS_QUAD ((int)get_local_id(0) % QUADS)
#define ITS_LINE ((int)get_local_id(0) / QUADS)
#define FOUR_AT(from, at) (*(global const float4 *)((from) + (at)))

/* The weights of a group's channels, which follow one another, to [TAPS][QUADS]. */
INLINE void load_weights(global const float *from, int count, local float4 *weights)
{
    for (int i = get_local_id(0); i < 4 * QUADS * TAPS; i += ITEMS)
        ((local float *)weights)[i % TAPS * 4 * QUADS + i / TAPS] = i < count ? from[i] : 0.0f;
    barrier(CLK_LOCAL_MEM_FENCE);
}

/* Columns of x under a strip of y: SPAN of them from left * STRIDE_W - PADDING_W on; zeros outside. */
#define SPAN ((STRIP - 1) * STRIDE_W + (S - 1) * DILATION_W + 1)
INLINE void load_line(global const float *row, int first, int count, int width, int C, float4 *line)
{
    UNROLL_GPU for (int i = 0; i < count; i++) line[i] =
        first + i >= 0 && first + i < width ? FOUR_AT(row, (size_t)(first + i) * C) : (float4)(0.0f);
}

#if STATISTICS
#include "arguments/conv2d_tile_statistics.h"
#define STATISTICS_PARAMETER TILE_STATISTICS_ARGUMENTS(PARAMETER)
/* Computes the statistics of a work-item's `own` pixels. Then the first of the work-items with the same channels
 * joins theirs and stores them. */
INLINE void give_statistics(const float4 *results, int own, bool exists, global float *statistics, int stride,
    local float4 *means, local float4 *deviations, local float *counts)
{
    const int item = get_local_id(0);
    float4 sum = (float4)(0.0f), squares = (float4)(0.0f);
    UNROLL_GPU for (int p = 1; p < STRIP; p++)
    {
        const float4 d = p < own ? results[p] - results[0] : (float4)(0.0f);
        sum += d;
        squares = fma(d, d, squares);
    }
    const float4 shift = sum / fmax((float)own, 1.0f);
    means[item] = results[0] + shift;
    deviations[item] = fma(-sum, shift, squares);
    counts[item] = (float)own;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (ITS_LINE == 0 && exists) {
        float count = 0.0f;
        sum = (float4)(0.0f), squares = (float4)(0.0f);
        for (int k = item; k < ITEMS; k += QUADS) {
            count += counts[k];
            sum = fma((float4)(counts[k]), means[k] - means[item], sum);
        }
        const float4 all = means[item] + sum / count;
        for (int k = item; k < ITEMS; k += QUADS) {
            const float4 d = means[k] - all;
            squares += fma(counts[k] * d, d, deviations[k]);
        }
        *(global float4 *)statistics = (float4)(count);
        *(global float4 *)(statistics + stride) = all;
        *(global float4 *)(statistics + 2 * stride) = squares;
    }
}
#else
#define STATISTICS_PARAMETER
#endif

__attribute__((reqd_work_group_size(ITEMS, 1, 1))) kernel void forward(
    FORWARD_LAST_ARGUMENTS(PARAMETER) STATISTICS_PARAMETER)
{
    const int c = ((int)get_group_id(1) * QUADS + ITS_QUAD) * 4, strips = (OW + STRIP - 1) / STRIP;
    const int strip = get_group_id(0) * LINES + ITS_LINE, row = strip / strips, left = strip % strips * STRIP;
    const bool exists = c < C && row < N * OH;
    local float4 weights[TAPS * QUADS];
    float4 results[STRIP];
    load_weights(w + (c - 4 * ITS_QUAD) * TAPS, (C - c + 4 * ITS_QUAD) * TAPS, weights);
    UNROLL_GPU for (int p = 0; p < STRIP; p++) results[p] = (float4)(0.0f);
    if (exists) {
        float4 line[SPAN];
        const int n = row / OH, top = row % OH * STRIDE_H - PADDING_H;
        UNROLL_GPU for (int r = 0; r < R; r++)
        {
            const int h = top + r * DILATION_H;
            if (h < 0 || h >= H) continue;
            load_line(x + ((size_t)n * H + h) * W * C + c, left * STRIDE_W - PADDING_W, SPAN, W, C, line);
            UNROLL_GPU for (int s = 0; s < S; s++) UNROLL_GPU for (int p = 0; p < STRIP; p++) results[p] =
                fma(line[p * STRIDE_W + s * DILATION_W], weights[(r * S + s) * QUADS + ITS_QUAD], results[p]);
        }
        UNROLL_GPU for (int p = 0; p < STRIP; p++)
        {
            const size_t at = ((size_t)row * OW + left + p) * C + c;
            if (BIAS) results[p] += FOUR_AT(bias, c);
            if (left + p >= OW) continue;
            if (ADD) results[p] += FOUR_AT(add, at);
            *(global float4 *)(y + at) = ACTIVATION(results[p]);
        }
    }
#if STATISTICS
    local float4 means[ITEMS], deviations[ITEMS];
    local float counts[ITEMS];
    give_statistics(results, exists ? min(OW - left, STRIP) : 0, c < C, statistics + (size_t)get_group_id(0) * 3 * stride + c,
        stride, means, deviations, counts);
#endif
}

/* Column LEFT + p of dx, where LEFT is a strip's first, and tap s meet at column LEFT / STRIDE_W + MEETS(p, s) of dy, if
 * DIVIDES(p, s): constants. A strip of dx so reads columns from LEAST on, MOST of them. */
#define MEETS_AT(p, s) ((p) + PADDING_W - (s) * DILATION_W)
#define DOWN(a) (((a) + FAR * STRIDE_W) / STRIDE_W - FAR) /* a / STRIDE_W, rounded down */
#define FAR ((S - 1) * DILATION_W)
#define LEAST DOWN(MEETS_AT(0, S - 1))
#define MOST (DOWN(MEETS_AT(STRIP - 1, 0)) - LEAST + 1)

__attribute__((reqd_work_group_size(ITEMS, 1, 1))) kernel void data_gradient(DATA_GRADIENT_LAST_ARGUMENTS(PARAMETER))
{
    const int c = ((int)get_group_id(1) * QUADS + ITS_QUAD) * 4, strips = (W + STRIP - 1) / STRIP;
    const int strip = get_group_id(0) * LINES + ITS_LINE, row = strip / strips, left = strip % strips * STRIP;
    local float4 weights[TAPS * QUADS];
    load_weights(w + (c - 4 * ITS_QUAD) * TAPS, (C - c + 4 * ITS_QUAD) * TAPS, weights);
    if (c >= C || row >= N * H) return;
    float4 results[STRIP], line[MOST];
    const int n = row / H, bottom = row % H + PADDING_H;
    UNROLL_GPU for (int p = 0; p < STRIP; p++) results[p] = (float4)(0.0f);
    UNROLL_GPU for (int r = 0; r < R; r++)
    {
        const int from_h = bottom - r * DILATION_H, oh = from_h / STRIDE_H;
        if (from_h < 0 || from_h % STRIDE_H || oh >= OH) continue;
        load_line(dy + ((size_t)n * OH + oh) * OW * C + c, left / STRIDE_W + LEAST, MOST, OW, C, line);
        UNROLL_GPU for (int s = 0; s < S; s++) UNROLL_GPU for (int p = 0; p < STRIP; p++)
        {
            if (DOWN(MEETS_AT(p, s)) * STRIDE_W == MEETS_AT(p, s))
                results[p] = fma(line[DOWN(MEETS_AT(p, s)) - LEAST], weights[(r * S + s) * QUADS + ITS_QUAD], results[p]);
        }
    }
    UNROLL_GPU for (int p = 0; p < STRIP; p++)
    {
        const size_t at = ((size_t)row * W + left + p) * C + c;
        if (left + p >= W) continue;
        if (ADD) results[p] += FOUR_AT(add, at);
        *(global float4 *)(dx + at) = results[p];
    }
}

__attribute__((reqd_work_group_size(ITEMS, 1, 1))) kernel void weight_gradient(
    WEIGHT_GRADIENT_LAST_ARGUMENTS(PARAMETER))
{
    local float4 parts[ITEMS];
    const int item = get_local_id(0), c = ((int)get_group_id(1) * QUADS + ITS_QUAD) * 4;
    const int strips = (OW + STRIP - 1) / STRIP, begin = get_group_id(0) * strips_of_part;
    const int end = c < C ? min(N * OH * strips, begin + strips_of_part) : begin;
    float4 sums[TAPS], line[SPAN];
    UNROLL_GPU for (int tap = 0; tap < TAPS; tap++) sums[tap] = (float4)(0.0f);
    for (int strip = begin + ITS_LINE; strip < end; strip += LINES) {
        const int row = strip / strips, left = strip % strips * STRIP;
        const int n = row / OH, top = row % OH * STRIDE_H - PADDING_H;
        float4 gradient[STRIP];
        load_line(dy + (size_t)row * OW * C + c, left, STRIP, OW, C, gradient);
        UNROLL_GPU for (int r = 0; r < R; r++)
        {
            const int h = top + r * DILATION_H;
            if (h < 0 || h >= H) continue;
            load_line(x + ((size_t)n * H + h) * W * C + c, left * STRIDE_W - PADDING_W, SPAN, W, C, line);
            UNROLL_GPU for (int p = 0; p < STRIP; p++)
            {
                if (left + p >= OW) continue; /* there x may be anything, also infinite */
                UNROLL_GPU for (int s = 0; s < S; s++) sums[r * S + s] =
                    fma(gradient[p], line[p * STRIDE_W + s * DILATION_W], sums[r * S + s]);
            }
        }
    }
    UNROLL_GPU for (int tap = 0; tap < TAPS; tap++)
    {
        parts[item] = sums[tap];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int width = LINES / 2; width > 0; width /= 2) {
            if (ITS_LINE < width) parts[item] += parts[item + width * QUADS];
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        if (ITS_LINE == 0 && c < C) {
            const float4 four = parts[item];
            const float all[4] = { four.x, four.y, four.z, four.w };
            for (int u = 0; u < 4; u++) {
                float value = all[u];
#if ADD
                if (get_num_groups(0) == 1) value += add[(c + u) * TAPS + tap];
#endif
                dw[((size_t)get_group_id(0) * C + c + u) * TAPS + tap] = value;
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
