/* Direct convolution on a CPU-class device, any kernel, stride, padding and dilation:
 *
 *   forward        y[n,k,oh,ow] = sum over c,r,s of x[n, c, oh*stride - padding + r*dilation, ...] w[k,c,r,s] + bias[k]
 *   data gradient  dx[n,c,h,w]  = sum over k,r,s of dy[n, k, (h + padding - r*dilation)/stride, ...] w[k,c,r,s]
 *                  over the taps for which the divisions leave no rest
 *
 * Both are one kernel: the data gradient is cut into stride x stride classes of pixels (by the rest of h and w), each
 * of which is a dense convolution of dy with stride 1 and the taps of its class; no zeros are multiplied. Pixel q of
 * class a is h = q*stride + a, and tap r, where it belongs to the class, reads row q + (a + padding -
 * r*dilation)/stride of dy, which is row (a + ORIGIN_H - r*DILATION_H)/STRIDE_H of the WINDOW rows packed for q.
 *
 *   source   blocked [N][ceil(C/V)][H][W][V], or plain [N][C][H][W] (XV 1)
 *   packed   bias and weights, see conv2d_pack_cpu.cl
 *   result   blocked, and `add` like it; result may be add
 *
 * A task takes chunks of units (see conv2d_rows.h) and a range of panels of NV blocks of output channels. In
 * registers: MR units x MW pixels x NV vectors. If there are many source channels, `depth` of them at a time are
 * multiplied for all pixels of a chunk: their weights stay near, while the next ones are prefetched evenly. The sums
 * so far wait after the chunk's sources. Taps that read rows above or below the image are left out where MR is 1.
 * Launched by conv2d_direct.c with (chunks, panel ranges, groups) tasks; blocks and panels are those of one group.
 *
 * Macros: R, S, STRIDE_H, STRIDE_W, DILATION_H, DILATION_W, GRADIENT (0 forward, 1 data gradient), WINDOW, ORIGIN_H,
 * ORIGIN_W, XV, MR, MW, NV, PREFETCHES (vectors of weights, with each channel), STREAM, SCRATCH_GLOBAL, STATISTICS,
 * GATE, epilogue. */
#include "parameters.h"
#include "arguments/conv2d_direct_cpu.h"
#include "conv2d_cpu_kernel.h"
#if GATE
#define TALLY_LOOP LOOP
#else
#define TALLY_LOOP UNROLL
#endif

#if GRADIENT
#define CLASSES_H STRIDE_H
#define CLASSES_W STRIDE_W
#define ROW_STEP 1
#define ROW_DILATION 1
#define STEP 1
#else
#define CLASSES_H 1
#define CLASSES_W 1
#define ROW_STEP STRIDE_H
#define ROW_DILATION DILATION_H
#define STEP STRIDE_W
#endif
#include "conv2d_rows.h"

#define FOR_TILE \
    UNROLL for (int i = 0; i < MR; i++) UNROLL for (int m = 0; m < MW; m++) UNROLL for (int k = 0; k < NV; k++)

/* What is stored: of a group the blocks from own.block on, `blocks` of them, of a tensor with all_blocks. */
struct plane {
    int all_blocks, blocks, height, width;
    struct share own;
};

/* Multiplies MR x MW pixels of one class: source rows at p[i], weights of channels `from` to `to` at w, sums in acc
 * (bias at first). Channel 0 is lane `begin` of its block. The window begins at row y of the source, which has `height` rows. What lies `ahead` of the
 * weights in use is prefetched. */
