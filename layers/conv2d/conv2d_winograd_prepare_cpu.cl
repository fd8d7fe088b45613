/* What Winograd's convolutions need before their products: transformed weights and bias, transformed sources. It is
 * apart from the products: they are compiled for many numbers of tiles and epilogues, on which none of this depends.
 *
 *   w, bias       plain
 *   prepared      winograd_weights: as conv2d_winograd_cpu.cl has it; winograd_bias: the bias, padded with zeros
 *   workspace     winograd_input: the sources, as conv2d_winograd_deep_cpu.cl has them, from `offset` on
 *
 * Launched by conv2d_winograd.c: winograd_weights with (source blocks, panels, groups) tasks, winograd_bias with one; by
 * conv2d_winograd_tiles.c, also for weight gradients with many channels: winograd_input with (source blocks, chunks). */
#include "parameters.h"
#include "arguments/conv2d_winograd_prepare_cpu.h"
#define TILES global
#define WEIGHTS global
#include "winograd.h"
#include "winograd_weights.h"

OUTLINE void winograd_weights_body(
    WINOGRAD_KERNELS_ARGUMENTS(PARAMETER), int first, int panel, int panels, int group, int groups)
{
    const int last = min(first + V, padded), step = NV * (padded + 1);
    const struct share own = share_of(group, groups, results);
    if (first == 0)
        LOOP for (int i = 0; i < NV * V; i++)
        {
            const int k = panel * NV * V + i - own.begin;
            prepared[(group * panels + panel) * NV * V + i] =
                HAS_BIAS && k >= 0 && k < results ? bias[group * results + k] : 0.0f;
        }
    global vec *u = (global vec *)prepared + (size_t)groups * panels * NV +
        ((size_t)group * panels + panel) * KERNEL_NUMBERS * step;
    const global float *kernels = w + (size_t)group * sources * (results / merged) * TAPS;
    LOOP for (int k = 0; k < NV; k++)
    {
        VF g[TAPS * V];
        const int block = panel * NV + k;
        if (merged > 1)
            load_merged(kernels, sources, results, merged, block, own.begin, first, g);
        else if (block * V - own.begin < results)
            load_kernels(kernels, sources, results, block, own.begin, first, g);
        else
            LOOP for (int i = 0; i < TAPS * V; i++) g[i] = 0.0f;
        LOOP for (int c = first; c < last; c++) weight_tile(g + (c - first) * TAPS, u + c * NV + k, step);
    }
}

kernel TASK void winograd_weights(WINOGRAD_KERNELS_ARGUMENTS(PARAMETER))
{
    winograd_weights_body(WINOGRAD_KERNELS_ARGUMENTS(NAME), get_group_id(0) * V, get_group_id(1), get_num_groups(1),
        get_group_id(2), get_num_groups(2));
}

kernel TASK void winograd_bias(
    const global float *restrict bias, global float *restrict prepared, int results, int padded)
{
    LOOP for (int i = 0; i < padded; i++) prepared[i] = HAS_BIAS && i < results ? bias[i] : 0.0f;
}

kernel TASK void winograd_input(WINOGRAD_INPUT_ARGUMENTS(PARAMETER))
{
    const struct tiling g = { tile_rows, tile_columns, tile_rows * tile_columns, source_height, source_width,
        result_height, result_width, padding_h, padding_w };
    const int b = get_group_id(0), chunk = get_group_id(1), first = chunk * T, last = min(first + T, tiles);
    const int slice_first = b / (slice / V) * (slice / V), slice_blocks = min(slice / V, source_blocks - slice_first);
    global vec *v = (global vec *)(workspace + offset) + slice_at(chunk, slice_first, source_blocks, T) +
        (b - slice_first) * (T + 1);
    input_tiles(source, source_blocks, b, first, last, g, v, slice_blocks * (T + 1));
}
