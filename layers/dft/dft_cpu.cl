/* Discrete Fourier transforms on CPU-class devices, of V transforms at a time side by side; launched by
 * layers/dft/dft_columns.c with tasks of `each` blocks. The formula is in layers/dft/dft.h, passes and tables in dft_plain.cl.
 *
 * A block is V complex transforms or 2 V real ones: with A + i B for the input, the spectrum Z of two real signals A
 * and B is separated by A[k] = (Z[k] + conj Z[-k]) / 2, B[k] = (Z[k] - conj Z[-k]) / 2 i; and A + i B of two spectra
 * gives both real results. Values go through tiles of V elements of each transform. A spectrum's missing half is
 * completed first: the real part of a transform is the transform of (X[k] + conj X[-k]) / 2.
 *
 * FEW: each element of the result is a sum of its own; no passes. For few elements on one side. */
#include "parameters.h"
#include "arguments/dft.h"
#include "vector.h"
#include "dft_element.h"
#include "dft_transpose.h"
#include "dft_vector_passes.h"

/* ----------------------------------------------------------------------------------------------------- tiles ---- */

/* Where the first elements of V transforms lie; `count` of them exist. `together`: all do, one after the other. */
typedef struct {
    long at[V];
    int count;
    bool together;
} lanes;

INLINE void lanes_find(lanes *to, long first, long transforms, long inner, int elements)
{
    const long rest = transforms - first;
    to->count = rest < 0 ? 0 : rest < V ? (int)rest : V;
    const long start = rest < 1 ? transforms - 1 : first; /* those that do not exist are read as the last one */
    long outer = start / inner, i = start % inner;
    for (int lane = 0; lane < V; lane++) {
        to->at[lane] = outer * elements * inner + i;
        if (lane + 1 >= to->count) continue;
        if (++i == inner) {
            i = 0;
            outer++;
        }
    }
    to->together = to->count == V && to->at[V - 1] - to->at[0] == V - 1;
}

typedef VF VF_private __attribute__((aligned(4)));

/* Elements j to j + n - 1 of the lanes' transforms, one vector for each. */
OUTLINE void tile_load(global const float *x, const lanes *of, int j, int n, long inner, VF *re)
{
    if (of->together) {
        for (int i = 0; i < n; i++) re[i] = VLOAD(0, x + of->at[0] + (j + i) * inner);
    } else if (inner == 1 && n == V) {
        VF rows[V];
        UNROLL for (int lane = 0; lane < V; lane++) rows[lane] = VLOAD(0, x + of->at[lane] + j);
        transpose(rows);
        UNROLL for (int i = 0; i < V; i++) re[i] = rows[i];
    } else {
        for (int i = 0; i < n; i++) {
            float row[V];
            for (int lane = 0; lane < V; lane++) row[lane] = x[of->at[lane] + (j + i) * inner];
            re[i] = *(VF_private *)row;
        }
    }
}

OUTLINE void tile_load_pairs(global const float *x, const lanes *of, int j, int n, long inner, VF *re, VF *im)
{
    if (of->together) {
        for (int i = 0; i < n; i++) {
            global const float *from = x + 2 * (of->at[0] + (j + i) * inner);
            const VF low = VLOAD(0, from), high = VLOAD(1, from);
            re[i] = (VF)(low.even, high.even);
            im[i] = (VF)(low.odd, high.odd);
        }
    } else if (inner == 1 && n == V) {
        VF rows[V], others[V];
        UNROLL for (int lane = 0; lane < V; lane++)
        {
            global const float *from = x + 2 * (of->at[lane] + j);
            const VF low = VLOAD(0, from), high = VLOAD(1, from);
            rows[lane] = (VF)(low.even, high.even);
            others[lane] = (VF)(low.odd, high.odd);
        }
        transpose(rows);
        transpose(others);
        UNROLL for (int i = 0; i < V; i++)
        {
            re[i] = rows[i];
            im[i] = others[i];
        }
    } else {
        for (int i = 0; i < n; i++) {
            float row[V], other[V];
            for (int lane = 0; lane < V; lane++) {
                row[lane] = x[2 * (of->at[lane] + (j + i) * inner)];
                other[lane] = x[2 * (of->at[lane] + (j + i) * inner) + 1];
            }
            re[i] = *(VF_private *)row;
            im[i] = *(VF_private *)other;
        }
    }
}

