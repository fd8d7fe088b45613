/* Pooling on any device: planes [N * C] of H x W (x) and OH x OW (y). One work-item per output float; in the gradients
 * for PIXELS of them that lie together: max_pool_gradient in a row, average_pool_gradient anywhere.
 * Launched by layers/pool/pool_kernels.c with all sizes as build options:
 *   H, W, OH, OW, KH, KW, SH, SW (stride), PH, PW (padding)
 *   CHANNELS: numbers of a pixel that lie together: 1 in the plain layout, C with channels last, where planes are [N]
 *   PLACE (uint or ulong): a type that holds all positions
 *   INDEX (uchar or int): the place of the maximum in its window, ky * KW + kx; WITH_INDEX 0: it is not wanted
 *   ADAPTIVE 1: window o is floor(o in / out) .. ceil((o + 1) in / out);  COUNT 1: divide by the pixels inside the image
 * On ties the first place wins; NaN is a maximum. Gradients gather: each pixel asks the windows that cover it. */
#include "epilogue.h"
#include "pool_window.h"
#include "sum.h"
#include "vector.h"


#ifndef CHANNELS
#define CHANNELS 1
#endif
#ifndef PIXELS
#define PIXELS 1
#endif
#define EACH_PIXEL UNROLL for (int j = 0; j < PIXELS; j++)
/* Stores sums[PIXELS] to dx[i] and the elements after it. */
#if PIXELS == 4
#define STORE_PIXELS                                                                                                   \
    ((global float4 *)dx)[i / 4] =                                                                                     \
        (float4)(sums[0] PLUS_ADDED(i), sums[1] PLUS_ADDED(i + 1), sums[2] PLUS_ADDED(i + 2), sums[3] PLUS_ADDED(i + 3));
#else
#define STORE_PIXELS dx[i] = sums[0] PLUS_ADDED(i);
#endif
/* For number i in rows of `width` pixels and planes of `area` pixels: its row, its column, and where its channel
 * begins in planes of `other` pixels. */
#define ROW(i, area, width) ((int)((i) / CHANNELS % (area)) / (width))
#define COLUMN(i, width) (int)((i) / CHANNELS % (width))
#define BEGIN(i, area, other) ((i) / (CHANNELS * (area)) * CHANNELS * other + (i) % CHANNELS)

/* A window is read at once where it is small: no load waits for another. */
kernel void max_pool(global const float *x, global float *y, global INDEX *index, ulong outputs)
{
    const PLACE i = get_global_id(0);
    if (i >= outputs) return;
    const int oy = ROW(i, OH * OW, OW), ox = COLUMN(i, OW);
    global const float *from = x + BEGIN(i, OH * OW, H * W);
    float most = -INFINITY;
    int place = FIRST_INSIDE(oy, ox);
#if KH * KW <= 16
    float window[KH * KW];
    UNROLL for (int k = 0; k < KH * KW; k++)
    {
        const int iy = oy * SH - PH + k / KW, ix = ox * SW - PW + k % KW;
        const bool inside = iy >= 0 && iy < H && ix >= 0 && ix < W;
        window[k] = inside ? from[(iy * W + ix) * CHANNELS] : -INFINITY;
    }
    UNROLL for (int k = 0; k < KH * KW; k++)
    {
        const bool more = window[k] > most || isnan(window[k]);
        most = more ? window[k] : most;
        place = more ? k : place;
    }
#else
    for (int iy = max(oy * SH - PH, 0); iy < min(oy * SH - PH + KH, H); iy++) {
        for (int ix = max(ox * SW - PW, 0); ix < min(ox * SW - PW + KW, W); ix++) {
            const float v = from[(iy * W + ix) * CHANNELS];
            if (v > most || isnan(v)) {
                most = v;
                place = (iy - oy * SH + PH) * KW + ix - ox * SW + PW;
            }
        }
    }
#endif
    y[i] = most;
#if WITH_INDEX
    index[i] = (INDEX)place;
#endif
}

/* The windows that cover some of `pixels` pixels of a row or column, at most. */
#define WINDOWS(pixels, K, S, O) (((pixels) + K - 2) / S + 1 < O ? ((pixels) + K - 2) / S + 1 : O)
#define WINDOWS_Y WINDOWS(1, KH, SH, OH)
#define WINDOWS_X WINDOWS(PIXELS, KW, SW, OW)
#if WINDOWS_Y * WINDOWS_X <= 16
#define UNROLL_WINDOWS UNROLL
#else
#define UNROLL_WINDOWS
#endif

