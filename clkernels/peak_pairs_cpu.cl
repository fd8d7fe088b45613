/* How many products of pairs of bfloat16 numbers (pairs.h) a CPU computes at most; for runtime/peak.c.
 *
 *   out[task] = the number of products of a task: all operands are 1
 *
 * Tiles: `rounds` times the products of a unit of STEPS tiles along the sum, whose operands stay in the first-level cache.
 * Otherwise CHAINS vectors of sums add `rounds` products of pairs each, all in registers. ones: pairs of 1, of tiles
 * (ROW_TILES + COLUMN_TILES) x STEPS tiles. unit: the sums, ROWS x COLUMNS floats.
 *
 * Launched by runtime/peak.c: one work-item per group, a task. */
#include "pairs.h"

#define STEPS 4
#define CHAINS 12

OUTLINE PAIRS_TARGET void peak_pairs_body(
    global const uint *ones, global float *out, local float *unit, int rounds, size_t task)
{
    VF total = 0.0f;
#if PAIRS == 1
    const long apart = STEPS * TILE;
    SUMS sums;
    PAIRS_BEGIN
    sums_clear(&sums);
    const struct sums_place in_unit = { COLUMNS, 16 * COLUMNS, 16 };
    for (int r = 0; r < rounds; r++)
        for (int s = 0; s < STEPS; s++)
            sums_add(&sums, (global const pair_word *)ones + s * TILE, 16, 2 * apart,
                ones + ROW_TILES * apart + s * TILE, apart);
    sums_store(&sums, unit, in_unit);
    PAIRS_END
    for (int i = 0; i < ROWS * COLUMNS; i += V) total += LOCAL_LOAD(0, unit + i);
#else
    const uint16 columns = PAIRS_AT(ones);
    const uint row = ones[0];
    float16 sums[CHAINS];
    UNROLL for (int c = 0; c < CHAINS; c++) sums[c] = 0.0f;
    for (int r = 0; r < rounds; r++) {
        UNROLL for (int c = 0; c < CHAINS; c++) PAIR_ADD(sums[c], columns, row);
    }
    UNROLL for (int c = 0; c < CHAINS; c++) total += sums[c];
#endif
    out[task] = vector_sum(total);
}

PAIRS_TARGET TASK void peak_pairs(global const uint *ones, global float *out, local float *unit, int rounds)
{
    peak_pairs_body(ones, out, unit, rounds, get_global_id(0));
}
