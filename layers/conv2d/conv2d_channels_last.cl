/* conv2d for GPU-class devices by matrix instructions, as conv2d_implicit_gemm.cl, with channels last: [N][H][W][C]. Four
 * channels of a pixel are one load, which has one address and one test of the image's edge, and go to local memory by one
 * store, in the order in which the instructions take them. One group of channels, of each a multiple of 4.
 *
 *   image            as there, forward and GRADIENT 1, but rows m are pixels and columns channels of the result. Groups
 *                    (rows / BM, columns / BN, classes). FLAT: the source is plain and has few channels (FLAT_CHANNELS),
 *                    any number; the taps (FLAT_WIDTH in a row) are part of the steps: tap, then channel.
 *   pack             the weights as `image` reads them, rounded: [tap][CRP][CSP], padded with zeros; FLAT: [CRP][CSP] with
 *                    the taps among the steps. One work-item for each element. Reads w [K][C][taps].
 *
 * Launched by layers/conv2d/conv2d_implicit_gemm.c. BM, BN, BK, TM, TN, MATRIX: see tile_product.h. COMPUTE: see compute.h.
 * ACTIVATE: see epilogue.h; bias and add may be NULL, which spares variants. */
#include "parameters.h"
#include "arguments/conv2d_channels_last.h"
#define TOGETHER 1
#include "compute.h"
#include "conv2d_image.h"
#include "epilogue.h"
#include "tile_product.h"

#define QUADS (BK / 4) /* work-items that load a line */
#define APART (ITEMS / QUADS) /* between a work-item's lines */
#define TO(q) ((line + (q) * APART) * LINE_LENGTH + quad)

#define TILE_PIXELS BM
#define PIXELS TM
#define CHANNELS TN
#define RESULT(u, k) acc[k][u]
#define PIXEL(k) ROW(k)
#define CHANNEL(u) COLUMN(u)
#define SHARERS DOWN
#define OWN_SLOT COLUMN_SLOT

/* A work-item's columns that follow one another. */
#if RUN == 2
typedef float2 run_t;
#define RUN_AT(i, j) (float2)(acc[i][j], acc[i][(j) + 1])
#define ADD_RUN(i, j, more) acc[i][j] += (more).x, acc[i][(j) + 1] += (more).y
/* Loads elements one by one: POCL 6.0 with LLVM 19 gives all work-items of a vector the last one's, if they are
 * loaded as a pair. */
#define BIAS_AT(m) (float2)(bias[m], bias[(m) + 1])
#else
typedef float run_t;
#define RUN_AT(i, j) acc[i][j]
#define ADD_RUN(i, j, more) acc[i][j] += more
#define BIAS_AT(m) bias[m]
#endif

