/* Arguments of conv2d_plain.cl. */
#define PLAIN_SIZES(X)                                                                                        \
    X##_LONG(count) X##_INT(C) X##_INT(H) X##_INT(W) X##_INT(K) X##_INT(OH) X##_INT(OW) X##_INT(R) X##_INT(S) \
        X##_INT(CG) X##_INT(KG) X##_INT(stride_h) X##_INT(stride_w) X##_INT(padding_h) X##_INT(padding_w)     \
            X##_INT(dilation_h) X##_INT(dilation_w)
#define PLAIN_FORWARD_ARGUMENTS(X)                                                                          \
    X##_FIRST(global const float *restrict, x) X##_BUFFER(global const float *restrict, weight) X##_BUFFER( \
        global const float *restrict, bias) X##_BUFFER(global const float *, add) X##_BUFFER(global float *, y)
#define PLAIN_DATA_GRADIENT_ARGUMENTS(X)                                                         \
    X##_FIRST(global const float *restrict, dy) X##_BUFFER(global const float *restrict, weight) \
        X##_BUFFER(global const float *, add) X##_BUFFER(global float *, dx)
#define PLAIN_WEIGHT_GRADIENT_ARGUMENTS(X)                                                  \
    X##_FIRST(global const float *restrict, x) X##_BUFFER(global const float *restrict, dy) \
        X##_BUFFER(global const float *, add) X##_BUFFER(global float *, dw)
#define PLAIN_SAMPLES(X) X##_INT(N)
