/* What the kernels that take part in a batch normalisation share: blocks of a vector per channel, and the gradient of the
 * activation behind it.
 *   MASK   0 none, 1 relu, 2 clip to LOW .. HIGH: whether a gradient passes depends on the output */
#ifndef MASK
#define MASK 0
#endif
#if MASK == 1
#define MASKED(output, gradient) ((output) <= 0.0f ? (VF)(0.0f) : (gradient))
#elif MASK == 2
#define MASKED(output, gradient) \
    ((output) <= LOW ? (VF)(0.0f) : ((output) >= HIGH ? (VF)(0.0f) : (gradient)))
#else
#define MASKED(output, gradient) (gradient)
#endif

/* The block's values of a vector per channel; 0 past C. */
INLINE VF channels_load(global const float *p, int cb, int C)
{
    if ((cb + 1) * V <= C) return VLOAD(cb, p);
    VF v = (VF)(0.0f);
    for (int lane = 0; cb * V + lane < C; lane++) ((float *)&v)[lane] = p[cb * V + lane];
    return v;
}
