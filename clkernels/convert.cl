/* Inputs as floats or int32: y = scale x + shift for n elements of each of `planes` planes, which lie `stride` elements
 * apart from `first` on. Launched by layers/convert.c, once for each channel, or for all elements as one plane.
 * FROM_...: the type of x. TO_I32 1: y is int32, scale and shift are not used. CPU class: a task is `chunk` elements.
 * GPU class: a work-item is one element. */
#include "parameters.h"
#include "arguments/convert.h"
#include "vector.h"

#if defined(FROM_U8)
#define FROM uchar
#define LOAD(i) x[i]
#elif defined(FROM_BOOL)
#define FROM uchar
#define LOAD(i) (x[i] != 0)
#elif defined(FROM_I32)
#define FROM int
#define LOAD(i) x[i]
#elif defined(FROM_F16)
#define FROM half
#define LOAD(i) vload_half(i, x)
#elif defined(FROM_BF16)
#define FROM ushort
#define LOAD(i) as_float((uint)x[i] << 16)
#else
#define FROM float
#define LOAD(i) x[i]
#endif
#if TO_I32
#define TO int
#define CONVERTED(i) (int)LOAD(i)
#else
#define TO float
#define CONVERTED(i) fma(scale, (float)LOAD(i), shift)
#endif

kernel void convert(CONVERT_ARGUMENTS(PARAMETER))
{
    const size_t plane = (size_t)first + get_global_id(1) * (size_t)stride;
    x += plane;
    y += plane;
#if TUTTI_GPU
    const size_t i = get_global_id(0);
    if (i < (size_t)n) y[i] = CONVERTED(i);
#else
    size_t i = get_global_id(0) * (size_t)chunk;
    const size_t end = min((size_t)n, i + (size_t)chunk);
    for (; i < end; i++) y[i] = CONVERTED(i);
#endif
}
