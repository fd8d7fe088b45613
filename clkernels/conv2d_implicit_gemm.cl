/* conv2d for GPU-class devices as matrix products whose right-hand matrix is never stored (implicit GEMM: Chetlur et al.,
 * cuDNN, 2014, section 3.1). Plain layout, any kernel, stride, padding, dilation and number of groups.
 *
 *   image            forward:        y[n, k, p] = bias[k] + sum over taps, c of w[k, c, tap] x[n, c, q(p, tap)]
 *                    GRADIENT 1:     dx[n, c, q] = sum over taps, k of w[k, c, tap] dy[n, k, p(q, tap)]
 *                    rows m: channels of the result; columns: pixels of the whole batch; steps: taps, then channels of the
 *                    source. A gradient's pixels fall into stride_h * stride_w classes, in each of which the same taps
 *                    count: a class has work-groups of its own. Groups (columns / BN, rows / BM, groups * classes).
 *                    FLAT: the taps are part of the steps, for few source channels. Weights: as conv2d_pack_gpu.cl packs them.
 *
 * STATISTICS 1, forward without addition and activation: each group also gives count, mean and sum of squared deviations of
 * its tile's results for each channel, as part get_group_id(0) of [parts][3][stride]. Sums are of differences, so that a large
 * mean does not cancel, and are added in one order.
 *
 * Launched by layers/conv2d_implicit_gemm.c. BM, BN, BK, TM, TN, MATRIX: see tile_product.h. COMPUTE: see compute.h.
 * ACTIVATE: see epilogue.h; bias and add may be NULL, which spares variants. No work-item passes a barrier that others of
 * its group do not: early returns are the whole group's. */
#include "compute.h"
#include "epilogue.h"
#include "tile_product.h"

#if STATISTICS
#define STATISTICS_PARAMETER , global float *statistics, int stride
#define FOURS(tile_fours) ((tile_fours) > ITEMS ? (tile_fours) : ITEMS) /* where a work-item then has one for its sums */
#else
#define STATISTICS_PARAMETER
#define FOURS(tile_fours) (tile_fours)
#endif

#define A_ROW ROW_LENGTH(BM, 0)
#define B_ROW ROW_LENGTH(BN, 0)
/* Where a work-item's q-th element lies in a tile. Rows without room between them are one: told so, compilers take fewer
 * registers. */
#define PLACE(q, lines, row)                                                                                           \
    ((row) == (lines) ? item + (q) * ITEMS : (item / (lines) + (q) * (ITEMS / (lines))) * (row) + item % (lines))

/* Source row of a result's row: i * step + OFFSET(r), where the tap counts. */
#if GRADIENT
#define COUNTS(tap)                                                                                                    \
    ((first_h + padding_h - (tap) / S * dilation_h) % stride_h == 0 &&                                                 \
        (first_w + padding_w - (tap) % S * dilation_w) % stride_w == 0)
#define OFFSET_H(r) ((first_h + padding_h - (r) * dilation_h) / stride_h)
#define OFFSET_W(s) ((first_w + padding_w - (s) * dilation_w) / stride_w)
#else
#define COUNTS(tap) ((tap) >= 0)
#define OFFSET_H(r) ((r) * dilation_h - padding_h)
#define OFFSET_W(s) ((s) * dilation_w - padding_w)
#endif

