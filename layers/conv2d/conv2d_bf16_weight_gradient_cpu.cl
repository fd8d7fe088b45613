/* Weight gradient of a convolution by bf16 dot products (bf16_dots.h), on CPU-class devices with
 * vectors of 16 floats:
 *
 *   dw[k,c,r,s] = sum over n,oh,ow of dy[n,k,oh,ow] x[n, c, oh*stride - padding + r*dilation, ...]
 *
 *   x, dy  blocked
 *   part   in the workspace from `offset` on: [splits][part_blocks of K][part_rows of C][taps][16]; conv2d_sum adds
 *   CHAIN  0, or a chain of additions has the products of at most so many tiles. Chains are added to the part with
 * their rounding errors carried along (sum.h). After all parts lie the chain and the errors of each split
 *
 * The sum is over positions (conv2d_bf16.h); pairs are neighbouring positions. A task takes a share of the units for
 * a block of channels. For each chunk of units it packs x with a channel's positions one after another,
 * [copy][C][phase][position], so that a tile's rows are 16 channels, for each tap at the tap's distance. It packs dy
 * as columns, [copy][K / 16][32 positions][16 pairs][16]. Between chunks the sums wait in the part or the chain. dy is
 * zero at positions that are not results.
 *
 * Launched by layers/conv2d/conv2d_bf16.c with c_tasks x k_tasks x splits tasks, or fewer, which loop. row: positions from a
 * channel to the next. c_blocks_group ...: blocks of 16 channels of a group; part_rows: of a group, too.
 * Macros: those of conv2d_bf16.h. */
#include "parameters.h"
#include "arguments/conv2d_bf16.h"
#include "conv2d_cpu_kernel.h"
#define BF16_A SCRATCH
#define BF16_B SCRATCH
#define BF16_SUMS global
#include "bf16_dots.h"
#include "bf16_terms.h"
#include "conv2d_bf16_kernel.h"
#include "sum.h"
#include "transpose.h"

TRANSPOSE(transpose_words, VU)

/* Stores words of 16 pairs of positions for 16 channels. by_channel: the 16 words of a channel follow one another,
 * with `line` words from channel to channel. Else the words of all channels of a pair follow one another. */
INLINE void store_words(VU words[16], SCRATCH pair_word *to, long line, bool by_channel)
{
    if (by_channel) transpose_words(words);
    UNROLL for (int i = 0; i < 16; i++) * (SCRATCH pair_vector *)(to + i * line) = words[i];
}

#if PARTS > 1
/* Packs numbers of any kind, and writes the copy with infinity and NaN, too. */
OUTLINE void pack_careful(
    float16 even[16], float16 odd[16], SCRATCH pair_word *to, long line, long copy_words, bool by_channel)
{
    VU words[16];
    int16 large_even[16], large_odd[16];
    for (int i = 0; i < 16; i++) {
        words[i] = WORDS_OF(even[i], odd[i]);
        large_even[i] = IS_LARGE(even[i]);
        large_odd[i] = IS_LARGE(odd[i]);
    }
    store_words(words, to + SPECIAL * copy_words, line, by_channel);
    for (int p = 0; p < PARTS; p++) {
        for (int i = 0; i < 16; i++) words[i] = next_words(&even[i], &odd[i], large_even[i], large_odd[i]);
        store_words(words, to + p * copy_words, line, by_channel);
    }
}
#endif

/* Packs 32 positions of 16 channels into each copy. With several parts, `largest` becomes the largest of the
 * magnitudes; infinity, NaN and other unusual numbers are packed where `careful`. */
INLINE void pack_floats(SCRATCH const float *numbers, SCRATCH pair_word *to, long line, long copy_words,
    bool by_channel, bool careful, int16 *largest)
{
    float16 even[16], odd[16];
    VU words[16];
    UNROLL for (int i = 0; i < 16; i++)
    {
        even[i] = SCRATCH_LOAD(2 * i, numbers);
        odd[i] = SCRATCH_LOAD(2 * i + 1, numbers);
    }
#if PARTS == 1
    UNROLL for (int i = 0; i < 16; i++) words[i] = WORDS_OF(even[i], odd[i]);
    store_words(words, to, line, by_channel);
#else
    UNROLL for (int i = 0; i < 16; i++) *largest = max(*largest, max(magnitudes(even[i]), magnitudes(odd[i])));
    if (careful) {
        pack_careful(even, odd, to, line, copy_words, by_channel);
        return;
    }
    for (int p = 0; p < PARTS; p++) {
        UNROLL for (int i = 0; i < 16; i++) words[i] = quick_words(&even[i], &odd[i]);
        store_words(words, to + p * copy_words, line, by_channel);
    }
#endif
}

