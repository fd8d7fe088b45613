/* Convolution of a plain image of few channels with stride 2 and a kernel 5 to 8 wide (the first layer of residual
 * networks, 7x7), on a CPU-class device, by a one-dimensional Winograd transform along the rows.
 *
 * The columns of the image fall into two planes by parity, and so do the taps: along a row the convolution is the sum
 * of two convolutions with stride 1 and 4 taps (tap s = 2u + p is tap u of plane p; the eighth may be zero). F(4, 4)
 * (Winograd, "Arithmetic complexity of computations", 1980, V; winograd_transforms.h) makes 4 results of it
 * with 7 products instead of 16; the products of all channels, rows and planes are summed before the transform back:
 *
 *   y[k, row, 4t .. 4t+3] = A^T sum over c,r,p of (G w[k,c,r,p]) * (B^T x[c, row*stride - padding + r, p, 4t .. 4t+6])
 *
 *   x        plain [N][C][H][W]
 *   y, dy    blocked [N][ceil(K/V)][OH][OW][V]; `add` like y, which may be it
 *   packed   bias [panels][NV][V], then G w [panels][7][C][R][2][NV][V]: winograd_rows_weights makes it
 *   part     in the workspace from `offset` on: [splits][ceil(K/V)][C][R][S][V], which conv2d_sum adds
 *   scratch  B^T x [C][source rows][2][7][TW], then TW * 8 + V floats for one row; then sums [7][NV * TW + 1]; of the
 *            weight gradient A dy [7][NV][rows_max * tiles] and sums [panels of a task][7][C][2R][NV]
 *
 * A chunk is up to rows_max rows of results of one image. Launched by conv2d_winograd_rows.c: winograd_rows_weights
 * with (panels, C) tasks, winograd_rows with (chunks), winograd_rows_gradient with (splits, ranges of panels).
 *
 * Macros: R, S, STRIDE_H, TW (tiles of a row, rounded up to MT and then, after one more, to V), NV, MT (tiles in
 * registers), GT (rows of the kernel, of both planes, in registers of the weight gradient), HAS_BIAS,
 * SCRATCH_GLOBAL, STATISTICS, epilogue. */
#include "parameters.h"
#include "arguments/conv2d_winograd_rows_cpu.h"
#include "conv2d_chain.h"
#include "conv2d_cpu_kernel.h"
#define NUMBER VF
#define LINE 4
#define SIDE 7
#include "winograd_transforms.h"
typedef VF_unaligned vec;

/* Transforms one row of the image, or zeros where it is not inside, into [2][7][TW]; `line` is scratch for it. */
INLINE void transform_row(const global float *restrict from, bool inside, int width, int padding,
    SCRATCH float *restrict line, SCRATCH float *restrict out)
{
    /* The row with its zeros, V tiles (8 * V columns) at a time, cut into its columns modulo 8. */
    LOOP for (int t = 0; t < TW; t += V)
    {
        VF a[8];
        LOOP for (int i = 0; i < 8; i++)
        {
            const int column = (t * 8 + i * V) - padding;
            if (inside && column >= 0 && column + V <= width)
                a[i] = *(const global vec *)(from + column);
            else {
                float lanes[V];
                LOOP for (int l = 0; l < V; l++)
                    lanes[l] = inside && column + l >= 0 && column + l < width ? from[column + l] : 0.0f;
                a[i] = *(vec *)lanes;
            }
        }
        UNROLL for (int round = 0; round < 3; round++)
        {
            VF b[8];
            UNROLL for (int i = 0; i < 4; i++)
            {
                b[i].lo = a[2 * i].even;
                b[i].hi = a[2 * i + 1].even;
                b[i + 4].lo = a[2 * i].odd;
                b[i + 4].hi = a[2 * i + 1].odd;
            }
            UNROLL for (int i = 0; i < 8; i++) a[i] = b[i];
        }
        UNROLL for (int i = 0; i < 8; i++) *(SCRATCH vec *)(line + i * TW + t) = a[i];
    }
    /* Pixels 4 to 6 of a tile are pixels 0 to 2 of the next; the last tile reads what lies there and is not used. */
    LOOP for (int t = 0; t < TW; t += V)
        UNROLL for (int p = 0; p < 2; p++)
        {
            VF d[7], r[7];
            UNROLL for (int i = 0; i < 7; i++) d[i] = *(const SCRATCH vec *)(line + (2 * (i % 4) + p) * TW + t + i / 4);
            INPUT_1D(d, r);
            UNROLL for (int i = 0; i < 7; i++) *(SCRATCH vec *)(out + (p * 7 + i) * TW + t) = r[i];
        }
}