OUTLINE void tile_store(const VF *re, const lanes *of, int j, int n, long inner, global float *y)
{
    if (of->together) {
        for (int i = 0; i < n; i++) VSTORE(re[i], 0, y + of->at[0] + (j + i) * inner);
    } else if (inner == 1 && n == V) {
        VF rows[V];
        UNROLL for (int i = 0; i < V; i++) rows[i] = re[i];
        transpose(rows);
        for (int lane = 0; lane < of->count; lane++) VSTORE(rows[lane], 0, y + of->at[lane] + j);
    } else {
        for (int i = 0; i < n; i++) {
            float row[V];
            *(VF_private *)row = re[i];
            for (int lane = 0; lane < of->count; lane++) y[of->at[lane] + (j + i) * inner] = row[lane];
        }
    }
}

OUTLINE void tile_store_pairs(const VF *re, const VF *im, const lanes *of, int j, int n, long inner, global float *y)
{
    if (of->together) {
        for (int i = 0; i < n; i++) {
            global float *to = y + 2 * (of->at[0] + (j + i) * inner);
            VSTORE(ZIP(re[i], im[i]), 0, to);
            VSTORE(ZIP_HIGH(re[i], im[i]), 1, to);
        }
    } else if (inner == 1 && n == V) {
        VF rows[V], others[V];
        UNROLL for (int i = 0; i < V; i++)
        {
            rows[i] = re[i];
            others[i] = im[i];
        }
        transpose(rows);
        transpose(others);
        for (int lane = 0; lane < of->count; lane++) {
            global float *to = y + 2 * (of->at[lane] + j);
            VSTORE(ZIP(rows[lane], others[lane]), 0, to);
            VSTORE(ZIP_HIGH(rows[lane], others[lane]), 1, to);
        }
    } else {
        for (int i = 0; i < n; i++) {
            float row[V], other[V];
            *(VF_private *)row = re[i];
            *(VF_private *)other = im[i];
            for (int lane = 0; lane < of->count; lane++) {
                y[2 * (of->at[lane] + (j + i) * inner)] = row[lane];
                y[2 * (of->at[lane] + (j + i) * inner) + 1] = other[lane];
            }
        }
    }
}

/* ------------------------------------------------------------------------------------------------- transform ---- */

#if FORM == COMPLEX
#define LANES V
#else
#define LANES (2 * V)
#endif
#if INVERSE
#define PAIR_SWAPPED(a) pair_swap(a)
#else
#define PAIR_SWAPPED(a) (a)
#endif

#if FEW
/* a: [in] of the input's elements; two spectra have four vectors each. */
INLINE void few_put(global STORED *a, int j, int length, int from, pair first, pair second)
{
#if FORM == COMPLEX_TO_REAL
    const float weight = WEIGHT(position_after(j, from, length));
    pair_store(pair_scale(first, weight), a, 2 * j);
    pair_store(pair_scale(second, weight), a, 2 * j + 1);
#else
    pair_store(first, a, j);
#endif
}

/* Elements j to j + FEW_SUMS - 1 of the result, of a block's first V transforms and, if they are real, of the others, V
 * vectors after. Those past the last one repeat it. */
