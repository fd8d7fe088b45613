/* Convolution by bf16 dot products (bf16_dots.h), on CPU-class devices with vectors of 16 floats:
 *
 *   forward        y[n,k,oh,ow] = sum over c,r,s of x[n, c, oh*stride - padding + r*dilation, ...] w[k,c,r,s] + bias[k]
 *   data gradient  dx[n,c,h,w]  = sum over k,r,s of dy[n, k, (h + padding - r*dilation)/stride, ...] w[k,c,r,s]
 *                  over the taps for which the divisions leave no rest
 *
 * Both are one kernel, as in conv2d_direct_cpu.cl: the data gradient is cut into stride x stride classes of pixels,
 * each of which is a dense convolution of dy with the taps of its class.
 *
 *   source   blocked [N][ceil(C/16)][H][W][16]; IMAGE 1: plain [N][C][H][W] floats, source_blocks channels
 *   packed   bias and weights, see conv2d_bf16_pack_cpu.cl
 *   result   blocked, and `add` like it; result may be add
 *
 * A task takes chunks of units (conv2d_bf16.h) and a range of panels of COLUMNS results. It packs the units' pixels
 * into scratch, [copy][32 channels][phase][position][32]: a tile's row is the 32 channels of a position, 64 bytes; the
 * row below it is the next position. For each panel and ROWS positions the sums of all taps and channels stay in
 * registers; taps come before channels, so that what they read of a unit stays in the first-level cache. Numbers of
 * several PARTS: see gemm_bf16.cl; where a chunk or a panel has an infinity or NaN, copies with them stand in for the
 * first parts once.
 *
 * Launched by layers/conv2d/conv2d_bf16.c with (chunks, panel ranges) tasks. planes: of 32 channels, all groups'; steps:
 * those of a group. positions: of a phase, with what taps read after the last unit. Macros: those of conv2d_bf16.h,
 * STREAM, STATISTICS, GATE, epilogue. */
#include "parameters.h"
#include "arguments/conv2d_bf16.h"
#include "conv2d_cpu_kernel.h"
#define BF16_A SCRATCH
#define BF16_SUMS SCRATCH
#include "bf16_dots.h"
#include "bf16_terms.h"
#include "conv2d_bf16_kernel.h"
#include "conv2d_bf16_packed.h"

#if GRADIENT
#define CLASSES_H STRIDE_H
#define CLASSES_W STRIDE_W
#else
#define CLASSES_H 1
#define CLASSES_W 1
#endif
#define CLASSES (CLASSES_H * CLASSES_W)

/* ---- pixels ---- */

/* Packs a number of each of 16 channels into each copy, copy_halves apart. With several parts, `largest` becomes the
 * largest of the magnitudes. If `careful`, it also writes the copy with infinity and NaN, and parts of unusual
 * numbers are right. */
INLINE void pack_pixel(const global in0_t *from, SCRATCH ushort *to, long copy_halves, bool careful, int16 *largest)
{
#if PARTS == 1 && IS_BF16(IN0_TYPE)
    *(SCRATCH halves *)to = *(const global halves *)from;
#else
    float16 left = LOAD_AS(IN0_TYPE, 0, from);
#if PARTS == 1
    *(SCRATCH halves *)to = round_to_bf16(left);
#else
    *largest = max(*largest, magnitudes(left));
    if (!careful) {
        for (int p = 0; p < PARTS; p++) *(SCRATCH halves *)(to + p * copy_halves) = AS_HALVES(quick_part(&left) >> 16);
        return;
    }
    *(SCRATCH halves *)(to + SPECIAL * copy_halves) = round_to_bf16(left);
    const int16 large = IS_LARGE(left);
    for (int p = 0; p < PARTS; p++) *(SCRATCH halves *)(to + p * copy_halves) = AS_HALVES(next_part(&left, large));
#endif
#endif
}

#if IMAGE
/* Columns `first` to first + 15 of a row of the image, zeros next to it. */
INLINE float16 load_pixels(const global float *row, int first, int width)
{
    if (first >= 0 && first + 16 <= width) return *(const global VF_unaligned *)(row + first);
    float16 pixels = 0.0f;
    for (int i = max(0, -first); i < min(16, width - first); i++) ((float *)&pixels)[i] = row[first + i];
    return pixels;
}

/* 16 pixels of 4 numbers. */
INLINE void store_pixels(uint16 first_two, uint16 last_two, SCRATCH ushort *to)
{
    uint16 low, high;
    low.even = first_two.lo;
    low.odd = last_two.lo;
    high.even = first_two.hi;
    high.odd = last_two.hi;
    *(SCRATCH pair_vector *)to = low;
    *(SCRATCH pair_vector *)(to + 32) = high;
}

