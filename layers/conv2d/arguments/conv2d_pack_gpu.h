/* Arguments of conv2d_pack_gpu.cl. */
#define PACK_ARGUMENTS(X)                                                                                              \
    X##_FIRST(global const float *restrict, w) X##_BUFFER(global float *restrict, packed) X##_INT(count) X##_INT(taps) \
        X##_INT(CS) X##_INT(CR) X##_INT(CSP) X##_INT(CRP) X##_INT(gradient) X##_INT(flat)
