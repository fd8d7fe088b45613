/* conv2d with one input channel for each group, on GPU-class devices, plain layout. MULTIPLIER output channels belong
 * to each of the C channels: k = c MULTIPLIER + j. Pixel p of y reads pixel q(p, tap) of x.
 *
 *   forward          y[n,k,p]   = bias[k] + sum over taps  w[k,tap] x[n, k / MULTIPLIER, q(p, tap)]
 *   data_gradient    dx[n,c,q]  = sum over j, taps  w[k,tap] dy[n,k,p(q, tap)]
 *                    A work-item makes results of neighbouring rows: forward ROWS in one column, data_gradient those of
 *                    ROWS_DX rows and STRIDE_W columns, of which each has the same taps in every work-item. It reads
 *                    what they share once; neighbours read neighbours. `items` in all, planes are the slowest.
 *   weight_gradient  dw[k,tap]  = sum over n, p  dy[n,k,p] x[n,c,q(p, tap)]
 *                    Work-groups (K, splits) of GROUP work-items (a power of two): each work-item sums its pixels of a
 *                    split for all taps at once, then the group by halves; gemm_finish.cl adds up the splits.
 *
 * Launched by layers/conv2d/conv2d_depthwise_gpu.c. R, S and the attributes are constants of the program: the loops over taps
 * unroll. BIAS, ADD, ACTIVATE: see epilogue.h. */
#include "parameters.h"
#include "arguments/conv2d_depthwise_gpu.h"
#include "epilogue.h"
#include "group.h"
#include "vector.h"

#define WORK_GROUP __attribute__((reqd_work_group_size(GROUP, 1, 1)))

/* Reads a pixel of an image of H x W; zero outside. Something is loaded in any case and without a branch, so that no
 * load waits for another. */
INLINE float pixel_of(global const float *image, int h, int column, int H, int W)
{
    const float value = image[clamp(h, 0, H - 1) * W + clamp(column, 0, W - 1)];
    const int inside = ((uint)h < (uint)H) & ((uint)column < (uint)W);
    return inside ? value : 0.0f;
}

/* Rows of x that ROWS results in one column read. */
#define SPAN ((ROWS - 1) * STRIDE_H + (R - 1) * DILATION_H + 1)

/* The column and the first of the rows of result number `at`, and the plane. */
#define POSITION(at, columns, rows, each_column, each_row)                                                             \
    const int across = ((columns) + each_column - 1) / each_column, down = ((rows) + each_row - 1) / each_row;         \
    const INDEX strip = (at) / across;                                                                                 \
    const int column = (int)((at) % across), row = (int)(strip % down), plane = (int)(strip / down);

WORK_GROUP kernel void forward(FORWARD_ARGUMENTS(PARAMETER))
{
    const INDEX item = get_global_id(0);
    if (item >= items) return;
    POSITION(item, OW, OH, 1, ROWS)
    const int k = plane % K, oh = row * ROWS, top = oh * STRIDE_H - PADDING_H, left = column * STRIDE_W - PADDING_W;
    global const float *from = x + (long)(plane / MULTIPLIER) * H * W;
    global const float *w = weights + k * R * S;
    float sums[ROWS];
    UNROLL for (int j = 0; j < ROWS; j++) sums[j] = 0.0f;
    UNROLL for (int h = 0; h < SPAN; h++)
    {
        float pixels[S];
        UNROLL for (int s = 0; s < S; s++) pixels[s] = pixel_of(from, top + h, left + s * DILATION_W, H, W);
        UNROLL for (int j = 0; j < ROWS; j++)
            UNROLL for (int r = 0; r < R; r++)
                if (j * STRIDE_H + r * DILATION_H == h)
                    UNROLL for (int s = 0; s < S; s++) sums[j] += pixels[s] * w[r * S + s];
    }
    UNROLL for (int j = 0; j < ROWS; j++)
    {
        const long at = ((long)plane * OH + oh + j) * OW + column;
        if (oh + j < OH) {
            float sum = sums[j];
#if BIAS
            sum += bias[k];
#endif
#if ADD
            sum += add[at];
#endif
            y[at] = ACTIVATION(sum);
        }
    }
}

/* Row (column) j of a work-item's results reads tap t where OFFSET is a multiple of the stride. It reads source row
 * OFFSET / stride, counted from TAPS * dilation rows before the work-item's own. */
#define OFFSET(j, t, padding, dilation, stride, TAPS) ((j) + padding - (t) * dilation + TAPS * dilation * stride)
#define OFFSET_H(j, r) OFFSET(j, r, PADDING_H, DILATION_H, STRIDE_H, R)
#define OFFSET_Q(i, s) OFFSET(i, s, PADDING_W, DILATION_W, STRIDE_W, S)
/* The first and the last of the source rows. */
#define FIRST_H (OFFSET_H(0, R - 1) / STRIDE_H)
#define LAST_H (OFFSET_H(ROWS_DX - 1, 0) / STRIDE_H)

