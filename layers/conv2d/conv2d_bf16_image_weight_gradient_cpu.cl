/* Weight gradient of a convolution of a plain image of up to 4 channels by bf16 dot products
 * (bf16_dots.h), on CPU-class devices with vectors of 16 floats:
 *
 *   dw[k,c,r,s] = sum over n,oh,ow of dy[n,k,oh,ow] x[n, c, oh*stride - padding + r, ow*stride - padding + s]
 *
 *   x      plain [N][C][H][W]
 *   dy     blocked [N][ceil(K/16)][OH][OW][16]
 *   part   in the workspace from `offset` on: [splits][ceil(K/16)][C][R][S][16]; conv2d_sum adds
 *
 * A chunk is a band of rows of results of one image. x is packed as [copy][source row][C][phase][position], a line of
 * `line` numbers for each row and channel; a phase has the columns that leave one rest by the stride. Line r C + c
 * from a row's first on belongs to row r of the kernel and channel c, so that 16 lines are a tile's rows, for each s
 * at its distance: a row of tiles is 16 lines at an s. Lines after the kernel's last row are summed and dropped. dy
 * is packed as [copy][K / 16][row][32 positions][16 pairs][16], zero after a row's last column. The sums of a task
 * wait in scratch, [row of tiles][K / 16][16][16]. CHAIN: 0, or they are a chain of additions of the products of at
 * most so many tiles. Chains are added with their rounding errors carried along (sum.h), in the next two planes of
 * scratch.
 *
 * Launched by layers/conv2d/conv2d_bf16_image.c with k_tasks x splits tasks, or fewer, which loop.
 * Macros: R, S, STRIDE_H, STRIDE_W, CHANNELS (C), PARTS, BF16_FORM, SCRATCH_GLOBAL. */
#include "parameters.h"
#include "arguments/conv2d_bf16.h"
#include "conv2d_cpu_kernel.h"
#define BF16_A SCRATCH
#define BF16_B SCRATCH
#define BF16_SUMS SCRATCH
#include "bf16_dots.h"
#include "bf16_terms.h"
#include "conv2d_bf16_kernel.h"
#include "sum.h"

#define LINES (R * CHANNELS)
#define TILE_ROWS ((LINES + 15) / 16 * S)
#define TILE_ROWS_SUMMED ((TILE_ROWS + ROW_TILES - 1) / ROW_TILES * ROW_TILES)

/* Columns first, first + step, ... of a row, zeros next to it. */
INLINE float16 load_columns(const global float *row, int first, int step, int width)
{
    const global VF_unaligned *from = (const global VF_unaligned *)(row + first);
    const bool inside = first >= 0 && first + 16 * step <= width;
    if (step == 2 && inside) return (float16)(from[0].even, from[1].even);
    if (step == 4 && inside)
        return (float16)(((float16)(from[0].even, from[1].even)).even, ((float16)(from[2].even, from[3].even)).even);
    float16 columns = 0.0f;
    for (int i = 0; i < 16; i++)
        if (first + i * step >= 0 && first + i * step < width) ((float *)&columns)[i] = row[first + i * step];
    return columns;
}

/* A word of each of 16 pairs in each copy, copy_words apart; see conv2d_bf16_weight_gradient_cpu.cl. */
INLINE void store_pair_words(float16 even, float16 odd, SCRATCH pair_word *to, long copy_words, bool careful, int16 *largest)
{
#if PARTS == 1
    *(SCRATCH pair_vector *)to = WORDS_OF(even, odd);
#else
    const int16 large_even = IS_LARGE(even), large_odd = IS_LARGE(odd);
    *largest = max(*largest, max(magnitudes(even), magnitudes(odd)));
    if (careful) *(SCRATCH pair_vector *)(to + SPECIAL * copy_words) = WORDS_OF(even, odd);
    for (int p = 0; p < PARTS; p++)
        *(SCRATCH pair_vector *)(to + p * copy_words) =
            careful ? next_words(&even, &odd, large_even, large_odd) : quick_words(&even, &odd);
#endif
}

/* The lines of `count` source rows from row `first` on. */
INLINE void pack_lines(const global float *image, SCRATCH ushort *to, long copy, int height, int width, int first,
    int count, int padding_w, int line, int positions, bool careful, int16 *largest)
{
    for (int j = 0; j < count; j++)
        for (int c = 0; c < CHANNELS; c++)
            for (int phase = 0; phase < STRIDE_W; phase++) {
                const int y = first + j;
                const bool inside = y >= 0 && y < height;
                const global float *row = image + ((long)c * height + (inside ? y : 0)) * width;
                SCRATCH ushort *phase_to = to + ((long)j * CHANNELS + c) * line + phase * positions;
                for (int i = 0; i < positions; i += 32) {
                    const int column = i * STRIDE_W + phase - padding_w;
                    const float16 even = load_columns(row, column, 2 * STRIDE_W, inside ? width : 0),
                                  odd = load_columns(row, column + STRIDE_W, 2 * STRIDE_W, inside ? width : 0);
                    store_pair_words(even, odd, (SCRATCH pair_word *)(phase_to + i), copy / 2, careful, largest);
                }
            }
}

