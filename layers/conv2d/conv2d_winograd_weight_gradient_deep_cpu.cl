/* Weight gradient of an R x R convolution on a CPU-class device by Winograd, for layers with so many channels that tasks of
 * conv2d_winograd_weight_gradient_cpu.cl, each with its own block of channels, would transform the same tiles again and again.
 * Here all are transformed once, and the products are matrix products of all channels; those that take longest, of a kernel's
 * last number, come first.
 *
 *   dy          blocked
 *   dw          plain, and `add` like it (dw may be add)
 *   workspace   three parts, at v_at, d_at and m_at:
 *               v[chunks][blocks of C][NUMBERS][T + 1], made by winograd_input in conv2d_winograd_prepare_cpu.cl,
 *               d[chunks][blocks of K, rounded up to NV][NUMBERS][T + 1],
 *               m[KERNEL_NUMBERS][blocks of K / NV][V * blocks of C][NV] and a vector after each of the KERNEL_NUMBERS
 *
 * Launched by conv2d_winograd_weight_gradient.c in this order: winograd_gradients with (blocks of K, rounded up; chunks),
 * winograd_weight_products with (KERNEL_NUMBERS, ranges of panels of NV blocks of K), winograd_weight_results with (blocks of C, panels)
 * tasks. */
#include "parameters.h"
#include "arguments/conv2d_winograd_weight_gradient_deep_cpu.h"
#define TILES global
#define PRODUCTS global
#include "winograd.h"
#include "winograd_gradient.h"

kernel TASK void winograd_gradients(WINOGRAD_GRADIENTS_ARGUMENTS(PARAMETER))
{
    const struct tiling g = { tile_rows, tile_columns, tile_rows * tile_columns, 0, 0, result_height, result_width, 0,
        0 };
    const int b = get_group_id(0), chunk = get_group_id(1), first = chunk * T, last = min(first + T, tiles);
    const int KB = (K + V - 1) / V, from = min(b, KB - 1); /* blocks past the last repeat it and are dropped */
    global vec *d = (global vec *)(workspace + d_at) + slice_at(chunk, b, get_num_groups(0), T);
    for (int t = first; t < last; t++) {
        const struct tile tile = tile_at(t, g);
        gradient_tile((const global vec *)dy + (size_t)(tile.image * KB + from) * result_height * result_width,
            result_height, result_width, tile.y, tile.x, d + (t - first), T + 1);
    }
}

OUTLINE void products_body(global float *restrict workspace, long v_at, long d_at, long m_at, int CB, int panels,
    int panels_max, int tiles, int T, int n, int range)
{
    const int last = min((range + 1) * panels_max, panels), block = NUMBERS * (T + 1);
    global vec *m = (global vec *)(workspace + m_at) + (size_t)n * (panels * CB * V * NV + 1);
    for (int first = 0, chunk = 0; first < tiles; first += T, chunk++) {
        const global vec *v = (const global vec *)(workspace + v_at) + slice_at(chunk, 0, CB, T);
        const global vec *d = (const global vec *)(workspace + d_at) + slice_at(chunk, 0, panels * NV, T);
        for (int panel = range * panels_max; panel < last; panel++)
            for (int c = 0; c < CB * V; c += CT)
                outer_product(n, v + (size_t)(c / V) * block, T + 1, d + (size_t)panel * NV * block, T + 1, block, c % V,
                    min(T, tiles - first), m + (panel * CB * V + c) * NV, chunk > 0);
    }
}

kernel TASK void winograd_weight_products(WINOGRAD_PRODUCTS_ARGUMENTS(PARAMETER))
{
    products_body(
        workspace, v_at, d_at, m_at, CB, panels, panels_max, tiles, T, KERNEL_NUMBERS - 1 - get_group_id(0),
        get_group_id(1));
}

OUTLINE void results_body(const global float *restrict workspace, long m_at, const global float *add, global float *dw,
    int C, int K, int panels, int c, int panel)
{
    const int channels = (C + V - 1) / V * V, last = min((panel + 1) * NV, (K + V - 1) / V);
    const global vec *m = (const global vec *)(workspace + m_at) + (panel * channels + c * V) * NV;
    const struct kernels_out out = { .add = add, .dw = dw, .parts = dw, .splits = 1, .C = C };
    for (int k = panel * NV; k < last; k++)
        finish_block(m + k % NV, panels * channels * NV + 1, out, c * V, min(V, C - c * V), share_of(0, 1, K), k, 0, K,
            1);
}

kernel TASK void winograd_weight_results(WINOGRAD_RESULTS_ARGUMENTS(PARAMETER))
{
    results_body(workspace, m_at, add, dw, C, K, panels, get_group_id(0), get_group_id(1));
}
