/* IEEE 754 half precision on the host. */
#ifndef BASE_HALF_H
#define BASE_HALF_H

#include <math.h>
#include <stdint.h>

/* Rounded to the nearest, ties to even; too large numbers become infinite, NaN stays NaN. */
static inline uint16_t half_from_float(float value)
{
    const uint16_t sign = signbit(value) ? 0x8000 : 0;
    const float magnitude = fabsf(value);
    if (isnan(value)) return sign | 0x7e00;
    if (magnitude >= 65520.0f) return sign | 0x7c00; /* half of a step above the largest, 65504 */
    int exponent;
    (void)frexpf(magnitude, &exponent);
    if (magnitude < 0x1p-14f) exponent = -13; /* below the smallest normal number steps are all 2^-24 */
    const float steps = rintf(ldexpf(magnitude, 11 - exponent)); /* 0 to 2048, which carries into the exponent */
    return (uint16_t)(sign + ((uint32_t)(exponent + 13) << 10) + (uint32_t)steps);
}

static inline float half_to_float(uint16_t half)
{
    const int exponent = half >> 10 & 31, fraction = half & 1023;
    const float magnitude = exponent == 31 ? (fraction ? NAN : INFINITY)
        : exponent == 0                    ? ldexpf((float)fraction, -24)
                                           : ldexpf((float)(1024 + fraction), exponent - 25);
    return half & 0x8000 ? -magnitude : magnitude;
}

#endif
