/* Batch normalisation on any device: x, y, dy, dx, add, dadd [N][C][HW] (rank 2: HW = 1; channels last: N of all pixels, HW =
 * 1); per channel [C].
 * The formulas are those of batch_norm_cpu.cl. Launched by layers/batch_norm/batch_norm_kernels.c:
 *
 *   plain_stats, plain_reduce   sums over a part of the N HW positions. A group of GROUP work-items takes WIDE channels
 *                               (get_group_id(0)) and one of the parts (get_group_id(1)); partial: [parts][3][C], count,
 *                               mean and sum of squared deviations, and [parts][2][C]
 *   plain_join                  joins the parts [parts][3][stride] that the kernel that made x gives, of which there can be
 *                               thousands, to fewer, [slices][3][stride]: a group takes JOINED channels and one slice
 *   plain_finish                joins [parts][3][stride]: a group of GROUP work-items takes JOINED channels
 *   plain_finish_gradient       adds the parts in a fixed order: a group of GROUP work-items takes JOINED channels
 *   plain_apply, plain_dx, plain_inference   EACH vectors for each work-item, GROUP apart, of `vectors`
 *
 * FOURS says what a vector of x and its like holds: 0 one float, 1 four pixels, 2 (HW = 1) four channels. All kernels
 * but the three that join parts count C and HW in these vectors: with 1 there are HW / 4 of them, with 2 C / 4.
 * WIDE is 1 where a channel's pixels lie together, else (HW = 1) some channels that do. In plain_finish N is the
 * number of samples.
 * Options besides: as in batch_norm_cpu.cl, and INDEX, an unsigned type that holds all positions. */
#include "parameters.h"
#include "arguments/batch_norm_plain.h"
#include "derivative.h"
#include "deviation.h"
#include "epilogue.h"
#include "group.h"
#include "moments.h"
#include "step.h"
#include "sum.h"

#ifndef MASK_FROM_Y
#define MASK_FROM_Y 0
#endif
#ifndef DADD
#define DADD 0
#endif
#ifndef FOURS
#define FOURS 0
#endif
/* T: the type of x. TC: the type of what exists once for each channel, or four of these. */
#if FOURS
typedef float4 T;
#else
typedef float T;
#endif
#if FOURS == 2
typedef float4 TC;
#else
typedef float TC;
#endif
#if FOURS == 1
#define FIRST_OF(v) (v).x
#define TOTAL_OF(v) (((v).x + (v).y) + ((v).z + (v).w))
#define FLOATS 4 /* floats of one channel in a vector */
#else
#define FIRST_OF(v) (v)
#define TOTAL_OF(v) (v)
#define FLOATS 1
#endif
#if ADD
#define LOAD_ADDED                                                                                                     \
    T added[EACH];                                                                                                     \
    EACH_VECTOR IF_EXISTS added[k] = add[i[k]];
#define ADDED + added[k]
#else
#define LOAD_ADDED
#define ADDED
#endif
#define LANES (GROUP / WIDE)
#define JOINED (GROUP < 8 ? GROUP : 8)
#define GROUPS __attribute__((reqd_work_group_size(GROUP, 1, 1))) kernel

/* Sums s and q over the lanes of each channel; valid in the work-items with lane 0, those of FIRST_LANE. The last lanes of a
 * group with one channel need no local memory where they can read one another. */
#define FIRST_LANE (item < WIDE && c < C)
#if WIDE == 1 && FOURS != 2
#define LAST_STEP TOGETHER
#define LAST_LANES(own) JOIN_LANES(own, SUM_OF)
#else
#define LAST_STEP 1
#define LAST_LANES(own)
#endif
#define SUM_LANES(s, q)                                                                                                \
    local TC tree_s[GROUP], tree_q[GROUP];                                                                             \
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

