/* Blocks of one number for each of C channels. */
#ifndef CHANNELS_H
#define CHANNELS_H
#include "vector.h"

/* Loads a block; 0 from channel C on. */
INLINE VF channels_load(global const float *p, int cb, int C)
{
    if ((cb + 1) * V <= C) return VLOAD(cb, p);
    VF v = (VF)(0.0f);
    LOOP for (int lane = 0; cb * V + lane < C; lane++) ((float *)&v)[lane] = p[cb * V + lane];
    return v;
}

/* Stores a block. p may be NULL, where nobody wants it. */
INLINE void channels_store(VF v, global float *p, int cb, int C)
{
    if (!p) return;
    if ((cb + 1) * V <= C) VSTORE(v, cb, p);
    else
        LOOP for (int lane = 0; cb * V + lane < C; lane++) p[cb * V + lane] = ((float *)&v)[lane];
}
#endif
