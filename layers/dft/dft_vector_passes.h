/* The passes of V transforms side by side in global memory, for CPU-class kernels; needs vector.h. */
#ifndef DFT_VECTOR_PASSES_H
#define DFT_VECTOR_PASSES_H
#define SPACE global
#define NUMBER VF
#define STORED VF_unaligned
#include "dft_passes.h"

#define PASS(R)                                                                                                        \
    OUTLINE void pass##R(                                                                                              \
        const global STORED *restrict from, global STORED *restrict to, global const float2 *table, int stride, int m) \
    {                                                                                                                  \
        for (int p = 0; p < m; p++) {                                                                                  \
            float2 w[R];                                                                                               \
            UNROLL for (int u = 1; u < R; u++) w[u] = table[p * u * stride];                                           \
            LOOP for (int q = 0; q < stride; q++)                                                                      \
            {                                                                                                          \
                pair a[R];                                                                                             \
                UNROLL for (int t = 0; t < R; t++) a[t] = pair_load(from, q + stride * (p + m * t));                   \
                butterfly##R(a);                                                                                       \
                pair_store(a[0], to, q + stride * R * p);                                                              \
                UNROLL for (int u = 1; u < R; u++)                                                                     \
                    pair_store(pair_multiply(a[u], w[u]), to, q + stride * (R * p + u));                               \
            }                                                                                                          \
        }                                                                                                              \
    }
PASS(2)
PASS(3)
PASS(4)
PASS(5)
PASS(8)

OUTLINE void pass_any(const global STORED *restrict from, global STORED *restrict to, global const float2 *table,
    int stride, int m, int radix)
{
    for (int p = 0; p < m; p++)
        for (int u = 0; u < radix; u++) {
            const float2 w = table[p * u * stride];
            for (int q = 0; q < stride; q++) {
                const pair sum = pair_any(from, q + stride * p, stride * m, radix, u, table, stride * m);
                pair_store(pair_multiply(sum, w), to, q + stride * (radix * p + u));
            }
        }
}

/* Returns where the result is: a or b. */
OUTLINE global STORED *passes(global STORED *a, global STORED *b, global const float2 *table, int size)
{
    int stride = 1;
    for (int rest = size; rest > 1;) {
        const int radix = dft_radix(rest), m = rest / radix;
        switch (radix) {
        case 2: pass2(a, b, table, stride, m); break;
        case 3: pass3(a, b, table, stride, m); break;
        case 4: pass4(a, b, table, stride, m); break;
        case 5: pass5(a, b, table, stride, m); break;
        case 8: pass8(a, b, table, stride, m); break;
        default: pass_any(a, b, table, stride, m, radix);
        }
        global STORED *other = a;
        a = b;
        b = other;
        stride *= radix;
        rest = m;
    }
    return a;
}
#endif
