/* Batch normalisation for training on a CPU-class device, with the addition and the activation after it.
 * Activations x, add, y, dy, dx, dadd: [N][CB][HW][V] (rank 2 with a multiple of V features: HW = 1). Per channel: [C].
 *
 *   forward   mean, var of x per channel;  y = ACTIVATION(gamma (x - mean) rstd + beta [+ add])
 *   gradient  g = dy where y lies where the activation lets gradients pass, else 0;  dbeta = sum g;
 *             dgamma = sum g xhat;  dx = gamma rstd (g - dbeta / M - xhat dgamma / M) [+ add];  dadd = g
 *             xhat = (x - mean) rstd,  M = N HW          (Ioffe, Szegedy 2015, section 3)
 *
 * Memory bound: what counts is how often a tensor crosses the memory bus. Where the kernel that made x gave the statistics
 * too, bn_apply alone is the forward pass, and bn_dx alone the gradient. bn_forward and bn_gradient do both passes of one channel block
 * (get_global_id(0)) in one task, so that the second pass finds the block in the cache. bn_stats + bn_apply and bn_reduce +
 * bn_dx are the same in two launches, tasks = channel blocks x parts of the M positions (get_global_id(1)): for devices
 * with more cores than channel blocks. bn_inference: tasks = channel blocks x parts. Launched by layers/batch_norm/batch_norm_kernels.c.
 *
 * Options: ACTIVATE, LOW, HIGH, ADD as in epilogue.h (forward: of y; gradient: ADD is added to dx); MASK 0 none, 1 relu,
 * 2 clip; MASK_FROM_Y 1: y is an argument, 0: it is recomputed; DADD, DX 1: this output is wanted. `stream` 1: y and dx
 * bypass the cache, for tensors larger than it.
 * Lanes past C: gamma and beta count as 0 there, and dy is 0, so every output is 0. */
#include "parameters.h"
#include "arguments/batch_norm_cpu.h"
#include "channels.h"
#include "derivative.h"
#include "deviation.h"
#include "element.h"
#include "epilogue.h"
#include "step.h"
#include "sum.h"

#ifndef MASK_FROM_Y
#define MASK_FROM_Y 0
#endif
#ifndef DADD
#define DADD 0
#endif
#ifndef DX
#define DX 1
#endif
#define PUT(v, i, p)                             \
    do {                                         \
        if (stream) STREAM_AS(OUT0_TYPE, v, i, p); \
        else                                     \
            STORE_AS(OUT0_TYPE, v, i, p);        \
    } while (0)
#define U 4 /* independent accumulators hide the latency of the additions */

