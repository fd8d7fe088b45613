/* Losses of each sample and their gradients, on CPU-class devices; launched by layers/loss.c with ceil(rows / each) tasks
 * of `each` rows (samples). results [rows][2], each the loss and 1 or 0 for correct, go to loss_sum (loss_sum.cl).
 * GRADIENT 1: dx is wanted.
 *   cross_entropy       x logits [rows][width], label l:  loss = log(sum over i of exp(x[i] - max x)) + max x - x[l];
 *                       dx[i] = (softmax(x)[i] - (i == l)) * loss_scale;  correct: l is the first of the largest logits.
 *                       l < 0: loss 0, gradient 0, not correct. l >= width: loss NaN, so that the step is refused.
 *   mean_squared_error  loss = sum over i of (x[i] - t[i])^2 / width;  dx[i] = 2 (x[i] - t[i]) / width * loss_scale */
#include "vector.h"
#include "exponential.h"
#include "step.h"

TASK void cross_entropy(global const float *x, global const int *labels, global const step_constants *constants,
    global float *dx, global float *results, int rows, int width, int each)
{
    const int first = get_group_id(0) * each, end = min(first + each, rows), whole = width / V * V;
    for (int row = first; row < end; row++) {
        global const float *from = x + (size_t)row * width;
        global float *to = dx + (size_t)row * width;
        const int label = labels[row];
        float most = -INFINITY;
        if (whole) {
            VF m = VLOAD(0, from);
            for (int i = V; i < whole; i += V) m = fmax(m, VLOAD(0, from + i));
            most = vector_max(m);
        }
        for (int i = whole; i < width; i++) most = fmax(most, from[i]);
        VF sums = (VF)(0.0f);
        float sum = 0.0f;
        for (int i = 0; i < whole; i += V) {
            const VF e = vector_exp(VLOAD(0, from + i) - most);
#if GRADIENT
            VSTORE(e, 0, to + i);
#endif
            sums += e;
        }
        for (int i = whole; i < width; i++) {
            const float e = scalar_exp(from[i] - most);
#if GRADIENT
            to[i] = e;
#endif
            sum += e;
        }
        sum += vector_sum(sums);
        const bool live = label >= 0, known = label < width;
        if (live && known) {
            bool hit = from[label] == most && !isnan(sum);
            for (int i = 0; hit && i < label; i++) hit = from[i] < most;
            results[2 * row] = log(sum) + (most - from[label]);
            results[2 * row + 1] = hit;
        } else {
            results[2 * row] = live ? NAN : 0.0f;
            results[2 * row + 1] = 0.0f;
        }
#if GRADIENT
        const float scale = constants->loss_scale, factor = scale / sum;
        if (live) {
            for (int i = 0; i < whole; i += V) VSTORE(VLOAD(0, to + i) * factor, 0, to + i);
            for (int i = whole; i < width; i++) to[i] *= factor;
            if (known) to[label] -= scale;
        } else {
            for (int i = 0; i < width; i++) to[i] = 0.0f;
        }
#endif
    }
}

TASK void mean_squared_error(global const float *x, global const float *targets,
    global const step_constants *constants, global float *dx, global float *results, int rows,
    int width, int each)
{
    const int first = get_group_id(0) * each, end = min(first + each, rows), whole = width / V * V;
    const float factor = 2.0f / (float)width * constants->loss_scale;
    for (int row = first; row < end; row++) {
        const size_t start = (size_t)row * width;
        VF sums = (VF)(0.0f);
        float sum = 0.0f;
        for (int i = 0; i < whole; i += V) {
            const VF d = VLOAD(0, x + start + i) - VLOAD(0, targets + start + i);
            sums = fma(d, d, sums);
#if GRADIENT
            VSTORE(d * factor, 0, dx + start + i);
#endif
        }
        for (int i = whole; i < width; i++) {
            const float d = x[start + i] - targets[start + i];
            sum = fma(d, d, sum);
#if GRADIENT
            dx[start + i] = d * factor;
#endif
        }
        results[2 * row] = (sum + vector_sum(sums)) / (float)width;
        results[2 * row + 1] = 0.0f;
    }
}
