/* Softmax over rows of `width` floats, and its gradient, for any device; launched by layers/softmax.c with one group of
 * GROUP work-items for each row.
 *   softmax            y[i] = exp(x[i] - max x) / sum over j of exp(x[j] - max x);    y may be x
 *   softmax_gradient   dx[i] = y[i] (dy[i] - sum over j of y[j] dy[j]);               dx may be y or dy */
#include "group.h"
#include "sum.h"

__attribute__((reqd_work_group_size(GROUP, 1, 1))) kernel void softmax(global const float *x, global float *y, int width)
{
    local float scratch[GROUP];
    const int item = get_local_id(0);
    x += get_group_id(0) * (size_t)width;
    y += get_group_id(0) * (size_t)width;
    float most = -INFINITY, sum = 0.0f, error = 0.0f;
    for (int i = item; i < width; i += GROUP) most = fmax(most, x[i]);
    most = group_max(most, scratch);
    for (int i = item; i < width; i += GROUP) {
        const float e = exp(x[i] - most);
        y[i] = e;
        SUM_ADD(float, sum, error, e);
    }
    const float scale = 1.0f / group_sum(sum, scratch);
    for (int i = item; i < width; i += GROUP) y[i] *= scale;
}

__attribute__((reqd_work_group_size(GROUP, 1, 1))) kernel void softmax_gradient(
    global const float *y, global const float *dy, global float *dx, int width)
{
    local float scratch[GROUP];
    const int item = get_local_id(0);
    y += get_group_id(0) * (size_t)width;
    dy += get_group_id(0) * (size_t)width;
    dx += get_group_id(0) * (size_t)width;
    float sum = 0.0f, error = 0.0f;
    for (int i = item; i < width; i += GROUP) SUM_ADD(float, sum, error, y[i] * dy[i]);
    sum = group_sum(sum, scratch);
    for (int i = item; i < width; i += GROUP) dx[i] = y[i] * (dy[i] - sum);
}
