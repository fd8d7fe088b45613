/* Matrix product on CPU-class devices that compute bf16 dot products (bf16_dots.h):
 *
 *   C = ACTIVATION(op(A) op(B) + bias + added),   row-major; MASK: C is multiplied by the derivative of the activation whose output is `added`
 *
 * packed: what gemm_bf16_pack.cl makes of A, and from word from_b on of B; part_* words from a part of the numbers
 * to the next, stride_a, stride_b words and stride_c floats from a product of the batch to the next. With PARTS 1 the
 * numbers are rounded. With 2 or 3, the products of parts that are not too small for the sum to hold are summed, the
 * largest ones first: 3 or 6 for each pair of numbers. The error is then that of TF32's better half, or no larger
 * than that of a chain of floats' multiply-adds. Where a tile's flag tells of an infinity or NaN, a copy of its first
 * part that has them stands in for the first part once: their products with the other numbers' first parts are what
 * they must be.
 *
 * Launched by runtime/gemm_bf16.c: global size (ceil(n / columns), ceil(m / rows), batch), one work-item per group. A task
 * is a block of C; it walks down `kept` rows for each COLUMNS of columns, `depth` tiles along the sum at a time: those of B
 * stay in the first-level cache meanwhile, and the rows' sums wait in `unit`. A chain of additions has the products of at
 * most `chain` tiles, a multiple of depth; several are added with their rounding errors carried along, as sum.h says, in
 * two more planes of `unit`.
 * Bartlett, Henry, Tang, Heinecke: Leveraging the bfloat16 Artificial Intelligence Datatype For Higher-Precision
 * Computations (ARITH 2019): numbers as sums of bfloat16 numbers. */
#include "parameters.h"
#include "arguments/gemm_bf16.h"
#include "bf16_dots.h"
#include "bf16_terms.h"
#include "gemm_finish.h"
#include "sum.h"

FINISH(VF_unaligned)

/* 1: the small products come first. Form 2 adds each pair's product to the sum, which rounds them less then. */
#define SMALL_FIRST (BF16_FORM == 2)

/* Adds the products of `count` tiles along the sum; `line` words from a row (column) of tiles to the next. */
INLINE BF16_TARGET void add_tiles(SUMS *sums, global const uint *a, global const uint *b, long line, int count)
{
    for (int t = 0; t < count; t++) sums_add(sums, a + t * TILE, 16, 2 * line, b + t * TILE, line);
}

#if PARTS > 1
/* Tells whether one of the unit's tiles has an infinity or NaN. */
INLINE bool has_outside(global const int *flags, int lines, int tiles, int count)
{
    int any = 0;
    for (int i = 0; i < lines; i++)
        for (int t = 0; t < count; t++) any |= flags[i * tiles + t];
    return any != 0;
}

/* Adds the product of first parts, with infinities and NaN where there are any. */
INLINE BF16_TARGET void add_outside(SUMS *sums, global const uint *a, long a_special, global const int *flags_a,
    global const uint *b, long b_special, global const int *flags_b, int tiles, int count)
{
    const long line = (long)tiles * TILE;
    for (int t = 0; t < count; t++) {
        long in_a[ROW_TILES], in_b[COLUMN_TILES];
        for (int i = 0; i < ROW_TILES; i++) in_a[i] = i * line + (flags_a[i * tiles + t] ? a_special : 0);
        for (int j = 0; j < COLUMN_TILES; j++) in_b[j] = j * line + (flags_b[j * tiles + t] ? b_special : 0);
        sums_add(sums, a + in_a[0] + t * TILE, 16, 2 * (in_a[ROW_TILES - 1] - in_a[0]), b + in_b[0] + t * TILE,
            in_b[COLUMN_TILES - 1] - in_b[0]);
    }
}
#endif

/* Adds the unit's chain to those before it, whose sums and errors lie `plane` and 2 * plane floats after it. */
INLINE void end_chain(local float *unit, long plane, bool first)
{
    LOOP for (int i = 0; i < ROWS * COLUMNS; i += V)
    {
        VF sum = 0.0f, error = 0.0f;
        if (!first) sum = LOCAL_LOAD(0, unit + plane + i), error = LOCAL_LOAD(0, unit + 2 * plane + i);
        SUM_ADD(VF, sum, error, LOCAL_LOAD(0, unit + i));
        LOCAL_STORE(sum, 0, unit + plane + i);
        LOCAL_STORE(error, 0, unit + 2 * plane + i);
    }
}

