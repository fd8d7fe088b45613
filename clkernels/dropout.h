/* Philox for dropout. DROPOUT_VECTORS: also for half a vector of blocks at once; include random.h before. */
#ifndef DROPOUT_H
#define DROPOUT_H

/* The key. A step's upper word is almost always 0. */
#define KEY_LOW (constants->seed_low)
#define KEY_HIGH (constants->seed_high ^ constants->step_high)

#if DROPOUT_VECTORS
#if V == 16
#define HALF ulong8
#define HALF_NUMBERS (HALF)(0, 2, 4, 6, 8, 10, 12, 14)
#elif V == 8
#define HALF ulong4
#define HALF_NUMBERS (HALF)(0, 2, 4, 6)
#else
#define HALF ulong2
#define HALF_NUMBERS (HALF)(0, 2)
#endif
PHILOX_HALF(philox, HALF)
#endif

#endif
