/* channel_sum: db[c] = sum over n, i of dy[n, c, i], the gradient of a bias. Sums have one fixed order.
 *
 *   plain    any device, both layouts. One work-item for each channel.
 *   vectors  CPU class. One task (a group of one work-item) for each channel in the plain layout, for each block of V
 *            channels in the blocked one.
 *   columns  CPU class, one pixel in each channel ([N][C] of dense layers): one task for V neighbouring channels.
 *   groups   GPU class, plain layout. One work-group of GROUP work-items (a power of two) for each channel
 *            (get_group_id(0)) and part of its N `pixels` positions (get_group_id(1)): db [parts][C].
 *   rows     GPU class, channels last or many of one pixel: [rows][C]. One work-item for each channel and `per` rows:
 *            db [parts][C].
 *
 * `groups` adds up several parts, as [parts][C][1]. With FOURS 1, `groups` and `rows` read vectors of four pixels or
 * channels, and count `pixels` or C in these.
 *
 * dy is [N][C][pixels] in the plain layout, [N][C / V][pixels][V] in the blocked one; db [C], to which `add` [C] is
 * added where ADD is 1. Launched by layers/channel_sum.c. Sums carry their rounding error along (sum.h). */
#include "parameters.h"
#include "arguments/channel_sum.h"
#include "epilogue.h"
#include "sum.h"
#include "vector.h"

INLINE void finish(float sum, int c, global const float *add, global float *db)
{
    if (ADD) sum += add[c];
    db[c] = sum;
}

kernel void plain(SUM_ARGUMENTS(PARAMETER) PLANE_ARGUMENTS(PARAMETER))
{
    int c = get_global_id(0);
    if (c >= C) return;
    long stride = blocked ? V : 1, image = blocked ? (long)((C + V - 1) / V) * V * pixels : (long)C * pixels;
    global const float *from = dy + (blocked ? (long)(c / V) * V * pixels + c % V : (long)c * pixels);
    float sum = 0.0f, error = 0.0f;
    for (int n = 0; n < N; n++) SUM_ADD(float, sum, error, sum_of(from + n * image, pixels, stride));
    finish(sum, c, add, db);
}

#if !TUTTI_GPU
/* A sum of vectors that carries its rounding error along. Four chains of at most SUM_BLOCK vectors are added to it:
 * they hide the latency of the additions. A vector lies `step` floats after the one before it. */
struct column {
    VF sum, error;
};
INLINE void add_column(struct column *to, global const float *from, int count, long step)
{
    int i = 0;
    while (i + 4 <= count) {
        VF a = 0.0f, b = 0.0f, c = 0.0f, d = 0.0f;
        const int stop = min(i + 4 * SUM_BLOCK, count);
        for (; i + 4 <= stop; i += 4) {
            a += VLOAD(0, from + i * step);
            b += VLOAD(0, from + (i + 1) * step);
            c += VLOAD(0, from + (i + 2) * step);
            d += VLOAD(0, from + (i + 3) * step);
        }
        SUM_ADD(VF, to->sum, to->error, (a + b) + (c + d));
    }
    for (; i < count; i++) SUM_ADD(VF, to->sum, to->error, VLOAD(0, from + i * step));
}

INLINE void finish_block(struct column column, int first, int C, global const float *add, global float *db)
{
    float parts[V];
    *(VF_unaligned *)parts = column.sum;
    for (int i = 0; i < V && first + i < C; i++) finish(parts[i], first + i, add, db);
}