/* Transforms the source rows that `count` rows of results from `row` on need, of all channels. */
INLINE void transform_rows(const global float *restrict x, int C, int height, int width, int padding_h, int padding_w,
    int image, int row, int count, int source_rows, SCRATCH float *restrict line, SCRATCH float *restrict out)
{
    for (int c = 0; c < C; c++)
        for (int i = 0; i < (count - 1) * STRIDE_H + R; i++) {
            const int y = row * STRIDE_H - padding_h + i;
            const bool inside = y >= 0 && y < height;
            transform_row(x + ((size_t)(image * C + c) * height + (inside ? y : 0)) * width, inside, width, padding_w,
                line, out + (c * source_rows + i) * 14 * TW);
        }
}

kernel TASK void winograd_rows_weights(
    const global float *restrict w, const global float *restrict bias, global float *restrict packed, int K)
{
    const int panel = get_group_id(0), panels = get_num_groups(0), c = get_group_id(1), C = get_num_groups(1);
    if (c == 0)
        LOOP for (int i = panel * NV * V; i < (panel + 1) * NV * V; i++) packed[i] = HAS_BIAS && i < K ? bias[i] : 0.0f;
    global vec *u = (global vec *)packed + panels * NV + ((size_t)panel * 7 * C + c) * 2 * R * NV;
    LOOP for (int rp = 0; rp < 2 * R; rp++)
        LOOP for (int k = 0; k < NV; k++)
        {
            VF g[4], t[7];
            LOOP for (int i = 0; i < 4; i++)
            {
                const int s = 2 * i + rp % 2;
                float lanes[V];
                LOOP for (int l = 0; l < V; l++)
                {
                    const int output = (panel * NV + k) * V + l;
                    lanes[l] = s < S && output < K ? w[(((size_t)output * C + c) * R + rp / 2) * S + s] : 0.0f;
                }
                g[i] = *(vec *)lanes;
            }
            WEIGHTS_1D(g, t);
            UNROLL for (int i = 0; i < 7; i++) u[(i * C * 2 * R + rp) * NV + k] = t[i];
        }
}

/* m[NV, `apart` vectors apart][MT tiles] = the products of one point, summed over channels, rows and planes: x is at
 * the first tile and row, `channel` floats from channel to channel. */
INLINE void multiply(SCRATCH vec *restrict m, int apart, SCRATCH const float *restrict x, int channel, int C,
    const global vec *restrict u)
{
    VF acc[MT][NV];
    UNROLL for (int i = 0; i < MT; i++) UNROLL for (int k = 0; k < NV; k++) acc[i][k] = (VF)(0.0f);
    for (int c = 0; c < C; c++, x += channel) {
        SCRATCH const float *p = x;
        _Pragma("unroll 1") for (int rp = 0; rp < 2 * R; rp++, p += 7 * TW, u += NV)
        {
            VF b[NV];
            UNROLL for (int k = 0; k < NV; k++) b[k] = u[k];
            UNROLL for (int i = 0; i < MT; i++)
            {
                const VF f = (VF)(p[i]);
                UNROLL for (int k = 0; k < NV; k++) acc[i][k] = fma(f, b[k], acc[i][k]);
                IN_ORDER;
            }
        }
    }
    UNROLL for (int i = 0; i < MT; i++) UNROLL for (int k = 0; k < NV; k++) m[k * apart + i] = acc[i][k];
}

/* Stores one row of results of a block of channels from the sums m[7, `step` vectors apart][tiles]. */
INLINE void put_row(const SCRATCH vec *restrict m, int step, VF bias, const global float *add, global float *y,
    size_t at, int tiles, int width, int stream, struct tally *all)
{
    for (int t = 0; t < tiles; t++, at += 4 * V) {
        VF sums[7], r[4];
        UNROLL for (int i = 0; i < 7; i++) sums[i] = m[i * step + t];
        RESULTS_1D(sums, r);
        UNROLL for (int i = 0; i < 4; i++) r[i] += bias;
        struct tally tile = tally_tile(all, r[0]);
        UNROLL for (int i = 0; i < 4; i++) if (4 * t + i < width) tally_take(&tile, r[i], add, at);
        tally_join(all, &tile);
        UNROLL for (int i = 0; i < 4; i++) if (4 * t + i < width)
        {
            const VF v = FINISH(r[i], add, at + i * V);
            if (stream) STREAM_AS(OUT0_TYPE, v, 0, y + at + i * V);
            else
                STORE_AS(OUT0_TYPE, v, 0, y + at + i * V);
        }
    }
}

