/* The one-dimensional transforms of Winograd's convolutions F(M, LINE), SIDE sources a tile (Lavin and Gray, "Fast
 * algorithms for convolutional neural networks", 2015, section 4). A square tile is transformed by applying them to
 * its rows and then to its columns.
 *
 * Toom and Cook: sequences are polynomials; the product of two is known by its values at 0, at pairs of points +-a,
 * and, where SIDE is even, at infinity. The transform of sources B^T depends on these points alone, so it is the same
 * for all kernels. With a SIDE of 5 or 6 and the points 3/4 and 3/2 rounding errors are half of those with the usual 1
 * and 2 (measured: rms 0.53, largest 0.3 of theirs, for 3 and 5 taps). With 7 and 8 the usual points are as good as any
 * that are near them. The coefficients of B^T are exact.
 *
 * Macros: SIDE (4 to 8), LINE (taps of a line), NUMBER (what is transformed: float or a vector). */
#define M (SIDE + 1 - LINE)

/* For each pair n: POINT_n is its point. SCALE_n is the scale of a kernel's values there, the inverse of the product
 * of the distances to the other points (SCALE_0: at 0). OTHER_PAIRS_n has the other pairs as its zeros, from source i
 * on (ALL_PAIRS: all pairs). */
#define SQUARE(n) (POINT_##n * POINT_##n)
#if SIDE >= 7
#define PAIRS(X) X(1) X(2) X(3)
#define POINT_1 1.0f
#define POINT_2 0.5f
#define POINT_3 2.0f
#define SCALE_0 (-1.0f / (SQUARE(1) * SQUARE(2) * SQUARE(3)))
#define SCALE_OF(n, a, b) (1.0f / (2.0f * SQUARE(n) * (SQUARE(n) - SQUARE(a)) * (SQUARE(n) - SQUARE(b))))
#define SCALE_1 SCALE_OF(1, 2, 3)
#define SCALE_2 SCALE_OF(2, 1, 3)
#define SCALE_3 SCALE_OF(3, 1, 2)
#define ALL_PAIRS(i)                                                                                            \
    (d[(i) + 6] - SQUARE(1) * SQUARE(2) * SQUARE(3) * d[i] - (SQUARE(1) + SQUARE(2) + SQUARE(3)) * d[(i) + 4] + \
        (SQUARE(1) * SQUARE(2) + SQUARE(1) * SQUARE(3) + SQUARE(2) * SQUARE(3)) * d[(i) + 2])
#define TWO_PAIRS(i, a, b) (d[(i) + 4] - (SQUARE(a) + SQUARE(b)) * d[(i) + 2] + SQUARE(a) * SQUARE(b) * d[i])
#define OTHER_PAIRS_1(i) TWO_PAIRS(i, 2, 3)
#define OTHER_PAIRS_2(i) TWO_PAIRS(i, 1, 3)
#define OTHER_PAIRS_3(i) TWO_PAIRS(i, 1, 2)
#elif SIDE >= 5
#define PAIRS(X) X(1) X(2)
#define POINT_1 0.75f
#define POINT_2 1.5f
#define SCALE_0 (1.0f / (SQUARE(1) * SQUARE(2)))
#define SCALE_1 (1.0f / (2.0f * SQUARE(1) * (SQUARE(1) - SQUARE(2))))
#define SCALE_2 (1.0f / (2.0f * SQUARE(2) * (SQUARE(2) - SQUARE(1))))
#define ALL_PAIRS(i) (d[(i) + 4] + SQUARE(1) * SQUARE(2) * d[i] - (SQUARE(1) + SQUARE(2)) * d[(i) + 2])
#define OTHER_PAIRS_1(i) (d[(i) + 2] - SQUARE(2) * d[i])
#define OTHER_PAIRS_2(i) (d[(i) + 2] - SQUARE(1) * d[i])
#else
#define PAIRS(X) X(1)
#define POINT_1 1.0f
#define SCALE_0 (-1.0f / SQUARE(1))
#define SCALE_1 (1.0f / (2.0f * SQUARE(1)))
#define ALL_PAIRS(i) (d[(i) + 2] - SQUARE(1) * d[i])
#define OTHER_PAIRS_1(i) d[i]
#endif
#define PLUS(n) (2 * n - 1) /* where the values at a pair lie */
#define MINUS(n) (2 * n)
#define INFINITE (SIDE % 2 == 0)

