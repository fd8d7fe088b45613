/* Depthwise convolution (groups = input channels = output channels) on a CPU-class device, one SIMD lane for each
 * channel:
 *
 *   forward          y[n,c,oh,ow] = sum over r,s of x[n, c, oh*stride - padding + r*dilation, ...] w[c,r,s] + bias[c]
 *   data gradient    dx[n,c,h,w]  = sum over r,s of dy[n, c, (h + padding - r*dilation)/stride, ...] w[c,r,s]
 *                                   over the taps for which the divisions leave no rest
 *   weight gradient  dw[c,r,s]    = sum over n,oh,ow of dy[n,c,oh,ow] x[n, c, oh*stride - padding + r*dilation, ...]
 *
 *   x, y     blocked, and `add` like the result, which may be add
 *   packed   bias [blocks][V], then weights [blocks][R*S][V] (depthwise_pack)
 *   part     in the workspace: [parts][blocks][R*S][V], which conv2d_sum adds and writes plain
 *
 * A task walks the rows of a plane (image, block of channels) in tiles of T columns, whose sums stay in registers; each
 * source vector is loaded once for all taps of its row. The borders cost nothing in the middle of a row: the first and
 * the last tile are instances of their own, without the taps that lie outside (GUARD 1: every load is checked instead,
 * for rows too short for that). The last tiles of a row overlap those before; columns that they repeat are skipped. What
 * the next row reads anew is prefetched: rows of a plane are too short for the hardware to do it.
 *
 * The source may be a batch normalisation's input: NORMALISE of conv2d_cpu.h. Where the data gradient passes back through the
 * same normalisation, its gate holds what the weight gradient needs besides dy, and it makes both (BOTH 1).
 *
 * Columns of the data gradient come in groups of STRIDE_W, of which a tile has T; tap s of column a of a group reads dy
 * at (a + PADDING_W - s*DILATION_W)/STRIDE_W from the group's number on, a number between FIRST and LAST.
 *
 * Launched by conv2d_depthwise.c with (blocks, images, ranges of rows) tasks; depthwise_weights with (blocks, chunks of
 * images, ranges of rows).
 *
 * Macros: R, S, STRIDE_H, STRIDE_W, DILATION_H, DILATION_W, PADDING_H, PADDING_W, T, GUARD, REACH (vectors of a row
 * that a tile reads), LEFT (of the first tile, those outside), RIGHT (of the last tile, those inside), EDGE (columns
 * that the tile before the last one keeps away from the end), FIRST, LAST, STREAM, STATISTICS, GATE,
 * NORMALISE, BOTH, epilogue. */
#include "parameters.h"
#include "arguments/conv2d_depthwise_cpu.h"
#include "conv2d_chain.h"
#include "conv2d_cpu_kernel.h"
#define TAPS (R * S)
#if BOTH || defined(WEIGHTS)
/* Sums of products for each tap, with their rounding errors. A chain of multiply-adds is kept in registers and added to
 * them once it has CONV2D_CHAIN results or more; it is checked after each tile. */
struct weight_sums {
    VF sum[TAPS], lost[TAPS];
};

/* Gets a copy of a chain, so that the chain itself stays in registers. */
OUTLINE void weight_sums_add(struct weight_sums *sums, const VF *chain)
{
    UNROLL for (int i = 0; i < TAPS; i++) SUM_ADD(VF, sums->sum[i], sums->lost[i], chain[i]);
}

INLINE void weight_sums_end_chain(struct weight_sums *sums, VF *chain)
{
    VF copy[TAPS];
    UNROLL for (int i = 0; i < TAPS; i++) copy[i] = chain[i], chain[i] = 0.0f;
    weight_sums_add(sums, copy);
}

INLINE void weight_sums_clear(struct weight_sums *sums, VF *chain)
{
    UNROLL for (int i = 0; i < TAPS; i++) chain[i] = sums->sum[i] = sums->lost[i] = 0.0f;
}

/* Called after each tile. */
INLINE void weight_sums_next(struct weight_sums *sums, VF *chain, int *results)
{
    *results += T;
    if (*results < CONV2D_CHAIN) return;
    weight_sums_end_chain(sums, chain);
    *results = 0;
}

INLINE void weight_sums_store(struct weight_sums *sums, VF *chain, size_t part, global float *workspace)
{
    weight_sums_end_chain(sums, chain);
    UNROLL for (int i = 0; i < TAPS; i++) VSTORE(sums->sum[i], part * TAPS + i, workspace);
}
#endif

