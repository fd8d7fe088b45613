/* Arguments of conv2d_depthwise_cpu.cl. */
#define DEPTHWISE_ARGUMENTS(X)                                                                                   \
    X##_FIRST(const global in0_t *restrict, source) X##_BUFFER(const global float *restrict, packed)             \
        X##_BUFFER(const global add_t *, add) X##_BUFFER(global out0_t *, result) X##_INT(height) X##_INT(width) \
            X##_INT(OH) X##_INT(OW) X##_INT(rows_max)
#define DEPTHWISE_WEIGHTS_ARGUMENTS(X)                                                                         \
    X##_FIRST(const global in0_t *restrict, x) X##_BUFFER(const global in1_t *restrict, dy)                    \
        X##_BUFFER(global float *, workspace) X##_INT(count) X##_INT(count_max) X##_INT(height) X##_INT(width) \
            X##_INT(OH) X##_INT(OW) X##_INT(rows_max)
#define DEPTHWISE_PARTS_ARGUMENTS(X) X##_BUFFER(global float *, workspace)
