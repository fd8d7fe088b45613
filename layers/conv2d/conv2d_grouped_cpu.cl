/* conv2d with several groups of channels, on CPU-class devices, plain layout: for groups that do not fill blocks of
 * channels or halves of them, so vectors run along rows of pixels here. Any kernel, stride, padding and dilation.
 *
 *   image            forward:     y[n,k,p]  = bias[k] + sum c, tap  w[k,c,tap] x[n, c of k's group, q(p, tap)]
 *                    GRADIENT 1:  dx[n,c,q] = sum k of c's group, tap  w[k,c,tap] dy[n,k,p(q, tap)]
 *                    A task makes `rows` rows of KB neighbouring channels of a group, V pixels at a time, in
 *                    registers. Tasks (ceil(height / rows), groups * ceil(channels / KB), N).
 *   weight_gradient  dw[k,c,tap]  = sum n, p  dy[n,k,p] x[n, c of k's group, q(p, tap)]
 *                    A task makes KB neighbouring k of one c, SB taps of a row of the kernel at a time; SB divides S.
 *                    Tasks (groups * ceil(K / groups / KB), C / groups).
 *
 * w [K][C / groups][R][S]. C, K: channels of one group. Launched by layers/conv2d/conv2d_grouped.c. STRIDE_H, STRIDE_W, KB,
 * SB, R, S are constants of the program; BIAS, ADD, ACTIVATE: see epilogue.h. */
#include "parameters.h"
#include "arguments/conv2d_grouped_cpu.h"
#include "conv2d_chain.h"
#include "epilogue.h"
#include "vector.h"

/* Loads the elements at, at + stride ..., V of them, of the row that begins at data[row]; zero outside 0 .. size - 1.
 * Where the row ends within the vector, its neighbours are read and masked; `total` is the size of data. */
INLINE VF window(global const float *data, long row, int at, int stride, int size, long total)
{
    const long from = row + at;
    if (stride == 1 && at >= 0 && at + V <= size) return VLOAD(0, data + from);
    if (stride == 1 && from >= 0 && from + V <= total) {
        const VI p = at + LANE_NUMBERS(VI);
        return select((VF)(0.0f), VLOAD(0, data + from), (p >= 0) & (p < size));
    }
    float lanes[V];
    UNROLL for (int i = 0; i < V; i++)
    {
        const int p = at + i * stride;
        lanes[i] = p >= 0 && p < size ? data[row + p] : 0.0f;
    }
    return *(VF_unaligned *)lanes;
}

/* Loads the elements at / stride, (at + 1) / stride ... likewise, for a gradient with a stride; zero where the
 * quotient is not a whole number. */
INLINE VF window_apart(global const float *data, long row, int at, int stride, int size, long total)
{
    if (stride == 1) return window(data, row, at, 1, size, total);
    float lanes[V];
    UNROLL for (int i = 0; i < V; i++)
    {
        const int p = at + i;
        lanes[i] = p >= 0 && p % stride == 0 && p / stride < size ? data[row + p / stride] : 0.0f;
    }
    return *(VF_unaligned *)lanes;
}

INLINE void store(VF sum, global const float *add, global float *y, int count)
{
    if (count >= V) {
        if (ADD) sum += VLOAD(0, add);
        VSTORE(ACTIVATION(sum), 0, y);
        return;
    }
    float lanes[V];
    *(VF_unaligned *)lanes = sum;
    for (int i = 0; i < count; i++) {
        float one = lanes[i];
        if (ADD) one += add[i];
        y[i] = ACTIVATION(one);
    }
}

