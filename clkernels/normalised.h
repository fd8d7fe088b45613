/* What the kernels that take part in a batch normalisation share: blocks of a vector per channel, and the gradient of the
 * activation behind it. */
#include "derivative.h"

/* The block's values of a vector per channel; 0 past C. */
INLINE VF channels_load(global const float *p, int cb, int C)
{
    if ((cb + 1) * V <= C) return VLOAD(cb, p);
    VF v = (VF)(0.0f);
    LOOP for (int lane = 0; cb * V + lane < C; lane++) ((float *)&v)[lane] = p[cb * V + lane];
    return v;
}