OUTLINE void winograd_rows_body(
    WINOGRAD_ROWS_ARGUMENTS(PARAMETER) STATISTICS_PARAMETER, int first_chunk, int step_chunks)
{
    SCRATCH float *s = scratch;
    const int source_rows = (rows_max - 1) * STRIDE_H + R, panels = (KB + NV - 1) / NV;
    const int channel = source_rows * 14 * TW, step = NV * TW + 1;
    SCRATCH vec *m = (SCRATCH vec *)(s + C * channel + 8 * TW + V); /* [7][NV][TW] */
    for (int chunk = first_chunk; chunk < chunks; chunk += step_chunks) {
        const int image = chunk / chunks_image, row = (chunk - image * chunks_image) * rows_max;
        const int count = min(rows_max, result_height - row);
        transform_rows(x, C, height, width, padding_h, padding_w, image, row, count, source_rows, s + C * channel, s);
        for (int panel = 0; panel < panels; panel++) {
            const global vec *u = (const global vec *)packed + panels * NV + (size_t)panel * 7 * C * 2 * R * NV;
            struct tally all[NV];
            UNROLL for (int k = 0; k < NV; k++) all[k] = TALLY_OF(panel * NV + k);
            for (int j = 0; j < count; j++) {
                for (int i = 0; i < 7; i++)
                    for (int t = 0; t < tiles; t += MT) /* tiles past the last are multiplied and not stored */
                        multiply(m + i * step + t, TW, s + (j * STRIDE_H * 14 + i) * TW + t, channel, C,
                            u + i * C * 2 * R * NV);
                for (int k = 0; k < NV && panel * NV + k < KB; k++) {
                    const int block = panel * NV + k;
                    put_row(m + k * TW, step, VLOAD(block, packed), add, y,
                        ((size_t)(image * KB + block) * result_height + row + j) * result_width * V, tiles,
                        result_width, stream, &all[k]);
                }
            }
            for (int k = 0; k < NV && panel * NV + k < KB; k++) TALLY_STORE(&all[k], chunk, KB, panel * NV + k);
        }
    }
}

kernel TASK void winograd_rows(WINOGRAD_ROWS_ARGUMENTS(PARAMETER) STATISTICS_PARAMETER)
{
    winograd_rows_body(WINOGRAD_ROWS_ARGUMENTS(NAME) STATISTICS_ARGUMENT, get_group_id(0), get_num_groups(0));
}

/* A dy of `count` rows for NV blocks from `block` on; blocks past the last repeat it. d: [7][NV][count * tiles] */
INLINE void transform_gradient(const global float *restrict dy, int image, int KB, int block, int result_height,
    int result_width, int row, int count, int tiles, SCRATCH vec *restrict d)
{
    const int length = count * tiles;
    for (int k = 0; k < NV; k++)
        for (int j = 0; j < count; j++) {
            const global vec *from = (const global vec *)dy +
                ((size_t)(image * KB + min(block + k, KB - 1)) * result_height + row + j) * result_width;
            for (int t = 0; t < tiles; t++) {
                VF p[4], r[7];
                UNROLL for (int i = 0; i < 4; i++) p[i] = 4 * t + i < result_width ? from[4 * t + i] : (VF)(0.0f);
                RESULT_GRADIENTS_1D(p, r);
                UNROLL for (int i = 0; i < 7; i++) d[(i * NV + k) * length + j * tiles + t] = r[i];
            }
        }
}

/* m[rows][NV] (+)= a chain of multiply-adds, which begins anew. */
INLINE void end_chain(VF acc[GT][NV], SCRATCH vec *restrict m, int rows, bool add)
{
    UNROLL for (int g = 0; g < GT; g++) UNROLL for (int k = 0; k < NV; k++)
    {
        if (g < rows) m[g * NV + k] = add ? m[g * NV + k] + acc[g][k] : acc[g][k];
        acc[g][k] = 0.0f;
    }
}

