/* Pointwise (1x1) convolution on a CPU-class device, stride 1 or 2, all three passes:
 *
 *   forward          y[p][k]  = sum over c of x[p][c] w[k][c] + bias[k]
 *   data gradient    dx[p][c] = sum over k of dy[p][k] w[k][c]      the forward kernel with pack_gradient's weights
 *   weight gradient  dw[k][c] = sum over p of x[p][c] dy[p][k]
 *
 * A blocked image is, for each block of channels, a matrix [pixels][V]: its floats are broadcast where they lie.
 * Weights are packed by conv2d_pack_cpu.cl.
 *
 * The pixels of the smaller side are walked: with stride 2, forward and weight gradient first gather those of x that
 * are used. They are taken in groups of MW neighbours of an image, whose last group overlaps the one before; pixels
 * that it repeats are not stored. In registers: MG groups x MW pixels x NV vectors of output channels. If there are
 * many source channels, `depth` of them at a time are multiplied for all groups of a task, so that their weights stay
 * in the first-level cache; the sums so far wait in local memory.
 *
 * Launched by conv2d_pointwise.c: pointwise with (panel ranges, chunks of groups) tasks; gather with (images x blocks);
 * pointwise_weights with (channel ranges, output ranges, splits of the pixels).
 *
 * BF16_FORM (bf16_dots.h): the source is stored as bfloat16, and conv2d_pack_cpu.cl has made pairs of the weights.
 *
 * Macros: MG, MW, NV, CU (source channels unrolled), YS (stride of pixels written; 2: the data gradient of
 * stride 2, whose other pixels are zero), KEEP_OTHERS (1: they already hold what they must), STATISTICS,
 * GATE, epilogue; CT and PLANES_AHEAD for the weight gradient. */
#include "parameters.h"
#include "arguments/conv2d_pointwise_cpu.h"
#include "conv2d_cpu_kernel.h"
#if BF16_FORM
#include "bf16_dots.h"
#include "bf16_round.h"
#endif

#ifdef MW
#define FOR_PIXELS UNROLL for (int g = 0; g < MG; g++) UNROLL for (int i = 0; i < MW; i++)

/* Where a pixel that is walked lies in a plane of the result. */
INLINE size_t pixel_at(int pixel, int width, int columns)
{
#if YS == 1
    return pixel;
#else
    return (size_t)(pixel / columns) * YS * width + pixel % columns * YS;
#endif
}

INLINE void put(VF sum, const global add_t *add, global out0_t *result, size_t to, int stream)
{
    const VF v = FINISH(sum, add, to);
    if (stream)
        STREAM_AS(OUT0_TYPE, v, 0, result + to);
    else
        STORE_AS(OUT0_TYPE, v, 0, result + to);
}

/* SOURCE: the number that is broadcast, channel `here` of the block. Numbers of 16 bits are widened in whole vectors,
 * once for each panel: widening what is broadcast would cost as much as the products. */
#if IS_BF16(IN0_TYPE)
#define SOURCE(g, i, here) (((const float *)&wide[g][i])[here])
#else
#define SOURCE(g, i, here) (p[g][(i)*V + (here)])
#endif

/* Describes what a gate will read for a later tile: from float `at` on, in every `step`-th block from the k-th on. */
#if GATE
#define LATER_PARAMETER , const struct tally *gate, const global add_t *add, size_t at, size_t plane, int k, int step
#define LATER_ARGUMENT , &all[0], add, later, result_plane, last == padded ? (c0 - first) / V : NV, steps
#else
#define LATER_PARAMETER
#define LATER_ARGUMENT
#endif

/* acc += `here` channels of one block of the source, times their weights. What a gate will read is prefetched evenly: a
 * burst of prefetches stalls. */
