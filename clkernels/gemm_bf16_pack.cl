/* Packs op(A)'s rows or op(B)'s columns ("lines") into tiles of pairs of bfloat16 numbers, as bf16_dots.h reads them.
 *
 *   PARTS    1: the nearest bfloat16 number. 2 or 3: so many, the nearest one, the nearest one to what is left ...; their
 *            sum is the float (of 3), or differs by 2^-17 of it (of 2).
 *   BY_LINE  1: the steps of a line follow one another in the matrix; else the lines of a step
 *   ROWS_OF  1: tiles of op(A), else of op(B)
 *   SUMS     1: sums[line] = the sum of a line's numbers; of one product
 *   STORED   how the matrix is stored (stored.h)
 *
 * to: from word first_to on, [product][part][line tile][k tile][256]; part_to words from a part to the next. Lines and
 * steps beyond the matrix are zero; there are as many line tiles as the launch has groups.
 * With several parts, those of an infinity or NaN are zero: products with other numbers' parts would be NaN. A tile
 * that has one sets its flag, [product][line tile][k tile] from word first_flag on. Its first part, with infinity and
 * NaN, is written once more after the last part, [k tile] by [k tile] as the others.
 *
 * Launched by runtime/gemm_bf16.c: global size (line tiles, 1, products), one work-item per group. */
#include "parameters.h"
#include "stored.h"
#include "arguments/gemm_bf16.h"
#include "bf16_terms.h"
#include "sum.h"
#include "transpose.h"

typedef uint16 uint16_unaligned __attribute__((aligned(4)));
TRANSPOSE(transpose, VU)

/* Numbers i to i + 15 of a row of `length`, of which `count` are there; the others are 0. */
INLINE float16 load_some(global const stored_t *row, int i, int length, int count)
{
    if (count >= 16) return STORED_LOAD(row, i, length);
    float some[16];
    for (int j = 0; j < 16; j++) some[j] = j < count ? STORED_AT(row, i + j, length) : 0.0f;
    return *(const float16 *)some;
}

/* The numbers of a row from i on as even and odd elements along the sum. */
INLINE void load_pairs(global const stored_t *row, int i, int length, int count, float16 *even, float16 *odd)
{
    const float16 x = load_some(row, i, length, count), y = load_some(row, i + 16, length, count - 16);
    *even = (float16)(x.even, y.even);
    *odd = (float16)(x.odd, y.odd);
}

/* words[i]: the pairs of line i (BY_LINE), or of all lines the i-th pair. */
INLINE void store(VU words[V], global uint *to)
{
#if BY_LINE != ROWS_OF
    transpose(words);
#endif
    UNROLL for (int i = 0; i < 16; i++) * (global uint16_unaligned *)(to + 16 * i) = words[i];
}

OUTLINE void gemm_bf16_pack_body(GEMM_BF16_PACK_ARGUMENTS(PARAMETER), int tile, int line_tiles, long product)
{
    const int first = 16 * tile, count = clamp(lines - first, 0, 16);
    const long line_words = (long)tiles * 256;
    from += product * stride;
    global int *flags = (global int *)to + first_flag + (product * line_tiles + tile) * tiles;
    to += first_to + product * part_to * (PARTS + (PARTS > 1)) + tile * line_words;
    float16 sum = 0.0f, error = 0.0f;
    for (int t = 0; t < tiles; t++) {
        float16 even[16], odd[16];
        const int steps = k - 32 * t;
        float16 block = 0.0f;
        for (int i = 0; i < 16; i++) {
#if BY_LINE
            const int line = first + min(i, count - 1);
            load_pairs(from + (long)line * ld, 32 * t, k, i < count ? steps : 0, &even[i], &odd[i]);
#else
            global const stored_t *step = from + (long)(32 * t + 2 * i) * ld;
            even[i] = load_some(step, first, lines, 2 * i < steps ? count : 0);
            odd[i] = load_some(step + ld, first, lines, 2 * i + 1 < steps ? count : 0);
            if (SUMS) block += even[i] + odd[i];
#endif
        }
        if (SUMS) SUM_ADD(float16, sum, error, block);
        VU words[V];
#if PARTS == 1
        UNROLL for (int i = 0; i < 16; i++) words[i] = WORDS_OF(even[i], odd[i]);
        store(words, to + t * 256);
#else
        int16 largest = 0;
        UNROLL for (int i = 0; i < 16; i++) largest = max(largest, max(magnitudes(even[i]), magnitudes(odd[i])));
        flags[t] = 0;
        if (!any(largest >= UNUSUAL)) {
            for (int p = 0; p < PARTS; p++) {
                UNROLL for (int i = 0; i < 16; i++) words[i] = quick_words(&even[i], &odd[i]);
                store(words, to + p * part_to + t * 256);
            }
            continue;
        }
        flags[t] = any(largest >= OUTSIDE);
        if (flags[t]) {
            UNROLL for (int i = 0; i < 16; i++) words[i] = WORDS_OF(even[i], odd[i]);
            store(words, to + PARTS * part_to + t * 256);
        }
        int16 large_even[16], large_odd[16];
        UNROLL for (int i = 0; i < 16; i++)
        {
            large_even[i] = IS_LARGE(even[i]);
            large_odd[i] = IS_LARGE(odd[i]);
        }
        for (int p = 0; p < PARTS; p++) {
            UNROLL for (int i = 0; i < 16; i++) words[i] = next_words(&even[i], &odd[i], large_even[i], large_odd[i]);
            store(words, to + p * part_to + t * 256);
        }
#endif
    }
#if SUMS
    for (int i = 0; i < count; i++) sums[first + i] = ((float *)&sum)[i];
#endif
}

TASK void gemm_bf16_pack(GEMM_BF16_PACK_ARGUMENTS(PARAMETER))
{
    gemm_bf16_pack_body(GEMM_BF16_PACK_ARGUMENTS(NAME), get_group_id(0), get_num_groups(0), get_group_id(2));
}