/* source [N][SH][SW][CS] (FLAT: [N][CS][SH][SW]), result [N][RH][RW][CR]; CSP and CRP: as the weights are packed. */
SUBGROUPS __attribute__((reqd_work_group_size(ITEMS, 1, 1))) kernel void image(
    IMAGE_LAST_ARGUMENTS(PARAMETER) STATISTICS_PARAMETER)
{
    local float4 a_tile[FOURS(BM * LINE_LENGTH / IN_FOUR)], b_tile[FOURS(BN * LINE_LENGTH / IN_FOUR)];
    const KEPT int item = get_local_id(0);
    const int first_pixel = get_group_id(0) * BM, first_channel = get_group_id(1) * BN;
    SHAPE(get_group_id(2));
    const int grid = rows * columns, pixels = N * grid, taps = R * S;
#if GRADIENT && !ALWAYS_STEPS /* a smaller class */
    if (first_pixel >= pixels) return;
#endif

    /* The lines of both tiles of which this work-item loads four steps. Those of a are pixels; where there is no
     * pixel, no row is inside. */
    const int line = item / QUADS, quad = item % QUADS * 4;
    global const float *KEPT from[A_LOADS / 4];
    KEPT int from_h[A_LOADS / 4], from_w[A_LOADS / 4];
    UNROLL_GPU for (int q = 0; q < A_LOADS / 4; q++)
    {
        const int pixel = first_pixel + line + q * APART, place = pixel % grid;
        from[q] = source + (size_t)(pixel < pixels ? pixel / grid : 0) * CS * SH * SW;
        from_h[q] = pixel < pixels ? place / columns * step_h : INT_MIN / 2;
        from_w[q] = place % columns * step_w;
    }
    weights += (size_t)(first_channel + line) * CSP + quad;

    float acc[TM][TN];
    UNROLL_GPU for (int i = 0; i < TM; i++) UNROLL_GPU for (int j = 0; j < TN; j++) acc[i][j] = 0.0f;
    KEPT float4 a_next[A_LOADS / 4];
    KEPT four_t b_next[B_LOADS / 4];

#define LOAD_WEIGHTS(at)                                                                                               \
    UNROLL_GPU for (int q = 0; q < B_LOADS / 4; q++) b_next[q] =                                                       \
        *(global const four_t *)(weights + (at) + (size_t)(q * APART) * CSP)
#define INSIDE(h, w) ((h) >= 0 && (h) < SH && (w) >= 0 && (w) < SW)

    FIRST_STEPS
#if FLAT
    /* LOAD finds where the number of each step lies from the pixel on. */
#define LOAD                                                                                                           \
    {                                                                                                                  \
        LOAD_WEIGHTS(k);                                                                                               \
        UNROLL_GPU for (int q = 0; q < A_LOADS / 4; q++)                                                               \
        {                                                                                                              \
            float four[4];                                                                                             \
            UNROLL_GPU for (int u = 0; u < 4; u++)                                                                     \
            {                                                                                                          \
                const int at = k + quad + u, tap = at / FLAT_CHANNELS, c = at % FLAT_CHANNELS;                         \
                const int h = from_h[q] + OFFSET_H(tap / FLAT_WIDTH), w = from_w[q] + OFFSET_W(tap % FLAT_WIDTH);      \
                four[u] = at < steps && INSIDE(h, w) ? from[q][(c * SH + h) * SW + w] : 0.0f;                          \
            }                                                                                                          \
            a_next[q] = (float4)(four[0], four[1], four[2], four[3]);                                                  \
        }                                                                                                              \
    }
#define PLACE
#else
    KEPT int at[A_LOADS / 4]; /* of the pixel under this tap, in numbers; -1: outside */
#define PLACE                                                                                                          \
    UNROLL_GPU for (int q = 0; q < A_LOADS / 4; q++)                                                                   \
    {                                                                                                                  \
        const int h = from_h[q] + OFFSET_H(tap / S), w = from_w[q] + OFFSET_W(tap % S);                                \
        at[q] = INSIDE(h, w) ? (h * SW + w) * CS + quad : -1;                                                          \
    }
#define LOAD                                                                                                           \
    {                                                                                                                  \
        LOAD_WEIGHTS((size_t)tap * CRP * CSP + c);                                                                     \
        UNROLL_GPU for (int q = 0; q < A_LOADS / 4; q++) a_next[q] =                                                   \
            at[q] >= 0 && c + quad < CS ? *(global const float4 *)(from[q] + at[q] + c) : (float4)(0.0f);              \
    }
    PLACE
#endif

#if ALWAYS_STEPS /* a gradient's class may have no tap: then zeros are multiplied */
    for (int q = 0; q < A_LOADS / 4; q++) a_next[q] = (float4)(0.0f);
    for (int q = 0; q < B_LOADS / 4; q++) b_next[q] = (four_t)(0);
#endif
    if (MORE) LOAD;
    STEPS(MORE)
    {
        UNROLL_GPU for (int q = 0; q < A_LOADS / 4; q++)
            PUT_FOUR((local tile_t *)a_tile + TO(q), a_next[q])
        UNROLL_GPU for (int q = 0; q < B_LOADS / 4; q++)
            *(local four_t *)((local tile_t *)b_tile + TO(q)) = b_next[q];
        barrier(CLK_LOCAL_MEM_FENCE);
        NEXT(PLACE);
        if (MORE) LOAD;
        MULTIPLY(a_tile, b_tile, LINE_LENGTH, LINE_LENGTH)
        barrier(CLK_LOCAL_MEM_FENCE);
    }

    GIVE_STATISTICS(0)

    /* Everything is loaded before anything is stored: `result` may be `add`, so that no load could pass a store. */
    size_t to[TM];
    UNROLL_GPU for (int i = 0; i < TM; i++)
    {
        const int p = min(first_pixel + ROW(i), pixels - 1), row = p % grid / columns, column = p % grid % columns;
        to[i] = (((size_t)(p / grid) * RH + first_h + row * result_h) * RW + first_w + column * result_w) * CR;
    }
    UNROLL_GPU for (int j = 0; j < TN; j += RUN)
    {
        const int m = first_channel + COLUMN(j);
        if (m >= CR) continue;
        if (bias) {
            const run_t more = BIAS_AT(m);
            UNROLL_GPU for (int i = 0; i < TM; i++) ADD_RUN(i, j, more);
        }
        if (add) {
            run_t more[TM];
            UNROLL_GPU for (int i = 0; i < TM; i++) more[i] = *(global const run_t *)(add + to[i] + m);
            UNROLL_GPU for (int i = 0; i < TM; i++) ADD_RUN(i, j, more[i]);
        }
    }
    UNROLL_GPU for (int i = 0; i < TM; i++)
    {
        if (first_pixel + ROW(i) >= pixels) continue;
        UNROLL_GPU for (int j = 0; j < TN; j += RUN)
        {
            const int m = first_channel + COLUMN(j);
            if (m < CR) *(global run_t *)(result + to[i] + m) = ACTIVATION(RUN_AT(i, j));
        }
    }
}

kernel void pack(PACK_LAST_ARGUMENTS(PARAMETER))
{
    const int i = get_global_id(0);
    if (i >= count) return;
    const int to = i / CSP % CRP, step = i % CSP;
    const int tap = FLAT ? step / CS : i / CSP / CRP, from = FLAT ? step % CS : step;
    const bool exists = tap < taps && from < CS && to < CR;
    const size_t at = GRADIENT ? (size_t)from * CR + to : (size_t)to * CS + from;
    packed[i] = ELEMENT_OF(exists ? w[at * taps + tap] : 0.0f);
}
