/* Batch normalisation on any device: x, y, dy, dx, add, dadd [N][C][HW] (rank 2: HW = 1; channels last: N of all pixels, HW =
 * 1); per channel [C].
 * The formulas are those of batch_norm_cpu.cl. Launched by layers/batch_norm_kernels.c:
 *
 *   plain_stats, plain_reduce   sums over a part of the N HW positions. A group of GROUP work-items takes WIDE channels
 *                               (get_group_id(0)) and one of the parts (get_group_id(1)); partial: [parts][3][C], count,
 *                               mean and sum of squared deviations, and [parts][2][C]
 *   plain_finish                joins [parts][3][stride], those sums or what the kernel that made x gives, of which there
 *                               can be thousands: a group of GROUP work-items takes JOINED channels
 *   plain_finish_gradient       one work-item per channel: adds the parts in order
 *   plain_apply, plain_dx, plain_inference   one work-item per float, of `floats`
 *
 * WIDE is 1 where a channel's pixels lie together, else (HW = 1) the channels that do. plain_finish has N of the samples. Options besides: as in
 * batch_norm_cpu.cl, and INDEX, an unsigned type that holds all positions. */
#include "derivative.h"
#include "epilogue.h"
#include "group.h"
#include "moments.h"
#include "step.h"

#ifndef MASK_FROM_Y
#define MASK_FROM_Y 0
#endif
#ifndef DADD
#define DADD 0
#endif
#define LANES (GROUP / WIDE)
#define JOINED (GROUP < 8 ? GROUP : 8)

/* Sums s and q over the lanes of each channel; valid in the work-items with lane 0, those of FIRST_LANE. The last lanes of a
 * group with one channel need no local memory where they can read one another. */
#define FIRST_LANE (item < WIDE && c < C)
#if WIDE == 1
#define LAST_STEP TOGETHER
#define LAST_LANES(own) JOIN_LANES(own, SUM_OF)
#else
#define LAST_STEP 1
#define LAST_LANES(own)
#endif
#define SUM_LANES(s, q)                                                                                                \
    local float tree_s[GROUP], tree_q[GROUP];                                                                          \
    tree_s[item] = s;                                                                                                  \
    tree_q[item] = q;                                                                                                  \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                                      \
    for (int step = LANES / 2; step >= LAST_STEP; step /= 2) {                                                         \
        if (item < step * WIDE) {                                                                                      \
            tree_s[item] += tree_s[item + step * WIDE];                                                                \
            tree_q[item] += tree_q[item + step * WIDE];                                                                \
        }                                                                                                              \
        barrier(CLK_LOCAL_MEM_FENCE);                                                                                  \
    }                                                                                                                  \
    s = tree_s[item];                                                                                                  \
    q = tree_q[item];                                                                                                  \
    LAST_LANES(s)                                                                                                      \
    LAST_LANES(q)

/* This work-item's channel and its positions p of the part: o is where x[p] lies. */
#define PART                                                                                                           \
    const int item = get_local_id(0), c = get_group_id(0) * WIDE + item % WIDE;                                        \
    const int part = get_group_id(1), parts = get_num_groups(1);                                                       \
    const INDEX positions = (INDEX)N * HW, first = (INDEX)((ulong)positions * part / parts);                           \
    const INDEX last = (INDEX)((ulong)positions * (part + 1) / parts);
#define FOR_POSITIONS                                                                                                  \
    for (INDEX p = first + item / WIDE; p < last && c < C; p += LANES) {                                               \
        const size_t o = ((size_t)(p / HW) * C + c) * HW + p % HW;

kernel void plain_stats(global const float *x, global float *partial, int N, int C, int HW)
{
    PART
    const float shift = c < C ? x[(size_t)c * HW] : 0.0f, count = (float)(last - first);
    float s = 0.0f, q = 0.0f;
    FOR_POSITIONS
        const float d = x[o] - shift;
        s += d;
        q = fma(d, d, q);
    }
    SUM_LANES(s, q)
    if (!FIRST_LANE) return;
    partial[(part * 3) * C + c] = count;
    partial[(part * 3 + 1) * C + c] = shift + s / count;
    partial[(part * 3 + 2) * C + c] = q - s * s / count;
}

/* The running variance is the unbiased one of the M values that count: those of all devices, where they met. */
kernel void plain_finish(global const step_constants *constants, global const float *partial, global float *save_mean,
    global float *save_rstd, global float *batch_mean, global float *batch_var, int N, int C, int parts, int stride, float epsilon)
{
    local float4 scratch[GROUP];
    const float4 all = moments_of_parts(partial, parts, stride, C, JOINED, scratch);
    const int item = get_local_id(0), c = get_group_id(0) * JOINED + item;
    if (item >= JOINED || c >= C) return;
    const float M = all.x, mean = all.y, var = fmax(all.z / M, 0.0f), scale = N * constants->loss_scale;
    save_mean[c] = mean;
    save_rstd[c] = 1.0f / sqrt(var + epsilon);
    if (batch_mean) batch_mean[c] = mean * scale;
    if (batch_var) batch_var[c] = var * (M / fmax(M - 1.0f, 1.0f) * scale);
}

