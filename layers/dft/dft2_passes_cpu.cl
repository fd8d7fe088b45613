/* Transforms of both axes of real images with many frequencies, on CPU-class devices: passes of one image at a time;
 * launched by layers/dft/dft2_passes.c with tasks of `each` images. The formula is in layers/dft/dft2.h.
 *
 * Vectors hold V rows, or V columns, side by side. 2 V rows are V complex transforms: dft_cpu.cl says how two real
 * signals are packed and separated. An image's half spectrum stays in the task's scratch, where the second-level cache
 * holds it: z[V columns][row] of a real and an imaginary vector, `step` vectors from V columns to the next ones. Tiles
 * are transposed between rows and columns. INVERSE: the other direction.
 *
 * The sides of a real and a symmetric spectrum need a factor of a half: scales contain it. table: the turns of the
 * width (dft_plain.cl), those of the height at turns_at. */
#include "parameters.h"
#include "arguments/dft2.h"
#include "vector.h"
#include "dft_transpose.h"
#include "dft_vector_passes.h"

typedef VF VF_private __attribute__((aligned(4)));

/* Whether frequency l is its own mirror image. */
INLINE bool is_mirrored(int l, int width)
{
    return l == 0 || 2 * l == width;
}

/* The factors of V frequencies of the width from l on. */
INLINE VF weights_of(int l, int width, float scale)
{
    float weights[V];
    for (int lane = 0; lane < V; lane++) {
        const float weight = DOUBLED && !is_mirrored(l + lane, width) ? 2.0f : 1.0f;
        weights[lane] = weight * scale * 0.5f;
    }
    return *(VF_private *)weights;
}

INLINE int passes_of(int size)
{
    int count = 0;
    for (int rest = size; rest > 1; rest /= dft_radix(rest)) count++;
    return count;
}

#if !INVERSE
/* V rows from h on, past the last one the last one again, as one part of the elements of a. */
INLINE void rows_load(const global float *x, global STORED *a, int h, int height, int width)
{
    const global float *rows[V];
    for (int lane = 0; lane < V; lane++) rows[lane] = x + (long)min(h + lane, height - 1) * width;
    int w = 0;
    LOOP for (; w + V <= width; w += V)
    {
        VF tile[V];
        UNROLL for (int lane = 0; lane < V; lane++) tile[lane] = VLOAD(0, rows[lane] + w);
        transpose(tile);
        UNROLL for (int i = 0; i < V; i++) a[2 * (w + i)] = tile[i];
    }
    for (; w < width; w++)
        for (int lane = 0; lane < V; lane++) ((global float *)(a + 2 * w))[lane] = rows[lane][w];
}

/* Separates the spectra of rows h to h + 2 V - 1, twice as large, and puts them in z. */
INLINE void rows_separate(const global STORED *a, global STORED *z, long step, int h, int width, int columns)
{
    LOOP for (int l = 0; l < columns; l += V, z += step)
    {
        VF parts[4][V];
        UNROLL for (int i = 0; i < V; i++)
        {
            const int k = min(l + i, columns - 1);
            const pair v = pair_load(a, k), w = pair_load(a, k ? width - k : 0);
            parts[0][i] = v.re + w.re;
            parts[1][i] = v.im - w.im;
            parts[2][i] = v.im + w.im;
            parts[3][i] = w.re - v.re;
        }
        UNROLL for (int part = 0; part < 4; part++)
        {
            transpose(parts[part]);
            UNROLL for (int i = 0; i < V; i++) z[2 * (h + part / 2 * V + i) + part % 2] = parts[part][i];
        }
    }
}

/* Frequencies l to l + count - 1 of all rows of the result, of whole columns. */
INLINE void columns_store(const global STORED *of, global float *y, int l, int count, VF weights, int height, int rows,
    int columns, int first)
{
    LOOP for (int r = 0, k = first; r < rows; r++, k = k + 1 < height ? k + 1 : 0)
    {
        const pair v = pair_load(of, k);
        const VF re = v.re * weights, im = v.im * weights;
        global float *to = y + 2 * ((long)r * columns + l);
        if (count == V) {
            VSTORE(ZIP(re, im), 0, to);
            VSTORE(ZIP_HIGH(re, im), 1, to);
        } else {
            float pairs[2 * V];
            *(VF_private *)pairs = ZIP(re, im);
            *(VF_private *)(pairs + V) = ZIP_HIGH(re, im);
            for (int i = 0; i < 2 * count; i++) to[i] = pairs[i];
        }
    }
}

OUTLINE void image_of(const global float *x, global float *y, global STORED *a, global STORED *b,
    global STORED *z DFT2_PASSES_SIZES(PARAMETER))
{
    for (int h = 0; h < height; h += 2 * V) {
        rows_load(x, a, h, height, width);
        rows_load(x, a + 1, h + V, height, width);
        rows_separate(passes(a, b, table, width), z, step, h, width, columns);
    }
    for (int l = 0; l < columns; l += V, z += step)
        columns_store(passes(z, a, table + turns_at, height), y, l, min(V, columns - l), weights_of(l, width, scale),
            height, rows, columns, first);
}

