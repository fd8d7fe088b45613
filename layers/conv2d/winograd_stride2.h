/* The one-dimensional transforms of a convolution of stride 2 with 3 taps, by the parity of its sources: taps 0 and 2
 * meet the even ones, as F(4, 2) with stride 1; tap 1 meets the odd ones, a product for each result. So 4 results take
 * 9 sources and 9 products; of the 6 values of a kernel the last, tap 1, serves 4 of them. Two-dimensional tiles are
 * made of these as all others: 81 products for 16 results, where the direct sum has 144, and 36 values of a kernel.
 *
 * GRADIENT 1, the transpose for sources: 5 gradients give 8 results of which those in between, odd ones, depend on two
 * gradients and the others on one. Taps are rotated, as for stride 1, and padding is 1. */
#define LINE 2
#define SIDE 5
#include "winograd_transforms.h"
#undef INPUT_1D
#undef RESULTS_1D
#undef RESULT_GRADIENTS_1D
#undef WEIGHTS_1D
#undef WEIGHT_GRADIENTS_1D
#define POINTS (SIDE + M)
#define KERNEL_POINTS (SIDE + 1)

#if GRADIENT
#define SOURCES SIDE
#define RESULTS (2 * M)
#define SOURCE_AT(y) ((y) / 2)

INLINE void INPUT_1D(const NUMBER *d, NUMBER *t)
{
    sources_1d(d, t);
    UNROLL for (int i = 0; i < M; i++) t[SIDE + i] = d[i];
}

INLINE void RESULTS_1D(const NUMBER *t, NUMBER *y)
{
    NUMBER odd[M];
    evaluate_transposed(t, M, false, odd);
    UNROLL for (int i = 0; i < M; i++)
    {
        y[2 * i] = t[SIDE + i];
        y[2 * i + 1] = odd[i];
    }
}
#else
#define SOURCES (2 * M + 1)
#define RESULTS M
#define SOURCE_AT(y) (2 * (y))

INLINE void INPUT_1D(const NUMBER *d, NUMBER *t)
{
    NUMBER even[SIDE];
    UNROLL for (int i = 0; i < SIDE; i++) even[i] = d[2 * i];
    sources_1d(even, t);
    UNROLL for (int i = 0; i < M; i++) t[SIDE + i] = d[2 * i + 1];
}

INLINE void RESULTS_1D(const NUMBER *t, NUMBER *y)
{
    evaluate_transposed(t, M, false, y);
    UNROLL for (int i = 0; i < M; i++) y[i] += t[SIDE + i];
}

INLINE void RESULT_GRADIENTS_1D(const NUMBER *dy, NUMBER *t)
{
    evaluate(dy, M, false, t);
    UNROLL for (int i = 0; i < M; i++) t[SIDE + i] = dy[i];
}
#endif

INLINE void WEIGHTS_1D(const NUMBER *g, NUMBER *t)
{
    const NUMBER even[LINE] = { g[0], g[2] };
    evaluate(even, LINE, true, t);
    t[SIDE] = g[1];
}

/* t: sums over the points of each value of a kernel. */
INLINE void WEIGHT_GRADIENTS_1D(const NUMBER *t, NUMBER *g)
{
    NUMBER even[LINE];
    evaluate_transposed(t, LINE, true, even);
    g[0] = even[0];
    g[1] = t[SIDE];
    g[2] = even[1];
}
