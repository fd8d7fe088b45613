/* Packs plain weights w [K][C][taps] for the kernels that multiply blocked activations (direct, pointwise).
 *
 *   packed: bias [groups][panels * NV * V], then [group][panel][source block][tap][channel of the block][NV][V]
 *
 * C and K are channels of a group. Where it begins in the middle of a block, its first block has fewer channels and its
 * first lanes are zero. Between `merged` groups that count as one there are no weights.
 *
 * Lanes are output channels: K for the forward pass (pack_forward), C for the data gradient (pack_gradient), whose
 * source channels are K. A source block has SV channels (V, or 1 for a plain image); the last has as many as are left
 * of `padded` = source channels rounded up for the unrolled loop. Lanes and channels that do not exist are zero; so is
 * the bias where there is none (HAS_BIAS 0).
 *
 * pair makes of two neighbouring source channels of a pointwise convolution a vector of pairs of bfloat16 numbers
 * (bf16_dots.h), in the first half of each source block's memory.
 *
 * Launched by conv2d_cpu.c before the weights are used, with tasks for panels and for chunks of V source channels:
 * pack_forward and pair (chunks, panels, groups), pack_gradient (panels, chunks, groups), so that neighbouring tasks read neighbouring memory. */
#include "parameters.h"
#include "arguments/conv2d_pack_cpu.h"
#include "conv2d_cpu_kernel.h"
#include "bf16_round.h"

/* Where the vectors of (source channel, tap) lie, counted in groups of NV. Channel 0 is lane `begin` of its block. */
INLINE int packed_at(int channel, int tap, int taps, int padded, int begin)
{
    const int block = (channel + begin) / SV * SV - begin, first = max(block, 0), end = min(block + SV, padded);
    return first * taps + tap * (end - first) + channel - first;
}

/* The place of a panel of a group. */
struct place {
    int group, groups, panel, panels;
};

INLINE global float *panel_at(global float *packed, struct place at, int taps, int padded)
{
    return packed + (size_t)at.groups * at.panels * NV * V +
        ((size_t)at.group * at.panels + at.panel) * padded * taps * NV * V;
}

INLINE void pack_bias(const global float *bias, global float *packed, struct place at, int outputs, int begin)
{
    LOOP for (int i = 0; i < NV * V; i++)
    {
        const int k = at.panel * NV * V + i - begin;
        packed[(at.group * at.panels + at.panel) * NV * V + i] =
            HAS_BIAS && k >= 0 && k < outputs ? bias[at.group * outputs + k] : 0.0f;
    }
}

INLINE void pack_zeros(global float *panel, int from, int taps, int padded, int begin)
{
    LOOP for (int channel = from; channel < padded; channel++)
        LOOP for (int tap = 0; tap < taps; tap++)
            LOOP for (int j = 0; j < NV; j++)
                VSTORE((VF)(0.0f), packed_at(channel, tap, taps, padded, begin) * NV + j, panel);
}

/* Source channels first .. last-1 of a panel of merged groups. `gradient`: the sources are K. */
INLINE void pack_merged(const global float *w, global float *out, int first, int last, int lane0, int begin, int C,
    int K, int taps, int padded, int merged, bool gradient)
{
    LOOP for (int e = first * taps; e < last * taps; e++)
    {
        const int source = e / taps, tap = e % taps;
        global float *to = out + (size_t)packed_at(source, tap, taps, padded, begin) * NV * V;
        LOOP for (int l = 0; l < NV * V; l++)
        {
            const int result = lane0 + l, c = gradient ? result : source, k = gradient ? source : result;
            const bool exists = result >= 0 && c < C && k < K && c / (C / merged) == k / (K / merged);
            to[l] = exists ? w[(k * (C / merged) + c % (C / merged)) * taps + tap] : 0.0f;
        }
    }
}