/* Packs 16 pixels into each copy; see pack_pixel(). */
INLINE void pack_pixels(float16 pixels[4], SCRATCH ushort *to, long copy_halves, bool careful, int16 *largest)
{
#if PARTS == 1
    store_pixels(WORDS_OF(pixels[0], pixels[1]), WORDS_OF(pixels[2], pixels[3]), to);
#else
    int16 large[4];
    for (int c = 0; c < 4; c++) {
        *largest = max(*largest, magnitudes(pixels[c]));
        large[c] = IS_LARGE(pixels[c]);
    }
    if (careful)
        store_pixels(WORDS_OF(pixels[0], pixels[1]), WORDS_OF(pixels[2], pixels[3]), to + SPECIAL * copy_halves);
    for (int p = 0; p < PARTS; p++)
        if (careful)
            store_pixels(next_words(&pixels[0], &pixels[1], large[0], large[1]),
                next_words(&pixels[2], &pixels[3], large[2], large[3]), to + p * copy_halves);
        else
            store_pixels(
                quick_words(&pixels[0], &pixels[1]), quick_words(&pixels[2], &pixels[3]), to + p * copy_halves);
#endif
}

/* Packs a chunk's units of the image in one phase of rows. What is written after a row is written again. */
INLINE void pack_image(const global float *source, SCRATCH ushort *to, long copy_halves, int channels,
    int source_height, int source_width, int first, int count, int per_image, int band, int grid_rows, int pitch,
    int positions, int row_start, int column_start, bool careful, int16 *largest)
{
    const long plane = (long)source_height * source_width;
    for (int u = 0; u < count; u++) {
        const struct unit unit = unit_of(first + u, per_image, band);
        for (int j = 0; j < grid_rows; j++) {
            const int y = (unit.first + j) * STRIDE_H + row_start;
            const bool inside = y >= 0 && y < source_height;
            const global float *row = source + unit.image * channels * plane + (long)max(y, 0) * source_width;
            SCRATCH ushort *row_to = to + (u * grid_rows + j) * pitch * NUMBERS;
            for (int i = 0; i < pitch * STRIDE_W; i += 16) {
                float16 pixels[4];
                for (int c = 0; c < 4; c++)
                    pixels[c] = inside && c < channels ? load_pixels(row + c * plane, i + column_start, source_width)
                                                       : (float16)(0.0f);
                pack_pixels(pixels, row_to + i * 4, copy_halves, careful, largest);
            }
        }
    }
    for (long i = (long)count * grid_rows * pitch * NUMBERS; i < (long)positions * NUMBERS; i++)
        for (int p = 0; p < COPIES; p++) to[p * copy_halves + i] = 0;
}
#else
INLINE void pack_zeros(SCRATCH ushort *to, int count, long copy_halves)
{
    for (int i = 0; i < count; i++)
        for (int p = 0; p < COPIES; p++) *(SCRATCH halves *)(to + p * copy_halves + i * 32) = (ushort16)(0);
}

/* Packs 16 channels of a chunk's units in one phase; see pack_pixel(). */
INLINE void pack_phase(const global in0_t *source, SCRATCH ushort *to, long copy_halves, int block, int source_blocks,
    int source_height, int source_width, int first, int count, int per_image, int band, int grid_rows, int pitch,
    int positions, int row_start, int column_start, bool careful, int16 *largest)
{
    const int begin = first_inside(column_start, STEP_W, pitch),
              end = end_inside(column_start, STEP_W, source_width, pitch);
    for (int u = 0; u < count; u++) {
        const struct unit unit = unit_of(first + u, per_image, band);
        const global in0_t *plane =
            source + ((size_t)unit.image * source_blocks + block) * source_height * source_width * 16;
        for (int j = 0; j < grid_rows; j++) {
            const int y = (unit.first + j) * STEP_H + row_start;
            SCRATCH ushort *row = to + (u * grid_rows + j) * pitch * 32;
            if (block >= source_blocks || y < 0 || y >= source_height) {
                pack_zeros(row, pitch, copy_halves);
                continue;
            }
            const global in0_t *from = plane + ((size_t)y * source_width + column_start) * 16;
            pack_zeros(row, begin, copy_halves);
            for (int i = begin; i < end; i++)
                pack_pixel(from + (long)i * STEP_W * 16, row + i * 32, copy_halves, careful, largest);
            pack_zeros(row + end * 32, pitch - end, copy_halves);
        }
    }
    const int packed = count * grid_rows * pitch;
    pack_zeros(to + packed * 32, positions - packed, copy_halves);
}

