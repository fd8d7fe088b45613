/* Floats that are not finite, found by their bits: such loops are vectorised and run at the speed of memory. */
#ifndef BASE_FLOATS_H
#define BASE_FLOATS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { FLOAT_INFINITE = 0x7f800000 }; /* magnitude bits of infinity; those of NaN are larger */

static inline uint32_t float_magnitude_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits & 0x7fffffffu;
}

/* Returns whether any of them is not finite. */
static inline bool floats_not_finite(const float *values, int64_t count)
{
    uint32_t largest = 0;
    for (int64_t i = 0; i < count; i++) {
        const uint32_t bits = float_magnitude_bits(values[i]);
        largest = bits > largest ? bits : largest;
    }
    return largest >= FLOAT_INFINITE;
}

#endif
