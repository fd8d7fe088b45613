/* What the operands of a product are rounded to before they are multiplied; products and sums stay floats.
 *   COMPUTE   0 float: nothing is rounded, 1 TF32 (10 bits after the point), 2 bfloat16 (7),
 *             3 half (10, of fewer exponents: to infinity from 65520, to multiples of 2^-24 below 2^-14)
 * computed_float(x), computed_float4(x): the nearest number of that type, ties to even, as a float. NaN stays NaN. */
#ifndef COMPUTE_H
#define COMPUTE_H
#include "vector.h"

#ifndef COMPUTE
#define COMPUTE 0
#endif
#define DROPPED (COMPUTE == 2 ? 16 : 13) /* of the 23 bits after a float's point */

#if COMPUTE == 0
#define COMPUTED(T, U)                                                                                                 \
    INLINE T computed_##T(T x)                                                                                         \
    {                                                                                                                  \
        return x;                                                                                                      \
    }
#else
#if COMPUTE == 3
#define RANGED(T, U, x, near)                                                                                          \
    (fabs(x) < 0x1p-14f           ? ((x) + 0.75f) - 0.75f                                                              \
            : fabs(near) < 65536.0f ? (near)                                                                           \
                                    : as_##T((as_##U(x) & 0x80000000u) | 0x7f800000u))
#else
#define RANGED(T, U, x, near) (near)
#endif
#define COMPUTED(T, U)                                                                                                 \
    INLINE T computed_##T(T x)                                                                                         \
    {                                                                                                                  \
        const U bits = as_##U(x);                                                                                      \
        const U nearest = (bits + ((1u << (DROPPED - 1)) - 1) + (bits >> DROPPED & 1u)) & ~((1u << DROPPED) - 1);      \
        return x != x ? x : RANGED(T, U, x, as_##T(nearest));                                                          \
    }
#endif
COMPUTED(float, uint)
COMPUTED(float4, uint4)
#endif
