/* conv2d for GPU-class devices as matrix products whose right-hand matrix is never stored (implicit GEMM: Chetlur et al.,
 * cuDNN, 2014, section 3.1). Plain layout, any kernel, stride, padding, dilation and number of groups.
 *
 *   image            forward:        y[n, k, p] = bias[k] + sum over taps, c of w[k, c, tap] x[n, c, q(p, tap)]
 *                    GRADIENT 1:     dx[n, c, q] = sum over taps, k of w[k, c, tap] dy[n, k, p(q, tap)]
 *                    rows m: channels of the result; columns: pixels of the whole batch; steps: taps, then channels of the
 *                    source. A gradient's pixels fall into stride_h * stride_w classes, in each of which the same taps
 *                    count: a class has work-groups of its own. Groups (columns / BN, rows / BM, groups * classes).
 *                    FLAT: the taps are part of the steps, for few source channels. Weights: as conv2d_pack_gpu.cl packs them.
 *                    POINT: 1 x 1 with stride 1 and without padding, and planes of whole fours, which are loaded at once.
 *
 * STATISTICS 1, forward without addition and activation: each group also gives its tile's statistics, see conv2d_image.h.
 *
 * Launched by layers/conv2d/conv2d_implicit_gemm.c. BM, BN, BK, TM, TN, MATRIX: see tile_product.h. COMPUTE: see compute.h.
 * ACTIVATE: see epilogue.h; bias and add may be NULL, which spares variants. No work-item passes a barrier that others of
 * its group do not: early returns are the whole group's. */
#include "parameters.h"
#include "arguments/conv2d_implicit_gemm.h"
#include "compute.h"
#include "conv2d_image.h"
#include "epilogue.h"
#include "tile_product.h"

#define A_ROW ROW_LENGTH(BM, 0)
#define B_ROW ROW_LENGTH(BN, 0)
/* Where a work-item's q-th element lies in a tile. Rows without room between them are treated as one row: compilers
 * then take fewer registers. */
#define PLACE(q, lines, row)                                                                                           \
    ((row) == (lines) ? item + (q) * ITEMS : (item / (lines) + (q) * (ITEMS / (lines))) * (row) + item % (lines))
/* For a tile that is loaded in fours: EACH is how many a work-item loads, STEP and LINE are where its q-th four
 * begins. A work-item that has none loads the last one, too. */
#define TILE_FOURS(lines) (BK * (lines) / 4)
#define EACH(lines) ((TILE_FOURS(lines) + ITEMS - 1) / ITEMS)
#define FOUR(q, lines) min(item + (q) * ITEMS, TILE_FOURS(lines) - 1)
#define STEP(q, lines) (FOUR(q, lines) / ((lines) / 4))
#define LINE(q, lines) (FOUR(q, lines) % ((lines) / 4) * 4)
#define PUT_FOURS(tile, next, lines, row)                                                                              \
    UNROLL_GPU for (int q = 0; q < EACH(lines); q++)                                                                   \
    {                                                                                                                  \
        if (TILE_FOURS(lines) % ITEMS && item + q * ITEMS >= TILE_FOURS(lines)) continue;                              \
        PUT_FOUR((local tile_t *)(tile) + STEP(q, lines) * (row) + LINE(q, lines), next[q])                            \
    }

#define TILE_PIXELS BN
#define PIXELS TN
#define CHANNELS TM
#define RESULT(u, k) acc[u][k]
#define PIXEL(k) COLUMN(k)
#define CHANNEL(u) ROW(u)
#define SHARERS ACROSS
#define OWN_SLOT SLOT

