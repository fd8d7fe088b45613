/* Floats as bfloat16 numbers, to nearest, ties to even; NaN stays NaN.
 *   nearest(x)           in the lower half of each element
 *   PAIR_OF(even, odd)   pairs of them, as pairs.h reads them, as floats of the same bits */
#ifndef PAIRS_ROUND_H
#define PAIRS_ROUND_H
#include "vector.h"
#define AS_WORDS CONCATENATE(as_uint, V)
#define AS_FLOATS CONCATENATE(as_float, V)
#define PAIR_OF(even, odd) AS_FLOATS(nearest(even) | nearest(odd) << 16)

INLINE VU nearest(VF x)
{
    const VU bits = AS_WORDS(x), rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    return x != x ? (bits >> 16) | 0x40u : rounded;
}
#endif
