/* What the two forms of conv2d's `image` share: conv2d_implicit_gemm.cl and conv2d_channels_last.cl, whose lines of
 * pixels and of channels are each other's columns and rows.
 *
 * SHAPE(residue)     the constants of a work-group: the pixels that it has are first, first + result, ...; `rows` x
 *                    `columns` of an image, which begin at source row i * step. GRADIENT 1: `residue` is the class.
 * COUNTS(tap)        whether the tap falls on source pixels, for these
 * OFFSET_H, OFFSET_W what it adds to their source row and column
 * FIRST_STEPS; MORE, NEXT(then)   the steps of a work-group's sum, BK at a time: k of all taps' where FLAT, else c of
 * the channels of `tap`; `then`: at a new tap
 *
 * STATISTICS 1: count, mean and sum of squared deviations of a tile's results for each channel, as part get_group_id(0)
 * of [parts][3][stride], where `statistics` points to the first of them. Sums are of differences, so that a large mean
 * does not cancel, and are added in one order. STATISTICS_PARAMETER ends the kernel's; a tile has FOURS(its own)
 * float4. */
#if GRADIENT
#define SHAPE(residue)                                                                                             \
    const int first_h = (residue) / stride_w, first_w = (residue) % stride_w;                                      \
    const int rows = (RH - first_h + stride_h - 1) / stride_h, columns = (RW - first_w + stride_w - 1) / stride_w; \
    const int step_h = 1, step_w = 1, result_h = stride_h, result_w = stride_w
#define COUNTS(tap)                                                    \
    ((first_h + padding_h - (tap) / S * dilation_h) % stride_h == 0 && \
        (first_w + padding_w - (tap) % S * dilation_w) % stride_w == 0)
#define OFFSET_H(r) ((first_h + padding_h - (r)*dilation_h) / stride_h)
#define OFFSET_W(s) ((first_w + padding_w - (s)*dilation_w) / stride_w)
#else
#define SHAPE(residue)                                           \
    const int first_h = 0, first_w = 0, rows = RH, columns = RW; \
    const int step_h = stride_h, step_w = stride_w, result_h = 1, result_w = 1
#define COUNTS(tap) ((tap) >= 0)
#define OFFSET_H(r) ((r)*dilation_h - padding_h)
#define OFFSET_W(s) ((s)*dilation_w - padding_w)
#endif

#if FLAT
#define FIRST_STEPS              \
    const int steps = taps * CS; \
    int k = 0;
#define MORE (k < steps)
#define NEXT(then) k += BK
#else
#define FIRST_STEPS     \
    int tap = 0, c = 0; \
    while (tap < taps && !COUNTS(tap)) tap++;
#define MORE (tap < taps)
#define NEXT(then)                          \
    c += BK;                                \
    if (c >= CS) {                          \
        c = 0;                              \
        do tap++;                           \
        while (tap < taps && !COUNTS(tap)); \
        then                                \
    }
#endif

#if STATISTICS
#include "arguments/conv2d_tile_statistics.h"
#define STATISTICS_PARAMETER TILE_STATISTICS_ARGUMENTS(PARAMETER)
#define FOURS(tile_fours) \
    ((tile_fours) > ITEMS ? (tile_fours) : ITEMS) /* where a work-item then has one for its sums */

/* A work-item has CHANNELS x PIXELS results, RESULT(u, k) of channel CHANNEL(u) and pixel PIXEL(k), of a tile of
 * TILE_PIXELS. SHARERS work-items have the same channels, and their OWN_SLOTs follow one another. first_channel and
 * first_pixel: of the tile; first_of_group: of the convolution's group, which has CR of them. Four channels are done
 * at a time: each work-item finds its mean and squares, about its first result; then four of the work-items that have
 * the same channels join those of all of them. Loops over these stay loops: unrolled, they take registers from the
 * sums. The loop over fours has barriers, and is unrolled on CPUs, too: as a loop after that of the steps (steps.h),
 * POCL 3.1 makes other sums of it. */
#define GIVE_STATISTICS(first_of_group)                                                                               \
    local float counts[SHARERS];                                                                                      \
    const int slot = OWN_SLOT, among = slot % SHARERS;                                                                \
    float own = 0.0f;                                                                                                 \
    UNROLL_GPU for (int k = 0; k < PIXELS; k++) own += first_pixel + PIXEL(k) < pixels ? 1.0f : 0.0f;                 \
    if (slot < SHARERS) counts[slot] = own;                                                                           \
    _Pragma("unroll") for (int j = 0; j < CHANNELS; j += 4)                                                           \
    {                                                                                                                 \
        float mean[4], deviations[4];                                                                                 \
        UNROLL_GPU for (int u = 0; u < 4; u++)                                                                        \
        {                                                                                                             \
            float sum = 0.0f, squares = 0.0f;                                                                         \
            UNROLL_GPU for (int k = 1; k < PIXELS; k++)                                                               \
            {                                                                                                         \
                const float d = first_pixel + PIXEL(k) < pixels ? RESULT(j + u, k) - RESULT(j + u, 0) : 0.0f;         \
                sum += d;                                                                                             \
                squares = fma(d, d, squares);                                                                         \
            }                                                                                                         \
            const float shift = sum / fmax(own, 1.0f);                                                                \
            mean[u] = RESULT(j + u, 0) + shift;                                                                       \
            deviations[u] = fma(-sum, shift, squares);                                                                \
        }                                                                                                             \
        a_tile[slot] = (float4)(mean[0], mean[1], mean[2], mean[3]);                                                  \
        b_tile[slot] = (float4)(deviations[0], deviations[1], deviations[2], deviations[3]);                          \
        barrier(CLK_LOCAL_MEM_FENCE);                                                                                 \
        if (among < 4) {                                                                                              \
            const local float *means = (const local float *)(a_tile + slot - among) + among;                          \
            const local float *squares_of = (const local float *)(b_tile + slot - among) + among;                     \
            const float count = (float)min(TILE_PIXELS, pixels - first_pixel);                                        \
            float sum = 0.0f, squares = 0.0f;                                                                         \
            _Pragma("unroll 1") for (int k = 0; k < SHARERS; k++) sum = fma(counts[k], means[4 * k] - means[0], sum); \
            const float all = means[0] + sum / count;                                                                 \
            _Pragma("unroll 1") for (int k = 0; k < SHARERS; k++)                                                     \
            {                                                                                                         \
                const float d = means[4 * k] - all;                                                                   \
                squares += fma(counts[k] * d, d, squares_of[4 * k]);                                                  \
            }                                                                                                         \
            const int channel = first_channel + CHANNEL(j + among), m = (first_of_group) + channel;                   \
            global float *part = statistics + (size_t)get_group_id(0) * 3 * stride + m;                               \
            if (channel < CR) {                                                                                       \
                part[0] = count;                                                                                      \
                part[stride] = bias ? bias[m] + all : all;                                                            \
                part[2 * stride] = squares;                                                                           \
            }                                                                                                         \
        }                                                                                                             \
        barrier(CLK_LOCAL_MEM_FENCE);                                                                                 \
    }
#else
#define STATISTICS_PARAMETER
#define FOURS(tile_fours) (tile_fours)
#define GIVE_STATISTICS(first_of_group)
#endif