/* Positions p0 .. p1-1 of the N * HW, image by image: o is the offset of the image's plane, i0 .. i1-1 the pixels. */
#define FOR_PLANES                                                                                                     \
    for (int n = p0 / HW; n * HW < p1; n++) {                                                                          \
        const size_t o = ((size_t)n * CB + cb) * HW * V;                                                               \
        const int i0 = max(p0 - n * HW, 0), i1 = min(p1 - n * HW, HW);
/* Goes backwards: the last images of the first pass are still in the cache when the second pass begins. */
#define FOR_PLANES_BACKWARDS                                                                                           \
    for (int n = (p1 - 1) / HW; n >= 0 && (n + 1) * HW > p0; n--) {                                                    \
        const size_t o = ((size_t)n * CB + cb) * HW * V;                                                               \
        const int i0 = max(p0 - n * HW, 0), i1 = min(p1 - n * HW, HW);

/* Clips a variance at 0, since rounding may leave it below; NaN stays. */
INLINE VF not_negative(VF variance) { return variance < 0.0f ? (VF)(0.0f) : variance; }

/* Adds up two quantities over all planes and carries the rounding errors along. Chains of at most SUM_BLOCK pixels
 * are added to the sums; they go on from plane to plane where planes are small. */
#define FOLD(p, q)                                                                                                     \
    {                                                                                                                  \
        SUM_ADD(VF, sum_p, error_p, (p[0] + p[1]) + (p[2] + p[3]));                                                    \
        SUM_ADD(VF, sum_q, error_q, (q[0] + q[1]) + (q[2] + q[3]));                                                    \
        UNROLL for (int u = 0; u < U; u++) p[u] = q[u] = (VF)(0.0f);                                                   \
        room = most;                                                                                                   \
    }
#define CHAINS(p, q)                                                                                                   \
    SUMS                                                                                                               \
    VF p[U], q[U];                                                                                                     \
    const int most = HW < U ? SUM_BLOCK : U * SUM_BLOCK;                                                               \
    int room = most;                                                                                                   \
    UNROLL for (int u = 0; u < U; u++) p[u] = q[u] = (VF)(0.0f);                                                       \
    FOR_PLANES                                                                                                         \
        for (int i = i0; i < i1;) {                                                                                    \
            const int stop = min(i + room, i1);                                                                        \
            room -= stop - i;                                                                                          \
            for (; i + U <= stop; i += U) UNROLL for (int u = 0; u < U; u++) STEP(u, i + u)                            \
            for (; i < stop; i++) STEP(0, i)                                                                           \
            if (room == 0) FOLD(p, q)                                                                                  \
        }                                                                                                              \
    }                                                                                                                  \
    FOLD(p, q)
#define SUMS VF sum_p = (VF)(0.0f), error_p = (VF)(0.0f), sum_q = (VF)(0.0f), error_q = (VF)(0.0f);

/* *s = sum(x - shift), *q = sum((x - shift)^2). shift, a sample of the channel, keeps E[x^2] - E[x]^2 from cancelling. */
OUTLINE void sums(global const in0_t *x, int p0, int p1, int CB, int cb, int HW, VF shift, VF *s, VF *q)
{
#define STEP(u, i)                                                                                                     \
    {                                                                                                                  \
        const VF d = LOAD_AS(IN0_TYPE, i, x + o) - shift;                                                              \
        a[u] += d;                                                                                                     \
        b[u] = fma(d, d, b[u]);                                                                                        \
    }
    CHAINS(a, b)
#undef STEP
    *s = sum_p;
    *q = sum_q;
}

/* y = ACTIVATION(a x + b [+ add]) */
OUTLINE void apply(global const in0_t *x, ADD_PARAMETER(add_t) global out0_t *y, int p0, int p1, int CB, int cb,
    int HW, VF a, VF b, int stream)
{
    FOR_PLANES_BACKWARDS
        _Pragma("unroll 4") for (int i = i0; i < i1; i++) {
            VF v = fma(LOAD_AS(IN0_TYPE, i, x + o), a, b);
#if ADD
            v += LOAD_AS(ADD_TYPE, i, add + o);
#endif
            PUT(ACTIVATION(v), i, y + o);
        }
    }
}

INLINE void moments(VF s, VF q, VF shift, float M, float epsilon, VF *mean, VF *rstd, VF *var)
{
    VF d = s / M;
    *var = not_negative(q / M - d * d);
    *mean = shift + d;
    *rstd = PER_DEVIATION(VF, *var, epsilon);
}

/* Stores the outputs of the statistics. The running variance is the unbiased one of the M values that the mean is of;
 * a single value has none, and 0 stands for it. scale: samples * gradient_weight, this part's weight in the whole
 * batch. */
INLINE void finish(VF mean, VF rstd, VF var, VF M, float scale, global float *save_mean, global float *save_rstd,
    global float *batch_mean, global float *batch_var, int cb, int C)
{
    channels_store(mean, save_mean, cb, C);
    channels_store(rstd, save_rstd, cb, C);
    channels_store(mean * scale, batch_mean, cb, C);
    channels_store(var * (M / fmax(M - 1.0f, (VF)(1.0f)) * scale), batch_var, cb, C);
}

TASK void bn_forward(BN_FORWARD_ARGUMENTS(PARAMETER))
{
    const int cb = get_global_id(0);
    const float M = (float)N * HW;
    VF shift = LOAD_AS(IN0_TYPE, (size_t)cb * HW, x), s, q, mean, rstd, var;
    sums(x, 0, N * HW, CB, cb, HW, shift, &s, &q);
    moments(s, q, shift, M, epsilon, &mean, &rstd, &var);
    finish(mean, rstd, var, (VF)(M), N * constants->gradient_weight, save_mean, save_rstd, batch_mean, batch_var, cb, C);
    VF a = channels_load(gamma, cb, C) * rstd;
    apply(x, ADD_ARGUMENT y, 0, N * HW, CB, cb, HW, a, fma(-mean, a, channels_load(beta, cb, C)), stream);
}

/* This task's part of the positions. */
#define PART                                                                                                           \
    const int cb = get_global_id(0), part = get_global_id(1), parts = get_global_size(1);                              \
    const int p0 = (int)((long)N * HW * part / parts), p1 = (int)((long)N * HW * (part + 1) / parts);

