/* The cross-entropy of logits x and probabilities p of one shape, [samples][width][inner], and its gradient, on any
 * device; launched by layers/loss/loss_soft.c. Each position has a loss:
 *
 *   v[i]     w[i] ((1 - smoothing) p[i] + smoothing / width), what is wanted; w are class weights, or 1
 *   loss     sum over i of v[i] (log(sum of exp(x)) - x[i])
 *   dx[i]    (softmax(x)[i] * sum of v - v[i]) * weight * gradient_weight
 *   correct  the first of the largest p is the first of the largest x
 *
 * A term with v[i] = 0 is 0, whatever x[i] is. results [positions][2], each the loss and 1 or 0 for correct, go to
 * loss_sum (loss_sum.cl). GRADIENT 1: dx is wanted. */
#include "parameters.h"
#include "arguments/loss_soft.h"
#include "group.h"
#include "step.h"
#include "sum.h"
#include "vector.h"

#if CLASS_WEIGHTS
#define WEIGHT_PARAMETERS SOFT_WEIGHTS_ARGUMENTS(PARAMETER)
#define WEIGHT_NAMES SOFT_WEIGHTS_ARGUMENTS(NAME)
#define CLASS_WEIGHT(i) class_weights[i]
#else
#define WEIGHT_PARAMETERS
#define WEIGHT_NAMES
#define CLASS_WEIGHT(i) 1.0f
#endif
#define WANTED(i, p) (CLASS_WEIGHT(i) * ((1.0f - smoothing) * (p) + smoothing / (float)width))
#define TERM(v, x) ((v) != 0.0f ? (v) * (most - (x)) : 0.0f)

/* A group of GROUP work-items computes a row. The first of the largest is found as the largest of negative places,
 * which floats hold below 2^24. */
INLINE void soft_row(SOFT_ARGUMENTS(PARAMETER) WEIGHT_PARAMETERS, const int row, local float *scratch)
{
    const int item = get_local_id(0);
    float most = -INFINITY, likeliest = -INFINITY;
    x += (size_t)row * width;
    targets += (size_t)row * width;
    for (int i = item; i < width; i += GROUP) {
        most = fmax(most, x[i]);
        likeliest = fmax(likeliest, targets[i]);
    }
    most = group_max(most, scratch);
    likeliest = group_max(likeliest, scratch);
    float sum = 0.0f, pull = 0.0f, loss = 0.0f, sum_error = 0.0f, pull_error = 0.0f, loss_error = 0.0f;
    float predicted = -INFINITY, right = -INFINITY;
    for (int i = item; i < width; i += GROUP) {
        const float v = WANTED(i, targets[i]);
        SUM_ADD(float, sum, sum_error, exp(x[i] - most));
        SUM_ADD(float, pull, pull_error, v);
        SUM_ADD(float, loss, loss_error, TERM(v, x[i]));
        if (x[i] == most) predicted = fmax(predicted, -(float)i);
        if (targets[i] == likeliest) right = fmax(right, -(float)i);
    }
    sum = group_sum(sum, scratch);
    pull = group_sum(pull, scratch);
    loss = group_sum(loss, scratch);
    predicted = group_max(predicted, scratch);
    right = group_max(right, scratch);
    if (item == 0) {
        results[2 * row] = loss + pull * log(sum);
        results[2 * row + 1] = predicted == right && !isnan(sum);
    }
#if GRADIENT
    const float scale = weight * constants->gradient_weight, factor = pull / sum;
    dx += (size_t)row * width;
    for (int i = item; i < width; i += GROUP)
        dx[i] = (exp(x[i] - most) * factor - WANTED(i, targets[i])) * scale;
#endif
}

/* inner is 1: a group for each row; where it is one work-item, it does `each` rows. */
__attribute__((reqd_work_group_size(GROUP, 1, 1))) kernel void loss_soft_rows(
    SOFT_ARGUMENTS(PARAMETER) SOFT_ROWS_ARGUMENTS(PARAMETER) WEIGHT_PARAMETERS)
{
    local float scratch[GROUP];
    const int group = get_group_id(0);
#if GROUP > 1
    soft_row(SOFT_ARGUMENTS(NAME) WEIGHT_NAMES, group, scratch);
#else
    for (int row = group * each; row < min((group + 1) * each, rows); row++)
        soft_row(SOFT_ARGUMENTS(NAME) WEIGHT_NAMES, row, scratch);
#endif
}

/* inner > 1: one work-item for each of `total` positions. */
kernel void loss_soft_positions(SOFT_ARGUMENTS(PARAMETER) SOFT_POSITIONS_ARGUMENTS(PARAMETER) WEIGHT_PARAMETERS)
{
    const size_t row = get_global_id(0), first = row / inner * width * inner + row % inner;
    if (row >= (size_t)total) return;
    x += first;
    targets += first;
    float most = -INFINITY, likeliest = -INFINITY, sum = 0.0f, pull = 0.0f, loss = 0.0f;
    float sum_error = 0.0f, pull_error = 0.0f, loss_error = 0.0f;
    int predicted = 0, right = 0;
    for (int i = 0; i < width; i++) {
        const float v = x[(size_t)i * inner], p = targets[(size_t)i * inner];
        predicted = v > most ? i : predicted;
        right = p > likeliest ? i : right;
        most = fmax(most, v);
        likeliest = fmax(likeliest, p);
    }
    for (int i = 0; i < width; i++) {
        const float v = WANTED(i, targets[(size_t)i * inner]);
        SUM_ADD(float, sum, sum_error, exp(x[(size_t)i * inner] - most));
        SUM_ADD(float, pull, pull_error, v);
        SUM_ADD(float, loss, loss_error, TERM(v, x[(size_t)i * inner]));
    }
    results[2 * row] = loss + pull * log(sum);
    results[2 * row + 1] = predicted == right && !isnan(sum);
#if GRADIENT
    const float scale = weight * constants->gradient_weight, factor = pull / sum;
    dx += first;
    for (int i = 0; i < width; i++)
        dx[(size_t)i * inner] =
            (exp(x[(size_t)i * inner] - most) * factor - WANTED(i, targets[(size_t)i * inner])) * scale;
#endif
}