/* m[GT][NV] (+)= the products of GT transformed rows of the kernel's window with the gradients, over `count` rows. */
INLINE void multiply_gradient(SCRATCH vec *restrict m, int rows, SCRATCH const float *restrict x,
    SCRATCH const vec *restrict d, int count, int tiles, bool add)
{
    VF acc[GT][NV];
    UNROLL for (int g = 0; g < GT; g++) UNROLL for (int k = 0; k < NV; k++) acc[g][k] = 0.0f;
    const int length = count * tiles;
    int chain = 0;
    for (int j = 0; j < count; j++, x += STRIDE_H * 14 * TW)
        for (int from = 0; from < tiles; from += CONV2D_CHAIN) {
            const int stop = min(from + (int)CONV2D_CHAIN, tiles);
            if (chain + stop - from > CONV2D_CHAIN) {
                end_chain(acc, m, rows, add);
                add = true;
                chain = 0;
            }
            chain += stop - from;
            for (int t = from; t < stop; t++, d++) {
                VF b[NV];
                UNROLL for (int k = 0; k < NV; k++) b[k] = d[k * length];
                UNROLL for (int g = 0; g < GT; g++)
                {
                    const VF f = (VF)(x[g * 7 * TW + t]);
                    UNROLL for (int k = 0; k < NV; k++) acc[g][k] = fma(f, b[k], acc[g][k]);
                }
            }
        }
    end_chain(acc, m, rows, add);
}

OUTLINE void winograd_rows_gradient_body(WINOGRAD_ROWS_GRADIENT_ARGUMENTS(PARAMETER), int split, int range)
{
    SCRATCH float *s = scratch;
    const int source_rows = (rows_max - 1) * STRIDE_H + R, channel = source_rows * 14 * TW;
    SCRATCH vec *d = (SCRATCH vec *)(s + C * channel + 8 * TW + V), *m = d + 7 * NV * rows_max * tiles;
    const int begin = split * chunks_split, end = min(begin + chunks_split, chunks);
    const int panel_first = range * panels_max,
              panel_last = min(panel_first + panels_max, (KB + NV - 1) / NV);
    const int m_point = C * 2 * R * NV;
    for (int chunk = begin; chunk < end; chunk++) {
        const int image = chunk / chunks_image, row = (chunk - image * chunks_image) * rows_max;
        const int count = min(rows_max, result_height - row);
        transform_rows(x, C, height, width, padding_h, padding_w, image, row, count, source_rows, s + C * channel, s);
        for (int panel = panel_first; panel < panel_last; panel++) {
            transform_gradient(dy, image, KB, panel * NV, result_height, result_width, row, count, tiles, d);
            for (int i = 0; i < 7; i++)
                for (int c = 0; c < C; c++)
                    for (int rp = 0; rp < 2 * R; rp += GT)
                        multiply_gradient(m + ((panel - panel_first) * 7 + i) * m_point + (c * 2 * R + rp) * NV,
                            min(GT, 2 * R - rp), s + c * channel + (rp * 7 + i) * TW, d + i * NV * count * tiles, count,
                            tiles, chunk > begin);
        }
    }
    for (int panel = panel_first; panel < panel_last; panel++)
        for (int k = 0; k < NV && panel * NV + k < KB; k++)
            for (int row = 0; row < C * R; row++) {
                global vec *part =
                    (global vec *)(workspace + offset) + (((size_t)split * KB + panel * NV + k) * C * R + row) * S;
                UNROLL for (int p = 0; p < 2; p++)
                {
                    VF sums[7], g[4];
                    UNROLL for (int i = 0; i < 7; i++) sums[i] =
                        m[((panel - panel_first) * 7 + i) * m_point + (row * 2 + p) * NV + k];
                    WEIGHT_GRADIENTS_1D(sums, g);
                    UNROLL for (int i = 0; i < 4; i++) if (2 * i + p < S) part[2 * i + p] = g[i];
                }
            }
}

kernel TASK void winograd_rows_gradient(WINOGRAD_ROWS_GRADIENT_ARGUMENTS(PARAMETER))
{
    winograd_rows_gradient_body(WINOGRAD_ROWS_GRADIENT_ARGUMENTS(NAME), get_group_id(0), get_group_id(1));
}
