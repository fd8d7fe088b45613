/* Layer normalisation of rows of `width` floats, and its gradient; launched by layers/layer_norm.c.
 *   layer_norm            y = (x - mean) rstd gamma + beta; mean and rstd [rows] are stored if they are not NULL
 *   layer_norm_gradient   dx = rstd (g - (sum g + h sum g h) / width), of g = dy gamma and h = (x - mean) rstd
 *   layer_norm_sums       sums [parts][STRIDE][width]: sum dy h and sum dy, over the rows of a part
 *   layer_norm_finish     dgamma and dbeta [width], each unless it is NULL: the sums of the parts, in their order
 *
 * ROWS 1, CPU class: one task for `each` rows. layer_norm_gradient stores dx where DX is 1, and one part of the sums for
 * each task where SUMS is 1, with STRIDE - 2 more rows of its own after it. ROWS 0, any device: one group of GROUP
 * work-items for each row; layer_norm_sums has one work-item for each column of a part of `each` rows. layer_norm_finish
 * has one work-item for each column. y may be x; dx may be x or dy. */
#include "parameters.h"
#include "arguments/layer_norm.h"
#include "deviation.h"
#include "sum.h"
#define STRIDE (ROWS ? 6 : 2)
#if ROWS
#include "vector.h"

/* Goes through the vectors of a row, SUM_BLOCK at a time: from i up to `stop`. */
#define FOR_BLOCKS for (int i = 0, stop = min(SUM_BLOCK * V, whole); i < whole; stop = min(i + SUM_BLOCK * V, whole))

TASK void layer_norm(ROWS_ARGUMENTS(PARAMETER))
{
    const int first = get_group_id(0) * each, end = min(first + each, rows), whole = width / V * V;
    for (int row = first; row < end; row++) {
        global const float *from = x + (size_t)row * width;
        global float *to = y + (size_t)row * width;
        VF sums = (VF)(0.0f), squares = (VF)(0.0f), sums_error = (VF)(0.0f), squares_error = (VF)(0.0f);
        float sum = 0.0f, square = 0.0f;
        FOR_BLOCKS {
            VF block = (VF)(0.0f);
            for (; i < stop; i += V) block += VLOAD(0, from + i);
            SUM_ADD(VF, sums, sums_error, block);
        }
        for (int i = whole; i < width; i++) sum += from[i];
        const float m = (sum + vector_sum(sums)) / width;
        FOR_BLOCKS {
            VF block = (VF)(0.0f);
            for (; i < stop; i += V) {
                const VF d = VLOAD(0, from + i) - m;
                block = fma(d, d, block);
            }
            SUM_ADD(VF, squares, squares_error, block);
        }
        for (int i = whole; i < width; i++) square = fma(from[i] - m, from[i] - m, square);
        const float r = PER_DEVIATION(float, (square + vector_sum(squares)) / width, epsilon);
        for (int i = 0; i < whole; i += V)
            VSTORE(fma((VLOAD(0, from + i) - m) * r, VLOAD(0, gamma + i), VLOAD(0, beta + i)), 0, to + i);
        for (int i = whole; i < width; i++) to[i] = fma((from[i] - m) * r, gamma[i], beta[i]);
        if (mean) mean[row] = m;
        if (rstd) rstd[row] = r;
    }
}

/* Adds the sums of a block of rows to the sums, and begins the next block. */
INLINE void keep_block(global float *block, global float *sums, global float *errors, int count)
{
    for (int i = 0; i < count; i++) {
        float sum = sums[i], error = errors[i];
        SUM_ADD(float, sum, error, block[i]);
        block[i] = 0.0f;
        sums[i] = sum;
        errors[i] = error;
    }
}

