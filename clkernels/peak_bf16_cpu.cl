/* How many bf16 dot products (bf16_dots.h) a CPU computes at most; for runtime/peak.c.
 *
 *   out[task] = the number of products of a task: all operands are 1
 *
 * Tiles: `rounds` times the products of a unit of STEPS tiles along the sum, whose operands stay in the first-level cache.
 * Otherwise CHAINS vectors of sums add `rounds` bf16 dot products each, all in registers. ones: pairs of 1, of tiles
 * (ROW_TILES + COLUMN_TILES) x STEPS tiles. unit: the sums, ROWS x COLUMNS floats.
 *
 * Launched by runtime/peak.c: one work-item per group, a task. */
#include "bf16_dots.h"

#define STEPS 4
#define CHAINS 12

OUTLINE BF16_TARGET void peak_bf16_body(
    global const uint *ones, global float *out, local float *unit, int rounds, size_t task)
{
    VF total = 0.0f;
#if BF16_FORM == 1
    const long apart = STEPS * TILE;
    SUMS sums;
    BF16_BEGIN
    sums_clear(&sums);
    const struct sums_place in_unit = { COLUMNS, 16 * COLUMNS, 16 };
    for (int r = 0; r < rounds; r++)
        for (int s = 0; s < STEPS; s++)
            sums_add(&sums, (global const pair_word *)ones + s * TILE, 16, 2 * apart,
                ones + ROW_TILES * apart + s * TILE, apart);
    sums_store(&sums, unit, in_unit);
    BF16_END
    for (int i = 0; i < ROWS * COLUMNS; i += V) total += LOCAL_LOAD(0, unit + i);
#else
    const uint16 columns = BF16_AT(ones);
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

BF16_TARGET TASK void peak_bf16(global const uint *ones, global float *out, local float *unit, int rounds)
{
    peak_bf16_body(ones, out, unit, rounds, get_global_id(0));
}