#else
/* Frequencies l to l + count - 1 of all rows, parts exchanged: the passes then transform in the other direction. */
INLINE void columns_load(const global float *x, global STORED *a, int l, int count, VF weights, int height, int rows,
    int columns, int first)
{
    if (rows < height)
        for (int k = 0; k < 2 * height; k++) a[k] = (VF)(0.0f);
    LOOP for (int r = 0, k = first; r < rows; r++, k = k + 1 < height ? k + 1 : 0)
    {
        const global float *from = x + 2 * ((long)r * columns + l);
        VF low, high;
        if (count == V) {
            low = VLOAD(0, from);
            high = VLOAD(1, from);
        } else {
            float pairs[2 * V];
            for (int i = 0; i < 2 * V; i++) pairs[i] = i < 2 * count ? from[i] : 0.0f;
            low = *(VF_private *)pairs;
            high = *(VF_private *)(pairs + V);
        }
        pair_store((pair) { (VF)(low.odd, high.odd) * weights, (VF)(low.even, high.even) * weights }, a, k);
    }
}

/* Joins the spectra of rows h to h + 2 V - 1 to whole ones of V complex transforms, parts exchanged. */
INLINE void rows_join(const global STORED *z, global STORED *a, long step, int h, int width, int columns)
{
    LOOP for (int l = 0; l < columns; l += V, z += step)
    {
        VF parts[4][V]; /* imaginary and real, of both rows */
        UNROLL for (int part = 0; part < 4; part++)
        {
            UNROLL for (int i = 0; i < V; i++) parts[part][i] = z[2 * (h + part / 2 * V + i) + part % 2];
            transpose(parts[part]);
        }
        const int count = min(V, columns - l);
        for (int i = 0; i < count; i++) {
            const pair v = { parts[0][i] + parts[3][i], parts[1][i] - parts[2][i] };
            const pair mirrored = { parts[3][i] - parts[0][i], parts[1][i] + parts[2][i] };
            if (is_mirrored(l + i, width)) {
                pair_store(pair_add(v, mirrored), a, l + i);
            } else {
                pair_store(v, a, l + i);
                pair_store(mirrored, a, width - l - i);
            }
        }
    }
    for (int n = columns; n <= width - columns; n++) pair_store((pair) { (VF)(0.0f), (VF)(0.0f) }, a, n);
}

INLINE void rows_store(const global STORED *of, global float *y, int h, int height, int width)
{
    const int count = min(V, height - h);
    global float *row = y + (long)h * width;
    int w = 0;
    LOOP for (; w + V <= width; w += V)
    {
        VF tile[V];
        UNROLL for (int i = 0; i < V; i++) tile[i] = of[2 * (w + i)];
        transpose(tile);
        if (count == V) {
            UNROLL for (int lane = 0; lane < V; lane++) VSTORE(tile[lane], 0, row + (long)lane * width + w);
        } else {
            for (int lane = 0; lane < count; lane++) VSTORE(tile[lane], 0, row + (long)lane * width + w);
        }
    }
    for (; w < width; w++)
        for (int lane = 0; lane < count; lane++)
            row[(long)lane * width + w] = ((const global float *)(of + 2 * w))[lane];
}

OUTLINE void image_of(const global float *x, global float *y, global STORED *a, global STORED *b,
    global STORED *z DFT2_PASSES_SIZES(PARAMETER))
{
    const bool odd = passes_of(height) % 2; /* passes from the buffer end in z */
    for (int l = 0, g = 0; l < columns; l += V, g++) {
        global STORED *to = z + g * step, *from = odd ? a : to;
        columns_load(x, from, l, min(V, columns - l), weights_of(l, width, scale), height, rows, columns, first);
        passes(from, odd ? to : a, table + turns_at, height);
        /* Rows past the last one are packed with others: what an earlier use left there, as a NaN, would reach these. */
        for (int i = 2 * height; i < 2 * ((height + 2 * V - 1) / (2 * V) * (2 * V)); i++) to[i] = (VF)(0.0f);
    }
    for (int h = 0; h < height; h += 2 * V) {
        rows_join(z, a, step, h, width, columns);
        const global STORED *of = passes(a, b, table, width);
        rows_store(of + 1, y, h, height, width);
        if (h + V < height) rows_store(of, y, h + V, height, width);
    }
}
#endif

OUTLINE void images_of(long task, DFT2_PASSES_ARGUMENTS(PARAMETER))
{
    const long begin = task * each, end = min(begin + each, images), pixels = (long)height * width,
               numbers = 2 * (long)rows * columns;
    const int longest = max(height, width);
    global STORED *a = (global STORED *)(scratch + task * scratch_floats);
    for (long image = begin; image < end; image++)
        image_of(x + image * (INVERSE ? numbers : pixels), y + image * (INVERSE ? pixels : numbers), a, a + 2 * longest,
            a + 4 * longest DFT2_PASSES_SIZES(NAME));
}

TASK void dft2_passes(DFT2_PASSES_ARGUMENTS(PARAMETER))
{
    images_of(get_group_id(0), DFT2_PASSES_ARGUMENTS(NAME));
}

TASK void dft2_copy(DFT2_COPY_ARGUMENTS(PARAMETER))
{
    if (get_group_id(0) == 0)
        for (int i = 0; i < length; i++) table[at + i] = table[i];
}