/* B^T d: SIDE sources -> SIDE */
INLINE void sources_1d(const NUMBER *d, NUMBER *t)
{
#define PARTS(n) const NUMBER even_##n = OTHER_PAIRS_##n(2), odd_##n = OTHER_PAIRS_##n(1);
#define VALUES(n) t[PLUS(n)] = even_##n + POINT_##n * odd_##n, t[MINUS(n)] = even_##n - POINT_##n * odd_##n;
    PAIRS(PARTS)
    t[0] = ALL_PAIRS(0);
    PAIRS(VALUES)
    if (INFINITE) t[SIDE - 1] = ALL_PAIRS(1);
#undef PARTS
#undef VALUES
}

/* `scale` times the polynomial with these coefficients at `point` and at -`point`. */
INLINE void values(const NUMBER *c, int count, float scale, float point, NUMBER *plus, NUMBER *minus)
{
    NUMBER even = scale * c[0], odd = scale * c[1];
    float power = scale;
    UNROLL for (int k = 2; k < count; k++)
    {
        if (k % 2) {
            odd += power * c[k];
        } else {
            power *= point * point;
            even += power * c[k];
        }
    }
    *plus = even + point * odd;
    *minus = even - point * odd;
}

#define SCALED(n) (scaled ? SCALE_##n : 1.0f)

/* `count` coefficients -> values at the SIDE points. A d: gradients of results; G g: weights, `scaled`. */
INLINE void evaluate(const NUMBER *c, int count, bool scaled, NUMBER *t)
{
#define VALUES(n) values(c, count, SCALED(n), POINT_##n, &t[PLUS(n)], &t[MINUS(n)]);
    t[0] = SCALED(0) * c[0];
    PAIRS(VALUES)
    if (INFINITE) t[SIDE - 1] = c[count - 1];
#undef VALUES
}

/* The transpose of evaluate(). A^T m: results; G^T m: gradients of weights, `scaled`. */
INLINE void evaluate_transposed(const NUMBER *t, int count, bool scaled, NUMBER *c)
{
#define PARTS(n)                                                                                \
    const NUMBER sum_##n = t[PLUS(n)] + t[MINUS(n)], difference_##n = t[PLUS(n)] - t[MINUS(n)]; \
    float power_##n = SCALED(n);
#define SUM(n) +power_##n *sum_##n
#define DIFFERENCE(n) +power_##n *difference_##n
#define RAISE(n) power_##n *= POINT_##n;
    PAIRS(PARTS)
    c[0] = SCALED(0) * t[0] PAIRS(SUM);
    UNROLL for (int k = 1; k < count; k++)
    {
        PAIRS(RAISE)
        c[k] = k % 2 ? PAIRS(DIFFERENCE) : PAIRS(SUM);
    }
    if (INFINITE) c[count - 1] += t[SIDE - 1];
#undef PARTS
#undef SUM
#undef DIFFERENCE
#undef RAISE
}

#define INPUT_1D(d, t) sources_1d(d, t)
#define RESULTS_1D(t, y) evaluate_transposed(t, M, false, y)
#define RESULT_GRADIENTS_1D(dy, t) evaluate(dy, M, false, t)
#define WEIGHTS_1D(g, t) evaluate(g, LINE, true, t)
#define WEIGHT_GRADIENTS_1D(t, g) evaluate_transposed(t, LINE, true, g)
