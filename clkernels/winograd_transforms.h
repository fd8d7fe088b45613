/* The one-dimensional transforms of Winograd's convolutions F(M, R), M + R = SIDE + 1 (Lavin and Gray, "Fast algorithms for
 * convolutional neural networks", 2015, section 4). Those of a tile are the same applied to its rows and then to its columns.
 *
 * Toom and Cook: sequences are polynomials; the product of two is known by its values at 0, +-P, +-Q and infinity, or, with a
 * SIDE of 4, at 0, +-P and infinity. The transform of sources B^T depends on these points alone, so it is the same for all R.
 * With P 3/4 and Q 3/2 rounding errors are half of those with the usual 1 and 2 (measured: rms 0.53, largest 0.3 of theirs,
 * for R 3 and 5), and the coefficients of B^T are exact.
 *
 * Macros: SIDE (6 or 4), R (taps of a side), NUMBER (what is transformed: float or a vector). */
#define M (SIDE + 1 - R)
#define TAPS (R * R)

/* The scales of a kernel's values at 0, +-P and +-Q: products of the distances to the other points, inverted. */
#if SIDE == 6
#define P 0.75f
#define Q 1.5f
#define SCALE_0 (1.0f / (P * P * Q * Q))
#define SCALE_P (1.0f / (2.0f * P * P * (P * P - Q * Q)))
#define SCALE_Q (1.0f / (2.0f * Q * Q * (Q * Q - P * P)))
#else
#define P 1.0f
#define Q 0.0f /* there is none */
#define SCALE_0 (-1.0f / (P * P))
#define SCALE_P (1.0f / (2.0f * P * P))
#define SCALE_Q 0.0f
#endif

/* B^T d: SIDE sources -> SIDE */
INLINE void sources_1d(const NUMBER *d, NUMBER *t)
{
#if SIDE == 6
    const NUMBER p = d[4] - Q * Q * d[2], q = d[3] - Q * Q * d[1], r = d[4] - P * P * d[2], s = d[3] - P * P * d[1];
    const NUMBER u = d[4] + P * P * Q * Q * d[0], w = d[5] + P * P * Q * Q * d[1];
    t[0] = u - (P * P + Q * Q) * d[2];
    t[1] = p + P * q;
    t[2] = p - P * q;
    t[3] = r + Q * s;
    t[4] = r - Q * s;
    t[5] = w - (P * P + Q * Q) * d[3];
#else
    t[0] = d[2] - P * P * d[0];
    t[1] = d[2] + P * d[1];
    t[2] = d[2] - P * d[1];
    t[3] = d[3] - P * P * d[1];
#endif
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

/* `count` coefficients -> values at the SIDE points. A d: gradients of results, scales 1; G g: weights. */
INLINE void evaluate(const NUMBER *c, int count, float scale_0, float scale_p, float scale_q, NUMBER *t)
{
    t[0] = scale_0 * c[0];
    values(c, count, scale_p, P, &t[1], &t[2]);
#if SIDE == 6
    values(c, count, scale_q, Q, &t[3], &t[4]);
#endif
    t[SIDE - 1] = c[count - 1];
}

/* The transpose of evaluate(). A^T m: results, scales 1; G^T m: gradients of weights. */
INLINE void evaluate_transposed(const NUMBER *t, int count, float scale_0, float scale_p, float scale_q, NUMBER *c)
{
    const NUMBER sum_p = t[1] + t[2], difference_p = t[1] - t[2];
#if SIDE == 6
    const NUMBER sum_q = t[3] + t[4], difference_q = t[3] - t[4];
#define PLUS_Q(value) +power_q *(value)
#else
#define PLUS_Q(value)
#endif
    float power_p = scale_p, power_q = scale_q;
    c[0] = scale_0 * t[0] + power_p * sum_p PLUS_Q(sum_q);
    UNROLL for (int k = 1; k < count; k++)
    {
        power_p *= P;
        power_q *= Q;
        c[k] = k % 2 ? power_p * difference_p PLUS_Q(difference_q) : power_p * sum_p PLUS_Q(sum_q);
    }
    c[count - 1] += t[SIDE - 1];
}

#define INPUT_1D(d, t) sources_1d(d, t)
#define RESULTS_1D(t, y) evaluate_transposed(t, M, 1.0f, 1.0f, 1.0f, y)
#define RESULT_GRADIENTS_1D(dy, t) evaluate(dy, M, 1.0f, 1.0f, 1.0f, t)
#define WEIGHTS_1D(g, t) evaluate(g, R, SCALE_0, SCALE_P, SCALE_Q, t)
#define WEIGHT_GRADIENTS_1D(t, g) evaluate_transposed(t, R, SCALE_0, SCALE_P, SCALE_Q, g)
