/* Weight gradient of an R x R convolution on a CPU-class device by Winograd, the exact transpose of the forward
 * algorithm: dW = G^T [ sum over tiles of (A dY A^T) * (B^T x B) ] G.
 *
 *   x, dy    blocked
 *   dw       plain, and `add` like it (dw may be add), when there is one split; else the parts go to the workspace from
 *            `offset` on: [splits][ceil(K/V)][C][R][R][V], which conv2d_sum adds and writes plain
 *   scratch  v[NUMBERS][blocks of C][T + 1], d[NUMBERS][blocks of K][T + 1],
 *            m[KERNEL_NUMBERS][blocks of K / NV][channels][NV] and a vector after each of the KERNEL_NUMBERS
 *
 * Blocks are those of one group. A task sums the products of a block of channels over a share of the tiles, T at a time; in registers are CT channels x
 * NV vectors. Launched by conv2d_winograd_weight_gradient.c with channel blocks x output blocks x splits x groups tasks, or fewer, which
 * loop. */
#include "parameters.h"
#include "arguments/conv2d_winograd_weight_gradient_cpu.h"
#define TILES SCRATCH
#define PRODUCTS SCRATCH
#include "winograd.h"
#include "winograd_gradient.h"

OUTLINE void winograd_weight_gradient_body(WINOGRAD_WEIGHTS_ARGUMENTS(PARAMETER), int first_task, int step)
{
    const struct tiling g = { tile_rows, tile_columns, tile_rows * tile_columns,
        source_height, source_width, result_height, result_width, padding_h, padding_w };
    const int C = group_sources, K = group_results, CB = (C + V - 1) / V, KB = (K + V - 1) / V;
    const int c_tasks = (CB + channel_blocks - 1) / channel_blocks, k_tasks = (KB + output_blocks - 1) / output_blocks;
    const int block = T + 1, m_step = channel_blocks * V * output_blocks + 1;
    SCRATCH vec *v = (SCRATCH vec *)scratch;
    SCRATCH vec *d = v + NUMBERS * channel_blocks * block, *m = d + NUMBERS * output_blocks * block;
    const int m_panel = channel_blocks * V * NV, all_tasks = c_tasks * k_tasks * splits;
    struct kernels_out out = { .add = add, .dw = dw, .parts = workspace + offset, .splits = splits,
        .blocks = all_result_blocks, .C = C / merged };
    for (int all = first_task; all < all_tasks * groups; all += step) {
        const int group = all / all_tasks, task = all - group * all_tasks;
        const struct share from = share_of(group, groups, C), own = share_of(group, groups, K);
        const int cb = task % c_tasks * channel_blocks, kb = task / c_tasks % k_tasks * output_blocks;
        const int split = task / (c_tasks * k_tasks), begin = split * tiles_split,
                  end = min(begin + tiles_split, tiles);
        /* channels lie at c_from .. c_end - 1 of these blocks */
        const int cbs = min(channel_blocks, CB - cb), c_from = max(from.begin - cb * V, 0),
                  c_end = min(cbs * V, from.begin + C - cb * V);
        for (int first = begin; first < end; first += T) {
            const int last = min(first + T, end);
            for (int b = 0; b < cbs; b++)
                input_tiles(x, all_source_blocks, from.block + cb + b, first, last, g, v + b * block,
                    channel_blocks * block);
            for (int b = 0; b < output_blocks; b++) /* blocks past the last repeat it; what comes of them is dropped */
                for (int t = first; t < last; t++) {
                    const struct tile tile = tile_at(t, g);
                    const int at = tile.image * all_result_blocks + own.block + min(kb + b, KB - 1);
                    gradient_tile((const global vec *)dy + (size_t)at * result_height * result_width, result_height,
                        result_width, tile.y, tile.x, d + b * block + (t - first), output_blocks * block);
                }
            for (int n = 0; n < KERNEL_NUMBERS; n++)
                for (int k = 0; k < output_blocks; k += NV)
                    for (int c = c_from; c < c_end; c += CT)
                        outer_product(n, v + c / V * block, channel_blocks * block, d + k * block,
                            output_blocks * block, block, c % V, last - first,
                            m + n * m_step + k / NV * m_panel + c * NV, first > begin);
        }
        out.split = split;
        for (int k = kb; k < min(kb + output_blocks, KB); k++)
            for (int c = c_from, here; c < c_end; c += here) {
                here = min(V - c % V, c_end - c);
                finish_block(m + (k - kb) / NV * m_panel + c * NV + (k - kb) % NV, m_step, out,
                    cb * V + c - from.begin, here, own, k, group, K, merged);
            }
    }
}

kernel TASK void winograd_weight_gradient(WINOGRAD_WEIGHTS_ARGUMENTS(PARAMETER))
{
    winograd_weight_gradient_body(WINOGRAD_WEIGHTS_ARGUMENTS(NAME), get_group_id(0), get_num_groups(0));
}
