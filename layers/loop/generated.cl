/* Building blocks of the kernels that layers/loop/loop_source.c writes; their text follows this one.
 *
 * An expression (layers/pointwise.h) is compiled as it stands for a number and for a vector of V numbers: T is its
 * type, and MATH says which functions it calls, scalar_tanh() or vector_tanh(). They are plain arithmetic, as those of
 * exponential.h are. */
#include "element.h"
#include "exponential.h"
#include "sum.h"
#if TUTTI_GPU
#include "group.h"
#endif

#ifdef DECLARE_BUILTINS /* as in builtins.h: those that expressions alone call */
#define PURE __attribute__((overloadable, const))
#define WIDTHS(DECLARE) DECLARE() DECLARE(2) DECLARE(4) DECLARE(8) DECLARE(16)
#define FUNCTIONS_OF(N)                                                                                                \
    float##N PURE sin(float##N);                                                                                       \
    float##N PURE cos(float##N);                                                                                       \
    float##N PURE tan(float##N);                                                                                       \
    float##N PURE asin(float##N);                                                                                      \
    float##N PURE acos(float##N);                                                                                      \
    float##N PURE atan(float##N);                                                                                      \
    float##N PURE sinh(float##N);                                                                                      \
    float##N PURE cosh(float##N);                                                                                      \
    float##N PURE asinh(float##N);                                                                                     \
    float##N PURE acosh(float##N);                                                                                     \
    float##N PURE atanh(float##N);                                                                                     \
    float##N PURE ceil(float##N);                                                                                      \
    float##N PURE rint(float##N);                                                                                      \
    float##N PURE fmod(float##N, float##N);                                                                            \
    float##N PURE pow(float##N, float##N);
WIDTHS(FUNCTIONS_OF)
#undef PURE
#undef WIDTHS
#undef FUNCTIONS_OF
#endif

/* N. Juffa (stackoverflow.com/a/35148199): 1 unit in the last place. EXP: of numbers that are not positive. */
#define ERF(name, T, EXP)                                                                                              \
    INLINE T name(T x)                                                                                                 \
    {                                                                                                                  \
        const T t = fabs(x), s = x * x;                                                                                \
        T large = fma((T)(-1.72853470e-5f), t, (T)(3.83197126e-4f));                                                   \
        large = fma(large, s, fma((T)(-3.88396438e-3f), t, (T)(2.42546219e-2f)));                                      \
        large = fma(large, t, (T)(-1.06777877e-1f));                                                                   \
        large = fma(large, t, (T)(-6.34846687e-1f));                                                                   \
        large = fma(large, t, (T)(-1.28717512e-1f));                                                                   \
        large = 1.0f - EXP(fma(large, t, -t));                                                                         \
        large = t > 9.0f ? (T)(1.0f) : large;                                                                          \
        T small = (T)(-5.96761703e-4f);                                                                                \
        small = fma(small, s, (T)(4.99119423e-3f));                                                                    \
        small = fma(small, s, (T)(-2.67681349e-2f));                                                                   \
        small = fma(small, s, (T)(1.12819925e-1f));                                                                    \
        small = fma(small, s, (T)(-3.76125336e-1f));                                                                   \
        small = fma(small, s, (T)(1.28379166e-1f));                                                                    \
        return t > 0.927734375f ? (x < 0.0f ? -large : large) : fma(small, x, x);                                      \
    }
/* S. Moshier: Cephes, tanhf. */
#define TANH(name, T, EXP)                                                                                             \
    INLINE T name(T x)                                                                                                 \
    {                                                                                                                  \
        const T t = fabs(x), s = x * x, large = 1.0f - 2.0f / (EXP(2.0f * t) + 1.0f);                                  \
        T small = (T)(-5.70498872745e-3f);                                                                             \
        small = fma(small, s, (T)(2.06390887954e-2f));                                                                 \
        small = fma(small, s, (T)(-5.37397155531e-2f));                                                                \
        small = fma(small, s, (T)(1.33314422036e-1f));                                                                 \
        small = fma(small, s, (T)(-3.33332819422e-1f));                                                                \
        return t > 0.625f ? (x < 0.0f ? -large : large) : fma(small * s, x, x);                                        \
    }
