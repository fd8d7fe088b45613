/* Transforms of both axes of real images with few frequencies, on CPU-class devices: products with small tables of
 * cosines and sines, of V images at a time side by side; launched by layers/dft/dft2_products.c with tasks of `each`
 * groups of V images. The formula is in layers/dft/dft2.h.
 *
 * Cosines are equal at v and at width - v, and sines differ in their sign. So an axis is folded before its products, or
 * they give two results each: half of them is needed. A task's spectra stay in its scratch. INVERSE: the other
 * direction. BLOCKED: images have V channels side by side already; else they are transposed on the way.
 *
 * Tables have for each tile of TILE_ROWS or TILE_COLUMNS results the numbers of each element of the sums, so that they are
 * read in order; a number is e^(i a b / length), for element a and result b. */
#include "parameters.h"
#include "arguments/dft2.h"
#include "vector.h"
#include "dft_transpose.h"

typedef VF_unaligned STORED;
#define COSINE(u) ((VF)(t[u].x))
#define SINE(u) ((VF)(t[u].y))
#define HALF(length) ((length) / 2 + 1)

/* Whether position or frequency i is its own mirror image. */
INLINE bool is_mirrored(int i, int length)
{
    return i == 0 || 2 * i == length;
}

/* e: x[i] + x[length - i], o: x[i] - x[length - i], `step` elements apart, for i from 0 to length / 2. */
INLINE void fold(const global STORED *x, int length, int step, global STORED *e, global STORED *o)
{
    e[0] = x[0];
    o[0] = (VF)(0.0f);
    LOOP for (int i = 1; 2 * i < length; i++)
    {
        const VF low = x[(long)i * step], high = x[(long)(length - i) * step];
        e[i] = low + high;
        o[i] = low - high;
    }
    if (length % 2 == 0) {
        e[length / 2] = x[(long)(length / 2) * step];
        o[length / 2] = (VF)(0.0f);
    }
}

/* ---------------------------------------------------------------------------------------------------- images ---- */

/* A row of V images. Rows past the last image repeat the last one. */
INLINE const global STORED *row_load(const global float *x, long group, long images, int h, int height, int width,
    global STORED *buffer)
{
#if BLOCKED
    return (const global STORED *)(x + (group * height + h) * (long)width * V);
#else
    const global float *rows[V];
    for (int lane = 0; lane < V; lane++) rows[lane] = x + (min(group * V + lane, images - 1) * height + h) * (long)width;
    int w = 0;
    for (; w + V <= width; w += V) {
        VF tile[V];
        UNROLL for (int lane = 0; lane < V; lane++) tile[lane] = VLOAD(0, rows[lane] + w);
        transpose(tile);
        UNROLL for (int i = 0; i < V; i++) buffer[w + i] = tile[i];
    }
    for (; w < width; w++)
        for (int lane = 0; lane < V; lane++) ((global float *)buffer)[w * V + lane] = rows[lane][w];
    return buffer;
#endif
}

/* Where a row of the results is put, before row_store(). */
INLINE global STORED *row_of(global float *y, long group, int h, int height, int width, global STORED *buffer)
{
#if BLOCKED
    return (global STORED *)(y + (group * height + h) * (long)width * V);
#else
    return buffer;
#endif
}

INLINE void row_store(
    const global STORED *buffer, global float *y, long group, long images, int h, int height, int width)
{
#if !BLOCKED
    const int count = (int)min((long)V, images - group * V);
    global float *row = y + (group * V * height + h) * (long)width;
    const long step = (long)height * width;
    int w = 0;
    for (; w + V <= width; w += V) {
        VF tile[V];
        UNROLL for (int i = 0; i < V; i++) tile[i] = buffer[w + i];
        transpose(tile);
        for (int lane = 0; lane < count; lane++) VSTORE(tile[lane], 0, row + lane * step + w);
    }
    for (; w < width; w++)
        for (int lane = 0; lane < count; lane++) row[lane * step + w] = ((const global float *)buffer)[w * V + lane];
#endif
}

