/* Arguments of conv2d_depthwise_channels_last.cl. */
#define FORWARD_LAST_ARGUMENTS(X)                                                            \
    X##_FIRST(global const float *restrict, x) X##_BUFFER(global const float *restrict, w)   \
        X##_BUFFER(global const float *restrict, bias) X##_BUFFER(global const float *, add) \
            X##_BUFFER(global float *, y) X##_INT(N) X##_INT(C) X##_INT(H) X##_INT(W) X##_INT(OH) X##_INT(OW)
#define DATA_GRADIENT_LAST_ARGUMENTS(X)                                                                       \
    X##_FIRST(global const float *restrict, dy) X##_BUFFER(global const float *restrict, w)                   \
        X##_BUFFER(global const float *, add) X##_BUFFER(global float *, dx) X##_INT(N) X##_INT(C) X##_INT(H) \
            X##_INT(W) X##_INT(OH) X##_INT(OW)
#define WEIGHT_GRADIENT_LAST_ARGUMENTS(X)                                                                     \
    X##_FIRST(global const float *restrict, x) X##_BUFFER(global const float *restrict, dy)                   \
        X##_BUFFER(global const float *, add) X##_BUFFER(global float *, dw) X##_INT(N) X##_INT(C) X##_INT(H) \
            X##_INT(W) X##_INT(OH) X##_INT(OW) X##_INT(strips_of_part)
