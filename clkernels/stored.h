/* A matrix that is stored as floats or in fewer bits (graph/stored.h), row after row, ld elements apart.
 *
 *   STORED 0  floats (the default)
 *          1  bfloat16 numbers
 *          2  bytes; after those of a row, at a multiple of 4, a float for each 64 of them, the scale
 *
 * stored_t                     what a pointer to it points to
 * STORED_AT(row, i, length)    number i of a row of `length` numbers as a float
 * STORED_LOAD(row, i, length)  V numbers from i on, a multiple of V, as floats: CPU class
 * STORED_UNSCALED(row, i)      the same without STORED_SCALE(row, i, length), which is that of STORED_BLOCK numbers */
#ifndef STORED_H
#define STORED_H
#ifndef STORED
#define STORED 0
#endif
#define STORED_BLOCK 64
#include "vector.h"

#if STORED == 0
typedef float stored_t;
#define STORED_AT(row, i, length) (row)[i]
#define STORED_LOAD(row, i, length) VLOAD(0, (row) + (i))
#elif STORED == 1
typedef ushort stored_t;
typedef CONCATENATE(ushort, V) STORED_VECTOR __attribute__((aligned(2)));
#define STORED_AT(row, i, length) as_float((uint)(row)[i] << 16)
#define STORED_SCALE(row, i, length) 1.0f
#else
typedef char stored_t;
typedef CONCATENATE(char, V) STORED_VECTOR __attribute__((aligned(1)));
#define STORED_SCALE(row, i, length) ((global const float *)((row) + (((length) + 3) & ~3)))[(i) / STORED_BLOCK]
#define STORED_AT(row, i, length) (STORED_SCALE(row, i, length) * (float)(row)[i])
#endif

#if STORED && defined(__clang__) /* POCL 3.1 converts wide vectors one number at a time */
#define STORED_CONVERT(type, v) __builtin_convertvector(v, type)
#elif STORED
#define STORED_CONVERT(type, v) CONCATENATE(convert_, type)(v)
#endif
#if STORED == 1
#define STORED_UNSCALED(row, i) \
    CONCATENATE(as_, VF)(STORED_CONVERT(VU, *(global const STORED_VECTOR *)((row) + (i))) << 16)
#define STORED_LOAD(row, i, length) STORED_UNSCALED(row, i)
#elif STORED == 2
#define STORED_UNSCALED(row, i) \
    STORED_CONVERT(VF, STORED_CONVERT(VI, *(global const STORED_VECTOR *)((row) + (i))))
#define STORED_LOAD(row, i, length) (STORED_UNSCALED(row, i) * STORED_SCALE(row, i, length))
#endif
#endif