/* The floats of V spectra, one after the other in each. */
INLINE void spectrum_load(const global float *x, long group, long images, long floats, global STORED *s)
{
    long p = 0;
    for (; p + V <= floats; p += V) {
        VF tile[V];
        UNROLL for (int lane = 0; lane < V; lane++) tile[lane] =
            VLOAD(0, x + min(group * V + lane, images - 1) * floats + p);
        transpose(tile);
        UNROLL for (int i = 0; i < V; i++) s[p + i] = tile[i];
    }
    for (; p < floats; p++)
        for (int lane = 0; lane < V; lane++)
            ((global float *)s)[p * V + lane] = x[min(group * V + lane, images - 1) * floats + p];
}

INLINE void spectrum_store(const global STORED *s, global float *y, long group, long images, long floats)
{
    const int count = (int)min((long)V, images - group * V);
    long p = 0;
    y += group * V * floats;
    for (; p + V <= floats; p += V) {
        VF tile[V];
        UNROLL for (int i = 0; i < V; i++) tile[i] = s[p + i];
        transpose(tile);
        for (int lane = 0; lane < count; lane++) VSTORE(tile[lane], 0, y + lane * floats + p);
    }
    for (; p < floats; p++)
        for (int lane = 0; lane < count; lane++) y[lane * floats + p] = ((const global float *)s)[p * V + lane];
}

/* Where the spectrum has the frequency k of the height, from 0 to height - 1: -1: it has none. */
INLINE int row_at(int k, int first, int height, int rows)
{
    const int r = k >= first ? k - first : k - first + height;
    return r < rows ? r : -1;
}

#if !INVERSE
/* --------------------------------------------------------------------------------------------------- forward ---- */

/* The lowest frequencies of a row, z[l][height] of two vectors each, of its folded sums e and differences o. */
INLINE void row_forward(const global STORED *e, const global STORED *o, const global float2 *t, int height, int width,
    int columns, global STORED *z)
{
    for (int l = 0; l < columns; l += TILE_COLUMNS) {
        VF re[TILE_COLUMNS], im[TILE_COLUMNS];
        UNROLL for (int u = 0; u < TILE_COLUMNS; u++) re[u] = im[u] = (VF)(0.0f);
        LOOP for (int w = 0; w < HALF(width); w++, t += TILE_COLUMNS)
        {
            const VF even = e[w], odd = o[w];
            UNROLL for (int u = 0; u < TILE_COLUMNS; u++)
            {
                re[u] = fma(even, COSINE(u), re[u]);
                im[u] = fma(odd, SINE(u), im[u]);
            }
        }
        UNROLL for (int u = 0; u < TILE_COLUMNS; u++)
            if (l + u < columns) {
                z[(long)(l + u) * height * 2] = re[u];
                z[(long)(l + u) * height * 2 + 1] = -im[u];
            }
    }
}

/* Frequencies of a column: s[row][columns] of two vectors each, of folded real parts f[0], f[1] and imaginary ones. */
INLINE void column_forward(const global STORED *f, const global float2 *t, global STORED *s, int l, float weight,
    int height, int rows, int columns, int first, int half_rows)
{
    const int halves = HALF(height);
    for (int a = 0; a < half_rows; a += TILE_ROWS) {
        VF sums[TILE_ROWS][4];
        UNROLL for (int u = 0; u < TILE_ROWS; u++)
        UNROLL for (int i = 0; i < 4; i++) sums[u][i] = (VF)(0.0f);
        LOOP for (int h = 0; h < halves; h++, t += TILE_ROWS)
        {
            const VF re_even = f[h], re_odd = f[halves + h], im_even = f[2 * halves + h], im_odd = f[3 * halves + h];
            UNROLL for (int u = 0; u < TILE_ROWS; u++)
            {
                sums[u][0] = fma(re_even, COSINE(u), sums[u][0]);
                sums[u][1] = fma(re_odd, SINE(u), sums[u][1]);
                sums[u][2] = fma(im_even, COSINE(u), sums[u][2]);
                sums[u][3] = fma(im_odd, SINE(u), sums[u][3]);
            }
        }
        UNROLL for (int u = 0; u < TILE_ROWS; u++)
        {
            if (a + u >= half_rows) continue;
            const int plus = row_at(a + u, first, height, rows);
            const int minus = is_mirrored(a + u, height) ? -1 : row_at(height - a - u, first, height, rows);
            if (plus >= 0) {
                global STORED *to = s + ((long)plus * columns + l) * 2;
                to[0] = (sums[u][0] + sums[u][3]) * weight;
                to[1] = (sums[u][2] - sums[u][1]) * weight;
            }
            if (minus >= 0) {
                global STORED *to = s + ((long)minus * columns + l) * 2;
                to[0] = (sums[u][0] - sums[u][3]) * weight;
                to[1] = (sums[u][2] + sums[u][1]) * weight;
            }
        }
    }
}

