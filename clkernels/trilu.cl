/* The triangle of matrices [height][width] on and above diagonal K, or below it with UPPER 0; 0 elsewhere. Launched by
 * layers/trilu.c: a work-item or task has `chunk` elements. */
#include "vector.h"

kernel void trilu(global const float *x, global float *y, long elements, long chunk, int height, int width)
{
    const long begin = (long)get_global_id(0) * chunk, end = min(begin + chunk, elements);
    for (long e = begin; e < end; e++) {
        const long diagonal = e % width - e / width % height;
        y[e] = (UPPER ? diagonal >= K : diagonal <= K) ? x[e] : 0.0f;
    }
}