#endif

/* ---- taps and results ---- */

struct taps {
    int count;
    int offset[TAPS], number[TAPS]; /* words from a position; the tap in the packed weights */
};

INLINE struct taps taps_of(int class_h, int class_w, int pitch, int positions, int start_h, int start_w)
{
    struct taps taps;
    taps.count = 0;
    LOOP for (int r = 0; r < R; r++) LOOP for (int s = 0; s < TAP_COLUMNS; s++)
    {
#if GRADIENT
        const int down = class_h + PADDING_H - r * DILATION_H, right = class_w + PADDING_W - s * DILATION_W;
        if (down % STRIDE_H || right % STRIDE_W) continue;
        const int row = down / STRIDE_H - start_h, column = right / STRIDE_W - start_w, phase = 0;
#elif IMAGE
        const int row = r / STRIDE_H, phase = r % STRIDE_H, column = 0;
#else
        const int row = r * DILATION_H / STRIDE_H, column = s * DILATION_W / STRIDE_W;
        const int phase = r * DILATION_H % STRIDE_H * PHASES_W + s * DILATION_W % STRIDE_W;
#endif
        taps.offset[taps.count] = (phase * positions + row * pitch + column) * (NUMBERS / 2) + (IMAGE ? s * 16 : 0);
        taps.number[taps.count++] = r * TAP_COLUMNS + s;
    }
    return taps;
}

/* Where the results of a chunk's positions go, in pixels from the first block of the first image; -1: nowhere. */
INLINE void find_results(SCRATCH long *where, int end, int class_h, int class_w, int first, int count, int per_image,
    int band, int grid_rows, int pitch, int grid_height, int grid_width, int result_blocks, int result_height,
    int result_width)
{
    int position = 0;
    for (int u = 0; u < count; u++) {
        const struct unit unit = unit_of(first + u, per_image, band);
        const long image = (long)unit.image * result_blocks * result_height * result_width;
        for (int j = 0; j < grid_rows && position < end; j++) {
            const int y = unit.first + j, h = y * CLASSES_H + class_h;
            const bool inside = j < band && y < grid_height && h < result_height;
            for (int i = 0; i < pitch && position < end; i++, position++) {
                const int w = i * CLASSES_W + class_w;
                where[position] =
                    inside && i < grid_width && w < result_width ? image + (long)h * result_width + w : -1;
            }
        }
    }
    for (; position < end; position++) where[position] = -1;
}

/* Stores ROWS results of one block of 16 channels. */
INLINE void put(SCRATCH const float *unit, VF bias, const SCRATCH long *where, long block, const global add_t *add,
    global out0_t *result, struct tally *all)
{
    int i = 0;
    while (i < ROWS && where[i] < 0) i++;
    if (i == ROWS) return;
    struct tally tile = tally_tile(all, SCRATCH_LOAD(i * COLUMN_TILES, unit) + bias);
    for (; i < ROWS; i++) {
        if (where[i] < 0) continue;
        const size_t at = (size_t)(where[i] + block) * 16;
        const VF taken = tally_take(&tile, SCRATCH_LOAD(i * COLUMN_TILES, unit) + bias, add, at);
        STORE(result + at, FINISH(taken, add, at));
    }
    tally_join(all, &tile);
}

/* Sums the products of all taps and channels of a group. All products of a tap's parts are made while its tiles are
 * near. */
INLINE BF16_TARGET void sum_up(SUMS *sums, SCRATCH const pair_word *a, long plane_words, global const uint *b,
    int steps, const struct taps *taps, const struct copies *copies)
{
    for (int s = 0; s < steps; s++, a += plane_words, b += STEP_WORDS)
        for (int t = 0; t < taps->count; t++)
            for (int p = 0; p < PRODUCTS; p++)
                sums_add(sums, a + copies->a[p] + taps->offset[t], NUMBERS / 2, 16 * NUMBERS,
                    b + copies->b[p] + taps->number[t] * COLUMN_TILES * TILE, TILE);
}