#if BOTH
#define SUMS_PARAMETER , struct weight_sums *sums, VF *chain, int *results
#define SUMS_ARGUMENT , &sums, chain, &results
#define PARTS_PARAMETER DEPTHWISE_PARTS_ARGUMENTS(PARAMETER)
#define PARTS_ARGUMENT DEPTHWISE_PARTS_ARGUMENTS(NAME)
#else
#define SUMS_PARAMETER
#define SUMS_ARGUMENT
#define PARTS_PARAMETER
#define PARTS_ARGUMENT
#endif

kernel TASK void depthwise_pack(
    const global float *restrict w, const global float *restrict bias, global float *restrict packed, int C)
{
    const int block = get_group_id(0), blocks = get_num_groups(0);
    for (int l = 0; l < V; l++) {
        const int c = block * V + l;
        packed[c] = HAS_BIAS && c < C ? bias[c] : 0.0f;
        for (int tap = 0; tap < TAPS; tap++)
            packed[((size_t)blocks + (size_t)block * TAPS + tap) * V + l] = c < C ? w[(size_t)c * TAPS + tap] : 0.0f;
    }
}

/* Which task this is, and how many of its kind there are. */
#define PLACE_PARAMETERS int block, int image, int range, int blocks, int images
#define PLACE get_group_id(0), get_group_id(1), get_group_id(2), get_num_groups(0), get_num_groups(1)

/* Whether the i-th vector that a tile reads from `at` on exists; constant but for GUARD. */
INLINE bool exists(int i, int at, int width, bool left, bool right)
{
#if GUARD
    return at + i >= 0 && at + i < width;
#else
    return !(left && i < LEFT) && !(right && i >= RIGHT);
#endif
}

/* Tiles of a row of `columns`, at least T: `tile(first column, first column that is new, left, right)` for each. */
#define FOR_TILES(columns, tile)                              \
    if (GUARD || (columns) == T)                              \
        for (int done_ = 0; done_ < (columns); done_ += T) {  \
            const int from_ = min(done_, (columns)-T);        \
            tile(from_, done_, true, true);                   \
        }                                                     \
    else {                                                    \
        int done_ = T;                                        \
        tile(0, 0, true, false);                              \
        while (done_ + T < (columns)) {                       \
            const int from_ = min(done_, (columns)-T - EDGE); \
            tile(from_, done_, false, false);                 \
            done_ = from_ + T;                                \
        }                                                     \
        tile((columns)-T, done_, false, true);                \
    }

/* Does STEP for each source vector v under a tile of results from column `from` on: v, normalised, meets tap r * S +
 * s of result o. */
#define FOR_SOURCES(x, STEP)                                                                                         \
    const int at = from * STRIDE_W - PADDING_W;                                                                      \
    UNROLL for (int r = 0; r < R; r++)                                                                               \
    {                                                                                                                \
        const int iy = oy * STRIDE_H - PADDING_H + r * DILATION_H;                                                   \
        if (iy < 0 || iy >= height) continue;                                                                        \
        const global in0_t *row = x + ((size_t)iy * width + at) * V;                                                 \
        UNROLL for (int i = 0; i < REACH; i++) if (exists(i, at, width, left, right))                                \
        {                                                                                                            \
            if (r >= R - STRIDE_H) PREFETCH_NEAR(row + ((size_t)STRIDE_H * width + i) * V); /* of the next row */    \
            const VF v = NORMALISED(norm, LOAD_AS(IN0_TYPE, i, row));                                                \
            UNROLL for (int s = 0; s < S; s++)                                                                       \
            {                                                                                                        \
                const int o = (i - s * DILATION_W) / STRIDE_W;                                                       \
                if (i >= s * DILATION_W && (i - s * DILATION_W) % STRIDE_W == 0 && o < T) STEP;                      \
            }                                                                                                        \
        }                                                                                                            \
    }

#ifdef FORWARD
INLINE void forward_tile(const global in0_t *restrict x, const VF *w, VF bias, const global add_t *add,
    global out0_t *y, size_t y_row, int oy, int from, int begin, int height, int width, bool left, bool right,
    const struct norm *norm, struct tally *all)
{
    VF acc[T];
    UNROLL for (int o = 0; o < T; o++) acc[o] = bias;
    FOR_SOURCES(x, acc[o] = fma(v, w[r * S + s], acc[o]))
    UNROLL for (int o = 0; o < T; o++) if (from + o >= begin)
    {
        const size_t to = y_row + (size_t)(from + o) * V;
        STORE(y + to, FINISH(acc[o], add, to));
    }
    struct tally tile = tally_tile(all, acc[0]);
    UNROLL for (int o = 0; o < T; o++) if (from + o >= begin) tally_take(&tile, acc[o], add, y_row);
    tally_join(all, &tile);
}