/* This work-item's channel and its positions p of the part, LANES apart: x[o] lies at p, pixel i of its plane. */
#define PART                                                                                                           \
    const int item = get_local_id(0), c = get_group_id(0) * WIDE + item % WIDE;                                        \
    const int part = get_group_id(1), parts = get_num_groups(1);                                                       \
    const INDEX positions = (INDEX)N * HW, first = (INDEX)((ulong)positions * part / parts);                           \
    const INDEX last = (INDEX)((ulong)positions * (part + 1) / parts);                                                 \
    INDEX p = first + item / WIDE, o = (p / HW * C + c) * HW + p % HW;                                                 \
    int i = p % HW;                                                                                                    \
    const int on = LANES % HW;                                                                                         \
    const INDEX images_on = (INDEX)(LANES / HW) * C * HW + on, image_on = (INDEX)(C - 1) * HW;
/* Goes through STEPS of these positions at a time, at[k]; is[k] tells whether one exists. at[0] does, and stands for
 * those that do not, so that no load waits for another. */
#define STEPS 4
#define EACH_STEP UNROLL for (int k = 0; k < STEPS; k++)
#define FOR_POSITIONS                                                                                                  \
    for (; p < last && c < C; p += STEPS * LANES) {                                                                    \
        INDEX at[STEPS];                                                                                               \
        bool is[STEPS];                                                                                                \
        EACH_STEP                                                                                                      \
        {                                                                                                              \
            is[k] = p + k * LANES < last;                                                                              \
            at[k] = is[k] ? o : at[0];                                                                                 \
            i += on;                                                                                                   \
            o += images_on;                                                                                            \
            o += i >= HW ? image_on : 0;                                                                               \
            i -= i >= HW ? HW : 0;                                                                                     \
        }

GROUPS void plain_stats(global const T *x, global TC *partial, int N, int C, int HW)
{
    PART
    const TC shift = c < C ? FIRST_OF(x[(size_t)c * HW]) : (TC)(0.0f);
    const float count = (float)(last - first) * FLOATS;
    T sums = (T)(0.0f), squares = (T)(0.0f), sums_error = (T)(0.0f), squares_error = (T)(0.0f);
    FOR_POSITIONS
        T v[STEPS];
        EACH_STEP v[k] = x[at[k]];
        T sum = (T)(0.0f), square = (T)(0.0f);
        EACH_STEP
        {
            const T d = is[k] ? v[k] - (T)(shift) : (T)(0.0f);
            sum += d;
            square = fma(d, d, square);
        }
        SUM_ADD(T, sums, sums_error, sum);
        SUM_ADD(T, squares, squares_error, square);
    }
    TC s = TOTAL_OF(sums), q = TOTAL_OF(squares);
    SUM_LANES(s, q)
    if (!FIRST_LANE) return;
    partial[(part * 3) * C + c] = (TC)(count);
    partial[(part * 3 + 1) * C + c] = shift + s / count;
    partial[(part * 3 + 2) * C + c] = q - s * s / count;
}

GROUPS void plain_join(global const float *in, global float *out, int C, int parts, int stride)
{
    local float4 scratch[GROUP];
    const int slice = get_group_id(1), slices = get_num_groups(1);
    const int first = (long)parts * slice / slices, last = (long)parts * (slice + 1) / slices;
    const float4 all = moments_of_parts(in + (size_t)first * 3 * stride, last - first, stride, C, JOINED, scratch);
    const int item = get_local_id(0), c = get_group_id(0) * JOINED + item;
    if (item >= JOINED || c >= C) return;
    global float *to = out + (size_t)slice * 3 * stride + c;
    to[0] = all.x;
    to[stride] = all.y;
    to[2 * stride] = all.z;
}

/* The running variance is the unbiased one of the M values that count: those of all devices, after a sync point. */
GROUPS void plain_finish(PLAIN_FINISH_ARGUMENTS(PARAMETER))
{
    local float4 scratch[GROUP];
    const float4 all = moments_of_parts(partial, parts, stride, C, JOINED, scratch);
    const int item = get_local_id(0), c = get_group_id(0) * JOINED + item;
    if (item >= JOINED || c >= C) return;
    const float M = all.x, mean = all.y, var = all.z / M < 0.0f ? 0.0f : all.z / M, scale = N * constants->gradient_weight;
    save_mean[c] = mean;
    save_rstd[c] = PER_DEVIATION(float, var, epsilon);
    if (batch_mean) batch_mean[c] = mean * scale;
    if (batch_var) batch_var[c] = var * (M / fmax(M - 1.0f, 1.0f) * scale);
}