#define FEW_SUMS 4
INLINE void few_get(const global STORED *a, global const float2 *table, int in, int out, int length, int from, int to,
    int j, float scale, VF *re, VF *im)
{
    VF sums[FEW_SUMS][4];
    int k[FEW_SUMS], angle[FEW_SUMS];
    UNROLL for (int u = 0; u < FEW_SUMS; u++)
    {
        k[u] = position_after(min(j + u, out - 1), to, length);
        angle[u] = (int)((long)from * k[u] % length);
        UNROLL for (int s = 0; s < 4; s++) sums[u][s] = (VF)(0.0f);
    }
    LOOP for (int i = 0; i < in; i++)
    {
#if FORM == COMPLEX_TO_REAL
        const pair v = pair_load(a, 2 * i), w = pair_load(a, 2 * i + 1);
#else
        const pair v = pair_load(a, i);
#endif
        UNROLL for (int u = 0; u < FEW_SUMS; u++)
        {
            const float c = table[angle[u]].x, s = INVERSE ? -table[angle[u]].y : table[angle[u]].y;
            angle[u] = angle[u] < length - k[u] ? angle[u] + k[u] : angle[u] + k[u] - length;
#if FORM == COMPLEX
            sums[u][0] = fma(v.im, (VF)(-s), fma(v.re, (VF)(c), sums[u][0]));
            sums[u][1] = fma(v.im, (VF)(c), fma(v.re, (VF)(s), sums[u][1]));
#elif FORM == REAL_TO_COMPLEX
            sums[u][0] = fma(v.re, (VF)(c), sums[u][0]);
            sums[u][1] = fma(v.re, (VF)(s), sums[u][1]);
            sums[u][2] = fma(v.im, (VF)(c), sums[u][2]);
            sums[u][3] = fma(v.im, (VF)(s), sums[u][3]);
#else
            sums[u][0] = fma(v.im, (VF)(-s), fma(v.re, (VF)(c), sums[u][0]));
            sums[u][1] = fma(w.im, (VF)(-s), fma(w.re, (VF)(c), sums[u][1]));
#endif
        }
    }
    UNROLL for (int u = 0; u < FEW_SUMS; u++)
    {
        const float weight = FORM == REAL_TO_COMPLEX ? scale * WEIGHT(k[u]) : scale;
        re[u] = sums[u][0] * weight;
        im[u] = sums[u][1] * weight;
#if FORM == REAL_TO_COMPLEX
        re[V + u] = sums[u][2] * weight;
        im[V + u] = sums[u][3] * weight;
#endif
    }
}
#else
INLINE void add_to(global STORED *a, int n, bool alone, pair v)
{
    pair_store(alone ? v : pair_add(pair_load(a, n), v), a, n);
}

/* Puts in element j of the input of V complex transforms, of two times V real ones, or of two times V spectra of real
 * ones. */
INLINE void put(global STORED *a, int j, int in, int length, int from, pair first, pair second)
{
    const int n = position_after(j, from, length);
#if FORM == COMPLEX_TO_REAL
    const bool alone = from == 0 && 2 * (in - 1) <= length; /* no element is another one's mirror image */
    const float weight = 0.5f * WEIGHT(n);
    const pair v = { first.re - second.im, first.im + second.re };
    const pair mirrored = { first.re + second.im, second.re - first.im };
    if (n == 0 || 2 * n == length) {
        add_to(a, n, alone, PAIR_SWAPPED(pair_scale(pair_add(v, mirrored), weight)));
    } else {
        add_to(a, n, alone, PAIR_SWAPPED(pair_scale(v, weight)));
        add_to(a, length - n, alone, PAIR_SWAPPED(pair_scale(mirrored, weight)));
    }
#else
    pair_store(PAIR_SWAPPED(first), a, n);
#endif
}

/* The transform at position k. */
INLINE pair value(const global STORED *a, global const float2 *table, int size, int k, float scale)
{
    pair v = pair_load(a, k);
#if CHIRP
    v = pair_multiply(pair_swap(v), table[size + k]);
#endif
    return pair_scale(PAIR_SWAPPED(v), scale);
}

INLINE void get(const global STORED *a, global const float2 *table, int size, int length, int k, float scale,
    pair *first, pair *second)
{
#if FORM == REAL_TO_COMPLEX
    const float weight = 0.5f * WEIGHT(k) * scale;
    const pair v = value(a, table, size, k, weight), w = value(a, table, size, k ? length - k : 0, weight);
    *first = (pair) { v.re + w.re, v.im - w.im };
    *second = (pair) { v.im + w.im, w.re - v.re };
#else
    *first = value(a, table, size, k, scale);
#endif
}
#endif

