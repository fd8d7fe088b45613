/* Losses by class number and their gradients, on CPU-class devices; launched by layers/loss/loss_classes.c. Logits x are
 * [samples][width][inner]; labels are [samples][inner]. Each position of labels has a loss:
 *
 *   l          its label;  m = (1 - smoothing) x[l] + smoothing * mean of x
 *   loss       log(sum over i of exp(x[i])) - m;  LOG_PROBABILITIES 1: -m;  class weights: loss_classes.h
 *   dx[i]      (softmax(x)[i] - (1 - smoothing) (i == l) - smoothing / width) * weight * gradient_weight
 *              LOG_PROBABILITIES 1: the same without softmax(x)[i]
 *   correct    l is the first of the largest x
 *   excluded   l < 0 or l == IGNORED: loss 0, gradient 0, not correct
 *   l >= width loss NaN, so that the step is refused
 *
 * results [positions][2], each the loss and 1 or 0 for correct, go to loss_sum (loss_sum.cl). GRADIENT 1: dx is wanted.
 * SMOOTHING 0: smoothing is 0. */
#include "parameters.h"
#include "arguments/loss_classes.h"
#include "row.h"
#include "step.h"
#define POSITIONS V
#define POSITION_EXP(x) scalar_exp(x)
#include "loss_classes.h"

#if CLASS_WEIGHTS
#define CLASS_WEIGHT_VECTOR(i) VLOAD(0, class_weights + i)
#else
#define CLASS_WEIGHT_VECTOR(i) 1.0f
#endif

/* inner is 1: ceil(rows / each) tasks of `each` rows. */
TASK void cross_entropy(LABELS_ARGUMENTS(PARAMETER) ROWS_ARGUMENTS(PARAMETER) CLASS_WEIGHT_PARAMETERS)
{
    const int first = get_group_id(0) * each, end = min(first + each, rows), whole = width / V * V;
    for (int row = first; row < end; row++) {
        global const float *from = x + (size_t)row * width;
        global float *to = dx + (size_t)row * width;
        const int label = labels[row];
        const float most = row_max(from, width), sum = row_exp(from, most, width, GRADIENT, to);
        float mean = 0.0f;
#if SMOOTHING
        float error = 0.0f;
        for (int i = 0; i < width;) {
            const int stop = min(i + SUM_BLOCK, width);
            float block = 0.0f;
            for (; i < stop; i++) block += SMOOTHED(i, from[i], most);
            SUM_ADD(float, mean, error, block);
        }
        mean /= (float)width;
#endif
        const bool live = label >= 0 && label != IGNORED, known = label < width;
        const float own = live && known ? CLASS_WEIGHT(label) : 1.0f;
        if (live && known) {
            bool hit = from[label] == most && !isnan(sum);
            for (int i = 0; hit && i < label; i++) hit = from[i] < most;
            results[2 * row] = loss_of(most, log(sum), from[label], mean, smoothing, own, MEAN_WEIGHT);
            results[2 * row + 1] = hit;
        } else {
            results[2 * row] = live ? NAN : 0.0f;
            results[2 * row + 1] = 0.0f;
        }
#if GRADIENT
        const float scale = weight * constants->gradient_weight, factor = LOG_PROBABILITIES ? 0.0f : scale * PULL(own) / sum;
        const float even = SMOOTHING ? scale * smoothing / (float)width : 0.0f;
        if (live) {
            for (int i = 0; i < whole; i += V)
                VSTORE(VLOAD(0, to + i) * factor - even * CLASS_WEIGHT_VECTOR(i), 0, to + i);
            for (int i = whole; i < width; i++) to[i] = to[i] * factor - even * CLASS_WEIGHT(i);
            if (known) to[label] -= own * (SMOOTHING ? scale * (1.0f - smoothing) : scale);
        } else {
            for (int i = 0; i < width; i++) to[i] = 0.0f;
        }
#endif
    }
}

/* inner > 1: `pieces` tasks for each sample, each of `each` positions. */
TASK void cross_entropy_positions(LABELS_ARGUMENTS(PARAMETER) PIECES_ARGUMENTS(PARAMETER) CLASS_WEIGHT_PARAMETERS)
{
    const size_t sample = get_group_id(0) / pieces;
    int p = (int)(get_group_id(0) % pieces) * each;
    const int end = min(p + each, inner);
    const float scale = weight * constants->gradient_weight;
    for (; p + V <= end; p += V)
        positions(x, labels, scale, dx, results, smoothing, width, inner, sample, p, V CLASS_WEIGHT_ARGUMENTS);
    if (p < end)
        positions(x, labels, scale, dx, results, smoothing, width, inner, sample, p, end - p CLASS_WEIGHT_ARGUMENTS);
}