/* A row of dy, of 16 channels. */
INLINE void pack_row(
    const global in1_t *row, SCRATCH uint *to, long copy_words, int width, bool careful, int16 *largest)
{
    for (int i = 0; i < width; i += 2) {
        SCRATCH pair_word *at = (SCRATCH pair_word *)(to + i * 8);
#if PARTS == 1 && IS_BF16(IN1_TYPE)
        const VU even = TO_VU(*(const global halves *)(row + i * 16)),
                 odd = i + 1 < width ? TO_VU(*(const global halves *)(row + i * 16 + 16)) : (VU)(0u);
        *(SCRATCH pair_vector *)at = even | odd << 16;
#else
        const float16 odd = i + 1 < width ? LOAD_AS(IN1_TYPE, i + 1, row) : (float16)(0.0f);
        store_pair_words(LOAD_AS(IN1_TYPE, i, row), odd, at, copy_words, careful, largest);
#endif
    }
    for (int i = (width + 1) / 2; i < (width + 31) / 32 * 16; i++)
        for (int p = 0; p < COPIES; p++) *(SCRATCH pair_vector *)(to + p * copy_words + i * 16) = (VU)(0u);
}

/* Returns where a row of tiles begins among the lines of a row. A number past the last row gives the last one. */
INLINE long tile_row_at(int number, int line, int positions)
{
    const int n = min(number, TILE_ROWS - 1), s = n % S;
    return (long)(n / S) * 16 * line + s % STRIDE_W * positions + s / STRIDE_W;
}

/* Sums the products of a unit of sums, over tiles first .. end - 1 of a chunk's rows. With form 2, which adds each
 * pair's product to the sum, the small ones come first. */
INLINE BF16_TARGET void sum_up(SUMS *sums, SCRATCH const ushort *x, int line, long x_apart, SCRATCH const uint *dy,
    long dy_block, int first, int end, int tiles, const struct copies *copies)
{
    int j = first / tiles, t = first % tiles;
    for (int i = first; i < end; i++) {
        for (int q = 0; q < PRODUCTS; q++) {
            const int p = BF16_FORM == 2 ? PRODUCTS - 1 - q : q;
            sums_add(sums,
                (SCRATCH const pair_word *)(x + copies->a[p] + (long)j * STRIDE_H * CHANNELS * line + 32 * t), line / 2,
                x_apart, dy + copies->b[p] + (long)i * TILE, dy_block);
        }
        if (++t == tiles) t = 0, j++;
    }
}

/* Where a task's data lie in scratch, and their sizes. */
struct weights_task {
    SCRATCH float *sums;
    SCRATCH ushort *x;
    SCRATCH uint *dy;
    long x_copy, dy_block, dy_copy;
    int chained, chains; /* tiles of the present chain, chains before it */
};

/* Adds the chain to those before it. */
INLINE void end_chain(struct weights_task *task, int k_blocks_max)
{
    const long plane = (long)TILE_ROWS_SUMMED * k_blocks_max * 256;
    SCRATCH float *to = task->sums + plane;
    LOOP for (long i = 0; i < plane; i += V)
    {
        VF sum = 0.0f, error = 0.0f;
        if (task->chains) sum = SCRATCH_LOAD(0, to + i), error = SCRATCH_LOAD(0, to + plane + i);
        SUM_ADD(VF, sum, error, SCRATCH_LOAD(0, task->sums + i));
        SCRATCH_STORE(sum, 0, to + i);
        SCRATCH_STORE(error, 0, to + plane + i);
    }
    task->chained = 0;
    task->chains++;
}

/* Sums tiles first .. end - 1 of a chunk's rows. */
INLINE BF16_TARGET void sum_tiles(const struct weights_task *task, const struct copies *copies, int k_blocks,
    int k_blocks_max, int line, int positions, int first, int end, int tiles)
{
    const struct sums_place place = { 16, 256L * k_blocks_max, 256 };
    SUMS sums;
    for (int k = 0; k < k_blocks; k += COLUMN_TILES)
        for (int number = 0; number < TILE_ROWS_SUMMED; number += ROW_TILES) {
            SCRATCH float *at = task->sums + ((long)number * k_blocks_max + k) * 256;
            const long upper = tile_row_at(number, line, positions),
                       lower = tile_row_at(number + ROW_TILES - 1, line, positions);
            if (task->chained)
                sums_load(&sums, at, place);
            else
                sums_clear(&sums);
            sum_up(&sums, task->x + upper, line, lower - upper, task->dy + k * task->dy_block, task->dy_block, first,
                end, tiles, copies);
            sums_store(&sums, at, place);
        }
}

