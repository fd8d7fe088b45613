/* Arguments of gemm_skinny.cl. */
#define DOT_ARGUMENTS(X)                                                                                     \
    X##_FIRST(global const float *, A) X##_BUFFER(global const stored_t *, B) X##_BUFFER(global float *, C)     \
        X##_BUFFER(global const float *, bias) X##_BUFFER(global const float *, added) X##_INT(n) X##_INT(k) \
            X##_INT(lda) X##_INT(ldb) X##_INT(ldc) X##_INT(columns)
#define ROWS_ARGUMENTS(X)                                                                                         \
    X##_FIRST(global const float *, transposed) X##_BUFFER(global const stored_t *, B) X##_BUFFER(global float *, C) \
        X##_BUFFER(global const float *, bias) X##_BUFFER(global const float *, added) X##_INT(n) X##_INT(k)      \
            X##_INT(ldb) X##_INT(ldc)
#define OUTER_ARGUMENTS(X)                                                                                   \
    X##_FIRST(global const float *, A) X##_BUFFER(global const float *, B) X##_BUFFER(global float *, C)     \
        X##_BUFFER(global const float *, bias) X##_BUFFER(global const float *, added) X##_INT(m) X##_INT(n) \
            X##_INT(lda) X##_INT(ldb) X##_INT(ldc) X##_INT(rows) X##_INT(stream)
