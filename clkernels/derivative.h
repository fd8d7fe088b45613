/* The gradient of an activation's input, from the activation's output.
 *   MASK   0 none, 1 relu, 2 clip to LOW .. HIGH, 3 leaky relu with slope LOW, 4 sigmoid, 5 tanh: as ACTIVATE
 * MASKED(output, gradient) works on float and floatV. NaN in the output lets the gradient pass, NaN in that stays. */
#ifndef MASK
#define MASK 0
#endif
#if MASK == 0
#define MASKED(output, gradient) (gradient)
#elif MASK == 1
#define MASKED(output, gradient) ((output) <= 0.0f ? 0.0f : (gradient))
#elif MASK == 2
#define MASKED(output, gradient) ((output) <= LOW ? 0.0f : ((output) >= HIGH ? 0.0f : (gradient)))
#elif MASK == 3
#define MASKED(output, gradient) ((output) <= 0.0f ? LOW * (gradient) : (gradient))
#elif MASK == 4
#define MASKED(output, gradient) ((gradient) * (output) * (1.0f - (output)))
#else
#define MASKED(output, gradient) ((gradient) * (1.0f - (output) * (output)))
#endif