TASK void layer_norm_gradient(ROWS_GRADIENT_ARGUMENTS(PARAMETER))
{
    const int first = get_group_id(0) * each, end = min(first + each, rows), whole = width / V * V;
    /* The sums, their rounding errors, and those of the last SUM_BLOCK rows. */
    global float *sums_of = parts + (size_t)get_group_id(0) * STRIDE * width, *errors_of = sums_of + 2 * width;
    global float *weights = errors_of + 2 * width, *biases = weights + width;
#if SUMS
    for (int i = 0; i < STRIDE * width; i++) sums_of[i] = 0.0f;
#endif
    for (int row = first; row < end; row++) {
        global const float *from = x + (size_t)row * width, *d = dy + (size_t)row * width;
        const float m = mean[row], r = rstd[row];
        VF sums = (VF)(0.0f), products = (VF)(0.0f), sums_error = (VF)(0.0f), products_error = (VF)(0.0f);
        float sum = 0.0f, product = 0.0f;
        FOR_BLOCKS {
            VF block = (VF)(0.0f), block_products = (VF)(0.0f);
            for (; i < stop; i += V) {
                const VF v = VLOAD(0, d + i), h = (VLOAD(0, from + i) - m) * r, g = v * VLOAD(0, gamma + i);
                block += g;
                block_products = fma(g, h, block_products);
#if SUMS
                VSTORE(fma(v, h, VLOAD(0, weights + i)), 0, weights + i);
                VSTORE(v + VLOAD(0, biases + i), 0, biases + i);
#endif
            }
            SUM_ADD(VF, sums, sums_error, block);
            SUM_ADD(VF, products, products_error, block_products);
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
#if SUMS
        if ((row - first) % SUM_BLOCK == SUM_BLOCK - 1 || row == end - 1) keep_block(weights, sums_of, errors_of, 2 * width);
#endif
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
    float sum = 0.0f, square = 0.0f, sum_error = 0.0f, square_error = 0.0f;
    x += row * width;
    y += row * width;
    for (int i = item; i < width; i += GROUP) SUM_ADD(float, sum, sum_error, x[i]);
    const float m = group_sum(sum, scratch) / width;
    for (int i = item; i < width; i += GROUP) SUM_ADD(float, square, square_error, (x[i] - m) * (x[i] - m));
    const float r = PER_DEVIATION(float, group_sum(square, scratch) / width, epsilon);
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
    float sum = 0.0f, product = 0.0f, sum_error = 0.0f, product_error = 0.0f;
    x += row * width;
    dy += row * width;
    dx += row * width;
    for (int i = item; i < width; i += GROUP) {
        const float g = dy[i] * gamma[i];
        SUM_ADD(float, sum, sum_error, g);
        SUM_ADD(float, product, product_error, g * ((x[i] - m) * r));
    }
    const float a = group_sum(sum, scratch) / width;
    const float b = group_sum(product, scratch) / width;
    for (int i = item; i < width; i += GROUP) dx[i] = (dy[i] * gamma[i] - fma((x[i] - m) * r, b, a)) * r;
}

kernel void layer_norm_sums(SUMS_ARGUMENTS(PARAMETER))
{
    const int i = get_global_id(0), part = get_global_id(1), first = part * each, end = min(first + each, rows);
    if (i >= width) return;
    float2 sum = (float2)(0.0f), error = (float2)(0.0f);
    for (int row = first; row < end; row++) {
        const float v = dy[(size_t)row * width + i], h = (x[(size_t)row * width + i] - mean[row]) * rstd[row];
        SUM_ADD(float2, sum, error, (float2)(v * h, v));
    }
    global float *to = parts + (size_t)part * STRIDE * width + i;
    to[0] = sum.x;
    to[width] = sum.y;
}
#endif

kernel void layer_norm_finish(global const float *parts, global float *dgamma, global float *dbeta, int count, int width)
{
    const int i = get_global_id(0);
    if (i >= width) return;
    float2 sum = (float2)(0.0f), error = (float2)(0.0f);
    for (int part = 0; part < count; part++) {
        global const float *next = parts + (size_t)part * STRIDE * width + i;
        SUM_ADD(float2, sum, error, (float2)(next[0], next[width]));
    }
    if (dgamma) dgamma[i] = sum.x;
    if (dbeta) dbeta[i] = sum.y;
}
