/* Discrete Fourier transforms of any length on any device, by passes over global memory (Stockham); the tables of all
 * implementations; launched by layers/dft/dft_kernels.c with a work-item for each element. The formula is in layers/dft/dft.h.
 *
 *   dft_read    a[transform][size] = x, with zeros where x has nothing
 *   dft_pass    a transform of `size` elements is a pass for each factor r of size (dft_radix.h); s, the product of the
 *               factors before:
 *                   b[q + s (r p + u)] = w^(p u s) * sum over t of w^(t u size / r) a[q + s (p + m t)]
 *               for q < s, p < m = size / (r s), u < r, with w = e^(-2 pi i / size)
 *   dft_filter  between the two transforms of Bluestein's algorithm
 *   dft_write   y = scale * a
 *
 * Kernels transform forward. The inverse exchanges real and imaginary parts before and after (SWAPPED).
 *
 * Bluestein's algorithm (CHIRP; Bluestein 1970) is for lengths N with a large prime factor, and transforms of a size of
 * at least 2 N - 1. With c[n] = e^(-pi i n^2 / N):
 *   X[k] = c[k] * sum over n of (x[n] c[n]) / c[k - n], which is a convolution.
 *
 * table: w^0 .. w^(size - 1); after it c[0] .. c[N - 1], and the transform of 1 / c, divided by size. */
#include "parameters.h"
#include "arguments/dft.h"
#include "dft_element.h"

kernel void dft_read(DFT_READ_ARGUMENTS(PARAMETER))
{
    const long e = get_global_id(0);
    if (e >= count * size) return;
    const long t = first + e / size;
    const int n = (int)(e % size);
    float2 v = (float2)(0.0f);
    const int j = position_before(n, from, length);
    if (n < length && j < in) {
        const long at = (t / inner * in + j) * inner + t % inner;
#if FORM == REAL_TO_COMPLEX
        v = (float2)(x[at], 0.0f);
#else
        v = (float2)(x[2 * at], x[2 * at + 1]);
#endif
#if FORM == COMPLEX_TO_REAL
        v *= WEIGHT(n);
#endif
        v = SWAPPED(v);
#if CHIRP
        v = complex_product(v, table[size + n]);
#endif
    }
    a[e] = v;
}

kernel void dft_pass(DFT_PASS_ARGUMENTS(PARAMETER))
{
    const long e = get_global_id(0);
    if (e >= elements) return;
    const long transform = e / size * size;
    const int at = (int)(e - transform), m = size / (radix * stride);
    const int q = at % stride, u = at / stride % radix, p = at / stride / radix;
    float2 sum = (float2)(0.0f);
    for (int t = 0; t < radix; t++)
        sum += complex_product(
            a[a_from + transform + q + (long)stride * (p + (long)m * t)], table[(long)t * u % radix * (size / radix)]);
    b[b_from + e] = complex_product(sum, table[(long)p * u * stride]);
}

#if CHIRP
kernel void dft_filter(global float2 *a, global const float2 *table, long a_from, long filter, int size, long elements)
{
    const long e = get_global_id(0);
    if (e < elements) a[a_from + e] = complex_product(a[a_from + e], table[filter + e % size]).yx;
}
#endif

static float2 transformed(global const float2 *a, int n, global const float2 *table, int size)
{
#if CHIRP
    return complex_product(a[n].yx, table[size + n]);
#else
    return a[n];
#endif
}

kernel void dft_write(DFT_WRITE_ARGUMENTS(PARAMETER))
{
    const long e = get_global_id(0);
    if (e >= count * out) return;
    const long t = first + e / out;
    const int k = (int)(e % out), n = position_after(k, to, length);
    a += a_from + (t - first) * size;
    float2 v = transformed(a, n, table, size);
#if FORM == REAL_TO_COMPLEX
    v = symmetric(v, transformed(a, n ? length - n : 0, table, size));
#endif
    v = SWAPPED(v) * scale;
    const long at = (t / inner * out + k) * inner + t % inner;
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

/* e^(-pi i n / half), exact to a unit in the last place: the angle is reduced to an eighth of a turn before. */
static float2 turned(long n, long half_turn)
{
    const long turn = 2 * half_turn;
    n %= turn;
    const long eighths = 8 * n / turn, quarters = (eighths + 1) / 2; /* the nearest quarter of a turn */
    const float angle = (float)(4 * n - quarters * turn) / (float)(2 * turn) * M_PI_F; /* at most pi / 4 */
    const float c = cos(angle), s = sin(angle);
    switch (quarters % 4) {
    case 0: return (float2)(c, -s);
    case 1: return (float2)(-s, -c);
    case 2: return (float2)(-c, s);
    default: return (float2)(s, c);
    }
}

/* `size` turns, and where `length` is not 0, the chirps and what the filter is the transform of. */
kernel void dft_table(global float2 *table, int size, int length)
{
    const int n = get_global_id(0);
    if (n >= size) return;
    table[n] = turned(2L * n, size);
    if (length == 0) return;
    if (n < length) table[size + n] = turned((long)n * n % (2L * length), length);
    const int m = n < length ? n : size - n;
    float2 v = (float2)(0.0f);
    if (m < length) {
        v = turned((long)m * m % (2L * length), length) / (float)size;
        v.y = -v.y;
    }
    table[size + length + n] = v;
}
