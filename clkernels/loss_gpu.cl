/* Losses of each sample and their gradients, for any device; launched by layers/loss.c with one group of GROUP work-items
 * for each row (sample). results [rows][2], each the loss and 1 or 0 for correct, go to loss_sum (loss_sum.cl).
 * GRADIENT 1: dx is wanted. The formulas are those of loss_cpu.cl:
 *   cross_entropy       x logits [rows][width], label l:  loss = log(sum over i of exp(x[i] - max x)) + max x - x[l];
 *                       dx[i] = (softmax(x)[i] - (i == l)) * loss_scale;  correct: l is the first of the largest logits.
 *                       l < 0: loss 0, gradient 0, not correct. l >= width: loss NaN, so that the step is refused.
 *   mean_squared_error  loss = sum over i of (x[i] - t[i])^2 / width;  dx[i] = 2 (x[i] - t[i]) / width * loss_scale */
#include "group.h"
#include "step.h"

__attribute__((reqd_work_group_size(GROUP, 1, 1))) kernel void cross_entropy(global const float *x,
    global const int *labels, global const step_constants *constants, global float *dx, global float *results, int width)
{
    local float scratch[GROUP];
    const int item = get_local_id(0), row = get_group_id(0), label = labels[row];
    const bool live = label >= 0, known = label < width;
    x += (size_t)row * width;
    float most = -INFINITY, sum = 0.0f, earlier = 0.0f;
    for (int i = item; i < width; i += GROUP) most = fmax(most, x[i]);
    most = group_max(most, scratch);
    for (int i = item; i < width; i += GROUP) {
        sum += exp(x[i] - most);
        earlier += i < label && x[i] == most;
    }
    sum = group_sum(sum, scratch);
    earlier = group_sum(earlier, scratch);
    if (item == 0) {
        results[2 * row] = live && known ? log(sum) + (most - x[label]) : live ? NAN : 0.0f;
        results[2 * row + 1] = live && known && x[label] == most && earlier == 0.0f && !isnan(sum);
    }
#if GRADIENT
    const float scale = constants->loss_scale, factor = scale / sum;
    dx += (size_t)row * width;
    for (int i = item; i < width; i += GROUP)
        dx[i] = live ? exp(x[i] - most) * factor - (i == label ? scale : 0.0f) : 0.0f;
#endif
}

__attribute__((reqd_work_group_size(GROUP, 1, 1))) kernel void mean_squared_error(global const float *x,
    global const float *targets, global const step_constants *constants, global float *dx, global float *results,
    int width)
{
    local float scratch[GROUP];
    const int item = get_local_id(0), row = get_group_id(0);
    const size_t start = (size_t)row * width;
    const float factor = 2.0f / (float)width * constants->loss_scale;
    float sum = 0.0f;
    for (int i = item; i < width; i += GROUP) {
        const float d = x[start + i] - targets[start + i];
        sum = fma(d, d, sum);
#if GRADIENT
        dx[start + i] = d * factor;
#endif
    }
    sum = group_sum(sum, scratch);
    if (item == 0) {
        results[2 * row] = sum / (float)width;
        results[2 * row + 1] = 0.0f;
    }
}