/* source [N][groups * CS][SH][SW], result [N][groups * CR][RH][RW]. */
TASK void image(GROUPED_ARGUMENTS(PARAMETER))
{
    const int tiles = (CR + KB - 1) / KB, group = get_group_id(1) / tiles, first = get_group_id(1) % tiles * KB;
    const int end = min((int)(get_group_id(0) + 1) * rows, RH), channels = min(KB, CR - first);
    const long total = get_num_groups(2) * (long)groups * CS * SH * SW;
    const long n = get_group_id(2), from = (n * groups + group) * CS * SH * SW, to = (n * groups + group) * CR + first;
    for (int i = get_group_id(0) * rows; i < end; i++)
        for (int at = 0; at < RW; at += V) {
            VF sums[KB];
            UNROLL for (int j = 0; j < KB; j++) sums[j] = 0.0f;
            for (int c = 0; c < CS; c++)
                for (int r = 0; r < R; r++) {
#if GRADIENT
                    const int far = i + padding_h - r * dilation_h, h = far / STRIDE_H;
                    if (far < 0 || far % STRIDE_H != 0 || h >= SH) continue;
#else
                    const int h = i * STRIDE_H - padding_h + r * dilation_h;
                    if (h < 0 || h >= SH) continue;
#endif
                    const long row = from + ((long)c * SH + h) * SW;
                    for (int s = 0; s < S; s++) {
#if GRADIENT
                        const VF pixels =
                            window_apart(source, row, at + padding_w - s * dilation_w, STRIDE_W, SW, total);
#else
                        const VF pixels =
                            window(source, row, at * STRIDE_W - padding_w + s * dilation_w, STRIDE_W, SW, total);
#endif
                        UNROLL for (int j = 0; j < KB; j++)
                        {
                            const int m = group * CR + first + min(j, channels - 1);
#if GRADIENT
                            const int w = (((group * CS + c) * CR + m - group * CR) * R + r) * S + s;
#else
                            const int w = ((m * CS + c) * R + r) * S + s;
#endif
                            sums[j] += pixels * weights[w];
                        }
                    }
                }
            UNROLL for (int j = 0; j < KB; j++)
            {
                if (j >= channels) continue;
                const long place = ((to + j) * RH + i) * RW + at;
                if (BIAS) sums[j] += bias[group * CR + first + j];
                store(sums[j], add + place, result + place, RW - at);
            }
        }
}

INLINE void end_chains(VF sums[SB][KB], VF chains[SB][KB], VF errors[SB][KB])
{
    UNROLL for (int b = 0; b < SB; b++) UNROLL for (int j = 0; j < KB; j++)
    {
        SUM_ADD(VF, sums[b][j], errors[b][j], chains[b][j]);
        chains[b][j] = 0.0f;
    }
}

TASK void weight_gradient(GROUPED_WEIGHTS_ARGUMENTS(PARAMETER))
{
    const int tiles = (K + KB - 1) / KB, group = get_group_id(0) / tiles, first = get_group_id(0) % tiles * KB;
    const int c = get_group_id(1), channels = min(KB, K - first);
    const long x_total = (long)N * groups * C * H * W, dy_total = (long)N * groups * K * OH * OW;
    for (int tap = 0; tap < R * S; tap += SB) {
        const int r = tap / S, s = tap % S;
        VF sums[SB][KB], chains[SB][KB], errors[SB][KB];
        UNROLL for (int b = 0; b < SB; b++) UNROLL for (int j = 0; j < KB; j++) sums[b][j] = chains[b][j] =
            errors[b][j] = 0.0f;
        int chain = 0;
        for (int n = 0; n < N; n++)
            for (int oh = 0; oh < OH; oh++) {
                const int h = oh * STRIDE_H - padding_h + r * dilation_h;
                if (h < 0 || h >= H) continue;
                const long row = (((long)n * groups + group) * C + c) * H * W + (long)h * W;
                const long gradient = ((((long)n * groups + group) * K + first) * OH + oh) * OW;
                for (int at = 0; at < OW; at += V) {
                    VF gradients[KB];
                    UNROLL for (int j = 0; j < KB; j++) gradients[j] =
                        window(dy, gradient + (long)min(j, channels - 1) * OH * OW, at, 1, OW, dy_total);
                    UNROLL for (int b = 0; b < SB; b++)
                    {
                        const int left = at * STRIDE_W - padding_w + (s + b) * dilation_w;
                        const VF pixels = window(x, row, left, STRIDE_W, W, x_total);
                        UNROLL for (int j = 0; j < KB; j++) chains[b][j] += pixels * gradients[j];
                    }
                    if (++chain == CONV2D_CHAIN) {
                        end_chains(sums, chains, errors);
                        chain = 0;
                    }
                }
            }
        end_chains(sums, chains, errors);
        UNROLL for (int b = 0; b < SB; b++) UNROLL for (int j = 0; j < KB; j++)
        {
            if (j >= channels) continue;
            const long place = (((long)group * K + first + j) * C + c) * R * S + tap + b;
            float sum = vector_sum(sums[b][j]);
            if (ADD) sum += add[place];
            dw[place] = sum;
        }
    }
}