OUTLINE void images_of(const global float *x, global float *y, global STORED *a, long group DFT2_SIZES(PARAMETER))
{
    const int halves = HALF(height);
    global STORED *z = a, *folded = z + 2 * (long)height * columns, *s = folded + 4 * halves;
    global STORED *buffer = s, *e = buffer + width, *o = e + HALF(width); /* they are read before s is written */
    for (int h = 0; h < height; h++) {
        fold(row_load(x, group, images, h, height, width, buffer), width, 1, e, o);
        row_forward(e, o, table + columns_at, height, width, columns, z + 2 * h);
    }
    for (int l = 0; l < columns; l++) {
        const float weight = DOUBLED && !is_mirrored(l, width) ? 2 * scale : scale;
        const global STORED *column = z + 2 * (long)height * l;
        fold(column, height, 2, folded, folded + halves);
        fold(column + 1, height, 2, folded + 2 * halves, folded + 3 * halves);
        column_forward(folded, table + rows_at, s, l, weight, height, rows, columns, first, half_rows);
    }
    spectrum_store(s, y, group, images, 2 * (long)rows * columns);
}

#else
/* --------------------------------------------------------------------------------------------------- inverse ---- */

/* The sums and differences of the frequencies a and -a of a column: f[a] has re + re', re - re', im + im', im - im'. */
INLINE void pairs_of(const global STORED *s, global STORED *f, int l, float weight, int height, int rows, int columns,
    int first, int half_rows)
{
    for (int a = 0; a < half_rows; a++) {
        const int plus = row_at(a, first, height, rows);
        const int minus = is_mirrored(a, height) ? -1 : row_at(height - a, first, height, rows);
        VF v[4] = { (VF)(0.0f), (VF)(0.0f), (VF)(0.0f), (VF)(0.0f) };
        if (plus >= 0) {
            v[0] = s[((long)plus * columns + l) * 2] * weight;
            v[1] = s[((long)plus * columns + l) * 2 + 1] * weight;
        }
        if (minus >= 0) {
            v[2] = s[((long)minus * columns + l) * 2] * weight;
            v[3] = s[((long)minus * columns + l) * 2 + 1] * weight;
        }
        f[4 * a] = v[0] + v[2];
        f[4 * a + 1] = v[0] - v[2];
        f[4 * a + 2] = v[1] + v[3];
        f[4 * a + 3] = v[1] - v[3];
    }
}

/* A column at all heights, z[height][columns] of two vectors each. */
INLINE void column_inverse(
    const global STORED *f, const global float2 *t, global STORED *z, int height, int columns, int half_rows)
{
    const int halves = HALF(height);
    for (int h = 0; h < halves; h += TILE_ROWS) {
        VF sums[TILE_ROWS][4];
        UNROLL for (int u = 0; u < TILE_ROWS; u++)
        UNROLL for (int i = 0; i < 4; i++) sums[u][i] = (VF)(0.0f);
        LOOP for (int a = 0; a < half_rows; a++, t += TILE_ROWS)
        {
            const VF re_even = f[4 * a], re_odd = f[4 * a + 1], im_even = f[4 * a + 2], im_odd = f[4 * a + 3];
            UNROLL for (int u = 0; u < TILE_ROWS; u++)
            {
                sums[u][0] = fma(re_even, COSINE(u), sums[u][0]);
                sums[u][1] = fma(re_odd, SINE(u), sums[u][1]);
                sums[u][2] = fma(im_even, COSINE(u), sums[u][2]);
                sums[u][3] = fma(im_odd, SINE(u), sums[u][3]);
            }
        }
        UNROLL for (int u = 0; u < TILE_ROWS; u++)
        {
            if (h + u >= halves) continue;
            global STORED *to = z + 2 * (long)(h + u) * columns;
            to[0] = sums[u][0] - sums[u][3];
            to[1] = sums[u][2] + sums[u][1];
            if (is_mirrored(h + u, height)) continue;
            to = z + 2 * (long)(height - h - u) * columns;
            to[0] = sums[u][0] + sums[u][3];
            to[1] = sums[u][2] - sums[u][1];
        }
    }
}

