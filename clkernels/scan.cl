/* Sums and products along lines (arguments/lines.h) up to each element: y[i] = x[0] + ... + x[i], of products with
 * PRODUCT 1; up to the element before with EXCLUSIVE 1; from the last one on with REVERSE 1. y may be x.
 * Launched by layers/scan.c.
 *
 * scan_gradient: of products. With P[i] = x[0] ... x[i - 1], dx[i] = P[i] S[i], where
 *   S[i] = dy[i] + x[i + 1] S[i + 1], of exclusive ones S[i] = dy[i + 1] + x[i + 1] S[i + 1]; 0 after the last one.
 * dx holds S first. */
#include "parameters.h"
#include "arguments/lines.h"
#include "sum.h"
#include "vector.h"

/* Returns where the i-th element from the line's beginning lies. */
INLINE long place_of(long line, int i, int length, int inner)
{
    return (line / inner * length + (REVERSE ? length - 1 - i : i)) * inner + line % inner;
}

kernel void scan(global const float *x, global float *y LINES_ARGUMENTS(PARAMETER))
{
    const long begin = (long)get_global_id(0) * each, end = min(begin + each, lines);
    for (long line = begin; line < end; line++) {
        float so_far = PRODUCT ? 1.0f : 0.0f, error = 0.0f;
        for (int i = 0; i < length; i++) {
            const long at = place_of(line, i, length, inner);
            const float next = x[at], before = so_far;
            if (PRODUCT)
                so_far *= next;
            else
                SUM_ADD(float, so_far, error, next);
            y[at] = EXCLUSIVE ? before : so_far;
        }
    }
}

kernel void scan_gradient(
    global const float *x, global const float *dy, global float *dx LINES_ARGUMENTS(PARAMETER))
{
    const long begin = (long)get_global_id(0) * each, end = min(begin + each, lines);
    for (long line = begin; line < end; line++) {
        float sum = 0.0f, product = 1.0f;
        for (int i = length - 1; i >= 0; i--) {
            const long at = place_of(line, i, length, inner);
            if (!EXCLUSIVE) sum += dy[at];
            dx[at] = sum;
            sum = EXCLUSIVE ? dy[at] + x[at] * sum : x[at] * sum;
        }
        for (int i = 0; i < length; i++) {
            const long at = place_of(line, i, length, inner);
            dx[at] *= product;
            product *= x[at];
        }
    }
}
