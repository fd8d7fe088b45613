/* A matrix product's tile on GPU-class devices: a work-group of (BM / TM) * (BN / TN) work-items makes BM x BN results, a
 * work-item TM x TN of them in registers. BK steps of the sum at a time lie in local memory, while those that follow are on
 * their way to registers. TM and TN are multiples of 4.
 *
 * MULTIPLY(a_tile, b_tile, A_STRIDE, B_STRIDE)   acc += a^T b for the BK steps in local memory, in arrays of float4; a row
 *                                                has A_STRIDE or B_STRIDE elements
 * tile_t, IN_FOUR                                an element in local memory, and how many a float4 holds
 * ROW_LENGTH(lines, across)                      elements of a row there: more than `lines` where those who read it, or who
 *                                                write it across rows, would else hit one bank
 * ELEMENT_OF(x), PUT_FOUR(to, four)              what becomes of a float there, rounded; of four that follow one another
 * four_t                                         four elements that follow one another
 * ROW(i), COLUMN(j)                              where a work-item's i-th row and j-th column lie in the tile
 * RUN                                            so many columns follow one another
 * ACROSS, SLOT                                   so many work-items have the same rows; a work-item's number where these
 *                                                follow one another, the one with the tile's first column first
 * DOWN, COLUMN_SLOT                              the same of columns, by matrix instructions
 * CHAINS, CHAINS_END(steps), CHAINS_SUM            with CHAINED 1: variables of the sums of chains of 64 steps or some more
 *                                                (sum.h); after so many steps, the end of a chain that has its length;
 *                                                acc = the sum of all chains. Else nothing
 * SUBGROUPS                                      what stands before the kernel
 *
 * MATRIX: 0 by multiply-adds; else the form of matrix instructions that make it, see matrix_product.h. COMPUTE is what
 * compute.h says. */
#define ITEMS ((BM / TM) * (BN / TN))
#define A_LOADS (BK * BM / ITEMS)
#define B_LOADS (BK * BN / ITEMS)
#define ACROSS (BN / TN)
#define DOWN (BM / TM)

/* TOGETHER 1: the steps of a line (a row of a, or a column of b) follow one another in local memory, rather than the
 * lines of a step. LINE_LENGTH elements, which are A_STRIDE and B_STRIDE, lie between the beginnings of lines. Only
 * matrix instructions use it, which want steps that follow one another: operands of 16 bits then lie there as such,
 * for all forms. */
#ifndef TOGETHER
#define TOGETHER 0
#endif

#include "steps.h"

/* Unrolls loops, so that sums, and tiles on their way, are in a GPU's registers. Options define it as nothing for a
 * CPU of GPU class whose driver would take long. */
#ifndef UNROLL_GPU
#define UNROLL_GPU _Pragma("unroll")
#endif

#if MATRIX
#include "matrix_product.h"
#endif
#if PAIR_ROUNDS /* of floats in local memory when they are loaded */
#define ROUNDED(T, x) (x)
#else
#define ROUNDED(T, x) computed_##T(x)
#endif
#if COMPUTE != 1 && (MATRIX == 6 || TOGETHER)
typedef ushort tile_t;
typedef uint2 four_t;
#define ELEMENT_OF(x) (ushort) PAIR(ROUNDED(float, x), 0.0f)
#define FOUR_OF(four) (uint2)(PAIR((four).x, (four).y), PAIR((four).z, (four).w))
#else
typedef float tile_t;
typedef float4 four_t;
#define ELEMENT_OF(x) ROUNDED(float, x)
#define FOUR_OF(four) (four)
#endif
#define PUT_FOUR(to, four)                                                                                             \
    {                                                                                                                  \
        const float4 rounded = ROUNDED(float4, four);                                                                  \
        *(local four_t *)(to) = FOUR_OF(rounded);                                                                      \
    }
#define IN_FOUR (16 / (int)sizeof(tile_t))
#if MATRIX == 6
#define ROW_LENGTH(lines, across) ((lines) + 8) /* each of the 8 rows of a matrix lies in four banks of its own, then */
#else
#define ROW_LENGTH(lines, across) ((lines) + 4 * (across))
#endif
#define LINE_LENGTH (BK + IN_FOUR) /* 16 bytes more: lines that are read together lie in banks of their own */