INLINE void multiply(VF acc[MR][MW][NV], SCRATCH const float **p, int row_floats, int block_floats,
    const global float *restrict w, int from, int to, int begin, int y, int height, int ahead, int class_h, int class_w)
{
    for (int c0 = from, channels; c0 < to; c0 += channels) {
        const int lane = (c0 + begin) % XV;
        channels = min(XV - lane, to - c0);
        /* The taps stay loops: unrolled, neighbouring taps would share pixels, and the compiler, keeping those in
         * registers, would spill the sums. */
        _Pragma("unroll 1") for (int r = 0; r < R; r++)
        {
#if GRADIENT
            const int down = class_h + ORIGIN_H - r * DILATION_H;
            if (down % STRIDE_H) continue;
            const int row = down / STRIDE_H;
#else
            const int row = r;
#endif
            if (MR == 1 && (y + row * ROW_DILATION < 0 || y + row * ROW_DILATION >= height)) continue;
            _Pragma("unroll 1") for (int s = 0; s < S; s++)
            {
#if GRADIENT
                const int right = class_w + ORIGIN_W - s * DILATION_W;
                if (right % STRIDE_W) continue;
                const int column = right / STRIDE_W;
#else
                const int column = s * DILATION_W;
#endif
                const global float *u = w + ((size_t)(c0 - from) * R * S + (r * S + s) * channels) * NV * V;
                SCRATCH const float *a[MR];
                UNROLL for (int i = 0; i < MR; i++) a[i] = p[i] + row * row_floats + column * XV + lane;
                _Pragma("unroll 1") for (int c = 0; c < channels; c++, u += NV * V)
                {
                    UNROLL for (int k = 0; k < PREFETCHES; k++) PREFETCH(u + ahead + k * V);
                    VF b[NV];
                    UNROLL for (int k = 0; k < NV; k++) b[k] = VLOAD(k, u);
                    UNROLL for (int i = 0; i < MR; i++) UNROLL for (int m = 0; m < MW; m++)
                    {
                        const VF f = (VF)(a[i][m * STEP * XV + c]);
                        UNROLL for (int k = 0; k < NV; k++) acc[i][m][k] = fma(f, b[k], acc[i][m][k]);
                        IN_ORDER;
                    }
                }
            }
        }
        UNROLL for (int i = 0; i < MR; i++) p[i] += block_floats;
    }
}

/* Stores the pixels of one row of the block; those before `begin` belong to the block before. */
INLINE void put(VF acc[MW][NV], const global float *add, global float *result, struct plane out, int image, int panel,
    int y, int pixel_first, int begin, int class_w, struct tally *all)
{
    if (y >= out.height) return;
    UNROLL for (int k = 0; k < NV; k++)
    {
        if (panel * NV + k >= out.blocks) continue;
        const int block = out.own.block + panel * NV + k;
        const enum lanes lanes = lanes_of(out.own, panel * NV + k);
        struct tally row = tally_tile(&all[k], acc[0][k]);
        const size_t row_at = (((size_t)image * out.all_blocks + block) * out.height + y) * out.width;
        VF results[MW];
        UNROLL for (int m = 0; m < MW; m++) results[m] = acc[m][k];
        LOOP for (int m = 0; m < MW; m++)
        {
            const int column = (pixel_first + m) * CLASSES_W + class_w;
            if (pixel_first + m < begin || column >= out.width) continue;
            const size_t at = (row_at + column) * V;
            const VF taken = tally_take(&row, results[m], add, at);
            STORE_LANES(result + at, FINISH(taken, add, at), lanes);
        }
        tally_join(&all[k], &row);
    }
}

#if GATE
/* Prefetches what put() will read. */
INLINE void put_prefetch(const struct tally *all, const global float *add, struct plane out, int image, int panel,
    int y, int pixel_first, int class_w)
{
    if (y >= out.height) return;
    LOOP for (int k = 0; k < min(NV, out.blocks - panel * NV); k++)
    {
        const int block = out.own.block + panel * NV + k;
        const size_t row_at = (((size_t)image * out.all_blocks + block) * out.height + y) * out.width;
        LOOP for (int m = 0; m < MW; m++)
            tally_prefetch(all, add, (row_at + (pixel_first + m) * CLASSES_W + class_w) * V);
    }
}
#endif

/* units_max: of a chunk; panels_max: of a task. depth: a multiple of XV, or all channels. distance: floats of weights
 * from those in use to those that are prefetched, by `shares` tiles in turn. */
