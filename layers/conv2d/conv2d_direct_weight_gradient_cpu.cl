/* Weight gradient of a convolution on a CPU-class device, any kernel, stride, padding and dilation:
 *
 *   dw[k,c,r,s] = sum over n,oh,ow of dy[n,k,oh,ow] x[n, c, oh*stride - padding + r*dilation, ...]
 *
 *   x    blocked [N][ceil(C/V)][H][W][V] (conv2d_direct_weight_gradient), or a plain image
 *        (conv2d_direct_weight_gradient_image, XV 1)
 *   dy   blocked
 *   part in the workspace from `offset` on: [splits][ceil(K/V)][C][R][S][V], which conv2d_sum adds and writes plain
 *
 * A task sums a share of the units (rows of pixels, see conv2d_rows.h) for a block of channels; the sums stay in
 * scratch, and chains of up to CONV2D_CHAIN pixels are in registers for one tap, CT channels x NV vectors at a time (image:
 * RT x ST taps of one channel x NV vectors). C, CB and KB are those of one group. Launched by conv2d_direct.c with
 * channel blocks x output blocks x splits x groups tasks, or fewer, which loop.
 *
 * Macros: R, S, STRIDE_H, STRIDE_W, DILATION_H, DILATION_W, XV, CT or RT and ST, NV, SCRATCH_GLOBAL. */
#include "parameters.h"
#include "arguments/conv2d_direct_weight_gradient_cpu.h"
#include "conv2d_chain.h"
#include "conv2d_cpu_kernel.h"
#define WINDOW R
#define ROW_STEP STRIDE_H
#define ROW_DILATION DILATION_H
#define STEP STRIDE_W
#include "conv2d_rows.h"

/* channel_blocks, output_blocks: of a task (the latter a multiple of NV). */

#if XV == V
/* d[block][unit][segment]: dy, zero for pixels that belong to the segment before. Blocks past the `existing` ones repeat
 * the last; what comes of them is dropped. */
INLINE void pack_gradient_rows(const global float *restrict dy, SCRATCH pixel *restrict d, int blocks_all,
    int block_first, int existing, int blocks, int first, int last, int units_max, struct units u)
{
    for (int b = 0; b < blocks; b++)
        for (int j = first; j < last; j++) {
            const struct unit unit = unit_at(j, u);
            const global pixel *from = (const global pixel *)dy +
                (size_t)(unit.image * blocks_all + block_first + min(b, existing - 1)) * (u.per_image / u.segments) *
                    u.width +
                unit.row * u.width + unit.from;
            SCRATCH pixel *to = d + (b * units_max + j - first) * u.segment;
            const int begin = unit.begin - unit.from;
            for (int i = 0; i < begin; i++) to[i] = 0.0f;
            for (int i = begin; i < u.segment; i++) to[i] = from[i];
        }
}

/* m[CT channels, ld apart][NV] (+)= a chain, which begins anew. */
INLINE void end_chain(VF acc[CT][NV], SCRATCH pixel *restrict m, int ld, bool add)
{
    UNROLL for (int i = 0; i < CT; i++) UNROLL for (int k = 0; k < NV; k++)
    {
        m[i * ld + k] = add ? m[i * ld + k] + acc[i][k] : acc[i][k];
        acc[i][k] = 0.0f;
    }
}

/* m[CT channels, ld apart][NV] (+)= x^T dy over `count` units for one tap. */
INLINE void multiply(SCRATCH pixel *restrict m, int ld, SCRATCH const float *restrict x, int x_unit,
    SCRATCH const pixel *restrict d, int d_block, int count, int segment, bool add)
{
    VF acc[CT][NV];
    UNROLL for (int i = 0; i < CT; i++) UNROLL for (int k = 0; k < NV; k++) acc[i][k] = 0.0f;
    int chain = 0;
    for (int j = 0; j < count; j++) {
        SCRATCH const float *p = x + j * x_unit;
        for (int from = 0; from < segment; from += CONV2D_CHAIN) {
            const int pixels = min(segment - from, (int)CONV2D_CHAIN);
            if (chain + pixels > CONV2D_CHAIN) {
                end_chain(acc, m, ld, add);
                add = true;
                chain = 0;
            }
            chain += pixels;
            for (int t = 0; t < pixels; t++, p += STEP * V, d++) {
                VF b[NV];
                UNROLL for (int k = 0; k < NV; k++) b[k] = d[k * d_block];
                UNROLL for (int i = 0; i < CT; i++)
                {
                    const VF f = (VF)(p[i]);
                    UNROLL for (int k = 0; k < NV; k++) acc[i][k] = fma(f, b[k], acc[i][k]);
                    IN_ORDER;
                }
            }
        }
    }
    end_chain(acc, m, ld, add);
}

