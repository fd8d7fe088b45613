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
 * PULL(own)             factor of softmax(x)[i] in the gradient; own is CLASS_WEIGHT(l) */
#ifndef LOSS_CLASSES_H
#define LOSS_CLASSES_H
#if CLASS_WEIGHTS
#define CLASS_WEIGHT_PARAMETERS , global const float *class_weights, float mean_weight
#define CLASS_WEIGHT_ARGUMENTS , class_weights, mean_weight
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

/* Of a position: `labelled` is x[l], `log_sum` the logarithm of the sum of exp(x - most), `mean` the mean of SMOOTHED,
 * `own` the label's weight and `all` the mean of all weights. */
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

#endif
