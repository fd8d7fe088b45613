/* conv2d with one input channel for each group, on GPU-class devices, plain layout. MULTIPLIER output channels belong
 * to each of the C channels: k = c MULTIPLIER + j. Pixel p of y reads pixel q(p, tap) of x.
 *
 *   forward          y[n,k,p]   = bias[k] + sum over taps  w[k,tap] x[n, k / MULTIPLIER, q(p, tap)]
 *   data_gradient    dx[n,c,q]  = sum over j, taps  w[k,tap] dy[n,k,p(q, tap)]
 *                    One work-item for each result, (planes, pixels of a plane) in groups of (1, some): neighbours
 *                    read neighbours, and the cache serves what taps share. Planes come first: they may be more than
 *                    the 65535 groups that some devices take in a second dimension.
 *   weight_gradient  dw[k,tap]  = sum over n, p  dy[n,k,p] x[n,c,q(p, tap)]
 *                    Work-groups (K, splits) of GROUP work-items (a power of two): each work-item sums its pixels of a
 *                    split for all taps at once, then the group by halves; gemm_finish.cl adds up the splits.
 *
 * Launched by layers/conv2d_depthwise_gpu.c. R, S and the attributes are constants of the program: the loops over taps
 * unroll. BIAS, ADD, ACTIVATE: see epilogue.h. */
#include "epilogue.h"

#define UNROLL _Pragma("unroll")

kernel void forward(global const float *restrict x, global const float *restrict weights,
    global const float *restrict bias, global const float *add, global float *y, int K, int H, int W, int OH, int OW)
{
    const int plane = get_global_id(0), pixel = get_global_id(1), k = plane % K;
    if (pixel >= OH * OW) return;
    const int top = pixel / OW * STRIDE_H - PADDING_H, left = pixel % OW * STRIDE_W - PADDING_W;
    global const float *from = x + (long)(plane / MULTIPLIER) * H * W;
    global const float *w = weights + k * R * S;
    const long at = (long)plane * OH * OW + pixel;
    float sum = 0.0f;
    UNROLL for (int r = 0; r < R; r++)
    {
        const int h = top + r * DILATION_H;
        UNROLL for (int s = 0; s < S; s++)
        {
            const int column = left + s * DILATION_W;
            if (h >= 0 && h < H && column >= 0 && column < W) sum += from[h * W + column] * w[r * S + s];
        }
    }
    if (BIAS) sum += bias[k];
    if (ADD) sum += add[at];
    y[at] = ACTIVATION(sum);
}

kernel void data_gradient(global const float *restrict dy, global const float *restrict weights,
    global const float *add, global float *dx, int C, int H, int W, int OH, int OW)
{
    const int plane = get_global_id(0), pixel = get_global_id(1), c = plane % C;
    if (pixel >= H * W) return;
    const int h = pixel / W + PADDING_H, column = pixel % W + PADDING_W;
    const long at = (long)plane * H * W + pixel;
    float sum = 0.0f;
    for (int j = 0; j < MULTIPLIER; j++) {
        global const float *from = dy + ((long)plane * MULTIPLIER + j) * OH * OW;
        global const float *w = weights + (c * MULTIPLIER + j) * R * S;
        UNROLL for (int r = 0; r < R; r++)
        {
            const int from_h = h - r * DILATION_H, oh = from_h / STRIDE_H;
            const bool row = from_h >= 0 && from_h % STRIDE_H == 0 && oh < OH;
            UNROLL for (int s = 0; s < S; s++)
            {
                const int from_w = column - s * DILATION_W, ow = from_w / STRIDE_W;
                if (row && from_w >= 0 && from_w % STRIDE_W == 0 && ow < OW) sum += from[oh * OW + ow] * w[r * S + s];
            }
        }
    }
    if (ADD) sum += add[at];
    dx[at] = sum;
}

__attribute__((reqd_work_group_size(GROUP, 1, 1))) kernel void weight_gradient(global const float *restrict x,
    global const float *restrict dy, global const float *add, global float *dw, int N, int K, int H, int W, int OH,
    int OW, int splits, int pixels_of_split)
{
    local float parts[GROUP];
    const int item = get_local_id(0), k = get_group_id(0), split = get_group_id(1), grid = OH * OW;
    const int end = min(N * grid, (split + 1) * pixels_of_split);
    float sums[R * S];
    UNROLL for (int tap = 0; tap < R * S; tap++) sums[tap] = 0.0f;
    for (int q = split * pixels_of_split + item; q < end; q += GROUP) {
        const int n = q / grid, pixel = q % grid;
        const long plane = (long)n * K + k;
        const float gradient = dy[plane * grid + pixel];
        global const float *from = x + plane / MULTIPLIER * H * W;
        const int top = pixel / OW * STRIDE_H - PADDING_H, left = pixel % OW * STRIDE_W - PADDING_W;
        UNROLL for (int r = 0; r < R; r++)
        {
            const int h = top + r * DILATION_H;
            UNROLL for (int s = 0; s < S; s++)
            {
                const int column = left + s * DILATION_W;
                if (h >= 0 && h < H && column >= 0 && column < W) sums[r * S + s] += gradient * from[h * W + column];
            }
        }
    }
    UNROLL for (int tap = 0; tap < R * S; tap++)
    {
        parts[item] = sums[tap];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int width = GROUP / 2; width > 0; width /= 2) {
            if (item < width) parts[item] += parts[item + width];
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        if (item == 0) {
            float value = parts[0];
#if ADD
            if (splits == 1) value += add[k * R * S + tap];
#endif
            dw[((long)split * K + k) * R * S + tap] = value;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
