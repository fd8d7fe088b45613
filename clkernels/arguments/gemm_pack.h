/* Arguments of gemm_pack.cl. */
#define PACK_ARGUMENTS(X)                                                                                         \
    X##_FIRST(global const float *, from) X##_BUFFER(global uint4 *, to) X##_INT(lines) X##_INT(k) X##_INT(steps) \
        X##_INT(ld) X##_LONG(first) X##_LONG(stride) X##_LONG(first_to)
