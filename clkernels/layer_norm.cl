/* Layer normalisation of rows of `width` floats, and its gradient; launched by layers/layer_norm.c.
 *   layer_norm            y = (x - mean) rstd gamma + beta; mean and rstd [rows] are stored if they are not NULL
 *   layer_norm_gradient   dx = rstd (g - (sum g + h sum g h) / width), of g = dy gamma and h = (x - mean) rstd
 *   layer_norm_sums       sums [parts][2][width]: sum dy h and sum dy, over the rows of a part
 *   layer_norm_finish     dgamma and dbeta [width], each unless it is NULL: the sums of the parts, in their order
 *
 * ROWS 1, CPU class: one task for `each` rows. layer_norm_gradient stores dx where DX is 1, and one part of the sums for
 * each task where SUMS is 1. ROWS 0, any device: one group of GROUP work-items for each row; layer_norm_sums has one
 * work-item for each column of a part of `each` rows. layer_norm_finish has one work-item for each column. y may be x; dx
 * may be x or dy. */
#include "parameters.h"
#include "arguments/layer_norm.h"
#if ROWS
#include "vector.h"

TASK void layer_norm(ROWS_ARGUMENTS(PARAMETER))
{
    const int first = get_group_id(0) * each, end = min(first + each, rows), whole = width / V * V;
    for (int row = first; row < end; row++) {
        global const float *from = x + (size_t)row * width;
        global float *to = y + (size_t)row * width;
        VF sums = (VF)(0.0f), squares = (VF)(0.0f);
        float sum = 0.0f, square = 0.0f;
        for (int i = 0; i < whole; i += V) sums += VLOAD(0, from + i);
        for (int i = whole; i < width; i++) sum += from[i];
        const float m = (sum + vector_sum(sums)) / width;
        for (int i = 0; i < whole; i += V) {
            const VF d = VLOAD(0, from + i) - m;
            squares = fma(d, d, squares);
        }
        for (int i = whole; i < width; i++) square = fma(from[i] - m, from[i] - m, square);
        const float r = 1.0f / sqrt((square + vector_sum(squares)) / width + epsilon);
        for (int i = 0; i < whole; i += V)
            VSTORE(fma((VLOAD(0, from + i) - m) * r, VLOAD(0, gamma + i), VLOAD(0, beta + i)), 0, to + i);
        for (int i = whole; i < width; i++) to[i] = fma((from[i] - m) * r, gamma[i], beta[i]);
        if (mean) mean[row] = m;
        if (rstd) rstd[row] = r;
    }
}

TASK void layer_norm_gradient(ROWS_GRADIENT_ARGUMENTS(PARAMETER))
{
    const int first = get_group_id(0) * each, end = min(first + each, rows), whole = width / V * V;
    global float *weights = parts + (size_t)get_group_id(0) * 2 * width, *biases = weights + width;
#if SUMS
    for (int i = 0; i < 2 * width; i++) weights[i] = 0.0f;
#endif
    for (int row = first; row < end; row++) {
        global const float *from = x + (size_t)row * width, *d = dy + (size_t)row * width;
        const float m = mean[row], r = rstd[row];
        VF sums = (VF)(0.0f), products = (VF)(0.0f);
        float sum = 0.0f, product = 0.0f;
        for (int i = 0; i < whole; i += V) {
            const VF v = VLOAD(0, d + i), h = (VLOAD(0, from + i) - m) * r, g = v * VLOAD(0, gamma + i);
            sums += g;
            products = fma(g, h, products);
#if SUMS
            VSTORE(fma(v, h, VLOAD(0, weights + i)), 0, weights + i);
            VSTORE(v + VLOAD(0, biases + i), 0, biases + i);
#endif
        }
        for (int i = whole; i < width; i++) {
            const float h = (from[i] - m) * r, g = d[i] * gamma[i];
            sum += g;
            product = fma(g, h, product);
#if SUMS
            weights[i] = fma(d[i], h, weights[i]);
            biases[i] += d[i];
#endif
        }
#if DX
        global float *to = dx + (size_t)row * width;
        const float a = (sum + vector_sum(sums)) / width, b = (product + vector_sum(products)) / width;
        for (int i = 0; i < whole; i += V) {
            const VF h = (VLOAD(0, from + i) - m) * r;
            VSTORE((VLOAD(0, d + i) * VLOAD(0, gamma + i) - fma(h, (VF)(b), (VF)(a))) * r, 0, to + i);
        }
        for (int i = whole; i < width; i++) to[i] = (d[i] * gamma[i] - fma((from[i] - m) * r, b, a)) * r;
#endif
    }
}

#else
#include "group.h"

__attribute__((reqd_work_group_size(GROUP, 1, 1))) kernel void layer_norm(GROUPS_ARGUMENTS(PARAMETER))
{
    local float scratch[GROUP];
    const int item = get_local_id(0);
    const size_t row = get_group_id(0);
    float sum = 0.0f, square = 0.0f;
    x += row * width;
    y += row * width;
    for (int i = item; i < width; i += GROUP) sum += x[i];
    const float m = group_sum(sum, scratch) / width;
    for (int i = item; i < width; i += GROUP) square = fma(x[i] - m, x[i] - m, square);
    const float r = 1.0f / sqrt(group_sum(square, scratch) / width + epsilon);
    for (int i = item; i < width; i += GROUP) y[i] = fma((x[i] - m) * r, gamma[i], beta[i]);
    if (item == 0 && mean) mean[row] = m;
    if (item == 0 && rstd) rstd[row] = r;
}

__attribute__((reqd_work_group_size(GROUP, 1, 1))) kernel void layer_norm_gradient(GROUPS_GRADIENT_ARGUMENTS(PARAMETER))
{
    local float scratch[GROUP];
    const int item = get_local_id(0);
    const size_t row = get_group_id(0);
    const float m = mean[row], r = rstd[row];
    float sum = 0.0f, product = 0.0f;
    x += row * width;
    dy += row * width;
    dx += row * width;
    for (int i = item; i < width; i += GROUP) {
        const float g = dy[i] * gamma[i];
        sum += g;
        product = fma(g, (x[i] - m) * r, product);
    }
    const float a = group_sum(sum, scratch) / width, b = group_sum(product, scratch) / width;
    for (int i = item; i < width; i += GROUP) dx[i] = (dy[i] * gamma[i] - fma((x[i] - m) * r, b, a)) * r;
}

kernel void layer_norm_sums(SUMS_ARGUMENTS(PARAMETER))
{
    const int i = get_global_id(0), part = get_global_id(1), first = part * each, end = min(first + each, rows);
    if (i >= width) return;
    float weight = 0.0f, bias = 0.0f;
    for (int row = first; row < end; row++) {
        const float v = dy[(size_t)row * width + i];
        weight = fma(v, (x[(size_t)row * width + i] - mean[row]) * rstd[row], weight);
        bias += v;
    }
    parts[(size_t)part * 2 * width + i] = weight;
    parts[((size_t)part * 2 + 1) * width + i] = bias;
}
#endif

kernel void layer_norm_finish(global const float *parts, global float *dgamma, global float *dbeta, int count, int width)
{
    const int i = get_global_id(0);
    if (i >= width) return;
    float weight = 0.0f, bias = 0.0f;
    for (int part = 0; part < count; part++) {
        weight += parts[(size_t)part * 2 * width + i];
        bias += parts[((size_t)part * 2 + 1) * width + i];
    }
    if (dgamma) dgamma[i] = weight;
    if (dbeta) dbeta[i] = bias;
}
