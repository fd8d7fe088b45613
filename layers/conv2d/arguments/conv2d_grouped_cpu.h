/* Arguments of conv2d_grouped_cpu.cl. */
#define GROUPED_ARGUMENTS(X)                                                                                          \
    X##_FIRST(global const float *restrict, source) X##_BUFFER(global const float *restrict, weights)                 \
        X##_BUFFER(global const float *restrict, bias) X##_BUFFER(global const float *, add)                          \
            X##_BUFFER(global float *, result) X##_INT(groups) X##_INT(CS) X##_INT(CR) X##_INT(SH) X##_INT(SW)        \
                X##_INT(RH) X##_INT(RW) X##_INT(padding_h) X##_INT(padding_w) X##_INT(dilation_h) X##_INT(dilation_w) \
                    X##_INT(rows)
#define GROUPED_WEIGHTS_ARGUMENTS(X)                                                                               \
    X##_FIRST(global const float *restrict, x) X##_BUFFER(global const float *restrict, dy)                        \
        X##_BUFFER(global const float *, add) X##_BUFFER(global float *, dw) X##_INT(N) X##_INT(groups) X##_INT(C) \
            X##_INT(K) X##_INT(H) X##_INT(W) X##_INT(OH) X##_INT(OW) X##_INT(padding_h) X##_INT(padding_w)         \
                X##_INT(dilation_h) X##_INT(dilation_w)
