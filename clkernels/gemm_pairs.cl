/* Matrix product on CPU-class devices that multiply pairs of bfloat16 numbers (pairs.h):
 *
 *   C = ACTIVATION(op(A) op(B) + bias + added),   row-major; MASK: C goes behind an activation whose output is `added`
 *
 * packed: what gemm_pairs_pack.cl makes of A, and from word from_b on of B; part_* words from a part of the numbers to
 * the next, stride_a, stride_b words and stride_c floats from a product of the batch to the next. Of PARTS 1 the numbers
 * are rounded. Of 2 or 3, products of parts are summed whose place is not below what the sum can hold, the largest ones
 * first: 3 or 6 for each pair of numbers. The error is then that of TF32's better half, or no larger than that of a chain of
 * floats' multiply-adds. Where a tile has an infinity or NaN (its flag), its first part with them stands in for the first
 * part once: their products with the other numbers' first parts are what they must be.
 *
 * Launched by runtime/gemm_pairs.c: global size (ceil(n / columns), ceil(m / rows), batch), one work-item per group. A task
 * is a block of C; it walks down the rows for each COLUMNS of columns, whose tiles stay in the second-level cache.
 * Bartlett, Henry, Tang, Heinecke: Leveraging the bfloat16 Artificial Intelligence Datatype For Higher-Precision
 * Computations (ARITH 2019): numbers as sums of bfloat16 numbers. */
#include "parameters.h"
#include "arguments/gemm_pairs.h"
#include "pairs.h"
#include "pairs_parts.h"
#include "gemm_finish.h"

FINISH(VF_unaligned)

/* The products of so many tiles along the sum. */
INLINE PAIRS_TARGET void add_tiles(SUMS *sums, global const uint *a, global const uint *b, int tiles)
{
    const long apart = (long)tiles * TILE;
    for (int t = 0; t < tiles; t++) sums_add(sums, a + t * TILE, 16, apart, b + t * TILE, apart);
}

#if PARTS > 1
/* Whether a tile of the unit's lines has an infinity or NaN. */
INLINE bool has_outside(global const int *flags, int lines, int tiles)
{
    int any = 0;
    for (int i = 0; i < lines * tiles; i++) any |= flags[i];
    return any != 0;
}

/* The product of first parts, with infinities and NaN where there are any. */
INLINE PAIRS_TARGET void add_outside(SUMS *sums, global const uint *a, long a_special, global const int *flags_a,
    global const uint *b, long b_special, global const int *flags_b, int tiles)
{
    const long apart = (long)tiles * TILE;
    for (int t = 0; t < tiles; t++) {
        long in_a[ROW_TILES], in_b[COLUMN_TILES];
        for (int i = 0; i < ROW_TILES; i++) in_a[i] = i * apart + (flags_a[i * tiles + t] ? a_special : 0);
        for (int j = 0; j < COLUMN_TILES; j++) in_b[j] = j * apart + (flags_b[j * tiles + t] ? b_special : 0);
        sums_add(sums, a + in_a[0] + t * TILE, 16, in_a[ROW_TILES - 1] - in_a[0], b + in_b[0] + t * TILE,
            in_b[COLUMN_TILES - 1] - in_b[0]);
    }
}
#endif

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

OUTLINE PAIRS_TARGET void gemm_pairs_body(PAIRS_ARGUMENTS(PARAMETER), int column_task, int row_task, long product)
{
    const int i_first = row_task * rows, i_end = min(i_first + rows, m);
    const int j_first = column_task * columns, j_end = min(j_first + columns, n);
    const long line = (long)tiles * TILE;
    global const uint *A = packed + product * stride_a, *B = packed + from_b + product * stride_b;
    C += product * stride_c;
    if (added) added += product * stride_c;
    SUMS sums;
    const struct sums_place in_unit = { COLUMNS, 16 * COLUMNS, 16 };
    PAIRS_BEGIN
    for (int j = j_first; j < j_end; j += COLUMNS)
        for (int i = i_first; i < i_end; i += ROWS) {
            global const uint *a = A + i / 16 * line, *b = B + j / 16 * line;
            sums_clear(&sums);
#if PARTS == 1
            add_tiles(&sums, a, b, tiles);
#else
            global const int *fa = (global const int *)packed + flags_a + product * flags_stride_a + i / 16 * tiles;
            global const int *fb = (global const int *)packed + flags_b + product * flags_stride_b + j / 16 * tiles;
            const bool outside = has_outside(fa, ROW_TILES, tiles) || has_outside(fb, COLUMN_TILES, tiles);
            if (outside) add_outside(&sums, a, PARTS * part_a, fa, b, PARTS * part_b, fb, tiles);
            for (int p = outside; p < PRODUCTS; p++)
                add_tiles(&sums, a + part_of_a[p] * part_a, b + part_of_b[p] * part_b, tiles);
#endif
            sums_store(&sums, unit, in_unit);
            finish(unit, C + (long)i * ldc + j, ldc, min(ROWS, i_end - i), min(COLUMNS, j_end - j), bias ? bias + j : 0,
                added ? added + (long)i * ldc + j : 0);
        }
    PAIRS_END
}

PAIRS_TARGET TASK void gemm_pairs(PAIRS_ARGUMENTS(PARAMETER))
{
    gemm_pairs_body(PAIRS_ARGUMENTS(NAME), get_group_id(0), get_group_id(1), get_group_id(2));
}
