/* Packs plain weights w [K][C of a group][taps] for conv2d_bf16_cpu.cl, as bf16_dots.h reads columns:
 *
 *   packed: see conv2d_bf16_packed.h; a tile is [16 pairs of sources][16 results]
 *
 * A panel has COLUMNS results of one group: K in the forward pass, C for the data gradient (GRADIENT); a step has 32
 * sources. Numbers that do not exist are zero.
 *
 * Launched by layers/conv2d/conv2d_bf16.c with (steps, panels) tasks. sources, results: of a group.
 * IMAGE 1 (conv2d_bf16.h): a tap is 8 of the S taps of a row, its sources 8 columns of 4 channels.
 * Macros: TAPS, S, IMAGE, AT_ONCE (sources, even, divides 32), GRADIENT, HAS_BIAS, PARTS, BF16_FORM. */
#include "parameters.h"
#include "arguments/conv2d_bf16.h"
#include "bf16_dots.h"
#include "bf16_terms.h"
#include "conv2d_bf16_packed.h"
#include "transpose.h"

#if IMAGE
/* Numbers of AT_ONCE sources from `source` on, as load_sources() gives them. */
INLINE void load_image_sources(const global float *w, int source, int channels, int result, int results, float16 *to)
{
    const int columns = (S + 7) / 8, rows = TAPS / columns;
    for (int i = 0; i < AT_ONCE; i++)
        for (int tap = 0; tap < TAPS; tap++) {
            const int c = (source + i) % 4, r = tap / columns, s = tap % columns * 8 + (source + i) / 4;
            for (int l = 0; l < 16; l++)
                ((float *)&to[i * TAPS + tap])[l] = c < channels && s < S && result + l < results
                    ? w[(((long)(result + l) * channels + c) * rows + r) * S + s]
                    : 0.0f;
        }
}
#else
TRANSPOSE(transpose, VF)

/* to[e] = number e of each of 16 lines, lane_stride apart; `lanes` of them exist. left: numbers that may be read from
 * `from` on. */
INLINE void load_lines(const global float *from, long lane_stride, int lanes, int count, long left, float16 *to)
{
    if (lane_stride == 1 && count == 1 && lanes >= 16) {
        to[0] = VLOAD(0, from);
        return;
    }
    if (count == 1 || (count < 16 && (lanes - 1) * lane_stride + 16 > left)) {
        LOOP for (int e = 0; e < count; e++) UNROLL for (int l = 0; l < 16; l++)((float *)&to[e])[l] =
            l < lanes ? from[l * lane_stride + e] : 0.0f;
        return;
    }
    LOOP for (int e = 0; e < count; e += 16)
    {
        const int at = max(min(e, count - 16), 0); /* the last ones overlap those before */
        VF lines[16];
        UNROLL for (int l = 0; l < 16; l++) lines[l] =
            l < lanes ? VLOAD(0, from + min(l, lanes - 1) * lane_stride + at) : (VF)(0.0f);
        transpose(lines);
        UNROLL for (int l = 0; l < 16; l++) if (l < count) to[at + l] = lines[l];
    }
}

/* Numbers of AT_ONCE sources from `source` on, tap by tap, for 16 results from `result` on. */
INLINE void load_sources(
    const global float *w, int group, int groups, int source, int sources, int result, int results, float16 *to)
{
    const int count = clamp(sources - source, 0, AT_ONCE), lanes = clamp(results - result, 0, 16);
    LOOP for (int e = lanes ? count * TAPS : 0; e < AT_ONCE * TAPS; e++) to[e] = (float16)(0.0f);
    if (!lanes || !count) return;
#if GRADIENT
    const long line = (long)results * TAPS, all = (long)groups * sources * line; /* line: of one K */
    for (int i = 0; i < count; i++) {
        const long at = ((long)group * sources + source + i) * line + result * TAPS;
        LOOP for (int e = 0; e < lanes * TAPS; e += 16) PREFETCH(w + at + 2 * line + e);
        load_lines(w + at, TAPS, lanes, TAPS, all - at, to + i * TAPS);
    }
#else
    const long line = (long)sources * TAPS, at = ((long)group * results + result) * line + source * TAPS;
    load_lines(w + at, line, lanes, count * TAPS, (long)groups * results * line - at, to);
#endif
}

#endif

/* The words of a pair of sources for 16 results, in each copy. Returns whether one is infinity or NaN. */
INLINE bool store_pair(float16 even, float16 odd, global uint *to, long copy_words)
{
#if PARTS == 1
    *(global pair_vector *)to = WORDS_OF(even, odd);
    return false;
#else
    const int16 largest = max(magnitudes(even), magnitudes(odd));
    if (!any(largest >= UNUSUAL)) {
        for (int p = 0; p < PARTS; p++) {
            const uint16 words = quick_words(&even, &odd);
            if (p == 0) *(global pair_vector *)(to + PARTS * copy_words) = words;
            *(global pair_vector *)(to + p * copy_words) = words;
        }
        return false;
    }
    *(global pair_vector *)(to + PARTS * copy_words) = WORDS_OF(even, odd);
    const int16 large_even = IS_LARGE(even), large_odd = IS_LARGE(odd);
    for (int p = 0; p < PARTS; p++)
        *(global pair_vector *)(to + p * copy_words) = next_words(&even, &odd, large_even, large_odd);
    return any(largest >= OUTSIDE);
#endif
}

OUTLINE void conv2d_bf16_pack_body(CONV2D_BF16_PACK_ARGUMENTS(PARAMETER), int step, int panel)
{
    const int group = panel / panels_group, first = (panel - group * panels_group) * COLUMNS;
    if (step == 0)
        for (int i = 0; i < COLUMNS; i++)
            ((global float *)packed)[BIAS_FROM(panels, steps) + panel * COLUMNS + i] =
                HAS_BIAS && first + i < results ? bias[group * results + first + i] : 0.0f;
    global uint *to = packed + WORDS_FROM(panels, steps) + ((long)panel * steps + step) * STEP_WORDS;
    bool outside = false;
    for (int tile = 0; tile < COLUMN_TILES; tile++)
        for (int at = 0; at < 32; at += AT_ONCE) {
            float16 numbers[AT_ONCE * TAPS];
#if IMAGE
            load_image_sources(w, at, sources, first + tile * 16, results, numbers);
#else
            load_sources(w, group, panels / panels_group, step * 32 + at, sources, first + tile * 16, results, numbers);
#endif
            for (int i = 0; i < AT_ONCE; i += 2)
                for (int tap = 0; tap < TAPS; tap++)
                    outside |= store_pair(numbers[i * TAPS + tap], numbers[(i + 1) * TAPS + tap],
                        to + (tap * COLUMN_TILES + tile) * TILE + (at + i) / 2 * 16, COPY_WORDS(panels, steps));
        }
    ((global int *)packed)[panel * steps + step] = outside;
}

TASK void conv2d_bf16_pack(CONV2D_BF16_PACK_ARGUMENTS(PARAMETER))
{
    conv2d_bf16_pack_body(CONV2D_BF16_PACK_ARGUMENTS(NAME), get_group_id(0), get_group_id(1));
}
