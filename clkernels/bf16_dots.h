/* Matrix products on CPUs that compute bf16 dot products: a word is a pair of neighbours along the sum, the
 * first in its lower half. Sums are floats.
 *
 *   A tile is 256 words, 32 steps of the sum: of op(A) 16 rows of 16 pairs each, of op(B) 16 pairs of 16 columns each.
 *   Tiles that follow one another along the sum lie one after another.
 *
 *   BF16_FORM   1 tiles (AMX): tdpbf16ps, 16 x 16 x 32 at once
 *           2 dot products (AVX512_BF16): vdpbf16ps, 16 sums of one pair each
 *           3 OpenCL C, with the results of 1 to the bit
 *
 * A unit is ROW_TILES x COLUMN_TILES tiles of sums, held in registers:
 *   sums_clear(&sums)                              or sums_load(&sums, from, place)
 *   sums_add(&sums, a, a_row, a_apart, b, b_apart) the products of a tile's 32 steps
 *   sums_store(&sums, to, place)
 * a_row: words from a row of op(A)'s tiles to the next; a is aligned to a number, b to a word. a_apart: numbers from the
 * first row of tiles to the next; b_apart: words from the first column of tiles to the next. These calls stand between
 * BF16_BEGIN and BF16_END, in a function with the attribute BF16_TARGET. BF16_A, BF16_B and BF16_SUMS are the
 * address spaces.
 *
 * PAIR_ADD(sums, columns, row): 16 sums += the products of 16 pairs with the pair `row`, one number after the other;
 * for forms 2 and 3.
 *
 * Forms 1 and 3 sum even and odd elements of a tile apart, and then add both to what there was; form 2 adds one
 * product after the other. Subnormal operands and sums count as zero, in the processor as in form 3. */
#ifndef BF16_DOTS_H
#define BF16_DOTS_H
#include "vector.h"

#define TILE 256 /* words */

#ifndef BF16_A
#define BF16_A global
#endif
#ifndef BF16_B
#define BF16_B global
#endif
#ifndef BF16_SUMS
#define BF16_SUMS local
#endif
typedef uint pair_word __attribute__((aligned(2)));
typedef uint16 pair_vector __attribute__((aligned(4)));

/* Where sums lie: floats from a row of a tile to the next, from a row of tiles to the next, from a column of tiles. */
struct sums_place {
    long row, down, across;
};

#if BF16_FORM == 1
#define ROW_TILES 2
#define COLUMN_TILES 2
#define BF16_TARGET __attribute__((target("amx-tile,amx-bf16")))
/* Eight tiles of 16 rows of 64 bytes: 0 to 3 hold sums, 4 and 5 rows of A, 6 and 7 columns of B. */
#define BF16_BEGIN                                                                                 \
    uchar shapes[64] __attribute__((aligned(64)));                                                  \
    for (int i = 0; i < 64; i++)                                                                    \
        shapes[i] = i == 0 ? 1 : i >= 48 && i < 56 ? 16 : i >= 16 && i < 32 && i % 2 == 0 ? 64 : 0; \
    __asm__ volatile("ldtilecfg (%0)" ::"r"(shapes) : "memory");
#define BF16_END __asm__ volatile("tilerelease" ::: "memory");
typedef int SUMS; /* they are in the tiles */

INLINE BF16_TARGET void sums_clear(SUMS *sums)
{
    __asm__ volatile("tilezero %%tmm0\n tilezero %%tmm1\n tilezero %%tmm2\n tilezero %%tmm3" ::: "memory");
}

INLINE BF16_TARGET void sums_load(SUMS *sums, BF16_SUMS const float *from, struct sums_place at)
{
    __asm__ volatile("tileloadd (%0,%4,1),%%tmm0\n tileloadd (%1,%4,1),%%tmm1\n tileloadd (%2,%4,1),%%tmm2\n"
                     " tileloadd (%3,%4,1),%%tmm3" ::"r"(from),
                     "r"(from + at.across), "r"(from + at.down), "r"(from + at.down + at.across), "r"(4 * at.row)
                     : "memory");
}

INLINE BF16_TARGET void sums_add(
    SUMS *sums, BF16_A const pair_word *a, long a_row, long a_apart, BF16_B const uint *b, long b_apart)
{
    __asm__ volatile("tileloadd (%0,%4,1),%%tmm4\n tileloadd (%2,%5,1),%%tmm6\n tdpbf16ps %%tmm6,%%tmm4,%%tmm0\n"
                     " tileloadd (%1,%4,1),%%tmm5\n tdpbf16ps %%tmm6,%%tmm5,%%tmm2\n tileloadd (%3,%5,1),%%tmm7\n"
                     " tdpbf16ps %%tmm7,%%tmm4,%%tmm1\n tdpbf16ps %%tmm7,%%tmm5,%%tmm3" ::"r"(a),
                     "r"((BF16_A const ushort *)a + a_apart), "r"(b), "r"(b + b_apart), "r"(4 * a_row), "r"(64L)
                     : "memory");
}

