/* The types of the elements of a node's tensors in memory, one option for each operand: float (the default) or bf16,
 * the upper half of a float. In registers all are floats, and so are sums. Set by element_options():
 *   IN<i>_TYPE, OUT<i>_TYPE   of input and output number i, as layers.h counts them
 *   ADD_TYPE                  of what the epilogue adds
 *
 * in0_t, out0_t, add_t ...  what a pointer to it points to
 * LOAD_AS(type, i, p)       the i-th vector after p
 * STORE_AS(type, v, i, p)   stores it, rounded to the nearest, ties to even; NaN stays NaN and becomes quiet
 * STREAM_AS(type, v, i, p)  the same around the caches; p + i V is aligned to a vector
 * CONVERT(from, to, e)      a single element
 * IS_BF16(type)             for #if */
#ifndef ELEMENT_H
#define ELEMENT_H
#include "vector.h"

#ifndef IN0_TYPE
#define IN0_TYPE float
#endif
#ifndef IN1_TYPE
#define IN1_TYPE float
#endif
#ifndef IN2_TYPE
#define IN2_TYPE float
#endif
#ifndef IN5_TYPE
#define IN5_TYPE float
#endif
#ifndef IN7_TYPE
#define IN7_TYPE float
#endif
#ifndef OUT0_TYPE
#define OUT0_TYPE float
#endif
#ifndef OUT3_TYPE
#define OUT3_TYPE float
#endif
#ifndef ADD_TYPE
#define ADD_TYPE float
#endif

#define ELEMENT(type) CONCATENATE(element_, type)
#define LOAD_AS(type, i, p) CONCATENATE(load_, type)(i, p)
#define STORE_AS(type, v, i, p) CONCATENATE(store_, type)(v, i, p)
#define CONVERT(from, to, e) CONCATENATE(to_, to)(CONCATENATE(from_, from)(e))
#define IS_BF16(type) CONCATENATE(is_bf16_, type)

#define is_bf16_float 0
#define element_float float
#define load_float(i, p) VLOAD(i, p)
#define store_float(v, i, p) VSTORE(v, i, p)
#define from_float(e) (e)
#define to_float(x) (x)

#define is_bf16_bf16 1
#define element_bf16 ushort
typedef CONCATENATE(ushort, V) VH;
typedef VH VH_unaligned __attribute__((aligned(2)));
#if defined(__clang__) /* POCL 3.1 converts wide vectors one number at a time */
#define TO_VU(h) __builtin_convertvector(h, VU)
#define TO_VH(u) __builtin_convertvector(u, VH)
#else
#define TO_VU(h) CONCATENATE(convert_, VU)(h)
#define TO_VH(u) CONCATENATE(convert_, CONCATENATE(ushort, V))(u)
#endif
#define AS_VF CONCATENATE(as_, VF)
#define AS_VU CONCATENATE(as_, VU)

INLINE VH round_to_bf16(VF v)
{
    const VU bits = AS_VU(v), upper = bits >> 16;
    return TO_VH(v != v ? (upper | 0x40u) : ((bits + 0x7fffu + (upper & 1u)) >> 16));
}

#define load_bf16(i, p) AS_VF(TO_VU(*(const global VH_unaligned *)((p) + (size_t)(i) * V)) << 16)
#define store_bf16(v, i, p) (*(global VH_unaligned *)((p) + (size_t)(i) * V) = round_to_bf16(v))

#define from_bf16(e) as_float((uint)(e) << 16)

INLINE ushort to_bf16(float x)
{
    const uint bits = as_uint(x), upper = bits >> 16;
    return (ushort)(x != x ? (upper | 0x40u) : ((bits + 0x7fffu + (upper & 1u)) >> 16));
}

#if defined(__clang__)
#define STREAM_AS(type, v, i, p) CONCATENATE(stream_, type)(v, i, p)
#define stream_float(v, i, p) __builtin_nontemporal_store(v, (global VF *)(p) + (i))
#define stream_bf16(v, i, p) __builtin_nontemporal_store(round_to_bf16(v), (global VH *)(p) + (i))
#else
#define STREAM_AS(type, v, i, p) STORE_AS(type, v, i, p)
#endif

typedef ELEMENT(IN0_TYPE) in0_t;
typedef ELEMENT(IN1_TYPE) in1_t;
typedef ELEMENT(IN2_TYPE) in2_t;
typedef ELEMENT(IN5_TYPE) in5_t;
typedef ELEMENT(IN7_TYPE) in7_t;
typedef ELEMENT(OUT0_TYPE) out0_t;
typedef ELEMENT(OUT3_TYPE) out3_t;
typedef ELEMENT(ADD_TYPE) add_t;
#endif
