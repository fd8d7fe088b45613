/* Arguments of gemm_finish.cl. */
#define FINISH_ARGUMENTS(X)                                                                                         \
    X##_FIRST(global const float *, parts) X##_BUFFER(global const float *, bias)                                   \
        X##_BUFFER(global const float *, added) X##_BUFFER(global float *, C) X##_INT(count) X##_INT(n) X##_INT(ld) \
            X##_INT(ldc) X##_LONG(stride) X##_LONG(stride_part) X##_LONG(stride_c) X##_LONG(from_c)