/* statistics: [parts][3][CB * V], the count, mean and sum of squared deviations of each part. They come from bn_stats, or
 * from the kernel that made x; or they are one part, of the samples of all devices (batch_norm_join.cl). */
TASK void bn_stats(global const in0_t *x, global float *statistics, int N, int CB, int HW)
{
    PART
    const VF shift = LOAD_AS(IN0_TYPE, (size_t)cb * HW, x), count = (VF)((float)(p1 - p0));
    VF s, q;
    sums(x, p0, p1, CB, cb, HW, shift, &s, &q);
    VSTORE(count, (size_t)(part * 3) * CB + cb, statistics);
    VSTORE(shift + s / count, (size_t)(part * 3 + 1) * CB + cb, statistics);
    VSTORE(q - s * s / count, (size_t)(part * 3 + 2) * CB + cb, statistics);
}

/* Joins the mean and the variance of all parts (Chan, Golub, LeVeque, "Updating formulae and a pairwise algorithm for
 * computing sample variances", 1979). */
INLINE void join_parts(global const float *statistics, int parts, int CB, int cb, VF *mean, VF *var, VF *M)
{
    VF count = (VF)(0.0f), m = (VF)(0.0f), q = (VF)(0.0f), error_m = (VF)(0.0f), error_q = (VF)(0.0f);
    for (int p = 0; p < parts; p++) {
        const VF more = VLOAD((size_t)(p * 3) * CB + cb, statistics), both = count + more;
        const VF d = VLOAD((size_t)(p * 3 + 1) * CB + cb, statistics) - m, w = more / both;
        SUM_ADD(VF, m, error_m, d * w);
        SUM_ADD(VF, q, error_q, fma(d * d, count * w, VLOAD((size_t)(p * 3 + 2) * CB + cb, statistics)));
        count = both;
    }
    *mean = m;
    *var = not_negative(q / count);
    *M = count;
}

TASK void bn_apply(BN_APPLY_ARGUMENTS(PARAMETER))
{
    PART
    VF mean, var, M;
    join_parts(statistics, statistics_parts, CB, cb, &mean, &var, &M);
    const VF rstd = PER_DEVIATION(VF, var, epsilon);
    if (part == 0)
        finish(mean, rstd, var, M, N * constants->gradient_weight, save_mean, save_rstd, batch_mean, batch_var, cb, C);
    VF a = channels_load(gamma, cb, C) * rstd;
    apply(x, ADD_ARGUMENT y, p0, p1, CB, cb, HW, a, fma(-mean, a, channels_load(beta, cb, C)), stream);
}

/* Stores the outputs of the statistics alone, where the kernels that read x normalise it. */
TASK void bn_moments(BN_MOMENTS_ARGUMENTS(PARAMETER))
{
    const int cb = get_global_id(0);
    VF mean, var, M;
    join_parts(statistics, statistics_parts, CB, cb, &mean, &var, &M);
    finish(mean, PER_DEVIATION(VF, var, epsilon), var, M, N * constants->gradient_weight, save_mean, save_rstd, batch_mean,
        batch_var, cb, C);
}

TASK void bn_inference(BN_INFERENCE_ARGUMENTS(PARAMETER))
{
    PART
    VF a = channels_load(gamma, cb, C) / sqrt(channels_load(var, cb, C) + epsilon);
    apply(x, ADD_ARGUMENT y, p0, p1, CB, cb, HW, a, fma(-channels_load(mean, cb, C), a, channels_load(beta, cb, C)), stream);
}

/* ---- gradient ---- */

#if MASK && MASK_FROM_Y
#define OUTPUT(i) LOAD_AS(IN5_TYPE, i, y + o)
#else
#define OUTPUT(i) fma(xv, a, b) /* the same operations as in apply(): the same bits */
#endif
#define GRADIENT(i) MASKED(OUTPUT(i), LOAD_AS(IN1_TYPE, i, dy + o))
#if DADD /* the first pass writes it, so that the second reads only x and dadd */
#define GRADIENT_AGAIN(i) LOAD_AS(OUT3_TYPE, i, dadd + o)
#define KEEP(g, i) STORE_AS(OUT3_TYPE, g, i, dadd + o)
#else
#define GRADIENT_AGAIN(i) GRADIENT(i)
#define KEEP(g, i)
#endif