/* Writes the sums of one block of outputs, of channels c_from .. c_end - 1 of those in m, the first of which is channel
 * c0. of_c, of_k: channels of one of the problem's groups. */
INLINE void put_part(SCRATCH const pixel *restrict m, int ld, int m_tap, global float *part, int c_from, int c_end, int c0,
    int of_c, struct share own, int block, int of_k, int merged)
{
    for (int c = c_from; c < c_end; c++) {
        if (merged == 1) {
            for (int tap = 0; tap < R * S; tap++)
                STORE_OWN(m[tap * m_tap + c * ld], (c0 + c) * R * S + tap, part, lanes_of(own, block));
            continue;
        }
        /* the lanes that are of the same one of the problem's groups as this channel */
        const int of = (c0 + c) / of_c, first = block * V - own.begin;
        const int least = max(of * of_k - first, 0), end = min((of + 1) * of_k - first, V);
        LOOP for (int tap = 0; tap < R * S; tap++)
            LOOP for (int l = least; l < end; l++) part[((c0 + c) % of_c * R * S + tap) * V + l] =
                ((SCRATCH const float *)(m + tap * m_tap + c * ld))[l];
    }
}

OUTLINE void conv2d_direct_weight_gradient_body(DIRECT_WEIGHTS_ARGUMENTS(PARAMETER), int first_task, int step)
{
    const struct units u = { per_image, segments, segment, width };
    const int c_tasks = (CB + channel_blocks - 1) / channel_blocks, k_tasks = (KB + output_blocks - 1) / output_blocks;
    SCRATCH pixel *s = (SCRATCH pixel *)scratch;
    SCRATCH pixel *d = s + channel_blocks * units_max * R * width_packed;
    SCRATCH pixel *m = d + output_blocks * units_max * segment; /* [R*S][channels][output_blocks] */
    const int ld = output_blocks, m_tap = channel_blocks * V * ld;
    const int all_tasks = c_tasks * k_tasks * splits;
    for (int all = first_task; all < all_tasks * groups; all += step) {
        const int group = all / all_tasks, task = all - group * all_tasks;
        const struct share from = share_of(group, groups, C), own = share_of(group, groups, group_results);
        const int cb = task % c_tasks * channel_blocks, kb = task / c_tasks % k_tasks * output_blocks;
        const int split = task / (c_tasks * k_tasks), begin = split * units_split,
                  end = min(begin + units_split, units_all);
        /* channels lie at c_from .. c_end - 1 of these blocks */
        const int cbs = min(channel_blocks, CB - cb), c_from = max(from.begin - cb * V, 0),
                  c_end = min(cbs * V, from.begin + C - cb * V);
        for (int first = begin; first < end; first += units_max) {
            const int last = min(first + units_max, end);
            pack_rows(x, s, all_source_blocks, from.block + cb, cbs, height, width_source, first, last, units_max, u,
                row_start, column_start, width_packed);
            pack_gradient_rows(dy, d, all_result_blocks, own.block + kb, min(output_blocks, KB - kb), output_blocks,
                first, last, units_max, u);
            for (int tap = 0; tap < R * S; tap++)
                for (int k = 0; k < output_blocks; k += NV)
                    for (int c = c_from; c < c_end; c += CT) {
                        SCRATCH const pixel *a =
                            s + (c / V * units_max * R + tap / S) * width_packed + tap % S * DILATION_W;
                        multiply(m + tap * m_tap + c * ld + k, ld, (SCRATCH const float *)a + c % V,
                            R * width_packed * V, d + k * units_max * segment, units_max * segment, last - first,
                            segment, first > begin);
                    }
        }
        for (int k = 0; k < min(output_blocks, KB - kb); k++)
            put_part(m + k, ld, m_tap,
                workspace + offset +
                    ((size_t)split * all_result_blocks + own.block + kb + k) * (C / merged) * R * S * V,
                c_from, c_end, cb * V - from.begin, C / merged, own, kb + k, group_results / merged, merged);
    }
}

kernel TASK void conv2d_direct_weight_gradient(DIRECT_WEIGHTS_ARGUMENTS(PARAMETER))
{
    conv2d_direct_weight_gradient_body(DIRECT_WEIGHTS_ARGUMENTS(NAME), get_group_id(0), get_num_groups(0));
}
#else
INLINE void end_chain_image(
    VF acc[RT][ST][NV], SCRATCH VF_unaligned *restrict m, int ld, int r0, int s0, int blocks)
{
    UNROLL for (int r = 0; r < RT; r++) UNROLL for (int s = 0; s < ST; s++) UNROLL for (int k = 0; k < NV; k++)
    {
        if (r0 + r < R && s0 + s < S && k < blocks) m[k * ld + (r0 + r) * S + s0 + s] += acc[r][s][k];
        acc[r][s][k] = 0.0f;
    }
}

