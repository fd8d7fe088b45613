/* Floats as bfloat16 numbers, to nearest, ties to even; NaN stays NaN.
 *   nearest(x)           in the lower half of each element
 *   WORDS_OF(even, odd)  pairs of them, as bf16_dots.h reads them
 *   PAIR_OF(even, odd)   the same as floats of the same bits */
#ifndef BF16_ROUND_H
#define BF16_ROUND_H
#include "element.h"
#define AS_FLOATS CONCATENATE(as_float, V)
#define nearest(x) TO_VU(round_to_bf16(x))
#define WORDS_OF(even, odd) (nearest(even) | nearest(odd) << 16)
#define PAIR_OF(even, odd) AS_FLOATS(WORDS_OF(even, odd))
#endif