/* Stores ni x nj of the unit's sums. */
INLINE void finish(local const float *unit, global float *to, int ldc, int ni, int nj, global const float *bias,
    global const float *added)
{
    for (int i = 0; i < ni; i++) {
        const long row = (long)i * ldc;
        for (int j = 0; j < nj; j += V) {
            local const float *from = unit + i * COLUMNS + j;
            if (j + V <= nj) {
                VSTORE(finish_VF_unaligned(LOCAL_LOAD(0, from), bias ? bias + j : 0, added ? added + row + j : 0), 0,
                    to + row + j);
            } else {
                for (int l = 0; l < nj - j; l++)
                    to[row + j + l] = finish_float(from[l], bias ? bias + j + l : 0, added ? added + row + j + l : 0);
            }
        }
    }
}

OUTLINE BF16_TARGET void gemm_bf16_body(GEMM_BF16_ARGUMENTS(PARAMETER), int column_task, int row_task, long product)
{
    const int i_first = row_task * rows, i_end = min(i_first + rows, m);
    const int j_first = column_task * columns, j_end = min(j_first + columns, n);
    const long line = (long)tiles * TILE, plane = chain < tiles ? (long)kept * COLUMNS : 0;
    global const uint *A = packed + product * stride_a, *B = packed + from_b + product * stride_b;
    C += product * stride_c;
    if (added) added += product * stride_c;
    SUMS sums;
    const struct sums_place in_unit = { COLUMNS, 16 * COLUMNS, 16 };
    BF16_BEGIN
    for (int first = i_first; first < i_end; first += kept)
        for (int j = j_first; j < j_end; j += COLUMNS)
            for (int t = 0; t < tiles; t += depth) {
                const int count = min(depth, tiles - t), last = min(first + kept, i_end);
                const bool ends = t + count == tiles || (t + count) % chain == 0;
                for (int i = first; i < last; i += ROWS) {
                    global const uint *a = A + i / 16 * line + t * TILE, *b = B + j / 16 * line + t * TILE;
                    local float *in = unit + (depth < tiles ? (i - first) * COLUMNS : 0);
                    if (t % chain)
                        sums_load(&sums, in, in_unit);
                    else
                        sums_clear(&sums);
#if PARTS == 1
                    add_tiles(&sums, a, b, line, count);
#else
                    global const int *flags = (global const int *)packed;
                    global const int *fa = flags + flags_a + product * flags_stride_a + i / 16 * tiles + t;
                    global const int *fb = flags + flags_b + product * flags_stride_b + j / 16 * tiles + t;
                    const bool outside =
                        has_outside(fa, ROW_TILES, tiles, count) || has_outside(fb, COLUMN_TILES, tiles, count);
                    for (int q = outside; q < PRODUCTS; q++) {
                        const int p = SMALL_FIRST ? PRODUCTS - 1 + outside - q : q;
                        add_tiles(&sums, a + part_of_a[p] * part_a, b + part_of_b[p] * part_b, line, count);
                    }
                    if (outside) add_outside(&sums, a, PARTS * part_a, fa, b, PARTS * part_b, fb, tiles, count);
#endif
                    sums_store(&sums, in, in_unit);
                    if (plane && ends) end_chain(in, plane, t < chain);
                    if (t + count == tiles)
                        finish(in + plane, C + (long)i * ldc + j, ldc, min(ROWS, i_end - i), min(COLUMNS, j_end - j),
                            bias ? bias + j : 0, added ? added + (long)i * ldc + j : 0);
                }
            }
    BF16_END
}

BF16_TARGET TASK void gemm_bf16(GEMM_BF16_ARGUMENTS(PARAMETER))
{
    gemm_bf16_body(GEMM_BF16_ARGUMENTS(NAME), get_group_id(0), get_group_id(1), get_group_id(2));
}