/* RT x ST taps from (r0, s0) on of one channel, NV blocks of outputs; taps and blocks that do not exist are computed
 * from what lies there and dropped. m: [NV][R][S] with `ld` between blocks. */
INLINE void multiply_image(SCRATCH VF_unaligned *restrict m, int ld, int r0, int s0, int blocks,
    SCRATCH const float *restrict rows, int width_packed, const global float *restrict dy, int kb, int KB, int first,
    int last, struct units u)
{
    VF acc[RT][ST][NV];
    UNROLL for (int r = 0; r < RT; r++) UNROLL for (int s = 0; s < ST; s++) UNROLL for (int k = 0; k < NV; k++)
        acc[r][s][k] = 0.0f;
    int chain = 0;
    const int plane = u.per_image / u.segments * u.width;
    for (int j = first; j < last; j++) {
        const struct unit unit = unit_at(j, u);
        const global float *d[NV];
        UNROLL for (int k = 0; k < NV; k++) d[k] =
            dy + ((size_t)(unit.image * KB + min(kb + k, KB - 1)) * plane + unit.row * u.width + unit.from) * V;
        SCRATCH const float *p[RT];
        UNROLL for (int r = 0; r < RT; r++) p[r] =
            rows + ((j - first) * R + min(r0 + r, R - 1)) * width_packed + s0 * DILATION_W;
        for (int from = unit.begin - unit.from; from < u.segment; from += CONV2D_CHAIN) {
            const int stop = min(from + (int)CONV2D_CHAIN, u.segment);
            if (chain + stop - from > CONV2D_CHAIN) {
                end_chain_image(acc, m, ld, r0, s0, blocks);
                chain = 0;
            }
            chain += stop - from;
            for (int t = from; t < stop; t++) {
                VF b[NV];
                UNROLL for (int k = 0; k < NV; k++) b[k] = VLOAD(t, d[k]);
                UNROLL for (int r = 0; r < RT; r++) UNROLL for (int s = 0; s < ST; s++)
                {
                    const VF f = (VF)(p[r][t * STEP + s * DILATION_W]);
                    UNROLL for (int k = 0; k < NV; k++) acc[r][s][k] = fma(f, b[k], acc[r][s][k]);
                }
            }
        }
    }
    end_chain_image(acc, m, ld, r0, s0, blocks);
}

OUTLINE void conv2d_direct_weight_gradient_image_body(DIRECT_WEIGHTS_ARGUMENTS(PARAMETER), int first_task, int step)
{
    const struct units u = { per_image, segments, segment, width };
    const int k_tasks = (KB + output_blocks - 1) / output_blocks, length = C * R * S;
    SCRATCH VF_unaligned *m = (SCRATCH VF_unaligned *)scratch; /* [blocks][C][R][S] */
    SCRATCH float *s = (SCRATCH float *)(m + output_blocks * length);
    for (int task = first_task; task < k_tasks * splits; task += step) {
        const int kb = task % k_tasks * output_blocks, kbs = min(output_blocks, KB - kb);
        const int split = task / k_tasks, begin = split * units_split, end = min(begin + units_split, units_all);
        for (int i = 0; i < kbs * length; i++) m[i] = 0.0f;
        for (int first = begin; first < end; first += units_max) {
            const int last = min(first + units_max, end);
            pack_rows(
                x, s, C, 0, C, height, width_source, first, last, units_max, u, row_start, column_start, width_packed);
            for (int k = 0; k < kbs; k += NV)
                for (int c = 0; c < C; c++)
                    for (int r = 0; r < R; r += RT)
                        for (int q = 0; q < S; q += ST)
                            multiply_image(m + k * length + c * R * S, length, r, q, kbs - k,
                                s + c * units_max * R * width_packed, width_packed, dy, kb + k, KB, first, last, u);
        }
        global VF_unaligned *part = (global VF_unaligned *)(workspace + offset) + ((size_t)split * KB + kb) * length;
        for (int i = 0; i < kbs * length; i++) part[i] = m[i];
    }
}

kernel TASK void conv2d_direct_weight_gradient_image(DIRECT_WEIGHTS_ARGUMENTS(PARAMETER))
{
    conv2d_direct_weight_gradient_image_body(DIRECT_WEIGHTS_ARGUMENTS(NAME), get_group_id(0), get_num_groups(0));
}
#endif