TASK void vectors(SUM_ARGUMENTS(PARAMETER) PLANE_ARGUMENTS(PARAMETER))
{
    const int task = get_group_id(0);
    struct column column = { (VF)(0.0f), (VF)(0.0f) };
    if (blocked) {
        const long image = (long)((C + V - 1) / V) * V * pixels;
        for (int n = 0; n < N; n++) add_column(&column, dy + n * image + (long)task * V * pixels, pixels, V);
        finish_block(column, task * V, C, add, db);
        return;
    }
    float sum = 0.0f, error = 0.0f;
    for (int n = 0; n < N; n++) {
        global const float *from = dy + ((long)n * C + task) * pixels;
        add_column(&column, from, pixels / V, V);
        float rest = 0.0f;
        for (int i = pixels / V * V; i < pixels; i++) rest += from[i];
        SUM_ADD(float, sum, error, rest);
    }
    SUM_ADD(float, sum, error, vector_sum(column.sum));
    finish(sum, task, add, db);
}

TASK void columns(SUM_ARGUMENTS(PARAMETER))
{
    const int first = get_group_id(0) * V;
    if (first + V <= C) {
        struct column column = { (VF)(0.0f), (VF)(0.0f) };
        add_column(&column, dy + first, N, C);
        finish_block(column, first, C, add, db);
        return;
    }
    for (int c = first; c < C; c++) finish(sum_of(dy + c, N, C), c, add, db);
}
#else
#ifndef GROUP
#define GROUP 1
#endif
#ifndef FOURS
#define FOURS 0
#endif
#include "group.h"
#if FOURS
typedef float4 T;
#define TOTAL_OF(v) (((v).x + (v).y) + ((v).z + (v).w))
#else
typedef float T;
#define TOTAL_OF(v) (v)
#endif
/* Positions are read STEPS at a time; one that exists stands for those that do not, so that no load waits for another. */
#define STEPS 4
#define EACH_STEP UNROLL for (int k = 0; k < STEPS; k++)

__attribute__((reqd_work_group_size(GROUP, 1, 1))) kernel void groups(
    global const T *restrict dy, global const float *add, global float *db, int N, int C, int pixels)
{
    local float scratch[GROUP];
    const int c = get_group_id(0), item = get_local_id(0);
    const long positions = (long)N * pixels, part = get_group_id(1), parts = get_num_groups(1);
    const long first = positions * part / parts + item, last = positions * (part + 1) / parts;
    /* Where the position lies, and its pixel. Both walk on by GROUP positions, without a division. */
    long at = (first / pixels * C + c) * pixels + first % pixels;
    int pixel = first % pixels;
    const int on = GROUP % pixels;
    const long images_on = (long)(GROUP / pixels) * C * pixels + on, image_on = (long)(C - 1) * pixels;
    T sum = (T)(0.0f), error = (T)(0.0f);
    for (long p = first; p < last; p += STEPS * GROUP) {
        const long begin = at;
        T v[STEPS];
        EACH_STEP
        {
            v[k] = dy[p + k * GROUP < last ? at : begin];
            pixel += on;
            at += images_on + (pixel >= pixels ? image_on : 0);
            pixel -= pixel >= pixels ? pixels : 0;
        }
        EACH_STEP v[k] = p + k * GROUP < last ? v[k] : (T)(0.0f);
        SUM_ADD(T, sum, error, (v[0] + v[1]) + (v[2] + v[3]));
    }
    const float total = group_sum(TOTAL_OF(sum), scratch);
    if (item == 0) finish(total, c, add, db + part * C);
}

kernel void rows(global const T *restrict dy, global T *db, int count, int C, int per)
{
    const int c = get_global_id(0), part = get_global_id(1), first = part * per, last = min(first + per, count);
    if (c >= C || first >= count) return;
    T sum = (T)(0.0f), error = (T)(0.0f);
    for (int i = first; i < last; i += STEPS) {
        T v[STEPS];
        EACH_STEP v[k] = dy[(size_t)min(i + k, last - 1) * C + c];
        EACH_STEP v[k] = i + k < last ? v[k] : (T)(0.0f);
        SUM_ADD(T, sum, error, (v[0] + v[1]) + (v[2] + v[3]));
    }
    db[(size_t)part * C + c] = sum;
}
#endif
