/* What the kernels of losses by class number share: the formula of loss_cpu.cl, and class weights.
 *
 * CLASS_WEIGHTS 1: the last arguments of a kernel are class_weights [width] and their mean, mean_weight. The loss of
 * label l is then
 *
 *   (1 - smoothing) w[l] (norm - x[l]) + smoothing * mean over i of w[i] (norm - x[i])
 *
 * where norm is log(sum over i of exp(x[i])), or 0 with LOG_PROBABILITIES. Without them all w[i] are 1.
 *
 * CLASS_WEIGHT_PARAMETERS, _ARGUMENTS   end the parameters of a kernel, and the arguments of a function's call
 * CLASS_WEIGHT(i)       w[i]; MEAN_WEIGHT their mean
 * SMOOTHED(i, x, most)  what is added up to the mean that loss_of() gets
 * POSITIONS, POSITION_EXP(x)           defined before: positions done together, and exp(x)
 * PULL(own)             factor of softmax(x)[i] in the gradient; own is CLASS_WEIGHT(l) */
#ifndef LOSS_CLASSES_H
#define LOSS_CLASSES_H
#include "sum.h"
#if CLASS_WEIGHTS
#define CLASS_WEIGHT_PARAMETERS WEIGHTS_ARGUMENTS(PARAMETER)
#define CLASS_WEIGHT_ARGUMENTS WEIGHTS_ARGUMENTS(NAME)
#define CLASS_WEIGHT(i) class_weights[i]
#define MEAN_WEIGHT mean_weight
#define SMOOTHED(i, x, most) (class_weights[i] * (LOG_PROBABILITIES ? -(x) : (most) - (x)))
#define PULL(own) (SMOOTHING ? (own) + smoothing * (mean_weight - (own)) : (own))
#else
#define CLASS_WEIGHT_PARAMETERS
#define CLASS_WEIGHT_ARGUMENTS
#define CLASS_WEIGHT(i) 1.0f
#define SMOOTHED(i, x, most) (x)
#define PULL(own) 1.0f
#define MEAN_WEIGHT 1.0f
#endif

/* Returns the loss of a position. `labelled` is x[l], `log_sum` the logarithm of the sum of exp(x - most), `mean` the
 * mean of SMOOTHED, `own` the label's weight and `all` the mean of all weights. */
static inline __attribute__((always_inline)) float loss_of(
    float most, float log_sum, float labelled, float mean, float smoothing, float own, float all)
{
#if CLASS_WEIGHTS
    const float norm = LOG_PROBABILITIES ? 0.0f : log_sum;
    const float loss = own * (norm + (LOG_PROBABILITIES ? -labelled : most - labelled));
    return SMOOTHING ? loss + smoothing * (all * norm + mean - loss) : loss;
#else
#if SMOOTHING
    labelled += smoothing * (mean - labelled);
#endif
    return LOG_PROBABILITIES ? -labelled : log_sum + (most - labelled);
#endif
}

/* Computes `count` positions of a sample, at most POSITIONS, at neighbouring addresses from `p` on. */
static inline __attribute__((always_inline)) void positions(global const float *x, global const int *labels,
    float scale, global float *dx, global float *results, float smoothing, int width, int inner, size_t sample, int p,
    const int count CLASS_WEIGHT_PARAMETERS)
{
    float most[POSITIONS], sum[POSITIONS], mean[POSITIONS], labelled[POSITIONS], own[POSITIONS];
    float sum_error[POSITIONS], mean_error[POSITIONS];
    int label[POSITIONS], earlier[POSITIONS];
    global const float *from = x + sample * width * inner + p;
    for (int k = 0; k < count; k++) {
        most[k] = -INFINITY;
        sum[k] = mean[k] = sum_error[k] = mean_error[k] = 0.0f;
        label[k] = labels[sample * inner + p + k];
        earlier[k] = 0;
        labelled[k] = NAN;
        own[k] = label[k] >= 0 && label[k] < width ? CLASS_WEIGHT(label[k]) : 1.0f;
    }
    for (int c = 0; c < width; c++)
        for (int k = 0; k < count; k++) most[k] = fmax(most[k], from[(size_t)c * inner + k]);
    for (int c = 0; c < width;) {
        const int stop = min(c + SUM_BLOCK, width);
        float block[POSITIONS], block_mean[POSITIONS];
        for (int k = 0; k < count; k++) block[k] = block_mean[k] = 0.0f;
        for (; c < stop; c++)
            for (int k = 0; k < count; k++) {
                const float v = from[(size_t)c * inner + k];
                block[k] += POSITION_EXP(v - most[k]);
                block_mean[k] += SMOOTHED(c, v, most[k]);
                labelled[k] = c == label[k] ? v : labelled[k];
                earlier[k] |= c < label[k] && v == most[k];
            }
        for (int k = 0; k < count; k++) {
            SUM_ADD(float, sum[k], sum_error[k], block[k]);
            SUM_ADD(float, mean[k], mean_error[k], block_mean[k]);
        }
    }
    for (int k = 0; k < count; k++) {
        const bool live = label[k] >= 0 && label[k] != IGNORED;
        const size_t row = sample * inner + p + k;
        /* Computed in any case: POCL 6 aborts where only one side of a choice reads what a loop has left, here
         * `mean`. LLVM moves the load there in a second round of a pass, and POCL demands that the pass end after
         * one. */
        const float loss =
            loss_of(most[k], log(sum[k]), labelled[k], mean[k] / (float)width, smoothing, own[k], MEAN_WEIGHT);
        results[2 * row] = live ? loss : 0.0f;
        results[2 * row + 1] = live && labelled[k] == most[k] && !earlier[k] && !isnan(sum[k]);
        label[k] = live ? label[k] : -1;
    }
#if GRADIENT
    global float *to = dx + sample * width * inner + p;
    for (int c = 0; c < width; c++)
        for (int k = 0; k < count; k++) {
            const float share = LOG_PROBABILITIES ? 0.0f : POSITION_EXP(from[(size_t)c * inner + k] - most[k]) / sum[k];
            const float wanted =
                (c == label[k] ? own[k] * (1.0f - smoothing) : 0.0f) + CLASS_WEIGHT(c) * (smoothing / (float)width);
            to[(size_t)c * inner + k] = label[k] >= 0 ? (share * PULL(own[k]) - wanted) * scale : 0.0f;
        }
#endif
}
#endif