INLINE void multiply(VF acc[MG][MW][NV], const global in0_t *const *p, const global float *w, int here LATER_PARAMETER)
{
#if IS_BF16(IN0_TYPE) && !BF16_FORM
    VF wide[MG][MW];
    FOR_PIXELS wide[g][i] = LOAD_AS(IN0_TYPE, i, p[g]);
#endif
    _Pragma("unroll 1") for (int c = 0; c < here; c += CU)
    {
#if GATE
        LOOP for (int i = c / CU; i < MG * MW; i += V / CU)
            LOOP for (int j = k; j < NV; j += step) tally_prefetch(gate, add, at + j * plane + i * YS * V);
#endif
#if BF16_FORM
        const global uint *words = (const global uint *)w + c / 2 * NV * V;
        UNROLL for (int d = 0; d < CU; d += 2)
        {
            VU b[NV];
            UNROLL for (int k = 0; k < NV; k++) b[k] = as_uint16(VLOAD(d / 2 * NV + k, (const global float *)words));
            FOR_PIXELS
            {
                const uint f = *(const global uint *)(p[g] + i * V + c + d);
                UNROLL for (int k = 0; k < NV; k++) PAIR_ADD(acc[g][i][k], b[k], f);
                IN_ORDER;
            }
        }
#else
        UNROLL for (int d = 0; d < CU; d++)
        {
            VF b[NV];
            UNROLL for (int k = 0; k < NV; k++) b[k] = VLOAD(d * NV + k, w);
            FOR_PIXELS
            {
                const VF f = (VF)(SOURCE(g, i, c + d));
                UNROLL for (int k = 0; k < NV; k++) acc[g][i][k] = fma(f, b[k], acc[g][i][k]);
                IN_ORDER;
            }
        }
        w += CU * NV * V;
#endif
    }
}

/* length: pixels of an image that are walked, in groups_image groups; `columns` in a row of them. height, width: of the
 * result. groups_max (a multiple of MG), panels_max: of a task. depth: a multiple of V, or all channels. ahead: groups
 * from those in use to those that are prefetched. following: vectors of the weights after those in use that are
 * prefetched with each block of channels. stream: results are written around the caches, being larger than they are. */
