/* R x R convolution on a CPU-class device, forward and data gradient, by Winograd, for layers whose
 * transformed weights stay in the caches: each task transforms T tiles of all source channels into scratch,
 * multiplies them by the matrices of weights, one for each number of a tile, NV blocks of results at a time, and transforms the
 * products back. Nothing transformed but the weights goes through memory.
 *
 *   source, result, add   blocked; result may be add
 *   prepared              bias [groups][panels][NV][V], then U [groups][panels][KERNEL_NUMBERS][padded + 1][NV][V]: made by
 *                         winograd_weights in conv2d_winograd_prepare_cpu.cl
 *   scratch               v[NUMBERS][source blocks][T + 1], m[NUMBERS][NV * T + 1]
 *
 * Launched by conv2d_winograd.c with (chunks of T tiles, ranges of panels, groups) tasks. Blocks and panels are those of
 * one group. `padded`: source channels rounded up to KU. */
#include "parameters.h"
#include "arguments/conv2d_winograd_cpu.h"
#define TILES SCRATCH
#define WEIGHTS global
#define PREFETCH_NEXT 0
#define WEIGHTS_AHEAD 64
#include "winograd.h"
#include "winograd_product.h"

OUTLINE void winograd_body(WINOGRAD_ARGUMENTS(PARAMETER) STATISTICS_PARAMETER, int group, int groups, int range,
    int first_chunk, int step)
{
    const struct tiling g = { tile_rows, tile_columns, tile_rows * tile_columns, source_height, source_width,
        result_height, result_width, padding_h, padding_w };
    const int v_block = T + 1, v_step = source_blocks * v_block, m_step = NV * T + 1, u_step = NV * (padded + 1);
    SCRATCH vec *v = (SCRATCH vec *)scratch, *m = v + NUMBERS * v_step;
    const int panel_first = range * panels_max, panel_last = min(panel_first + panels_max, panels);
    const struct share from = share_of(group, groups, group_sources), own = share_of(group, groups, group_results);
    const global vec *bias = (const global vec *)prepared + (size_t)group * panels * NV;
    const global vec *weights =
        (const global vec *)prepared + ((size_t)groups * NV + (size_t)group * KERNEL_NUMBERS * u_step) * panels;
    for (int chunk = first_chunk; chunk < chunks; chunk += step) {
        const int first = chunk * T, last = min(first + T, tiles);
        for (int b = 0; b < source_blocks; b++)
            input_tiles(source, all_source_blocks, from.block + b, first, last, g, v + b * v_block, v_step);
        for (int panel = panel_first; panel < panel_last; panel++) {
            const global vec *u = weights + (size_t)panel * KERNEL_NUMBERS * u_step;
            for (int k = 0; k < KERNEL_NUMBERS; k++, u += u_step)
                EACH_NUMBER(i, k) for (int t = 0; t < last - first; t += MT) /* tiles past the last are multiplied and not stored */
                    tile_product(v + i * v_step + t, v_block, from.begin, u, padded, m + i * m_step + t, T, false);
            output_panel(m, m_step, T, (const global float *)bias, add, result, panel, result_blocks, all_result_blocks,
                own, first, last, g, chunk STATISTICS_ARGUMENT);
        }
    }
}

kernel TASK void winograd(WINOGRAD_ARGUMENTS(PARAMETER) STATISTICS_PARAMETER)
{
    winograd_body(WINOGRAD_ARGUMENTS(NAME) STATISTICS_ARGUMENT, get_group_id(2), get_num_groups(2), get_group_id(1),
        get_group_id(0), get_num_groups(0));
}