OUTLINE BF16_TARGET void conv2d_bf16_body(
    CONV2D_BF16_ARGUMENTS(PARAMETER) STATISTICS_PARAMETER, int range, int first_chunk, int chunk_step)
{
    const int panel_first = range * panels_max, panel_last = min(panel_first + panels_max, panels);
    const int end = (units_max * grid_rows * pitch + ROWS - 1) / ROWS * ROWS; /* of positions with results */
    SCRATCH long *where = (SCRATCH long *)scratch;
    SCRATCH float *unit = (SCRATCH float *)(where + (long)CLASSES * end);
    SCRATCH ushort *pixels = (SCRATCH ushort *)(unit + ROWS * COLUMNS);
    const int planes = IMAGE ? 1 : (source_blocks + 1) / 2, chunks = (units_all + units_max - 1) / units_max;
    const long plane_words = (long)PHASES * positions * (NUMBERS / 2), copy_words = plane_words * planes;
    const struct sums_place in_unit = { COLUMNS, 16 * COLUMNS, 16 };
    SUMS sums;
    BF16_BEGIN
    for (int chunk = first_chunk; chunk < chunks; chunk += chunk_step) {
        const int first = chunk * units_max, count = min(units_max, units_all - first);
        bool outside = false, unusual = false;
        for (int careful = 0; careful <= unusual; careful++) {
            int16 largest = 0;
#if IMAGE
            for (int phase = 0; phase < PHASES; phase++)
                pack_image(source, pixels + (long)phase * positions * NUMBERS, 2 * copy_words, source_blocks,
                    source_height, source_width, first, count, per_image, band, grid_rows, pitch, positions,
                    phase + start_h, start_w, careful, &largest);
#else
            for (int block = 0; block < 2 * planes; block++)
                for (int phase = 0; phase < PHASES; phase++)
                    pack_phase(source,
                        pixels + block / 2 * plane_words * 2 + (long)phase * positions * 32 + block % 2 * 16,
                        2 * copy_words, block, source_blocks, source_height, source_width, first, count, per_image,
                        band, grid_rows, pitch, positions, phase / PHASES_W + start_h, phase % PHASES_W + start_w,
                        careful, &largest);
#endif
#if PARTS > 1
            unusual = any(largest >= UNUSUAL);
            outside = any(largest >= OUTSIDE);
#endif
        }
        for (int which = 0; which < CLASSES; which++)
            find_results(where + (long)which * end, end, which / CLASSES_W, which % CLASSES_W, first, count, per_image,
                band, grid_rows, pitch, grid_height, grid_width, result_blocks, result_height, result_width);
        for (int panel = panel_first; panel < panel_last; panel++) {
            struct tally all[COLUMN_TILES];
            for (int k = 0; k < COLUMN_TILES; k++) all[k] = TALLY_OF(panel * COLUMN_TILES + k);
            const global float *bias = (const global float *)packed + BIAS_FROM(panels, steps) + panel * COLUMNS;
            const global uint *b = packed + WORDS_FROM(panels, steps) + (long)panel * steps * STEP_WORDS;
            SCRATCH const pair_word *a = (SCRATCH const pair_word *)pixels + panel / panels_group * steps * plane_words;
            bool special = outside;
            for (int s = 0; s < steps && PARTS > 1; s++)
                special |= ((const global int *)packed)[panel * steps + s] != 0;
            const struct copies copies = copies_of(special, copy_words, COPY_WORDS(panels, steps));
            for (int which = 0; which < CLASSES; which++) {
                const struct taps taps =
                    taps_of(which / CLASSES_W, which % CLASSES_W, pitch, positions, start_h, start_w);
                for (int position = 0; position + (grid_rows - band) * pitch < count * grid_rows * pitch;
                     position += ROWS) {
                    sums_clear(&sums);
                    sum_up(&sums, a + position * (NUMBERS / 2), plane_words, b, steps, &taps, &copies);
                    sums_store(&sums, unit, in_unit);
                    for (int k = 0; k < COLUMN_TILES; k++) {
                        const int block = panel * COLUMN_TILES + k;
                        if (block < result_blocks)
                            put(unit + k * 16, VLOAD(k, bias), where + (long)which * end + position,
                                (long)block * result_height * result_width, add, result, &all[k]);
                    }
                }
            }
            for (int k = 0; k < COLUMN_TILES; k++)
                if (panel * COLUMN_TILES + k < result_blocks)
                    TALLY_STORE(&all[k], chunk, result_blocks, panel * COLUMN_TILES + k);
        }
    }
    BF16_END
}

BF16_TARGET TASK void conv2d_bf16(CONV2D_BF16_ARGUMENTS(PARAMETER) STATISTICS_PARAMETER)
{
    conv2d_bf16_body(
        CONV2D_BF16_ARGUMENTS(NAME) STATISTICS_ARGUMENT, get_group_id(1), get_group_id(0), get_num_groups(0));
}