/* One work-item per float. */
#define ELEMENT                                                                                                        \
    const INDEX i = get_global_id(0);                                                                                  \
    if (i >= floats) return;                                                                                           \
    const int c = (int)(i / HW % C);

kernel void plain_apply(global const float *x, ADD_PARAMETER(float) global float *y, global const float *gamma,
    global const float *beta, global const float *save_mean, global const float *save_rstd, INDEX floats, int C, int HW)
{
    ELEMENT
    const float a = gamma[c] * save_rstd[c];
    const float v = fma(x[i], a, fma(-save_mean[c], a, beta[c])) PLUS_ADDED(i);
    y[i] = ACTIVATION(v);
}

kernel void plain_inference(global const float *x, ADD_PARAMETER(float) global float *y, global const float *gamma,
    global const float *beta, global const float *mean, global const float *var, INDEX floats, int C, int HW, float epsilon)
{
    ELEMENT
    const float a = gamma[c] / sqrt(var[c] + epsilon);
    const float v = fma(x[i], a, fma(-mean[c], a, beta[c])) PLUS_ADDED(i);
    y[i] = ACTIVATION(v);
}

/* ---- gradient ---- */

#if MASK && MASK_FROM_Y
#define OUTPUT(i) y[i]
#else
#define OUTPUT(i) fma(x[i], a, b) /* the same operations as in plain_apply: the same bits */
#endif
#define GRADIENT(i) MASKED(OUTPUT(i), dy[i])
/* beta is needed for the mask that is recomputed; NULL otherwise. */
#define CHANNEL(c)                                                                                                     \
    const float mean = save_mean[c], rstd = save_rstd[c], a = gamma[c] * rstd;                                         \
    const float b = beta ? fma(-mean, a, beta[c]) : 0.0f;

kernel void plain_reduce(global const float *x, global const float *dy, global const float *y, global float *dadd,
    global const float *gamma, global const float *beta, global const float *save_mean, global const float *save_rstd,
    global float *partial, int N, int C, int HW)
{
    PART
    CHANNEL(min(c, C - 1))
    float sum_g = 0.0f, sum_gx = 0.0f;
    FOR_POSITIONS
        const float g = GRADIENT(o);
        sum_g += g;
        sum_gx = fma(g, x[o] - mean, sum_gx);
        if (DADD) dadd[o] = g;
    }
    SUM_LANES(sum_g, sum_gx)
    if (!FIRST_LANE) return;
    partial[(part * 2) * C + c] = sum_g;
    partial[(part * 2 + 1) * C + c] = sum_gx;
}

/* dx = gamma rstd g + m x + c: writes m and c as [2][C] behind the partial sums. */
kernel void plain_finish_gradient(global const float *gamma, global const float *save_mean, global const float *save_rstd,
    global float *partial, global float *dgamma, global float *dbeta, int N, int C, int HW, int parts)
{
    global float *coefficients = partial + (size_t)parts * 2 * C;
    const int c = get_global_id(0);
    if (c >= C) return;
    float sum_g = 0.0f, sum_gx = 0.0f;
    for (int p = 0; p < parts; p++) {
        sum_g += partial[(p * 2) * C + c];
        sum_gx += partial[(p * 2 + 1) * C + c];
    }
    const float M = (float)N * HW, rstd = save_rstd[c], a = gamma[c] * rstd, sum_gxhat = sum_gx * rstd;
    const float m = -a * rstd * sum_gxhat / M;
    coefficients[c] = m;
    coefficients[C + c] = -a * sum_g / M - m * save_mean[c];
    if (dgamma) dgamma[c] = sum_gxhat;
    if (dbeta) dbeta[c] = sum_g;
}

kernel void plain_dx(global const float *x, global const float *dy, global const float *y, global const float *dadd,
    ADD_PARAMETER(float) global float *dx, global const float *gamma, global const float *beta,
    global const float *save_mean, global const float *save_rstd, global const float *partial, int parts, INDEX floats, int C, int HW)
{
    global const float *coefficients = partial + (size_t)parts * 2 * C;
    ELEMENT
    CHANNEL(c)
#if DADD
    const float g = dadd[i];
#else
    const float g = GRADIENT(i);
#endif
    dx[i] = fma(g, a, fma(x[i], coefficients[c], coefficients[C + c])) PLUS_ADDED(i);
}

/* ---- folding into the weights before, once ---- */

/* w'[k][i] = w[k][i] gamma[k] / sqrt(var[k] + epsilon);  bias'[k] = (bias[k] - mean[k]) gamma[k] / sqrt(...) + beta[k].
 * bias may be NULL. One work-item per weight, `floats` in all, `inner` of each k. */
kernel void fold(global const float *w, global const float *bias, global const float *gamma, global const float *beta,
    global const float *mean, global const float *var, global float *folded, global float *folded_bias, INDEX floats,
    int inner, float epsilon)
{
    const INDEX i = get_global_id(0);
    if (i >= floats) return;
    const INDEX k = i / inner;
    const float scale = gamma[k] / sqrt(var[k] + epsilon);
    folded[i] = w[i] * scale;
    if (i == k * inner) folded_bias[k] = fma((bias ? bias[k] : 0.0f) - mean[k], scale, beta[k]);
}
