/* What the bf16 convolutions share: the grid of positions.
 *
 * A unit is a band of rows of one image. In scratch its pixels lie in a grid of `grid_rows` x `pitch` positions with
 * the zero padding written out, one unit after the other, so that a tap reads at a fixed distance from each position:
 * 16 neighbouring positions are the rows of a tile, wherever rows and images end; what is computed for positions
 * outside the result is dropped. Zeros after a row serve as those before the next one. With a stride, there is a grid
 * for each phase, the rest that a source's row (column) leaves; position (j, i) of phase (fh, fw) of a unit with first
 * row y is
 *
 *   source row (y + j) STEP_H + fh + start_h, column i STEP_W + fw + start_w
 *
 * IMAGE 1: of a plain image of up to 4 channels. A position is STRIDE_W pixels of 4 numbers, missing channels zero, and
 * there are no phases of columns. A tap is 8 of a row's taps: its 32 numbers lie one after another from a position on,
 * and weights after the last tap are zero. So an infinite pixel makes NaN of results up to 7 columns away.
 *
 * NUMBERS: of a position in a plane. Included after bf16_terms.h.
 * Macros: R, S, STRIDE_H, STRIDE_W, DILATION_H, DILATION_W, GRADIENT and, of it, PADDING_H, PADDING_W, PHASES_H,
 * PHASES_W, PARTS, BF16_FORM, SCRATCH_GLOBAL.
 */
#ifndef CONV2D_BF16_H
#define CONV2D_BF16_H
#define PHASES (PHASES_H * PHASES_W)
#ifndef IMAGE
#define IMAGE 0
#endif
#if IMAGE
#define TAP_COLUMNS ((S + 7) / 8)
#define NUMBERS (4 * STRIDE_W)
#else
#define TAP_COLUMNS S
#define NUMBERS 32
#endif
#define TAPS (R * TAP_COLUMNS)
#if GRADIENT
#define STEP_H 1
#define STEP_W 1
#else
#define STEP_H STRIDE_H
#define STEP_W STRIDE_W
#endif
/* Copies of a number: its parts, and the first one once more with infinity and NaN (bf16_terms.h). */
#define COPIES (PARTS + (PARTS > 1))
#define SPECIAL PARTS

/* Where the copies that a product multiplies begin. special: an infinity or NaN is among the numbers. */
struct copies {
    long a[PRODUCTS], b[PRODUCTS];
};

INLINE struct copies copies_of(bool special, long a_copy, long b_copy)
{
    struct copies copies;
    for (int p = 0; p < PRODUCTS; p++) {
        copies.a[p] = (p == 0 && special ? SPECIAL : part_of_a[p]) * a_copy;
        copies.b[p] = (p == 0 && special ? SPECIAL : part_of_b[p]) * b_copy;
    }
    return copies;
}

struct unit {
    int image, first; /* first: row of the grid */
};

INLINE struct unit unit_of(int number, int per_image, int band)
{
    struct unit unit;
    unit.image = number / per_image;
    unit.first = (number - unit.image * per_image) * band;
    return unit;
}

/* Positions of a row whose columns, from `start` on in steps, lie in a source row of `width` numbers. */
INLINE int first_inside(int start, int step, int pitch)
{
    return clamp((-start + step - 1) / step, 0, pitch);
}
INLINE int end_inside(int start, int step, int width, int pitch)
{
    return clamp((width - start + step - 1) / step, 0, pitch);
}

typedef ushort16 halves __attribute__((aligned(2)));
#define AS_HALVES(words) __builtin_convertvector(words, ushort16)
#endif
