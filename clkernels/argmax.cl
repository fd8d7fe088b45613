/* Finds where the largest element of each line lies (arguments/lines.h), or the smallest one if LEAST is 1: the first
 * of several, or the last if LAST is 1. NaN comes before all numbers. y has a number for each line; with HOT 1 it has
 * x's shape, with 1 at this element and 0 elsewhere. Launched by layers/argmax.c. */
#include "parameters.h"
#include "arguments/lines.h"
#include "vector.h"

INLINE bool replaces(float x, float best)
{
    if (x == best || (x != x && best != best)) return LAST;
    if (x != x || best != best) return x != x;
    return LEAST ? x < best : x > best;
}

kernel void argmax(global const float *x, global float *y LINES_ARGUMENTS(PARAMETER))
{
    const long begin = (long)get_global_id(0) * each, end = min(begin + each, lines);
    for (long line = begin; line < end; line++) {
        const long first = line / inner * length * inner + line % inner;
        float best = x[first];
        int place = 0;
        for (int i = 1; i < length; i++) {
            const float number = x[first + (long)i * inner];
            const bool is_better = replaces(number, best);
            best = is_better ? number : best;
            place = is_better ? i : place;
        }
#if HOT
        for (int i = 0; i < length; i++) y[first + (long)i * inner] = i == place ? 1.0f : 0.0f;
#else
        y[line] = (float)place;
#endif
    }
}