#if !MATRIX

#define RUN 4
#define ROW_STEP (4 * BM / TM) /* between a work-item's fours of rows, and of columns */
#define COLUMN_STEP (4 * BN / TN)
/* 32 work-items that follow one another make 4 x 8 of the tile's small ones, if it has as many: then they read the fewest
 * different numbers. */
#define LANES_WIDE ((BM / TM) % 4 || (BN / TN) % 8 ? BN / TN : 8)
#define LANES_HIGH (LANES_WIDE == BN / TN ? 1 : 4)
#define ITEM_COLUMN (item / (LANES_WIDE * LANES_HIGH) % (BN / TN / LANES_WIDE) * LANES_WIDE + item % LANES_WIDE)
#define ITEM_ROW (item / (LANES_HIGH * BN / TN) * LANES_HIGH + item / LANES_WIDE % LANES_HIGH)
#define ROW(i) ((i) / 4 * ROW_STEP + ITEM_ROW * 4 + (i) % 4)
#define COLUMN(j) ((j) / 4 * COLUMN_STEP + ITEM_COLUMN * 4 + (j) % 4)
#define SLOT (ITEM_ROW * ACROSS + ITEM_COLUMN)

#define MULTIPLY(a_tile, b_tile, A_STRIDE, B_STRIDE)                                                                   \
    _Pragma("unroll 2") for (int step = 0; step < BK; step++)                                                          \
    {                                                                                                                  \
        float a[TM], b[TN];                                                                                            \
        UNROLL_GPU for (int i = 0; i < TM / 4; i++)                                                                    \
        {                                                                                                              \
            const float4 four = a_tile[(step * A_STRIDE + i * ROW_STEP) / 4 + ITEM_ROW];                               \
            a[4 * i] = four.x, a[4 * i + 1] = four.y, a[4 * i + 2] = four.z, a[4 * i + 3] = four.w;                    \
        }                                                                                                              \
        UNROLL_GPU for (int j = 0; j < TN / 4; j++)                                                                    \
        {                                                                                                              \
            const float4 four = b_tile[(step * B_STRIDE + j * COLUMN_STEP) / 4 + ITEM_COLUMN];                         \
            b[4 * j] = four.x, b[4 * j + 1] = four.y, b[4 * j + 2] = four.z, b[4 * j + 3] = four.w;                    \
        }                                                                                                              \
        UNROLL_GPU for (int i = 0; i < TM; i++)                                                                        \
            UNROLL_GPU for (int j = 0; j < TN; j++) acc[i][j] += a[i] * b[j];                                          \
    }
#endif

/* The sums of chains lie in memory: they would take as many registers as the chains have, and are seldom needed. */
#if CHAINED
#define CHAINS                                                                                                         \
    volatile float chains[TM][TN];                                                                                     \
    int chained = 0;                                                                                                   \
    UNROLL_GPU for (int i = 0; i < TM; i++) UNROLL_GPU for (int j = 0; j < TN; j++) chains[i][j] = 0.0f;
#define CHAINS_END(steps)                                                                                              \
    chained += steps;                                                                                                  \
    if (chained >= 64) {                                                                                               \
        chained = 0;                                                                                                   \
        UNROLL_GPU for (int i = 0; i < TM; i++) UNROLL_GPU for (int j = 0; j < TN; j++)                                \
        {                                                                                                              \
            chains[i][j] += acc[i][j];                                                                                 \
            acc[i][j] = 0.0f;                                                                                          \
        }                                                                                                              \
    }
#define CHAINS_SUM UNROLL_GPU for (int i = 0; i < TM; i++) UNROLL_GPU for (int j = 0; j < TN; j++) acc[i][j] += chains[i][j];
#else
#define CHAINS
#define CHAINS_END(steps)
#define CHAINS_SUM
#endif

#ifndef SUBGROUPS
#define SUBGROUPS
#endif