kernel void max_pool_gradient(
    global const float *dy, global const INDEX *index, ADD_PARAMETER(float) global float *dx, ulong items)
{
    if (get_global_id(0) >= items) return;
    const PLACE i = (PLACE)get_global_id(0) * PIXELS, from = BEGIN(i, H * W, OH * OW);
    const int iy = ROW(i, H * W, W), ix = COLUMN(i, W);
    const int first_y = FIRST_WINDOW(iy, PH, KH, SH), first_x = FIRST_WINDOW(ix, PW, KW, SW);
    const int last_y = LAST_WINDOW(iy, PH, SH, OH), last_x = LAST_WINDOW(ix + PIXELS - 1, PW, SW, OW);
    float sums[PIXELS];
    EACH_PIXEL sums[j] = 0.0f;
    UNROLL_WINDOWS for (int v = 0; v < WINDOWS_Y; v++)
    {
        UNROLL_WINDOWS for (int u = 0; u < WINDOWS_X; u++)
        {
            /* The last window stands for those that do not exist, so that no load waits for a comparison. */
            const int oy = first_y + v, ox = first_x + u;
            const PLACE o = from + (PLACE)(min(oy, last_y) * OW + min(ox, last_x)) * CHANNELS;
            const float gradient = dy[o];
            const int column = index[o] - (iy + PH - oy * SH) * KW; /* if the maximum is in this row */
            const bool here = oy <= last_y && ox <= last_x && column >= 0 && column < KW;
            const int pixel = here ? column + ox * SW - PW - ix : -1;
            EACH_PIXEL sums[j] += pixel == j ? gradient : 0.0f;
        }
    }
    STORE_PIXELS
}

kernel void average_pool(global const float *x, global float *y, ulong outputs)
{
    const PLACE i = get_global_id(0);
    if (i >= outputs) return;
    const int oy = ROW(i, OH * OW, OW), ox = COLUMN(i, OW);
    global const float *from = x + BEGIN(i, OH * OW, H * W);
    float sum = 0.0f, error = 0.0f;
    for (int iy = BEGIN_Y(oy); iy < END_Y(oy); iy++)
        for (int ix = BEGIN_X(ox); ix < END_X(ox); ix++) SUM_ADD(float, sum, error, from[(iy * W + ix) * CHANNELS]);
    y[i] = sum / (float)DIVISOR(oy, ox);
}

kernel void average_pool_gradient(global const float *dy, ADD_PARAMETER(float) global float *dx, ulong items)
{
    if (get_global_id(0) >= items) return;
    const PLACE i = (PLACE)get_global_id(0) * PIXELS;
    float sums[PIXELS];
    EACH_PIXEL
    {
        const PLACE from = BEGIN(i + j, H * W, OH * OW);
        const int iy = ROW(i + j, H * W, W), ix = COLUMN(i + j, W);
        sums[j] = 0.0f;
        for (int oy = FIRST_Y(iy); oy <= LAST_Y(iy); oy++)
            for (int ox = FIRST_X(ix); ox <= LAST_X(ix); ox++)
                sums[j] += dy[from + (PLACE)(oy * OW + ox) * CHANNELS] / (float)DIVISOR(oy, ox);
    }
    STORE_PIXELS
}

/* The mean of a whole plane, OH = OW = 1: LANES of a group's GROUP work-items for each plane, powers of two. */
#ifdef LANES
kernel void global_average_pool(global const float *x, global float *y, ulong planes)
{
    local float scratch[GROUP];
    const int item = get_local_id(0), lane = item % LANES;
    const size_t plane = get_global_id(0) / LANES;
    float sum = 0.0f, error = 0.0f;
    if (plane < planes)
        for (int i = lane; i < H * W; i += LANES) SUM_ADD(float, sum, error, x[plane * (H * W) + i]);
    scratch[item] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int step = LANES / 2; step > 0; step /= 2) {
        if (lane < step) scratch[item] += scratch[item + step];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (lane == 0 && plane < planes) y[plane] = scratch[item] / (float)(H * W);
}
#endif
