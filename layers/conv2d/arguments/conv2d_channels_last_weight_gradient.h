/* Arguments of conv2d_channels_last_weight_gradient.cl. */
#define IMAGE_LAST_WEIGHTS_ARGUMENTS(X)                                                                             \
    X##_FIRST(global const float *restrict, x) X##_BUFFER(global const float *restrict, dy)                         \
        X##_BUFFER(global const float *, add) X##_BUFFER(global float *, dw) X##_INT(N) X##_INT(C) X##_INT(K)       \
            X##_INT(H) X##_INT(W) X##_INT(OH) X##_INT(OW) X##_INT(R) X##_INT(S) X##_INT(stride_h) X##_INT(stride_w) \
                X##_INT(padding_h) X##_INT(padding_w) X##_INT(dilation_h) X##_INT(dilation_w) X##_INT(pixels_of_split)
