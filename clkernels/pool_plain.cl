/* Pooling on any device: planes [N * C] of H x W (x) and OH x OW (y). One work-item per output float.
 * Launched by layers/pool_kernels.c with all sizes as build options:
 *   H, W, OH, OW, KH, KW, SH, SW (stride), PH, PW (padding)
 *   CHANNELS: numbers of a pixel that lie together: 1 in the plain layout, C with channels last, where planes are [N]
 *   INDEX (uchar or int): the place of the maximum in its window, ky * KW + kx; WITH_INDEX 0: it is not wanted
 *   ADAPTIVE 1: window o is floor(o in / out) .. ceil((o + 1) in / out);  COUNT 1: divide by the pixels inside the image
 * On ties the first place wins; NaN is a maximum. Gradients gather: each pixel asks the windows that cover it. */
#include "epilogue.h"
#include "pool_window.h"

#ifndef CHANNELS
#define CHANNELS 1
#endif
/* Of number i in rows of `width` pixels and planes of `area`: its row, its column; where its channel begins in planes of
 * `other` pixels. */
#define ROW(i, area, width) ((int)((i) / CHANNELS % (area)) / (width))
#define COLUMN(i, width) (int)((i) / CHANNELS % (width))
#define BEGIN(i, area, other) ((i) / (CHANNELS * (area)) * CHANNELS * other + (i) % CHANNELS)

kernel void max_pool(global const float *x, global float *y, global INDEX *index, ulong outputs)
{
    const size_t i = get_global_id(0);
    if (i >= outputs) return;
    const int oy = ROW(i, OH * OW, OW), ox = COLUMN(i, OW);
    global const float *from = x + BEGIN(i, OH * OW, H * W);
    float most = -INFINITY;
    int place = FIRST_INSIDE(oy, ox);
    for (int iy = max(oy * SH - PH, 0); iy < min(oy * SH - PH + KH, H); iy++) {
        for (int ix = max(ox * SW - PW, 0); ix < min(ox * SW - PW + KW, W); ix++) {
            const float v = from[(iy * W + ix) * CHANNELS];
            if (v > most || isnan(v)) {
                most = v;
                place = (iy - oy * SH + PH) * KW + ix - ox * SW + PW;
            }
        }
    }
    y[i] = most;
    if (WITH_INDEX) index[i] = (INDEX)place;
}

kernel void max_pool_gradient(
    global const float *dy, global const INDEX *index, ADD_PARAMETER(float) global float *dx, ulong pixels)
{
    const size_t i = get_global_id(0);
    if (i >= pixels) return;
    const size_t from = BEGIN(i, H * W, OH * OW);
    const int iy = ROW(i, H * W, W), ix = COLUMN(i, W);
    float sum = 0.0f;
    for (int oy = FIRST_WINDOW(iy, PH, KH, SH); oy <= LAST_WINDOW(iy, PH, SH, OH); oy++) {
        for (int ox = FIRST_WINDOW(ix, PW, KW, SW); ox <= LAST_WINDOW(ix, PW, SW, OW); ox++) {
            const size_t o = from + oy * OW * CHANNELS + ox * CHANNELS;
            if (index[o] == (iy + PH - oy * SH) * KW + ix + PW - ox * SW) sum += dy[o];
        }
    }
    dx[i] = sum PLUS_ADDED(i);
}

kernel void average_pool(global const float *x, global float *y, ulong outputs)
{
    const size_t i = get_global_id(0);
    if (i >= outputs) return;
    const int oy = ROW(i, OH * OW, OW), ox = COLUMN(i, OW);
    global const float *from = x + BEGIN(i, OH * OW, H * W);
    float sum = 0.0f;
    for (int iy = BEGIN_Y(oy); iy < END_Y(oy); iy++)
        for (int ix = BEGIN_X(ox); ix < END_X(ox); ix++) sum += from[(iy * W + ix) * CHANNELS];
    y[i] = sum / (float)DIVISOR(oy, ox);
}

kernel void average_pool_gradient(global const float *dy, ADD_PARAMETER(float) global float *dx, ulong pixels)
{
    const size_t i = get_global_id(0);
    if (i >= pixels) return;
    const size_t from = BEGIN(i, H * W, OH * OW);
    const int iy = ROW(i, H * W, W), ix = COLUMN(i, W);
    float sum = 0.0f;
    for (int oy = FIRST_Y(iy); oy <= LAST_Y(iy); oy++)
        for (int ox = FIRST_X(ix); ox <= LAST_X(ix); ox++)
            sum += dy[from + oy * OW * CHANNELS + ox * CHANNELS] / (float)DIVISOR(oy, ox);
    dx[i] = sum PLUS_ADDED(i);
}

/* The mean of a whole plane: a group of GROUP work-items for each plane. OH = OW = 1; the sizes' order of sums is fixed. */
#ifdef GROUP
#include "group.h"
kernel void global_average_pool(global const float *x, global float *y)
{
    local float scratch[GROUP];
    const int item = get_local_id(0);
    global const float *from = x + (size_t)get_group_id(0) * H * W;
    float sum = 0.0f;
    for (int i = item; i < H * W; i += GROUP) sum += from[i];
    sum = group_sum(sum, scratch);
    if (item == 0) y[get_group_id(0)] = sum / (float)(H * W);
}
#endif