/* source [N][groups * CS][SH][SW], result [N][groups * CR][RH][RW]; CSP and CRP: the padded numbers of channels. */
SUBGROUPS __attribute__((reqd_work_group_size(ITEMS, 1, 1))) kernel void image(global const float *restrict source,
    global const float *restrict weights, global const float *restrict bias, global const float *add,
    global float *result, int N, int groups, int CS, int CR, int CSP, int CRP, int SH, int SW, int RH, int RW, int R,
    int S, int stride_h, int stride_w, int padding_h, int padding_w, int dilation_h, int dilation_w STATISTICS_PARAMETER)
{
    local float4 a_tile[FOURS(BK * A_ROW / IN_FOUR)], b_tile[FOURS(BK * B_ROW / IN_FOUR)];
    const int item = get_local_id(0), first_row = get_group_id(1) * BM, first_pixel = get_group_id(0) * BN;
#if GRADIENT
    const int classes = stride_h * stride_w, residue = get_group_id(2) % classes, group = get_group_id(2) / classes;
    const int first_h = residue / stride_w, first_w = residue % stride_w;
    const int rows = (RH - first_h + stride_h - 1) / stride_h, columns = (RW - first_w + stride_w - 1) / stride_w;
    const int step_h = 1, step_w = 1, result_h = stride_h, result_w = stride_w;
#else
    const int group = get_group_id(2), first_h = 0, first_w = 0, rows = RH, columns = RW;
    const int step_h = stride_h, step_w = stride_w, result_h = 1, result_w = 1;
#endif
    const int grid = rows * columns, pixels = N * grid, taps = R * S, plane = SH * SW;
#if GRADIENT /* a smaller class. Else none: behind such a return POCL has one work-item decide a last condition for all. */
    if (first_pixel >= pixels) return;
#endif

    /* The pixel whose column of the right-hand matrix this work-item loads. */
    const int pixel = first_pixel + item % BN;
    const bool exists = pixel < pixels;
    const int image = exists ? pixel / grid : 0, place = exists ? pixel % grid : 0;
    const int from_h = place / columns * step_h, from_w = place % columns * step_w;
    global const float *from = source + ((long)image * groups + group) * CS * plane;

    float acc[TM][TN];
    UNROLL_GPU for (int i = 0; i < TM; i++) UNROLL_GPU for (int j = 0; j < TN; j++) acc[i][j] = 0.0f;
    float a_next[A_LOADS], b_next[B_LOADS];

#define LOAD_A(row)                                                                                                    \
    UNROLL_GPU for (int q = 0; q < A_LOADS; q++) a_next[q] =                                                           \
        weights[(long)((row) + item / BM + q * (ITEMS / BM)) * CRP + first_row + item % BM]

#if FLAT
    const int steps = taps * CS;
    weights += (long)group * CSP * CRP;
    int k = 0;
#define LOAD                                                                                                           \
    LOAD_A(k);                                                                                                         \
    UNROLL_GPU for (int q = 0; q < B_LOADS; q++)                                                                       \
    {                                                                                                                  \
        int at = k + item / BN + q * (ITEMS / BN), tap = at / FLAT_CHANNELS, c = at % FLAT_CHANNELS;                   \
        int h = from_h + OFFSET_H(tap / FLAT_WIDTH), w = from_w + OFFSET_W(tap % FLAT_WIDTH);                          \
        bool inside = exists && at < steps && h >= 0 && h < SH && w >= 0 && w < SW;                                    \
        b_next[q] = inside ? from[c * plane + h * SW + w] : 0.0f;                                                      \
    }
#define MORE (k < steps)
#define NEXT k += BK
#else
    weights += (long)group * taps * CSP * CRP;
    int tap = 0, c = 0;
    while (tap < taps && !COUNTS(tap)) tap++;
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
#define MORE (tap < taps)
#define NEXT                                                                                                           \
    c += BK;                                                                                                           \
    if (c >= CS) {                                                                                                     \
        c = 0;                                                                                                         \
        do tap++;                                                                                                      \
        while (tap < taps && !COUNTS(tap));                                                                            \
    }
#endif

    if (MORE) LOAD;
    while (MORE) {
        UNROLL_GPU for (int q = 0; q < A_LOADS; q++)
            ((local tile_t *)a_tile)[PLACE(q, BM, A_ROW)] = ELEMENT_OF(computed_float(a_next[q]));
        UNROLL_GPU for (int q = 0; q < B_LOADS; q++)
            ((local tile_t *)b_tile)[PLACE(q, BN, B_ROW)] = ELEMENT_OF(computed_float(b_next[q]));
        barrier(CLK_LOCAL_MEM_FENCE);
        NEXT;
        if (MORE) LOAD;
        MULTIPLY(a_tile, b_tile, A_ROW, B_ROW)
        barrier(CLK_LOCAL_MEM_FENCE);
    }

#if STATISTICS
    /* Of four rows at a time: each work-item's mean and squares, about its first result; then of all that have the same rows,
     * by four of them. Loops over these stay loops: unrolled, they take registers from the sums. */
    local float counts[ACROSS];
    const int slot = SLOT, across = slot % ACROSS;
    float own = 0.0f;
    UNROLL_GPU for (int j = 0; j < TN; j++) own += first_pixel + COLUMN(j) < pixels ? 1.0f : 0.0f;
    if (slot < ACROSS) counts[slot] = own;
    UNROLL_GPU for (int i = 0; i < TM; i += 4)
    {
        float mean[4], deviations[4];
        UNROLL_GPU for (int u = 0; u < 4; u++)
        {
            float sum = 0.0f, squares = 0.0f;
            UNROLL_GPU for (int j = 1; j < TN; j++)
            {
                const float d = first_pixel + COLUMN(j) < pixels ? acc[i + u][j] - acc[i + u][0] : 0.0f;
                sum += d;
                squares = fma(d, d, squares);
            }
            const float shift = sum / fmax(own, 1.0f);
            mean[u] = acc[i + u][0] + shift;
            deviations[u] = fma(-sum, shift, squares);
        }
        a_tile[slot] = (float4)(mean[0], mean[1], mean[2], mean[3]);
        b_tile[slot] = (float4)(deviations[0], deviations[1], deviations[2], deviations[3]);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (across < 4) {
            const local float *means = (const local float *)(a_tile + slot - across) + across;
            const local float *squares_of = (const local float *)(b_tile + slot - across) + across;
            const float count = (float)min(BN, pixels - first_pixel);
            float sum = 0.0f, squares = 0.0f;
            _Pragma("unroll 1") for (int k = 0; k < ACROSS; k++) sum = fma(counts[k], means[4 * k] - means[0], sum);
            const float all = means[0] + sum / count;
            _Pragma("unroll 1") for (int k = 0; k < ACROSS; k++)
            {
                const float d = means[4 * k] - all;
                squares += fma(counts[k] * d, d, squares_of[4 * k]);
            }
            const int row = first_row + ROW(i + across), m = group * CR + row;
            global float *part = statistics + (size_t)get_group_id(0) * 3 * stride + m;
            if (row < CR) {
                part[0] = count;
                part[stride] = bias ? bias[m] + all : all;
                part[2 * stride] = squares;
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
#endif

    UNROLL_GPU for (int j = 0; j < TN; j++)
    {
        const int p = first_pixel + COLUMN(j);
        if (p >= pixels) continue;
        const int row = p % grid / columns, column = p % grid % columns;
        const long at = ((long)(p / grid) * groups + group) * CR * RH * RW +
            (long)(first_h + row * result_h) * RW + first_w + column * result_w;
        UNROLL_GPU for (int i = 0; i < TM; i++)
        {
            const int m = first_row + ROW(i);
            if (m >= CR) continue;
            float value = acc[i][j];
            if (bias) value += bias[group * CR + m];
            if (add) value += add[at + (long)m * RH * RW];
            result[at + (long)m * RH * RW] = ACTIVATION(value);
        }
    }
}
