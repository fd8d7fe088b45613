/* bfloat16 on the host: the upper half of a float. */
#ifndef BASE_BF16_H
#define BASE_BF16_H

#include <stdint.h>
#include <string.h>

static inline float bf16_to_float(uint16_t half)
{
    const uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* Rounded to the nearest, ties to even; NaN stays NaN. */
static inline uint16_t bf16_from_float(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    const uint32_t upper = bits >> 16, rounded = (bits + 0x7fffu + (upper & 1u)) >> 16;
    return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? upper | 0x40u : rounded);
}

#endif
