/* How far a result in float may lie from the same formula in double: |got - want| <= limit * (rms of want + |want|).
 * One table, with the reason next to each entry. */
#ifndef TESTS_TOLERANCE_H
#define TESTS_TOLERANCE_H

#include <math.h>
#include <stdint.h>

/* X(name, base, per_term, reason): limit = 2^-24 * (base + per_term * sqrt(length of the longest sum)). */
#define TOLERANCE_TABLE(X)                                                                                           \
    X(EXACT, 0, 0, "small integers: every sum and product is exact, so equal means equal")                           \
    X(SUM, 16, 8, "rounding errors of n additions grow as sqrt(n) when signs are mixed; 8 covers the worst of many") \
    X(WINOGRAD, 128, 32,                                                                                             \
        "F(4x4, 3x3) and F(4x4, 5x5) lose 2 and 5 times more than a direct sum (rms), the former 20 at the worst: "  \
        "measured 7e-6 with 64 channels, growing as the square root (Lavin and Gray 2016; Barabasz et al. 2018)")    \
    X(FUNCTION, 256, 8,                                                                                              \
        "exp, tanh, log and rsqrt: OpenCL allows 3 to 5 units in the last place each, then a few operations")        \
    X(DIVISION, 1024, 0,                                                                                             \
        "parameters and losses after a few steps of small networks whose batch was divided in other ways: sums in "  \
        "another order, carried on; measured 2e-6, a lost sample gives 1e-2")                                        \
    X(NORMALISED, 1024, 32, "batch statistics: a difference of sums divided by a deviation, then differentiated")

enum tolerance_class {
#define TOLERANCE_ENUM(name, base, per_term, reason) TOLERANCE_##name,
    TOLERANCE_TABLE(TOLERANCE_ENUM)
#undef TOLERANCE_ENUM
};

/* Additional tolerance for values that are stored as bfloat16 in between, or rounded to it in a product. It has 8
 * bits of mantissa: a value is off by at most half a unit of the last one, 2^-9 of itself. Since roundings are
 * independent, sums of such values are off by as much of their rms: 2 covers the worst of many, four deviations of
 * 2^-9 / sqrt(3). */
static inline double tolerance_of_bf16(int64_t values)
{
    return ldexp(2 * (double)values, -9);
}

static inline double tolerance(enum tolerance_class class, int64_t length)
{
    static const double table[][2] = {
#define TOLERANCE_ROW(name, base, per_term, reason) { base, per_term },
        TOLERANCE_TABLE(TOLERANCE_ROW)
#undef TOLERANCE_ROW
    };
    return ldexp(table[class][0] + table[class][1] * sqrt((double)length), -24);
}

#endif
