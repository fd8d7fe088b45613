/* Weight gradient of a convolution by products of pairs of bfloat16 numbers (pairs.h), on CPU-class devices with
 * vectors of 16 floats:
 *
 *   dw[k,c,r,s] = sum over n,oh,ow of dy[n,k,oh,ow] x[n, c, oh*stride - padding + r*dilation, ...]
 *
 *   x, dy  blocked
 *   part   in the workspace from `offset` on: [splits][part_blocks of K][part_rows of C][taps][16]; conv2d_sum adds
 *
 * The sum is over positions (conv2d_pairs.h); pairs are neighbouring positions. A task takes a share of the units for a
 * block of channels. Of a chunk of units it packs x with a channel's positions behind one another, [copy][C][phase]
 * [position], so that a tile's rows are 16 channels, for each tap at the tap's distance, and dy as columns, [copy][K /
 * 16][32 positions][16 pairs][16]. Between chunks the sums wait in the part. dy is zero at positions that are no
 * result.
 *
 * Launched by layers/conv2d_pairs.c with c_tasks x k_tasks x splits tasks, or fewer, which loop. row: positions from a
 * channel to the next. c_blocks_group ...: blocks of 16 channels of a group; part_rows: of a group, too.
 * Macros: those of conv2d_pairs.h. */
#include "parameters.h"
#include "arguments/conv2d_pairs.h"
#include "conv2d_cpu.h"
#define PAIRS_A SCRATCH
#define PAIRS_B SCRATCH
#define PAIRS_SUMS global
#include "pairs.h"
#include "pairs_parts.h"
#include "conv2d_pairs.h"
#include "transpose.h"

TRANSPOSE(transpose_words, VU)

/* 32 positions of 16 channels as words in each copy: of a channel 16 behind one another, `line` words from channel to
 * channel; or of a pair of positions all channels. Returns whether a number is infinity or NaN. */
INLINE bool store_positions(const float16 *numbers, SCRATCH pair_word *to, long line, long copy_words, bool by_channel)
{
    float16 even[16], odd[16];
    VU words[16];
    bool outside = false;
    UNROLL for (int i = 0; i < 16; i++) even[i] = numbers[2 * i], odd[i] = numbers[2 * i + 1];
#if PARTS > 1
    int16 beyond = 0, large_even[16], large_odd[16];
    UNROLL for (int i = 0; i < 16; i++)
    {
        beyond |= IS_OUTSIDE(even[i]) | IS_OUTSIDE(odd[i]);
        large_even[i] = IS_LARGE(even[i]);
        large_odd[i] = IS_LARGE(odd[i]);
    }
    outside = any(beyond);
#endif
    for (int p = 0; p < COPIES; p++) { /* of several parts the copy with infinities first, while the numbers are whole */
        SCRATCH pair_word *at = to + (PARTS == 1 ? 0 : p == 0 ? SPECIAL : p - 1) * copy_words;
        UNROLL for (int i = 0; i < 16; i++)
        {
#if PARTS > 1
            if (p > 0)
                words[i] = next_words(&even[i], &odd[i], large_even[i], large_odd[i]);
            else
#endif
                words[i] = WORDS_OF(even[i], odd[i]);
        }
        if (by_channel) transpose_words(words);
        UNROLL for (int i = 0; i < 16; i++) *(SCRATCH pair_vector *)(at + i * line) = words[i];
    }
    return outside;
}

/* name(): 16 channels of a chunk's units in one phase; rows of the grid from rows_valid on are zero. */
#define PACK_UNITS(name, type)                                                                                     \
    INLINE bool name(const global ELEMENT(type) * source, SCRATCH pair_word * to, long line, long copy_words,      \
        bool by_channel, int block, int blocks, int height, int width, int step_h, int step_w, int row_start,      \
        int column_start, int first, int count, int per_image, int band, int grid_rows, int rows_valid, int pitch, \
        int positions)                                                                                             \
    {                                                                                                              \
        float16 numbers[32];                                                                                       \
        int filled = 0, done = 0;                                                                                  \
        bool outside = false;                                                                                      \
        for (int u = 0; u < count; u++) {                                                                          \
            const struct unit unit = unit_of(first + u, per_image, band);                                          \
            for (int j = 0; j < grid_rows; j++) {                                                                  \
                const int y = (unit.first + j) * step_h + row_start;                                               \
                const bool inside = j < rows_valid && y >= 0 && y < height && block < blocks;                      \
                const global ELEMENT(type) *from =                                                                 \
                    source + (((size_t)unit.image * blocks + block) * height + max(y, 0)) * width * 16;            \
                for (int i = 0; i < pitch; i++) {                                                                  \
                    const int w = i * step_w + column_start;                                                       \
                    numbers[filled++] = inside && w >= 0 && w < width ? LOAD_AS(type, w, from) : (float16)(0.0f);  \
                    if (filled < 32) continue;                                                                     \
                    filled = 0;                                                                                    \
                    outside |= store_positions(                                                                    \
                        numbers, to + done / 32 * (by_channel ? 16 : TILE), line, copy_words, by_channel);         \
                    done += 32;                                                                                    \
                }                                                                                                  \
            }                                                                                                      \
        }                                                                                                          \
        for (; done < positions; done += 32, filled = 0) {                                                         \
            for (; filled < 32; filled++) numbers[filled] = (float16)(0.0f);                                       \
            outside |=                                                                                             \
                store_positions(numbers, to + done / 32 * (by_channel ? 16 : TILE), line, copy_words, by_channel); \
        }                                                                                                          \
        return outside;                                                                                            \
    }
