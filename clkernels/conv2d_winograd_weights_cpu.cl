/* Weight gradient of an R x R convolution with stride 1 on a CPU-class device by Winograd, the exact transpose of the
 * forward algorithm: dW = G^T [ sum over tiles of (A dY A^T) * (B^T x B) ] G.
 *
 *   x, dy    blocked
 *   dw       plain, and `add` like it (dw may be add), when there is one split; else the parts go to the workspace from
 *            `offset` on: [splits][ceil(K/V)][C][R][R][V], which conv2d_sum adds and writes plain
 *   scratch  v[36][blocks of C][T + 1], d[36][blocks of K][T + 1], m[36][channels * blocks of K + 1]
 *
 * A task sums the 36 products of a block of channels over a share of the tiles, T at a time; in registers are CT
 * channels x NV vectors. Launched by conv2d_winograd.c with channel blocks x output blocks x splits tasks, or fewer,
 * which loop. */
#define TILES SCRATCH
#include "winograd.h"

/* An M x M tile of output gradients at (y, x) into 36 vectors `step` apart; outside the plane they are zero. */
INLINE void gradient_tile(
    const global vec *restrict plane, int height, int width, int y, int x, SCRATCH vec *restrict out, int step)
{
    VF t[M][6];
    const bool inside = y + M <= height && x + M <= width;
    LOOP for (int i = 0; i < M; i++)
    {
        const global vec *p = plane + (y + i) * width + x;
        VF d[M];
        if (inside) {
            UNROLL for (int j = 0; j < M; j++) PREFETCH(p + 2 * M + j);
            UNROLL for (int j = 0; j < M; j++) d[j] = p[j];
        } else {
            UNROLL for (int j = 0; j < M; j++) d[j] = y + i < height && x + j < width ? p[j] : (VF)(0.0f);
        }
        RESULT_GRADIENTS_1D(d, t[i]);
    }
    UNROLL for (int j = 0; j < 6; j++, out += step)
    {
        VF c[M], r[6];
        UNROLL for (int i = 0; i < M; i++) c[i] = t[i][j];
        RESULT_GRADIENTS_1D(c, r);
        UNROLL for (int i = 0; i < 6; i++) out[6 * i * step] = r[i];
    }
}

/* m[CT channels, ld apart][NV] (+)= v[count][CT]^T d[NV, d_block apart][count] */
INLINE void outer_product(const SCRATCH float *restrict v, const SCRATCH vec *restrict d, int d_block, int count,
    SCRATCH vec *restrict m, int ld, bool add)
{
    VF acc[CT][NV];
    UNROLL for (int i = 0; i < CT; i++) UNROLL for (int k = 0; k < NV; k++) acc[i][k] =
        add ? m[i * ld + k] : (VF)(0.0f);
    for (int t = 0; t < count; t++, v += V) {
        VF b[NV];
        UNROLL for (int k = 0; k < NV; k++) b[k] = d[k * d_block + t];
        UNROLL for (int i = 0; i < CT; i++)
        {
            const VF s = (VF)(v[i]);
            UNROLL for (int k = 0; k < NV; k++) acc[i][k] = fma(s, b[k], acc[i][k]);
        }
    }
    UNROLL for (int i = 0; i < CT; i++) UNROLL for (int k = 0; k < NV; k++) m[i * ld + k] = acc[i][k];
}

/* g[TAPS]: the gradient of one kernel for V output channels, from 36 sums `step` apart. */
INLINE void kernel_gradient(const SCRATCH vec *restrict p, int step, VF *g)
{
    VF t[6][R];
    UNROLL for (int j = 0; j < 6; j++)
    {
        VF c[6];
        UNROLL for (int i = 0; i < 6; i++) c[i] = p[(6 * i + j) * step];
        WEIGHT_GRADIENTS_1D(c, t[j]);
    }
    UNROLL for (int i = 0; i < R; i++)
    {
        VF c[6];
        UNROLL for (int j = 0; j < 6; j++) c[j] = t[j][i];
        WEIGHT_GRADIENTS_1D(c, g + R * i);
    }
}

