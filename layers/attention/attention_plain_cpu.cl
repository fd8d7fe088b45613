/* Attention (attention_cpu.cl has the formulas) on any device, a work-item for each query or key, which reads every key or
 * query: no row of scores is in memory. attention_layout.h says where elements lie and which probabilities are dropped.
 * Launched by layers/attention/attention_plain.c:
 *   attention_plain           a work-item for each query of samples * heads: y, softmax
 *   attention_plain_queries   the same: dq
 *   attention_plain_keys      a work-item for each key: dk, dv */
#include "parameters.h"
#include "step.h"
#include "arguments/attention.h"
#include "random.h"
#include "dropout.h"
#include "attention_layout.h"

PHILOX(philox, uint)

/* What the probability at this position of the whole batch is multiplied by (dropout.cl). */
static float factor_of(global const step_constants *constants, uint stream, uint threshold, float drop_scale, ulong position)
{
    const ulong block = position / 64 * 16 + position % 16;
    uint numbers[4];
    if (!DROP) return 1.0f;
    philox(KEY_LOW, KEY_HIGH, (uint)block, (uint)(block >> 32), constants->step_low, stream, numbers);
    return numbers[position % 64 / 16] >= threshold ? drop_scale : 0.0f;
}
#define FACTOR(i, j) factor_of(constants, stream, threshold, drop_scale, FIRST_POSITION(i) + (ulong)(j))

static float dot_of(global const float *a, global const float *b, int width)
{
    float sum = 0.0f;
    for (int f = 0; f < width; f++) sum = fma(a[f], b[f], sum);
    return sum;
}

/* The score of query i and key j. */
#define SCORE(i, j)                                                                                       \
    (scale * dot_of(q + (long)(i) * row_q, k + (long)(j) * row_k, width) + (BIAS ? bias[(long)(i) * bias_row + (j)] : 0.0f))

#define HEADS                                                                                             \
    const long sample = pair / heads, head = pair % heads;                                                \
    const int row_q = ROW_OF(Q_JOINED, heads, width), row_k = ROW_OF(K_JOINED, heads, width);             \
    const int row_v = ROW_OF(V_JOINED, heads, width_v), row_y = ROW_OF(Y_JOINED, heads, width_v);         \
    q = HEAD_OF(q, Q_JOINED, heads, length, width);                                                       \
    k = HEAD_OF(k, K_JOINED, heads, keys, width);                                                         \
    v = HEAD_OF(v, V_JOINED, heads, keys, width_v);                                                       \
    y = HEAD_OF(y, Y_JOINED, heads, length, width_v);                                                     \
    bias += sample * bias_sample + head * bias_head;

kernel void attention_plain(ATTENTION_ARGUMENTS(PARAMETER))
{
    const long pair = get_global_id(1);
    const int i = get_global_id(0);
    if (i >= length) return;
    HEADS
    float most = -INFINITY, sum = 0.0f;
    for (int j = 0; j < keys; j++) most = fmax(most, SCORE(i, j));
    const float zero = OPEN && most == -INFINITY ? 0.0f : most;
    for (int j = 0; j < keys; j++) sum += exp(SCORE(i, j) - zero);
    const bool closed = OPEN && sum == 0.0f;
    global float *to = y + (long)i * row_y;
    for (int f = 0; f < width_v; f++) to[f] = 0.0f;
    for (int j = 0; j < keys && !closed; j++) {
        const float p = exp(SCORE(i, j) - zero) / sum * FACTOR(i, j);
        for (int f = 0; f < width_v; f++) to[f] = fma(p, v[(long)j * row_v + f], to[f]);
    }
    softmax += 2 * (pair * length + i);
    if (SOFTMAX) softmax[0] = zero;
    if (SOFTMAX) softmax[1] = closed ? INFINITY : sum;
}

#define GRADIENT_HEADS                                    \
    HEADS                                                 \
    dy = HEAD_OF(dy, Y_JOINED, heads, length, width_v);   \
    dq = HEAD_OF(dq, Q_JOINED, heads, length, width);     \
    dk = HEAD_OF(dk, K_JOINED, heads, keys, width);       \
    dv = HEAD_OF(dv, V_JOINED, heads, keys, width_v);     \
    softmax += 2 * pair * length;
#define PROBABILITY(i, j) (exp(SCORE(i, j) - softmax[2 * (i)]) / softmax[2 * (i) + 1])
#define DELTA(i) dot_of(dy + (long)(i) * row_y, y + (long)(i) * row_y, width_v)
#define DS(i, j, p, delta) ((p) * (dot_of(dy + (long)(i) * row_y, v + (long)(j) * row_v, width_v) * FACTOR(i, j) - (delta)))

kernel void attention_plain_queries(ATTENTION_GRADIENT_ARGUMENTS(PARAMETER))
{
    const long pair = get_global_id(1);
    const int i = get_global_id(0);
    if (i >= length) return;
    GRADIENT_HEADS
    const float delta = DELTA(i);
    global float *to = dq + (long)i * row_q;
    for (int f = 0; f < width; f++) to[f] = 0.0f;
    for (int j = 0; j < keys; j++) {
        const float ds = DS(i, j, PROBABILITY(i, j), delta) * scale;
        for (int f = 0; f < width; f++) to[f] = fma(ds, k[(long)j * row_k + f], to[f]);
    }
}

kernel void attention_plain_keys(ATTENTION_GRADIENT_ARGUMENTS(PARAMETER))
{
    const long pair = get_global_id(1);
    const int j = get_global_id(0);
    if (j >= keys) return;
    GRADIENT_HEADS
    global float *to_k = dk + (long)j * row_k, *to_v = dv + (long)j * row_v;
    for (int f = 0; f < width && DK; f++) to_k[f] = 0.0f;
    for (int f = 0; f < width_v && DV; f++) to_v[f] = 0.0f;
    for (int i = 0; i < length; i++) {
        const float p = PROBABILITY(i, j), ds = DS(i, j, p, DELTA(i)) * scale, kept = p * FACTOR(i, j);
        for (int f = 0; f < width && DK; f++) to_k[f] = fma(ds, q[(long)i * row_q + f], to_k[f]);
        for (int f = 0; f < width_v && DV; f++) to_v[f] = fma(kept, dy[(long)i * row_y + f], to_v[f]);
    }
}