OUTLINE void pointwise_body(POINTWISE_ARGUMENTS(PARAMETER) STATISTICS_PARAMETER, int range, int chunk)
{
    const size_t result_plane = (size_t)height * width * V;
    const int q0 = chunk * groups_max, q1 = min(q0 + groups_max, groups);
    const int p0 = range * panels_max, p1 = min(p0 + panels_max, panels);
    for (int panel = p0; panel < p1; panel++) {
        struct tally all[NV];
        UNROLL for (int k = 0; k < NV; k++) all[k] = TALLY_OF(panel * NV + k);
        for (int first = 0; first < padded; first += depth) {
            const int last = min(first + depth, padded);
            const global float *coming = packed + (size_t)(panels + (size_t)panel * padded + last) * NV * V;
            for (int q = q0; q < q1; q += MG) {
                const global in0_t *p[MG];
                size_t at[MG];
                int from[MG], repeated[MG];
                UNROLL for (int g = 0; g < MG; g++)
                {
                    const int t = min(q + g, q1 - 1), n = t / groups_image, o = (t - n * groups_image) * MW;
                    from[g] = min(o, length - MW);
                    repeated[g] = q + g < q1 ? o - from[g] : MW;
                    p[g] = source + (((size_t)n * source_blocks + first / V) * length + from[g]) * V;
                    at[g] = ((size_t)n * result_blocks + panel * NV) * result_plane;
                }
                local float *kept = sums + (size_t)((q - q0) * MW * NV) * V;
                VF acc[MG][MW][NV];
                if (first)
                    FOR_PIXELS UNROLL for (int k = 0; k < NV; k++) acc[g][i][k] =
                        LOCAL_LOAD((g * MW + i) * NV + k, kept);
                else
                    FOR_PIXELS UNROLL for (int k = 0; k < NV; k++) acc[g][i][k] = VLOAD(panel * NV + k, packed);
                const global float *w = packed + (size_t)(panels + (size_t)panel * padded + first) * NV * V;
#if GATE
                const size_t later = at[0] + pixel_at(from[0] + ahead * MG * MW, width, columns) * V;
                const int steps = (last - first + V - 1) / V;
#endif
                for (int c0 = first; c0 < last; c0 += V) {
                    const int here = min(V, last - c0);
                    LOOP for (int i = 0; i < following; i++, coming += V) PREFETCH_NEAR(coming);
                    if (panel == p0) FOR_PIXELS PREFETCH_NEAR(p[g] + (ahead * MG * MW + i) * V);
                    multiply(acc, p, w, here LATER_ARGUMENT);
                    w += (size_t)here * NV * V;
                    UNROLL for (int g = 0; g < MG; g++) p[g] += (size_t)length * V;
                }
                if (last < padded) {
                    FOR_PIXELS UNROLL for (int k = 0; k < NV; k++)
                        LOCAL_STORE(acc[g][i][k], (g * MW + i) * NV + k, kept);
                    continue;
                }
                VF results[NV][MG * MW];
                FOR_PIXELS UNROLL for (int k = 0; k < NV; k++) results[k][g * MW + i] = acc[g][i][k];
                const int blocks = min(NV, result_blocks - panel * NV);
                LOOP for (int k = 0; k < blocks; k++) /* whole lines of one block after another */
                {
                    struct tally tile = tally_tile(&all[k], results[k][0]);
                    LOOP for (int g = 0; g < MG; g++) LOOP for (int i = repeated[g]; i < MW; i++)
                    {
                        const size_t to = at[g] + k * result_plane + pixel_at(from[g] + i, width, columns) * V;
                        put(tally_take(&tile, results[k][g * MW + i], add, to), add, result, to, stream);
#if YS == 2 && !KEEP_OTHERS /* right of an even pixel, below, and both */
                        const int row = (from[g] + i) / columns, column = from[g] + i - row * columns;
                        const bool right = YS * column + 1 < width, below = YS * row + 1 < height;
                        LOOP for (int other = 1; other < 4; other++)
                        {
                            if ((other & 1 && !right) || (other & 2 && !below)) continue;
                            const size_t there = to + ((other & 1) + (size_t)(other >> 1) * width) * V;
                            put((VF)(0.0f), add, result, there, stream);
                        }
#endif
                    }
                    tally_join(&all[k], &tile);
                }
            }
        }
        UNROLL for (int k = 0; k < NV; k++) if (panel * NV + k < result_blocks)
            TALLY_STORE(&all[k], chunk, result_blocks, panel * NV + k);
    }
}

kernel TASK void pointwise(POINTWISE_ARGUMENTS(PARAMETER) STATISTICS_PARAMETER)
{
    pointwise_body(POINTWISE_ARGUMENTS(NAME) STATISTICS_ARGUMENT, get_group_id(0), get_group_id(1));
}
#endif

/* gathered[plane][OH][OW][V] = the pixels of x that a stride uses: whole lines of the caches, and long runs. */
kernel TASK void gather(GATHER_ARGUMENTS(PARAMETER))
{
    const global in0_t *from = x + (size_t)get_group_id(0) * height * width * V;
    global in0_t *to = gathered + (size_t)get_group_id(0) * OH * OW * V;
    for (int i = 0; i < OH; i++)
        for (int j = 0; j < OW; j++) {
            const global in0_t *pixel = from + ((size_t)i * stride * width + j * stride) * V;
            PREFETCH(pixel + (size_t)stride * width * V);
            STORE_AS(IN0_TYPE, LOAD_AS(IN0_TYPE, 0, pixel), i * OW + j, to);
        }
}

#ifdef CT
INLINE void outer(VF acc[CT][NV], const global float *x, const global float *const *dy)
{
    VF b[NV];
    UNROLL for (int k = 0; k < NV; k++) b[k] = VLOAD(0, dy[k]);
    UNROLL for (int i = 0; i < CT; i++)
    {
        const VF f = (VF)(x[i]);
        UNROLL for (int k = 0; k < NV; k++) acc[i][k] = fma(f, b[k], acc[i][k]);
        IN_ORDER;
    }
}

/* Where a tensor has numbers of 16 bits, the positions of a chunk are widened before its passes: one block of x, NV of
 * dy. With BF16_FORM, two neighbouring positions become pairs of bfloat16 numbers; after an odd one comes zero. */