OUTLINE void forward_body(DEPTHWISE_ARGUMENTS(PARAMETER) STATISTICS_PARAMETER NORM_PARAMETERS, PLACE_PARAMETERS)
{
    const size_t plane = (size_t)image * blocks + block;
    const int first = range * rows_max, last = min(first + rows_max, OH);
    source += plane * height * width * V;
    VF w[TAPS];
    const VF bias = VLOAD(block, packed);
    const struct norm norm = NORM_OF(block);
    UNROLL for (int i = 0; i < TAPS; i++) w[i] = VLOAD((size_t)blocks + (size_t)block * TAPS + i, packed);
    struct tally all = TALLY_OF(block);
    for (int oy = first; oy < last; oy++) {
        const size_t row = (plane * OH + oy) * OW * V;
#define TILE(from, begin, left, right) \
    forward_tile(source, w, bias, add, result, row, oy, from, begin, height, width, left, right, &norm, &all)
        FOR_TILES(OW, TILE)
#undef TILE
    }
    TALLY_STORE(&all, range * images + image, blocks, block);
}

kernel TASK void depthwise_forward(DEPTHWISE_ARGUMENTS(PARAMETER) STATISTICS_PARAMETER NORM_PARAMETERS)
{
    forward_body(DEPTHWISE_ARGUMENTS(NAME) STATISTICS_ARGUMENT NORM_ARGUMENTS, PLACE);
}
#endif

#ifdef GRADIENT
INLINE void gradient_tile(const global in0_t *restrict dy, const VF *w, const global add_t *add, global out0_t *dx,
    size_t dx_row, int iy, int from, int begin, int OH, int OW, int width, bool left, bool right,
    struct tally *all SUMS_PARAMETER)
{
    VF acc[T][STRIDE_W];
    UNROLL for (int t = 0; t < T; t++) UNROLL for (int a = 0; a < STRIDE_W; a++) acc[t][a] = (VF)(0.0f);
#if BOTH
    VF source[T][STRIDE_W]; /* 0 where another tile has it */
    UNROLL for (int t = 0; t < T; t++) UNROLL for (int a = 0; a < STRIDE_W; a++)
    {
        const int ix = (from + t) * STRIDE_W + a;
        source[t][a] = (VF)(0.0f);
        if (from + t >= begin && ix < width) source[t][a] = tally_source(all, dx_row + (size_t)ix * V);
    }
#endif
    const int at = from + FIRST;
    UNROLL for (int r = 0; r < R; r++)
    {
        const int down = iy + PADDING_H - r * DILATION_H;
        if (down < 0 || down % STRIDE_H || down / STRIDE_H >= OH) continue;
        const global in0_t *row = dy + ((size_t)(down / STRIDE_H) * OW + at) * V;
        UNROLL for (int i = 0; i < REACH; i++) if (exists(i, at, OW, left, right))
        {
            if (r == 0) PREFETCH_NEAR(row + ((size_t)OW + i) * V);
            const VF v = LOAD_AS(IN0_TYPE, i, row);
            UNROLL for (int a = 0; a < STRIDE_W; a++) UNROLL for (int s = 0; s < S; s++)
            {
                const int offset =
                    a + PADDING_W - s * DILATION_W - FIRST * STRIDE_W; /* not negative where it divides */
                const int t = i - offset / STRIDE_W;
                if (offset % STRIDE_W || t < 0 || t >= T) continue;
                acc[t][a] = fma(v, w[r * S + s], acc[t][a]);
#if BOTH
                chain[r * S + s] = fma(v, source[t][a], chain[r * S + s]);
#endif
            }
        }
    }
#if BOTH
    weight_sums_next(sums, chain, results);
#endif
#if GATE
    struct tally tile = tally_tile(all, acc[0][0]);
    UNROLL for (int t = 0; t < T; t++) if (from + t >= begin) UNROLL for (int a = 0; a < STRIDE_W; a++)
    {
        const int ix = (from + t) * STRIDE_W + a;
        if (ix >= width) continue;
        const size_t to = dx_row + (size_t)ix * V;
        tally_prefetch(all, add, to + (size_t)width * V); /* of the next row */
        acc[t][a] = tally_take(&tile, acc[t][a], add, to);
    }
    tally_join(all, &tile);
#endif
    UNROLL for (int t = 0; t < T; t++) if (from + t >= begin) UNROLL for (int a = 0; a < STRIDE_W; a++)
    {
        const int ix = (from + t) * STRIDE_W + a;
        const size_t to = dx_row + (size_t)ix * V;
        if (ix < width) STORE(dx + to, FINISH(acc[t][a], add, to));
    }
}

