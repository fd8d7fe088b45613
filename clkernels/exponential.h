/* exp(x) as plain arithmetic: it vectorises everywhere, and the library's exp() of a vector may be a call for each
 * lane. 2 units in the last place; NaN stays NaN. T, TI: a float and an int type of the same width.
 *   EXPONENTIAL          of numbers that are not positive; 0 below -87
 *   EXPONENTIAL_OF_ANY   0 below -87.33, infinity from 88.73 on */

/* x = n log 2 + r with |r| <= log(2) / 2, and exp(r) = p, a polynomial of degree 6 (S. Moshier: Cephes, expf). */
#define EXPONENTIAL_SERIES(x, T)                                                                                       \
    const T n = floor(fma(x, (T)(1.44269504f), (T)(0.5f)));                                                            \
    const T r = fma(n, (T)(2.12194440e-4f), fma(n, (T)(-0.693359375f), x));                                            \
    T p = (T)(1.9875691500e-4f);                                                                                       \
    p = fma(p, r, (T)(1.3981999507e-3f));                                                                              \
    p = fma(p, r, (T)(8.3334519073e-3f));                                                                              \
    p = fma(p, r, (T)(4.1665795894e-2f));                                                                              \
    p = fma(p, r, (T)(1.6666665459e-1f));                                                                              \
    p = fma(p, r, (T)(5.0000001201e-1f));                                                                              \
    p = fma(p, r * r, r + 1.0f);
#define EXPONENTIAL(name, T, TI, AS_T, TO_TI)                                                                          \
    INLINE T name(T x)                                                                                                 \
    {                                                                                                                  \
        EXPONENTIAL_SERIES(x, T)                                                                                       \
        const T power = AS_T((TO_TI(fmax(n, (T)(-126.0f))) + 127) << 23);                                              \
        return select(p * power, (T)(0.0f), (TI)(x < -87.0f));                                                         \
    }
/* Multiplies by two powers of 2, since 2^128 is not a float. */
#define EXPONENTIAL_OF_ANY(name, T, TI, AS_T, TO_TI)                                                                   \
    INLINE T name(T x)                                                                                                 \
    {                                                                                                                  \
        EXPONENTIAL_SERIES(x, T)                                                                                       \
        const TI whole = TO_TI(fmin(fmax(n, (T)(-126.0f)), (T)(128.0f))), first = whole >> 1;                          \
        p = p * AS_T((first + 127) << 23) * AS_T((whole - first + 127) << 23);                                         \
        return x < -87.33f ? (T)(0.0f) : x > 88.73f ? (T)(INFINITY) : p;                                               \
    }
#define AS_VF CONCATENATE(as_, VF)
#define TO_VI CONCATENATE(convert_int, V)
EXPONENTIAL(vector_exp, VF, VI, AS_VF, TO_VI)
/* A scalar comparison gives 1 where a vector's gives -1: select() wants a set highest bit of the vector's lanes, and
 * any bit of a scalar. */
EXPONENTIAL(scalar_exp, float, int, as_float, convert_int)

/* The largest element; NaN only where all are. */
INLINE float vector_max(VF v)
{
#if V == 16
    float8 h = fmax(v.lo, v.hi);
    float4 q = fmax(h.lo, h.hi);
#elif V == 8
    float4 q = fmax(v.lo, v.hi);
#else
    float4 q = v;
#endif
    return fmax(fmax(q.x, q.y), fmax(q.z, q.w));
}
