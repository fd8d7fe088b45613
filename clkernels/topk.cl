/* Finds the k largest elements of each line of x (arguments/lines.h), or the smallest ones if LARGEST is 0, and where
 * they lie: values and indices, [..][k][inner], best first. Among equal ones the first is better; NaN is larger than
 * all numbers. Launched by layers/topk.c. The outputs hold a heap of the best so far, with the worst of these at its
 * root, and are sorted at last: J. Williams, Algorithm 232, Heapsort, Communications of the ACM 7, 1964. */
#include "parameters.h"
#include "arguments/lines.h"
#include "vector.h"

INLINE bool is_better(float a, float at_a, float b, float at_b)
{
    if (a == b || (a != a && b != b)) return at_a < at_b;
    if (a != a || b != b) return (a != a) == LARGEST;
    return LARGEST ? a > b : a < b;
}

/* Puts an element in place of node i of a heap, and moves it down until it is worse than what is below. */
static void sift(global float *values, global float *indices, long inner, int i, int count, float x, float at)
{
    for (int below = 2 * i + 1; below < count; below = 2 * i + 1) {
        const long left = below * inner;
        if (below + 1 < count && is_better(values[left], indices[left], values[left + inner], indices[left + inner]))
            below++;
        const long worse = below * inner;
        if (!is_better(x, at, values[worse], indices[worse])) break;
        values[i * inner] = values[worse];
        indices[i * inner] = indices[worse];
        i = below;
    }
    values[i * inner] = x;
    indices[i * inner] = at;
}

static void select_line(
    global const float *x, global float *values, global float *indices, int length, long inner, int k)
{
    for (int i = 0; i < k; i++) {
        values[i * inner] = x[i * inner];
        indices[i * inner] = (float)i;
    }
    for (int i = k / 2 - 1; i >= 0; i--)
        sift(values, indices, inner, i, k, values[i * inner], indices[i * inner]);
    for (int i = k; i < length; i++)
        if (is_better(x[i * inner], (float)i, values[0], indices[0]))
            sift(values, indices, inner, 0, k, x[i * inner], (float)i);
    for (int count = k - 1; count > 0; count--) {
        const float last = values[count * inner], at = indices[count * inner];
        values[count * inner] = values[0];
        indices[count * inner] = indices[0];
        sift(values, indices, inner, 0, count, last, at);
    }
}

kernel void topk(global const float *x, global float *values, global float *indices, int k LINES_ARGUMENTS(PARAMETER))
{
    const long begin = (long)get_global_id(0) * each, end = min(begin + each, lines);
    for (long line = begin; line < end; line++) {
        const long outer = line / inner * inner, to = outer * k + line % inner;
        select_line(x + outer * length + line % inner, values + to, indices + to, length, inner, k);
    }
}