OUTLINE void reduce(TENSORS_ARGUMENTS(PARAMETER), int p0, int p1, int CB, int cb, int HW, VF mean, VF a, VF b,
    VF *sum_g, VF *sum_gx)
{
#define STEP(u, i)                                                                                                     \
    {                                                                                                                  \
        VF xv = LOAD_AS(IN0_TYPE, i, x + o), g = GRADIENT(i);                                                          \
        p[u] += g;                                                                                                     \
        q[u] = fma(g, xv - mean, q[u]);                                                                                \
        KEEP(g, i);                                                                                                    \
    }
    CHAINS(p, q)
#undef STEP
    *sum_g = sum_p;
    *sum_gx = sum_q;
}

/* statistics: [parts][2][CB * V], from bn_reduce, or from the kernel that made g (MASK 0 then: it has been applied); or
 * one part, this device's share of the sums over all devices. */
#define SUM_PARTS(s, q)                                                                                                \
    SUMS                                                                                                               \
    for (int p = 0; p < statistics_parts; p++) {                                                                       \
        SUM_ADD(VF, sum_p, error_p, VLOAD((size_t)(p * 2) * CB + cb, statistics));                                     \
        SUM_ADD(VF, sum_q, error_q, VLOAD((size_t)(p * 2 + 1) * CB + cb, statistics));                                 \
    }                                                                                                                  \
    const VF s = sum_p, q = sum_q;

/* dx = a g + m x + c [+ add] with constants per channel */
OUTLINE void write_dx(TENSORS_ARGUMENTS(PARAMETER), int p0, int p1, int CB, int cb, int HW, VF a, VF b, VF m, VF c,
    int stream)
{
#if DX
    FOR_PLANES_BACKWARDS
        _Pragma("unroll 4") for (int i = i0; i < i1; i++) {
            VF xv = LOAD_AS(IN0_TYPE, i, x + o), g = GRADIENT_AGAIN(i), v = fma(g, a, fma(xv, m, c));
#if ADD
            v += LOAD_AS(ADD_TYPE, i, add + o);
#endif
            PUT(v, i, dx + o);
        }
    }
#endif
}

/* beta is needed for the mask that is recomputed; NULL otherwise. */
#define CHANNEL                                                                                                        \
    VF mean = channels_load(save_mean, cb, C), rstd = channels_load(save_rstd, cb, C);                                 \
    VF a = channels_load(gamma, cb, C) * rstd;                                                                         \
    VF b = beta ? fma(-mean, a, channels_load(beta, cb, C)) : (VF)(0.0f);
#define DX_CONSTANTS                                                                                                   \
    VF M = (VF)((float)N * HW), dgamma_block = sum_gx * rstd, m = -a * rstd * dgamma_block / M;                        \
    VF c = -a * sum_g / M - m * mean;

TASK void bn_gradient(TENSORS_ARGUMENTS(PARAMETER) BN_GRADIENT_ARGUMENTS(PARAMETER))
{
    const int cb = get_global_id(0);
    VF sum_g, sum_gx;
    CHANNEL
    reduce(TENSORS_ARGUMENTS(NAME), 0, N * HW, CB, cb, HW, mean, a, b, &sum_g, &sum_gx);
    DX_CONSTANTS
    channels_store(dgamma_block, dgamma, cb, C);
    channels_store(sum_g, dbeta, cb, C);
    write_dx(TENSORS_ARGUMENTS(NAME), 0, N * HW, CB, cb, HW, a, b, m, c, stream);
}

TASK void bn_reduce(TENSORS_ARGUMENTS(PARAMETER) BN_REDUCE_ARGUMENTS(PARAMETER))
{
    PART
    VF sum_g, sum_gx;
    CHANNEL
    reduce(TENSORS_ARGUMENTS(NAME), p0, p1, CB, cb, HW, mean, a, b, &sum_g, &sum_gx);
    VSTORE(sum_g, (size_t)(part * 2) * CB + cb, statistics);
    VSTORE(sum_gx, (size_t)(part * 2 + 1) * CB + cb, statistics);
}

TASK void bn_dx(TENSORS_ARGUMENTS(PARAMETER) BN_DX_ARGUMENTS(PARAMETER))
{
    PART
    CHANNEL
    SUM_PARTS(sum_g, sum_gx)
    DX_CONSTANTS
    if (part == 0) {
        channels_store(dgamma_block, dgamma, cb, C);
        channels_store(sum_g, dbeta, cb, C);
    }
    write_dx(TENSORS_ARGUMENTS(NAME), p0, p1, CB, cb, HW, a, b, m, c, stream);
}