INLINE void row_inverse(const global STORED *z, const global float2 *t, int width, int columns, global STORED *row)
{
    for (int w = 0; w < HALF(width); w += TILE_COLUMNS) {
        VF even[TILE_COLUMNS], odd[TILE_COLUMNS];
        UNROLL for (int u = 0; u < TILE_COLUMNS; u++) even[u] = odd[u] = (VF)(0.0f);
        LOOP for (int l = 0; l < columns; l++, t += TILE_COLUMNS)
        {
            const VF re = z[2 * l], im = z[2 * l + 1];
            UNROLL for (int u = 0; u < TILE_COLUMNS; u++)
            {
                even[u] = fma(re, COSINE(u), even[u]);
                odd[u] = fma(im, SINE(u), odd[u]);
            }
        }
        UNROLL for (int u = 0; u < TILE_COLUMNS; u++)
        {
            if (w + u >= HALF(width)) continue;
            row[w + u] = even[u] - odd[u];
            if (!is_mirrored(w + u, width)) row[width - w - u] = even[u] + odd[u];
        }
    }
}

OUTLINE void images_of(const global float *x, global float *y, global STORED *a, long group DFT2_SIZES(PARAMETER))
{
    global STORED *z = a, *f = z + 2 * (long)height * columns, *s = f + 4 * half_rows, *buffer = s;
    spectrum_load(x, group, images, 2 * (long)rows * columns, s);
    for (int l = 0; l < columns; l++) {
        const float weight = DOUBLED && !is_mirrored(l, width) ? 2 * scale : scale;
        pairs_of(s, f, l, weight, height, rows, columns, first, half_rows);
        column_inverse(f, table + rows_at, z + 2 * l, height, columns, half_rows);
    }
    for (int h = 0; h < height; h++) { /* s is not read any more: buffer lies there */
        global STORED *row = row_of(y, group, h, height, width, buffer);
        row_inverse(z + 2 * (long)h * columns, table + columns_at, width, columns, row);
        row_store(row, y, group, images, h, height, width);
    }
}
#endif

OUTLINE void groups(long task, DFT2_ARGUMENTS(PARAMETER))
{
    global STORED *a = (global STORED *)(scratch + task * scratch_floats);
    const long begin = task * each, end = min(begin + each, (images + V - 1) / V);
    for (long group = begin; group < end; group++) images_of(x, y, a, group DFT2_SIZES(NAME));
}

TASK void dft2_products(DFT2_ARGUMENTS(PARAMETER))
{
    groups(get_group_id(0), DFT2_ARGUMENTS(NAME));
}

/* A tile of a table, of the turns e^(-2 pi i n / length) at the beginning of the buffer. */
OUTLINE void tile_of(long number, DFT2_TABLE_ARGUMENTS(PARAMETER))
{
    global float2 *to = table + at + number * loops * tile;
    for (long a = 0; a < loops; a++)
        for (int u = 0; u < tile; u++) {
            const float2 turn = table[a * (number * tile + u) % length];
            to[a * tile + u] = (float2)(turn.x, -turn.y);
        }
}

TASK void dft2_table(DFT2_TABLE_ARGUMENTS(PARAMETER))
{
    tile_of(get_group_id(0), DFT2_TABLE_ARGUMENTS(NAME));
}
