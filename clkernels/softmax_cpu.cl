/* Softmax over rows of `width` floats, and its gradient, on CPU-class devices; launched by layers/softmax.c with
 * ceil(rows / each) tasks of `each` rows.
 *   softmax            y[i] = exp(x[i] - max x) / sum over j of exp(x[j] - max x);    y may be x
 *   softmax_gradient   dx[i] = y[i] (dy[i] - sum over j of y[j] dy[j]);               dx may be y or dy */
#include "row.h"

TASK void softmax(global const float *x, global float *y, int rows, int width, int each)
{
    const int first = get_group_id(0) * each, end = min(first + each, rows), whole = width / V * V;
    for (int row = first; row < end; row++) {
        global const float *from = x + (size_t)row * width;
        global float *to = y + (size_t)row * width;
        const float scale = 1.0f / row_exp(from, row_max(from, width), width, true, to);
        for (int i = 0; i < whole; i += V) VSTORE(VLOAD(0, to + i) * scale, 0, to + i);
        for (int i = whole; i < width; i++) to[i] *= scale;
    }
}

TASK void softmax_gradient(global const float *y, global const float *dy, global float *dx, int rows, int width, int each)
{
    const int first = get_group_id(0) * each, end = min(first + each, rows), whole = width / V * V;
    for (int row = first; row < end; row++) {
        global const float *p = y + (size_t)row * width, *d = dy + (size_t)row * width;
        global float *to = dx + (size_t)row * width;
        VF sums = (VF)(0.0f), errors = (VF)(0.0f);
        float sum = 0.0f;
        for (int i = 0; i < whole;) {
            const int stop = min(i + SUM_BLOCK * V, whole);
            VF block = (VF)(0.0f);
            for (; i < stop; i += V) block = fma(VLOAD(0, p + i), VLOAD(0, d + i), block);
            SUM_ADD(VF, sums, errors, block);
        }
        for (int i = whole; i < width; i++) sum = fma(p[i], d[i], sum);
        sum += vector_sum(sums);
        for (int i = 0; i < whole; i += V) VSTORE(VLOAD(0, p + i) * (VLOAD(0, d + i) - sum), 0, to + i);
        for (int i = whole; i < width; i++) to[i] = p[i] * (d[i] - sum);
    }
}
