/* Arguments of gemm_pipelined.cl. */
#define PIPELINED_ARGUMENTS(X)                                                                                     \
    X##_FIRST(global const uint4 *, packed) X##_BUFFER(global const float *, bias)                                 \
        X##_BUFFER(global const float *, added) X##_BUFFER(global float *, C) X##_INT(m) X##_INT(n) X##_INT(steps) \
            X##_INT(ldc) X##_INT(splits) X##_INT(steps_of_split) X##_LONG(from_a) X##_LONG(from_b) X##_LONG(from_c)    \
                X##_LONG(stride_a) X##_LONG(stride_b) X##_LONG(stride_c) X##_LONG(stride_split)
