/* Arguments of conv2d_depthwise_gpu.cl. */
#define FORWARD_ARGUMENTS(X)                                                                     \
    X##_FIRST(global const float *restrict, x) X##_BUFFER(global const float *restrict, weights) \
        X##_BUFFER(global const float *restrict, bias) X##_BUFFER(global const float *, add)     \
            X##_BUFFER(global float *, y) X##_INT(K) X##_INT(H) X##_INT(W) X##_INT(OH) X##_INT(OW) X##_INDEX(items)
#define DATA_GRADIENT_ARGUMENTS(X)                                                                            \
    X##_FIRST(global const float *restrict, dy) X##_BUFFER(global const float *restrict, weights)             \
        X##_BUFFER(global const float *, add) X##_BUFFER(global float *, dx) X##_INT(C) X##_INT(H) X##_INT(W) \
            X##_INT(OH) X##_INT(OW) X##_INDEX(items)
#define WEIGHT_GRADIENT_ARGUMENTS(X)                                                                          \
    X##_FIRST(global const float *restrict, x) X##_BUFFER(global const float *restrict, dy)                   \
        X##_BUFFER(global const float *, add) X##_BUFFER(global float *, dw) X##_INT(N) X##_INT(K) X##_INT(H) \
            X##_INT(W) X##_INT(OH) X##_INT(OW) X##_INT(splits) X##_INT(tiles_of_split) X##_INT(tiles)