#define WIDEN (IS_BF16(IN0_TYPE) || IS_BF16(IN1_TYPE))
#define POSITIONS 224 /* of a chunk, at most */

#if BF16_FORM
#define POSITIONS_EACH 2
#define KEEP(to, t, v)           \
    if ((t) % 2)                 \
        (to) = PAIR_OF(even, v); \
    else                         \
        even = (v)
#define KEEP_LAST(to, t) \
    if ((t) % 2) (to) = PAIR_OF(even, (VF)(0.0f))
#else
#define POSITIONS_EACH 1
#define KEEP(to, t, v) (to) = (v)
#define KEEP_LAST(to, t)
#endif

INLINE void outer_wide(VF acc[CT][NV], const float *x, const VF *dy)
{
#if BF16_FORM
    UNROLL for (int i = 0; i < CT; i++)
    {
        const uint f = as_uint(x[i]);
        UNROLL for (int k = 0; k < NV; k++) PAIR_ADD(acc[i][k], as_uint16(dy[k]), f);
    }
#else
    UNROLL for (int i = 0; i < CT; i++) UNROLL for (int k = 0; k < NV; k++) acc[i][k] =
        fma((VF)(x[i]), dy[k], acc[i][k]);
#endif
}

/* to[t * step] = position t of the runs r0 .. r1-1 in this block of the tensor, or pair t of positions; prefetches those of
 * the next chunk. */
#define WIDEN_RUNS(type, to, step, tensor, block, blocks)                                                      \
    {                                                                                                          \
        int t = 0;                                                                                             \
        VF even = (VF)(0.0f);                                                                                  \
        for (int r = r0; r < r1; r++) {                                                                        \
            const int n = r / runs_image, o = (r - n * runs_image) * run, count = min(run, length - o);        \
            const int next = min(r + chunk, end - 1), nn = next / runs_image;                                  \
            const int on = (next - nn * runs_image) * run;                                                     \
            const global ELEMENT(type) *from = (tensor) + ((size_t)(n * (blocks) + (block)) * length + o) * V; \
            const global ELEMENT(type) *later =                                                                \
                (tensor) + ((size_t)(nn * (blocks) + (block)) * length + on) * V;                              \
            for (int i = 0; i < count; i++, t++) {                                                             \
                PREFETCH(later + i * V);                                                                       \
                KEEP((to)[t / POSITIONS_EACH * (step)], t, LOAD_AS(type, i, from));                            \
            }                                                                                                  \
        }                                                                                                      \
        KEEP_LAST((to)[t / POSITIONS_EACH * (step)], t);                                                       \
    }

/* part[split][kb][c][lane] += x[p][c] dy[p][kb, lane] over the split's pixels, `length` of an image (stride 1, or
 * gathered). Pixels come in runs of at most `run` neighbours, runs_image of each image. A chunk is `chunk` runs (up
 * to 72 pixels, whose dy stays in the first-level cache); for each chunk the task makes one pass for CT channels x
 * NV vectors. Between chunks the sums stay where they are needed, in the part; a chunk's chain
 * of multiply-adds begins with 0, so that a large sum does not round each of them. Each pass also prefetches PLANES_AHEAD
 * of the blocks of the next chunk, or, with more passes than blocks, 1 / 2^shift of one: evenly, since a burst of
 * prefetches stalls. part is in the workspace from `offset` on. channels_max (a multiple of V), blocks_max (of NV): of
 * a task. */