/* The vectors i[k] of a work-item and their channels c[k]. Those that exist are loaded before the first is stored. */
#define EACH 4
#define EACH_VECTOR UNROLL for (int k = 0; k < EACH; k++)
#define IF_EXISTS if (i[k] < vectors)
#define VECTORS                                                                                                        \
    INDEX i[EACH];                                                                                                     \
    int c[EACH];                                                                                                       \
    i[0] = (INDEX)get_group_id(0) * (GROUP * EACH) + get_local_id(0);                                                  \
    c[0] = i[0] / HW % C;                                                                                              \
    int pixel = i[0] % HW;                                                                                             \
    const int pixels_on = GROUP % HW, channels_on = GROUP / HW % C;                                                    \
    UNROLL for (int k = 1; k < EACH; k++)                                                                              \
    {                                                                                                                  \
        i[k] = i[k - 1] + GROUP;                                                                                       \
        pixel += pixels_on;                                                                                            \
        c[k] = c[k - 1] + channels_on + (pixel >= HW);                                                                 \
        pixel -= pixel >= HW ? HW : 0;                                                                                 \
        c[k] -= c[k] >= C ? C : 0;                                                                                     \
    }

GROUPS void plain_apply(PLAIN_APPLY_ARGUMENTS(PARAMETER))
{
    VECTORS
    T v[EACH];
    EACH_VECTOR IF_EXISTS v[k] = x[i[k]];
    LOAD_ADDED
    EACH_VECTOR IF_EXISTS
    {
        const TC a = gamma[c[k]] * save_rstd[c[k]];
        const T value = fma(v[k], (T)(a), (T)(fma(-save_mean[c[k]], a, beta[c[k]]))) ADDED;
        y[i[k]] = ACTIVATION(value);
    }
}

GROUPS void plain_inference(PLAIN_INFERENCE_ARGUMENTS(PARAMETER))
{
    VECTORS
    T v[EACH];
    EACH_VECTOR IF_EXISTS v[k] = x[i[k]];
    LOAD_ADDED
    EACH_VECTOR IF_EXISTS
    {
        const TC a = gamma[c[k]] / sqrt(var[c[k]] + epsilon);
        const T value = fma(v[k], (T)(a), (T)(fma(-mean[c[k]], a, beta[c[k]]))) ADDED;
        y[i[k]] = ACTIVATION(value);
    }
}

/* ---- gradient ---- */

/* GRADIENT turns the gradient g of the activation's output into that of its argument, for v = x[i]; `out` is the
 * activation's output where that is read. */
#if MASK && MASK_FROM_Y
#define LOAD_OUTPUT(out, i) out = y[i];
#define GRADIENT(out, v, g) MASKED(out, g)
#else
#define LOAD_OUTPUT(out, i)
#define GRADIENT(out, v, g) MASKED(fma(v, (T)(a), (T)(b)), g) /* the same operations as in plain_apply: the same bits */
#endif
/* beta is needed for the mask that is recomputed; NULL otherwise. */
#define CHANNEL(c)                                                                                                     \
    const TC mean = save_mean[c], rstd = save_rstd[c], a = gamma[c] * rstd;                                            \
    const TC b = beta ? fma(-mean, a, beta[c]) : (TC)(0.0f);

