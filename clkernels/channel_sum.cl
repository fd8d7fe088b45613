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
 * Several parts are added up by groups, as [parts][C][1]. With FOURS 1 these two read vectors of four pixels or
 * channels, in which they count `pixels` or C.
 *
 * dy is [N][C][pixels] in the plain layout, [N][C / V][pixels][V] in the blocked one; db [C], to which `add` [C] is
 * added where ADD is 1. Launched by layers/channel_sum.c. */
#include "parameters.h"
#include "arguments/channel_sum.h"
#include "epilogue.h"
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
    float sum = 0.0f;
    for (int n = 0; n < N; n++) {
        float part = 0.0f;
        for (int i = 0; i < pixels; i++) part += from[n * image + i * stride];
        sum += part;
    }
    finish(sum, c, add, db);
}

#if !TUTTI_GPU
/* Sums `count` vectors that lie one after the other: four chains hide the latency of the additions. */
INLINE VF column(global const float *from, int count)
{
    VF a = 0.0f, b = 0.0f, c = 0.0f, d = 0.0f;
    int i = 0;
    for (; i + 4 <= count; i += 4) {
        a += VLOAD(i, from);
        b += VLOAD(i + 1, from);
        c += VLOAD(i + 2, from);
        d += VLOAD(i + 3, from);
    }
    for (; i < count; i++) a += VLOAD(i, from);
    return (a + b) + (c + d);
}

TASK void vectors(SUM_ARGUMENTS(PARAMETER) PLANE_ARGUMENTS(PARAMETER))
{
    int task = get_group_id(0);
    VF sum = 0.0f;
    if (blocked) {
        long image = (long)((C + V - 1) / V) * V * pixels;
        for (int n = 0; n < N; n++) sum += column(dy + n * image + (long)task * V * pixels, pixels);
        float parts[V];
        *(VF_unaligned *)parts = sum;
        for (int i = 0; i < V && task * V + i < C; i++) finish(parts[i], task * V + i, add, db);
        return;
    }
    float rest = 0.0f;
    for (int n = 0; n < N; n++) {
        global const float *from = dy + ((long)n * C + task) * pixels;
        sum += column(from, pixels / V);
        for (int i = pixels / V * V; i < pixels; i++) rest += from[i];
    }
    finish(vector_sum(sum) + rest, task, add, db);
}

TASK void columns(SUM_ARGUMENTS(PARAMETER))
{
    int first = get_group_id(0) * V;
    if (first + V <= C) {
        VF a = 0.0f, b = 0.0f;
        int n = 0;
        for (; n + 2 <= N; n += 2) {
            a += VLOAD(0, dy + (long)n * C + first);
            b += VLOAD(0, dy + (long)(n + 1) * C + first);
        }
        if (n < N) a += VLOAD(0, dy + (long)n * C + first);
        float parts[V];
        *(VF_unaligned *)parts = a + b;
        for (int i = 0; i < V; i++) finish(parts[i], first + i, add, db);
        return;
    }
    for (int c = first; c < C; c++) {
        float sum = 0.0f;
        for (int n = 0; n < N; n++) sum += dy[(long)n * C + c];
        finish(sum, c, add, db);
    }
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
    T sum = (T)(0.0f);
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
        EACH_STEP sum += p + k * GROUP < last ? v[k] : (T)(0.0f);
    }
    const float total = group_sum(TOTAL_OF(sum), scratch);
    if (item == 0) finish(total, c, add, db + part * C);
}

kernel void rows(global const T *restrict dy, global T *db, int count, int C, int per)
{
    const int c = get_global_id(0), part = get_global_id(1), first = part * per, last = min(first + per, count);
    if (c >= C || first >= count) return;
    T sum = (T)(0.0f);
    for (int i = first; i < last; i += STEPS) {
        T v[STEPS];
        EACH_STEP v[k] = dy[(size_t)min(i + k, last - 1) * C + c];
        EACH_STEP sum += i + k < last ? v[k] : (T)(0.0f);
    }
    db[(size_t)part * C + c] = sum;
}
#endif
