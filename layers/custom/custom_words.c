/* Words of OpenCL C, which cannot be names in the texts of custom operations: an attribute would replace them
 * everywhere, and an array would hide a function that the texts may call. */
#include "layers/custom/custom.h"

#include <string.h>

/* Each list is words between spaces, of OpenCL C 1.2 (Khronos 2012) and the C99 in it. */
static const char types[] = " bool char uchar short ushort int uint long ulong float double half quad ";
static const char sizes[] = " 2 3 4 8 16 ";
static const char keywords[] =
    " auto break case const continue default do else enum extern for goto if inline register restrict return signed "
    "sizeof static struct switch typedef union unsigned void volatile while asm typeof complex imaginary _Bool "
    "_Complex "
    "_Imaginary global local constant private generic kernel read_only write_only read_write uniform pipe size_t "
    "ptrdiff_t "
    "intptr_t uintptr_t event_t sampler_t image1d_t image1d_array_t image1d_buffer_t image2d_t image2d_array_t "
    "image3d_t "
    "true false NULL defined ";
static const char constants[] =
    " INFINITY NAN MAXFLOAT HUGE_VAL HUGE_VALF CHAR_BIT CHAR_MAX CHAR_MIN SCHAR_MAX SCHAR_MIN UCHAR_MAX SHRT_MAX "
    "SHRT_MIN "
    "USHRT_MAX INT_MAX INT_MIN UINT_MAX LONG_MAX LONG_MIN ULONG_MAX FLT_DIG FLT_MANT_DIG FLT_MAX_10_EXP FLT_MAX_EXP "
    "FLT_MIN_10_EXP FLT_MIN_EXP FLT_RADIX FLT_MAX FLT_MIN FLT_EPSILON DBL_DIG DBL_MANT_DIG DBL_MAX_10_EXP DBL_MAX_EXP "
    "DBL_MIN_10_EXP DBL_MIN_EXP DBL_MAX DBL_MIN DBL_EPSILON M_E M_LOG2E M_LOG10E M_LN2 M_LN10 M_PI M_PI_2 M_PI_4 "
    "M_1_PI "
    "M_2_PI M_2_SQRTPI M_SQRT2 M_SQRT1_2 M_E_F M_LOG2E_F M_LOG10E_F M_LN2_F M_LN10_F M_PI_F M_PI_2_F M_PI_4_F M_1_PI_F "
    "M_2_PI_F M_2_SQRTPI_F M_SQRT2_F M_SQRT1_2_F FP_ILOGB0 FP_ILOGBNAN FP_FAST_FMA FP_FAST_FMAF CLK_LOCAL_MEM_FENCE "
    "CLK_GLOBAL_MEM_FENCE ";
static const char functions[] =
    " get_work_dim get_global_size get_global_id get_local_size get_local_id get_num_groups get_group_id "
    "get_global_offset "
    "acos acosh acospi asin asinh asinpi atan atan2 atanh atanpi atan2pi cbrt ceil copysign cos cosh cospi erfc erf "
    "exp "
    "exp2 exp10 expm1 fabs fdim floor fma fmax fmin fmod fract frexp hypot ilogb ldexp lgamma lgamma_r log log2 log10 "
    "log1p logb mad maxmag minmag modf nan nextafter pow pown powr remainder remquo rint rootn round rsqrt sin sincos "
    "sinh "
    "sinpi sqrt tan tanh tanpi tgamma trunc abs abs_diff add_sat hadd rhadd clamp clz mad_hi mad_sat max min mul_hi "
    "rotate "
    "sub_sat upsample popcount mad24 mul24 degrees mix radians step smoothstep sign cross dot distance length "
    "normalize "
    "fast_distance fast_length fast_normalize isequal isnotequal isgreater isgreaterequal isless islessequal "
    "islessgreater isfinite isinf isnan isnormal isordered isunordered signbit any all bitselect select vload_half "
    "vstore_half vstore_half_rte vstore_half_rtz vstore_half_rtp vstore_half_rtn barrier mem_fence read_mem_fence "
    "write_mem_fence async_work_group_copy async_work_group_strided_copy wait_group_events prefetch vec_step shuffle "
    "shuffle2 printf ";
static const char fast_functions[] = " cos divide exp exp2 exp10 log log2 log10 powr recip rsqrt sin sqrt tan ";
static const char atomics[] = " add sub xchg inc dec cmpxchg min max and or xor ";

static bool is_in(const char *list, const char *word, size_t length)
{
    for (const char *at = list + 1; *at; at += strcspn(at, " ") + 1)
        if (strcspn(at, " ") == length && memcmp(at, word, length) == 0) return true;
    return false;
}

/* Tells whether the word is one of the list after the prefix. */
static bool follows(const char *prefix, const char *list, const char *word, size_t length)
{
    const size_t begin = strlen(prefix);
    return length > begin && memcmp(word, prefix, begin) == 0 && is_in(list, word + begin, length - begin);
}

/* Tells whether the word is a type: of scalars, or of vectors of them. */
static bool is_type(const char *word, size_t length)
{
    if (is_in(types, word, length)) return true;
    for (size_t digits = 1; digits <= 2 && digits < length; digits++)
        if (is_in(sizes, word + length - digits, digits) && is_in(types, word, length - digits)) return true;
    return false;
}

/* Tells whether the word is as_ or convert_ with a type, and perhaps a rounding. */
static bool is_conversion(const char *word, size_t length)
{
    static const char *const prefixes[] = { "as_", "convert_" };
    static const char *const endings[] = { "", "_sat", "_rte", "_rtz", "_rtp", "_rtn", "_sat_rte", "_sat_rtz",
        "_sat_rtp", "_sat_rtn" };
    for (size_t p = 0; p < sizeof prefixes / sizeof *prefixes; p++)
        for (size_t e = 0; e < (p ? sizeof endings / sizeof *endings : 1); e++) {
            const size_t begin = strlen(prefixes[p]), end = strlen(endings[e]);
            if (length <= begin + end || memcmp(word, prefixes[p], begin) != 0) continue;
            if (memcmp(word + length - end, endings[e], end) == 0 && is_type(word + begin, length - begin - end))
                return true;
        }
    return false;
}

bool custom_is_reserved(const char *word, size_t length)
{
    if (length >= 2 && memcmp(word, "__", 2) == 0) return true;
    return is_type(word, length) || is_in(keywords, word, length) || is_in(constants, word, length) ||
        is_in(functions, word, length) || is_conversion(word, length) || follows("vload", sizes, word, length) ||
        follows("vstore", sizes, word, length) || follows("native_", fast_functions, word, length) ||
        follows("half_", fast_functions, word, length) || follows("atomic_", atomics, word, length) ||
        follows("atom_", atomics, word, length);
}