PACK_UNITS(pack_x, IN0_TYPE)
PACK_UNITS(pack_dy, IN1_TYPE)

/* The products of one tap for a unit of sums. */
INLINE PAIRS_TARGET void sum_up(SUMS *sums, SCRATCH const ushort *x, long x_copy, int row, SCRATCH const uint *dy,
    long dy_copy, long dy_block, int tiles, bool special)
{
    for (int p = 0; p < PRODUCTS; p++) {
#if PARTS > 1
        SCRATCH const ushort *a = x + (p == 0 && special ? SPECIAL : part_of_a[p]) * x_copy;
        SCRATCH const uint *b = dy + (p == 0 && special ? SPECIAL : part_of_b[p]) * dy_copy;
#else
        SCRATCH const ushort *a = x;
        SCRATCH const uint *b = dy;
#endif
        for (int t = 0; t < tiles; t++)
            sums_add(sums, (SCRATCH const pair_word *)(a + 32 * t), row / 2, 8 * (long)row, b + t * TILE, dy_block);
    }
}

/* Channels of a task: of one group, blocks from x_first and k_first on. */
struct share {
    int x_first, x_blocks, k_first, k_blocks;
};

OUTLINE PAIRS_TARGET void conv2d_pairs_weights_body(CONV2D_PAIRS_WEIGHTS_ARGUMENTS(PARAMETER), int first_task, int step)
{
    const int tiles = (units_max * grid_rows * pitch + 31) / 32,
              k_tasks_group = (k_blocks_group + k_blocks_max - 1) / k_blocks_max;
    const long x_copy = (long)c_blocks_max * 16 * row, dy_block = (long)tiles * TILE, dy_copy = dy_block * k_blocks_max;
    SCRATCH ushort *xs = (SCRATCH ushort *)scratch;
    SCRATCH uint *dys = (SCRATCH uint *)(xs + COPIES * x_copy);
    SUMS sums;
    PAIRS_BEGIN
    for (int task = first_task; task < c_tasks * k_tasks * splits; task += step) {
        const int c_task = task % c_tasks, k_task = task / c_tasks % k_tasks, split = task / (c_tasks * k_tasks);
        const int group = k_task / k_tasks_group, k_in_group = (k_task - group * k_tasks_group) * k_blocks_max;
        const int c_first = c_task * c_blocks_max, c_count = min(c_blocks_max, c_blocks_group - c_first);
        const int k_first = group * k_blocks_group + k_in_group,
                  k_count = min(k_blocks_max, k_blocks_group - k_in_group);
        const int begin = split * units_split, end = min(begin + units_split, units_all);
        global float *part = workspace + offset + (long)split * part_blocks * part_rows * TAPS * 16;
        for (int first = begin; first < end; first += units_max) {
            const int count = min(units_max, end - first);
            bool special = false;
            for (int c = 0; c < c_blocks_max; c++)
                for (int phase = 0; phase < PHASES; phase++)
                    special |= pack_x(x, (SCRATCH pair_word *)(xs + (long)c * 16 * row + phase * positions), row / 2,
                        x_copy / 2, true, c < c_count ? group * c_blocks_group + c_first + c : CB, CB, height, width,
                        STRIDE_H, STRIDE_W, phase / PHASES_W + start_h, phase % PHASES_W + start_w, first, count,
                        per_image, band, grid_rows, grid_rows, pitch, positions);
            for (int k = 0; k < k_blocks_max; k++)
                special |= pack_dy(dy, (SCRATCH pair_word *)(dys + k * dy_block), 16, dy_copy, false,
                    k < k_count ? k_first + k : KB, KB, grid_height, grid_width, 1, 1, 0, 0, first, count, per_image,
                    band, grid_rows, band, pitch, tiles * 32);
            for (int k = 0; k < k_count; k += COLUMN_TILES)
                for (int c = 0; c < c_count; c += ROW_TILES)
                    for (int tap = 0; tap < TAPS; tap++) {
                        const int r = tap / S * DILATION_H, s = tap % S * DILATION_W;
                        const int at =
                            (r % STRIDE_H * PHASES_W + s % STRIDE_W) * positions + r / STRIDE_H * pitch + s / STRIDE_W;
                        global float *m =
                            part + (((long)(k_first + k) * part_rows + (c_first + c) * 16) * TAPS + tap) * 16;
                        const struct sums_place place = { TAPS * 16, 16L * TAPS * 16, (long)part_rows * TAPS * 16 };
                        if (first == begin)
                            sums_clear(&sums);
                        else
                            sums_load(&sums, m, place);
                        sum_up(&sums, xs + (long)c * 16 * row + at, x_copy, row, dys + k * dy_block, dy_copy, dy_block,
                            tiles, special);
                        sums_store(&sums, m, place);
                    }
        }
    }
    PAIRS_END
}

PAIRS_TARGET TASK void conv2d_pairs_weights(CONV2D_PAIRS_WEIGHTS_ARGUMENTS(PARAMETER))
{
    conv2d_pairs_weights_body(CONV2D_PAIRS_WEIGHTS_ARGUMENTS(NAME), get_group_id(0), get_num_groups(0));
}
