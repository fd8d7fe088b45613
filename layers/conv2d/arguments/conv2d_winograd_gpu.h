/* Arguments of conv2d_winograd_gpu.cl. */
#define TILES_ARGUMENTS(X)                                                                                             \
    X##_FIRST(global const float *restrict, image) X##_BUFFER(global float *restrict, tiles) X##_LONG(from) X##_INT(C) \
        X##_INT(padded) X##_INT(height) X##_INT(width) X##_INT(rows) X##_INT(columns) X##_INT(count) X##_INT(first)    \
            X##_INT(part) X##_INT(length) X##_INT(padding_h) X##_INT(padding_w)
#define RESULTS_ARGUMENTS(X)                                                                                        \
    X##_FIRST(global const float *restrict, products) X##_LONG(from) X##_BUFFER(global const float *restrict, bias) \
        X##_BUFFER(global const float *, add) X##_BUFFER(global float *, result) X##_INT(K) X##_INT(padded)         \
            X##_INT(height) X##_INT(width) X##_INT(rows) X##_INT(columns) X##_INT(count) X##_INT(first) X##_INT(part)
#define WEIGHT_GRADIENT_ARGUMENTS(X)                                                                   \
    X##_FIRST(global const float *restrict, sums) X##_LONG(from) X##_BUFFER(global const float *, add) \
        X##_BUFFER(global float *, dw) X##_INT(C) X##_INT(padded) X##_INT(padded_k) X##_INT(parts)