OUTLINE void read_block(global const float *x, global STORED *a, long block DFT_SIZES(PARAMETER))
{
    VF re[2 * V], im[2 * V];
    lanes first, second;
    lanes_find(&first, block * LANES, transforms, inner, in);
    if (LANES > V) lanes_find(&second, block * LANES + V, transforms, inner, in);
    for (int j = 0; j < in; j += V) {
        const int n = min(V, in - j);
#if FORM == REAL_TO_COMPLEX
        tile_load(x, &first, j, n, inner, re);
        tile_load(x, &second, j, n, inner, im);
#else
        tile_load_pairs(x, &first, j, n, inner, re, im);
        if (LANES > V) tile_load_pairs(x, &second, j, n, inner, re + V, im + V);
#endif
        for (int i = 0; i < n; i++) {
            const pair other = FORM == COMPLEX_TO_REAL ? (pair) { re[V + i], im[V + i] } : (pair) { re[i], im[i] };
#if FEW
            few_put(a, j + i, length, from, (pair) { re[i], im[i] }, other);
#else
            put(a, j + i, in, length, from, (pair) { re[i], im[i] }, other);
#endif
        }
    }
}

OUTLINE void write_block(const global STORED *a, global float *y, long block DFT_SIZES(PARAMETER))
{
    VF re[2 * V], im[2 * V];
    lanes first, second;
    lanes_find(&first, block * LANES, transforms, inner, out);
    if (LANES > V) lanes_find(&second, block * LANES + V, transforms, inner, out);
    for (int j = 0; j < out; j += V) {
        const int n = min(V, out - j);
#if FEW
        for (int i = 0; i < n; i += FEW_SUMS)
            few_get(a, table, in, out, length, from, to, j + i, scale, re + i, im + i);
#else
        for (int i = 0; i < n; i++) {
            pair one, other;
            get(a, table, size, length, position_after(j + i, to, length), scale, &one, &other);
            re[i] = one.re;
            im[i] = one.im;
#if FORM == REAL_TO_COMPLEX
            re[V + i] = other.re;
            im[V + i] = other.im;
#endif
        }
#endif
#if FORM == COMPLEX_TO_REAL
        tile_store(re, &first, j, n, inner, y);
        tile_store(im, &second, j, n, inner, y);
#else
        tile_store_pairs(re, im, &first, j, n, inner, y);
        if (LANES > V) tile_store_pairs(re + V, im + V, &second, j, n, inner, y);
#endif
    }
}

OUTLINE void blocks(long task, DFT_TASK_ARGUMENTS(PARAMETER))
{
    global STORED *a = (global STORED *)(scratch + task * scratch_floats), *b = a + 2 * size;
    const long begin = task * each, end = min(begin + each, (transforms + LANES - 1) / LANES);
    for (long block = begin; block < end; block++) {
#if FEW
        read_block(x, a, block DFT_SIZES(NAME));
        write_block(a, y, block DFT_SIZES(NAME));
#else
        const bool half_spectrum = from == 0 && 2 * in > length && 2 * (in - 1) <= length;
        const bool whole = FORM == COMPLEX_TO_REAL ? half_spectrum : in == length;
        if (CHIRP || !whole)
            for (int i = 0; i < 2 * size; i++) a[i] = (VF)(0.0f);
        read_block(x, a, block DFT_SIZES(NAME));
#if CHIRP
        for (int n = 0; n < length; n++) pair_store(pair_multiply(pair_load(a, n), table[size + n]), a, n);
        global STORED *of = passes(a, b, table, size);
        for (int n = 0; n < size; n++) pair_store(pair_swap(pair_multiply(pair_load(of, n), table[filter + n])), of, n);
        write_block(passes(of, of == a ? b : a, table, size), y, block DFT_SIZES(NAME));
#else
        write_block(passes(a, b, table, size), y, block DFT_SIZES(NAME));
#endif
#endif
    }
}

TASK void dft_columns(DFT_TASK_ARGUMENTS(PARAMETER))
{
    blocks(get_group_id(0), DFT_TASK_ARGUMENTS(NAME));
}
