/* conv2d for every device, kernel, stride, padding, dilation and number of groups: plain layout, one work-item for each
 * output element, sums in one fixed order; those of a weight gradient carry their rounding errors along. It is the last in every list: its virtue is that it always works.
 *
 *   forward          y[n,k,p]     = bias[k] + sum c,r,s  w[k,c,r,s] x[n, g C/G + c, q]
 *   data_gradient    dx[n,c,q]    = sum k,r,s  w[k,c,r,s] dy[n,k,p]
 *   weight_gradient  dw[k,c,r,s]  = sum n,p    dy[n,k,p] x[n, g C/G + c, q]
 *
 * where p = (oh, ow) and q = p stride - padding + (r, s) dilation; g is the group of k.
 * x [N][C][H][W], w [K][C/G][R][S], y [N][K][OH][OW]. Launched by layers/conv2d/conv2d_plain.c with one
 * dimension, at least as many work-items as the output has elements. BIAS, ADD, ACTIVATE: see epilogue.h. */
#include "parameters.h"
#include "arguments/conv2d_plain.h"
#include "epilogue.h"
#include "sum.h"

kernel void forward(PLAIN_FORWARD_ARGUMENTS(PARAMETER) PLAIN_SIZES(PARAMETER))
{
    long i = get_global_id(0);
    if (i >= count) return;
    int ow = i % OW, oh = i / OW % OH, k = i / ((long)OW * OH) % K;
    long n = i / ((long)OW * OH * K);
    int top = oh * stride_h - padding_h, left = ow * stride_w - padding_w;
    global const float *image = x + (n * C + k / KG * CG) * H * W;
    global const float *kernel_at = weight + (long)k * CG * R * S;
    float sum = 0.0f;
    for (int c = 0; c < CG; c++)
        for (int r = 0; r < R; r++) {
            int h = top + r * dilation_h;
            if (h < 0 || h >= H) continue;
            for (int s = 0; s < S; s++) {
                int w = left + s * dilation_w;
                if (w >= 0 && w < W) sum += image[((long)c * H + h) * W + w] * kernel_at[((long)c * R + r) * S + s];
            }
        }
    if (BIAS) sum += bias[k];
    if (ADD) sum += add[i];
    y[i] = ACTIVATION(sum);
}

kernel void data_gradient(PLAIN_DATA_GRADIENT_ARGUMENTS(PARAMETER) PLAIN_SIZES(PARAMETER))
{
    long i = get_global_id(0);
    if (i >= count) return;
    int w = i % W, h = i / W % H, c = i / ((long)W * H) % C;
    long n = i / ((long)W * H * C);
    int group = c / CG;
    float sum = 0.0f;
    for (int r = 0; r < R; r++) {
        int from_top = h + padding_h - r * dilation_h, oh = from_top / stride_h;
        if (from_top < 0 || from_top % stride_h != 0 || oh >= OH) continue;
        for (int s = 0; s < S; s++) {
            int from_left = w + padding_w - s * dilation_w, ow = from_left / stride_w;
            if (from_left < 0 || from_left % stride_w != 0 || ow >= OW) continue;
            for (int k = group * KG; k < (group + 1) * KG; k++)
                sum += dy[((n * K + k) * OH + oh) * OW + ow] * weight[(((long)k * CG + c % CG) * R + r) * S + s];
        }
    }
    if (ADD) sum += add[i];
    dx[i] = sum;
}

kernel void weight_gradient(PLAIN_WEIGHT_GRADIENT_ARGUMENTS(PARAMETER) PLAIN_SIZES(PARAMETER) PLAIN_SAMPLES(PARAMETER))
{
    long i = get_global_id(0);
    if (i >= count) return;
    int s = i % S, r = i / S % R, c = i / ((long)S * R) % CG;
    int k = i / ((long)S * R * CG);
    float sum = 0.0f, chain = 0.0f, error = 0.0f;
    int terms = 0;
    for (int n = 0; n < N; n++) {
        global const float *image = x + ((long)n * C + k / KG * CG + c) * H * W;
        global const float *gradient = dy + ((long)n * K + k) * OH * OW;
        for (int oh = 0; oh < OH; oh++) {
            int h = oh * stride_h - padding_h + r * dilation_h;
            if (h < 0 || h >= H) continue;
            for (int ow = 0; ow < OW; ow++) {
                int w = ow * stride_w - padding_w + s * dilation_w;
                if (w >= 0 && w < W) chain += gradient[(long)oh * OW + ow] * image[(long)h * W + w];
                if (++terms % SUM_BLOCK) continue;
                SUM_ADD(float, sum, error, chain);
                chain = 0.0f;
            }
        }
    }
    SUM_ADD(float, sum, error, chain);
    if (ADD) sum += add[i];
    dw[i] = sum;
}
