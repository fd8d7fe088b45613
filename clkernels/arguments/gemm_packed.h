/* Arguments of gemm_packed.cl. */
#define PACKED_ARGUMENTS(X)                                                                                          \
    X##_FIRST(global const float *, A) X##_BUFFER(global const stored_t *, B) X##_BUFFER(global float *, C)             \
        X##_BUFFER(global const float *, bias) X##_BUFFER(global const float *, added)                               \
            X##_BUFFER(global float *, sums) X##_LOCAL(local float *, scratch) X##_INT(m) X##_INT(n) X##_INT(k)      \
                X##_INT(lda) X##_INT(ldb) X##_INT(ldc) X##_LONG(stride_a) X##_LONG(stride_b) X##_LONG(stride_c)      \
                    X##_INT(rows) X##_INT(columns) X##_INT(depth) X##_INT(chain) X##_INT(splits) X##_INT(k_of_split) \
                        X##_LONG(stride_split)