OUTLINE void gradient_body(
    DEPTHWISE_ARGUMENTS(PARAMETER) STATISTICS_PARAMETER NORM_PARAMETERS PARTS_PARAMETER, PLACE_PARAMETERS)
{
    const size_t plane = (size_t)image * blocks + block;
    const int first = range * rows_max, last = min(first + rows_max, height);
    source += plane * OH * OW * V;
    VF w[TAPS];
    UNROLL for (int i = 0; i < TAPS; i++) w[i] = VLOAD((size_t)blocks + (size_t)block * TAPS + i, packed);
#if BOTH
    struct weight_sums sums;
    VF chain[TAPS];
    int results = 0;
    weight_sums_clear(&sums, chain);
#endif
    const int columns = (width + STRIDE_W - 1) / STRIDE_W;
    struct tally all = TALLY_OF(block);
    for (int iy = first; iy < last; iy++) {
        const size_t row = (plane * height + iy) * width * V;
#define TILE(from, begin, left, right) \
    gradient_tile(source, w, add, result, row, iy, from, begin, OH, OW, width, left, right, &all SUMS_ARGUMENT)
        FOR_TILES(columns, TILE)
#undef TILE
    }
    TALLY_STORE(&all, range * images + image, blocks, block);
#if BOTH
    weight_sums_store(&sums, chain, (size_t)(range * images + image) * blocks + block, workspace);
#endif
}

kernel TASK void depthwise_gradient(DEPTHWISE_ARGUMENTS(PARAMETER) STATISTICS_PARAMETER NORM_PARAMETERS PARTS_PARAMETER)
{
    gradient_body(DEPTHWISE_ARGUMENTS(NAME) STATISTICS_ARGUMENT PARTS_ARGUMENT, PLACE);
}
#endif

#ifdef WEIGHTS
INLINE void weights_tile(const global in0_t *restrict x, const global in1_t *restrict dy_row, struct weight_sums *sums,
    VF *chain, int *results, int oy, int from, int begin, int height, int width, int OW, bool left, bool right,
    const struct norm *norm)
{
    VF d[T];
    UNROLL for (int o = 0; o < T; o++) d[o] = from + o >= begin ? LOAD_AS(IN1_TYPE, from + o, dy_row) : (VF)(0.0f);
    UNROLL for (int o = 0; o < T; o++) PREFETCH_NEAR(dy_row + (size_t)(OW + from + o) * V);
    FOR_SOURCES(x, chain[r * S + s] = fma(v, d[o], chain[r * S + s]))
    weight_sums_next(sums, chain, results);
}

/* The `image` of a task is a chunk of count_max of them. */
OUTLINE void weights_body(DEPTHWISE_WEIGHTS_ARGUMENTS(PARAMETER) NORM_PARAMETERS, PLACE_PARAMETERS)
{
    const int n0 = image * count_max, n1 = min(n0 + count_max, count);
    const int first = range * rows_max, last = min(first + rows_max, OH);
    const struct norm norm = NORM_OF(block);
    struct weight_sums sums;
    VF chain[TAPS];
    int results = 0;
    weight_sums_clear(&sums, chain);
    for (int n = n0; n < n1; n++) {
        const size_t plane = (size_t)n * blocks + block;
        const global in0_t *source = x + plane * height * width * V;
        for (int oy = first; oy < last; oy++) {
            const global in1_t *row = dy + (plane * OH + oy) * OW * V;
#define TILE(from, begin, left, right) \
    weights_tile(source, row, &sums, chain, &results, oy, from, begin, height, width, OW, left, right, &norm)
            FOR_TILES(OW, TILE)
#undef TILE
        }
    }
    weight_sums_store(&sums, chain, (size_t)(range * images + image) * blocks + block, workspace);
}

kernel TASK void depthwise_weights(DEPTHWISE_WEIGHTS_ARGUMENTS(PARAMETER) NORM_PARAMETERS)
{
    weights_body(DEPTHWISE_WEIGHTS_ARGUMENTS(NAME) NORM_ARGUMENTS, PLACE);
}
#endif