#define SIGMOID(name, T, EXP)                                                                                          \
    INLINE T name(T x)                                                                                                 \
    {                                                                                                                  \
        return 1.0f / (1.0f + EXP(-x));                                                                                \
    }
#define FUNCTIONS(NAME, T, TI, AS_T, TO_TI)                                                                            \
    EXPONENTIAL_OF_ANY(NAME##_any_exp, T, TI, AS_T, TO_TI)                                                             \
    ERF(NAME##_erf, T, NAME##_exp)                                                                                     \
    TANH(NAME##_tanh, T, NAME##_any_exp)                                                                               \
    SIGMOID(NAME##_sigmoid, T, NAME##_any_exp)
FUNCTIONS(scalar, float, int, as_float, convert_int)
#if !TUTTI_GPU
FUNCTIONS(vector, VF, VI, AS_VF, TO_VI)
#endif
#define exp(x) CONCATENATE(MATH, _any_exp)(x)
#define erf(x) CONCATENATE(MATH, _erf)(x)
#define tanh(x) CONCATENATE(MATH, _tanh)(x)
#define sigmoid(x) CONCATENATE(MATH, _sigmoid)(x)
/* Both numbers are computed. */
#define where(condition, x, y) ((condition) ? (T)(x) : (T)(y))
/* NaN wins, where fmax() and fmin() hide it. */
#define larger(x, y) where((x) != (x) || (x) > (y), x, y)
#define smaller(x, y) where((x) != (x) || (x) < (y), x, y)

/* Inputs of the network, which are only read. */
#define element_i32 int
#define element_u8 uchar
#define element_bool uchar
#define element_f16 half
#if defined(__clang__)
#define TO_VF(v) __builtin_convertvector(v, VF)
#else
#define TO_VF(v) CONCATENATE(convert_, VF)(v)
#endif
typedef CONCATENATE(uchar, V) VB;
typedef VB VB_unaligned __attribute__((aligned(1)));
typedef VI VI_unaligned __attribute__((aligned(4)));
#define load_i32(i, p) TO_VF(*(const global VI_unaligned *)((p) + (size_t)(i) * V))
#define load_u8(i, p) TO_VF(*(const global VB_unaligned *)((p) + (size_t)(i) * V))
#define load_bool(i, p) TO_VF(-(*(const global VB_unaligned *)((p) + (size_t)(i) * V) != (VB)(0)))

/* Numbers that are stored as `type`. */
#define GET_VECTOR(type, p) LOAD_AS(type, 0, p)
#define GET(type, p) CONCATENATE(get_, type)(p)
#define GATHER_VECTOR(type, p, i, size, stride)                                                                        \
    ((i) >= 0 && (i) < (size) ? GET_VECTOR(type, (p) + (size_t)(i) * (stride)) : (VF)(0.0f))
#define GATHER(type, p, i, size, stride) ((i) >= 0 && (i) < (size) ? GET(type, (p) + (size_t)(i) * (stride)) : 0.0f)
#define get_float(p) (*(p))
#define get_bf16(p) from_bf16(*(p))
#define get_i32(p) (float)*(p)
#define get_u8(p) (float)*(p)
#define get_bool(p) (*(p) != 0 ? 1.0f : 0.0f)
#define get_f16(p) vload_half(0, p)
#define PUT_VECTOR(type, v, p) STORE_AS(type, v, 0, p)
#define PUT(type, x, p) (*(p) = CONCATENATE(to_, type)(x))
/* Four numbers at an address that is aligned to them. */
#define FOUR(type, p) CONCATENATE(four_, type)(p)
#define four_float(p) (*(global const float4 *)(p))
#define four_bf16(p) as_float4(convert_uint4(*(global const ushort4 *)(p)) << 16)
#define PUT_FOUR(type, v, p) CONCATENATE(put_four_, type)(v, p)
#define put_four_float(v, p) (*(global float4 *)(p) = (v))
#define put_four_bf16(v, p)                                                                                            \
    (*(global ushort4 *)(p) = (ushort4)(to_bf16((v).x), to_bf16((v).y), to_bf16((v).z), to_bf16((v).w)))
#ifdef STREAM /* around the caches: `p` is aligned to a vector */
#define PUT_STREAM(type, v, p) STREAM_AS(type, v, 0, p)
#else
#define PUT_STREAM(type, v, p) STORE_AS(type, v, 0, p)
#endif
