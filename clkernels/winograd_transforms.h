/* The one-dimensional transforms of Winograd's convolutions F(M, R), M + R = SIDE + 1 (Lavin and Gray, "Fast algorithms for
 * convolutional neural networks", 2015, section 4). Those of a tile are the same applied to its rows and then to its columns.
 *
 * Toom and Cook: sequences are polynomials; the product of two is known by its values at 0, infinity and pairs +-P, +-Q, +-S:
 * with a SIDE of 4 only the first pair, with 6 two of them. The transform of sources B^T depends on these points alone, so it
 * is the same for all R. With 6 and P 3/4, Q 3/2 rounding errors are half of those with the usual 1 and 2 (measured: rms 0.53,
 * largest 0.3 of theirs, for R 3 and 5). With 8 the usual points are as good as any that are near them. The coefficients of
 * B^T are exact.
 *
 * Macros: SIDE (8, 6 or 4), R (taps of a side), NUMBER (what is transformed: float or a vector). */
#define M (SIDE + 1 - R)
#define TAPS (R * R)

/* The scales of a kernel's values at 0 and at each pair: products of the distances to the other points, inverted. */
#if SIDE == 8
#define P 1.0f
#define Q 0.5f
#define S 2.0f
#define SCALE_0 (-1.0f / (P * P * Q * Q * S * S))
#define SCALE_P (1.0f / (2.0f * P * P * (P * P - Q * Q) * (P * P - S * S)))
#define SCALE_Q (1.0f / (2.0f * Q * Q * (Q * Q - P * P) * (Q * Q - S * S)))
#define SCALE_S (1.0f / (2.0f * S * S * (S * S - P * P) * (S * S - Q * Q)))
#elif SIDE == 6
#define P 0.75f
#define Q 1.5f
#define SCALE_0 (1.0f / (P * P * Q * Q))
#define SCALE_P (1.0f / (2.0f * P * P * (P * P - Q * Q)))
#define SCALE_Q (1.0f / (2.0f * Q * Q * (Q * Q - P * P)))
#else
#define P 1.0f
#define SCALE_0 (-1.0f / (P * P))
#define SCALE_P (1.0f / (2.0f * P * P))
#endif

/* Rows of B^T, from source i on: of all pairs, and of all but one, whose point multiplies every other one. */
#if SIDE == 8
#define ALL_PAIRS(i)                                                                                          \
    (d[(i) + 6] - P * P * Q * Q * S * S * d[i] - (P * P + Q * Q + S * S) * d[(i) + 4] +                       \
        (P * P * Q * Q + P * P * S * S + Q * Q * S * S) * d[(i) + 2])
#define OTHER_PAIRS(i, A, B) (d[(i) + 4] - (A * A + B * B) * d[(i) + 2] + A * A * B * B * d[i])
#elif SIDE == 6
#define ALL_PAIRS(i) (d[(i) + 4] + P * P * Q * Q * d[i] - (P * P + Q * Q) * d[(i) + 2])
#define OTHER_PAIRS(i, A, B) (d[(i) + 2] - A * A * d[i])
#else
#define ALL_PAIRS(i) (d[(i) + 2] - P * P * d[i])
#define OTHER_PAIRS(i, A, B) d[i]
#endif

/* B^T d: SIDE sources -> SIDE */
INLINE void sources_1d(const NUMBER *d, NUMBER *t)
{
    const NUMBER even_p = OTHER_PAIRS(2, Q, S), odd_p = OTHER_PAIRS(1, Q, S);
#if SIDE >= 6
    const NUMBER even_q = OTHER_PAIRS(2, P, S), odd_q = OTHER_PAIRS(1, P, S);
#endif
#if SIDE >= 8
    const NUMBER even_s = OTHER_PAIRS(2, P, Q), odd_s = OTHER_PAIRS(1, P, Q);
#endif
    t[0] = ALL_PAIRS(0);
    t[1] = even_p + P * odd_p;
    t[2] = even_p - P * odd_p;
#if SIDE >= 6
    t[3] = even_q + Q * odd_q;
    t[4] = even_q - Q * odd_q;
#endif
#if SIDE >= 8
    t[5] = even_s + S * odd_s;
    t[6] = even_s - S * odd_s;
#endif
    t[SIDE - 1] = ALL_PAIRS(1);
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

#define SCALED(scale) (scaled ? scale : 1.0f)

/* `count` coefficients -> values at the SIDE points. A d: gradients of results; G g: weights, `scaled`. */
INLINE void evaluate(const NUMBER *c, int count, bool scaled, NUMBER *t)
{
    t[0] = SCALED(SCALE_0) * c[0];
    values(c, count, SCALED(SCALE_P), P, &t[1], &t[2]);
#if SIDE >= 6
    values(c, count, SCALED(SCALE_Q), Q, &t[3], &t[4]);
#endif
#if SIDE >= 8
    values(c, count, SCALED(SCALE_S), S, &t[5], &t[6]);
#endif
    t[SIDE - 1] = c[count - 1];
}

/* The transpose of evaluate(). A^T m: results; G^T m: gradients of weights, `scaled`. */
INLINE void evaluate_transposed(const NUMBER *t, int count, bool scaled, NUMBER *c)
{
    const NUMBER sum_p = t[1] + t[2], difference_p = t[1] - t[2];
    float power_p = SCALED(SCALE_P);
#if SIDE >= 6
    const NUMBER sum_q = t[3] + t[4], difference_q = t[3] - t[4];
    float power_q = SCALED(SCALE_Q);
#define PLUS_Q(value) +power_q *(value)
#else
#define PLUS_Q(value)
#endif
#if SIDE >= 8
    const NUMBER sum_s = t[5] + t[6], difference_s = t[5] - t[6];
    float power_s = SCALED(SCALE_S);
#define PLUS_S(value) +power_s *(value)
#else
#define PLUS_S(value)
#endif
    c[0] = SCALED(SCALE_0) * t[0] + power_p * sum_p PLUS_Q(sum_q) PLUS_S(sum_s);
    UNROLL for (int k = 1; k < count; k++)
    {
        power_p *= P;
#if SIDE >= 6
        power_q *= Q;
#endif
#if SIDE >= 8
        power_s *= S;
#endif
        c[k] = k % 2 ? power_p * difference_p PLUS_Q(difference_q) PLUS_S(difference_s)
                     : power_p * sum_p PLUS_Q(sum_q) PLUS_S(sum_s);
    }
    c[count - 1] += t[SIDE - 1];
}

#define INPUT_1D(d, t) sources_1d(d, t)
#define RESULTS_1D(t, y) evaluate_transposed(t, M, false, y)
#define RESULT_GRADIENTS_1D(dy, t) evaluate(dy, M, false, t)
#define WEIGHTS_1D(g, t) evaluate(g, R, true, t)
#define WEIGHT_GRADIENTS_1D(t, g) evaluate_transposed(t, R, true, g)