/* Packs 32 positions of 16 channels whose numbers are bfloat16, into their only copy. A word of a position has two
 * channels: once the words are transposed, those of even and of odd positions become words of either channel. */
INLINE void pack_halves(SCRATCH const ushort *numbers, SCRATCH pair_word *to, long line, bool by_channel)
{
    VU words[16];
    if (!by_channel) {
        UNROLL for (int i = 0; i < 16; i++)
        {
            const VU even = TO_VU(*(SCRATCH const halves *)(numbers + 32 * i)),
                     odd = TO_VU(*(SCRATCH const halves *)(numbers + 32 * i + 16));
            *(SCRATCH pair_vector *)(to + i * line) = even | odd << 16;
        }
        return;
    }
    UNROLL for (int i = 0; i < 16; i++) words[i] = *(SCRATCH const pair_vector *)(numbers + 32 * i);
    transpose_words(words);
    UNROLL for (int i = 0; i < 8; i++)
    {
        *(SCRATCH pair_vector *)(to + 2 * i * line) = (words[i] & 0xffffu) | words[i + 8] << 16;
        *(SCRATCH pair_vector *)(to + (2 * i + 1) * line) = words[i] >> 16 | (words[i + 8] & 0xffff0000u);
    }
}

/* Tells whether numbers of a type wait in that type until they are packed; else they wait as floats. */
#define WAITS_AS_HALVES(type) (PARTS == 1 && IS_BF16(type))

/* Writes zeros for `count` positions. */
INLINE void wait_zeros(SCRATCH float *waiting, int first, int count, bool as_halves)
{
    for (int i = first; i < first + count; i++)
        if (as_halves)
            *(SCRATCH halves *)((SCRATCH ushort *)waiting + i * 16) = (ushort16)(0);
        else
            SCRATCH_STORE((float16)(0.0f), i, waiting);
}

/* name() packs 16 channels of a chunk's units in one phase; rows of the grid from rows_valid on are zero. The
 * positions are put one after another at `waiting`, then packed, 32 at a time. */
#define PACK_UNITS(name, type)                                                                                         \
    INLINE void name(const global ELEMENT(type) * source, SCRATCH float *waiting, SCRATCH pair_word *to, long line,    \
        long copy_words, bool by_channel, int block, int blocks, int height, int width, int step_h, int step_w,        \
        int row_start, int column_start, int first, int count, int per_image, int band, int grid_rows, int rows_valid, \
        int pitch, int positions, bool careful, int16 *largest)                                                        \
    {                                                                                                                  \
        const bool as_halves = WAITS_AS_HALVES(type);                                                                  \
        const int begin = first_inside(column_start, step_w, pitch),                                                   \
                  end = end_inside(column_start, step_w, width, pitch), filled = count * grid_rows * pitch;            \
        for (int u = 0, at = 0; u < count; u++) {                                                                      \
            const struct unit unit = unit_of(first + u, per_image, band);                                              \
            for (int j = 0; j < grid_rows; j++, at += pitch) {                                                         \
                const int y = (unit.first + j) * step_h + row_start;                                                   \
                if (j >= rows_valid || y < 0 || y >= height || block >= blocks) {                                      \
                    wait_zeros(waiting, at, pitch, as_halves);                                                         \
                    continue;                                                                                          \
                }                                                                                                      \
                const global ELEMENT(type) *from =                                                                     \
                    source + (((size_t)unit.image * blocks + block) * height + y) * width * 16;                        \
                wait_zeros(waiting, at, begin, as_halves);                                                             \
                for (int i = begin, w = begin * step_w + column_start; i < end; i++, w += step_w)                      \
                    if (as_halves)                                                                                     \
                        *(SCRATCH halves *)((SCRATCH ushort *)waiting + (at + i) * 16) =                               \
                            *(const global halves *)(from + w * 16);                                                   \
                    else                                                                                               \
                        SCRATCH_STORE(LOAD_AS(type, w, from), at + i, waiting);                                        \
                wait_zeros(waiting, at + end, pitch - end, as_halves);                                                 \
            }                                                                                                          \
        }                                                                                                              \
        wait_zeros(waiting, filled, positions - filled, as_halves);                                                    \
        for (int done = 0; done < positions; done += 32) {                                                             \
            SCRATCH pair_word *packed = to + done / 32 * (by_channel ? 16 : TILE);                                     \
            if (as_halves)                                                                                             \
                pack_halves((SCRATCH const ushort *)waiting + done * 16, packed, line, by_channel);                    \
            else                                                                                                       \
                pack_floats(waiting + done * 16, packed, line, copy_words, by_channel, careful, largest);              \
        }                                                                                                              \
    }