OUTLINE void pointwise_weights_body(POINTWISE_WEIGHTS_ARGUMENTS(PARAMETER), int c_range, int k_range, int split)
{
    const int CB = (C + V - 1) / V, c0 = c_range * channels_max, c1 = min(c0 + channels_max, C);
    const int k0 = k_range * blocks_max, k1 = min(k0 + blocks_max, KB);
    const int begin = split * runs_split, end = min(begin + runs_split, runs);
    const int x_planes = (c1 - c0 + V - 1) / V, planes = x_planes + k1 - k0;
    const int passes = (c1 - c0 + CT - 1) / CT * ((k1 - k0 + NV - 1) / NV);
    int shift = 0;
    while (shift < 4 && planes << (shift + 1) <= passes) shift++;
    global float *part = workspace + offset + (size_t)split * KB * C * V;
#if WIDEN
    VF wide_x[POSITIONS], wide_dy[POSITIONS * NV];
#endif
    for (int r0 = begin; r0 < end; r0 += chunk) {
        const int r1 = min(r0 + chunk, end);
        int pass = 0;
#if WIDEN
        int positions = 0; /* the last run of an image may be shorter */
        for (int r = r0; r < r1; r++) positions += min(run, length - r % runs_image * run);
#endif
        for (int kb = k0; kb < k1; kb += NV)
            for (int c = c0; c < c1; c += CT, pass++) {
                global float *m = part + ((size_t)kb * C + c) * V;
                VF acc[CT][NV];
                UNROLL for (int i = 0; i < CT; i++) UNROLL for (int k = 0; k < NV; k++) acc[i][k] = 0.0f;
#if WIDEN
                if (c == c0) {
                    UNROLL for (int k = 0; k < NV; k++)
                    {
                        const int block = min(kb + k, KB - 1);
                        WIDEN_RUNS(IN1_TYPE, wide_dy + k, NV, dy, block, KB)
                    }
                }
                if (c % V == 0) WIDEN_RUNS(IN0_TYPE, wide_x, 1, x, c / V, CB)
                _Pragma("unroll 1") for (int t = 0; t * POSITIONS_EACH < positions; t++)
                    outer_wide(acc, (const float *)&wide_x[t] + c % V, wide_dy + t * NV);
#else
                const int ahead = (pass >> shift) * PLANES_AHEAD, part_ahead = pass & ((1 << shift) - 1);
                _Pragma("unroll 1") for (int r = r0; r < r1; r++)
                {
                    const int n = r / runs_image, o = (r - n * runs_image) * run, count = min(run, length - o);
                    const global float *a = x + ((size_t)(n * CB + c / V) * length + o) * V + c % V;
                    const global float *b[NV];
                    UNROLL for (int k = 0; k < NV; k++) b[k] =
                        dy + ((size_t)(n * KB + min(kb + k, KB - 1)) * length + o) * V;
                    if (ahead < planes && r + chunk < end) {
                        const int nn = (r + chunk) / runs_image, on = (r + chunk - nn * runs_image) * run;
                        const global float *f[PLANES_AHEAD];
                        UNROLL for (int u = 0; u < PLANES_AHEAD; u++)
                        {
                            const int plane = min(ahead + u, planes - 1);
                            f[u] = plane < x_planes
                                ? x + ((size_t)(nn * CB + c0 / V + plane) * length + on) * V
                                : dy + ((size_t)(nn * KB + k0 + plane - x_planes) * length + on) * V;
                        }
                        for (int t = 0; t < count; t++) {
                            const int line =
                                (part_ahead * count + t) >> shift; /* again and again, which costs little */
                            UNROLL for (int u = 0; u < PLANES_AHEAD; u++) PREFETCH_NEAR(f[u] + line * V);
                            outer(acc, a, b);
                            a += V;
                            UNROLL for (int k = 0; k < NV; k++) b[k] += V;
                        }
                    } else
                        for (int t = 0; t < count; t++) {
                            outer(acc, a, b);
                            a += V;
                            UNROLL for (int k = 0; k < NV; k++) b[k] += V;
                        }
                }
#endif
                UNROLL for (int i = 0; i < CT; i++) UNROLL for (int k = 0; k < NV; k++) if (c + i < C && kb + k < KB)
                    VSTORE(r0 > begin ? VLOAD((size_t)k * C + i, m) + acc[i][k] : acc[i][k], (size_t)k * C + i, m);
            }
    }
}

kernel TASK void pointwise_weights(POINTWISE_WEIGHTS_ARGUMENTS(PARAMETER))
{
    pointwise_weights_body(POINTWISE_WEIGHTS_ARGUMENTS(NAME), get_group_id(0), get_group_id(1), get_group_id(2));
}
#endif
