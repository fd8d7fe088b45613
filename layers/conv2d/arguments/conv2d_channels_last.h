/* Arguments of conv2d_channels_last.cl. */
#define IMAGE_LAST_ARGUMENTS(X)                                                                             \
    X##_FIRST(global const float *restrict, source) X##_BUFFER(global const tile_t *restrict, weights)      \
        X##_BUFFER(global const float *restrict, bias) X##_BUFFER(global const float *, add)                \
            X##_BUFFER(global float *, result) X##_INT(N) X##_INT(CS) X##_INT(CR) X##_INT(CSP) X##_INT(CRP) \
                X##_INT(SH) X##_INT(SW) X##_INT(RH) X##_INT(RW) X##_INT(R) X##_INT(S) X##_INT(stride_h)     \
                    X##_INT(stride_w) X##_INT(padding_h) X##_INT(padding_w) X##_INT(dilation_h) X##_INT(dilation_w)
#define PACK_LAST_ARGUMENTS(X)                                                                            \
    X##_FIRST(global const float *restrict, w) X##_BUFFER(global tile_t *restrict, packed) X##_INT(count) \
        X##_INT(taps) X##_INT(CS) X##_INT(CR) X##_INT(CSP) X##_INT(CRP)