GROUPS void plain_reduce(PLAIN_REDUCE_ARGUMENTS(PARAMETER))
{
    PART
    CHANNEL(min(c, C - 1))
    T sums = (T)(0.0f), products = (T)(0.0f), sums_error = (T)(0.0f), products_error = (T)(0.0f);
    FOR_POSITIONS
        T v[STEPS], g[STEPS], out[STEPS], sum = (T)(0.0f), product = (T)(0.0f);
        EACH_STEP
        {
            v[k] = x[at[k]];
            g[k] = dy[at[k]];
            LOAD_OUTPUT(out[k], at[k])
        }
        EACH_STEP
        {
            const T gradient = GRADIENT(out[k], v[k], g[k]); /* also for stand-ins, so that there is no branch */
            g[k] = is[k] ? gradient : (T)(0.0f);
            sum += g[k];
            product = fma(g[k], v[k] - (T)(mean), product);
#if DADD
            if (is[k]) dadd[at[k]] = g[k];
#endif
        }
        SUM_ADD(T, sums, sums_error, sum);
        SUM_ADD(T, products, products_error, product);
    }
    TC sum_g = TOTAL_OF(sums), sum_gx = TOTAL_OF(products);
    SUM_LANES(sum_g, sum_gx)
    if (!FIRST_LANE) return;
    partial[(part * 2) * C + c] = sum_g;
    partial[(part * 2 + 1) * C + c] = sum_gx;
}

/* dx = gamma rstd g + m x + c: writes m and c as [2][C] after the partial sums. */
GROUPS void plain_finish_gradient(PLAIN_FINISH_GRADIENT_ARGUMENTS(PARAMETER))
{
    local float2 tree[GROUP];
    global float *coefficients = partial + (size_t)parts * 2 * C;
    const int item = get_local_id(0), c = get_group_id(0) * JOINED + item % JOINED;
    float2 sums = (float2)(0.0f);
    for (int p = item / JOINED; p < parts && c < C; p += GROUP / JOINED)
        sums += (float2)(partial[(p * 2) * C + c], partial[(p * 2 + 1) * C + c]);
    tree[item] = sums;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int step = GROUP / 2; step >= JOINED; step /= 2) {
        if (item < step) tree[item] += tree[item + step];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (item >= JOINED || c >= C) return;
    const float sum_g = tree[item].x, sum_gx = tree[item].y;
    const float M = (float)N * HW, rstd = save_rstd[c], a = gamma[c] * rstd, sum_gxhat = sum_gx * rstd;
    const float m = -a * rstd * sum_gxhat / M;
    coefficients[c] = m;
    coefficients[C + c] = -a * sum_g / M - m * save_mean[c];
    if (dgamma) dgamma[c] = sum_gxhat;
    if (dbeta) dbeta[c] = sum_g;
}

GROUPS void plain_dx(PLAIN_DX_ARGUMENTS(PARAMETER))
{
    global const TC *coefficients = partial + (size_t)parts * 2 * C;
    VECTORS
    T v[EACH], g[EACH], out[EACH];
    EACH_VECTOR IF_EXISTS
    {
        v[k] = x[i[k]];
#if DADD
        g[k] = dadd[i[k]];
#else
        g[k] = dy[i[k]];
        LOAD_OUTPUT(out[k], i[k])
#endif
    }
    LOAD_ADDED
    EACH_VECTOR IF_EXISTS
    {
        CHANNEL(c[k])
#if !DADD
        g[k] = GRADIENT(out[k], v[k], g[k]);
#endif
        dx[i[k]] = fma(g[k], (T)(a), fma(v[k], (T)(coefficients[c[k]]), (T)(coefficients[C + c[k]]))) ADDED;
    }
}

/* ---- folding into the preceding layer's weights, once ---- */

/* w'[k][i] = w[k][i] gamma[k] / sqrt(var[k] + epsilon);  bias'[k] = (bias[k] - mean[k]) gamma[k] / sqrt(...) + beta[k].
 * bias may be NULL. One work-item per weight, `floats` in all, `inner` of each k. */
kernel void fold(FOLD_ARGUMENTS(PARAMETER))
{
    const INDEX i = get_global_id(0);
    if (i >= floats) return;
    const INDEX k = i / inner;
    const float scale = gamma[k] / sqrt(var[k] + epsilon);
    folded[i] = w[i] * scale;
    if (i == k * inner) folded_bias[k] = fma((bias ? bias[k] : 0.0f) - mean[k], scale, beta[k]);
}