PACK_UNITS(pack_x, IN0_TYPE)
PACK_UNITS(pack_dy, IN1_TYPE)

/* Where a row of tiles, 16 channels at a tap, begins: in x, and among the sums of 16 results. `number` counts the
 * taps, then the blocks of channels. */
struct row_of_tiles {
    long x, sums;
};

INLINE struct row_of_tiles row_of_tiles(int number, int row, int pitch, int positions)
{
    const int c = number / TAPS, tap = number % TAPS, r = tap / S * DILATION_H, s = tap % S * DILATION_W;
    const int phase = r % STRIDE_H * PHASES_W + s % STRIDE_W;
    return (struct row_of_tiles) { (long)c * 16 * row + phase * positions + r / STRIDE_H * pitch + s / STRIDE_W,
        (16L * c * TAPS + tap) * 16 };
}

/* Sums the products of a unit of sums, over `count` tiles from `first` on. All products of a step's parts are made
 * while its tiles are near. With form 2, which adds each pair's product to the sum, the small ones come first. */
INLINE BF16_TARGET void sum_up(SUMS *sums, SCRATCH const ushort *x, int row, long x_apart, SCRATCH const uint *dy,
    long dy_block, int first, int count, const struct copies *copies)
{
    for (int t = first; t < first + count; t++)
        for (int q = 0; q < PRODUCTS; q++) {
            const int p = BF16_FORM == 2 ? PRODUCTS - 1 - q : q;
            sums_add(sums, (SCRATCH const pair_word *)(x + copies->a[p] + 32 * t), row / 2, x_apart,
                dy + copies->b[p] + t * TILE, dy_block);
        }
}

/* Adds `count` numbers of a chain to a part, whose errors lie after the chain. */
INLINE void end_chain(global float *part, const global float *chain, global float *errors, long count, bool first)
{
    LOOP for (long i = 0; i < count; i += V)
    {
        VF sum = 0.0f, error = 0.0f;
        if (!first) sum = VLOAD(0, part + i), error = VLOAD(0, errors + i);
        SUM_ADD(VF, sum, error, VLOAD(0, chain + i));
        VSTORE(sum, 0, part + i);
        VSTORE(error, 0, errors + i);
    }
}

