/* Arguments of gemm_tiled.cl. */
#define TILED_ARGUMENTS(X)                                                                                            \
    X##_FIRST(global const float *restrict, A) X##_BUFFER(global const float *restrict, B)                            \
        X##_BUFFER(global const float *, bias) X##_BUFFER(global const float *, added) X##_BUFFER(global float *, C)  \
            X##_INT(m) X##_INT(n) X##_INT(k) X##_INT(lda) X##_INT(ldb) X##_INT(ldc) X##_LONG(from_a) X##_LONG(from_b) \
                X##_LONG(from_c) X##_LONG(stride_a) X##_LONG(stride_b) X##_LONG(stride_c) X##_LONG(stride_split)      \
                    X##_INT(splits) X##_INT(k_of_split)