WORK_GROUP kernel void data_gradient(DATA_GRADIENT_ARGUMENTS(PARAMETER))
{
    const INDEX item = get_global_id(0);
    if (item >= items) return;
    POSITION(item, W, H, STRIDE_W, ROWS_DX)
    const int c = plane % C, top = row * (ROWS_DX / STRIDE_H) - R * DILATION_H, left = column - S * DILATION_W;
    float sums[ROWS_DX][STRIDE_W];
    UNROLL for (int j = 0; j < ROWS_DX; j++)
        UNROLL for (int i = 0; i < STRIDE_W; i++) sums[j][i] = 0.0f;
    for (int m = 0; m < MULTIPLIER; m++) {
        global const float *from = dy + ((long)plane * MULTIPLIER + m) * OH * OW;
        global const float *w = weights + (c * MULTIPLIER + m) * R * S;
        UNROLL for (int h = LAST_H; h >= FIRST_H; h--)
        {
            float pixels[S][STRIDE_W];
            UNROLL for (int s = 0; s < S; s++)
                UNROLL for (int i = 0; i < STRIDE_W; i++)
                    if (OFFSET_Q(i, s) % STRIDE_W == 0)
                        pixels[s][i] = pixel_of(from, top + h, left + OFFSET_Q(i, s) / STRIDE_W, OH, OW);
            UNROLL for (int j = 0; j < ROWS_DX; j++)
                UNROLL for (int r = 0; r < R; r++)
                    if (OFFSET_H(j, r) == h * STRIDE_H)
                        UNROLL for (int s = 0; s < S; s++)
                            UNROLL for (int i = 0; i < STRIDE_W; i++)
                                if (OFFSET_Q(i, s) % STRIDE_W == 0)
                                    sums[j][i] += pixels[s][i] * w[r * S + s];
        }
    }
    UNROLL for (int j = 0; j < ROWS_DX; j++)
    {
        UNROLL for (int i = 0; i < STRIDE_W; i++)
        {
            const int h = row * ROWS_DX + j, q = column * STRIDE_W + i;
            const long at = ((long)plane * H + h) * W + q;
            if (h < H && q < W) {
#if ADD
                sums[j][i] += add[at];
#endif
                dx[at] = sums[j][i];
            }
        }
    }
}

/* A work-item takes ROWS pixels in one column of dy at a time, of `tiles` of a channel in all. */
WORK_GROUP kernel void weight_gradient(WEIGHT_GRADIENT_ARGUMENTS(PARAMETER))
{
    local float scratch[GROUP];
    const int k = get_group_id(0), split = get_group_id(1), end = min(tiles, (split + 1) * tiles_of_split);
    float sums[R * S];
    UNROLL for (int tap = 0; tap < R * S; tap++) sums[tap] = 0.0f;
    for (uint tile = split * tiles_of_split + (int)get_local_id(0); tile < (uint)end; tile += GROUP) {
        POSITION(tile, OW, OH, 1, ROWS)
        const int oh = row * ROWS, top = oh * STRIDE_H - PADDING_H, left = column * STRIDE_W - PADDING_W;
        const long image = (long)plane * K + k;
        global const float *gradients = dy + image * OH * OW, *from = x + image / MULTIPLIER * H * W;
        float gradient[ROWS];
        UNROLL for (int j = 0; j < ROWS; j++) gradient[j] = pixel_of(gradients, oh + j, column, OH, OW);
        UNROLL for (int h = 0; h < SPAN; h++)
        {
            float pixels[S];
            UNROLL for (int s = 0; s < S; s++) pixels[s] = pixel_of(from, top + h, left + s * DILATION_W, H, W);
            UNROLL for (int j = 0; j < ROWS; j++)
                UNROLL for (int r = 0; r < R; r++)
                    if (j * STRIDE_H + r * DILATION_H == h)
                        UNROLL for (int s = 0; s < S; s++) sums[r * S + s] += gradient[j] * pixels[s];
        }
    }
    UNROLL for (int tap = 0; tap < R * S; tap++) sums[tap] = group_sum(sums[tap], scratch);
    if (get_local_id(0) != 0) return;
    UNROLL for (int tap = 0; tap < R * S; tap++)
    {
        float value = sums[tap];
#if ADD
        if (splits == 1) value += add[k * R * S + tap];
#endif
        dw[((long)split * K + k) * R * S + tap] = value;
    }
}
