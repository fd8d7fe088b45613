/* Packs plain weights w [K][C][taps] for the kernels that multiply blocked activations (direct, pointwise).
 *
 *   packed: bias [panels * NV * V], then [panel][source block][tap][channel of the block][NV][V]
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
 * pack_forward and pair (chunks, panels), pack_gradient (panels, chunks), so that neighbouring tasks read neighbouring memory. */
#include "parameters.h"
#include "arguments/conv2d_pack_cpu.h"
#include "conv2d_cpu_kernel.h"
#include "bf16_round.h"

/* Where the vectors of (source channel, tap) lie, counted in groups of NV. */
INLINE int packed_at(int channel, int tap, int taps, int padded)
{
    int begin = channel / SV * SV;
    return begin * taps + tap * min(SV, padded - begin) + channel - begin;
}

INLINE void pack_bias(const global float *bias, global float *packed, int panel, int outputs)
{
    LOOP for (int i = panel * NV * V; i < (panel + 1) * NV * V; i++) packed[i] = HAS_BIAS && i < outputs ? bias[i] : 0.0f;
}

INLINE void pack_zeros(global float *panel, int from, int taps, int padded)
{
    LOOP for (int channel = from; channel < padded; channel++)
        LOOP for (int tap = 0; tap < taps; tap++)
            LOOP for (int j = 0; j < NV; j++) VSTORE((VF)(0.0f), packed_at(channel, tap, taps, padded) * NV + j, panel);
}

OUTLINE void pack_forward_body(PACK_ARGUMENTS(PARAMETER), int panel, int block, int panels)
{
    const int first = block * V, last = min(first + V, C), length = C * taps;
    if (first == 0) pack_bias(bias, packed, panel, K);
    global float *out = packed + (size_t)panels * NV * V + (size_t)panel * padded * taps * NV * V;
    LOOP for (int j = 0; j < NV; j++)
    {
        const int k0 = (panel * NV + j) * V;
        for (int e0 = first * taps; e0 < last * taps; e0 += V) {
            const int from = max(min(e0, length - V), 0); /* the last one overlaps the one before */
            VF row[V];
            if (length >= V) {
                LOOP for (int l = 0; l < V; l++)
                {
                    const global float *p = w + (size_t)min(k0 + l, K - 1) * length + from;
                    PREFETCH(p + 4 * V);
                    row[l] = k0 + l < K ? VLOAD(0, p) : (VF)(0.0f);
                }
                transpose(row);
                LOOP for (int i = 0, c = from / taps, tap = from - c * taps; i < V; i++)
                {
                    VSTORE(row[i], packed_at(c, tap, taps, padded) * NV + j, out);
                    if (++tap == taps) tap = 0, c++;
                }
            } else
                LOOP for (int e = 0; e < length; e++)
                    LOOP for (int l = 0; l < V; l++)
                        out[(size_t)(packed_at(e / taps, e % taps, taps, padded) * NV + j) * V + l] =
                            k0 + l < K ? w[(size_t)(k0 + l) * length + e] : 0.0f;
        }
    }
    if (first + V >= C) pack_zeros(out, C, taps, padded);
}

kernel TASK void pack_forward(PACK_ARGUMENTS(PARAMETER))
{
    pack_forward_body(PACK_ARGUMENTS(NAME), get_group_id(1), get_group_id(0), get_num_groups(1));
}

OUTLINE void pack_gradient_body(PACK_ARGUMENTS(PARAMETER), int panel, int block, int panels)
{
    const int first = block * V, last = min(first + V, K);
    const int c0 = panel * NV * V, lanes = min(NV * V, C - c0);
    if (first == 0) pack_bias(bias, packed, panel, C);
    global float *out = packed + (size_t)panels * NV * V + (size_t)panel * padded * taps * NV * V;
    for (int k = first; k < last; k++) {
        const global float *from = w + ((size_t)k * C + c0) * taps;
        for (int tap = 0; tap < taps; tap++) {
            global float *to = out + (size_t)packed_at(k, tap, taps, padded) * NV * V;
            if (taps == 1)
                for (int l = 0; l < lanes; l++) to[l] = from[l];
            else
                for (int l = 0; l < lanes; l++) to[l] = from[l * taps + tap];
            LOOP for (int l = lanes; l < NV * V; l++) to[l] = 0.0f;
        }
    }
    if (first + V >= K) pack_zeros(out, K, taps, padded);
}

kernel TASK void pack_gradient(PACK_ARGUMENTS(PARAMETER))
{
    pack_gradient_body(PACK_ARGUMENTS(NAME), get_group_id(0), get_group_id(1), get_num_groups(0));
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
