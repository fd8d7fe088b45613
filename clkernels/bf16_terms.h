/* Vectors of 16 floats as sums of PARTS bfloat16 numbers (1: the nearest one), and the products that are made of
 * these parts: those that are not too small for a sum of floats to hold, the largest ones first.
 *
 *   PRODUCTS                      number of products of two numbers
 *   part_of_a[p], part_of_b[p]    the parts that product p multiplies
 *   magnitudes(x)                 to be compared: from UNUSUAL on, infinity and NaN among them, parts need care
 *   quick_words(&even, &odd)      the next parts of what is left of two usual numbers, as a word
 *   next_part(&left, large)       the next part of what is left of any number, in the lower half of each element
 *   next_words(&even, ...)        the next parts of what is left of any two numbers, as a word */
#ifndef BF16_TERMS_H
#define BF16_TERMS_H
#include "bf16_round.h"

#if PARTS == 1
#define PRODUCTS 1
#elif PARTS == 2
#define PRODUCTS 3
#else
#define PRODUCTS 6
#endif

constant int part_of_a[6] = { 0, 0, 1, 1, 0, 2 }, part_of_b[6] = { 0, 1, 0, 1, 2, 0 };

#if PARTS > 1
/* Infinity and NaN have no parts. Parts of large numbers are cut, not rounded, so that no sum of some of them is
 * larger than the number. */
#define UNUSUAL 0x7f000000 /* the bits of 2^127 */
#define OUTSIDE 0x7f800000 /* the bits of infinity; those of NaN are larger */
#define magnitudes(x) (as_int16(x) & 0x7fffffff)
#define IS_LARGE(x) (magnitudes(x) >= UNUSUAL)

/* Takes the next part, into the upper half of each element; the lower half has no meaning. Ties go away from zero,
 * which no sum of the parts shows. */
INLINE uint16 quick_part(float16 *left)
{
    const uint16 part = as_uint16(*left) + 0x8000u;
    *left -= as_float16(part & 0xffff0000u);
    return part;
}

INLINE uint16 quick_words(float16 *even, float16 *odd)
{
    const uint16 low = quick_part(even), high = quick_part(odd);
    return low >> 16 | (high & 0xffff0000u);
}

INLINE uint16 next_part(float16 *left, int16 large)
{
    const uint16 bits = as_uint16(*left);
    const int16 finite = fabs(*left) < INFINITY;
    const uint16 cut = large ? bits >> 16 : nearest(*left), part = finite ? cut : (uint16)(0u);
    *left = finite ? *left - as_float16(part << 16) : (float16)(0.0f);
    return part;
}

/* The next parts of pairs, as words. */
INLINE uint16 next_words(float16 *even, float16 *odd, int16 large_even, int16 large_odd)
{
    const uint16 low = next_part(even, large_even), high = next_part(odd, large_odd);
    return low | high << 16;
}
#endif
#endif
