/* Discrete Fourier transforms in local memory, on any device; launched by layers/dft/dft_groups.c with a group of GROUP
 * work-items for each TILE transforms. The formula is in layers/dft/dft.h, passes and tables in dft_plain.cl.
 *
 * FEW: each element of the result is a sum of its own; no passes. For few elements on one side. */
#include "parameters.h"
#include "arguments/dft.h"
#include "dft_element.h"
#define SPACE local
#define NUMBER float
#define STORED float
#include "dft_passes.h"

#if !FEW
/* A work-item makes every GROUP-th one of all transforms of R elements. */
#define PASS(R)                                                                                              \
    static void pass##R(                                                                                     \
        const local float *from, local float *to, global const float2 *table, int size, int stride, int m)  \
    {                                                                                                        \
        for (int i = get_local_id(0); i < TILE * m * stride; i += GROUP) {                                   \
            const int place = i % (m * stride), p = place / stride, q = place % stride;                      \
            const int base = i / (m * stride) * size;                                                        \
            pair a[R];                                                                                       \
            for (int t = 0; t < R; t++) a[t] = pair_load(from, base + q + stride * (p + m * t));             \
            butterfly##R(a);                                                                                 \
            for (int u = 0; u < R; u++)                                                                      \
                pair_store(pair_multiply(a[u], table[p * u * stride]), to, base + q + stride * (R * p + u)); \
        }                                                                                                    \
    }
PASS(2)
PASS(3)
PASS(4)
PASS(5)
PASS(8)

static void pass_any(const local float *from, local float *to, global const float2 *table, int size, int stride, int m,
    int radix)
{
    for (int i = get_local_id(0); i < TILE * size; i += GROUP) {
        const int base = i / size * size, place = i % size, q = place % stride, u = place / stride % radix,
                  p = place / stride / radix;
        const pair sum = pair_any(from, base + q + stride * p, stride * m, radix, u, table, stride * m);
        pair_store(pair_multiply(sum, table[p * u * stride]), to, i);
    }
}

/* Returns which of both halves of `space` has the result; all work-items of the group call. */
static int passes(local float *space, int from, global const float2 *table, int size)
{
    int stride = 1;
    for (int rest = size; rest > 1;) {
        const int radix = dft_radix(rest), m = rest / radix;
        local float *a = space + from * 2 * TILE * size, *b = space + (1 - from) * 2 * TILE * size;
        switch (radix) {
        case 2: pass2(a, b, table, size, stride, m); break;
        case 3: pass3(a, b, table, size, stride, m); break;
        case 4: pass4(a, b, table, size, stride, m); break;
        case 5: pass5(a, b, table, size, stride, m); break;
        case 8: pass8(a, b, table, size, stride, m); break;
        default: pass_any(a, b, table, size, stride, m, radix);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        from = 1 - from;
        stride *= radix;
        rest = m;
    }
    return from;
}
#endif

/* Finds element i of a tile's `count` elements of each transform: which transform it belongs to, and which of its
 * elements it is. Neighbours in memory are neighbours. */
static int2 place_of(int i, int count, long inner)
{
    return inner == 1 ? (int2)(i / count, i % count) : (int2)(i % TILE, i / TILE);
}

static float2 read_element(global const float *x, long t, int j, int n DFT_SIZES(PARAMETER))
{
    const long at = (t / inner * in + j) * inner + t % inner;
#if FORM == REAL_TO_COMPLEX
    return SWAPPED((float2)(x[at], 0.0f));
#elif FORM == COMPLEX_TO_REAL
    return SWAPPED((float2)(x[2 * at], x[2 * at + 1])) * WEIGHT(n);
#else
    return SWAPPED((float2)(x[2 * at], x[2 * at + 1]));
#endif
}

static void write_element(float2 v, global float *y, long t, int j, int n DFT_SIZES(PARAMETER))
{
    const long at = (t / inner * out + j) * inner + t % inner;
    v = SWAPPED(v) * scale;
#if FORM == COMPLEX_TO_REAL
    y[at] = v.x;
#else
#if FORM == REAL_TO_COMPLEX
    v *= WEIGHT(n);
#endif
    y[2 * at] = v.x;
    y[2 * at + 1] = v.y;
#endif
}

#if !FEW
/* The transform at position n of those after `a`. */
static float2 transformed(const local float *a, int n, global const float2 *table, int size)
{
    const float2 v = (float2)(a[2 * n], a[2 * n + 1]);
#if CHIRP
    return complex_product(v.yx, table[size + n]);
#else
    return v;
#endif
}
#endif

static void put(local float *a, int element, float2 v)
{
    a[2 * element] = v.x;
    a[2 * element + 1] = v.y;
}

__attribute__((reqd_work_group_size(GROUP, 1, 1))) kernel void dft_groups(DFT_GROUP_ARGUMENTS(PARAMETER))
{
    const int item = get_local_id(0);
    const long first = get_group_id(0) * (long)TILE;
#if !FEW
    for (int i = item; i < TILE * size; i += GROUP) put(space, i, (float2)(0.0f));
    barrier(CLK_LOCAL_MEM_FENCE);
#endif
    for (int i = item; i < TILE * in; i += GROUP) {
        const int2 place = place_of(i, in, inner);
        const int n = position_after(place.y, from, length);
        if (first + place.x >= transforms) continue;
        float2 v = read_element(x, first + place.x, place.y, n DFT_SIZES(NAME));
#if FEW
        put(space, place.x * in + place.y, v);
#else
#if CHIRP
        v = complex_product(v, table[size + n]);
#endif
        put(space, place.x * size + n, v);
#endif
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#if !FEW
    int half_at = passes(space, 0, table, size);
#if CHIRP
    for (int i = item; i < TILE * size; i += GROUP) {
        local float *at = space + 2 * (half_at * TILE * size + i);
        put(at, 0, complex_product((float2)(at[0], at[1]), table[filter + i % size]).yx);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    half_at = passes(space, half_at, table, size);
#endif
    space += half_at * 2 * TILE * size;
#endif
    for (int i = item; i < TILE * out; i += GROUP) {
        const int2 place = place_of(i, out, inner);
        const int n = position_after(place.y, to, length);
        if (first + place.x >= transforms) continue;
#if FEW
        float2 v = (float2)(0.0f);
        int angle = (int)((long)from * n % length);
        for (int j = 0; j < in; j++) {
            local const float *of = space + 2 * (place.x * in + j);
            v += complex_product((float2)(of[0], of[1]), table[angle]);
            angle = angle < length - n ? angle + n : angle + n - length;
        }
#else
        const local float *of = space + 2 * place.x * size;
        float2 v = transformed(of, n, table, size);
#if FORM == REAL_TO_COMPLEX
        v = symmetric(v, transformed(of, n ? length - n : 0, table, size));
#endif
#endif
        write_element(v, y, first + place.x, place.y, n DFT_SIZES(NAME));
    }
}
