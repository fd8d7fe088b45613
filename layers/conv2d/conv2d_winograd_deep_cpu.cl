/* R x R convolution on a CPU-class device, forward and data gradient, by Winograd, for layers with so many
 * channels that the transformed weights (KERNEL_NUMBERS / R^2 times the weights) would not stay in the caches, and written
 * and read once for each pass would cost more than the products. So all tiles are transformed once (winograd_input),
 * and each task (winograd_deep) makes NV blocks of results of a chunk of T tiles: it transforms the plain weights of
 * `slice` source channels at a time in its scratch and accumulates all products over the slices.
 *
 *   source, result, add   blocked; result may be add
 *   w, bias               plain; `prepared` is the bias, padded with zeros
 *   transformed           [chunks][slices][NUMBERS][blocks of a slice][T + 1], in the workspace: read from one end to the
 *                         other
 *   scratch               u[KERNEL_NUMBERS][slice + 1][NV], m[NUMBERS][NV * T + 1]
 *
 * Launched by conv2d_winograd.c with (panels, chunks) tasks; winograd_bias and winograd_input are in
 * conv2d_winograd_prepare_cpu.cl. `slice` is a multiple of V. */
#include "parameters.h"
#include "arguments/conv2d_winograd_deep_cpu.h"
#define TILES global
#define WEIGHTS SCRATCH
#define PREFETCH_NEXT 1
#define WEIGHTS_AHEAD 0
#include "winograd.h"
#include "winograd_weights.h"
#include "winograd_product.h"

OUTLINE void winograd_deep_body(WINOGRAD_DEEP_ARGUMENTS(PARAMETER) STATISTICS_PARAMETER, int first_task, int step)
{
    const struct tiling g = { tile_rows, tile_columns, tile_rows * tile_columns, 0, 0, result_height, result_width, 0,
        0 };
    const int m_step = NV * T + 1, u_step = NV * (slice + 1), panels = (result_blocks + NV - 1) / NV;
    SCRATCH vec *u = (SCRATCH vec *)scratch, *m = u + KERNEL_NUMBERS * u_step;
    for (int task = first_task; task < tasks; task += step) {
        const int chunk = task / panels, panel = task - chunk * panels, first = chunk * T, last = min(first + T, tiles);
        for (int c0 = 0; c0 < sources; c0 += slice) {
            const int channels = (min(slice, sources - c0) + KU - 1) / KU * KU;
            const int blocks = min(slice / V, source_blocks - c0 / V);
            for (int k = 0; k < NV; k++)
                for (int c = 0; c < channels; c += V) {
                    VF kernels[TAPS * V];
                    load_kernels(w, sources, results, min(panel * NV + k, result_blocks - 1), 0, c0 + c, kernels);
                    for (int d = 0; d < min(V, channels - c); d++)
                        weight_tile(kernels + d * TAPS, u + (c + d) * NV + k, u_step);
                }
            const global vec *v = (const global vec *)(workspace + offset) + slice_at(chunk, c0 / V, source_blocks, T);
            for (int k = 0; k < KERNEL_NUMBERS; k++)
                EACH_NUMBER(i, k) for (int t = 0; t < last - first; t += MT)
                    tile_product(
                        v + i * blocks * (T + 1) + t, T + 1, 0, u + k * u_step, channels, m + i * m_step + t, T, c0 > 0);
        }
        output_panel(m, m_step, T, prepared, add, result, panel, result_blocks, result_blocks,
            share_of(0, 1, results), first, last, g, chunk STATISTICS_ARGUMENT);
    }
}

kernel TASK void winograd_deep(WINOGRAD_DEEP_ARGUMENTS(PARAMETER) STATISTICS_PARAMETER)
{
    winograd_deep_body(WINOGRAD_DEEP_ARGUMENTS(NAME) STATISTICS_ARGUMENT, get_group_id(0), get_num_groups(0));
}