INLINE BF16_TARGET void sum_chunk(struct weights_task *task, bool special, int k_blocks, int k_blocks_max, int line,
    int positions, int rows, int tiles)
{
    const struct copies copies = copies_of(special, task->x_copy, task->dy_copy);
    const int all = rows * tiles, most = CHAIN ? CHAIN : all;
    BF16_BEGIN
    for (int first = 0; first < all; first += most) {
        const int end = min(first + most, all);
        if (CHAIN && task->chained + end - first > CHAIN) end_chain(task, k_blocks_max);
        sum_tiles(task, &copies, k_blocks, k_blocks_max, line, positions, first, end, tiles);
        task->chained += end - first;
    }
    BF16_END
}

/* Stores the sums of a block of results where conv2d_sum reads them. */
INLINE void put_sums(SCRATCH const float *sums, int k_blocks_max, global float *part)
{
    for (int t = 0; t < LINES; t++)
        for (int s = 0; s < S; s++) {
            const int c = t % CHANNELS, r = t / CHANNELS, number = t / 16 * S + s;
            VSTORE(SCRATCH_LOAD(t % 16, sums + (long)number * k_blocks_max * 256), (c * R + r) * S + s, part);
        }
}

OUTLINE BF16_TARGET void conv2d_bf16_image_weight_gradient_body(
    CONV2D_BF16_IMAGE_WEIGHTS_ARGUMENTS(PARAMETER), int first_task, int step)
{
    const int tiles = (result_width + 31) / 32, source_rows = (rows_max - 1) * STRIDE_H + R;
    const int lines = source_rows * CHANNELS + 16;
    const long plane = (long)TILE_ROWS_SUMMED * k_blocks_max * 256;
    struct weights_task t = { .sums = scratch };
    t.x = (SCRATCH ushort *)(t.sums + (CHAIN ? 3 : 1) * plane);
    t.x_copy = (long)lines * line;
    t.dy = (SCRATCH uint *)(t.x + COPIES * t.x_copy);
    t.dy_block = (long)rows_max * tiles * TILE;
    t.dy_copy = t.dy_block * k_blocks_max;
    for (int p = 0; p < COPIES; p++)
        for (long i = (long)source_rows * CHANNELS * line; i < t.x_copy; i++) t.x[p * t.x_copy + i] = 0;
    for (int task = first_task; task < k_tasks * splits; task += step) {
        const int k_task = task % k_tasks, split = task / k_tasks, k_first = k_task * k_blocks_max;
        const int k_count = min(k_blocks_max, KB - k_first);
        const int begin = split * chunks_split, end = min(begin + chunks_split, chunks);
        t.chained = t.chains = 0;
        for (int chunk = begin; chunk < end; chunk++) {
            const int image = chunk / chunks_image, oh = (chunk - image * chunks_image) * rows_max;
            const int rows = min(rows_max, result_height - oh);
            bool special = false, unusual = false;
            for (int careful = 0; careful <= unusual; careful++) {
                int16 largest = 0;
                pack_lines(x + (size_t)image * CHANNELS * height * width, t.x, t.x_copy, height, width,
                    oh * STRIDE_H - padding_h, source_rows, padding_w, line, positions, careful, &largest);
                for (int k = 0; k < k_blocks_max; k++)
                    for (int j = 0; j < rows; j++) {
                        const size_t row =
                            ((size_t)image * KB + k_first + min(k, k_count - 1)) * result_height + oh + j;
                        pack_row(dy + row * result_width * 16, t.dy + k * t.dy_block + (long)j * tiles * TILE,
                            t.dy_copy, result_width, careful, &largest);
                    }
#if PARTS > 1
                unusual = any(largest >= UNUSUAL);
                special = any(largest >= OUTSIDE);
#endif
            }
            sum_chunk(&t, special, k_count, k_blocks_max, line, positions, rows, tiles);
        }
        if (CHAIN) end_chain(&t, k_blocks_max);
        for (int k = 0; k < k_count; k++)
            put_sums(t.sums + (CHAIN ? plane : 0) + k * 256, k_blocks_max,
                workspace + offset + ((long)split * KB + k_first + k) * CHANNELS * R * S * 16);
    }
}

BF16_TARGET TASK void conv2d_bf16_image_weight_gradient(CONV2D_BF16_IMAGE_WEIGHTS_ARGUMENTS(PARAMETER))
{
    conv2d_bf16_image_weight_gradient_body(CONV2D_BF16_IMAGE_WEIGHTS_ARGUMENTS(NAME), get_group_id(0), get_num_groups(0));
}
