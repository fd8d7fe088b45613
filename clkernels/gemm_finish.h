/* Makes what is stored of a product's result: ACTIVATION(value + bias + added), or with MASK the gradient of the input of the
 * activation whose output is `added`. For float and float4. bias and added point to the numbers that belong to the
 * result, or are NULL. */
#ifndef GEMM_FINISH_H
#define GEMM_FINISH_H
#include "derivative.h"
#include "epilogue.h"
#include "vector.h"

#if MASK
#define FINISH(T)                                                                                                      \
    INLINE T finish_##T(T value, global const float *bias, global const float *added)                                  \
    {                                                                                                                  \
        return MASKED(*(global const T *)added, value);                                                                \
    }
#else
#define FINISH(T)                                                                                                      \
    INLINE T finish_##T(T value, global const float *bias, global const float *added)                                  \
    {                                                                                                                  \
        if (bias) value += *(global const T *)bias;                                                                    \
        if (added) value += *(global const T *)added;                                                                  \
        return ACTIVATION(value);                                                                                      \
    }
#endif
FINISH(float)
FINISH(float4)
#endif