OUTLINE void pack_forward_body(PACK_ARGUMENTS(PARAMETER), struct place at, int block)
{
    const int first = block * V, last = min(first + V, C), length = C * taps;
    const int begin = share_of(at.group, at.groups, C).begin, lane0 = -share_of(at.group, at.groups, K).begin;
    if (first == 0) pack_bias(bias, packed, at, K, -lane0);
    global float *out = panel_at(packed, at, taps, padded);
    w += (size_t)at.group * K * (C / merged) * taps;
    if (merged > 1) pack_merged(w, out, first, last, at.panel * NV * V + lane0, begin, C, K, taps, padded, merged, false);
    LOOP for (int j = 0; j < (merged > 1 ? 0 : NV); j++)
    {
        const int k0 = (at.panel * NV + j) * V + lane0;
        for (int e0 = first * taps; e0 < last * taps; e0 += V) {
            const int from = max(min(e0, length - V), 0); /* the last one overlaps the one before */
            VF row[V];
            if (length >= V) {
                LOOP for (int l = 0; l < V; l++)
                {
                    const global float *p = w + (size_t)clamp(k0 + l, 0, K - 1) * length + from;
                    PREFETCH(p + 4 * V);
                    row[l] = k0 + l >= 0 && k0 + l < K ? VLOAD(0, p) : (VF)(0.0f);
                }
                transpose(row);
                LOOP for (int i = 0, c = from / taps, tap = from - c * taps; i < V; i++)
                {
                    VSTORE(row[i], packed_at(c, tap, taps, padded, begin) * NV + j, out);
                    if (++tap == taps) tap = 0, c++;
                }
            } else
                LOOP for (int e = 0; e < length; e++)
                    LOOP for (int l = 0; l < V; l++)
                        out[(size_t)(packed_at(e / taps, e % taps, taps, padded, begin) * NV + j) * V + l] =
                            k0 + l >= 0 && k0 + l < K ? w[(size_t)(k0 + l) * length + e] : 0.0f;
        }
    }
    if (first + V >= C) pack_zeros(out, C, taps, padded, begin);
}

kernel TASK void pack_forward(PACK_ARGUMENTS(PARAMETER))
{
    const struct place at = { get_group_id(2), get_num_groups(2), get_group_id(1), get_num_groups(1) };
    pack_forward_body(PACK_ARGUMENTS(NAME), at, get_group_id(0));
}

OUTLINE void pack_gradient_body(PACK_ARGUMENTS(PARAMETER), struct place at, int block)
{
    const int first = block * V, last = min(first + V, K);
    const int begin = share_of(at.group, at.groups, K).begin, own = share_of(at.group, at.groups, C).begin;
    const int c0 = at.panel * NV * V - own, least = max(-c0, 0), lanes = min(NV * V, C - c0);
    if (first == 0) pack_bias(bias, packed, at, C, own);
    global float *out = panel_at(packed, at, taps, padded);
    w += (size_t)at.group * K * (C / merged) * taps;
    if (merged > 1) pack_merged(w, out, first, last, c0, begin, C, K, taps, padded, merged, true);
    for (int k = first; k < (merged > 1 ? first : last); k++) {
        const global float *from = w + (long)(k * C + c0) * taps;
        for (int tap = 0; tap < taps; tap++) {
            global float *to = out + (size_t)packed_at(k, tap, taps, padded, begin) * NV * V;
            LOOP for (int l = 0; l < least; l++) to[l] = 0.0f;
            if (taps == 1)
                for (int l = least; l < lanes; l++) to[l] = from[l];
            else
                for (int l = least; l < lanes; l++) to[l] = from[l * taps + tap];
            LOOP for (int l = max(lanes, 0); l < NV * V; l++) to[l] = 0.0f;
        }
    }
    if (first + V >= K) pack_zeros(out, K, taps, padded, begin);
}

kernel TASK void pack_gradient(PACK_ARGUMENTS(PARAMETER))
{
    const struct place at = { get_group_id(2), get_num_groups(2), get_group_id(0), get_num_groups(0) };
    pack_gradient_body(PACK_ARGUMENTS(NAME), at, get_group_id(1));
}

OUTLINE void pair_body(PAIR_ARGUMENTS(PARAMETER), int block, int panel)
{
    const int first = block * V, count = min(V, padded - first);
    global float *at = packed + ((size_t)panels + (size_t)panel * padded + first) * NV * V;
    for (int c = 0; c + 1 < count; c += 2)
        for (int k = 0; k < NV; k++)
            VSTORE(PAIR_OF(VLOAD(c * NV + k, at), VLOAD((c + 1) * NV + k, at)), c / 2 * NV + k, at);
}

kernel TASK void pair(PAIR_ARGUMENTS(PARAMETER))
{
    pair_body(PAIR_ARGUMENTS(NAME), get_group_id(0), get_group_id(1));
}
