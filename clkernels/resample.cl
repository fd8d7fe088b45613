/* Weighted sums of elements at constant positions along one axis; launched by layers/resample.c.
 *   y[o][j][i] = sum of weights[t] x[o][positions[t]][i] over t from starts[j] to starts[j + 1] - 1, in this order
 * and `outside` where there is no t. x [outer][from][inner], y [outer][to][inner]; rows: outer * to. starts [to + 1];
 * positions, weights [taps].
 *
 * TASKS 1, CPU class: a task for `each` rows (1) of `piece` elements (0). TASKS 0, any device: a work-item for each
 * element of y; `each` and `piece` are not read. */
#include "parameters.h"
#include "arguments/resample.h"
#if TASKS
#include "vector.h"

/* One element: `x` is at the first element of its line. */
INLINE float sum_at(global const float *x, global const int *positions, global const float *weights, int begin, int end,
    long inner)
{
    float sum = 0.0f;
    for (int t = begin; t < end; t++) sum = fma(weights[t], x[positions[t] * inner], sum);
    return sum;
}

INLINE VF vector_at(global const float *x, global const int *positions, global const float *weights, int begin, int end,
    long inner)
{
    VF sum = (VF)(0.0f);
    for (int t = begin; t < end; t++) sum = fma((VF)(weights[t]), VLOAD(0, x + positions[t] * inner), sum);
    return sum;
}

OUTLINE void task(RESAMPLE_ARGUMENTS(PARAMETER), long part, long strip)
{
    const long last = min(rows, (part + 1) * each), stop = min(inner, (strip + 1) * piece);
    for (long row = part * each; row < last; row++) {
        const int j = row % to;
        const int begin = starts[j], end = starts[j + 1];
        global const float *line = x + row / to * from * inner;
        global float *out = y + row * inner;
        long i = strip * piece;
        if (begin >= end) {
            for (; i < stop; i++) out[i] = outside;
            continue;
        }
        for (; i + V <= stop; i += V) VSTORE(vector_at(line + i, positions, weights, begin, end, inner), 0, out + i);
        for (; i < stop; i++) out[i] = sum_at(line + i, positions, weights, begin, end, inner);
    }
}

TASK void resample(RESAMPLE_ARGUMENTS(PARAMETER))
{
    task(RESAMPLE_ARGUMENTS(NAME), get_group_id(1), get_group_id(0));
}

#else

kernel void resample(RESAMPLE_ARGUMENTS(PARAMETER))
{
    const long at = get_global_id(0);
    if (at >= rows * inner) return;
    const long row = at / inner;
    const int j = row % to;
    const int begin = starts[j], end = starts[j + 1];
    float sum = begin < end ? 0.0f : outside;
    x += row / to * from * inner + at % inner;
    for (int t = begin; t < end; t++) sum = fma(weights[t], x[positions[t] * inner], sum);
    y[at] = sum;
}
#endif