/* source [N][groups * CS][SH][SW], result [N][groups * CR][RH][RW]; CSP and CRP: the padded numbers of channels. */
SUBGROUPS __attribute__((reqd_work_group_size(ITEMS, 1, 1))) kernel void image(
    IMAGE_ARGUMENTS(PARAMETER) STATISTICS_PARAMETER)
{
    local float4 a_tile[FOURS(BK * A_ROW / IN_FOUR)], b_tile[FOURS(BK * B_ROW / IN_FOUR)];
    const KEPT int item = get_local_id(0);
    const int first_channel = get_group_id(1) * BM, first_pixel = get_group_id(0) * BN;
#if GRADIENT
    const int classes = stride_h * stride_w, residue = get_group_id(2) % classes, group = get_group_id(2) / classes;
#else
    const int residue = 0, group = get_group_id(2);
#endif
    SHAPE(residue);
    const int grid = rows * columns, pixels = N * grid, taps = R * S, plane = SH * SW;
    /* Returns from groups that a smaller class does not need. Nothing else returns: after such a return POCL has one
     * work-item decide a last condition for all. */
#if GRADIENT && !ALWAYS_STEPS
    if (first_pixel >= pixels) return;
#endif

#if POINT /* the pixels whose columns of the right-hand matrix this work-item loads: fours, each in one image */
    KEPT bool exists[EACH(BN)];
    global const float *KEPT from[EACH(BN)];
    UNROLL_GPU for (int q = 0; q < EACH(BN); q++)
    {
        const int pixel = first_pixel + LINE(q, BN);
        exists[q] = pixel < pixels;
        from[q] = exists[q] ? source + ((long)(pixel / grid) * groups + group) * CS * plane + pixel % grid : source;
    }
    KEPT float4 b_next[EACH(BN)];
#else /* the pixel of its column */
    const int pixel = first_pixel + item % BN;
    const bool exists = pixel < pixels;
    const KEPT int image = exists ? pixel / grid : 0, place = exists ? pixel % grid : 0;
    const int from_h = place / columns * step_h, from_w = place % columns * step_w;
    global const float *from = source + ((long)image * groups + group) * CS * plane;
    KEPT float b_next[B_LOADS];
#endif

    KEPT float4 a_next[EACH(BM)];
    float acc[TM][TN];
    UNROLL_GPU for (int i = 0; i < TM; i++) UNROLL_GPU for (int j = 0; j < TN; j++) acc[i][j] = 0.0f;

#define LOAD_A(row)                                                                                                    \
    UNROLL_GPU for (int q = 0; q < EACH(BM); q++) a_next[q] =                                                          \
        *(global const float4 *)(weights + (long)((row) + STEP(q, BM)) * CRP + first_channel + LINE(q, BM))

    FIRST_STEPS
    weights += (long)group * (FLAT ? 1 : taps) * CSP * CRP;
#if FLAT
#define LOAD                                                                                                           \
    LOAD_A(k);                                                                                                         \
    UNROLL_GPU for (int q = 0; q < B_LOADS; q++)                                                                       \
    {                                                                                                                  \
        int at = k + item / BN + q * (ITEMS / BN), tap = at / FLAT_CHANNELS, c = at % FLAT_CHANNELS;                   \
        int h = from_h + OFFSET_H(tap / FLAT_WIDTH), w = from_w + OFFSET_W(tap % FLAT_WIDTH);                          \
        bool inside = exists && at < steps && h >= 0 && h < SH && w >= 0 && w < SW;                                    \
        b_next[q] = inside ? from[c * plane + h * SW + w] : 0.0f;                                                      \
    }
#elif POINT
#define LOAD                                                                                                           \
    {                                                                                                                  \
        LOAD_A(c);                                                                                                     \
        UNROLL_GPU for (int q = 0; q < EACH(BN); q++)                                                                  \
        {                                                                                                              \
            const int channel = c + STEP(q, BN);                                                                       \
            b_next[q] = exists[q] && channel < CS ? *(global const float4 *)(from[q] + (long)channel * plane)          \
                                                  : (float4)(0.0f);                                                    \
        }                                                                                                              \
    }
#else
#define LOAD                                                                                                           \
    {                                                                                                                  \
        LOAD_A(tap * CSP + c);                                                                                         \
        int h = from_h + OFFSET_H(tap / S), w = from_w + OFFSET_W(tap % S);                                            \
        bool inside = exists && h >= 0 && h < SH && w >= 0 && w < SW;                                                  \
        UNROLL_GPU for (int q = 0; q < B_LOADS; q++)                                                                   \
        {                                                                                                              \
            int channel = c + item / BN + q * (ITEMS / BN);                                                            \
            b_next[q] = inside && channel < CS ? from[channel * plane + h * SW + w] : 0.0f;                            \
        }                                                                                                              \
    }
#endif

#if ALWAYS_STEPS /* a gradient's class may have no tap: then zeros are multiplied */
    for (int q = 0; q < EACH(BM); q++) a_next[q] = (float4)(0.0f);
    for (int q = 0; q < (int)(sizeof(b_next) / sizeof(*b_next)); q++) b_next[q] = 0.0f;
#endif
    if (MORE) LOAD;
    STEPS(MORE)
    {
        PUT_FOURS(a_tile, a_next, BM, A_ROW)
#if POINT
        PUT_FOURS(b_tile, b_next, BN, B_ROW)
#else
        UNROLL_GPU for (int q = 0; q < B_LOADS; q++)
            ((local tile_t *)b_tile)[PLACE(q, BN, B_ROW)] = ELEMENT_OF(b_next[q]);
#endif
        barrier(CLK_LOCAL_MEM_FENCE);
        NEXT();
        if (MORE) LOAD;
        MULTIPLY(a_tile, b_tile, A_ROW, B_ROW)
        barrier(CLK_LOCAL_MEM_FENCE);
    }

    GIVE_STATISTICS(group * CR)

#if POINT && RUN == 4 /* four pixels of a plane are stored at once; `result` may be `add`: it is loaded before */
    UNROLL_GPU for (int j = 0; j < TN; j += 4)
    {
        const int p = first_pixel + COLUMN(j);
        if (p >= pixels) continue;
        const long at = ((long)(p / grid) * groups + group) * CR * grid + p % grid;
        float4 values[TM];
        UNROLL_GPU for (int i = 0; i < TM; i++)
        {
            const int m = first_channel + ROW(i);
            values[i] = (float4)(acc[i][j], acc[i][j + 1], acc[i][j + 2], acc[i][j + 3]);
            if (bias && m < CR) values[i] += bias[group * CR + m];
            if (add && m < CR) values[i] += *(global const float4 *)(add + at + (long)m * grid);
        }
        UNROLL_GPU for (int i = 0; i < TM; i++)
        {
            const int m = first_channel + ROW(i);
            if (m < CR) *(global float4 *)(result + at + (long)m * grid) = ACTIVATION(values[i]);
        }
    }
#else
    UNROLL_GPU for (int j = 0; j < TN; j++)
    {
        const int p = first_pixel + COLUMN(j);
        if (p >= pixels) continue;
        const int row = p % grid / columns, column = p % grid % columns;
        const long at = ((long)(p / grid) * groups + group) * CR * RH * RW +
            (long)(first_h + row * result_h) * RW + first_w + column * result_w;
        UNROLL_GPU for (int i = 0; i < TM; i++)
        {
            const int m = first_channel + ROW(i);
            if (m >= CR) continue;
            float value = acc[i][j];
            if (bias) value += bias[group * CR + m];
            if (add) value += add[at + (long)m * RH * RW];
            result[at + (long)m * RH * RW] = ACTIVATION(value);
        }
    }
#endif
}
