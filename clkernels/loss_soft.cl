/* The cross-entropy of logits x and probabilities p of one shape, [samples][width][inner], and its gradient, on any
 * device; launched by layers/loss_soft.c. Each position has a loss:
 *
 *   v[i]     w[i] ((1 - smoothing) p[i] + smoothing / width), what is wanted; w are class weights, or 1
 *   loss     sum over i of v[i] (log(sum of exp(x)) - x[i])
 *   dx[i]    (softmax(x)[i] * sum of v - v[i]) * weight * loss_scale
 *   correct  the first of the largest p is the first of the largest x
 *
 * A term with v[i] = 0 is 0, whatever x[i] is. results [positions][2], each the loss and 1 or 0 for correct, go to
 * loss_sum (loss_sum.cl). GRADIENT 1: dx is wanted. */
#include "parameters.h"
#include "arguments/loss_soft.h"
#include "group.h"
#include "step.h"

#if CLASS_WEIGHTS
#define WEIGHT_PARAMETERS SOFT_WEIGHTS_ARGUMENTS(PARAMETER)
#define CLASS_WEIGHT(i) class_weights[i]
#else
#define WEIGHT_PARAMETERS
#define CLASS_WEIGHT(i) 1.0f
#endif
#define WANTED(i, p) (CLASS_WEIGHT(i) * ((1.0f - smoothing) * (p) + smoothing / (float)width))
#define TERM(v, x) ((v) != 0.0f ? (v) * (most - (x)) : 0.0f)

/* inner is 1: groups of GROUP work-items, each group does `each` rows. The first of the largest is found as the largest
 * of negative places, which floats hold below 2^24. */
__attribute__((reqd_work_group_size(GROUP, 1, 1))) kernel void loss_soft_rows(
    SOFT_ARGUMENTS(PARAMETER) SOFT_ROWS_ARGUMENTS(PARAMETER) WEIGHT_PARAMETERS)
{
    local float scratch[GROUP];
    const int item = get_local_id(0), first = get_group_id(0) * each, end = min(first + each, rows);
    for (int row = first; row < end; row++) {
        global const float *from = x + (size_t)row * width, *p = targets + (size_t)row * width;
        float most = -INFINITY, likeliest = -INFINITY;
        for (int i = item; i < width; i += GROUP) {
            most = fmax(most, from[i]);
            likeliest = fmax(likeliest, p[i]);
        }
        most = group_max(most, scratch);
        likeliest = group_max(likeliest, scratch);
        float sum = 0.0f, pull = 0.0f, loss = 0.0f, predicted = -INFINITY, right = -INFINITY;
        for (int i = item; i < width; i += GROUP) {
            const float v = WANTED(i, p[i]);
            sum += exp(from[i] - most);
            pull += v;
            loss += TERM(v, from[i]);
            if (from[i] == most) predicted = fmax(predicted, -(float)i);
            if (p[i] == likeliest) right = fmax(right, -(float)i);
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
        const float scale = weight * constants->loss_scale, factor = pull / sum;
        global float *to = dx + (size_t)row * width;
        for (int i = item; i < width; i += GROUP)
            to[i] = (exp(from[i] - most) * factor - WANTED(i, p[i])) * scale;
#endif
    }
}

/* inner > 1: one work-item for each of `total` positions. */
kernel void loss_soft_positions(SOFT_ARGUMENTS(PARAMETER) SOFT_POSITIONS_ARGUMENTS(PARAMETER) WEIGHT_PARAMETERS)
{
    const size_t row = get_global_id(0), first = row / inner * width * inner + row % inner;
    if (row >= (size_t)total) return;
    x += first;
    targets += first;
    float most = -INFINITY, likeliest = -INFINITY, sum = 0.0f, pull = 0.0f, loss = 0.0f;
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
        sum += exp(x[(size_t)i * inner] - most);
        pull += v;
        loss += TERM(v, x[(size_t)i * inner]);
    }
    results[2 * row] = loss + pull * log(sum);
    results[2 * row + 1] = predicted == right && !isnan(sum);
#if GRADIENT
    const float scale = weight * constants->loss_scale, factor = pull / sum;
    dx += first;
    for (int i = 0; i < width; i++)
        dx[(size_t)i * inner] =
            (exp(x[(size_t)i * inner] - most) * factor - WANTED(i, targets[(size_t)i * inner])) * scale;
#endif
}