INLINE BF16_TARGET void sums_store(const SUMS *sums, BF16_SUMS float *to, struct sums_place at)
{
    __asm__ volatile("tilestored %%tmm0,(%0,%4,1)\n tilestored %%tmm1,(%1,%4,1)\n tilestored %%tmm2,(%2,%4,1)\n"
                     " tilestored %%tmm3,(%3,%4,1)" ::"r"(to),
                     "r"(to + at.across), "r"(to + at.down), "r"(to + at.down + at.across), "r"(4 * at.row)
                     : "memory");
}
#else
#define BF16_TARGET
#define BF16_BEGIN
#define BF16_END
#if BF16_FORM == 2
#define ROW_TILES 2
#define COLUMN_TILES 2
#else
#define ROW_TILES 1
#define COLUMN_TILES 1
#endif
typedef struct {
    float16 at[16 * ROW_TILES][COLUMN_TILES];
} SUMS;
#define BF16_AT(from) (*(BF16_B const pair_vector *)(from))
typedef float16 sums_vector __attribute__((aligned(4)));
#define SUMS_PLACE(i, k, place) ((i) / 16 * (place).down + (i) % 16 * (place).row + (k) * (place).across)

INLINE void sums_clear(SUMS *sums)
{
    UNROLL for (int i = 0; i < 16 * ROW_TILES; i++)
        UNROLL for (int k = 0; k < COLUMN_TILES; k++) sums->at[i][k] = (float16)(0.0f);
}

INLINE void sums_load(SUMS *sums, BF16_SUMS const float *from, struct sums_place place)
{
    UNROLL for (int i = 0; i < 16 * ROW_TILES; i++)
        UNROLL for (int k = 0; k < COLUMN_TILES; k++)
            sums->at[i][k] = *(BF16_SUMS const sums_vector *)(from + SUMS_PLACE(i, k, place));
}

#if BF16_FORM == 2
#define PAIR_ADD(sums, columns, row) __asm__("vdpbf16ps %2,%1,%0" : "+v"(sums) : "v"(columns), "v"((uint16)(row)))
/* Eight rows of both tiles of columns at a time: their sums are in registers, and each row's pair is loaded for two
 * products. */
INLINE void sums_add(
    SUMS *sums, BF16_A const pair_word *a, long a_row, long a_apart, BF16_B const uint *b, long b_apart)
{
    LOOP for (int first = 0; first < 32; first += 8)
    {
        BF16_A const pair_word *rows
            = (BF16_A const pair_word *)((BF16_A const ushort *)a + first / 16 * a_apart) + first % 16 * a_row;
        float16 some[8][2];
        UNROLL for (int i = 0; i < 8; i++) some[i][0] = sums->at[first + i][0], some[i][1] = sums->at[first + i][1];
        LOOP for (int p = 0; p < 16; p++)
        {
            const uint16 columns = BF16_AT(b + 16 * p), next = BF16_AT(b + b_apart + 16 * p);
            UNROLL for (int i = 0; i < 8; i++)
            {
                const uint row = rows[a_row * i + p];
                PAIR_ADD(some[i][0], columns, row);
                PAIR_ADD(some[i][1], next, row);
            }
        }
        UNROLL for (int i = 0; i < 8; i++) sums->at[first + i][0] = some[i][0], sums->at[first + i][1] = some[i][1];
    }
}
#else
#define FLUSHED(x) (fabs(x) < 0x1p-126f ? (float16)(0.0f) : (x))
#define EVEN(words) as_float16((words) << 16)
#define ODD(words) as_float16((words)&0xffff0000u)
#define PAIR_ADD(sums, columns, row)                                        \
    (sums) = fma(FLUSHED(ODD(columns)), FLUSHED(ODD((uint16)(row))), sums), \
    (sums) = fma(FLUSHED(EVEN(columns)), FLUSHED(EVEN((uint16)(row))), sums)

INLINE void sums_add(
    SUMS *sums, BF16_A const pair_word *a, long a_row, long a_apart, BF16_B const uint *b, long b_apart)
{
    LOOP for (int i = 0; i < 16; i++)
    {
        float16 even = 0.0f, odd = 0.0f;
        LOOP for (int p = 0; p < 16; p++)
        {
            const uint16 row = (uint16)(a[a_row * i + p]), columns = BF16_AT(b + 16 * p);
            even = fma(FLUSHED(EVEN(row)), FLUSHED(EVEN(columns)), even);
            even = FLUSHED(even);
            odd = fma(FLUSHED(ODD(row)), FLUSHED(ODD(columns)), odd);
            odd = FLUSHED(odd);
        }
        even = even + odd;
        even = FLUSHED(even) + sums->at[i][0];
        sums->at[i][0] = FLUSHED(even);
    }
}
#endif

INLINE void sums_store(const SUMS *sums, BF16_SUMS float *to, struct sums_place place)
{
    UNROLL for (int i = 0; i < 16 * ROW_TILES; i++)
        UNROLL for (int k = 0; k < COLUMN_TILES; k++)
            *(BF16_SUMS sums_vector *)(to + SUMS_PLACE(i, k, place)) = sums->at[i][k];
}
#endif

#define ROWS (16 * ROW_TILES)
#define COLUMNS (16 * COLUMN_TILES)
#endif