OUTLINE void conv2d_direct_body(DIRECT_ARGUMENTS(PARAMETER) STATISTICS_PARAMETER, int group, int groups, int range,
    int first_chunk, int step)
{
    SCRATCH float *s = scratch;
    const struct units u = { per_image, segments, segment, width };
    const int result_blocks = (group_results + V - 1) / V, panels = (result_blocks + NV - 1) / NV;
    const struct share source_share = share_of(group, groups, group_sources);
    const struct plane out = { all_result_blocks, result_blocks, result_height, result_width,
        share_of(group, groups, group_results) };
    const global float *bias = packed + (size_t)group * panels * NV * V;
    const int begin = source_share.begin, padded = group_sources;
    const int source_blocks = XV == 1 ? padded : (padded + V - 1) / V;
    const int panel_first = range * panels_max, panel_last = min(panel_first + panels_max, panels);
    const int row_floats = width_packed * XV, unit_floats = WINDOW * row_floats, block_floats = units_max * unit_floats;
    const int blocks = (segment + MW - 1) / MW, parts = CLASSES_H * CLASSES_W;
    SCRATCH float *sums = s + (size_t)source_blocks * block_floats;
    for (int chunk = first_chunk; chunk < chunks; chunk += step) {
        const int first = chunk * units_max, count = min(units_max, units_all - first);
        pack_rows(source, (SCRATCH pixel *)s, all_source_blocks, source_share.block, source_blocks, source_height, source_width, first,
            first + count, units_max, u, row_start, column_start, width_packed);
        const int tiles = (count + MR - 1) / MR * blocks * parts;
        for (int panel = panel_first; panel < panel_last; panel++) {
            const global float *w = packed + (size_t)groups * panels * NV * V +
                ((size_t)group * panels + panel) * padded * R * S * NV * V;
            struct tally all[NV];
            TALLY_LOOP for (int k = 0; k < NV; k++) all[k] = TALLY_OF(out.own.block + panel * NV + k);
            for (int from = 0, to; from < padded; from = to) {
                to = min(from + depth - (from ? 0 : begin), padded); /* the last channel of a block */
                for (int t = 0; t < tiles; t++) {
                    const int j = t / (blocks * parts) * MR, o = t / parts % blocks * MW, part = t % parts;
                    const int first_pixel = min(o, segment - MW); /* the last block of a row overlaps the one before */
                    const int y = unit_at(first + j, u).row * ROW_STEP + row_start;
                    const int ahead = distance + min(t % shares * PREFETCHES, NV - PREFETCHES) * V;
#if GATE /* of the next tile of this class */
                    if (to == padded && t + parts < tiles) {
                        const int next = (t + parts) / parts, row = next / blocks * MR, column = next % blocks * MW;
                        LOOP for (int i = row; i < min(row + MR, count); i++)
                        {
                            const struct unit unit = unit_at(first + i, u);
                            put_prefetch(all, add, out, unit.image, panel, unit.row * CLASSES_H + part / CLASSES_W,
                                unit.from + min(column, segment - MW), part % CLASSES_W);
                        }
                    }
#endif
                    SCRATCH float *kept = sums + (size_t)t * (MR * MW * NV * V);
                    VF acc[MR][MW][NV];
                    SCRATCH const float *p[MR];
                    UNROLL for (int i = 0; i < MR; i++) p[i] = s + (size_t)((from + begin) / XV) * block_floats +
                        min(j + i, count - 1) * unit_floats + first_pixel * STEP * XV;
                    if (from)
                        FOR_TILE acc[i][m][k] = SCRATCH_LOAD((i * MW + m) * NV + k, kept);
                    else
                        FOR_TILE acc[i][m][k] = VLOAD(panel * NV + k, bias);
                    multiply(acc, p, row_floats, block_floats, w, from, to, begin, y, source_height, ahead, part / CLASSES_W,
                        part % CLASSES_W);
                    if (to < padded) {
                        FOR_TILE SCRATCH_STORE(acc[i][m][k], (i * MW + m) * NV + k, kept);
                        continue;
                    }
                    UNROLL for (int i = 0; i < MR; i++) if (j + i < count)
                    {
                        const struct unit unit = unit_at(first + j + i, u);
                        put(acc[i], add, result, out, unit.image, panel, unit.row * CLASSES_H + part / CLASSES_W,
                            unit.from + first_pixel, max(unit.begin, unit.from + o), part % CLASSES_W, all);
                    }
                }
                w += (size_t)(to - from) * R * S * NV * V;
            }
            UNROLL for (int k = 0; k < NV; k++) if (panel * NV + k < result_blocks)
                TALLY_STORE_LANES(&all[k], chunk, all_result_blocks, out.own.block + panel * NV + k,
                    lanes_of(out.own, panel * NV + k));
        }
    }
}

kernel TASK void conv2d_direct(DIRECT_ARGUMENTS(PARAMETER) STATISTICS_PARAMETER)
{
    conv2d_direct_body(DIRECT_ARGUMENTS(NAME) STATISTICS_ARGUMENT, get_group_id(2), get_num_groups(2), get_group_id(1),
        get_group_id(0), get_num_groups(0));
}