/* V output channels x `length` numbers (TAPS of each channel), plain: at dw, rows `row` floats apart. */
INLINE void write_plain(
    const VF *g, int length, const global float *add, global float *dw, size_t at, size_t row, int rows)
{
    int e = 0;
    LOOP for (; e + V <= length; e += V)
    {
        VF r[V];
        LOOP for (int i = 0; i < V; i++) r[i] = g[e + i];
        transpose(r);
        LOOP for (int l = 0; l < rows; l++)
            VSTORE(FINISH(r[l], add, at + l * row + e), 0, dw + at + l * row + e);
    }
    LOOP for (; e < length; e++)
        LOOP for (int l = 0; l < rows; l++)
            dw[at + l * row + e] = ((const float *)(g + e))[l] + (ADD ? add[at + l * row + e] : 0.0f);
}

kernel TASK void winograd_weight_gradient(const global float *restrict x, const global float *restrict dy,
    global float *workspace, long offset, const global float *add, global float *dw, int C, int K, int height,
    int width, int result_height, int result_width, int padding_h, int padding_w, int tile_rows, int tile_columns,
    int tiles, int tiles_split, int T, int channel_blocks, int output_blocks, int splits, SCRATCH float *scratch,
    int scratch_floats)
{
    const struct tiling g = { tile_rows, tile_columns, tile_rows * tile_columns, height, width, result_height,
        result_width, padding_h, padding_w };
    const int CB = (C + V - 1) / V, KB = (K + V - 1) / V;
    const int c_tasks = (CB + channel_blocks - 1) / channel_blocks, k_tasks = (KB + output_blocks - 1) / output_blocks;
    const int block = T + 1, m_step = channel_blocks * V * output_blocks + 1;
    SCRATCH vec *v = (SCRATCH vec *)TASK_SCRATCH(scratch, scratch_floats);
    SCRATCH vec *d = v + 36 * channel_blocks * block, *m = d + 36 * output_blocks * block;
    for (int task = get_group_id(0); task < c_tasks * k_tasks * splits; task += get_num_groups(0)) {
        const int cb = task % c_tasks * channel_blocks, kb = task / c_tasks % k_tasks * output_blocks;
        const int split = task / (c_tasks * k_tasks), begin = split * tiles_split,
                  end = min(begin + tiles_split, tiles);
        const int cbs = min(channel_blocks, CB - cb), channels = min(cbs * V, C - cb * V);
        for (int first = begin; first < end; first += T) {
            const int last = min(first + T, end);
            for (int b = 0; b < cbs; b++)
                for (int t = first; t < last; t++) {
                    const struct tile tile = tile_at(t, g);
                    input_tile((const global vec *)x + (size_t)(tile.image * CB + cb + b) * height * width, height,
                        width, tile.y - padding_h, tile.x - padding_w, v + b * block + (t - first),
                        channel_blocks * block);
                }
            for (int b = 0; b < output_blocks; b++) /* blocks past the last repeat it; what comes of them is dropped */
                for (int t = first; t < last; t++) {
                    const struct tile tile = tile_at(t, g);
                    const int from = tile.image * KB + min(kb + b, KB - 1);
                    gradient_tile((const global vec *)dy + (size_t)from * result_height * result_width, result_height,
                        result_width, tile.y, tile.x, d + b * block + (t - first), output_blocks * block);
                }
            for (int i = 0; i < 36; i++)
                for (int k = 0; k < output_blocks; k += NV)
                    for (int c = 0; c < channels; c += CT)
                        outer_product((const SCRATCH float *)(v + (i * channel_blocks + c / V) * block) + c % V,
                            d + (i * output_blocks + k) * block, block, last - first,
                            m + i * m_step + c * output_blocks + k, output_blocks, first > begin);
        }
        for (int k = kb; k < min(kb + output_blocks, KB); k++)
            for (int c = 0; c < channels; c += V) {
                const int here = min(V, channels - c);
                VF w[TAPS * V];
                LOOP for (int i = 0; i < here; i++)
                    kernel_gradient(m + (c + i) * output_blocks + k - kb, m_step, w + TAPS * i);
                const int channel = cb * V + c;
                if (splits == 1)
                    write_plain(w, TAPS * here, add, dw, ((size_t)k * V * C + channel) * TAPS, (size_t)C * TAPS,
                        min(V, K - k * V));
                else
                    LOOP for (int i = 0; i < TAPS * here; i++)
                        ((global vec *)(workspace + offset))[(((size_t)split * KB + k) * C + channel) * TAPS + i] =
                            w[i];
            }
    }
}
