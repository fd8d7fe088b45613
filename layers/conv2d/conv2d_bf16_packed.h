/* Packed weights of conv2d_bf16_cpu.cl, in words:
 *
 *   [panel][step]                                  whether there is an infinity or NaN; up to a multiple of 16
 *   [panel][COLUMNS]                               bias, from BIAS_FROM on
 *   [copy][panel][step][tap][COLUMN_TILES][tile]   from WORDS_FROM on: COPY_WORDS a copy, STEP_WORDS a step
 *
 * Copies: the PARTS parts of a number and, if there are several, the first one once more with infinity and NaN. */
#ifndef CONV2D_BF16_PACKED_H
#define CONV2D_BF16_PACKED_H
#define BIAS_FROM(panels, steps) (((long)(panels) * (steps) + 15) / 16 * 16)
#define WORDS_FROM(panels, steps) (BIAS_FROM(panels, steps) + (long)(panels)*COLUMNS)
#define STEP_WORDS ((long)TAPS * COLUMN_TILES * TILE)
#define COPY_WORDS(panels, steps) ((long)(panels) * (steps)*STEP_WORDS)
#endif
