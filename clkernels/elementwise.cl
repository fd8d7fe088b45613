/* Work on each of n floats by itself, in whatever layout they lie (all arguments have the same one).
 *
 *   elementwise_sum       out = ACTIVATION(a + add)    (ADD 0: out = ACTIVATION(a)); activations, sums, copies, epilogues
 *   elementwise_product   out = ACTIVATION(a * b + add)
 *   activation_gradient   out = dy * activation'(x) + add, where the derivative is a function of y = activation(x)
 *   clear_padding         x = 0 in the channels from C on of the last block of [N][blocks][HW][V]
 *
 * `out` may be `a`, `b`, `y`, `dy` or `add`. Launched by layers/elementwise.c. CPU class: one work-item is a task of
 * `chunk` floats, a multiple of V. GPU class: one work-item per float. STREAM 1: stores bypass the cache, for outputs
 * larger than it. */
#include "vector.h"
#include "derivative.h"
#include "epilogue.h"

#ifndef STREAM
#define STREAM 0
#endif
#if STREAM && defined(__clang__)
#define PUT_VECTOR(v, p) __builtin_nontemporal_store(v, (global VF *)(p))
#else
#define PUT_VECTOR(v, p) (*(global VF_unaligned *)(p) = (v))
#endif
#if ADD
#define ADD_PARAMETER global const float *add,
#define ADDED(AT) + AT(add)
#else
#define ADD_PARAMETER
#define ADDED(AT)
#endif

#define AT_VECTOR(p) (*(global const VF_unaligned *)((p) + i))
#define AT_SCALAR(p) ((p)[i])

/* VALUE(AT) is the value at i, before the activation; AT(p) the float or vector at i of p. */
#if TUTTI_GPU
#define FOR_EACH(VALUE, FINISH)                                                                                        \
    const size_t i = get_global_id(0);                                                                                 \
    if (i < (size_t)n) {                                                                                               \
        float v = VALUE(AT_SCALAR);                                                                                    \
        out[i] = FINISH(v);                                                                                            \
    }
#else
#define FOR_EACH(VALUE, FINISH)                                                                                        \
    size_t i = get_global_id(0) * (size_t)chunk;                                                                       \
    const size_t end = min((size_t)n, i + (size_t)chunk);                                                              \
    for (; i + V <= end; i += V) {                                                                                     \
        VF v = VALUE(AT_VECTOR);                                                                                       \
        PUT_VECTOR(FINISH(v), out + i);                                                                                \
    }                                                                                                                  \
    for (; i < end; i++) {                                                                                             \
        float v = VALUE(AT_SCALAR);                                                                                    \
        out[i] = FINISH(v);                                                                                            \
    }
#endif

#define SUM(AT) AT(a) ADDED(AT)
#define PRODUCT(AT) AT(a) * AT(b) ADDED(AT)
#define UNCHANGED(v) (v)

kernel void elementwise_sum(global const float *a, ADD_PARAMETER global float *out, long n, long chunk)
{
    FOR_EACH(SUM, ACTIVATION)
}

kernel void elementwise_product(
    global const float *a, global const float *b, ADD_PARAMETER global float *out, long n, long chunk)
{
    FOR_EACH(PRODUCT, ACTIVATION)
}

#define GRADIENT(AT) MASKED(AT(y), AT(dy)) ADDED(AT)

kernel void activation_gradient(
    global const float *y, global const float *dy, ADD_PARAMETER global float *out, long n, long chunk)
{
    FOR_EACH(GRADIENT, UNCHANGED)
}

/* One work-item per image and pixel, in groups of one: get_global_id(0) is the pixel, (1) the image. */
kernel void clear_padding(global float *x, int blocks, int HW, int C)
{
    const size_t at = ((get_global_id(1) * blocks + blocks - 1) * HW + get_global_id(0)) * V;
    for (int lane = C - (blocks - 1) * V; lane < V; lane++) x[at + lane] = 0.0f;
}