OUTLINE BF16_TARGET void conv2d_bf16_weight_gradient_body(CONV2D_BF16_WEIGHTS_ARGUMENTS(PARAMETER), int first_task, int step)
{
    const int tiles = (units_max * grid_rows * pitch + 31) / 32,
              k_tasks_group = (k_blocks_group + k_blocks_max - 1) / k_blocks_max;
    const long x_copy = (long)c_blocks_max * 16 * row, dy_block = (long)tiles * TILE, dy_copy = dy_block * k_blocks_max;
    SCRATCH float *waiting = scratch;
    SCRATCH ushort *xs = (SCRATCH ushort *)(waiting + (long)positions * 16);
    SCRATCH uint *dys = (SCRATCH uint *)(xs + COPIES * x_copy);
    SUMS sums;
    BF16_BEGIN
    for (int task = first_task; task < c_tasks * k_tasks * splits; task += step) {
        const int c_task = task % c_tasks, k_task = task / c_tasks % k_tasks, split = task / (c_tasks * k_tasks);
        const int group = k_task / k_tasks_group, k_in_group = (k_task - group * k_tasks_group) * k_blocks_max;
        const int c_first = c_task * c_blocks_max, c_count = min(c_blocks_max, c_blocks_group - c_first);
        const int k_first = group * k_blocks_group + k_in_group,
                  k_count = min(k_blocks_max, k_blocks_group - k_in_group);
        const int begin = split * units_split, end = min(begin + units_split, units_all);
        const long part_floats = (long)part_blocks * part_rows * TAPS * 16, block_floats = (long)part_rows * TAPS * 16;
        const long of_task = k_first * block_floats + c_first * 16L * TAPS * 16;
        global float *part = workspace + offset + split * part_floats + of_task,
                     *sums_at = CHAIN ? part + (splits + split) * part_floats : part;
        const int most = CHAIN ? CHAIN : tiles;
        int chained = 0, chains = 0; /* tiles of the present chain, chains before it */
        for (int first = begin; first < end; first += units_max) {
            const int count = min(units_max, end - first);
            bool special = false, unusual = false;
            for (int careful = 0; careful <= unusual; careful++) {
                int16 largest = 0;
                for (int c = 0; c < c_blocks_max; c++)
                    for (int phase = 0; phase < PHASES; phase++)
                        pack_x(x, waiting, (SCRATCH pair_word *)(xs + (long)c * 16 * row + phase * positions), row / 2,
                            x_copy / 2, true, c < c_count ? group * c_blocks_group + c_first + c : CB, CB, height,
                            width, STRIDE_H, STRIDE_W, phase / PHASES_W + start_h, phase % PHASES_W + start_w, first,
                            count, per_image, band, grid_rows, grid_rows, pitch, positions, careful, &largest);
                for (int k = 0; k < k_blocks_max; k++)
                    pack_dy(dy, waiting, (SCRATCH pair_word *)(dys + k * dy_block), 16, dy_copy, false,
                        k < k_count ? k_first + k : KB, KB, grid_height, grid_width, 1, 1, 0, 0, first, count,
                        per_image, band, grid_rows, band, pitch, tiles * 32, careful, &largest);
#if PARTS > 1
                unusual = any(largest >= UNUSUAL);
                special = any(largest >= OUTSIDE);
#endif
            }
            const struct copies copies = copies_of(special, x_copy, dy_copy);
            for (int t = 0; t < tiles; t += most) {
                const int steps = min(most, tiles - t);
                if (CHAIN && chained + steps > CHAIN) {
                    for (int k = 0; k < k_count; k++)
                        end_chain(part + k * block_floats, sums_at + k * block_floats,
                            sums_at + part_floats + k * block_floats, c_count * 256L * TAPS, chains == 0);
                    chained = 0;
                    chains++;
                }
                for (int k = 0; k < k_count; k += COLUMN_TILES)
                    for (int number = 0; number < c_count * TAPS; number += ROW_TILES) {
                        const struct row_of_tiles upper = row_of_tiles(number, row, pitch, positions),
                                                  lower = row_of_tiles(number + ROW_TILES - 1, row, pitch, positions);
                        const struct sums_place place = { TAPS * 16, lower.sums - upper.sums, block_floats };
                        global float *at = sums_at + k * block_floats + upper.sums;
                        if (chained)
                            sums_load(&sums, at, place);
                        else
                            sums_clear(&sums);
                        sum_up(&sums, xs + upper.x, row, lower.x - upper.x, dys + k * dy_block, dy_block, t, steps,
                            &copies);
                        sums_store(&sums, at, place);
                    }
                chained += steps;
            }
        }
        for (int k = 0; CHAIN && k < k_count; k++)
            end_chain(part + k * block_floats, sums_at + k * block_floats, sums_at + part_floats + k * block_floats,
                c_count * 256L * TAPS, chains == 0);
    }
    BF16_END
}

BF16_TARGET TASK void conv2d_bf16_weight_gradient(CONV2D_BF16_WEIGHTS_ARGUMENTS(PARAMETER))
{
    conv2d_bf16_weight_gradient_body(CONV2D_BF16_WEIGHTS_ARGUMENTS(NAME), get_group_id(0), get_num_groups(0));
}
