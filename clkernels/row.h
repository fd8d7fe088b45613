/* Rows of `width` floats on CPU-class devices. */
#include "vector.h"
#include "exponential.h"
#include "sum.h"

/* The largest of `width` floats, and to[i] = exp(from[i] - most) with their sum; `stored` 0: the sum alone. */
INLINE float row_max(global const float *from, int width)
{
    const int whole = width / V * V;
    float most = -INFINITY;
    if (whole) {
        VF m = VLOAD(0, from);
        for (int i = V; i < whole; i += V) m = fmax(m, VLOAD(0, from + i));
        most = vector_max(m);
    }
    for (int i = whole; i < width; i++) most = fmax(most, from[i]);
    return most;
}

INLINE float row_exp(global const float *from, float most, int width, const bool stored, global float *to)
{
    const int whole = width / V * V;
    VF sums = (VF)(0.0f), errors = (VF)(0.0f);
    float sum = 0.0f;
    for (int i = 0; i < whole;) {
        const int stop = min(i + SUM_BLOCK * V, whole);
        VF block = (VF)(0.0f);
        for (; i < stop; i += V) {
            const VF e = vector_exp(VLOAD(0, from + i) - most);
            if (stored) VSTORE(e, 0, to + i);
            block += e;
        }
        SUM_ADD(VF, sums, errors, block);
    }
    for (int i = whole; i < width; i++) {
        const float e = scalar_exp(from[i] - most);
        if (stored) to[i] = e;
        sum += e;
    }
    return sum + vector_sum(sums);
}
