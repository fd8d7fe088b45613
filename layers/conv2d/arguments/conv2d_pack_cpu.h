/* Arguments of conv2d_pack_cpu.cl. */
#define PACK_ARGUMENTS(X)                                                                     \
    X##_FIRST(const global float *restrict, w) X##_BUFFER(const global float *restrict, bias) \
        X##_BUFFER(global float *restrict, packed) X##_INT(C) X##_INT(K) X##_INT(taps) X##_INT(padded) X##_INT(merged)
#define PAIR_ARGUMENTS(X) X##_FIRST(global float *, packed) X##_INT(panels) X##_INT(padded)
